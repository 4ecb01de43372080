"""Promises about transactions: nothing undecided or rolled back is seen, everything is decided, once."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from refmq.protocol.names import TRANS_OP_HALF_TOPIC
from refmq.trace.record import Outcome
from refmq.verify.oracles.base import Finding, Line, Power, Promises, Queue, Remembered, placed
from refmq.verify.oracles.partition import Partition, oracle

COMMIT: Final = 8
ROLLBACK: Final = 12
"""Decisions as they stand in the system flag of a message and in EndTransaction: bits 2 and 3."""

HALF_TOPIC: Final = "RMQ_SYS_TRANS_HALF_TOPIC"
OP_TOPIC: Final = "RMQ_SYS_TRANS_OP_HALF_TOPIC"


def _decision(line: Line) -> int | None:
    """What a producer decides with this line, at the end of its transaction or when it is asked."""
    if line.action in ("EndTransaction", "CheckReply") and line.outcome == Outcome.INVOKE:
        return line.decision
    return None


@oracle(Partition.TRANSACTION)
def no_half_visible(lines: Iterable[Line], promises: Promises) -> Iterator[Finding]:
    """NoHalfVisible: a half message reaches no consumer before its producer has decided to commit it."""
    undecided: Remembered[int, str] = Remembered()
    for number, line in enumerate(lines):
        if line.action == "SendHalf" and line.outcome == Outcome.INVOKE:
            undecided[line.message] = line.actor
        elif _decision(line) in (COMMIT, ROLLBACK):
            undecided.pop(line.message, None)  # a rolled back one is the business of RolledBackNeverVisible
        elif line.outcome == Outcome.CONSUMED:
            if line.message in undecided:
                yield Finding("NoHalfVisible", f"{line.actor} got a half message of {undecided[line.message]}", number)
            elif line.topic in (HALF_TOPIC, OP_TOPIC):
                yield Finding("NoHalfVisible", f"{line.actor} got a message of {line.topic}", number)


@oracle(Partition.TRANSACTION)
def rolled_back_never_visible(lines: Iterable[Line], promises: Promises) -> Iterator[Finding]:
    """RolledBackNeverVisible: a message that was only ever rolled back reaches no consumer.

    Jepsen's "aborted read" for transactions.
    """
    decided: Remembered[int, set[int]] = Remembered()
    for number, line in enumerate(lines):
        decision = _decision(line)
        if decision in (COMMIT, ROLLBACK):
            if line.message not in decided:
                decided[line.message] = set()
            decided[line.message].add(decision)
        elif line.outcome == Outcome.CONSUMED and decided.get(line.message) == {ROLLBACK}:
            yield Finding("RolledBackNeverVisible", f"{line.actor} got a message that was rolled back", number)


@oracle(Partition.TRANSACTION)
def committed_once(lines: Iterable[Line], promises: Promises) -> Iterator[Finding]:
    """CommittedOnce: a half message that was committed is at one place of its topic."""
    half: Remembered[int, tuple[Queue, int] | None] = Remembered()
    for number, line in enumerate(lines):
        if line.action == "SendHalf" and line.outcome == Outcome.INVOKE:
            half[line.message] = None
        elif line.outcome == Outcome.CONSUMED and line.message in half:
            place = (line.queue, line.queue_offset)
            first = half[line.message]
            if first is None:
                half[line.message] = place
            elif first != place and first[0][0] == line.topic:
                yield Finding("CommittedOnce", f"a committed message is at {placed(first, place)}", number)


@oracle(Partition.TRANSACTION, shared=("FlushLog",))
def every_half_decided(lines: Iterable[Line], promises: Promises) -> Iterator[Finding]:
    """EveryHalfDecided: every half message that was acknowledged ends committed, rolled back or set aside."""
    open_halves: Remembered[int, tuple[Line, int]] = Remembered()
    ended: Remembered[int, None] = Remembered()
    power = Power(promises)
    for number, line in enumerate(lines):
        if (forgiven := power.feed(number, line)) is not None:
            broker, from_physical = forgiven
            for key in [
                k
                for k, (half, _) in open_halves.items()
                if half.queue[1] == broker and half.physical_offset >= from_physical
            ]:
                del open_halves[key]
        elif line.action == "FlipBit":  # its broker can no longer read it
            ended[line.message] = None
            open_halves.pop(line.message, None)
        elif line.action == "SendHalf" and line.outcome == Outcome.OK and line.message not in ended:
            if not power.is_gone(line):
                open_halves[line.message] = (line, number)
        elif (
            line.outcome == Outcome.STEP
            and (
                line.action == "HalfDiscard"
                or (line.action == "EndTransaction" and line.decision in (COMMIT, ROLLBACK))
            )
        ) or line.outcome == Outcome.CONSUMED:
            ended[line.message] = None
            open_halves.pop(line.message, None)
    if promises.settled:
        for half, number in open_halves.values():
            yield Finding("EveryHalfDecided", f"a half message of {half.actor} was never decided", number)


@oracle(Partition.TRANSACTION)
def committed_visible(lines: Iterable[Line], promises: Promises) -> Iterator[Finding]:
    """CommittedVisible: a message that a broker has committed reaches a consumer in the end."""
    waiting: Remembered[int, tuple[str, int]] = Remembered()
    consumed: Remembered[int, None] = Remembered()
    for number, line in enumerate(lines):
        if line.action == "PowerLoss" and not promises.flush_sync:
            # The place of a committed message is not in the event, so whatever was not seen yet is forgiven.
            for key in [key for key, (broker, _) in waiting.items() if broker == line.node]:
                del waiting[key]
        elif line.action == "EndTransaction" and line.outcome == Outcome.STEP and line.decision == COMMIT:
            if line.message not in consumed:
                waiting[line.message] = (line.node, number)
        elif line.outcome == Outcome.CONSUMED:
            consumed[line.message] = None
            waiting.pop(line.message, None)
    if promises.settled:
        for _, number in waiting.values():
            yield Finding("CommittedVisible", "a message was committed and nobody ever got it", number)


def asked_enough(lines: Iterable[Line], checks_max: int) -> Iterator[Finding]:
    """AskedEnough: a producer is asked about a message as often as the broker is set to, and no more. For whoever knows
    the setting."""
    for number, line in enumerate(lines):
        if line.outcome != Outcome.STEP or line.action not in ("HalfRenewAndCheck", "HalfDiscard"):
            continue
        if line.check_times > checks_max:
            yield Finding("AskedEnough", f"{line.node} asks {line.check_times} times, and not {checks_max}", number)


@oracle(Partition.TRANSACTION)
def never_asked_early(lines: Iterable[Line], promises: Promises) -> Iterator[Finding]:
    """NeverAskedEarly: a producer is not asked about a half message before the immunity that the message has is over.

    Not judged for a broker whose clock was set.
    """
    immune_until_ms: Remembered[int, int] = Remembered()
    set_clocks: set[str] = set()
    for number, line in enumerate(lines):
        if line.action == "SendHalf" and line.outcome == Outcome.INVOKE:
            immune_until_ms[line.message] = line.immune_until_ms
        elif line.outcome == Outcome.STEP and line.action == "JumpClock":
            set_clocks.add(line.node)
        elif line.outcome == Outcome.STEP and line.action == "HalfRenewAndCheck" and line.node not in set_clocks:
            early_ms = immune_until_ms.get(line.message, 0) - line.at_ns // 1_000_000
            if early_ms > 0:
                yield Finding("NeverAskedEarly", f"{line.node} asks about a half message {early_ms} ms early", number)


@oracle(Partition.NODE)
def decided_is_marked(lines: Iterable[Line], promises: Promises) -> Iterator[Finding]:
    """DecidedIsMarked: a half message that is decided gets its op message. A store that refuses it is asked again by
    each round: two rounds and a log that takes other records in between are enough.

    Judged while the process lives that took the decision; the next one asks the producer again.
    """
    owed: dict[str, dict[int, int]] = {}  # broker -> message -> rounds that began since
    took: set[str] = set()
    appended: set[tuple[str, int]] = set()  # broker and offset of op messages that no WriteOp has spoken of
    for number, line in enumerate(lines):
        if line.outcome != Outcome.STEP:
            continue
        messages = owed.setdefault(line.node, {})
        match line.action:
            case "ProcessCrash" | "PowerLoss" | "StartStore":
                messages.clear()
            case "AppendMessage":
                took.add(line.node)
                if line.topic == TRANS_OP_HALF_TOPIC:
                    appended.add((line.node, line.queue_offset))
            case "EndTransaction":
                messages[line.message] = 0
            case "WriteOp" if (line.node, line.op_offset) in appended:
                appended.discard((line.node, line.op_offset))
                messages.pop(line.message, None)
            case "RoundStart":
                if line.node in took and 1 in messages.values():
                    yield Finding(
                        "DecidedIsMarked", f"{line.node} has no op message for a message that is decided", number
                    )
                owed[line.node] = {message: rounds + 1 for message, rounds in messages.items()}
                took.discard(line.node)
