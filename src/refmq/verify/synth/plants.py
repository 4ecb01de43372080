"""Mistakes in a cluster of which everything is known: the kinds there are, and which promises each breaks.

A plant changes the events of one round of one broker and its clients. What it changes belongs together: a message
that is lost was not served either, so that only the promise about losing messages is broken and not the one about the
record. Events that are left out leave no gap in the numbering, unless that is the mistake.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

import numpy as np

from refmq.trace.record import Outcome
from refmq.verify.synth.cluster import BROKER, CONSUMER, PRODUCER, RECORD_BYTES, Cluster, Node, Rows

Edit = Callable[[Rows, Node], Rows]


@dataclass(frozen=True, slots=True)
class Kind:
    """One kind of mistake."""

    name: str
    sentence: str
    breaks: tuple[str, ...]
    """Promises that are broken by it; others may be as well."""
    edits: Mapping[str, Edit]
    """By the kind of node whose events it changes."""
    needs_sync: bool = False
    """Whether it is one only where brokers flush before they answer."""


@dataclass(frozen=True, slots=True)
class Plant:
    """A mistake and its place."""

    kind: str
    broker: int
    round: int


def find(rows: Rows, node: Node, action: str, outcome: int = 0, *, nth: int = 0) -> int:
    """The place of an event in a round; small rounds have fewer."""
    number = node.texts.index(action)
    places = np.flatnonzero((rows["action"] == number) & (rows["outcome"] == outcome))
    return int(places[nth % len(places)])


def changed(action: str, outcome: int, nth: int = 0, **changes: int) -> Edit:
    """Adds to fields of one event."""

    def edit(rows: Rows, node: Node) -> Rows:
        rows = rows.copy()
        at = find(rows, node, action, outcome, nth=nth)
        for name, change in changes.items():
            rows[name][at] = int(rows[name][at]) + change
        return rows

    return edit


def left_out(action: str, outcome: int, nth: int = 0) -> Edit:
    def edit(rows: Rows, node: Node) -> Rows:
        return np.delete(rows, find(rows, node, action, outcome, nth=nth))

    return edit


def doubled(action: str, outcome: int, nth: int = 0) -> Edit:
    def edit(rows: Rows, node: Node) -> Rows:
        at = find(rows, node, action, outcome, nth=nth)
        return np.insert(rows, at, rows[at])

    return edit


def exchanged(action: str, outcome: int, nth: int = 0) -> Edit:
    """Two events of one kind change places, and keep their times."""

    def edit(rows: Rows, node: Node) -> Rows:
        rows = rows.copy()
        one, other = (find(rows, node, action, outcome, nth=number) for number in (nth, nth + 1))
        times = rows["at_ns"].copy()
        rows[[one, other]] = rows[[other, one]]
        rows["at_ns"] = times
        return rows

    return edit


def moved_before(action: str, other: str, nth: int = 0) -> Edit:
    """A step is taken too early."""

    def edit(rows: Rows, node: Node) -> Rows:
        at, to = find(rows, node, action, nth=nth), find(rows, node, other)
        row = rows[at : at + 1].copy()
        row["at_ns"] = rows["at_ns"][to]
        return np.insert(np.delete(rows, at), to, row)

    return edit


def skipped_number(rows: Rows, node: Node) -> Rows:
    rows = rows.copy()
    rows["sequence"][len(rows) // 2 :] += 1
    return rows


def refused(rows: Rows, node: Node) -> Rows:
    """A producer is told that its message is not stored, and it is."""
    rows = rows.copy()
    at = find(rows, node, "Send", Outcome.OK)
    rows["outcome"][at] = Outcome.FAIL
    rows["a"][at] = rows["b"][at] = -1
    rows["d"][at] = 2
    return rows


KINDS: Final = (
    Kind(
        "lost message",
        "a message that was acknowledged is passed by a pull",
        ("AckedSurvives",),
        {BROKER: left_out("ServeMessage", 0, 1), CONSUMER: left_out("Pull", Outcome.CONSUMED, 1)},
    ),
    Kind(
        "invented message",
        "a message that nobody sent is served and consumed",
        ("NoInvention", "InconsistentOffset"),
        {BROKER: changed("ServeMessage", 0, 2, c=1), CONSUMER: changed("Pull", Outcome.CONSUMED, 2, c=1)},
    ),
    Kind(
        "moved message",
        "a message is served from another place of the log",
        ("InconsistentOffset",),
        {
            BROKER: changed("ServeMessage", 0, 3, a=-RECORD_BYTES),
            CONSUMER: changed("Pull", Outcome.CONSUMED, 3, a=-RECORD_BYTES),
        },
    ),
    Kind(
        "another broker's message",
        "a consumer says that it got a message which no broker served",
        ("SidesAgree",),
        {CONSUMER: changed("Pull", Outcome.CONSUMED, 0, d=1)},
    ),
    Kind(
        "duplicate in a pull",
        "one message comes twice in one pull",
        ("NonmonotonicPoll",),
        {BROKER: doubled("ServeMessage", 0, 0), CONSUMER: doubled("Pull", Outcome.CONSUMED, 0)},
    ),
    Kind(
        "pull leads back",
        "a pull goes on before its beginning",
        ("NonmonotonicPoll",),
        {CONSUMER: changed("Pull", Outcome.OK, 1, b=-1_000)},
    ),
    Kind(
        "dispatch out of order",
        "dispatch does not follow the log",
        ("NodeCoherent",),
        {BROKER: exchanged("DispatchMessage", 0, 4)},
    ),
    Kind(
        "hole in a queue",
        "a record never gets its unit",
        ("QueueMatchesLog",),
        {BROKER: left_out("DispatchMessage", 0, 5)},
    ),
    Kind(
        "wrong unit",
        "a unit has another size than its record",
        ("QueueMatchesLog",),
        {BROKER: changed("DispatchMessage", 0, 6, d=1)},
    ),
    Kind(
        "overlapping records",
        "a record is appended over the end of another",
        ("QueueMatchesLog",),
        {BROKER: changed("AppendMessage", 0, 7, a=-1)},
    ),
    Kind(
        "early acknowledgement",
        "a message is acknowledged before it is durable",
        ("DurableAck",),
        {BROKER: moved_before("AckPut", "FlushLog", 3)},
        needs_sync=True,
    ),
    Kind(
        "short flush",
        "the log is not flushed to its end, and its last message is served",
        ("NeverServeUnflushed", "DurableAck"),
        {BROKER: changed("FlushLog", 0, 0, a=-RECORD_BYTES)},
        needs_sync=True,
    ),
    Kind(
        "untrue answer",
        "a producer is told of a place that no broker acknowledged",
        ("SidesAgree",),
        {PRODUCER: changed("Send", Outcome.OK, 8, b=10_000_000)},
    ),
    Kind(
        "refused and delivered",
        "a message that was refused is consumed",
        ("AbortedRead",),
        {PRODUCER: refused},
    ),
    Kind(
        "commit ahead",
        "a group commits what it has not consumed",
        ("CommittedOffsetNeverAhead",),
        {
            BROKER: changed("CommitOffset", 0, 2, b=5_000_000),
            CONSUMER: lambda rows, node: changed("CommitOffset", Outcome.OK, 2, b=5_000_000)(
                changed("CommitOffset", Outcome.INVOKE, 2, b=5_000_000)(rows, node), node
            ),
        },
    ),
    Kind(
        "commit goes back",
        "a broker stores a smaller offset that nobody asked for",
        ("CommittedOffsetMonotone",),
        {BROKER: changed("CommitOffset", 0, 3, b=-1_000_000)},
    ),
    Kind(
        "number left out",
        "an event is missing and no drop says so",
        ("WellFormed",),
        {PRODUCER: skipped_number},
    ),
    Kind(
        "number without meaning",
        "a field holds something where there is nothing to say",
        ("WellFormed",),
        {BROKER: changed("FlushLog", 0, 0, c=1)},
    ),
)
"""What can be planted in a round."""
KIND: Final[Mapping[str, Kind]] = {kind.name: kind for kind in KINDS}


def planted(cluster: Cluster, rounds: int, count: int, *, flush_sync: bool = True) -> tuple[Plant, ...]:
    """`count` plants of each kind, spread over brokers and rounds; each in a round of its own if there are enough."""
    kinds = [kind for kind in KINDS if flush_sync or not kind.needs_sync]
    total = len(kinds) * count
    chosen = np.random.default_rng(cluster.seed).permutation(max(cluster.brokers * max(rounds - 2, 1), 1))
    plants = []
    for number in range(total):
        place = int(chosen[number % len(chosen)])
        broker, at = place % cluster.brokers, place // cluster.brokers + min(1, rounds - 1)
        plants.append(Plant(kinds[number % len(kinds)].name, broker, at))
    return tuple(plants)
