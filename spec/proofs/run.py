"""Judges all claims and their twins, and prints what came of it.

A claim is as it should be when it is proved; a twin when it is refuted, by a model that the table shows.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from spec.proofs.claim import Claim, Judgement, Verdict, judge


@dataclass(frozen=True, slots=True)
class Row:
    """A claim or one of its twins, what it should be, and what it is."""

    claim: str
    says: str
    expected: Verdict
    judgement: Judgement

    @property
    def is_as_expected(self) -> bool:
        return self.judgement.verdict is self.expected

    def as_json(self) -> str:
        judgement = self.judgement
        values = {
            "claim": self.claim,
            "says": self.says,
            "expected": self.expected.value,
            "found": judgement.verdict.value,
            "obligation": judgement.obligation,
            "model": judgement.model,
            "seconds": round(judgement.seconds, 3),
        }
        return json.dumps(values)

    def as_text(self) -> str:
        judgement = self.judgement
        mark = " " if self.is_as_expected else "!"
        what = self.says if self.expected is Verdict.PROVED else f"  twin: {self.says}"
        lines = [f"{mark} {self.claim:16} {judgement.verdict.value:10} {judgement.seconds:6.2f} s  {what}"]
        if judgement.obligation:
            lines.append(f"{'':41}against: {judgement.obligation}")
        if judgement.model:
            lines.append(f"{'':41}model: {judgement.model}")
        return "\n".join(lines)


def rows(claims: Iterable[Claim]) -> Iterator[Row]:
    """Judges claim after claim, each followed by its twins."""
    for claim in claims:
        yield Row(claim.name, claim.says, Verdict.PROVED, judge(claim.obligations(claim.rule)))
        for twin in claim.twins:
            yield Row(claim.name, twin.mistake, Verdict.REFUTED, judge(claim.obligations(twin.rule)))
