"""Promises about promptness: an undisturbed operation is answered, and immediately where that is promised.

A cluster that is disturbed may be slow, and its answers may be lost, so these oracles judge only operations during
which nothing happened to who takes part in them. Faults are events; `Quiet` keeps account of them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final

from refmq.trace.record import Outcome
from refmq.verify.oracles.base import Finding, Line, Promises, Queue, Remembered
from refmq.verify.oracles.partition import Partition, oracle

WAKE_NS_MAX: Final = 500_000_000
"""How long an answer may take on an undisturbed cluster. Brokers look after held pulls every five seconds anyway, so a
wake-up that is lost costs seconds."""

CONNECT_NS: Final = 100_000_000
"""What the ends of a connection that broke may take until both know and a new one is made."""

START_NS: Final = 300_000_000
"""What a broker may take from the end of its recovery until it serves."""

LASTING: Final = frozenset(
    {
        "Cut",
        "HalfOpen",
        "LoseAnswer",
        "LoseRequest",
        "SlowNetwork",
        "SlowReader",
        "FailFlush",
        "FullDisk",
        "CrashPlanned",
        "ConsumerPause",
        "JumpClock",
        "SlowDisk",
        "FlipBit",
    }
)
"""Faults that strike later, or for a while: until everything is repaired (`Settled`) nothing is expected any more."""

ENDS: Final = frozenset({"ProcessCrash", "PowerLoss", "RestartBroker", "StopBroker", "StopStore"})
"""A broker goes down; it is expected to serve again when it has recovered."""


SENDS: Final = ("Send", "SendBatch", "SendDelayed", "SendHalf")

REFUSALS: Final = {
    "Pull": (17,),
    "PullFiltered": (17, 24),
    "QueryOffset": (22,),
    "CommitOffset": (17,),
}
"""Codes with which a broker may refuse although all is well: no such topic, no subscription yet, no offset yet. The
commit of a pull is refused with it."""


NAMESERVER: Final = "namesrv"
"""What the names of nameservers begin with."""


class Quiet:
    """Whether anything disturbs a broker or a client. What happens to one broker does not excuse another."""

    def __init__(self) -> None:
        self._last: dict[str, int] = {}
        self._settled = -1
        self._broken: dict[str, set[str]] = {}
        self._down: set[str] = set()
        self._from_ns: dict[str, int] = {}

    def feed(self, number: int, line: Line) -> None:
        if line.outcome != Outcome.STEP:
            return
        if line.action in LASTING:
            self._broken.setdefault(line.node, set()).add(line.action)
            self._last[line.node] = number
        elif line.action in ENDS:
            # A node that loses power closes no connection: its peers find out by trying.
            lasting = self._broken.setdefault(line.node, set())
            lasting |= {line.action} & {"PowerLoss"}
            lasting -= {"CrashPlanned"}  # it has happened, or was forgotten with the life that it was planned for
            self._last[line.node] = number
            self._down.add(line.node)
        elif line.action == "Disconnect":
            self._last[line.node] = number
            # Who begins right after it may wait for a connection that was being made when it struck.
            self._from_ns[line.node] = max(self._from_ns.get(line.node, 0), line.at_ns + CONNECT_NS)
        elif line.action == "Settled":
            self._settled = number
            self._broken.clear()
        elif line.action == "FinishRecovery":
            self._down.discard(line.node)
            self._from_ns[line.node] = line.at_ns + START_NS

    def last_fault(self, *nodes: str) -> int:
        """The number of the line of the last fault that struck one of these nodes, or the repair of everything."""
        return max(self._settled, *[self._last.get(node, -1) for node in nodes])

    def last_fault_of_any(self, *nodes: str) -> int:
        """The same without the repair of everything; -1 when there was none."""
        return max((self._last.get(node, -1) for node in nodes), default=-1)

    def last_fault_of(self, line: Line) -> int:
        """... that struck a participant of the line's event."""
        if line.action == "QueryRoute":  # speaks of a broker, to a nameserver
            return self.last_fault(line.node, *[node for node in self._last if node.startswith(NAMESERVER)])
        return self.last_fault(line.node, line.queue[1])

    def is_broken(self, *nodes: str) -> bool:
        """Whether a fault lasts that struck one of these nodes."""
        return any(self._broken.get(node) for node in nodes)

    def expects(self, line: Line) -> bool:
        """Whether an operation that begins with this line should succeed if nothing comes in between."""
        broker = line.queue[1]
        if self.is_broken(line.node, broker) or broker in self._down:
            return False
        return line.at_ns >= max(self._from_ns.get(broker, 0), self._from_ns.get(line.node, 0))


