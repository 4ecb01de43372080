"""DispatchMessage: the records of the log get their queue units and index entries, in log order.

    transaction type   queue unit   index entries
    none, commit       yes          yes
    prepared           no           yes
    rollback           no           no

Dispatching is idempotent, so a recovery may start at any record before the first one that is missing.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from refmq.errors import CorruptRecord
from refmq.model.ids import PhysicalOffset, QueueOffset, TimestampMs
from refmq.protocol.record import (
    BLANK_HEADER_BYTES,
    BLANK_MAGIC,
    KEY_SEPARATOR,
    PHYSICAL_OFFSET_AT,
    QUEUE_OFFSET_AT,
    RECORD_BYTES_MIN,
    SYS_FLAG_TRANSACTION,
    TRANSACTION_COMMIT,
    TRANSACTION_NONE,
    TRANSACTION_ROLLBACK,
    decode_properties,
    decode_topic,
    find_parts,
    read_header,
    read_size_and_magic,
    string_hash,
)
from refmq.store.config import OnDamage
from refmq.store.consume_queue import is_storable_topic
from refmq.store.delay import PROPERTY_DELAY, SCHEDULE_TOPIC, DelayLevels
from refmq.store.parts import Parts
from refmq.store.values import Dispatched

PROPERTY_TAGS: Final = "TAGS"
PROPERTY_KEYS: Final = "KEYS"
PROPERTY_UNIQUE_KEY: Final = "UNIQ_KEY"

_QUEUED: Final = (TRANSACTION_NONE, TRANSACTION_COMMIT)


class RecordToDispatch(NamedTuple):
    """What dispatching needs to know about a record."""

    topic: str
    queue_id: int
    queue_offset: int
    physical_offset: int
    size: int
    transaction: int
    store_ms: int
    properties: bytes
    tags_code: int
    keys: tuple[str, ...]


def read_record(data: bytes, at: int, position: int, delay: DelayLevels) -> RecordToDispatch:
    """The record at `data[at]`, which is whole and stands at `position` of the log. Raises `CorruptRecord`."""
    assert at >= 0
    assert position >= 0
    base = position - at
    header = read_header(data, at, base=base)
    if header.physical_offset != position:
        raise CorruptRecord("physical offset", position + PHYSICAL_OFFSET_AT, position, header.physical_offset)
    parts = find_parts(data, at, header, base=base)
    topic = decode_topic(data, parts, base=base)
    wire = data[parts.properties_at : parts.end]
    properties = decode_properties(wire)
    keys = tuple(key for key in properties.get(PROPERTY_KEYS, "").split(KEY_SEPARATOR) if key)
    unique = properties.get(PROPERTY_UNIQUE_KEY)
    return RecordToDispatch(
        topic=topic,
        queue_id=header.queue_id,
        queue_offset=header.queue_offset,
        physical_offset=position,
        size=header.size_bytes,
        transaction=header.sys_flag & SYS_FLAG_TRANSACTION,
        store_ms=header.store_timestamp_ms,
        properties=wire,
        tags_code=tags_code_of(topic, properties, header.store_timestamp_ms, delay),
        keys=(unique, *keys) if unique else keys,
    )


def tags_code_of(topic: str, properties: dict[str, str], store_ms: int, delay: DelayLevels) -> int:
    """What a queue unit says about a message: in a delay queue when it is due, else the hash of its tags."""
    if topic == SCHEDULE_TOPIC and PROPERTY_DELAY in properties:
        deliver_ms = delay.deliver_ms(properties[PROPERTY_DELAY], store_ms)
        if deliver_ms is not None:
            return deliver_ms
    tags = properties.get(PROPERTY_TAGS)
    return string_hash(tags) if tags else 0


def dispatch_message(parts: Parts, record: RecordToDispatch) -> Dispatched | None:
    """Gives one record its queue unit and index entries. None for a record that belongs to no queue.

    Raises `DiskFull`: then nothing is lost, and the same record is dispatched again later.
    """
    assert record.physical_offset + record.size <= parts.log.readable, "a queue is never ahead of its log"
    queued = record.transaction in _QUEUED
    if queued:
        record = _with_possible_offset(parts, record)
        if not is_storable_topic(record.topic) or record.queue_id < 0 or record.queue_offset < 0:
            raise CorruptRecord("topic", record.physical_offset, "the name of a queue", f"{record.topic!r}")
        key = (record.topic, record.queue_id)
        queue = parts.queues.get(key) or parts.queue_for(*key)
        bitmap = None
        if queue.ext is not None and parts.filters is not None:
            filters = parts.filters.get(record.topic)
            bitmap = b"" if filters is None else filters.bitmap(record.properties)
        if queue.put_unit(
            record.queue_offset, record.physical_offset, record.size, record.tags_code, record.store_ms, bitmap
        ):
            parts.dirty_queues.add(key)
        if parts.queue_offsets.get(key, 0) <= record.queue_offset:
            parts.queue_offsets[key] = record.queue_offset + 1  # a slave, or a recovery
    if parts.index is not None and record.keys and record.transaction != TRANSACTION_ROLLBACK:
        parts.index.put_keys(record.topic, record.keys, record.physical_offset, record.store_ms)
    parts.dispatched_ms = TimestampMs(max(parts.dispatched_ms, record.store_ms))
    if not queued:
        return None
    queue.dispatched_end = queue.end
    if parts.emit is not None:
        parts.emit(
            (
                "DispatchMessage",
                "",
                record.topic,
                record.queue_id,
                record.physical_offset,
                record.queue_offset,
                record.tags_code,
                record.size,
            )
        )
    return Dispatched(
        record.topic,
        record.queue_id,
        QueueOffset(record.queue_offset),
        PhysicalOffset(record.physical_offset),
        record.size,
        record.tags_code,
        TimestampMs(record.store_ms),
        record.properties,
    )


def _with_possible_offset(parts: Parts, record: RecordToDispatch) -> RecordToDispatch:
    """The same record, unless it claims a place so far past the end of its queue that the log before it cannot hold
    that many messages. Nothing protects the offset in a record; filling such a gap would fill the disk.

    Raises `CorruptRecord`; where damage is handled as 4.9.8 handles it, the record gets the next place of its queue.
    """
    queue = parts.queues.get((record.topic, record.queue_id))
    if queue is None or not queue.files.bases:
        return record  # a queue may start anywhere: nothing is filled but a part of its first file
    possible = queue.end + record.physical_offset // RECORD_BYTES_MIN
    if record.queue_offset <= possible:
        return record
    if parts.config.on_damage is OnDamage.CUT:
        return record._replace(queue_offset=int(queue.end))
    raise CorruptRecord(
        "queue offset", record.physical_offset + QUEUE_OFFSET_AT, f"at most {possible}", record.queue_offset
    )


def dispatch_up_to(parts: Parts, bound: PhysicalOffset, count_max: int) -> tuple[Dispatched, ...]:
    """Dispatches records from `parts.dispatched_to` on that end at or before `bound`, at most `count_max`."""
    found: list[Dispatched] = []
    dispatch_into(found, parts, bound, count_max)
    return tuple(found)


def dispatch_into(found: list[Dispatched], parts: Parts, bound: PhysicalOffset, count_max: int) -> None:
    """The same; what was dispatched is in `found` even if the disk fills up on the way (`DiskFull`)."""
    log = parts.log
    assert bound <= log.readable
    parts.dispatched_to = max(parts.dispatched_to, log.log_min)
    count = 0
    while count < count_max and parts.dispatched_to < bound:
        position = parts.dispatched_to
        data = log.read_up_to(position, parts.config.piece_bytes, bound)
        at = 0
        while count < count_max and at + BLANK_HEADER_BYTES <= len(data):
            size, magic = read_size_and_magic(data, at)
            if magic == BLANK_MAGIC:
                parts.dispatched_to = PhysicalOffset(log.next_file(position))
                break
            if size < RECORD_BYTES_MIN:
                raise CorruptRecord("total size", position + at, f"at least {RECORD_BYTES_MIN}", size)
            if at + size > len(data):
                break
            record = read_record(data, at, position + at, parts.delay)
            dispatched = dispatch_message(parts, record)
            log.saw_store_time(TimestampMs(record.store_ms))
            at += size
            count += 1
            parts.dispatched_to = PhysicalOffset(position + at)
            if dispatched is not None:
                found.append(dispatched)
        if parts.dispatched_to == position:  # no progress: a record larger than one read, or one that is not whole
            if not _dispatch_large(parts, bound, found):
                break
            count += 1


def _dispatch_large(parts: Parts, bound: PhysicalOffset, found: list[Dispatched]) -> bool:
    """Dispatches the next record if it is too large for one piece; False if it is not, or not whole yet."""
    position = parts.dispatched_to
    head = parts.log.read_up_to(position, BLANK_HEADER_BYTES, bound)
    size = read_size_and_magic(head)[0] if len(head) == BLANK_HEADER_BYTES else 0
    data = parts.log.read_up_to(position, size, bound) if size > parts.config.piece_bytes else b""
    if not data or len(data) < size:
        return False
    record = read_record(data, 0, position, parts.delay)
    dispatched = dispatch_message(parts, record)
    parts.log.saw_store_time(TimestampMs(record.store_ms))
    if dispatched is not None:
        found.append(dispatched)
    parts.dispatched_to = PhysicalOffset(position + size)
    return True


def take_over_offsets(parts: Parts) -> PhysicalOffset:
    """Reads the records that are not dispatched yet, so that no queue offset is given twice.

    Returns where the last whole record ends.
    """
    log = parts.log
    position = int(max(parts.dispatched_to, log.log_min))
    while position < log.readable:
        head = log.read_up_to(position, BLANK_HEADER_BYTES)
        if len(head) == BLANK_HEADER_BYTES and read_size_and_magic(head)[1] == BLANK_MAGIC:
            position = log.next_file(position)
            continue
        data = log.record_at(position)
        if data is None:
            break
        record = read_record(data, 0, position, parts.delay)
        if record.transaction in _QUEUED:
            key = (record.topic, record.queue_id)
            parts.queue_offsets[key] = max(parts.queue_offsets.get(key, 0), record.queue_offset + 1)
        log.saw_store_time(TimestampMs(record.store_ms))
        position += record.size
    return PhysicalOffset(position)
