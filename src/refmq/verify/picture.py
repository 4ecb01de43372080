"""What a report draws: events over time, how long requests took, who held which queue, how far consumers were behind.

All of it is small, whatever the size of the trace: at most `BINS_MAX` points of time.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final

from refmq.trace.record import Outcome
from refmq.verify.oracles import Line

BINS_MAX: Final = 500
LOANS_MAX: Final = 2_000
QUEUES_MAX: Final = 200
SECOND_NS: Final = 1_000_000_000

SERIES: Final[Mapping[tuple[str, int], str]] = {
    ("AppendMessage", Outcome.STEP): "stored",
    ("AckPut", Outcome.STEP): "acknowledged",
    ("ServeMessage", Outcome.STEP): "handed out",
    ("Pull", Outcome.CONSUMED): "received",
    ("PullFiltered", Outcome.CONSUMED): "received",
    ("Listen", Outcome.INVOKE): "given to listeners",
    ("CommitOffset", Outcome.STEP): "offsets committed",
    ("Send", Outcome.FAIL): "refused",
    ("Send", Outcome.UNKNOWN): "unanswered",
}
"""Action and outcome -> the line of a chart."""
REQUESTS: Final = ("Send", "Pull", "CommitOffset")


@dataclass(frozen=True, slots=True)
class Loan:
    """A broker lent a queue to a member, or took it back."""

    queue: str
    member: str
    at_ns: int
    granted: bool


@dataclass(frozen=True, slots=True)
class Lag:
    """How far a group was behind in a queue at the end."""

    group: str
    queue: str
    consumed_to: int
    end: int


@dataclass(slots=True)
class Picture:
    """What there is to draw."""

    seconds: Counter[tuple[int, str]] = field(default_factory=Counter)
    """Second and series -> events."""
    latencies: Counter[tuple[str, int]] = field(default_factory=Counter)
    """Request and power of two of nanoseconds -> requests."""
    loans: list[Loan] = field(default_factory=list)
    lags: list[Lag] = field(default_factory=list)
    consumed: Counter[str] = field(default_factory=Counter)
    """Group -> messages that reached it."""
    again: Counter[str] = field(default_factory=Counter)
    """... that had reached it before."""

    @property
    def first_second(self) -> int:
        """When the first of what is drawn happened."""
        return min((second for second, _ in self.seconds), default=0)

    def binned(self) -> tuple[int, dict[str, list[int]]]:
        """The width of a bin in seconds, and the events of each series bin by bin."""
        if not self.seconds:
            return 1, {}
        first, last = min(second for second, _ in self.seconds), max(second for second, _ in self.seconds)
        width = -(-(last - first + 1) // BINS_MAX)
        bins = (last - first) // width + 1
        series: dict[str, list[int]] = {name: [0] * bins for name in dict.fromkeys(SERIES.values())}
        for (second, name), count in self.seconds.items():
            series[name][(second - first) // width] += count
        return width, {name: counts for name, counts in series.items() if any(counts)}


def picture_of_lines(lines: Iterable[Line]) -> Picture:
    """The picture of a trace that is in memory."""
    picture = Picture()
    begun: dict[tuple[str, str, int], int] = {}
    consumed: dict[tuple[str, tuple[str, str, int]], set[int]] = defaultdict(set)
    ends: dict[tuple[str, str, int], int] = {}
    for line in lines:
        name = SERIES.get((line.action, int(line.outcome)))
        if name is not None:
            picture.seconds[line.at_ns // SECOND_NS, name] += 1
        key = (line.action, line.actor, line.operation)
        if line.action in REQUESTS and line.outcome == Outcome.INVOKE:
            begun[key] = line.at_ns
        elif line.action in REQUESTS and line.outcome == Outcome.OK and key in begun:
            took_ns = max(line.at_ns - begun.pop(key), 1)
            picture.latencies[line.action, took_ns.bit_length() - 1] += 1
        if line.action == "Pull" and line.outcome == Outcome.OK:
            ends[line.queue] = line.c
        elif line.outcome == Outcome.CONSUMED:
            known = consumed[line.group, line.queue]
            picture.consumed[line.group] += 1
            picture.again[line.group] += line.b in known
            known.add(line.b)
        elif line.action in ("LockQueue", "UnlockQueue") and line.outcome == Outcome.STEP:
            granted = line.action == "LockQueue" and bool(line.a)
            picture.loans.append(Loan(queue_name(line.queue), line.actor, line.at_ns, granted))
    for (group, queue), offsets in list(consumed.items())[:QUEUES_MAX]:
        picture.lags.append(Lag(group, queue_name(queue), max(offsets) + 1, ends.get(queue, max(offsets) + 1)))
    del picture.loans[LOANS_MAX:]
    return picture


def queue_name(queue: tuple[str, str, int]) -> str:
    return f"{queue[0]}/{queue[2]} at {queue[1]}"
