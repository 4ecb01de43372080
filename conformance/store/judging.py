"""What a step must do at once, and what it did: puts, acknowledgements, dispatch, maintenance by its rules.

Pure functions over what `stepping` has seen of one step; each yields a sentence for what is not as it must be. What
can only be judged later is the business of the oracles.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from refmq.store import PutStatus


class SeenPut(NamedTuple):
    """A message was put, and is stored or refused."""

    status: PutStatus
    is_legal: bool
    refusal: PutStatus | None
    """With which status one that is not legal has to be refused; None for one that is."""
    accepts: bool
    """Whether the store took puts before."""
    had_room: bool
    """Whether no fault struck, and the disk has its whole size."""


def refused(seen: SeenPut) -> Iterator[str]:
    """A put that was refused: there must be a reason, and it must be told."""
    assert not seen.status.is_stored
    if seen.is_legal and seen.accepts and seen.had_room:
        yield f"{seen.status.name} for a message that can be stored"
    if not seen.is_legal and seen.accepts and seen.status is not seen.refusal:
        yield f"{seen.status.name} for a message that is not legal"


class SeenPlace(NamedTuple):
    """Where a message was stored, and what its sender was told."""

    expected_at: int
    physical_offset: int
    is_certain: bool
    """Whether nothing explains another place: a roll that found no room may be half done."""
    expected: tuple[object, ...]
    found: tuple[object, ...]
    expected_bytes: int
    size_bytes: int
    misplaced: str | None
    """What is wrong with the places of its records."""


def stored(seen: SeenPlace, *, is_legal: bool) -> Iterator[str]:
    """A put that was stored: where it belongs, and told as it is."""
    if not is_legal:
        yield "a message that fits no record was stored"
    if seen.misplaced is not None:
        yield seen.misplaced
    if seen.physical_offset != seen.expected_at and seen.is_certain:
        yield f"a record was put at {seen.physical_offset} instead of {seen.expected_at}"
    if seen.found != seen.expected:
        yield f"{seen.found} instead of {seen.expected}"
    if seen.size_bytes != seen.expected_bytes:
        yield f"a result of {seen.size_bytes} bytes"


class SeenAnswer(NamedTuple):
    """What a producer that waits is told."""

    status: PutStatus
    what: str
    is_safe: bool
    """Whether its message is as safe as the flush mode promises."""
    accepts: bool
    has_failed: bool
    """Whether a flush has failed in this life."""


def answered(seen: SeenAnswer) -> Iterator[str]:
    if seen.is_safe and seen.status is not PutStatus.PUT_OK and seen.accepts:
        yield f"{seen.status.name} for {seen.what}"
    if seen.status is PutStatus.PUT_OK and seen.has_failed:
        yield f"PUT_OK for {seen.what} after a flush has failed"


class SeenDispatch(NamedTuple):
    """Records were dispatched, or none."""

    begin: int
    """Up to where it was done before,"""
    end: int
    """... and is now."""
    bound: int
    """Up to where it may be."""
    told: int
    """Of how many messages whoever waits has heard."""
    is_disturbed: bool
    """Whether a fault struck meanwhile."""
    refuses_puts: bool
    """Whether the store refuses puts, and nothing explains it."""


def dispatched(seen: SeenDispatch) -> Iterator[str]:
    if not seen.is_disturbed:
        if not seen.told and seen.end < seen.bound:
            yield f"nothing from {seen.begin} on, and the log can be dispatched to {seen.bound}"
        if seen.refuses_puts:
            yield "there is room again, and puts are refused"
    if seen.end > max(seen.begin, seen.bound):
        yield f"dispatched to {seen.end}, and only {seen.bound} may be served"


class SeenMaintenance(NamedTuple):
    """What a round of maintenance did to the log."""

    flushed_before: int
    flushed_to: int
    written_to: int
    appended_to: int
    """Up to where messages were put; a transient pool may hold some back."""
    is_sync: bool
    is_flush_due: bool
    """By the rules; never with sync flush."""
    is_commit_due: bool
    """Whether the transient pool has to write what it holds."""


def maintained(seen: SeenMaintenance) -> Iterator[str]:
    """The log is flushed when its rules say so, and otherwise not."""
    if seen.is_sync:
        if seen.flushed_to != seen.written_to:
            yield f"{seen.flushed_to} of {seen.written_to} is flushed, and nobody waits"
        return
    if seen.is_commit_due and seen.written_to < seen.appended_to:
        yield f"only {seen.written_to} of {seen.appended_to} left the transient pool"
    expected = seen.written_to if seen.is_flush_due else seen.flushed_before
    if seen.flushed_to != expected:
        yield f"the log is flushed to {seen.flushed_to} instead of {expected}"


def checkpointed(behind: list[int], queues_to: int, dispatched: int, *, is_half_indexed: bool) -> Iterator[str]:
    """A thorough round made everything durable: `behind` are the records without durable units, `queues_to` is what the
    checkpoint says, -1 without one."""
    if behind:
        yield f"it is time, and the units of {behind} are not durable"
    if 0 <= queues_to < dispatched and not is_half_indexed:
        yield f"it is time, and the checkpoint says {queues_to}"
