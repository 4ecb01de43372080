"""ServeMessage and its kin: reading a queue, looking up a record, finding messages by key.

How much one read returns (4.9.8, DefaultMessageStore):

    units looked at    max(800, count wanted), and never across two files of the queue
    messages           at most 32 and 256 KiB from memory; older ones come from disk, at most 8 and 64 KiB
    the first message  always, whatever its size

And what an expression may cost is bounded (`refmq.filter.work`), which upstream's is not.
"""

from __future__ import annotations

from refmq.filter.message_filter import MessageFilter
from refmq.filter.work import WORK_MAX, work_of
from refmq.model.fingerprint import message_fingerprint
from refmq.model.ids import PhysicalOffset, QueueOffset, TimestampMs
from refmq.model.step import Event
from refmq.protocol.record import KEY_SEPARATOR, decode_properties, decode_record
from refmq.store.append import unique_key
from refmq.store.consume_queue import BLANK_SIZE, UNIT, ConsumeQueue
from refmq.store.consume_queue_ext import ExtUnit, is_ext_address
from refmq.store.dispatch import PROPERTY_KEYS, PROPERTY_UNIQUE_KEY
from refmq.store.parts import Parts
from refmq.store.values import GetResult, GetStatus, QueryResult, QueueUnit


def get_message(
    parts: Parts, topic: str, queue_id: int, queue_offset: QueueOffset, count_max: int, wanted: MessageFilter
) -> GetResult:
    """Messages of a queue from an offset on, and where to continue."""
    queue = parts.queues.get((topic, queue_id))
    low, high = QueueOffset(0), QueueOffset(0)
    if queue is not None:
        low, high = queue.min_at(parts.log.log_min), queue.dispatched_end

    def nothing(status: GetStatus, corrected: int) -> GetResult:
        keep = parts.config.is_slave and not parts.config.correct_offsets_on_slave
        return GetResult(status, queue_offset if keep else QueueOffset(corrected), low, high)

    if queue is None or high == 0:
        return nothing(GetStatus.NO_MESSAGE_IN_QUEUE, 0)
    if queue_offset < low:
        return nothing(GetStatus.OFFSET_TOO_SMALL, low)
    if queue_offset == high:
        return nothing(GetStatus.OFFSET_OVERFLOW_ONE, queue_offset)
    if queue_offset > high:
        return nothing(GetStatus.OFFSET_OVERFLOW_BADLY, high)
    units = queue.read_units(queue_offset, min(max(parts.config.read_units_min, count_max), high - queue_offset))
    if not units:
        per_file = queue.units_per_file
        return nothing(GetStatus.OFFSET_FOUND_NULL, queue_offset + per_file - queue_offset % per_file)
    return _collect(parts, queue, queue_offset, units, count_max, wanted)


def _collect(
    parts: Parts, queue: ConsumeQueue, queue_offset: QueueOffset, units: bytes, count_max: int, wanted: MessageFilter
) -> GetResult:
    config, log = parts.config, parts.log
    low, high = queue.min_offset, queue.dispatched_end
    in_memory = config.memory_bytes * config.memory_ratio_percent // 100
    log_end = log.readable
    records: list[bytes] = []
    size_bytes = 0
    work = 0
    status = GetStatus.NO_MATCHED_MESSAGE
    skip_below = -1
    next_offset = int(queue_offset)
    physical_offset = 0
    for physical_offset, size, tags_code in UNIT.iter_unpack(units):
        if work >= WORK_MAX:
            break
        if physical_offset >= skip_below:
            if records and _is_enough(parts, len(records), size_bytes + size, log_end - physical_offset, count_max):
                break
            if _matches_unit(queue, physical_offset, tags_code, wanted):
                record = log.record(physical_offset, size)
                if record is None:
                    # Its file is gone, and with it the other messages of that file.
                    if not records:
                        status = GetStatus.MESSAGE_WAS_REMOVING
                    if size != BLANK_SIZE:
                        skip_below = log.next_file(physical_offset)
                else:
                    is_wanted = True
                    if wanted.reads_properties:
                        properties = properties_of(record)
                        work += work_of(wanted.terms, len(properties))
                        is_wanted = wanted.matches_properties(properties)
                    if is_wanted:
                        records.append(record)
                        size_bytes += size
                        status = GetStatus.FOUND
                        skip_below = -1
                        if parts.emit is not None:
                            serve_message(parts, queue, next_offset, physical_offset, record)
        next_offset += 1
    return GetResult(status, QueueOffset(next_offset), low, high, tuple(records), log_end - physical_offset > in_memory)


