"""AppendMessage and RollFile: a message becomes a record at the end of the log.

An append is planned first and performed afterwards. The plan is a pure function of message, time and state: it checks
everything, decides the places and encodes the records. Performing it decides nothing.

What the length fields of a record cannot hold, what no file can hold, a topic that cannot be the name of a directory:
all of that is refused here, because one malformed record makes everything after it unreadable.
"""

from __future__ import annotations

import struct
from typing import Final
from zlib import crc32

from refmq.errors import DiskFailed, DiskFull, WireError
from refmq.model.fingerprint import message_fingerprint
from refmq.model.ids import HostAddress, PhysicalOffset, QueueOffset, TimestampMs
from refmq.model.step import Event
from refmq.protocol.record import (
    BLANK_HEADER_BYTES,
    HEADERS,
    PROPERTIES_BYTES_MAX,
    RECORD_MAGIC,
    SYS_FLAG_TRANSACTION,
    TOPIC_BYTES_MAX,
    TRANSACTION_COMMIT,
    TRANSACTION_NONE,
    TRANSACTION_PREPARED,
    TRANSACTION_ROLLBACK,
    concatenate_properties,
    decode_batch,
    host_flags,
    message_id,
)
from refmq.store.consume_queue import is_storable_topic
from refmq.store.delay import SCHEDULE_TOPIC, redirect
from refmq.store.parts import Parts
from refmq.store.values import AppendPlan, BatchToStore, MessageToStore, Place, PutStatus

RECORD_EXTRA_BYTES_MAX: Final = 64 * 1024
"""What a record may have beside `message_bytes_max`: topic, properties and header. Java's number."""

_UNIQUE_KEY: Final = b"UNIQ_KEY\x01"
_NO_QUEUE_OFFSET: Final = (TRANSACTION_PREPARED, TRANSACTION_ROLLBACK)


def unique_key(properties: bytes) -> bytes:
    """The value of UNIQ_KEY in wire form properties; empty without one."""
    at = 0 if properties.startswith(_UNIQUE_KEY) else properties.find(b"\x02" + _UNIQUE_KEY) + 1
    if at == 0 and not properties.startswith(_UNIQUE_KEY):
        return b""
    start = at + len(_UNIQUE_KEY)
    end = properties.find(b"\x02", start)
    return properties[start:] if end < 0 else properties[start:end]


def closed_properties(properties: bytes) -> bytes:
    """Properties that do not end with a zero byte: a record that does looks torn. A separator at the end means nothing
    (5.x always writes one)."""
    return properties + b"\x02" if properties.endswith(b"\0") else properties


def plan_message(parts: Parts, message: MessageToStore, now_ms: TimestampMs) -> AppendPlan | PutStatus:
    """Where and how one message would be stored, or why it cannot be. Writes nothing."""
    topic, queue_id, properties = message.topic, message.queue_id, message.properties
    transaction = message.sys_flag & SYS_FLAG_TRANSACTION
    if message.delay_level > 0 and parts.delay.level_max and transaction in (TRANSACTION_NONE, TRANSACTION_COMMIT):
        if _topic_bytes(topic) is None:
            return PutStatus.MESSAGE_ILLEGAL
        queue_id, properties = redirect(parts.delay, message.delay_level, topic, queue_id, properties)
        topic = SCHEDULE_TOPIC
    topic_bytes = _topic_bytes(topic)
    if topic_bytes is None:
        return PutStatus.MESSAGE_ILLEGAL
    properties = closed_properties(properties)
    if len(properties) > PROPERTIES_BYTES_MAX:
        return PutStatus.PROPERTIES_SIZE_EXCEEDED
    if len(message.body) > parts.config.message_bytes_max or queue_id < 0:
        return PutStatus.MESSAGE_ILLEGAL
    born, store = message.born_host, message.store_host
    size = HEADERS[born.is_ipv6, store.is_ipv6].size + len(message.body) + 3 + len(topic_bytes) + len(properties)
    if not _fits_a_file(parts, size):
        return PutStatus.MESSAGE_ILLEGAL
    physical_offset = _place_for(parts, size)
    is_queued = transaction not in _NO_QUEUE_OFFSET
    queue_offset = QueueOffset(parts.queue_offsets.get((topic, queue_id), 0) if is_queued else 0)
    store_ms = store_time(parts, now_ms)
    crc = crc32(message.body)
    data = _encode(
        topic_bytes,
        queue_id,
        message.body,
        crc & 0x7FFF_FFFF,
        properties,
        size=size,
        flag=message.flag,
        sys_flag=message.sys_flag,
        queue_offset=queue_offset,
        physical_offset=physical_offset,
        born_ms=message.born_timestamp_ms,
        born=born,
        store_ms=store_ms,
        store=store,
        reconsume_times=message.reconsume_times,
        prepared_offset=message.prepared_transaction_offset,
    )
    if data is None:
        return PutStatus.MESSAGE_ILLEGAL
    fingerprint = crc32(unique_key(properties)) << 31 | crc & 0x7FFF_FFFF
    return AppendPlan(
        physical_offset,
        data,
        topic,
        queue_id,
        queue_offset,
        1,
        size,
        PhysicalOffset(physical_offset + size),
        store_ms,
        message_id(store, physical_offset),
        (Place(physical_offset, queue_offset, fingerprint, size),),
        is_queued,
    )


