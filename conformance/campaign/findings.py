"""What a campaign found: counted by class, and the first of each class saved, as small as it gets.

A class is a promise and the sentence without its numbers and names: two histories that break the same promise in the
same way are one thing to look at.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from conformance.base import replay_line, save
from conformance.campaign.kinds import live, make
from conformance.campaign.workers import DIED, Job
from conformance.store.shrink import shrink
from refmq.verify.oracles.base import Finding

SAVED_OF_A_CLASS: Final = 3
"""Seeds of one class that are kept; only the first is shrunk."""
SHRINK_SECONDS: Final = 60.0
_CHANGING: Final = re.compile(r"0x[0-9a-f]+|[gh]@\S+|client-\d\S*|broker-[a-z]\S*|\[.*\]|\(.*\)|-?\d+")


def class_of(violation: Finding) -> str:
    """The promise and the sentence, without what differs from seed to seed."""
    return f"{violation.invariant}: {_CHANGING.sub('#', violation.sentence)}"


@dataclass(slots=True)
class Class:
    """One way to break a promise."""

    text: str
    count: int = 0
    seeds: list[int] = field(default_factory=list)
    saved: Path | None = None


@dataclass(slots=True)
class Findings:
    """All classes so far."""

    job: Job
    folder: Path
    say: Callable[[str], None]
    clock_s: Callable[[], float]
    classes: dict[str, Class] = field(default_factory=dict)

    def add(self, seed: int, violations: tuple[Finding, ...]) -> None:
        """Counts a history that broke something; its first violation decides the class."""
        assert violations
        text = class_of(violations[0])
        found = self.classes.setdefault(text, Class(text))
        found.count += 1
        if len(found.seeds) < SAVED_OF_A_CLASS:
            found.seeds.append(seed)
        if found.saved is None:
            self.say(f"seed {seed} breaks {violations[0]}")
            found.saved = self._save(seed, violations)
            self.say(f"  {replay_line(found.saved)}")

    def _save(self, seed: int, violations: tuple[Finding, ...]) -> Path:
        history = make(self.job.kind, seed, self.job.steps)
        if violations[0].invariant != DIED:  # which would take this process down as well
            history, violations = self._shrunk(history, violations)
        return save(self.job.kind, history.to_json(), violations, self.folder)

    def _shrunk(self, history: Any, violations: tuple[Finding, ...]) -> tuple[Any, tuple[Finding, ...]]:
        invariant, until_s = violations[0].invariant, self.clock_s() + SHRINK_SECONDS

        def broken(candidate: Any) -> tuple[Finding, ...]:
            lived = live(self.job.kind, candidate, self.job.engine)
            return tuple(found for found in lived.violations if found.invariant == invariant)

        def is_broken(candidate: Any) -> bool:
            return self.clock_s() < until_s and bool(broken(candidate))

        small = shrink(history, is_broken)
        return small, broken(small) or violations

    def table(self) -> list[str]:
        """A line for each class, the most frequent first."""
        ordered = sorted(self.classes.values(), key=lambda each: -each.count)
        return [f"{each.count:6} x {each.text}\n         seeds {each.seeds}, saved as {each.saved}" for each in ordered]

    def counts(self) -> Counter[str]:
        return Counter({each.text: each.count for each in self.classes.values()})