PULL_NOT_FOUND: Final = 19
LOOK_NS: Final = 5_500_000_000
"""Brokers look every five seconds whether the time of a pull is up, or its queue has moved on."""


@oracle(Partition.NODE)
def answered_when_calm(lines: Iterable[Line], promises: Promises) -> Iterator[Finding]:
    """AnsweredWhenCalm: an undisturbed operation has an outcome, and the outcome is not `unknown`."""
    quiet = Quiet()
    begun: Remembered[tuple[str, str, int, Queue], tuple[int, Line]] = Remembered()
    decisions: dict[int, tuple[int, Line]] = {}
    for number, line in enumerate(lines):
        quiet.feed(number, line)
        key = (line.actor, line.action, line.operation, line.queue)
        if line.outcome == Outcome.INVOKE:
            if line.action in ("EndTransaction", "CheckReply"):
                if quiet.expects(line) and line.decision:
                    decisions[line.message] = (number, line)
            elif quiet.expects(line):
                begun[key] = (number, line)
        elif line.outcome in (Outcome.OK, Outcome.FAIL, Outcome.UNKNOWN) and key in begun:
            since, _ = begun.pop(key)
            if since < quiet.last_fault_of(line):
                continue
            if line.outcome == Outcome.UNKNOWN:
                yield Finding("AnsweredWhenCalm", f"{_what(line)} has no outcome although nothing disturbed it", number)
            elif line.outcome == Outcome.FAIL and not _may_be_refused(line):
                yield Finding("AnsweredWhenCalm", f"{_what(line)} fails although nothing disturbed it", number)
            elif line.outcome == Outcome.OK and line.action in SENDS and line.status:
                yield Finding("AnsweredWhenCalm", f"{_what(line)} is stored with reserve, status {line.status}", number)
        for late in _late_decisions(decisions, line, quiet):
            yield Finding("AnsweredWhenCalm", f"{_what(late)} was not taken by the broker", number)
    if promises.settled:
        for since, line in begun.values():
            if since > quiet.last_fault_of(line):
                yield Finding("AnsweredWhenCalm", f"{_what(line)} was never answered", since)


def _may_be_refused(line: Line) -> bool:
    return line.action in REFUSALS and line.status in REFUSALS[line.action]


def _late_decisions(decisions: dict[int, tuple[int, Line]], line: Line, quiet: Quiet) -> list[Line]:
    """Decisions of producers that a broker should have taken by now. They are said one-way: a step is their answer."""
    if line.action == "EndTransaction" and line.outcome == Outcome.STEP:
        decisions.pop(line.message, None)
    late = []
    for message, (since, said) in list(decisions.items()):
        is_over = line.at_ns - said.at_ns > WAKE_NS_MAX
        if is_over or since < quiet.last_fault_of(said):
            del decisions[message]
            late += [said] if since > quiet.last_fault_of(said) else []
    return late


class _Classes:
    """The classes of the messages in a queue: by them filters choose. Told by producers and by what brokers append."""

    def __init__(self) -> None:
        self._by_message: Remembered[int, int] = Remembered()
        self._by_place: Remembered[tuple[Queue, int], int] = Remembered()

    def feed(self, line: Line) -> None:
        if line.action in SENDS and line.outcome == Outcome.INVOKE:
            self._by_message[line.message] = line.message_class
        elif line.action == "AppendMessage" and line.outcome == Outcome.STEP and line.message in self._by_message:
            self._by_place[line.queue, line.queue_offset] = self._by_message[line.message]

    def is_wanted(self, queue: Queue, offset: int, mask: int | None) -> bool:
        """Whether a filter certainly wants the message at a place; without a filter everything is wanted."""
        if mask is None:
            return True
        found = self._by_place.get((queue, offset))
        return found is not None and bool(mask >> found & 1)


@dataclass(slots=True)
class _Waiting:
    """A pull that may be held."""

    line: int
    invoke: Line
    mask: int | None
    """The classes that it wants; None: all."""
    due_ns: int | None = None
    """When its message was there."""
    moved_ns: int | None = None
    """When its queue moved on with a message it does not want: it learns how far it may skip."""


