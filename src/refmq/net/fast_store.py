"""The C store as a `MessageStore`: the same calls, the same files and the same order of effects as `ReferenceStore`.

The work is done in C, over the same `Disk` object; over a `PosixDisk` no call of the disk goes through Python. What is
left here is recovery, which is the reference's, turning values into numbers and bytes, and performing the operations
that a flush waits for.

Refused with `UsageError`, because C does not have it: extension files (`enableConsumeQueueExt`), the transient pool,
and more than 64 delay levels.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Final

import refmq_fast
from refmq.errors import DiskError, UsageError
from refmq.filter.message_filter import MatchAll, MessageFilter
from refmq.filter.registry import Filters
from refmq.model.disk import Disk, DiskLock
from refmq.model.ids import PhysicalOffset, QueueOffset, TimestampMs
from refmq.net import posix_disk
from refmq.net.posix_disk import PosixDisk
from refmq.store.commit_log import LOG_DIRECTORY
from refmq.store.config import FlushMode, OnDamage, StoreConfig
from refmq.store.consume_queue import QUEUE_DIRECTORY
from refmq.store.delay import DelayLevels
from refmq.store.parts import Emit, Parts
from refmq.store.positions import Positions, positions_of
from refmq.store.recover import recover
from refmq.store.store import LOCK_FILE
from refmq.store.values import (
    AppendPlan,
    BatchToStore,
    Boundary,
    Dispatched,
    GetResult,
    GetStatus,
    LogPiece,
    MessageToStore,
    Place,
    PutStatus,
    QueryResult,
    QueueId,
    QueueUnit,
    RecoveryReport,
)

TAIL_BYTES_DEFAULT: Final = 4000
"""How much of a busy queue is kept in memory before it is written: 200 units. A start builds again what a dead process
had not written, because it believes queues up to the checkpoint only."""

INDEX_PAGES_DEFAULT: Final = 8192
"""How many pages of 4 KiB of an index file are kept in memory, as far as they were changed, until the index is flushed.
All slots of a file of Java's size are 4883 pages."""

DELAY_LEVELS_MAX: Final = 64
_BOUNDARIES: Final = {Boundary.LOWER: 0, Boundary.UPPER: 1, Boundary.NEAREST: 2}


def refusal_of(config: StoreConfig) -> str | None:
    """What the C store does not have of a configuration, in a sentence; None if it can serve it."""
    if config.ext_enabled:
        return "the C store has no extension files (enableConsumeQueueExt)"
    if config.uses_transient_pool:
        return "the C store has no transient pool (transientStorePoolEnable)"
    if DelayLevels.parse(config.delay_levels).level_max > DELAY_LEVELS_MAX:
        return f"the C store has room for {DELAY_LEVELS_MAX} delay levels"
    return None


