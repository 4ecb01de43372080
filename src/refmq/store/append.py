"""AppendMessage and RollFile: a message becomes a record at the end of the log.

Everything is checked before a byte is written. What a record's length fields cannot hold, what no file can hold, a
topic that is no name of a directory: all refused here, because one malformed record makes everything behind it
unreadable.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
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
    decode_record,
    host_flags,
    message_id,
)
from refmq.store.api import BatchToStore, MessageToStore, PutResult, PutStatus
from refmq.store.consume_queue import is_storable_topic
from refmq.store.delay import SCHEDULE_TOPIC, redirect
from refmq.store.parts import Emit, Parts

RECORD_EXTRA_BYTES_MAX: Final = 64 * 1024
"""What a record may have beside `message_bytes_max`: topic, properties and header. Java's number."""

_UNIQUE_KEY: Final = b"UNIQ_KEY\x01"
_NO_QUEUE_OFFSET: Final = (TRANSACTION_PREPARED, TRANSACTION_ROLLBACK)


class Refused(Exception):
    """A put that cannot be stored; becomes its status. Never leaves the store."""

    def __init__(self, status: PutStatus) -> None:
        super().__init__(status)
        self.status = status


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


def append_message(parts: Parts, message: MessageToStore, now_ms: TimestampMs) -> PutResult:
    """Checks and appends one message. Raises `Refused`, and `DiskFull` or `DiskFailed` with nothing appended."""
    topic, queue_id, properties = message.topic, message.queue_id, message.properties
    transaction = message.sys_flag & SYS_FLAG_TRANSACTION
    if message.delay_level > 0 and parts.delay.level_max and transaction in (TRANSACTION_NONE, TRANSACTION_COMMIT):
        _topic_bytes(topic)
        queue_id, properties = redirect(parts.delay, message.delay_level, topic, queue_id, properties)
        topic = SCHEDULE_TOPIC
    topic_bytes = _topic_bytes(topic)
    properties = closed_properties(properties)
    if len(properties) > PROPERTIES_BYTES_MAX:
        raise Refused(PutStatus.PROPERTIES_SIZE_EXCEEDED)
    if len(message.body) > parts.config.message_bytes_max or queue_id < 0:
        raise Refused(PutStatus.MESSAGE_ILLEGAL)
    born, store = message.born_host, message.store_host
    size = HEADERS[born.is_ipv6, store.is_ipv6].size + len(message.body) + 3 + len(topic_bytes) + len(properties)
    physical_offset = _place_for(parts, size)
    key = (topic, queue_id)
    queue_offset = 0 if transaction in _NO_QUEUE_OFFSET else parts.queue_offsets.get(key, 0)
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
    _make_room(parts, size)
    parts.log.append(data, store_ms)
    if transaction not in _NO_QUEUE_OFFSET:
        parts.queue_offsets[key] = queue_offset + 1
    fingerprint = crc32(unique_key(properties)) << 31 | crc & 0x7FFF_FFFF
    if parts.emit is not None:
        parts.emit(("AppendMessage", "", topic, queue_id, physical_offset, queue_offset, fingerprint, size))
    return PutResult(
        PutStatus.PUT_OK,
        physical_offset,
        size,
        PhysicalOffset(physical_offset + size),
        store_ms,
        topic,
        queue_id,
        QueueOffset(queue_offset),
        message_id(store, physical_offset),
        1,
        fingerprint,
    )