@oracle(Partition.NODE)
def held_pull_wakes(lines: Iterable[Line], promises: Promises) -> Iterator[Finding]:
    """HeldPullWakes: a pull that waits for a message is answered as soon as the message is in its queue, and soon when
    others are; one for which none comes waits as long as it may, and not much longer. One whose broker is stopped in
    good order is answered before that."""
    quiet, classes, stops = Quiet(), _Classes(), _Stops()
    waiting: dict[tuple[str, int], _Waiting] = {}
    for number, line in enumerate(lines):
        quiet.feed(number, line)
        stops.feed(number, line)
        classes.feed(line)
        key = (line.actor, line.operation)
        if line.action in ("Pull", "PullFiltered") and line.outcome == Outcome.INVOKE:
            if quiet.expects(line):
                waiting[key] = _Waiting(number, line, line.wanted_classes if line.action == "PullFiltered" else None)
        elif line.action in ("Pull", "PullFiltered") and line.outcome != Outcome.CONSUMED:
            pull = waiting.pop(key, None)
            if pull is not None and pull.line > quiet.last_fault_of(line):
                yield from _judge_held(number, line, pull)
            elif pull is not None and line.outcome == Outcome.UNKNOWN and stops.only_stopped(line, pull):
                sentence = (
                    f"{line.actor} waited at {line.subject}/{line.queue_id}, and was not told that its broker stops"
                )
                yield Finding("HeldPullWakes", sentence, number)
        elif line.action == "DispatchMessage" and line.outcome == Outcome.STEP:
            for pull in waiting.values():
                if pull.invoke.queue != line.queue or line.queue_offset < pull.invoke.from_offset:
                    continue
                if pull.moved_ns is None:
                    pull.moved_ns = line.at_ns
                if pull.due_ns is None and classes.is_wanted(line.queue, line.queue_offset, pull.mask):
                    pull.due_ns = line.at_ns


class _Stops:
    """Which brokers were stopped in good order, and whom anything else struck."""

    def __init__(self) -> None:
        self._stopped: dict[str, tuple[int, int]] = {}
        self._struck: dict[str, int] = {}

    def feed(self, number: int, line: Line) -> None:
        if line.outcome != Outcome.STEP or line.actor != line.node:
            return
        if line.action in ("StopBroker", "RestartBroker"):
            self._stopped[line.node] = (number, line.at_ns)
        else:
            self._struck[line.node] = number

    def only_stopped(self, line: Line, pull: _Waiting) -> bool:
        """Whether a pull had begun to wait when its broker was stopped, and nothing else has happened since."""
        stopped, at_ns = self._stopped.get(line.queue[1], (-1, 0))
        struck = max(self._struck.get(node, -1) for node in (line.node, line.queue[1], "world"))
        return stopped > pull.line > struck and at_ns - pull.invoke.at_ns > WAKE_NS_MAX


def _judge_held(number: int, answer: Line, pull: _Waiting) -> Iterator[Finding]:
    where = f"{answer.actor} waited at offset {answer.from_offset} of {answer.subject}/{answer.queue_id}"
    took_ns, may_ns = answer.at_ns - pull.invoke.at_ns, pull.invoke.wait_ms * 1_000_000
    late_ns = answer.at_ns - (pull.due_ns if pull.due_ns is not None else answer.at_ns)
    if late_ns > WAKE_NS_MAX:
        yield Finding("HeldPullWakes", f"{where} for {late_ns / 1e9:.3g} s after the message was there", number)
    elif pull.moved_ns is not None and answer.at_ns - pull.moved_ns > LOOK_NS:
        yield Finding("HeldPullWakes", f"{where} long after its queue had moved on", number)
    elif took_ns > may_ns + LOOK_NS and may_ns:
        yield Finding("HeldPullWakes", f"{where} for {took_ns} ns, longer than it asked for", number)
    elif answer.status == PULL_NOT_FOUND and answer.outcome == Outcome.OK and took_ns < may_ns:
        yield Finding("HeldPullWakes", f"{where} for {took_ns} ns only and got nothing", number)


def _what(line: Line) -> str:
    return f"{line.action} {line.operation} of {line.actor} on {line.subject}/{line.queue_id}"
