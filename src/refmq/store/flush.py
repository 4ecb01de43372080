"""FlushLog, FlushQueue, FlushIndex, WriteCheckpoint: what becomes durable when.

The rules of 4.9.8 go by time and by full pages. `FlushClock` remembers when each was last applied:

    what            every      if that many pages are full    everything
    log, async      500 ms     4                              every 10 s
    queues          1 s        2, for each queue              every 60 s, with index and checkpoint
    commit (pool)   200 ms     4                              every 200 ms

With sync flush the log is flushed by whoever waits for it. The checkpoint is written after the flushes that it talks
about, with what was true before they started.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from refmq.model.ids import PhysicalOffset, TimestampMs
from refmq.model.step import Event
from refmq.store.checkpoint import Checkpoint, Durable
from refmq.store.checkpoint import write_checkpoint as write_checkpoint_file
from refmq.store.config import StoreConfig
from refmq.store.consume_queue import ConsumeQueue
from refmq.store.index_file import IndexEnd
from refmq.store.parts import Parts

_U32: Final = 0xFFFF_FFFF


@dataclass(slots=True)
class FlushClock:
    """When each flush was last done, by the caller's clock."""

    log_ms: int = 0
    log_thorough_ms: int = 0
    queue_ms: int = 0
    queue_thorough_ms: int = 0
    commit_ms: int = 0
    commit_thorough_ms: int = 0

    def start(self, now_ms: int) -> None:
        self.log_ms = self.log_thorough_ms = self.queue_ms = self.queue_thorough_ms = now_ms
        self.commit_ms = self.commit_thorough_ms = now_ms


def _is_over(interval_ms: int, since_ms: int, now_ms: int) -> bool:
    """Whether an interval has passed. If the clock was set back nobody knows, and it counts as passed."""
    assert interval_ms >= 0
    return not 0 <= now_ms - since_ms < interval_ms


def log_flush_pages_due(config: StoreConfig, clock: FlushClock, now_ms: int) -> int | None:
    """How many pages must be full for the log to be flushed now; None if it is not time."""
    if not _is_over(config.log_flush_interval_ms, clock.log_ms, now_ms):
        return None
    return 0 if _is_over(config.log_flush_thorough_ms, clock.log_thorough_ms, now_ms) else config.log_flush_pages


def queue_flush_pages_due(config: StoreConfig, clock: FlushClock, now_ms: int) -> int | None:
    """The same for the queues."""
    if not _is_over(config.queue_flush_interval_ms, clock.queue_ms, now_ms):
        return None
    return 0 if _is_over(config.queue_flush_thorough_ms, clock.queue_thorough_ms, now_ms) else config.queue_flush_pages


def commit_pages_due(config: StoreConfig, clock: FlushClock, now_ms: int) -> int | None:
    """The same for handing the transient pool's bytes to the file."""
    if not _is_over(config.commit_interval_ms, clock.commit_ms, now_ms):
        return None
    return 0 if _is_over(config.commit_thorough_ms, clock.commit_thorough_ms, now_ms) else config.commit_pages


async def flush_log(parts: Parts) -> PhysicalOffset:
    """Makes the log durable as far as it is readable now."""
    before = parts.log.flushed
    flushed = await parts.log.flush()
    assert flushed >= before or flushed == parts.log.readable, "what is durable stays durable, unless the log was cut"
    if parts.emit is not None and flushed > before:
        parts.emit(Event("FlushLog", a=flushed, b=parts.log.flushed_store_ms))
    return flushed


async def flush_queue(parts: Parts, queue: ConsumeQueue) -> None:
    """Makes one queue durable as far as it is written now."""
    flushed = await queue.flush()
    assert flushed <= queue.end
    key = (queue.topic, queue.queue_id)
    if parts.queues.get(key) is queue and queue.files.flushed == queue.files.wrote:  # not another one of this name
        parts.dirty_queues.discard(key)
    if parts.emit is not None:
        parts.emit(Event("FlushQueue", "", queue.topic, queue.queue_id, flushed))


async def flush_queues(parts: Parts, least_pages: int) -> None:
    """Makes the queues durable that have at least that many full pages; all of them for 0."""
    assert least_pages >= 0
    for key in sorted(parts.dirty_queues):
        queue = parts.queues.get(key)
        if queue is None or (least_pages and queue.pages_to_flush(parts.config.flush_page_bytes) < least_pages):
            continue
        await flush_queue(parts, queue)


async def flush_index(parts: Parts) -> None:
    """Makes the index durable as it is now."""
    if parts.index is None:
        return
    last, entries_to = parts.index.last_physical, parts.dispatched_to
    await parts.index.flush()
    if parts.emit is not None:
        parts.emit(Event("FlushIndex", a=last, b=entries_to))


async def write_checkpoint(parts: Parts, *, is_clean: bool = False) -> Checkpoint | None:
    """Flushes everything and records how far everything is durable: what was true before the flushes started.

    None if a message is half indexed because the disk was full: then nothing is certain.
    """
    dispatched_to, queue_sum, queue_ms = parts.dispatched_to, parts.queue_sum, parts.dispatched_ms
    index_end = parts.index.end if parts.index is not None else IndexEnd()
    if index_end.last >= dispatched_to:
        return None
    index_ms, queue_ms = _stamps_for_java(parts, queue_ms)
    log_to = await flush_log(parts)
    log_ms = parts.log.flushed_store_ms
    await flush_queues(parts, 0)
    await flush_index(parts)
    await parts.names.flush_all()
    assert log_to >= dispatched_to, "a queue is never ahead of its log"
    durable = Durable(log_to, dispatched_to, dispatched_to, queue_sum, index_end, is_clean)
    checkpoint = Checkpoint(log_ms, queue_ms, index_ms, durable)
    await write_checkpoint_file(parts.disk, parts.names, checkpoint)
    parts.checkpointed_to = dispatched_to
    if parts.emit is not None:
        parts.emit(Event("WriteCheckpoint", a=log_ms, b=queue_ms, c=index_ms, d=dispatched_to & _U32))
    return checkpoint


def _stamps_for_java(parts: Parts, queue_ms: TimestampMs) -> tuple[TimestampMs, TimestampMs]:
    """Index and queue stamp as Java needs them; our own recovery goes by offsets.

    After an unclean stop Java deletes every index file that ends after the index stamp, and indexes again from a log
    file that is older than the queue stamp. So the index stamp is the end of the last full index file, and the queue
    stamp is not newer than the start of the file after it: then no key is lost when Java opens our store.
    """
    if parts.index is None:
        return TimestampMs(0), queue_ms
    # A store time that is damaged may be negative.
    index_ms = max(0, *(file.header.end_ms for file in parts.index.files if file.is_full), 0)
    for file in parts.index.files:
        if file.count and file.header.end_ms > index_ms:
            queue_ms = TimestampMs(min(queue_ms, file.header.begin_ms))
    return TimestampMs(index_ms), queue_ms
