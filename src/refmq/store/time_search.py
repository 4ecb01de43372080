"""From a time to a message of a queue, by bisection over the store times of its records.

Store times grow along a queue (`append.store_time`), so the search is exact. In a queue that Java wrote while its clock
was set back it finds some message near the time, as Java does.
"""

from __future__ import annotations

from refmq.model.ids import QueueOffset, TimestampMs
from refmq.store.consume_queue import ConsumeQueue
from refmq.store.parts import Parts
from refmq.store.values import Boundary


def offset_by_time(
    parts: Parts, topic: str, queue_id: int, timestamp_ms: TimestampMs, boundary: Boundary
) -> QueueOffset:
    """The queue offset that `boundary` asks for; 0 for a queue without messages."""
    queue = parts.queues.get((topic, queue_id))
    if queue is None or queue.dispatched_end == 0:
        return QueueOffset(0)
    queue.min_at(parts.log.log_min)
    low = _first_at_or_after(parts, queue, timestamp_ms)
    match boundary:
        case Boundary.LOWER:
            return QueueOffset(low)
        case Boundary.UPPER:
            return QueueOffset(max(queue.min_offset, _first_at_or_after(parts, queue, timestamp_ms + 1) - 1))
        case Boundary.NEAREST:
            return QueueOffset(_nearest(parts, queue, timestamp_ms, low))


def _first_at_or_after(parts: Parts, queue: ConsumeQueue, timestamp_ms: int) -> int:
    low, high = int(queue.min_offset), int(queue.dispatched_end)
    while low < high:
        middle = (low + high) // 2
        # A message that can no longer be read (-1) counts as older than any time.
        if unit_store_time(parts, queue, middle) >= timestamp_ms:
            high = middle
        else:
            low = middle + 1
    assert queue.min_offset <= low
    assert low <= max(queue.min_offset, queue.dispatched_end)
    return low


def _nearest(parts: Parts, queue: ConsumeQueue, timestamp_ms: int, low: int) -> int:
    """4.9.8: the nearer of two neighbours, the earlier one if both are equally near; past the end, the last one."""
    assert low >= queue.min_offset
    if low >= queue.dispatched_end:
        return max(queue.min_offset, queue.dispatched_end - 1)
    if low == queue.min_offset:
        return low
    after = unit_store_time(parts, queue, low)
    before = unit_store_time(parts, queue, low - 1)
    if after == timestamp_ms or before < 0:
        return low
    return low - 1 if timestamp_ms - before <= after - timestamp_ms else low


def unit_store_time(parts: Parts, queue: ConsumeQueue, queue_offset: int) -> TimestampMs:
    """When the message was stored; -1 if it cannot be read."""
    unit = queue.unit(queue_offset) if queue_offset < queue.dispatched_end else None
    return parts.log.store_time(unit[0], unit[1]) if unit is not None else TimestampMs(-1)
