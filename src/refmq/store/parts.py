"""The parts of a store, as its steps share them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from refmq.filter.registry import Filters
from refmq.model.disk import Disk
from refmq.model.ids import PhysicalOffset, TimestampMs
from refmq.model.step import EventFields
from refmq.store.commit_log import CommitLog
from refmq.store.config import FlushMode, StoreConfig
from refmq.store.consume_queue import ConsumeQueue
from refmq.store.delay import DelayLevels
from refmq.store.file_sequence import DirectoryNames
from refmq.store.index import Index
from refmq.store.scan import ScanRecords

Emit = Callable[[EventFields], None]


@dataclass(slots=True)
class Parts:
    """Log, queues and index over one disk, and what has been dispatched."""

    disk: Disk
    config: StoreConfig
    emit: Emit | None
    filters: Filters | None
    names: DirectoryNames
    log: CommitLog
    index: Index | None
    delay: DelayLevels
    scan_records: ScanRecords | None = None
    """How a recovery passes sound records faster; None for the way that says what soundness is."""
    queues: dict[tuple[str, int], ConsumeQueue] = field(default_factory=dict)
    queue_offsets: dict[tuple[str, int], int] = field(default_factory=dict)
    """The queue offset of the next message of a queue: ahead of the queue while records wait for dispatch."""
    dirty_queues: set[tuple[str, int]] = field(default_factory=set)
    dispatched_to: PhysicalOffset = PhysicalOffset(0)  # noqa: RUF009 - a NewType is no call
    dispatched_ms: TimestampMs = TimestampMs(0)  # noqa: RUF009 - the same
    """Store time of the newest dispatched record."""
    checkpointed_to: PhysicalOffset = PhysicalOffset(0)  # noqa: RUF009 - the same
    """How far the log was dispatched at the last checkpoint: a start finds that much durable and resumes there."""

    @classmethod
    def over(cls, disk: Disk, config: StoreConfig, emit: Emit | None = None, filters: Filters | None = None) -> Parts:
        names = DirectoryNames(disk)
        return cls(
            disk=disk,
            config=config,
            emit=emit,
            filters=filters,
            names=names,
            log=CommitLog(disk, names, config),
            index=Index(disk, names, config) if config.index_enabled else None,
            delay=DelayLevels.parse(config.delay_levels),
        )

    def queue_for(self, topic: str, queue_id: int) -> ConsumeQueue:
        """The queue, created if it is new."""
        assert queue_id >= 0
        key = (topic, queue_id)
        queue = self.queues.get(key)
        if queue is None:
            queue = self.queues[key] = ConsumeQueue(self.disk, self.names, topic, queue_id, self.config)
        return queue

    def forget_queue(self, key: tuple[str, int]) -> None:
        """Removes a queue with its files. Its offsets start at 0 again."""
        queue = self.queues.pop(key)
        assert (queue.topic, queue.queue_id) == key
        queue.remove()
        self.queue_offsets.pop(key, None)
        self.dirty_queues.discard(key)

    @property
    def queue_sum(self) -> int:
        """Sum of the ends of all queues. The checkpoint remembers it, so that a queue that lost units is noticed."""
        return sum(queue.dispatched_end for queue in self.queues.values())

    @property
    def dispatch_bound(self) -> PhysicalOffset:
        """NeverServeUnflushed: with sync flush a record gets its unit only when it is durable."""
        if self.config.flush_mode is FlushMode.SYNC and not self.config.dispatch_unflushed:
            return self.log.flushed
        return self.log.readable

    def close(self) -> None:
        self.log.files.close()
        for queue in self.queues.values():
            queue.close()
        if self.index is not None:
            self.index.close()
