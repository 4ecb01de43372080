"""All claims, in the order in which they are printed."""

from __future__ import annotations

from typing import Final

from spec.proofs import allocation, claim, delay, index, log, queue

CLAIMS: Final[tuple[claim.Claim, ...]] = (
    *claim.CLAIMS,
    *allocation.CLAIMS,
    *log.CLAIMS,
    *index.CLAIMS,
    *queue.CLAIMS,
    *delay.CLAIMS,
)
