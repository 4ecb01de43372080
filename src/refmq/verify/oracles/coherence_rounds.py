"""The steps of transactions and of check rounds, for `NodeCoherent`: each gives what does not follow from before."""

from __future__ import annotations

from collections.abc import Iterator

from refmq.verify.oracles.base import Line, Promises, Queue
from refmq.verify.oracles.coherence_state import (
    HALF_TOPIC,
    OP_TOPIC,
    UNKNOWN_TIMES,
    KnownBroker,
    KnownRound,
)


def half_stored(broker: KnownBroker, line: Line, promises: Promises) -> Iterator[str]:
    record = broker.records.get(line.physical_offset)
    if (
        record is None
        or line.check_times
        or (record.topic, record.queue_offset, record.message) != (HALF_TOPIC, line.half_offset, line.message)
    ):
        yield f"there is no such half message at {line.physical_offset}"


def decided(broker: KnownBroker, line: Line, promises: Promises) -> Iterator[str]:
    if broker.halves.get(line.half_offset, line.message) != line.message:
        yield f"half message {line.half_offset} is {broker.halves[line.half_offset]:#x}, not {line.message:#x}"
    broker.decided.add(line.half_offset)
    broker.finished.add(line.message)


def op_written(broker: KnownBroker, line: Line, promises: Promises) -> Iterator[str]:
    if broker.halves.get(line.half_offset, line.message) != line.message or line.half_offset not in broker.decided:
        yield f"half message {line.half_offset} is not decided, or not {line.message:#x}"
    if line.op_offset >= broker.next_offset.get(line.queue, line.op_offset + 1) or line.op_offset in broker.ops:
        yield f"there is no new op message at {line.op_offset}"
    broker.ops[line.op_offset] = line.half_offset


def round_step(broker: KnownBroker, line: Line, promises: Promises) -> Iterator[str]:
    if line.action == "RoundStart":
        if broker.round is not None or (
            broker.progress is not None and broker.progress != (line.half_offset, line.op_offset)
        ):
            yield f"the last round ended at {broker.progress}"
        broker.round = KnownRound(line.half_offset, line.op_offset, line.half_offset, line.op_offset)
        return
    if line.action == "PersistProgress":
        told = (line.half_offset, line.op_offset)
        if (broker.progress or told) != told or broker.persisted == told:
            yield f"the last round ended at {broker.progress}"
        broker.persisted = (line.half_offset, line.op_offset)
        return
    round_ = broker.round
    if round_ is None:
        yield "there is no round"
        return
    match line.action:
        case "PullOps":
            if (
                line.op_offset_from != round_.next_op
                or not line.op_offset_from
                <= line.op_offset_to
                <= broker.next_offset.get(_op_queue(line), line.op_offset_to)
            ):
                yield f"the next op message is {round_.next_op}"
            elif any(
                op in broker.own_ops and op not in broker.ops for op in range(line.op_offset_from, line.op_offset_to)
            ):
                yield "one of them was never written"
            elif line.op_offset_to == line.op_offset_from < broker.op_end:
                yield f"it found none, and there are op messages up to {broker.op_end}"
            round_.next_op = line.op_offset_to
        case "RoundFinish":
            passed = line.half_offset - round_.half
            if passed < 0 or (passed and not broker.has_unseen) or line.op_offset > round_.next_op:
                yield f"the round is at {round_.half} and {round_.next_op}"
            expected = _op_progress(broker, round_)
            if expected is not None and line.op_offset != expected:
                yield f"the op messages before {expected} are no longer needed, not those before {line.op_offset}"
            broker.round, broker.progress = None, (line.half_offset, line.op_offset)
        case "RoundAbort":
            broker.round = None
        case _:
            is_whole = not (broker.lost_power or broker.has_unseen or broker.min_offset)
            if line.half_offset < round_.half or (line.half_offset > round_.half and is_whole):
                yield f"the round is at {round_.half}"
            round_.half = line.half_offset + 1
            yield from _passed(broker, line)


def _op_progress(broker: KnownBroker, round_: KnownRound) -> int | None:
    """How far the op messages are done with when a round ends: an unbroken run of those that name a half message before
    the round, one that it passed, or one that a later one names as well. None if not all of them are known."""
    if broker.has_unseen or any(op not in broker.ops for op in range(round_.first_op, round_.next_op)):
        return None
    last = {broker.ops[op]: op for op in range(round_.first_op, round_.next_op)}
    op = round_.first_op
    while op < round_.next_op:
        half = broker.ops[op]
        if half >= round_.first_half and op not in round_.removed and last[half] == op:
            break
        op += 1
    return op


def _op_queue(line: Line) -> Queue:
    return OP_TOPIC, line.node, 0


def _passed(broker: KnownBroker, line: Line) -> Iterator[str]:
    """A round passes a half message."""
    message = broker.halves.get(line.half_offset)
    if line.action == "HalfRemoved":
        if broker.round is not None:
            broker.round.removed.add(line.op_offset)
        if line.op_offset >= 0 and broker.ops.get(line.op_offset, line.half_offset) != line.half_offset:
            yield f"op message {line.op_offset} names {broker.ops[line.op_offset]}"
        return
    if message is not None and line.message != message:
        yield f"half message {line.half_offset} is {message:#x}"
    times = broker.check_times.get(line.half_offset, 0 if message is not None else UNKNOWN_TIMES)
    if line.action == "HalfDiscard":
        if times not in (UNKNOWN_TIMES, line.check_times):
            yield f"its producer was asked {times} times, not {line.check_times}"
        if line.message not in broker.set_aside:
            yield "there is no copy of it"
        broker.set_aside.discard(line.message)
        return
    if broker.halves.get(line.new_offset) != line.message:
        yield f"its copy is not at {line.new_offset}"
    if line.action == "HalfRenewAndCheck" and line.message in broker.finished:
        yield "it was decided before"
    if line.action == "HalfRenewAndCheck" and line.message not in broker.old:
        yield "it is too young to be asked for"
    counted = line.check_times if line.action == "HalfRenewAndCheck" else times
    if line.action == "HalfRenewAndCheck" and times >= 0 and line.check_times != times + 1:
        yield f"its producer was asked {times} times before, and now for the {line.check_times}th time"
    broker.check_times[line.new_offset] = counted


def immunity_over(broker: KnownBroker, line: Line, promises: Promises) -> Iterator[str]:
    is_known = not broker.lost_power and not broker.has_unseen
    if line.message in broker.old or (line.message not in broker.halves.values() and is_known):
        yield f"{line.message:#x} is not a half message, or was already recorded"
    broker.old.add(line.message)