class FastStore:
    """A store in C over a disk. See `refmq.store.api.MessageStore` for what its calls promise."""

    def __init__(
        self,
        disk: Disk,
        config: StoreConfig | None = None,
        *,
        emit: Emit | None = None,
        notes: refmq_fast.Notes | None = None,
        filters: Filters | None = None,
        log_tail_bytes: int = 0,
        tail_bytes: int = TAIL_BYTES_DEFAULT,
        index_pages: int = INDEX_PAGES_DEFAULT,
        hash_seed: int = 0,
    ) -> None:
        """`emit` gets one event for every step taken; with `notes` only for those of a recovery, and all others are
        noted. `filters` are not used: there are no extension files. With `log_tail_bytes` a thread in C writes the
        records of a turn at once. `hash_seed` is a number that nobody can guess, where names of topics come from
        strangers."""
        self.config = config or StoreConfig()
        refusal = refusal_of(self.config)
        if refusal is not None:
            raise UsageError(refusal)
        if tail_bytes < 0 or index_pages < 0:
            raise UsageError(f"a tail of {tail_bytes} bytes and {index_pages} pages of an index cannot be in memory")
        self._disk = disk
        self._emit = emit
        self._notes = notes
        self._log_tail_bytes = log_tail_bytes
        self._tail_bytes = tail_bytes
        self._index_pages = index_pages
        self.hash_seed = hash_seed
        self._native: refmq_fast.Store | None = None
        self._lock: DiskLock | None = None
        self._failure: DiskError | None = None
        self._is_slave = self.config.is_slave

    @property
    def native(self) -> refmq_fast.Store:
        """The started store itself, for the C plane above it."""
        return self._store

    @contextlib.contextmanager
    def alone(self) -> Iterator[None]:
        """Keeps the threads of a shell out of the store, for a step of several calls."""
        native = self._store
        native.hold()
        try:
            yield
        finally:
            native.let_go()

    @property
    def _store(self) -> refmq_fast.Store:
        if self._native is None:
            raise UsageError("the store is not started")
        return self._native

    # --- life --------------------------------------------------------------------------------------------------------

    async def start(self, now_ms: TimestampMs) -> RecoveryReport:
        if self._native is not None:
            raise UsageError("the store is started already")
        lock = self._disk.lock(LOCK_FILE)
        parts = Parts.over(self._disk, self.config, self._emit)
        parts.scan_records = refmq_fast.scan_records
        try:
            for directory in (LOG_DIRECTORY, QUEUE_DIRECTORY):
                if not self._disk.is_directory(directory):
                    self._disk.make_directory(directory)
                    parts.names.made(directory)
            report = await recover(parts, now_ms)
            positions = positions_of(parts)
            parts.close()
            native = self._opened(positions, now_ms)
        except BaseException:
            parts.close()
            lock.release()
            raise
        self._native, self._lock, self._failure = native, lock, None
        return report

    def _opened(self, positions: Positions, now_ms: TimestampMs) -> refmq_fast.Store:
        disk = self._disk.native if isinstance(self._disk, PosixDisk) else self._disk
        store = refmq_fast.Store(disk, self._settings(), self._notes or self._emit)
        try:
            for path, changed, flushed in positions.names:
                store.open_name(path, changed, flushed)
            log = positions.log
            store.open_log(
                log.bases, log.wrote, log.flushed, log.zeroed_base, positions.last_store_ms, positions.flushed_store_ms
            )
            for queue in positions.queues:
                files = queue.files
                store.open_queue(
                    queue.topic.encode(),
                    queue.queue_id,
                    files.bases,
                    files.wrote,
                    files.flushed,
                    files.zeroed_base,
                    queue.min_offset,
                    queue.log_min,
                    queue.last_physical_end,
                    queue.dispatched_end,
                    queue.is_dirty,
                )
            for topic, queue_id, offset in positions.queue_offsets:
                store.open_offset(topic.encode(), queue_id, offset)
            for name in positions.index_files:
                store.open_index_file(name)
            store.open_done(positions.dispatched_to, positions.dispatched_ms, positions.checkpointed_to, now_ms)
        except BaseException:
            store.close()
            raise
        return store

    def _settings(self) -> dict[str, int | tuple[int, ...]]:
        config = self.config
        names = (
            "log_file_bytes queue_file_bytes index_enabled index_slots index_entries piece_bytes message_bytes_max "
            "query_count_max read_units_min memory_transfer_bytes_max memory_transfer_count_max "
            "disk_transfer_bytes_max disk_transfer_count_max memory_bytes memory_ratio_percent flush_page_bytes "
            "log_flush_interval_ms log_flush_pages log_flush_thorough_ms queue_flush_interval_ms queue_flush_pages "
            "queue_flush_thorough_ms file_reserved_ms delete_files_max disk_used_percent_max "
            "disk_clean_forcibly_percent disk_full_percent clean_forcibly correct_offsets_on_slave "
            "dispatch_unflushed ignore_flush_failure keep_clock_steps delete_when"
        )
        return {
            **{name: getattr(config, name) for name in names.split()},
            "sync_flush": config.flush_mode is FlushMode.SYNC,
            "is_slave": self._is_slave,
            "cut_damage": config.on_damage is OnDamage.CUT,
            "delays_ms": DelayLevels.parse(config.delay_levels).delays_ms,
            "log_tail_bytes": self._log_tail_bytes,
            "tail_bytes": self._tail_bytes,
            "index_pages": self._index_pages,
            "hash_seed": self.hash_seed,
        }

    async def stop(self, now_ms: TimestampMs) -> None:
        job = self._store.start_stop()
        is_stopped = True
        try:
            await self._drive(job)
        except UsageError:
            is_stopped = False  # `maintain` is under way: the caller is wrong, and the store goes on
            raise
        finally:
            if is_stopped:
                self._store.close()
                assert self._lock is not None
                self._lock.release()
                self._native = self._lock = None

    async def _drive(self, job: refmq_fast.Job) -> int:
        """Performs what a job wants performed, to its end."""
        error: BaseException | None = None
        try:
            while (operation := job.next(error)) is not None:
                error = None
                try:
                    await self._perform(operation)
                except BaseException as reason:
                    error = reason
        finally:
            error = None  # it knows this frame, and the frame would know it
            self._note_failure()
        return job.result

    async def _perform(self, operation: refmq_fast.Operation) -> None:
        if isinstance(operation, refmq_fast.DiskWork):
            await posix_disk.perform(operation, alone=self.alone)
            return
        file, start, end, directory = operation
        if file is not None:
            await file.flush(start, end)
        else:
            assert directory is not None
            await self._disk.flush_directory(directory)

    def _note_failure(self) -> None:
        if self._native is not None:
            self._failure = self._native.failure

    # --- write -------------------------------------------------------------------------------------------------------

    @property
    def disk_used_ratio(self) -> float:
        if self._native is None:
            return self._disk.usage("").used_ratio
        with self.alone():
            return self._disk.usage("").used_ratio

    @property
    def accepts_puts(self) -> bool:
        return self._native is not None and self._native.accepts_puts

    @property
    def failure(self) -> DiskError | None:
        return self._failure

    def plan_message(self, message: MessageToStore, now_ms: TimestampMs) -> AppendPlan | PutStatus:
        if self._native is None or not self._native.accepts_puts:
            return PutStatus.SERVICE_NOT_AVAILABLE
        born, store = message.born_host, message.store_host
        try:
            planned = self._native.plan_message(
                _utf8(message.topic),
                message.queue_id,
                message.body,
                message.properties,
                message.born_timestamp_ms,
                born.ip,
                born.port,
                store.ip,
                store.port,
                message.flag,
                message.sys_flag,
                message.reconsume_times,
                message.prepared_transaction_offset,
                message.delay_level,
                now_ms,
            )
        except OverflowError:  # a number that fits no field
            return PutStatus.MESSAGE_ILLEGAL
        return _plan(planned)

    def plan_batch(self, batch: BatchToStore, now_ms: TimestampMs) -> AppendPlan | PutStatus:
        if self._native is None or not self._native.accepts_puts:
            return PutStatus.SERVICE_NOT_AVAILABLE
        born, store = batch.born_host, batch.store_host
        try:
            planned = self._native.plan_batch(
                _utf8(batch.topic),
                batch.queue_id,
                batch.messages,
                batch.properties,
                batch.born_timestamp_ms,
                born.ip,
                born.port,
                store.ip,
                store.port,
                0,
                batch.sys_flag,
                batch.reconsume_times,
                0,
                batch.delay_level,
                now_ms,
            )
        except OverflowError:
            return PutStatus.MESSAGE_ILLEGAL
        return _plan(planned)

    def append(self, plan: AppendPlan) -> PutStatus:
        if self._native is None or not self._native.accepts_puts:
            return PutStatus.SERVICE_NOT_AVAILABLE
        try:
            status = self._native.append(
                plan.physical_offset,
                plan.data,
                _utf8(plan.topic),
                plan.queue_id,
                plan.queue_offset,
                plan.durable_at,
                plan.store_timestamp_ms,
                plan.places,
                plan.is_queued,
            )
        finally:
            self._note_failure()
        return PutStatus(status)

    async def flush(self) -> PhysicalOffset:
        return PhysicalOffset(await self._drive(self._store.start_flush()))

    def dispatch(self, count_max: int) -> tuple[Dispatched, ...]:
        return tuple(map(Dispatched._make, self._store.dispatch(count_max)))

    async def maintain(self, now_ms: TimestampMs) -> None:
        await self._drive(self._store.start_maintain(now_ms))

    async def clean_queues(self) -> None:
        await self._drive(self._store.start_clean_queues())

    async def clean(self, now_ms: TimestampMs, local_hour: int | None) -> int:
        return await self._drive(self._store.start_clean(now_ms, -1 if local_hour is None else local_hour))

    # --- read --------------------------------------------------------------------------------------------------------

    def get_message(
        self,
        topic: str,
        queue_id: int,
        queue_offset: QueueOffset,
        count_max: int,
        message_filter: MessageFilter = MatchAll,
    ) -> GetResult:
        codes = None if message_filter.tag_codes is None else tuple(message_filter.tag_codes)
        matches = message_filter.matches_properties if message_filter.reads_properties else None
        status, following, low, high, records, suggest_slave = self._store.get_message(
            _utf8(topic), queue_id, queue_offset, count_max, codes, matches, message_filter.terms
        )
        return GetResult(
            GetStatus(status), QueueOffset(following), QueueOffset(low), QueueOffset(high), records, suggest_slave
        )

    def min_offset(self, topic: str, queue_id: int) -> QueueOffset:
        return QueueOffset(self._store.min_offset(_utf8(topic), queue_id))

    def max_offset(self, topic: str, queue_id: int) -> QueueOffset:
        return QueueOffset(self._store.max_offset(_utf8(topic), queue_id))

    def offset_by_time(self, topic: str, queue_id: int, timestamp_ms: TimestampMs, boundary: Boundary) -> QueueOffset:
        return QueueOffset(self._store.offset_by_time(_utf8(topic), queue_id, timestamp_ms, _BOUNDARIES[boundary]))

    def store_time(self, topic: str, queue_id: int, queue_offset: QueueOffset) -> TimestampMs:
        return TimestampMs(self._store.store_time(_utf8(topic), queue_id, queue_offset))

    def units(self, topic: str, queue_id: int, queue_offset: QueueOffset, count_max: int) -> tuple[QueueUnit, ...]:
        return tuple(
            QueueUnit(QueueOffset(offset), PhysicalOffset(physical_offset), size, tags_code)
            for offset, physical_offset, size, tags_code in self._store.units(
                _utf8(topic), queue_id, queue_offset, count_max
            )
        )

    def message_at(self, physical_offset: PhysicalOffset) -> bytes | None:
        return self._store.message_at(physical_offset)

    def query_by_key(
        self, topic: str, key: str, count_max: int, begin_ms: TimestampMs, end_ms: TimestampMs
    ) -> QueryResult:
        is_text = key.isascii() or key == key.encode(errors="replace").decode()
        records, last_ms, last = self._store.query_by_key(
            _utf8(topic), _utf8(key), count_max if is_text else 0, begin_ms, end_ms
        )
        return QueryResult(records, TimestampMs(last_ms), PhysicalOffset(last))

    def queues(self) -> tuple[QueueId, ...]:
        return tuple(QueueId(topic, queue_id) for topic, queue_id in sorted(self._store.queues()))

    # --- the log as replication sees it ------------------------------------------------------------------------------

    @property
    def log_min(self) -> PhysicalOffset:
        return PhysicalOffset(self._store.positions()[0])

    @property
    def log_max(self) -> PhysicalOffset:
        return PhysicalOffset(self._store.positions()[1])

    @property
    def received_to(self) -> PhysicalOffset:
        return PhysicalOffset(self._store.positions()[2])

    @property
    def flushed_to(self) -> PhysicalOffset:
        return PhysicalOffset(self._store.positions()[3])

    @property
    def dispatched_to(self) -> PhysicalOffset:
        return PhysicalOffset(self._store.positions()[4])

    def read_log(self, physical_offset: PhysicalOffset, length_max: int) -> LogPiece | None:
        data = self._store.read_log(physical_offset, length_max)
        return LogPiece(physical_offset, data) if data else None

    def append_log(self, piece: LogPiece) -> None:
        self._store.append_log(piece.physical_offset, piece.data)

    # --- administration ----------------------------------------------------------------------------------------------

    def set_filters(self, filters: Filters | None) -> None:
        """Nothing is computed from them: there are no extension files."""

    def set_slave(self, is_slave: bool) -> None:
        self._store.set_slave(is_slave)
        self._is_slave = is_slave

    def delete_topic(self, topic: str) -> int:
        return self._store.delete_topic(_utf8(topic))


def _utf8(text: str) -> bytes:
    """Half a surrogate pair becomes bytes that are not UTF-8: no topic and no key is called so."""
    return text.encode("utf-8", "surrogatepass")


def _plan(planned: int | tuple[object, ...]) -> AppendPlan | PutStatus:
    if isinstance(planned, int):
        return PutStatus(planned)
    *fields, places, is_queued = planned
    return AppendPlan._make([*fields, tuple(map(Place._make, places)), is_queued])  # type: ignore[call-overload]  # C gives a tuple of tuples there