def _is_enough(parts: Parts, count: int, size_bytes: int, distance: int, count_max: int) -> bool:
    """Whether another message would be too much. The first one is always returned, whatever its size."""
    assert count > 0
    config = parts.config
    if count >= count_max:
        return True
    if distance > config.memory_bytes * config.memory_ratio_percent // 100:
        return size_bytes > config.disk_transfer_bytes_max or count >= config.disk_transfer_count_max
    return size_bytes > config.memory_transfer_bytes_max or count >= config.memory_transfer_count_max


def _matches_unit(queue: ConsumeQueue, physical_offset: int, tags_code: int, wanted: MessageFilter) -> bool:
    """Whether the unit alone lets the message through. If in doubt it does: the consumer filters again."""
    if wanted.wants_every_unit:
        return True
    known: int | None = tags_code
    ext: ExtUnit | None = None
    if is_ext_address(tags_code):
        known, ext = queue.resolve(tags_code)
    if known is not None and not wanted.matches_code(known):
        return False
    test = wanted.bitmap_test
    return test is None or ext is None or test.matches(ext.bitmap, physical_offset)


def serve_message(parts: Parts, queue: ConsumeQueue, queue_offset: int, physical_offset: int, record: bytes) -> None:
    """A message goes to a consumer. Reading changes nothing, so all there is to do is to trace it."""
    decoded = decode_record(record, base=physical_offset, check_crc=False)
    fingerprint = message_fingerprint(unique_key(decoded.properties), decoded.body)
    assert parts.emit is not None
    parts.emit(
        Event("ServeMessage", "", queue.topic, queue.queue_id, physical_offset, queue_offset, fingerprint, len(record))
    )


def properties_of(record: bytes) -> bytes:
    """The properties of a record in wire form."""
    return decode_record(record, check_crc=False).properties


def units_from(
    parts: Parts, topic: str, queue_id: int, queue_offset: QueueOffset, count_max: int
) -> tuple[QueueUnit, ...]:
    """Units without their records. Blank ones, whose messages are gone, are left out."""
    assert count_max >= 0
    queue = parts.queues.get((topic, queue_id))
    if queue is None or queue_offset < queue.min_at(parts.log.log_min):
        return ()
    found = []
    count_max = min(count_max, max(0, queue.dispatched_end - queue_offset))
    for number, (physical_offset, size, tags_code) in enumerate(
        UNIT.iter_unpack(queue.read_units(queue_offset, count_max)), queue_offset
    ):
        if size == BLANK_SIZE:
            continue
        known, _ = queue.resolve(tags_code)
        found.append(QueueUnit(QueueOffset(number), PhysicalOffset(physical_offset), size, known or 0))
    return tuple(found)


def query_by_key(
    parts: Parts, topic: str, key: str, count_max: int, begin_ms: TimestampMs, end_ms: TimestampMs
) -> QueryResult:
    """The newest messages with a key in a time span, oldest first.

    The index knows only hashes. Every record is checked, so messages with another key of the same hash are left out.
    """
    index = parts.index
    if index is None:
        return QueryResult((), TimestampMs(0), PhysicalOffset(0))
    records: dict[int, bytes] = {}
    for physical_offset in index.find(topic, key, begin_ms, end_ms):
        if len(records) >= min(count_max, parts.config.query_count_max):
            break
        data = parts.log.record_at(physical_offset)
        if data is None or physical_offset in records:
            continue
        record = decode_record(data, base=physical_offset, check_crc=False)
        properties = decode_properties(record.properties)
        keys = properties.get(PROPERTY_KEYS, "").split(KEY_SEPARATOR)
        has_key = key == properties.get(PROPERTY_UNIQUE_KEY) or key in keys
        if record.topic == topic and has_key and begin_ms <= record.store_timestamp_ms <= end_ms:
            records[physical_offset] = data
    in_order = tuple(records[physical_offset] for physical_offset in sorted(records))
    return QueryResult(in_order, index.last_ms, PhysicalOffset(max(0, index.last_physical)))
