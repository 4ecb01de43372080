"""The steps of one broker follow from each other: its log, its queues, its recovery, its rounds, its tables.

This is the reference's own arithmetic, done again from the trace alone. It is judged for a broker whose trace is there
from its start on, and ends for a life in which the disk failed. Over a crash it keeps what a crash keeps.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Final

from refmq.trace.record import Outcome
from refmq.verify.oracles.base import Finding, Line, Promises
from refmq.verify.oracles.coherence_rounds import decided, half_stored, immunity_over, op_written, round_step
from refmq.verify.oracles.coherence_state import (
    ASIDE_TOPIC,
    HALF_TOPIC,
    OP_TOPIC,
    STARTING,
    KnownBroker,
)
from refmq.verify.oracles.partition import Partition, oracle


@oracle(Partition.NODE)
def node_coherent(lines: Iterable[Line], promises: Promises) -> Iterator[Finding]:
    """NodeCoherent: the steps of a broker follow from each other."""
    if not promises.complete:
        return
    brokers: dict[str, KnownBroker] = {}
    failing: set[str] = set()
    for number, line in enumerate(lines):
        if line.outcome != Outcome.STEP:
            continue
        if line.action == "StartStore":
            brokers.setdefault(line.node, KnownBroker())
        elif line.action in ("FailFlush", "FullDisk", "JumpClock"):
            failing.add(line.node)
        broker = brokers.get(line.node)
        if broker is None or line.node in failing:
            continue
        if line.action == "FlipBit":  # a round passes what it cannot read
            broker.has_unseen = True
            for at in [at for at, record in broker.records.items() if record.message == line.message]:
                broker.damaged.add(at)
        if line.action in ("ProcessCrash", "PowerLoss"):
            broker.stopped_at = None
            broker.end(power=line.action == "PowerLoss")
            continue
        judge_step = STEPS.get(line.action)
        for sentence in () if judge_step is None else judge_step(broker, line, promises):
            yield Finding("NodeCoherent", f"{line.action} of {line.node}: {sentence}", number)
    if promises.settled:
        for name, broker in brokers.items():
            if broker.waiting and name not in failing:
                sentence = f"{name} has not dispatched the record at {next(iter(broker.waiting))}"
                yield Finding("NodeCoherent", sentence, 0)


# --- a start and an end ----------------------------------------------------------------------------------------------


def _starting(broker: KnownBroker, line: Line, promises: Promises) -> Iterator[str]:
    expected = STARTING[0] if broker.phase in ("", STARTING[-1]) else STARTING[STARTING.index(broker.phase) + 1]
    if line.action != expected or (line.action == STARTING[0] and broker.phase):
        yield f"it follows {broker.phase or 'nothing'}"
    broker.phase = line.action
    match line.action:
        case "StartStore":
            broker.lives += 1
            if line.was_clean != 1 and (broker.stopped_at is not None or broker.lives == 1):
                yield "it was stopped in good order, and this is not known"
        case "ScanLog":
            broker.valid_to = line.valid_to
            ended_at = line.valid_to if broker.stopped_at is None else broker.stopped_at
            if line.scan_from not in broker.file_starts or line.valid_to != ended_at:
                yield f"the log is said to be valid from {line.scan_from} to {line.valid_to}, it ended at {ended_at}"
            if line.valid_to > broker.log_end and broker.lives > 1:
                broker.forget_the_unseen()
        case "TruncateLog" if line.valid_to != broker.valid_to:
            yield f"the log was valid to {broker.valid_to}, not to {line.valid_to}"
        case "FinishRecovery":
            # Before a flush the power may take the first file and leave the second.
            if broker.lost_power and line.min_offset in broker.file_starts and broker.flushed_to <= line.min_offset:
                broker.min_offset = line.min_offset
            if line.valid_to != broker.valid_to or line.min_offset != broker.min_offset:
                yield f"the log was valid to {broker.valid_to}, not from {line.min_offset} to {line.valid_to}"
            broker.log_end = broker.flushed_to = line.valid_to
            broker.ends.add(line.valid_to)
            for at in [at for at in broker.records if at >= line.valid_to]:
                del broker.records[at]


def _stopped(broker: KnownBroker, line: Line, promises: Promises) -> Iterator[str]:
    if line.valid_to != broker.log_end or broker.phase != "FinishRecovery":
        yield f"its log ends at {broker.log_end}, not at {line.valid_to}"
    behind = sorted(q for q in broker.grown if broker.flushed_units.get(q, -1) != broker.next_offset[q])
    if behind or broker.unsaved:
        yield f"{behind or 'its offsets'} were not saved"
    broker.end(power=False, clean=True)
    broker.stopped_at = line.valid_to


# --- the log and its queues -----------------------------------------------------------------------------------------


def _appended(broker: KnownBroker, line: Line, promises: Promises) -> Iterator[str]:
    if broker.phase != "FinishRecovery":
        yield "the store is not open"
    elif line.physical_offset != broker.log_end:
        yield f"the log ends at {broker.log_end}, not at {line.physical_offset}"
    expected = broker.next_offset.get(line.queue, line.queue_offset)
    if line.queue_offset != expected:
        yield f"the next offset of {line.subject}/{line.queue_id} is {expected}, not {line.queue_offset}"
    broker.next_offset[line.queue] = line.queue_offset + 1
    broker.grown.add(line.queue)
    broker.log_end = line.physical_offset + line.size_bytes
    broker.ends.add(broker.log_end)
    broker.records[line.physical_offset] = line
    broker.waiting[line.physical_offset] = None
    broker.last_ms = max(broker.last_ms, line.at_ns // 1_000_000)
    broker.store_ms.add(broker.last_ms)
    if line.topic == HALF_TOPIC:
        broker.halves[line.queue_offset] = line.message
    elif line.topic == OP_TOPIC:
        broker.own_ops.add(line.queue_offset)
    elif line.topic == ASIDE_TOPIC:
        broker.set_aside.add(line.message)


def _rolled(broker: KnownBroker, line: Line, promises: Promises) -> Iterator[str]:
    if line.physical_offset != broker.log_end or line.next_file_offset <= line.physical_offset:
        yield f"the log ends at {broker.log_end}, not at {line.physical_offset}"
    broker.log_end = line.next_file_offset
    broker.ends |= {line.physical_offset, line.next_file_offset}
    broker.file_starts.add(line.next_file_offset)


def _expired(broker: KnownBroker, line: Line, promises: Promises) -> Iterator[str]:
    begin, end = line.file_offset, line.min_offset
    if begin != broker.min_offset or end not in broker.file_starts or end <= begin:
        yield f"the log begins at {broker.min_offset}, not at {begin}"
    broker.min_offset = end


def _flushed(broker: KnownBroker, line: Line, promises: Promises) -> Iterator[str]:
    if not broker.flushed_to <= line.flushed_to <= broker.log_end or line.flushed_to not in broker.ends:
        yield f"from {broker.flushed_to} to {line.flushed_to}, which is not the end of a record"
    broker.flushed_to = max(broker.flushed_to, line.flushed_to)


def _is_same(record: Line, line: Line) -> bool:
    """Whether a line speaks of the queue and offset at which a record was appended."""
    return (record.queue, record.queue_offset) == (line.queue, line.queue_offset)


def _holds(line: Line) -> tuple[int, int]:
    return line.message, line.size_bytes


def _acknowledged(broker: KnownBroker, line: Line, promises: Promises) -> Iterator[str]:
    record = broker.records.get(line.physical_offset)
    if record is None or not _is_same(record, line) or record.message != line.message:
        yield f"there is no such record at {line.physical_offset}"
    elif line.physical_offset in broker.acked:
        yield f"the record at {line.physical_offset} was acknowledged before"
    elif promises.flush_sync and line.status == 0 and line.physical_offset + record.size_bytes > broker.flushed_to:
        yield f"the record at {line.physical_offset} is not flushed"
    broker.acked[line.physical_offset] = None


def _dispatched(broker: KnownBroker, line: Line, promises: Promises) -> Iterator[str]:
    record = broker.records.get(line.physical_offset)
    if broker.phase == "FinishRecovery":
        first = next(iter(broker.waiting), None)
        if first != line.physical_offset:
            yield f"the next record to dispatch is at {first}, not at {line.physical_offset}"
        if promises.flush_sync and line.physical_offset + line.size_bytes > broker.flushed_to:
            yield f"the record at {line.physical_offset} is not flushed"
    broker.waiting.pop(line.physical_offset, None)
    if line.topic == OP_TOPIC:
        broker.op_end = max(broker.op_end, line.queue_offset + 1)
    if record is not None and not (_is_same(record, line) and record.size_bytes == line.size_bytes):
        yield f"the record at {line.physical_offset} is another one"


def _served(broker: KnownBroker, line: Line, promises: Promises) -> Iterator[str]:
    record = broker.records.get(line.physical_offset)
    if line.physical_offset in broker.waiting:
        yield f"the record at {line.physical_offset} is not dispatched"
    elif (
        record is not None
        and line.physical_offset not in broker.damaged
        and not (_is_same(record, line) and _holds(record) == _holds(line))
    ):
        yield f"the record at {line.physical_offset} is another one"
    elif line.physical_offset + line.size_bytes > broker.log_end:
        yield f"there is no record at {line.physical_offset}"


def _flushed_units(broker: KnownBroker, line: Line, promises: Promises) -> Iterator[str]:
    last, end = broker.flushed_units.get(line.queue, -1), broker.next_offset.get(line.queue, line.flushed_to)
    if not last < line.flushed_to <= end:
        yield f"the queue ends at {end} and was flushed to {last}, now to {line.flushed_to}"
    broker.flushed_units[line.queue] = line.flushed_to


def _flushed_index(broker: KnownBroker, line: Line, promises: Promises) -> Iterator[str]:
    is_known = not broker.lost_power and not broker.has_unseen
    if line.flushed_to >= 0 and is_known and line.flushed_to not in broker.records:
        yield f"there is no record at {line.flushed_to}"


def _checkpoint(broker: KnownBroker, line: Line, promises: Promises) -> Iterator[str]:
    stamps = (line.log_ms, line.queue_ms, line.index_ms)
    # The stamp of the queues is that of the first key of an index file that is not full, as soon as it has later ones:
    # Java would remove it and index again from there. The full file before it may end with that message.
    log_ms, queue_ms, index_ms = broker.checkpoint
    for before, stamp in zip((log_ms, min(queue_ms, line.index_ms), index_ms), stamps, strict=True):
        if stamp < before:
            yield f"a stamp goes back from {before} to {stamp}"
        elif not (broker.has_unseen or _was_stored_at(broker, stamp, promises.clock_slack_ms)):
            yield f"nothing was stored at {stamp}"
    broker.checkpoint = stamps


def _was_stored_at(broker: KnownBroker, stamp: int, slack_ms: int) -> bool:
    """Whether some record was stored at this time, as far as the times of events can tell."""
    return stamp == 0 or any(stamp + late in broker.store_ms for late in range(slack_ms + 1))


# --- tables ---------------------------------------------------------------------------------------------------------


def _committed(broker: KnownBroker, line: Line, promises: Promises) -> Iterator[str]:
    before = broker.offsets.get((line.actor, line.queue), -1 if broker.lives == 1 else line.before)
    if before != line.before:
        yield f"{before} was stored before, not {line.before}"
    broker.offsets[line.actor, line.queue] = line.after
    broker.unsaved = True
    if line.topic in (HALF_TOPIC, OP_TOPIC):
        allowed = None if broker.persisted is None else broker.persisted[line.topic == OP_TOPIC]
        if line.after != allowed:
            yield f"the rounds have come to {allowed}, not to {line.after}"


def _saved(broker: KnownBroker, line: Line, promises: Promises) -> Iterator[str]:
    if not broker.unsaved:
        yield "nothing is new"
    broker.unsaved = False


def _lent(broker: KnownBroker, line: Line, promises: Promises) -> Iterator[str]:
    key, at_ms = (line.group, line.queue), line.at_ns // 1_000_000
    holder = broker.loans.get(key, "")
    match line.action:
        case "LockQueue":
            if line.granted != 1 or line.at_ms != at_ms or holder not in ("", line.actor):
                yield f"{holder or 'nobody'} holds it, at {at_ms}"
            broker.loans[key] = line.actor
        case _:
            if holder != line.actor or (line.action == "UnlockQueue" and line.at_ms != at_ms):
                yield f"{holder or 'nobody'} holds it, at {at_ms}"
            broker.loans.pop(key, None)


def _member(broker: KnownBroker, line: Line, promises: Promises) -> Iterator[str]:
    if line.action == "Heartbeat":
        broker.members.add((line.actor, line.subject))
    elif (line.actor, line.subject) not in broker.members:
        yield f"{line.actor} was never in {line.subject}"


STEPS: Final[dict[str, Callable[[KnownBroker, Line, Promises], Iterator[str]]]] = {
    **dict.fromkeys(STARTING, _starting),
    "StopStore": _stopped,
    "AppendMessage": _appended,
    "RollFile": _rolled,
    "ExpireFile": _expired,
    "ImmunityOver": immunity_over,
    "PersistOffsets": _saved,
    "FlushLog": _flushed,
    "AckPut": _acknowledged,
    "DispatchMessage": _dispatched,
    "ServeMessage": _served,
    "FlushQueue": _flushed_units,
    "FlushIndex": _flushed_index,
    "WriteCheckpoint": _checkpoint,
    "SendHalf": half_stored,
    "EndTransaction": decided,
    "WriteOp": op_written,
    **dict.fromkeys(
        (
            "RoundStart",
            "PullOps",
            "HalfRemoved",
            "HalfDiscard",
            "HalfImmune",
            "HalfRenewAndCheck",
            "RoundFinish",
            "RoundAbort",
            "PersistProgress",
        ),
        round_step,
    ),
    "CommitOffset": _committed,
    **dict.fromkeys(("LockQueue", "UnlockQueue", "LoanExpire"), _lent),
    **dict.fromkeys(("Heartbeat", "Leave", "RemoveMember"), _member),
}
"""Step -> what is wrong with it, given what the broker did before."""
