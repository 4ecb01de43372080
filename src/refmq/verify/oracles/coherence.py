"""The steps of one broker follow from each other: its log, its queues, its recovery, its rounds, its tables.

This is the reference's own arithmetic, done again from the trace alone. It is judged for a broker whose trace is there
from its start on, and ends for a life in which the disk failed. Over a crash it keeps what a crash keeps.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Final

from refmq.trace.record import Outcome
from refmq.verify.oracles.base import Finding, Line, Promises, Queue, Remembered
from refmq.verify.oracles.partition import Partition, oracle

HALF_TOPIC: Final = "RMQ_SYS_TRANS_HALF_TOPIC"
OP_TOPIC: Final = "RMQ_SYS_TRANS_OP_HALF_TOPIC"
ASIDE_TOPIC: Final = "TRANS_CHECK_MAX_TIME_TOPIC"
STARTING: Final = ("StartStore", "ScanLog", "TruncateLog", "FinishRecovery")
"""The steps of a start, in this order."""
UNKNOWN_TIMES: Final = -1
"""Stands for how often a producer was asked, where nobody has said it."""


@dataclass(slots=True)
class _Round:
    """A check round under way."""

    half: int
    next_op: int
    first_half: int
    first_op: int
    removed: set[int] = field(default_factory=set)
    """Op messages whose half message this round has passed."""


@dataclass(slots=True)
class _Broker:
    """What is known of a broker from its steps."""

    phase: str = ""
    """The last step of a start; empty while it is down."""
    stopped_at: int | None = None
    """Where its log ended when it was stopped in good order; None after a crash."""
    lives: int = 0
    lost_power: bool = False
    has_unseen: bool = False
    """A crash fell between a write and its event: the log holds what nobody has told of."""
    valid_to: int = 0
    log_end: int = 0
    flushed_to: int = 0
    records: Remembered[int, Line] = field(default_factory=Remembered)
    """By physical offset: everything that the log holds, as far as it was seen."""
    waiting: Remembered[int, None] = field(default_factory=Remembered)
    """Records that are not dispatched yet, in the order of the log."""
    acked: Remembered[int, None] = field(default_factory=Remembered)
    ends: set[int] = field(default_factory=set)
    """Where records end: a flush covers whole ones."""
    store_ms: set[int] = field(default_factory=set)
    last_ms: int = 0
    next_offset: dict[Queue, int] = field(default_factory=dict)
    flushed_units: dict[Queue, int] = field(default_factory=dict)
    grown: set[Queue] = field(default_factory=set)
    """Queues that grew in this life."""
    file_starts: set[int] = field(default_factory=lambda: {0})
    min_offset: int = 0
    checkpoint: tuple[int, int, int] = (0, 0, 0)
    halves: dict[int, int] = field(default_factory=dict)
    """Half offset -> message."""
    check_times: dict[int, int] = field(default_factory=dict)
    ops: dict[int, int] = field(default_factory=dict)
    """Op offset -> half offset that it names."""
    op_end: int = 0
    """Where the queue of op messages ends, as far as this life has dispatched them."""
    own_ops: set[int] = field(default_factory=set)
    """Op messages that were appended in this life."""
    decided: set[int] = field(default_factory=set)
    finished: set[int] = field(default_factory=set)
    """Messages that were decided in this life."""
    set_aside: set[int] = field(default_factory=set)
    """Messages of which there is a copy among those that are set aside."""
    old: set[int] = field(default_factory=set)
    """Messages that are old enough to be asked for."""
    persisted: tuple[int, int] | None = None
    unsaved: bool = False
    """Offsets were committed since they were last written down."""
    round: _Round | None = None
    progress: tuple[int, int] | None = None
    offsets: dict[tuple[str, Queue], int] = field(default_factory=dict)
    loans: dict[tuple[str, Queue], str] = field(default_factory=dict)
    members: set[tuple[str, str]] = field(default_factory=set)
    damaged: set[int] = field(default_factory=set)
    """Where records are of which a bit has flipped."""

    def forget_the_unseen(self) -> None:
        """The log is longer than was told: what came behind the last record that was seen may be anything."""
        self.has_unseen = True
        self.next_offset.clear()
        self.halves.clear()
        self.check_times.clear()
        self.ops.clear()

    def _forget_untold_copies(self) -> None:
        """Of a copy of a half message that was written last nobody may have said how often its producer was asked."""
        seen = set[int]()
        for offset, message in sorted(self.halves.items()):
            if message in seen:
                self.check_times.setdefault(offset, UNKNOWN_TIMES)
            seen.add(message)

    def end(self, *, power: bool, clean: bool = False) -> None:
        """The process is gone, and its memory. Without power so is what was not flushed."""
        self.phase, self.round, self.progress, self.persisted, self.unsaved = "", None, None, None, False
        self.offsets = self.offsets if clean else {}
        self.grown.clear()
        self.op_end = 0
        self.own_ops.clear()
        self.finished.clear()
        self.old.clear()
        self.loans.clear()
        self.members.clear()
        self.acked.clear()
        self.waiting.clear()
        self.flushed_units.clear()
        self.checkpoint = (0, 0, 0)
        self.lost_power = self.lost_power or power
        if not clean:
            self._forget_untold_copies()
        if power:
            self.next_offset.clear()
            self.halves.clear()
            self.check_times.clear()
            self.ops.clear()
            for at in [at for at, record in self.records.items() if at + record.size_bytes > self.flushed_to]:
                del self.records[at]


@oracle(Partition.NODE)
def node_coherent(lines: Iterable[Line], promises: Promises) -> Iterator[Finding]:
    """NodeCoherent: the steps of a broker follow from each other."""
    if not promises.complete:
        return
    brokers: dict[str, _Broker] = {}
    failing: set[str] = set()
    for number, line in enumerate(lines):
        if line.outcome != Outcome.STEP:
            continue
        if line.action == "StartStore":
            brokers.setdefault(line.node, _Broker())
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


def _starting(broker: _Broker, line: Line, promises: Promises) -> Iterator[str]:
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


def _stopped(broker: _Broker, line: Line, promises: Promises) -> Iterator[str]:
    if line.valid_to != broker.log_end or broker.phase != "FinishRecovery":
        yield f"its log ends at {broker.log_end}, not at {line.valid_to}"
    behind = sorted(q for q in broker.grown if broker.flushed_units.get(q, -1) != broker.next_offset[q])
    if behind or broker.unsaved:
        yield f"{behind or 'its offsets'} were not saved"
    broker.end(power=False, clean=True)
    broker.stopped_at = line.valid_to


# --- the log and its queues -----------------------------------------------------------------------------------------


def _appended(broker: _Broker, line: Line, promises: Promises) -> Iterator[str]:
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


def _rolled(broker: _Broker, line: Line, promises: Promises) -> Iterator[str]:
    if line.physical_offset != broker.log_end or line.next_file_offset <= line.physical_offset:
        yield f"the log ends at {broker.log_end}, not at {line.physical_offset}"
    broker.log_end = line.next_file_offset
    broker.ends |= {line.physical_offset, line.next_file_offset}
    broker.file_starts.add(line.next_file_offset)


def _expired(broker: _Broker, line: Line, promises: Promises) -> Iterator[str]:
    begin, end = line.file_offset, line.min_offset
    if begin != broker.min_offset or end not in broker.file_starts or end <= begin:
        yield f"the log begins at {broker.min_offset}, not at {begin}"
    broker.min_offset = end


def _flushed(broker: _Broker, line: Line, promises: Promises) -> Iterator[str]:
    if not broker.flushed_to <= line.flushed_to <= broker.log_end or line.flushed_to not in broker.ends:
        yield f"from {broker.flushed_to} to {line.flushed_to}, which is not the end of a record"
    broker.flushed_to = max(broker.flushed_to, line.flushed_to)


def _is_same(record: Line, line: Line) -> bool:
    """Whether a line speaks of the queue and offset at which a record was appended."""
    return (record.queue, record.queue_offset) == (line.queue, line.queue_offset)


def _holds(line: Line) -> tuple[int, int]:
    return line.message, line.size_bytes


def _acknowledged(broker: _Broker, line: Line, promises: Promises) -> Iterator[str]:
    record = broker.records.get(line.physical_offset)
    if record is None or not _is_same(record, line) or record.message != line.message:
        yield f"there is no such record at {line.physical_offset}"
    elif line.physical_offset in broker.acked:
        yield f"the record at {line.physical_offset} was acknowledged before"
    elif promises.flush_sync and line.status == 0 and line.physical_offset + record.size_bytes > broker.flushed_to:
        yield f"the record at {line.physical_offset} is not flushed"
    broker.acked[line.physical_offset] = None


def _dispatched(broker: _Broker, line: Line, promises: Promises) -> Iterator[str]:
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


def _served(broker: _Broker, line: Line, promises: Promises) -> Iterator[str]:
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


def _flushed_units(broker: _Broker, line: Line, promises: Promises) -> Iterator[str]:
    last, end = broker.flushed_units.get(line.queue, -1), broker.next_offset.get(line.queue, line.flushed_to)
    if not last < line.flushed_to <= end:
        yield f"the queue ends at {end} and was flushed to {last}, now to {line.flushed_to}"
    broker.flushed_units[line.queue] = line.flushed_to


def _flushed_index(broker: _Broker, line: Line, promises: Promises) -> Iterator[str]:
    is_known = not broker.lost_power and not broker.has_unseen
    if line.flushed_to >= 0 and is_known and line.flushed_to not in broker.records:
        yield f"there is no record at {line.flushed_to}"


def _checkpoint(broker: _Broker, line: Line, promises: Promises) -> Iterator[str]:
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


def _was_stored_at(broker: _Broker, stamp: int, slack_ms: int) -> bool:
    """Whether some record was stored at this time, as far as the times of events can tell."""
    return stamp == 0 or any(stamp + late in broker.store_ms for late in range(slack_ms + 1))


# --- transactions ----------------------------------------------------------------------------------------------------


def _half_stored(broker: _Broker, line: Line, promises: Promises) -> Iterator[str]:
    record = broker.records.get(line.physical_offset)
    if (
        record is None
        or line.check_times
        or (record.topic, record.queue_offset, record.message) != (HALF_TOPIC, line.half_offset, line.message)
    ):
        yield f"there is no such half message at {line.physical_offset}"


def _decided(broker: _Broker, line: Line, promises: Promises) -> Iterator[str]:
    if broker.halves.get(line.half_offset, line.message) != line.message:
        yield f"half message {line.half_offset} is {broker.halves[line.half_offset]:#x}, not {line.message:#x}"
    broker.decided.add(line.half_offset)
    broker.finished.add(line.message)


def _op_written(broker: _Broker, line: Line, promises: Promises) -> Iterator[str]:
    if broker.halves.get(line.half_offset, line.message) != line.message or line.half_offset not in broker.decided:
        yield f"half message {line.half_offset} is not decided, or not {line.message:#x}"
    if line.op_offset >= broker.next_offset.get(line.queue, line.op_offset + 1) or line.op_offset in broker.ops:
        yield f"there is no new op message at {line.op_offset}"
    broker.ops[line.op_offset] = line.half_offset


def _round(broker: _Broker, line: Line, promises: Promises) -> Iterator[str]:
    if line.action == "RoundStart":
        if broker.round is not None or (
            broker.progress is not None and broker.progress != (line.half_offset, line.op_offset)
        ):
            yield f"the last round ended at {broker.progress}"
        broker.round = _Round(line.half_offset, line.op_offset, line.half_offset, line.op_offset)
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


def _op_progress(broker: _Broker, round_: _Round) -> int | None:
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


def _passed(broker: _Broker, line: Line) -> Iterator[str]:
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


def _immunity_over(broker: _Broker, line: Line, promises: Promises) -> Iterator[str]:
    is_known = not broker.lost_power and not broker.has_unseen
    if line.message in broker.old or (line.message not in broker.halves.values() and is_known):
        yield f"{line.message:#x} is not a half message, or was already recorded"
    broker.old.add(line.message)


# --- tables ---------------------------------------------------------------------------------------------------------


def _committed(broker: _Broker, line: Line, promises: Promises) -> Iterator[str]:
    before = broker.offsets.get((line.actor, line.queue), -1 if broker.lives == 1 else line.before)
    if before != line.before:
        yield f"{before} was stored before, not {line.before}"
    broker.offsets[line.actor, line.queue] = line.after
    broker.unsaved = True
    if line.topic in (HALF_TOPIC, OP_TOPIC):
        allowed = None if broker.persisted is None else broker.persisted[line.topic == OP_TOPIC]
        if line.after != allowed:
            yield f"the rounds have come to {allowed}, not to {line.after}"


def _saved(broker: _Broker, line: Line, promises: Promises) -> Iterator[str]:
    if not broker.unsaved:
        yield "nothing is new"
    broker.unsaved = False


def _lent(broker: _Broker, line: Line, promises: Promises) -> Iterator[str]:
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


def _member(broker: _Broker, line: Line, promises: Promises) -> Iterator[str]:
    if line.action == "Heartbeat":
        broker.members.add((line.actor, line.subject))
    elif (line.actor, line.subject) not in broker.members:
        yield f"{line.actor} was never in {line.subject}"


STEPS: Final[dict[str, Callable[[_Broker, Line, Promises], Iterator[str]]]] = {
    **dict.fromkeys(STARTING, _starting),
    "StopStore": _stopped,
    "AppendMessage": _appended,
    "RollFile": _rolled,
    "ExpireFile": _expired,
    "ImmunityOver": _immunity_over,
    "PersistOffsets": _saved,
    "FlushLog": _flushed,
    "AckPut": _acknowledged,
    "DispatchMessage": _dispatched,
    "ServeMessage": _served,
    "FlushQueue": _flushed_units,
    "FlushIndex": _flushed_index,
    "WriteCheckpoint": _checkpoint,
    "SendHalf": _half_stored,
    "EndTransaction": _decided,
    "WriteOp": _op_written,
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
        _round,
    ),
    "CommitOffset": _committed,
    **dict.fromkeys(("LockQueue", "UnlockQueue", "LoanExpire"), _lent),
    **dict.fromkeys(("Heartbeat", "Leave", "RemoveMember"), _member),
}
"""Step -> what is wrong with it, given what the broker did before."""