def append_batch(parts: Parts, batch: BatchToStore, now_ms: TimestampMs) -> PutResult:
    """Checks and appends all messages of a batch, in one file and one write."""
    topic_bytes = _topic_bytes(batch.topic)
    if len(batch.messages) > parts.config.message_bytes_max or batch.queue_id < 0 or batch.delay_level > 0:
        raise Refused(PutStatus.MESSAGE_ILLEGAL)
    if batch.sys_flag & SYS_FLAG_TRANSACTION != TRANSACTION_NONE:
        raise Refused(PutStatus.MESSAGE_ILLEGAL)
    try:
        messages = decode_batch(batch.messages)
    except WireError:
        raise Refused(PutStatus.MESSAGE_ILLEGAL) from None
    if not messages:
        raise Refused(PutStatus.MESSAGE_ILLEGAL)
    header_bytes = HEADERS[batch.born_host.is_ipv6, batch.store_host.is_ipv6].size
    prepared = []
    total = 0
    for message in messages:
        properties = closed_properties(concatenate_properties(message.properties, batch.properties))
        if len(properties) > PROPERTIES_BYTES_MAX:
            raise Refused(PutStatus.PROPERTIES_SIZE_EXCEEDED)
        size = header_bytes + len(message.body) + 3 + len(topic_bytes) + len(properties)
        prepared.append((message, properties, size))
        total += size
    start = physical_offset = _place_for(parts, total)
    key = (batch.topic, batch.queue_id)
    first = parts.queue_offsets.get(key, 0)
    store_ms = store_time(parts, now_ms)
    pieces, ids, events = [], [], []
    for number, (message, properties, size) in enumerate(prepared):
        crc = crc32(message.body) & 0x7FFF_FFFF
        pieces.append(
            _encode(
                topic_bytes,
                batch.queue_id,
                message.body,
                crc,
                properties,
                size=size,
                flag=message.flag,
                sys_flag=batch.sys_flag,
                queue_offset=first + number,
                physical_offset=physical_offset,
                born_ms=batch.born_timestamp_ms,
                born=batch.born_host,
                store_ms=store_ms,
                store=batch.store_host,
                reconsume_times=batch.reconsume_times,
                prepared_offset=0,
            )
        )
        ids.append(message_id(batch.store_host, physical_offset))
        fingerprint = message_fingerprint(unique_key(properties), message.body)
        events.append((physical_offset, first + number, fingerprint, size))
        physical_offset = PhysicalOffset(physical_offset + size)
    _make_room(parts, total)
    parts.log.append(b"".join(pieces), store_ms)
    parts.queue_offsets[key] = first + len(prepared)
    if parts.emit is not None:
        for values in events:
            parts.emit(Event("AppendMessage", "", batch.topic, batch.queue_id, *values))
    return PutResult(
        PutStatus.PUT_OK,
        start,
        total,
        physical_offset,
        store_ms,
        batch.topic,
        batch.queue_id,
        QueueOffset(first),
        ",".join(ids),
        len(prepared),
        events[0][2],
    )


def emit_ack(parts: Parts, emit: Emit, result: PutResult, status: PutStatus) -> None:
    """What a trace says of an acknowledgement: one event for each message of a batch.

    Records that are still in the transient pool cannot be read back; such a batch is told by its first message.
    """
    topic, queue_id = result.topic, result.queue_id
    first = (result.physical_offset, result.queue_offset, result.fingerprint)
    if result.count == 1:
        emit(("AckPut", "", topic, queue_id, *first, status))
        return
    for physical_offset, queue_offset, fingerprint in list(_places(parts, result)) or [first]:
        emit(("AckPut", "", topic, queue_id, physical_offset, queue_offset, fingerprint, status))


def _places(parts: Parts, result: PutResult) -> Iterator[tuple[int, int, int]]:
    """Physical offset, queue offset and fingerprint of every record of a batch, as far as they can be read."""
    position = result.physical_offset
    while position < result.durable_at and (data := parts.log.record_at(position)) is not None:
        record = decode_record(data, base=position, check_crc=False)
        yield position, record.queue_offset, message_fingerprint(unique_key(record.properties), record.body)
        position = PhysicalOffset(position + len(data))


def store_time(parts: Parts, now_ms: TimestampMs) -> TimestampMs:
    """The store time of the next record. It never goes back, whatever the clock does: searches by time rely on it."""
    return now_ms if parts.config.keep_clock_steps else TimestampMs(max(now_ms, parts.log.last_store_ms))


def roll_file(parts: Parts) -> None:
    """The last file ends with a blank record, the next one begins. Raises `Refused` when there is no room for it."""
    before, is_first = parts.log.wrote, not parts.log.files.bases
    try:
        parts.log.roll_file()
    except (DiskFull, DiskFailed):
        raise Refused(PutStatus.CREATE_MAPEDFILE_FAILED) from None
    if parts.emit is not None and not is_first:
        parts.emit(Event("RollFile", a=before, b=parts.log.wrote))


def _place_for(parts: Parts, size: int) -> PhysicalOffset:
    """Where records of this size will stand together: behind the last one, or at the begin of the next file."""
    if size > parts.config.message_bytes_max + RECORD_EXTRA_BYTES_MAX:
        raise Refused(PutStatus.MESSAGE_ILLEGAL)
    if size + BLANK_HEADER_BYTES > parts.log.file_bytes:
        raise Refused(PutStatus.MESSAGE_ILLEGAL)
    return parts.log.wrote if parts.log.has_room(size) else PhysicalOffset(parts.log.files.limit)


def _make_room(parts: Parts, size: int) -> None:
    if not parts.log.has_room(size):
        roll_file(parts)


def _topic_bytes(topic: str) -> bytes:
    try:
        encoded = topic.encode()
    except UnicodeEncodeError:
        raise Refused(PutStatus.MESSAGE_ILLEGAL) from None
    if len(encoded) > TOPIC_BYTES_MAX or not is_storable_topic(topic):
        raise Refused(PutStatus.MESSAGE_ILLEGAL)
    return encoded


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
) -> bytes:
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
    except struct.error:  # a number that does not fit its field
        raise Refused(PutStatus.MESSAGE_ILLEGAL) from None
    return b"%b%b%c%b%b%b" % (header, body, len(topic), topic, len(properties).to_bytes(2, "big"), properties)
