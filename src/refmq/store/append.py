"""AppendMessage and RollFile: a message becomes a record at the end of the log.

An append is planned first and performed afterwards. The plan is a pure function of message, time and state: it checks
everything, decides the places and encodes the records. Performing it decides nothing.

What the length fields of a record cannot hold, what no file can hold, a topic that cannot be the name of a directory:
all of that is refused here, because one malformed record makes everything after it unreadable.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from refmq.errors import DiskFailed, DiskFull, UsageError, WireError
from refmq.model.fingerprint import message_fingerprint
from refmq.model.ids import PhysicalOffset, QueueOffset, TimestampMs
from refmq.model.step import Event
from refmq.protocol.record import (
    BLANK_HEADER_BYTES,
    PROPERTIES_BYTES_MAX,
    RECORD_MAGIC,
    SYS_FLAG_TRANSACTION,
    TOPIC_BYTES_MAX,
    TRANSACTION_COMMIT,
    TRANSACTION_NONE,
    TRANSACTION_PREPARED,
    TRANSACTION_ROLLBACK,
    RecordHeader,
    body_crc,
    concatenate_properties,
    decode_batch,
    encode_parts,
    host_flags,
    message_id,
    record_bytes,
)
from refmq.store.consume_queue import is_storable_topic
from refmq.store.delay import SCHEDULE_TOPIC, redirect
from refmq.store.parts import Parts
from refmq.store.values import AppendPlan, BatchToStore, MessageToStore, Place, PutStatus

RECORD_EXTRA_BYTES_MAX: Final = 64 * 1024
"""What a record may have in addition to `message_bytes_max`: topic, properties and header. Java's number."""

_UNIQUE_KEY: Final = b"UNIQ_KEY\x01"
_NO_QUEUE_OFFSET: Final = (TRANSACTION_PREPARED, TRANSACTION_ROLLBACK)


def unique_key(properties: bytes) -> bytes:
    """The value of UNIQ_KEY in properties in wire form; empty without one."""
    at = 0 if properties.startswith(_UNIQUE_KEY) else properties.find(b"\x02" + _UNIQUE_KEY) + 1
    if at == 0 and not properties.startswith(_UNIQUE_KEY):
        return b""
    start = at + len(_UNIQUE_KEY)
    end = properties.find(b"\x02", start)
    return properties[start:] if end < 0 else properties[start:end]


def closed_properties(properties: bytes) -> bytes:
    """The same properties, but not ending with a zero byte: a record that does looks torn. A separator at the end means
    nothing (5.x always writes one)."""
    return properties + b"\x02" if properties.endswith(b"\0") else properties


def plan_message(parts: Parts, message: MessageToStore, now_ms: TimestampMs) -> AppendPlan | PutStatus:
    """Where and how one message would be stored, or why it cannot be. Writes nothing."""
    topic, queue_id, properties = message.topic, message.queue_id, message.properties
    if not _is_legal_topic(topic):
        return PutStatus.MESSAGE_ILLEGAL
    transaction = message.sys_flag & SYS_FLAG_TRANSACTION
    if message.delay_level > 0 and parts.delay.level_max and transaction in (TRANSACTION_NONE, TRANSACTION_COMMIT):
        queue_id, properties = redirect(parts.delay, message.delay_level, topic, queue_id, properties)
        topic = SCHEDULE_TOPIC
    properties = closed_properties(properties)
    if len(properties) > PROPERTIES_BYTES_MAX:
        return PutStatus.PROPERTIES_SIZE_EXCEEDED
    if len(message.body) > parts.config.message_bytes_max or queue_id < 0:
        return PutStatus.MESSAGE_ILLEGAL
    content = ((message.flag, message.body, properties),)
    return _plan(parts, message, topic, queue_id, content, now_ms, message.prepared_transaction_offset)


def plan_batch(parts: Parts, batch: BatchToStore, now_ms: TimestampMs) -> AppendPlan | PutStatus:
    """Where and how all messages of a batch would be stored, in one file and one write. Writes nothing."""
    if not _is_legal_topic(batch.topic) or batch.queue_id < 0 or batch.delay_level > 0:
        return PutStatus.MESSAGE_ILLEGAL
    if len(batch.messages) > parts.config.message_bytes_max:
        return PutStatus.MESSAGE_ILLEGAL
    if batch.sys_flag & SYS_FLAG_TRANSACTION != TRANSACTION_NONE:
        return PutStatus.MESSAGE_ILLEGAL
    try:
        messages = decode_batch(batch.messages)
    except WireError:
        return PutStatus.MESSAGE_ILLEGAL
    if not messages:
        return PutStatus.MESSAGE_ILLEGAL
    content = []
    for message in messages:
        properties = closed_properties(concatenate_properties(message.properties, batch.properties))
        if len(properties) > PROPERTIES_BYTES_MAX:
            return PutStatus.PROPERTIES_SIZE_EXCEEDED
        content.append((message.flag, message.body, properties))
    return _plan(parts, batch, batch.topic, batch.queue_id, content, now_ms)


