"""From the files that some process left behind to a store that serves.

One algorithm, whatever happened before. Each step can be interrupted, and the next start does the whole again:

    (before)        lock, look at every name, read the log: a stray file or a damaged log ends it here, unchanged
    StartStore      mark the store as in use
    ScanLog         the log was read from `scan_from` to the first bytes that are not a record: `valid_to`
    TruncateQueue   cut every queue after the units that are certainly durable
    TruncateLog     zero everything past `valid_to`, remove later files, flush all of it
    DispatchMessage every record from there on gets its unit and its index entries again (dispatch is idempotent)
    Flush*, WriteCheckpoint
    FinishRecovery

Where to start is in our block of the checkpoint (checkpoint.py): log, queues and index are durable up to the offsets
there. If the block is missing or contradicts the files, the whole log is scanned and everything derived from it is
rebuilt; that costs time, never messages. The abort file is kept for Java; our own recovery does not need it.

Damage. After a crash the log ends somewhere in the part that was not durable. Good records may follow the first bad
one, because pages are written back in any order; they go. But where the log was durable, a bad record is damage, and
the good ones after it were acknowledged. Then the start is refused with `DamagedLog` and nothing is changed.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Final

from refmq.errors import CorruptRecord, DamagedLog
from refmq.model.disk import Disk
from refmq.model.ids import PhysicalOffset, TimestampMs
from refmq.model.step import Event
from refmq.protocol.record import RECORD_BYTES_MIN
from refmq.store.checkpoint import (
    CHECKPOINT_TEMPORARY,
    Checkpoint,
    Durable,
    read_checkpoint,
)
from refmq.store.checkpoint import write_checkpoint as write_checkpoint_file
from refmq.store.commit_log import LOG_DIRECTORY
from refmq.store.config import OnDamage
from refmq.store.consume_queue import QUEUE_DIRECTORY, ConsumeQueue
from refmq.store.consume_queue_ext import EXT_DIRECTORY
from refmq.store.dispatch import dispatch_up_to
from refmq.store.file_sequence import CREATING
from refmq.store.flush import flush_log, write_checkpoint
from refmq.store.index import Index
from refmq.store.index_file import IndexEnd, IndexFile
from refmq.store.parts import Parts
from refmq.store.scan import ScanResult, find_next_record, scan_log
from refmq.store.values import RecoveryReport

ABORT_FILE: Final = "abort"

LIGHT_QUEUE_PREFIX: Final = "%LMQ%"
"""The queues of Java's light message queues hold units of other topics' records. We do not serve them, and we leave
them alone, because dispatching could not rebuild them."""


@dataclass(slots=True)
class _Plan:
    """What a recovery believes and finds."""

    was_clean: bool
    checkpoint: Checkpoint
    durable: Durable | None
    """Our block of the checkpoint, as long as nothing contradicts it."""
    scan_from: int = 0
    scan: ScanResult = field(default_factory=lambda: ScanResult(PhysicalOffset(0), 0, TimestampMs(0), None))
    records_scanned: int = 0
    bytes_cut: int = 0
    dispatched: int = 0
    queue_ends: dict[tuple[str, int], int] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)

    @property
    def is_settled(self) -> bool:
        """Whether a clean stop made everything durable and nothing has changed since, whatever the abort file says:
        somebody may have removed it."""
        return self.durable is not None and self.durable.is_clean


async def recover(parts: Parts, now_ms: TimestampMs) -> RecoveryReport:
    """Recovers a locked store. Raises `StrayFile`, `DamagedLog` and `DiskError`."""
    plan = load(parts)
    scan_from_checkpoint(parts, plan)  # only reads: a log that is refused stays as it is
    await start_store(parts, plan)
    if parts.emit is not None:
        parts.emit(Event("ScanLog", a=plan.scan_from, b=plan.scan.valid_to))
    await truncate_queues(parts, plan)
    await truncate_log(parts, plan)
    _truncate_index(parts, plan)
    _catch_up(parts, plan)
    await finish_recovery(parts)
    return RecoveryReport(
        was_clean=plan.was_clean,
        scanned_from=PhysicalOffset(plan.scan_from),
        valid_to=plan.scan.valid_to,
        records_scanned=plan.records_scanned,
        bytes_cut=plan.bytes_cut,
        records_dispatched=plan.dispatched,
        queues=len(parts.queues),
        notes=tuple(plan.notes),
    )


async def finish_recovery(parts: Parts) -> None:
    """Everything is in its queue and in the index. That is made durable and recorded, and the store serves."""
    assert parts.dispatched_to == parts.log.wrote
    await write_checkpoint(parts)
    if parts.emit is not None:
        parts.emit(Event("FinishRecovery", a=parts.log.wrote, b=parts.log.log_min))


async def stop_store(parts: Parts) -> None:
    """A clean stop. What cannot be dispatched (the disk is full) leaves the abort file where it is."""
    parts.log.commit()
    await flush_log(parts)
    before = None
    while before != parts.dispatched_to < parts.log.readable:
        before = parts.dispatched_to
        dispatch_up_to(parts, parts.log.readable, _records_at_once(parts))
    assert parts.dispatched_to <= parts.log.wrote
    if parts.dispatched_to == parts.log.wrote and await write_checkpoint(parts, is_clean=True):
        parts.disk.remove(ABORT_FILE)
        parts.names.changed("")
        await parts.names.flush("")
        if parts.emit is not None:
            parts.emit(Event("StopStore", a=parts.log.wrote))


# --- StartStore -----------------------------------------------------------------------------------------------------


def load(parts: Parts) -> _Plan:
    """Looks at every name and changes nothing. Raises `StrayFile`."""
    disk = parts.disk
    was_clean = not disk.exists(ABORT_FILE)
    parts.log.files.load()
    # A power loss may bring back just the extension of a deleted queue. It goes with the queue, which has no units.
    directories = (QUEUE_DIRECTORY, EXT_DIRECTORY) if parts.config.ext_enabled else (QUEUE_DIRECTORY,)
    for key in dict.fromkeys(key for directory in directories for key in _queues_in(disk, directory)):
        parts.queue_for(*key).load()
    if parts.index is not None:
        parts.index.load()
    checkpoint = read_checkpoint(disk)
    return _Plan(was_clean, checkpoint, _believable(parts, checkpoint.durable))


def _queues_in(disk: Disk, directory: str) -> Iterator[tuple[str, int]]:
    """Topic and queue id of every queue that has a directory there.

    Anything that is not a directory, or below a topic not a number, is none of our business; Java ignores it too.
    """
    for topic in disk.list(directory):
        if topic.startswith(LIGHT_QUEUE_PREFIX) or not disk.is_directory(f"{directory}/{topic}"):
            continue
        for name in disk.list(f"{directory}/{topic}"):
            is_number = name.isascii() and name.isdigit() and str(int(name)) == name
            if is_number and disk.is_directory(f"{directory}/{topic}/{name}"):
                yield topic, int(name)


def _believable(parts: Parts, durable: Durable | None) -> Durable | None:
    """Our block of the checkpoint, unless it cannot be about these files."""
    if durable is None:
        return None
    files = parts.log.files
    begin = min(durable.queues_to, durable.index_to)
    if not 0 <= begin <= durable.log_to or durable.log_to > files.limit or durable.log_to < files.begin:
        return None
    return durable


async def start_store(parts: Parts, plan: _Plan) -> None:
    """Marks the store as in use before anything is changed."""
    assert parts.dispatched_to == 0, "nothing is served yet"
    disk = parts.disk
    for leftover in (CREATING, CHECKPOINT_TEMPORARY):
        if disk.exists(leftover):
            disk.remove(leftover)
    if plan.was_clean:
        disk.create(ABORT_FILE, 0).close()
        parts.names.changed("")
    await parts.names.flush("")
    still_true = _still_true(plan)
    if still_true != plan.checkpoint:
        await write_checkpoint_file(disk, parts.names, still_true)
    if parts.emit is not None:
        parts.emit(Event("StartStore", a=int(plan.was_clean)))


def _still_true(plan: _Plan) -> Checkpoint:
    """The part of the checkpoint that stays true while recovery changes things. It counts if this start dies too.

    While queues and index are being rebuilt nothing but the log is durable. When that is nearly done the numbers may
    fit again by accident, although what is there was never flushed.
    """
    if plan.durable is None:
        before = plan.checkpoint.durable
        if before is None:
            return Checkpoint(log_ms=plan.checkpoint.log_ms)
        # How far the log was durable is still known, and more exactly than from a time stamp.
        log_to = PhysicalOffset(min(before.log_to, plan.scan.valid_to))
        nothing_else = Durable(log_to, PhysicalOffset(0), PhysicalOffset(0), queue_sum=0, index_end=IndexEnd())
        return Checkpoint(log_ms=plan.checkpoint.log_ms, durable=nothing_else)
    return replace(plan.checkpoint, durable=replace(plan.durable, is_clean=False))


# --- ScanLog --------------------------------------------------------------------------------------------------------


def scan_from_checkpoint(parts: Parts, plan: _Plan) -> None:
    """Finds `valid_to`. The checkpoint is believed as long as log, queues and index are as it says."""
    _scan(parts, plan)
    contradiction = _contradiction(parts, plan)
    if contradiction:
        plan.notes.append(f"{contradiction}; everything is rebuilt")
        plan.durable = None
        if plan.scan_from > parts.log.log_min:
            _scan(parts, plan)
            _refuse_damage(parts, plan)


def _scan(parts: Parts, plan: _Plan) -> None:
    files, config = parts.log.files, parts.config
    plan.scan_from = files.begin
    if plan.durable is not None and files.bases:
        begin = max(files.begin, min(plan.durable.queues_to, plan.durable.index_to))
        scan_from = files.base_of(min(begin, files.limit - 1))
        if files.are_whole_before(scan_from):  # otherwise a scan from the start finds the missing file
            plan.scan_from = scan_from
    plan.scan = scan_log(
        files,
        plan.scan_from,
        page_bytes=config.page_bytes,
        check_crc=config.check_crc,
        piece_bytes=config.piece_bytes,
        scan_records=parts.scan_records,
    )
    assert files.begin <= plan.scan_from <= plan.scan.valid_to
    plan.records_scanned += plan.scan.records


def _contradiction(parts: Parts, plan: _Plan) -> str:
    """Why the checkpoint cannot be about these files; empty if it can. Raises `DamagedLog`."""
    durable = plan.durable
    _refuse_damage(parts, plan)
    if durable is None:
        return "the checkpoint is not ours" if parts.log.files.bases else ""
    if plan.scan.valid_to < durable.log_to:
        return f"the log ends at {plan.scan.valid_to}, the checkpoint says {durable.log_to}"
    plan.queue_ends = _queue_ends(parts, plan)
    if sum(plan.queue_ends.values()) != durable.queue_sum:
        return "the queues are not those of the checkpoint"
    if not all(parts.queues[key].has_ext_of(end, parts.log.log_min) for key, end in plan.queue_ends.items()):
        return "the extension of a queue is not what its units say"
    if parts.index is not None and not parts.index.has(durable.index_end):
        return "the index is not that of the checkpoint"
    return ""


def _refuse_damage(parts: Parts, plan: _Plan) -> None:
    """Raises `DamagedLog` if good records that were durable follow the end of the valid part."""
    if parts.config.on_damage is OnDamage.CUT:
        return
    valid_to = plan.scan.valid_to
    following = find_next_record(
        parts.log.files, valid_to, page_bytes=parts.config.page_bytes, piece_bytes=parts.config.piece_bytes
    )
    if following is None:
        return
    position, store_ms = following
    if plan.checkpoint.durable is not None:
        # This is true of the log whatever became of the rest; it may even be older than the oldest file.
        was_durable = position < plan.checkpoint.durable.log_to
    else:
        # Java's files: after the end there may be older records that it cut off without erasing them.
        is_newer = store_ms >= plan.scan.last_store_ms
        was_durable = is_newer and (plan.was_clean or store_ms <= plan.checkpoint.log_ms)
    if was_durable:
        reason = plan.scan.stopped_by or CorruptRecord("total size", valid_to, "a record", "zeros or a missing file")
        raise DamagedLog(reason.field, reason.offset, reason.expected, reason.found, position)


# --- TruncateQueue, TruncateLog ---------------------------------------------------------------------------------------


async def truncate_queues(parts: Parts, plan: _Plan) -> None:
    """Cuts every queue after the units that are certainly durable, and makes the cut durable."""
    if not plan.is_settled:
        # A start that died may have removed files without waiting for that to be durable: they must not come back.
        await parts.names.flush_below(QUEUE_DIRECTORY)
        await parts.names.flush_below(EXT_DIRECTORY)
    assert plan.durable is None or plan.scan.valid_to >= plan.durable.log_to, (
        "a checkpoint that is contradicted is gone"
    )
    ends = plan.queue_ends if plan.durable is not None else _queue_ends(parts, plan)
    for key, end in ends.items():
        await truncate_queue(parts, parts.queues[key], end, plan)
        if not parts.queues[key].files.bases:
            del parts.queues[key]


async def truncate_queue(parts: Parts, queue: ConsumeQueue, end: int, plan: _Plan) -> None:
    """Ends one queue, zeroes the rest and flushes that: old units must not come back once new ones precede them."""
    cut = queue.end_at(end)
    assert queue.end == end, "a queue ends where its last certain unit does"
    if cut or not plan.is_settled:  # a start that died may have zeroed everything and flushed nothing
        await queue.flush_files()
    if cut and parts.emit is not None:
        parts.emit(Event("TruncateQueue", "", queue.topic, queue.queue_id, queue.end, plan.scan.valid_to))


def _queue_ends(parts: Parts, plan: _Plan) -> dict[tuple[str, int], int]:
    # Units of expired records cannot be written again, and they say where their queue continues: they always stay.
    durable_to = parts.log.log_min if plan.durable is None else max(plan.durable.queues_to, parts.log.log_min)
    ends = {key: queue.find_end(min(durable_to, plan.scan.valid_to)) for key, queue in parts.queues.items()}
    return {key: end if parts.queues[key].last_physical_end >= 0 else 0 for key, end in ends.items()}


async def truncate_log(parts: Parts, plan: _Plan) -> None:
    """The log ends at `valid_to`, and nothing after it can come back."""
    log = parts.log
    assert plan.scan.valid_to >= plan.scan_from
    while log.files.remove_last_after(plan.scan.valid_to):
        # One by one: otherwise a power loss could bring back a later file without those before it.
        plan.bytes_cut += log.file_bytes
        await parts.names.flush(LOG_DIRECTORY)
    plan.bytes_cut += log.files.truncate(plan.scan.valid_to)
    log.end_at(plan.scan.valid_to)
    # Records that a dead process wrote may be in memory only: nothing is served before it is durable.
    for base in log.files.bases:
        if base >= log.files.base_of(plan.scan_from):
            await log.files.file(base).flush()
    if parts.disk.is_directory(LOG_DIRECTORY):
        await parts.names.flush(LOG_DIRECTORY)
    log.files.flushed = log.files.wrote
    assert log.readable == log.wrote == plan.scan.valid_to
    last_ms = plan.scan.last_store_ms
    if plan.durable is not None:
        last_ms = max(last_ms, plan.checkpoint.log_ms)
    log.saw_store_time(last_ms)
    log.flushed_store_ms = last_ms
    if parts.emit is not None:
        parts.emit(Event("TruncateLog", a=plan.scan.valid_to, b=last_ms))


# --- DispatchMessage --------------------------------------------------------------------------------------------------


def _truncate_index(parts: Parts, plan: _Plan) -> None:
    """The index keeps what is certainly durable; the rest is indexed again."""
    index = parts.index
    if index is None:
        return
    assert parts.log.wrote == plan.scan.valid_to, "the log is cut first"
    index.remove_empty()
    if plan.durable is None:
        keep_foreign = not parts.config.rebuild_index
        for file in tuple(index.files):
            is_flushed = plan.was_clean or file.header.end_ms <= plan.checkpoint.index_ms
            if not (keep_foreign and is_flushed and file.count and file.header.end_physical < plan.scan.valid_to):
                index.remove(file)
        _cut_last_indexed(parts, index)
        return
    end = plan.durable.index_end
    index.remove_after(end)
    if index.files and (index.files[-1].count != end.count or not plan.is_settled):
        _cut_index_file(parts, index.files[-1], end.count)


def _cut_last_indexed(parts: Parts, index: Index) -> None:
    """Takes the newest record out of an index that nobody vouches for: the file with its other keys may be missing. If
    the log still has the record, it is indexed again."""
    last = index.last_physical
    while index.files and last == index.last_physical >= parts.log.log_min:
        file, count = index.files[-1], index.files[-1].count
        while count and file.entry(count).physical_offset == last:
            count -= 1
        if count:
            _cut_index_file(parts, file, count)
        else:
            index.remove(file)


def _cut_index_file(parts: Parts, file: IndexFile, count: int) -> None:
    """Cuts an index file after `count` entries; its end time becomes that of the last one that stays."""
    assert count > 0
    last = file.entry(count)
    record = parts.log.record_at(last.physical_offset)
    end_ms = file.header.begin_ms + 1000 * last.seconds
    if record is not None:
        end_ms = parts.log.store_time(last.physical_offset, len(record))
    file.keep(count, end_ms)


def _catch_up(parts: Parts, plan: _Plan) -> None:
    """Dispatches every record that is not certainly in its queue and in the index."""
    log = parts.log
    begin = log.log_min
    if plan.durable is not None:
        begin = max(begin, plan.durable.queues_to)
        if parts.index is not None:
            begin = max(log.log_min, min(begin, plan.durable.index_to))
        parts.dispatched_ms = plan.checkpoint.queue_ms
    assert log.log_min <= begin
    parts.dispatched_to = begin
    for key, queue in parts.queues.items():
        parts.queue_offsets[key] = queue.end
    while parts.dispatched_to < log.wrote:
        before = parts.dispatched_to
        plan.dispatched += len(dispatch_up_to(parts, log.wrote, _records_at_once(parts)))
        assert parts.dispatched_to > before, "a scanned record can be dispatched"
    for key, queue in parts.queues.items():
        parts.queue_offsets[key] = queue.end
        queue.correct_min_offset(log.log_min)


def _records_at_once(parts: Parts) -> int:
    """How many records are dispatched at once. Their results are kept until then, so memory sets the bound."""
    return max(1, parts.config.piece_bytes // RECORD_BYTES_MIN)
