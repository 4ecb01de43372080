"""What the oracles read: the events of all nodes and clients as lines in one order, and what they say.

An oracle is a pure function over lines. It keeps what its promise is about and no more than `REMEMBERED_MAX` of it,
so it runs over a test of ten events and over a recorded day; what was forgotten can no longer be judged, and
nothing is ever invented for it.

Who is who in a line:

- A step of a node: `node` is the broker, `subject` the topic.
- An event of a client: `actor` is the client (`group@client` for a consumer), `subject` is `topic@broker`.
- A fault: `node` is whom it struck. The simulated world records it.
"""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass
from functools import lru_cache
from typing import Final, Generic, NamedTuple, TypeAlias, TypeVar

from refmq.trace.record import Outcome, Recorded
from refmq.verify.oracles.fields import Fields

REMEMBERED_MAX: Final = 1_000_000
"""Entries of one table of one oracle. The oldest is forgotten first."""

K = TypeVar("K")
V = TypeVar("V")


class Row(NamedTuple):
    """One event, flat: what a row of a table is."""

    node: str
    action: str
    outcome: int
    operation: int
    at_ns: int
    actor: str
    subject: str
    queue_id: int
    a: int
    b: int
    c: int
    d: int
    sequence: int = -1
    """Counts the events of a life of a node; -1 if not counted."""


class Line(Row, Fields):
    """A row whose numbers have names: `line.queue_offset` (see `refmq.verify.oracles.fields`)."""

    __slots__ = ()

    @property
    def queue(self) -> Queue:
        """The queue that the line is about, under the same name for nodes and clients."""
        return _queue_of(self.subject, self.node, self.queue_id)

    @property
    def topic(self) -> str:
        return self.queue[0]

    @property
    def group(self) -> str:
        """Of a consumer's event: its group. Of a node's event: the actor, which is the group."""
        return self.actor.partition("@")[0]


Queue: TypeAlias = tuple[str, str, int]
"""Topic, broker, queue id."""


@lru_cache(maxsize=4_096)
def _queue_of(subject: str, node: str, queue_id: int) -> Queue:
    """Oracles ask for it twenty times a line."""
    topic, at, broker = subject.rpartition("@")
    return (topic, broker, queue_id) if at else (subject, node, queue_id)


@dataclass(frozen=True, slots=True)
class Promises:
    """What the judged cluster has promised, and what may be taken for granted of the lines."""

    flush_sync: bool = True
    """An acknowledged message survives a power loss. Without it, only what `FlushLog` has covered does."""
    complete: bool = True
    """No event is missing. A trace that says that it dropped some is not complete."""
    settled: bool = True
    """The lines end with a quiet time in which everything that should happen in the end has happened."""
    clock_slack_ms: int = 0
    """An event may be this much later than what it tells of: on a real clock a step takes its time."""


@dataclass(frozen=True, slots=True)
class Finding:
    """A broken promise: its name, a sentence that anyone can understand, and the number of the line, or of whatever
    else was observed, that shows it."""

    invariant: str
    sentence: str
    line: int = -1
    """-1: no single one shows it."""

    def __str__(self) -> str:
        return f"{self.invariant}: {self.sentence}"


def line_of(node: str, recorded: Recorded) -> Line:
    """A recorded event as a line. The lives of one node (`broker-a#2`) are one node here."""
    event = recorded.event
    return Line(
        node.partition("#")[0],
        event.action,
        recorded.outcome,
        recorded.operation,
        recorded.at_ns,
        event.actor,
        event.subject,
        event.queue_id,
        event.a,
        event.b,
        event.c,
        event.d,
        recorded.sequence,
    )


class Remembered(OrderedDict[K, V], Generic[K, V]):
    """A dictionary that forgets its oldest entry when it has `REMEMBERED_MAX` of them."""

    def __setitem__(self, key: K, value: V) -> None:
        super().__setitem__(key, value)
        if len(self) > REMEMBERED_MAX:
            self.popitem(last=False)


class Poll(NamedTuple):
    """One pull that was answered: the stretch of the queue that it passed, and what it brought."""

    queue: Queue
    actor: str
    from_offset: int
    next_offset: int
    max_offset: int
    status: int
    messages: tuple[Line, ...]
    """The `consumed` lines of this pull, in their order."""


FOUND: Final = 0
"""Response code of a pull that brought messages."""


class Polls:
    """Puts the `consumed` lines of a pull together with its `ok` line."""

    def __init__(self) -> None:
        self._consumed: Remembered[tuple[str, int], list[Line]] = Remembered()

    def feed(self, line: Line) -> Poll | None:
        if line.action != "Pull":
            return None
        key = (line.actor, line.operation)
        if line.outcome == Outcome.CONSUMED:
            if key not in self._consumed:
                self._consumed[key] = []
            self._consumed[key].append(line)
        elif line.outcome == Outcome.OK:
            messages = tuple(self._consumed.pop(key, ()))
            passed = (line.from_offset, line.next_offset, line.max_offset)
            return Poll(line.queue, line.actor, *passed, line.status, messages)
        elif line.outcome in (Outcome.FAIL, Outcome.UNKNOWN):
            self._consumed.pop(key, None)
        return None


class Power:
    """What a power loss may take from an asynchronously flushed log: whatever `FlushLog` has not covered."""

    def __init__(self, promises: Promises) -> None:
        self._promises = promises
        self._flushed_to: dict[str, int] = {}
        self._losses: dict[str, tuple[int, int]] = {}
        self._begun: Remembered[tuple[str, int], int] = Remembered()

    def feed(self, number: int, line: Line) -> tuple[str, int] | None:
        """The broker, and the physical offset from which on its log is forgiven to be gone, if the line says so."""
        if self._promises.flush_sync:
            return None
        if line.outcome == Outcome.INVOKE:
            self._begun[line.actor, line.operation] = number
        elif line.action == "FlushLog" and line.outcome == Outcome.STEP:
            self._flushed_to[line.node] = max(line.flushed_to, self._flushed_to.get(line.node, 0))
        elif line.action == "PowerLoss":
            self._losses[line.node] = (number, self._flushed_to.get(line.node, 0))
            return line.node, self._losses[line.node][1]
        return None

    def is_gone(self, line: Line) -> bool:
        """Whether a client's line is news of a record that the last power loss took: it was under way meanwhile."""
        if line.queue[1] not in self._losses:
            return False
        lost_at, from_physical = self._losses[line.queue[1]]
        begun = self._begun.get((line.actor, line.operation), lost_at)
        return line.physical_offset >= from_physical and begun < lost_at


def named(queue: Queue) -> str:
    """A queue in words."""
    topic, broker, queue_id = queue
    return f"{topic}/{queue_id} at {broker}"


def placed(*places: tuple[Queue, int]) -> str:
    """Places of queues in words."""
    return " and ".join(f"offset {offset} of {named(queue)}" for queue, offset in places)