def plan_batch(parts: Parts, batch: BatchToStore, now_ms: TimestampMs) -> AppendPlan | PutStatus:
    """Where and how all messages of a batch would be stored, in one file and one write. Writes nothing."""
    topic_bytes = _topic_bytes(batch.topic)
    if topic_bytes is None or batch.queue_id < 0 or batch.delay_level > 0:
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
    header_bytes = HEADERS[batch.born_host.is_ipv6, batch.store_host.is_ipv6].size
    prepared = []
    total = 0
    for message in messages:
        properties = closed_properties(concatenate_properties(message.properties, batch.properties))
        if len(properties) > PROPERTIES_BYTES_MAX:
            return PutStatus.PROPERTIES_SIZE_EXCEEDED
        size = header_bytes + len(message.body) + 3 + len(topic_bytes) + len(properties)
        prepared.append((message, properties, size))
        total += size
    if not _fits_a_file(parts, total):
        return PutStatus.MESSAGE_ILLEGAL
    start = physical_offset = _place_for(parts, total)
    first = QueueOffset(parts.queue_offsets.get((batch.topic, batch.queue_id), 0))
    store_ms = store_time(parts, now_ms)
    records, ids, places = [], [], []
    for queue_offset, (message, properties, size) in enumerate(prepared, first):
        data = _encode(
            topic_bytes,
            batch.queue_id,
            message.body,
            crc32(message.body) & 0x7FFF_FFFF,
            properties,
            size=size,
            flag=message.flag,
            sys_flag=batch.sys_flag,
            queue_offset=queue_offset,
            physical_offset=physical_offset,
            born_ms=batch.born_timestamp_ms,
            born=batch.born_host,
            store_ms=store_ms,
            store=batch.store_host,
            reconsume_times=batch.reconsume_times,
            prepared_offset=0,
        )
        if data is None:
            return PutStatus.MESSAGE_ILLEGAL
        records.append(data)
        ids.append(message_id(batch.store_host, physical_offset))
        fingerprint = message_fingerprint(unique_key(properties), message.body)
        places.append(Place(physical_offset, QueueOffset(queue_offset), fingerprint, size))
        physical_offset = PhysicalOffset(physical_offset + size)
    return AppendPlan(
        start,
        b"".join(records),
        batch.topic,
        batch.queue_id,
        first,
        len(prepared),
        total,
        physical_offset,
        store_ms,
        ",".join(ids),
        tuple(places),
    )


def append_message(parts: Parts, plan: AppendPlan) -> PutStatus:
    """Performs a plan. Raises `DiskFull` or `DiskFailed` with nothing appended."""
    key = (plan.topic, plan.queue_id)
    next_offset = parts.queue_offsets.get(key, 0)
    assert plan.physical_offset == _place_for(parts, plan.size_bytes), "the plan is for another end of the log"
    assert not plan.is_queued or plan.queue_offset == next_offset, "the plan is for another end of the queue"
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
    """The last file ends with a blank record, the next one begins. False if there is no room for it."""
    before, is_first = parts.log.wrote, not parts.log.files.bases
    try:
        parts.log.roll_file()
    except (DiskFull, DiskFailed):
        return False
    if parts.emit is not None and not is_first:
        parts.emit(Event("RollFile", a=before, b=parts.log.wrote))
    return True


def _fits_a_file(parts: Parts, size: int) -> bool:
    return (
        size <= parts.config.message_bytes_max + RECORD_EXTRA_BYTES_MAX
        and size + BLANK_HEADER_BYTES <= parts.log.file_bytes
    )


def _place_for(parts: Parts, size: int) -> PhysicalOffset:
    """Where records of this size will stand together: at the end of the log, or at the start of the next file."""
    return parts.log.wrote if parts.log.has_room(size) else PhysicalOffset(parts.log.files.limit)


def _topic_bytes(topic: str) -> bytes | None:
    """The topic as a record holds it; None if it cannot."""
    try:
        encoded = topic.encode()
    except UnicodeEncodeError:
        return None
    return encoded if len(encoded) <= TOPIC_BYTES_MAX and is_storable_topic(topic) else None


def _encode(
    topic: bytes,
    queue_id: int,
    body: bytes,
    crc: int,
    properties: bytes,
    *,
    size: int,
    flag: int,
    sys_flag: int,
    queue_offset: int,
    physical_offset: int,
    born_ms: int,
    born: HostAddress,
    store_ms: int,
    store: HostAddress,
    reconsume_times: int,
    prepared_offset: int,
) -> bytes | None:
    """The bytes of a record; None if a number does not fit its field."""
    try:
        header = HEADERS[born.is_ipv6, store.is_ipv6].pack(
            size,
            RECORD_MAGIC,
            crc,
            queue_id,
            flag,
            queue_offset,
            physical_offset,
            host_flags(sys_flag, born, store),
            born_ms,
            born.ip,
            born.port,
            store_ms,
            store.ip,
            store.port,
            reconsume_times,
            prepared_offset,
            len(body),
        )
    except struct.error:
        return None
    return b"%b%b%c%b%b%b" % (header, body, len(topic), topic, len(properties).to_bytes(2, "big"), properties)
