"""The watchdog of a live cluster: digests of growing traces, and a line when sides differ that should not any more.

While a cluster runs, sides differ all the time: a message is appended and not yet dispatched, sent and not yet
consumed. So a range of places is judged when it has been left alone for a while. What one side may have more of than
another, as a broker that served a consumer which died, is no alarm; what it cannot have is one.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

from refmq.verify.spark.digest import Role

PATIENCE_S: Final = 15.0
"""How long a range must be left alone: dispatch, answers and the writing of traces take a second or two."""
RANGES_MAX: Final = 500_000
"""Ranges that are remembered. The oldest is forgotten first."""
MASK: Final = 0xFFFF_FFFF_FFFF_FFFF

Sums = tuple[int, int, int, int, int]
"""Count, and the four sums of a cell."""
NOTHING: Final[Sums] = (0, 0, 0, 0, 0)


@dataclass(frozen=True, slots=True)
class Rule:
    """Two sides of a range. `right` may lag behind `left` for ever if `may_lag`."""

    left: Role
    right: Role
    sums: tuple[int, ...]
    """Which of `Sums` must be equal where the counts are."""
    may_lag: bool
    sentence: str


RULES: Final = (
    Rule(Role.APPENDED, Role.DISPATCHED, (1, 3, 4), False, "what was appended is not what was dispatched"),
    Rule(Role.ACKED, Role.SENT, (2, 3), True, "producers were told of other messages than were acknowledged"),
    Rule(Role.SERVED, Role.CONSUMED, (2, 3, 4), True, "consumers got other messages than were served"),
)


@dataclass(slots=True)
class _Range:
    cells: dict[tuple[int, int], Sums] = field(default_factory=dict)
    """By role and group."""
    touched_s: float = 0.0
    said: set[str] = field(default_factory=set)


@dataclass(frozen=True, slots=True)
class Alarm:
    """Sides of a range differ."""

    queue: int
    range: int
    sentence: str

    def in_words(self, names: dict[int, str]) -> str:
        queue = names.get(self.queue, f"queue {self.queue & MASK:#x}")
        return f"{queue}, offsets {self.range << 10} to {(self.range + 1 << 10) - 1}: {self.sentence}"


@dataclass(slots=True)
class Watch:
    """What was seen of each range."""

    patience_s: float = PATIENCE_S
    events: int = 0
    _ranges: dict[tuple[int, int], _Range] = field(default_factory=dict)
    _roles: set[int] = field(default_factory=set)
    """Those that were seen anywhere."""

    def feed(self, queue: int, place: int, role: int, group: int, sums: Sums, now_s: float) -> None:
        """Adds a cell."""
        known = self._ranges.pop((queue, place), None) or _Range()
        self._ranges[queue, place] = known  # the last one again
        before = known.cells.get((role, group), NOTHING)
        known.cells[role, group] = tuple((one + other) & MASK for one, other in zip(before, sums, strict=True))  # type: ignore[assignment]  # five each
        known.touched_s = now_s
        self.events += sums[0]
        self._roles.add(role)
        if len(self._ranges) > RANGES_MAX:
            del self._ranges[next(iter(self._ranges))]

    def alarms(self, now_s: float) -> list[Alarm]:
        """What is wrong in ranges that have been left alone, once."""
        found = []
        for (queue, place), known in self._ranges.items():
            if now_s - known.touched_s < self.patience_s:
                break  # they are in the order in which they were touched
            for sentence in self._wrong(known):
                if sentence not in known.said:
                    known.said.add(sentence)
                    found.append(Alarm(queue, place, sentence))
        return found

    def _wrong(self, known: _Range) -> list[str]:
        found = []
        for rule in RULES:
            left, right = (_total(known, role) for role in (rule.left, rule.right))
            if not left[0] and rule.left not in self._roles:
                continue  # nobody records that side
            lags = right[0] < left[0]
            differs = right[0] == left[0] and any(left[at] != right[at] for at in rule.sums)
            if right[0] and (right[0] > left[0] or differs or (lags and not rule.may_lag)):
                found.append(rule.sentence)
        appended = _total(known, Role.APPENDED)
        for (role, group), sums in known.cells.items():
            if role == Role.CONSUMED and sums[0] == appended[0] and sums[2] != appended[2]:
                found.append(f"group {group & MASK:#x} consumed other messages than were appended")
        return found


def _total(known: _Range, role: Role) -> Sums:
    cells = [sums for (each, _), sums in known.cells.items() if each == role]
    return tuple(sum(column) & MASK for column in zip(*cells, strict=True)) if cells else NOTHING
