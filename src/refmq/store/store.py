"""The reference store: a `MessageStore` to be read beside spec/store_recovery.

The work is done in the modules of the steps; this one holds the state of the store as a whole: is it running, may it
accept puts, has a flush failed.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

from refmq.errors import DiskError, DiskFailed, DiskFull, UsageError
from refmq.filter.message_filter import MatchAll, MessageFilter
from refmq.filter.registry import Filters
from refmq.model.disk import Disk, DiskLock
from refmq.model.ids import PhysicalOffset, QueueOffset, TimestampMs
from refmq.store.append import append_message, plan_batch, plan_message
from refmq.store.clean import Pressure, disk_pressure, expire_files, follow_log_min
from refmq.store.commit_log import LOG_DIRECTORY
from refmq.store.config import FlushMode, StoreConfig
from refmq.store.consume_queue import QUEUE_DIRECTORY
from refmq.store.dispatch import dispatch_into, take_over_offsets
from refmq.store.flush import (
    FlushClock,
    commit_pages_due,
    flush_log,
    flush_queues,
    log_flush_pages_due,
    queue_flush_pages_due,
    write_checkpoint,
)
from refmq.store.get import get_message, query_by_key, units_from
from refmq.store.parts import Emit, Parts
from refmq.store.recover import recover, stop_store
from refmq.store.time_search import offset_by_time, unit_store_time
from refmq.store.values import (
    AppendPlan,
    BatchToStore,
    Boundary,
    Dispatched,
    GetResult,
    LogPiece,
    MessageToStore,
    PutStatus,
    QueryResult,
    QueueId,
    QueueUnit,
    RecoveryReport,
)

LOCK_FILE = "lock"


class ReferenceStore:
    """A store over a disk. See `refmq.store.api.MessageStore` for what its calls promise."""

    def __init__(
        self,
        disk: Disk,
        config: StoreConfig | None = None,
        *,
        emit: Emit | None = None,
        filters: Filters | None = None,
    ) -> None:
        """`emit` gets one event for every step taken. `filters` are what the extension files are written from."""
        self.config = config or StoreConfig()
        self._disk = disk
        self._emit = emit
        self._filters = filters
        self._parts: Parts | None = None
        self._lock: DiskLock | None = None
        self._clock = FlushClock()
        self._failure: DiskError | None = None
        self._pressure = Pressure()
        self._lacks_room: set[str] = set()
        """Which of `dispatch` and `maintain` found the disk full at their last attempt."""
        self._is_maintaining = False
        self._is_stopping = False
        self._wants_checkpoint = False

    @property
    def parts(self) -> Parts:
        """Log, queues and index; for tools that look inside."""
        if self._parts is None:
            raise UsageError("the store is not started")
        return self._parts

    # --- life --------------------------------------------------------------------------------------------------------

    async def start(self, now_ms: TimestampMs) -> RecoveryReport:
        if self._parts is not None:
            raise UsageError("the store is started already")
        assert self._lock is None
        lock = self._disk.lock(LOCK_FILE)
        parts = Parts.over(self._disk, self.config, self._emit, self._filters)
        try:
            for directory in (LOG_DIRECTORY, QUEUE_DIRECTORY):
                if not self._disk.is_directory(directory):
                    self._disk.make_directory(directory)
                    parts.names.made(directory)
            report = await recover(parts, now_ms)
        except BaseException:
            parts.close()
            lock.release()
            raise
        self._parts, self._lock, self._failure = parts, lock, None
        self._lacks_room, self._wants_checkpoint = set(), False
        self._clock.start(now_ms)
        self._pressure = disk_pressure(parts)
        return report

    async def stop(self, now_ms: TimestampMs) -> None:
        parts = self.parts
        if self._is_maintaining:
            raise UsageError("the store is stopped while `maintain` is under way")
        self._is_maintaining = self._is_stopping = True  # nothing is accepted from here on
        try:
            if self._failure is not None:
                raise self._failure
            await stop_store(parts)
        finally:
            parts.close()
            assert self._lock is not None
            self._lock.release()
            self._parts = self._lock = None
            self._is_maintaining = self._is_stopping = False

    # --- write -------------------------------------------------------------------------------------------------------

    @property
    def disk_used_ratio(self) -> float:
        return self._disk.usage("").used_ratio

    @property
    def accepts_puts(self) -> bool:
        return (
            self._parts is not None
            and self._failure is None
            and not self._lacks_room
            and not self._pressure.is_full
            and not self._is_stopping
            and not self._parts.config.is_slave
        )

    @property
    def failure(self) -> DiskError | None:
        return self._failure

    def plan_message(self, message: MessageToStore, now_ms: TimestampMs) -> AppendPlan | PutStatus:
        if self._parts is None or not self.accepts_puts:
            return PutStatus.SERVICE_NOT_AVAILABLE
        return plan_message(self._parts, message, now_ms)

    def plan_batch(self, batch: BatchToStore, now_ms: TimestampMs) -> AppendPlan | PutStatus:
        if self._parts is None or not self.accepts_puts:
            return PutStatus.SERVICE_NOT_AVAILABLE
        return plan_batch(self._parts, batch, now_ms)

    def append(self, plan: AppendPlan) -> PutStatus:
        if self._parts is None or not self.accepts_puts:
            return PutStatus.SERVICE_NOT_AVAILABLE
        try:
            return append_message(self._parts, plan)
        except DiskError as error:
            if not isinstance(error, DiskFull):  # a full disk may have room again, anything else stays wrong
                self._failure = error
            return PutStatus.SERVICE_NOT_AVAILABLE

    async def flush(self) -> PhysicalOffset:
        parts = self.parts
        if self._failure is not None:
            raise self._failure
        parts.log.commit()
        try:
            return await flush_log(parts)
        except DiskFailed as error:
            if not self.config.ignore_flush_failure:
                self._failure = error
                raise
            parts.log.files.flushed = parts.log.files.wrote
            return parts.log.flushed

    def dispatch(self, count_max: int) -> tuple[Dispatched, ...]:
        parts = self.parts
        bound = parts.dispatch_bound
        found: list[Dispatched] = []
        before = None
        try:
            while not found and before != parts.dispatched_to:
                before = parts.dispatched_to
                dispatch_into(found, parts, bound, count_max)
        except DiskFull:
            self._lacks_room.add("dispatch")
        else:
            self._lacks_room.discard("dispatch")
        return tuple(found)

    async def maintain(self, now_ms: TimestampMs) -> None:
        parts, clock = self.parts, self._clock
        if self._is_maintaining or self._failure is not None:
            return
        self._is_maintaining = True
        try:
            await self._maintain(parts, clock, now_ms)
        except DiskFull:
            self._wants_checkpoint = True  # nothing is wrong but the moment: the next round tries again
            self._lacks_room.add("maintain")
        except DiskFailed as error:
            if not self.config.ignore_flush_failure:
                self._failure = error
                raise
        finally:
            self._is_maintaining = False

    async def _maintain(self, parts: Parts, clock: FlushClock, now_ms: TimestampMs) -> None:
        pages = commit_pages_due(parts.config, clock, now_ms)
        if pages is not None:
            clock.commit_ms = now_ms
            clock.commit_thorough_ms = now_ms if pages == 0 else clock.commit_thorough_ms
            parts.log.commit(pages)
        pages = log_flush_pages_due(parts.config, clock, now_ms)
        if parts.config.flush_mode is FlushMode.SYNC:
            pages = 0  # what nobody waits for is made durable at once as well
        if pages is not None:
            clock.log_ms = now_ms
            clock.log_thorough_ms = now_ms if pages == 0 else clock.log_thorough_ms
            if parts.log.pages_to_flush() >= pages and parts.log.flushed < parts.log.readable:
                await flush_log(parts)
        pages = queue_flush_pages_due(parts.config, clock, now_ms)
        if self._wants_checkpoint:
            pages = 0
        if pages is not None:
            clock.queue_ms = now_ms
            if pages:
                await flush_queues(parts, pages)
            else:
                clock.queue_thorough_ms = now_ms
                self._wants_checkpoint = False  # before the wait: a topic that is deleted meanwhile wants the next one
                if await write_checkpoint(parts) is None:
                    self._wants_checkpoint = True
                else:
                    await follow_log_min(parts)  # a file may have had to stay until this checkpoint
                self._lacks_room.discard("maintain")

    async def clean_queues(self) -> None:
        if self._failure is None:  # otherwise nobody knows what is durable: nothing may go
            with self._noting_failures():
                await follow_log_min(self.parts)

    async def clean(self, now_ms: TimestampMs, local_hour: int | None) -> int:
        parts = self.parts
        self._pressure = disk_pressure(parts)
        if self._failure is not None:
            return 0
        with self._noting_failures():
            return await expire_files(parts, now_ms, local_hour, self._pressure)

    @contextmanager
    def _noting_failures(self) -> Iterator[None]:
        try:
            yield
        except DiskFailed as error:
            if not self.config.ignore_flush_failure:
                self._failure = error
            raise

    # --- read --------------------------------------------------------------------------------------------------------

    def get_message(
        self,
        topic: str,
        queue_id: int,
        queue_offset: QueueOffset,
        count_max: int,
        message_filter: MessageFilter = MatchAll,
    ) -> GetResult:
        return get_message(self.parts, topic, queue_id, queue_offset, count_max, message_filter)

    def min_offset(self, topic: str, queue_id: int) -> QueueOffset:
        queue = self.parts.queues.get((topic, queue_id))
        return queue.min_at(self.parts.log.log_min) if queue is not None else QueueOffset(0)

    def max_offset(self, topic: str, queue_id: int) -> QueueOffset:
        queue = self.parts.queues.get((topic, queue_id))
        return queue.dispatched_end if queue is not None else QueueOffset(0)

    def offset_by_time(self, topic: str, queue_id: int, timestamp_ms: TimestampMs, boundary: Boundary) -> QueueOffset:
        return offset_by_time(self.parts, topic, queue_id, timestamp_ms, boundary)

    def store_time(self, topic: str, queue_id: int, queue_offset: QueueOffset) -> TimestampMs:
        queue = self.parts.queues.get((topic, queue_id))
        return unit_store_time(self.parts, queue, queue_offset) if queue is not None else TimestampMs(-1)

    def units(self, topic: str, queue_id: int, queue_offset: QueueOffset, count_max: int) -> tuple[QueueUnit, ...]:
        return units_from(self.parts, topic, queue_id, queue_offset, count_max)

    def message_at(self, physical_offset: PhysicalOffset) -> bytes | None:
        return self.parts.log.record_at(physical_offset)

    def query_by_key(
        self, topic: str, key: str, count_max: int, begin_ms: TimestampMs, end_ms: TimestampMs
    ) -> QueryResult:
        return query_by_key(self.parts, topic, key, count_max, begin_ms, end_ms)

    def queues(self) -> tuple[QueueId, ...]:
        return tuple(QueueId(topic, queue_id) for topic, queue_id in sorted(self.parts.queues))

    # --- the log as replication sees it ------------------------------------------------------------------------------

    @property
    def log_min(self) -> PhysicalOffset:
        return self.parts.log.log_min

    @property
    def log_max(self) -> PhysicalOffset:
        return self.parts.log.readable

    @property
    def received_to(self) -> PhysicalOffset:
        return self.parts.log.received_to

    @property
    def flushed_to(self) -> PhysicalOffset:
        return self.parts.log.flushed

    @property
    def dispatched_to(self) -> PhysicalOffset:
        return self.parts.dispatched_to

    def read_log(self, physical_offset: PhysicalOffset, length_max: int) -> LogPiece | None:
        data = self.parts.log.read_up_to(physical_offset, length_max)
        return LogPiece(physical_offset, data) if data else None

    def append_log(self, piece: LogPiece) -> None:
        if self._is_stopping:
            raise UsageError("the store is stopping")
        if self._failure is not None:
            raise self._failure
        self.parts.log.append_raw(piece.physical_offset, piece.data)

    # --- administration ----------------------------------------------------------------------------------------------

    def set_filters(self, filters: Filters | None) -> None:
        self._filters = filters
        if self._parts is not None:
            self._parts.filters = filters

    def set_slave(self, is_slave: bool) -> None:
        """A slave that becomes the master continues after its last whole record: its master may have died in one."""
        parts = self.parts
        if parts.config.is_slave and not is_slave:
            parts.log.forget_incomplete()
            end = take_over_offsets(parts)
            if end < parts.log.wrote:
                parts.log.files.truncate(end)
                parts.log.end_at(end)
        parts.config = replace(parts.config, is_slave=is_slave)

    def delete_topic(self, topic: str) -> int:
        parts = self.parts
        keys = [key for key in parts.queues if key[0] == topic]
        offsets = {key: offset for key, offset in parts.queue_offsets.items() if key[0] == topic}
        for key in keys:
            parts.forget_queue(key)
        for key in offsets:
            parts.queue_offsets.pop(key, None)
        if parts.dispatched_to < parts.log.wrote:
            # Records that wait for dispatch have their queue offsets already; the topic continues after them.
            parts.queue_offsets.update(offsets)
        assert not any(key[0] == topic for key in parts.queues)
        directory = f"{QUEUE_DIRECTORY}/{topic}"
        if keys and self._disk.is_directory(directory) and not self._disk.list(directory):
            self._disk.remove(directory)
            parts.names.changed(QUEUE_DIRECTORY)
        self._wants_checkpoint = True
        return len(keys)