def _plan(
    parts: Parts,
    sent: MessageToStore | BatchToStore,
    topic: str,
    queue_id: int,
    content: Sequence[tuple[int, bytes, bytes]],
    now_ms: TimestampMs,
    prepared_transaction_offset: int = 0,
) -> AppendPlan | PutStatus:
    """The plan for legal messages, in a queue that may not be the one they were sent to.

    `content` is flag, body and properties of each message. The rest is the same for all of them.
    """
    assert content
    assert queue_id >= 0
    topic_bytes, born, store = topic.encode(), sent.born_host, sent.store_host
    sys_flag = host_flags(sent.sys_flag, born, store)
    sizes = [record_bytes(sys_flag, len(body) + len(topic_bytes) + len(texts)) for _, body, texts in content]
    size_bytes = sum(sizes)
    if not _fits_a_file(parts, size_bytes):
        return PutStatus.MESSAGE_ILLEGAL
    start = physical_offset = _place_for(parts, size_bytes)
    is_queued = sys_flag & SYS_FLAG_TRANSACTION not in _NO_QUEUE_OFFSET
    first = queue_offset = QueueOffset(parts.queue_offsets.get((topic, queue_id), 0) if is_queued else 0)
    store_ms = store_time(parts, now_ms)
    records, ids, places = [], [], []
    for (flag, body, properties), size in zip(content, sizes, strict=True):
        header = RecordHeader(
            size,
            RECORD_MAGIC,
            body_crc(body),
            queue_id,
            flag,
            queue_offset,
            physical_offset,
            sys_flag,
            sent.born_timestamp_ms,
            born.ip,
            born.port,
            store_ms,
            store.ip,
            store.port,
            sent.reconsume_times,
            prepared_transaction_offset,
            len(body),
        )
        try:
            records.append(encode_parts(header, body, topic_bytes, properties))
        except UsageError:  # a number that does not fit its field
            return PutStatus.MESSAGE_ILLEGAL
        ids.append(message_id(store, physical_offset))
        fingerprint = message_fingerprint(unique_key(properties), body)
        places.append(Place(physical_offset, queue_offset, fingerprint, size))
        physical_offset = PhysicalOffset(physical_offset + size)
        queue_offset = QueueOffset(queue_offset + 1)
    return AppendPlan(
        physical_offset=start,
        data=b"".join(records),
        topic=topic,
        queue_id=queue_id,
        queue_offset=first,
        count=len(content),
        size_bytes=size_bytes,
        durable_at=physical_offset,
        store_timestamp_ms=store_ms,
        message_id=",".join(ids),
        places=tuple(places),
        is_queued=is_queued,
    )


def append_message(parts: Parts, plan: AppendPlan) -> PutStatus:
    """Performs a plan. Raises `DiskFull` or `DiskFailed` with nothing appended."""
    key = (plan.topic, plan.queue_id)
    next_offset = parts.queue_offsets.get(key, 0)
    assert plan.physical_offset == _place_for(parts, plan.size_bytes), "the plan is for another end of the log"
    assert not plan.is_queued or plan.queue_offset == next_offset, "the plan is for another end of the queue"
    assert len(plan.data) == plan.size_bytes == plan.durable_at - plan.physical_offset
    assert len(plan.places) == plan.count
    if not parts.log.has_room(plan.size_bytes) and not roll_file(parts):
        return PutStatus.CREATE_MAPEDFILE_FAILED
    parts.log.append(plan.data, plan.store_timestamp_ms)
    if plan.is_queued:
        parts.queue_offsets[key] = next_offset + plan.count
    if parts.emit is not None:
        for at in plan.places:
            parts.emit(("AppendMessage", "", *key, at.physical_offset, at.queue_offset, at.fingerprint, at.size_bytes))
    return PutStatus.PUT_OK


def store_time(parts: Parts, now_ms: TimestampMs) -> TimestampMs:
    """The store time of the next record. It never goes back, whatever the clock does: searches by time rely on it."""
    return now_ms if parts.config.keep_clock_steps else TimestampMs(max(now_ms, parts.log.last_store_ms))


def roll_file(parts: Parts) -> bool:
    """Ends the last file with a blank record and starts the next one. False if there is no room for it."""
    before, is_first = parts.log.wrote, not parts.log.files.bases
    try:
        parts.log.roll_file()
    except (DiskFull, DiskFailed):
        return False
    assert parts.log.wrote == parts.log.files.bases[-1], "the log ends at the start of the new file"
    if parts.emit is not None and not is_first:
        parts.emit(Event("RollFile", a=before, b=parts.log.wrote))
    return True


def _fits_a_file(parts: Parts, size: int) -> bool:
    return (
        size <= parts.config.message_bytes_max + RECORD_EXTRA_BYTES_MAX
        and size + BLANK_HEADER_BYTES <= parts.log.file_bytes
    )


def _place_for(parts: Parts, size: int) -> PhysicalOffset:
    """Where records of this size go together: to the end of the log, or to the start of the next file."""
    assert size + BLANK_HEADER_BYTES <= parts.log.file_bytes
    return parts.log.wrote if parts.log.has_room(size) else PhysicalOffset(parts.log.files.limit)


def _is_legal_topic(topic: str) -> bool:
    """Whether a record can hold the topic, and a directory be called so."""
    try:
        encoded = topic.encode()
    except UnicodeEncodeError:
        return False
    return len(encoded) <= TOPIC_BYTES_MAX and is_storable_topic(topic)
