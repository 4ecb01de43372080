"""What a judgement says: for every promise whether it was kept, and what shows it where it was not.

Whoever judges (the oracles in one process, or Spark) hands over findings, gaps and what the trace consists of; what
follows from them is decided here, once:

| status     | when                                                                                            |
|------------|-------------------------------------------------------------------------------------------------|
| broken     | there is a finding that no missing event explains                                               |
| unknown    | there are findings, and each may come from events that are missing; or all events would be needed |
| not judged | the trace does not have what the promise speaks of: nobody recorded it, or it was not asked for  |
| kept       | otherwise                                                                                       |
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Final

from refmq.model.vocabulary import ANOMALIES, CLIENT_FIELDS, PROTOCOLS
from refmq.trace.record import Outcome
from refmq.verify.oracles import NEED_INVOKES, ORACLES, Finding, Line, Promises
from refmq.verify.plain import sentence_of
from refmq.verify.recordings import Gap
from refmq.verify.words import in_words

WITNESSED_MAX: Final = 20
"""Findings of one promise that are told with their rows; of the others there is the number."""
FINDINGS_MAX: Final = 1000
"""Findings of one promise that are kept."""

SENDS: Final = ("Send", "SendBatch", "SendHalf", "SendDelayed")
NEED_ALL: Final = frozenset({"SidesAgree", "WellFormed", "NodeCoherent"})
"""They hold of a trace that is complete, and say nothing about another."""
NEED_SYNC: Final = frozenset({"DurableAck", "NeverServeUnflushed"})
"""They speak of brokers that flush before they answer."""
NEED_SENDS: Final = frozenset({"NoInvention"})
"""They need to know of everything that was sent."""
NEED_LIVES: Final = frozenset({"AnsweredWhenCalm", "HeldPullWakes", "RouteKnown", "MembersKnown", "MembersTold"})
"""They speak of what nothing disturbed."""
ASKED_FOR: Final = ("Heartbeat", "Leave", "CommitOffset", "LockQueue")
"""Steps that a broker takes only because a client asks for them."""
NEED_CLIENTS_TO_KNOW: Final = frozenset({"AckedSurvives", "SkippedPoll", "NonmonotonicPoll", "FilteredPull"})
"""A missing event of a client alone can make these look broken."""

MEANINGS: Final[Mapping[str, str]] = {
    invariant.name: invariant.meaning
    for invariants in (*(protocol.invariants for protocol in PROTOCOLS), ANOMALIES)
    for invariant in reversed(invariants)
}


class Status(StrEnum):
    """What became of a promise."""

    KEPT = "kept"
    BROKEN = "broken"
    UNKNOWN = "unknown"
    NOT_JUDGED = "not judged"


@dataclass(frozen=True, slots=True)
class Shown:
    """A finding with what shows it: the node and time of its line, and the lines around it in words."""

    invariant: str
    sentence: str
    node: str = ""
    broker: str = ""
    """The broker that the line speaks of."""
    at_ns: int = 0
    sequence: int = -1
    witness: tuple[str, ...] = ()
    plain: tuple[str, ...] = ()
    """The witness in sentences; empty ones for what has no words."""
    doubt: str = ""
    """The gap that may explain it."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """What became of one promise."""

    invariant: str
    status: Status
    reason: str = ""
    """Why it was not judged, or is unknown."""
    found: int = 0
    shown: tuple[Shown, ...] = ()
    how: str = ""
    """By what it was judged: a digest, a screen, the oracle itself."""

    @property
    def meaning(self) -> str:
        return MEANINGS.get(self.invariant, "")


@dataclass(frozen=True, slots=True)
class Census:
    """What a trace consists of: events by node, action and outcome."""

    counts: Mapping[tuple[str, str, int], int]
    first_ns: int = 0
    last_ns: int = 0

    @property
    def total(self) -> int:
        return sum(self.counts.values())

    def has(self, actions: Iterable[str], outcomes: Collection[int]) -> bool:
        """Whether there is an event of one of these actions with one of these outcomes."""
        wanted = set(actions)
        return any(action in wanted and outcome in outcomes for _, action, outcome in self.counts)

    def actions(self) -> set[str]:
        return {action for _, action, _ in self.counts}

    @property
    def has_requests(self) -> bool:
        """Whether clients noted down all that they asked for, and not only what came of it, or what became of messages:
        a broker did nothing for them that they did not note."""
        applications = {"Produce", "Subscribe", "Listen"}
        unasked = [
            action
            for action in ASKED_FOR
            if self.has((action,), (Outcome.STEP,)) and not self.has((action,), (Outcome.INVOKE,))
        ]
        return not unasked and self.has(set(CLIENT_FIELDS) - applications, (Outcome.INVOKE,))

    def count(self, name: str) -> int:
        """Events with the name of one action."""
        return sum(number for (_, action, _), number in self.counts.items() if action == name)


@dataclass(slots=True)
class Counting:
    """Takes a census of lines."""

    counts: Counter[tuple[str, str, int]] = field(default_factory=Counter)
    first_ns: int = 0
    last_ns: int = 0

    def feed(self, line: Line) -> None:
        self.counts[line.node, line.action, int(line.outcome)] += 1
        self.first_ns = min(self.first_ns or line.at_ns, line.at_ns)
        self.last_ns = max(self.last_ns, line.at_ns)

    def census(self) -> Census:
        return Census(self.counts, self.first_ns, self.last_ns)


@dataclass(frozen=True, slots=True)
class Found:
    """What a judge found of one promise: how often, and the first ones."""

    count: int
    shown: tuple[Shown, ...]


@dataclass(frozen=True, slots=True)
class Judgement:
    """The whole: one verdict for each promise, and what it rests on."""

    engine: str
    census: Census
    promises: Promises
    verdicts: tuple[Verdict, ...]
    gaps: tuple[Gap, ...] = ()
    seconds: float = 0.0

    @property
    def broken(self) -> list[Verdict]:
        return [verdict for verdict in self.verdicts if verdict.status is Status.BROKEN]

    @property
    def doubtful(self) -> list[Verdict]:
        return [verdict for verdict in self.verdicts if verdict.status is Status.UNKNOWN]


def why_not_judged(invariant: str, census: Census, promises: Promises) -> str:
    """Why a promise cannot be judged in a trace; empty if it can."""
    if invariant in NEED_INVOKES and not census.has_requests:
        return "no client recorded all that it asked for"
    if invariant in NEED_LIVES and not census.has(("StartStore", "FinishRecovery", "AppendMessage"), (Outcome.STEP,)):
        return "no broker recorded its life, and so what disturbed it"
    if invariant in NEED_SENDS and not census.has(SENDS, (Outcome.INVOKE,)):
        return "no producer recorded what it sent"
    if invariant in NEED_SYNC and not promises.flush_sync:
        return "it is about brokers that flush before they answer"
    return ""


def doubt_of(shown: Shown, gaps: Sequence[Gap]) -> str:
    """The gap that may explain a finding: one of a node that its line speaks of, or of any client where a client's
    missing event is enough."""
    for gap in gaps:
        if gap.node in (shown.node, shown.broker, "?"):
            return str(gap)
    if shown.invariant in NEED_SENDS | NEED_CLIENTS_TO_KNOW:
        return str(gaps[0]) if gaps else ""
    return ""


def conclude(
    engine: str,
    census: Census,
    promises: Promises,
    found: Mapping[str, Found],
    gaps: Sequence[Gap],
    *,
    how: Mapping[str, str] | None = None,
    seconds: float = 0.0,
) -> Judgement:
    """The verdicts that follow from what was found."""
    assert set(found) <= set(ORACLES), set(found) - set(ORACLES)
    verdicts = [
        _verdict(invariant, census, promises, found.get(invariant, Found(0, ())), gaps, (how or {}).get(invariant, ""))
        for invariant in ORACLES
    ]
    return Judgement(engine, census, promises, tuple(verdicts), tuple(gaps), seconds)


def _verdict(
    invariant: str, census: Census, promises: Promises, found: Found, gaps: Sequence[Gap], how: str
) -> Verdict:
    why_not = why_not_judged(invariant, census, promises)
    if why_not:
        return Verdict(invariant, Status.NOT_JUDGED, why_not)
    if invariant in NEED_ALL and gaps:
        return Verdict(invariant, Status.UNKNOWN, f"events are missing: {gaps[0]}", how=how)
    if not found.count:
        return Verdict(invariant, Status.KEPT, how=how)
    told = tuple(_doubted(shown, gaps) for shown in found.shown)
    sure = [shown for shown in told if not shown.doubt]
    if not sure and told:
        return Verdict(invariant, Status.UNKNOWN, f"events are missing: {told[0].doubt}", found.count, told, how)
    return Verdict(invariant, Status.BROKEN, "", found.count, told, how)


def _doubted(shown: Shown, gaps: Sequence[Gap]) -> Shown:
    doubt = doubt_of(shown, gaps)
    if not doubt:
        return shown
    return replace(shown, doubt=doubt)


def shown_of(finding: Finding, line: Line | None, witness: Sequence[Line] = ()) -> Shown:
    """A finding with the line that it names."""
    told, plain = tuple(map(in_words, witness)), tuple(map(sentence_of, witness))
    if line is None:
        return Shown(finding.invariant, finding.sentence, witness=told, plain=plain)
    return Shown(
        finding.invariant,
        finding.sentence,
        line.node,
        line.queue[1],
        line.at_ns,
        line.sequence,
        told,
        plain,
    )
