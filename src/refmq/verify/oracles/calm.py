"""Promises about promptness: what nothing disturbs is answered, and at once where that is promised.

A cluster that is disturbed may be slow, and its answers may be lost, so these oracles judge only operations during
which nothing happened to the cluster. Faults are events; `Quiet` keeps account of them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from refmq.trace.record import Outcome
from refmq.verify.oracles.base import Finding, Line, Promises, Queue, Remembered

WAKE_NS_MAX: Final = 500_000_000
"""How long an answer may take on an undisturbed cluster. Brokers look after held pulls every five seconds anyway, so a
wake-up that is lost costs seconds."""

START_NS: Final = 2_000_000_000
"""What a broker may take from the end of its recovery until it serves."""

LASTING: Final = frozenset(
    {"Cut", "HalfOpen", "LoseAnswer", "LoseRequest", "FailFlush", "CrashPlanned", "ConsumerPause", "JumpClock"}
)
"""Faults that strike later, or for a while: until everything is repaired (`Settled`) nothing is expected any more."""

ENDS: Final = frozenset({"ProcessCrash", "PowerLoss", "RestartBroker", "StopStore"})
"""A broker goes down; it is expected to serve again when it has recovered."""


SENDS: Final = ("Send", "SendBatch", "SendDelayed", "SendHalf")


class Quiet:
    """Whether anything disturbs the cluster."""

    def __init__(self) -> None:
        self.last_fault = -1
        """The number of the line of the last fault."""
        self._is_broken = False
        self._down: set[str] = set()
        self._from_ns: dict[str, int] = {}

    def feed(self, number: int, line: Line) -> None:
        if line.outcome != Outcome.STEP:
            return
        if line.action in LASTING:
            self._is_broken = True
            self.last_fault = number
        elif line.action in ENDS:
            # Who loses its power says good-bye to nobody: the other ends of its connections find out by trying.
            self._is_broken = self._is_broken or line.action == "PowerLoss"
            self.last_fault = number
            self._down.add(line.node)
        elif line.action in ("Disconnect", "Settled"):
            self.last_fault = number
            self._is_broken = self._is_broken and line.action != "Settled"
        elif line.action == "FinishRecovery":
            self._down.discard(line.node)
            self._from_ns[line.node] = line.at_ns + START_NS

    def expects(self, line: Line) -> bool:
        """Whether an operation that begins with this line should succeed if nothing comes in between."""
        broker = line.queue[1]
        return not self._is_broken and broker not in self._down and line.at_ns >= self._from_ns.get(broker, 0)


def answered_when_calm(lines: Iterable[Line], promises: Promises) -> Iterator[Finding]:
    """AnsweredWhenCalm: an operation that nothing disturbs has an outcome, and it is not that nobody knows."""
    quiet = Quiet()
    begun: Remembered[tuple[str, str, int], tuple[int, Line]] = Remembered()
    for number, line in enumerate(lines):
        quiet.feed(number, line)
        key = (line.actor, line.action, line.operation)
        if line.outcome == Outcome.INVOKE:
            if quiet.expects(line) and line.action not in ("EndTransaction", "CheckReply"):
                begun[key] = (number, line)
        elif line.outcome in (Outcome.OK, Outcome.FAIL, Outcome.UNKNOWN) and key in begun:
            since, _ = begun.pop(key)
            if since < quiet.last_fault:
                continue
            if line.outcome == Outcome.UNKNOWN:
                yield Finding("AnsweredWhenCalm", f"{_what(line)} has no outcome although nothing disturbed it", number)
            elif line.outcome == Outcome.OK and line.action in SENDS and line.d:
                yield Finding("AnsweredWhenCalm", f"{_what(line)} is stored with reserve, status {line.d}", number)
    if promises.settled:
        for since, line in begun.values():
            if since > quiet.last_fault:
                yield Finding("AnsweredWhenCalm", f"{_what(line)} was never answered", since)


def held_pull_wakes(lines: Iterable[Line], promises: Promises) -> Iterator[Finding]:
    """HeldPullWakes: a pull that waits for a message is answered as soon as the message is in its queue."""
    quiet = Quiet()
    waiting: dict[tuple[str, int], tuple[Queue, int]] = {}  # operation of a client -> queue and offset it waits for
    due: dict[tuple[str, int], tuple[int, int]] = {}  # operation -> line and time when its message was there
    since: dict[tuple[str, int], int] = {}
    for number, line in enumerate(lines):
        quiet.feed(number, line)
        key = (line.actor, line.operation)
        if line.action == "Pull" and line.outcome == Outcome.INVOKE:
            if quiet.expects(line):
                waiting[key], since[key] = (line.queue, line.a), number
        elif line.action == "Pull" and line.outcome != Outcome.CONSUMED:
            waiting.pop(key, None)
            _, due_ns = due.pop(key, (0, line.at_ns))
            if line.at_ns - due_ns > WAKE_NS_MAX and since.get(key, -1) > quiet.last_fault:
                late_ns = line.at_ns - due_ns
                sentence = f"{line.actor} waited at offset {line.a} of {line.subject}/{line.queue_id} for {late_ns} ns"
                yield Finding("HeldPullWakes", f"{sentence} after the message was there", number)
        elif line.action == "DispatchMessage" and line.outcome == Outcome.STEP:
            for key, wanted in waiting.items():
                if wanted == (line.queue, line.b):
                    due[key] = (number, line.at_ns)


def _what(line: Line) -> str:
    return f"{line.action} {line.operation} of {line.actor} on {line.subject}/{line.queue_id}"
