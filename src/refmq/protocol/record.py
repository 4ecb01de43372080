"""A message as a record: the form it has in the commit log, and in the body of every pull response.

This is the only place that knows the layout. The store writes its log with `encode_parts`, and so does `encode_record`;
dispatch and recovery read with `read_header` and `find_parts`, and so does `decode_record`.

All numbers are big-endian. b and s are 8 for an IPv4 host and 20 for an IPv6 one (sys flag bits 0x10 and 0x20).

    offset       size  type  field                 valid
    0            4     i32   total size            the whole record, this field included
    4            4     u32   magic                 0xDAA320A7; 0xDAA320AB: topic length is an i16 (5.x)
    8            4     i32   body crc              CRC-32 of the body without its highest bit; 0 for an empty body
    12           4     i32   queue id
    16           4     i32   flag                  the application's
    20           8     i64   queue offset          position in its queue; 0 for prepared and rollback records
    28           8     i64   physical offset       of this record's first byte in the log
    36           4     i32   sys flag              the SYS_FLAG_ bits below
    40           8     i64   born timestamp        ms
    48           b           born host             4 or 16 address bytes, then the port as i32
    48+b         8     i64   store timestamp       ms
    56+b         s           store host
    56+b+s       4     i32   reconsume times
    60+b+s       8     i64   prepared transaction offset
    68+b+s       4     i32   body length B
    72+b+s       B           body                  as it was sent, perhaps compressed
    72+b+s+B     1     i8    topic length T        0 .. 127
    73+b+s+B     T           topic                 UTF-8
    73+b+s+B+T   2     i16   properties length P   0 .. 32767
    75+b+s+B+T   P           properties            name U+0001 value U+0002 name ..., UTF-8

The rest of a log file after its last record is one blank record: i32 number of bytes to the end of the file (8 or
more), u32 magic 0xCBD43194, anything. (CommitLog and MessageDecoder, 4.9.8.)
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping
from typing import Final, NamedTuple
from zlib import crc32

from refmq.errors import CorruptRecord, DecodeError, UsageError, WireError
from refmq.model.ids import HostAddress, PhysicalOffset, QueueOffset, TimestampMs

RECORD_MAGIC: Final = 0xDAA320A7
RECORD_MAGIC_V2: Final = 0xDAA320AB
BLANK_MAGIC: Final = 0xCBD43194
BLANK_HEADER_BYTES: Final = 8

SYS_FLAG_COMPRESSED: Final = 0x1
SYS_FLAG_MULTI_TAGS: Final = 0x2
SYS_FLAG_TRANSACTION: Final = 0xC
TRANSACTION_NONE: Final = 0x0
TRANSACTION_PREPARED: Final = 0x4
TRANSACTION_COMMIT: Final = 0x8
TRANSACTION_ROLLBACK: Final = 0xC
SYS_FLAG_BORN_IPV6: Final = 0x10
SYS_FLAG_STORE_IPV6: Final = 0x20

TOPIC_BYTES_MAX: Final = 127
PROPERTIES_BYTES_MAX: Final = 32767
LENGTHS_BYTES: Final = 1 + 2
"""The two length fields after the body: of the topic (one byte more in 5.x) and of the properties."""

NAME_VALUE_SEPARATOR: Final = "\x01"
PROPERTY_SEPARATOR: Final = "\x02"
KEY_SEPARATOR: Final = " "

_HOST_FLAGS: Final = SYS_FLAG_BORN_IPV6 | SYS_FLAG_STORE_IPV6
_SYS_FLAG: Final = struct.Struct(">i")
_SYS_FLAG_AT: Final = 36
QUEUE_ID_AT: Final = 12
QUEUE_OFFSET_AT: Final = 20
PHYSICAL_OFFSET_AT: Final = 28
_SIZE_AND_MAGIC: Final = struct.Struct(">iI")
_PLACE: Final = struct.Struct(f">iI{PHYSICAL_OFFSET_AT - 8}xq")
"""Size, magic and physical offset."""

# Everything before the body, by the two bits of the sys flag that say how long the hosts are.
_HEADERS: Final = {
    born | store: struct.Struct(f">iIiiiqqiq{born_ip}siq{store_ip}siiqi")
    for born, born_ip in ((0, 4), (SYS_FLAG_BORN_IPV6, 16))
    for store, store_ip in ((0, 4), (SYS_FLAG_STORE_IPV6, 16))
}
HEADER_BYTES_MAX: Final = _HEADERS[_HOST_FLAGS].size
RECORD_BYTES_MIN: Final = _HEADERS[0].size + LENGTHS_BYTES
assert (RECORD_BYTES_MIN, HEADER_BYTES_MAX) == (91, 112)


class RecordHeader(NamedTuple):
    """The fields before the body, in their order."""

    size_bytes: int
    magic: int
    body_crc: int
    queue_id: int
    flag: int
    queue_offset: int
    physical_offset: int
    sys_flag: int
    born_timestamp_ms: int
    born_ip: bytes
    born_port: int
    store_timestamp_ms: int
    store_ip: bytes
    store_port: int
    reconsume_times: int
    prepared_transaction_offset: int
    body_bytes: int


class RecordParts(NamedTuple):
    """Where the three parts of a record that have no fixed length stand in a buffer."""

    body_at: int
    body_end: int
    topic_at: int
    topic_end: int
    properties_at: int
    end: int
    """Of the properties, and so of the record."""


class Record(NamedTuple):
    """One record, every field. (A tuple, because every message that is stored makes one.)"""

    topic: str
    queue_id: int
    queue_offset: QueueOffset
    physical_offset: PhysicalOffset
    flag: int
    sys_flag: int
    born_timestamp_ms: TimestampMs
    born_host: HostAddress
    store_timestamp_ms: TimestampMs
    store_host: HostAddress
    reconsume_times: int
    prepared_transaction_offset: int
    body: bytes
    properties: bytes
    """Wire form, kept as it is: decoding and encoding again gives the same bytes."""

    @property
    def transaction_type(self) -> int:
        return self.sys_flag & SYS_FLAG_TRANSACTION

    @property
    def message_id(self) -> str:
        return message_id(self.store_host, self.physical_offset)

    @property
    def size_bytes(self) -> int:
        texts_bytes = len(self.topic.encode()) + len(self.properties)
        return record_bytes(host_flags(0, self.born_host, self.store_host), len(self.body) + texts_bytes)


def body_crc(body: bytes | memoryview) -> int:
    """The CRC as records hold it: 31 bits, Java masks the sign away."""
    return crc32(body) & 0x7FFF_FFFF


def host_flags(sys_flag: int, born_host: HostAddress, store_host: HostAddress) -> int:
    """`sys_flag` with the two IPv6 bits set from the addresses. A wrong bit makes a record unreadable."""
    flags = sys_flag & ~(SYS_FLAG_BORN_IPV6 | SYS_FLAG_STORE_IPV6)
    if born_host.is_ipv6:
        flags |= SYS_FLAG_BORN_IPV6
    if store_host.is_ipv6:
        flags |= SYS_FLAG_STORE_IPV6
    return flags


def record_bytes(sys_flag: int, content_bytes: int) -> int:
    """How long a record is. `sys_flag` has the right host bits; `content_bytes` is body, topic and properties."""
    assert content_bytes >= 0
    return _HEADERS[sys_flag & _HOST_FLAGS].size + LENGTHS_BYTES + content_bytes


def encode_parts(header: RecordHeader, body: bytes, topic: bytes, properties: bytes) -> bytes:
    """The bytes of a record. Raises `UsageError` for anything that does not fit its field."""
    if len(topic) > TOPIC_BYTES_MAX:
        raise UsageError(f"the topic has {len(topic)} bytes, {TOPIC_BYTES_MAX} fit a record")
    if len(properties) > PROPERTIES_BYTES_MAX:
        raise UsageError(f"the properties have {len(properties)} bytes, {PROPERTIES_BYTES_MAX} fit a record")
    assert header.magic == RECORD_MAGIC
    assert header.body_bytes == len(body)
    assert header.size_bytes == record_bytes(header.sys_flag, len(body) + len(topic) + len(properties))
    try:
        encoded = _HEADERS[header.sys_flag & _HOST_FLAGS].pack(*header)
    except struct.error as reason:
        raise UsageError(f"a number does not fit its field of a record: {reason}") from None
    topic_length, properties_length = bytes((len(topic),)), len(properties).to_bytes(2, "big")
    return b"".join((encoded, body, topic_length, topic, properties_length, properties))


def encode_record(record: Record) -> bytes:
    """The bytes of a record. Raises `UsageError` for anything that does not fit its field."""
    topic = record.topic.encode()
    born, store = record.born_host, record.store_host
    sys_flag = host_flags(record.sys_flag, born, store)
    header = RecordHeader(
        record_bytes(sys_flag, len(record.body) + len(topic) + len(record.properties)),
        RECORD_MAGIC,
        body_crc(record.body),
        record.queue_id,
        record.flag,
        record.queue_offset,
        record.physical_offset,
        sys_flag,
        record.born_timestamp_ms,
        born.ip,
        born.port,
        record.store_timestamp_ms,
        store.ip,
        store.port,
        record.reconsume_times,
        record.prepared_transaction_offset,
        len(record.body),
    )
    return encode_parts(header, record.body, topic, record.properties)


def encode_blank(size_bytes: int) -> bytes:
    """The start of the blank record that fills the last `size_bytes` of a file."""
    assert size_bytes >= BLANK_HEADER_BYTES
    return _SIZE_AND_MAGIC.pack(size_bytes, BLANK_MAGIC)


def read_size_and_magic(data: bytes | memoryview, start: int = 0) -> tuple[int, int]:
    """What a record or a blank record starts with, unchecked. There must be `BLANK_HEADER_BYTES` of it."""
    assert 0 <= start <= len(data) - BLANK_HEADER_BYTES
    size_bytes, magic = _SIZE_AND_MAGIC.unpack_from(data, start)
    return size_bytes, magic


def is_record_at(data: bytes, position: int) -> bool:
    """Whether `data` is as long as a record says that starts with it and stands at `position`. Its parts may be wrong:
    what a queue unit names was checked when it was dispatched."""
    if len(data) < RECORD_BYTES_MIN:
        return False
    size_bytes, magic, physical_offset = _PLACE.unpack_from(data)
    return size_bytes == len(data) and is_record_magic(magic) and physical_offset == position


def is_record_magic(magic: int) -> bool:
    return magic in (RECORD_MAGIC, RECORD_MAGIC_V2)


def read_header(
    data: bytes | memoryview, start: int = 0, *, base: int = 0, error: type[DecodeError] = CorruptRecord
) -> RecordHeader:
    """The header of the record that starts at `start`. The rest of the record need not be there.

    Errors name offsets counted from `base` plus the position in `data`. Their class is `error`: `CorruptRecord` for a
    file, `WireError` for a response of a broker.
    """
    assert start >= 0
    left = len(data) - start
    if left < RECORD_BYTES_MIN:
        raise error("total size", base + start, f"at least {RECORD_BYTES_MIN} bytes", f"{left} bytes left")
    size_bytes, magic = _SIZE_AND_MAGIC.unpack_from(data, start)
    if not is_record_magic(magic):
        raise error("magic", base + start + 4, f"{RECORD_MAGIC:#010x}", f"{magic:#010x}")
    (sys_flag,) = _SYS_FLAG.unpack_from(data, start + _SYS_FLAG_AT)
    layout = _HEADERS[sys_flag & _HOST_FLAGS]
    if size_bytes < layout.size + LENGTHS_BYTES:
        raise error("total size", base + start, f"at least {layout.size + LENGTHS_BYTES}", size_bytes)
    if left < layout.size:
        raise error("total size", base + start, f"a header of {layout.size} bytes", f"{left} bytes left")
    return RecordHeader._make(layout.unpack_from(data, start))


def find_parts(
    data: bytes | memoryview,
    start: int,
    header: RecordHeader,
    *,
    base: int = 0,
    error: type[DecodeError] = CorruptRecord,
) -> RecordParts:
    """Where the parts of the record are whose header was read at `start`: every length is checked against the record,
    the record against the data."""
    if header.size_bytes > len(data) - start:
        raise error("total size", base + start, f"{RECORD_BYTES_MIN} .. {len(data) - start}", header.size_bytes)
    end = start + header.size_bytes
    body_at = start + _HEADERS[header.sys_flag & _HOST_FLAGS].size
    topic_length_bytes = 1 if header.magic == RECORD_MAGIC else 2
    room = end - body_at - topic_length_bytes - 2
    if not 0 <= header.body_bytes <= room:
        raise error("body length", base + body_at - 4, f"0 .. {room}", header.body_bytes)
    body_end = body_at + header.body_bytes
    topic_at = body_end + topic_length_bytes
    topic_bytes = int.from_bytes(data[body_end:topic_at], "big", signed=True)
    if not 0 <= topic_bytes <= end - topic_at - 2:
        raise error("topic length", base + body_end, f"0 .. {end - topic_at - 2}", topic_bytes)
    topic_end = topic_at + topic_bytes
    properties_at = topic_end + 2
    properties_bytes = int.from_bytes(data[topic_end:properties_at], "big", signed=True)
    if properties_bytes != end - properties_at:
        raise error("properties length", base + topic_end, end - properties_at, properties_bytes)
    assert start < body_at <= body_end < topic_at <= topic_end < properties_at <= end <= len(data)
    return RecordParts(body_at, body_end, topic_at, topic_end, properties_at, end)


def decode_topic(
    data: bytes | memoryview, parts: RecordParts, *, base: int = 0, error: type[DecodeError] = CorruptRecord
) -> str:
    """The topic of a record."""
    at, topic = parts.topic_at, data[parts.topic_at : parts.topic_end]
    try:
        return str(topic, "utf-8")
    except UnicodeDecodeError as reason:
        raise error("topic", base + at + reason.start, "UTF-8", f"byte {topic[reason.start]:#04x}") from None


def check_body(
    data: bytes | memoryview,
    start: int,
    header: RecordHeader,
    parts: RecordParts,
    *,
    base: int = 0,
    error: type[DecodeError] = CorruptRecord,
) -> None:
    """Raises `error` unless the body has the checksum that the header says."""
    assert parts.body_end - parts.body_at == header.body_bytes
    found = body_crc(data[parts.body_at : parts.body_end])
    if found != header.body_crc:
        raise error("body crc", base + start + 8, f"{found:#010x}", f"{header.body_crc:#010x}")


def decode_record(
    data: bytes | memoryview,
    start: int = 0,
    *,
    base: int = 0,
    check_crc: bool = True,
    error: type[DecodeError] = CorruptRecord,
) -> Record:
    """The record that starts at `start`, whole and checked. See `read_header` for `base` and `error`."""
    header = read_header(data, start, base=base, error=error)
    parts = find_parts(data, start, header, base=base, error=error)
    if check_crc:
        check_body(data, start, header, parts, base=base, error=error)
    return Record(
        topic=decode_topic(data, parts, base=base, error=error),
        queue_id=header.queue_id,
        queue_offset=QueueOffset(header.queue_offset),
        physical_offset=PhysicalOffset(header.physical_offset),
        flag=header.flag,
        sys_flag=header.sys_flag,
        born_timestamp_ms=TimestampMs(header.born_timestamp_ms),
        born_host=HostAddress(header.born_ip, header.born_port),
        store_timestamp_ms=TimestampMs(header.store_timestamp_ms),
        store_host=HostAddress(header.store_ip, header.store_port),
        reconsume_times=header.reconsume_times,
        prepared_transaction_offset=header.prepared_transaction_offset,
        body=bytes(data[parts.body_at : parts.body_end]),
        properties=bytes(data[parts.properties_at : parts.end]),
    )


def decode_records(data: bytes, *, check_crc: bool = True) -> Iterator[Record]:
    """The records of a pull response, one after another."""
    at = 0
    while at < len(data):
        yield decode_record(data, at, check_crc=check_crc, error=WireError)
        at += read_size_and_magic(data, at)[0]


# --- properties ---------------------------------------------------------------------------------------------------


def parse_properties(text: str) -> dict[str, str]:
    """Names and values. As Java does it: a piece without name or without value is dropped, a later duplicate wins."""
    found = {}
    for piece in text.split(PROPERTY_SEPARATOR):
        name, separator, value = piece.partition(NAME_VALUE_SEPARATOR)
        if name and separator and value:
            found[name] = value
    return found


def decode_properties(properties: bytes) -> dict[str, str]:
    """`parse_properties` of the wire form; bytes that are not UTF-8 become replacement characters, as in Java."""
    return parse_properties(properties.decode("utf-8", "replace"))


def join_properties(properties: Mapping[str, str]) -> str:
    """The wire form, without a separator at its end (4.9.8)."""
    return PROPERTY_SEPARATOR.join([f"{name}{NAME_VALUE_SEPARATOR}{value}" for name, value in properties.items()])


def encode_properties(properties: Mapping[str, str]) -> bytes:
    return join_properties(properties).encode()


def concatenate_properties(first: bytes, second: bytes) -> bytes:
    """Two wire forms as one. The separator between them may be missing at the end of the first (4.9.1 and later)."""
    if first and second and not first.endswith(b"\x02"):
        return first + b"\x02" + second
    return first + second


def string_hash(text: str) -> int:
    """Java's `String.hashCode`: signed 32 bits over UTF-16 code units. Tags and index keys are compared by it."""
    value = 0
    if text.isascii():
        for byte in text.encode():
            value = (31 * value + byte) & 0xFFFF_FFFF
    else:
        encoded = text.encode("utf-16-be", "surrogatepass")
        for unit in struct.unpack(f">{len(encoded) // 2}H", encoded):
            value = (31 * value + unit) & 0xFFFF_FFFF
    return value - 0x1_0000_0000 if value & 0x8000_0000 else value


# --- message ids ----------------------------------------------------------------------------------------------------


def message_id(store_host: HostAddress, physical_offset: int) -> str:
    """The id that a broker gives: address, port as i32 and physical offset, in upper-case hex."""
    return (store_host.ip + struct.pack(">iq", store_host.port, physical_offset)).hex().upper()


def parse_message_id(text: str) -> tuple[HostAddress, PhysicalOffset]:
    """Where a message is, by the id of its broker. Raises `WireError`."""
    try:
        data = bytes.fromhex(text)
    except ValueError:
        data = b""
    if len(text) not in (32, 56) or len(data) * 2 != len(text):
        raise WireError("message id", 0, "32 or 56 hex digits", text)
    port, physical_offset = struct.unpack(">iq", data[-12:])
    return HostAddress(data[:-12], port), PhysicalOffset(physical_offset)


# --- batches ----------------------------------------------------------------------------------------------------------

_BATCHED = struct.Struct(">iiiii")


class BatchedMessage(NamedTuple):
    """One message inside the body of a batch send.

    offset  size  type  field            valid
    0       4     i32   size             the whole message, this field included
    4       4     i32   magic            0, not looked at
    8       4     i32   body crc         0, not looked at
    12      4     i32   flag
    16      4     i32   body length B
    20      B           body
    20+B    2     i16   properties length P
    22+B    P           properties
    """

    flag: int
    body: bytes
    properties: bytes


def encode_batch(messages: Iterator[BatchedMessage] | tuple[BatchedMessage, ...]) -> bytes:
    """The body of a batch send."""
    parts = []
    for message in messages:
        if len(message.properties) > PROPERTIES_BYTES_MAX:
            raise UsageError(
                f"the properties have {len(message.properties)} bytes, {PROPERTIES_BYTES_MAX} fit a record"
            )
        size = _BATCHED.size + len(message.body) + 2 + len(message.properties)
        parts.append(_BATCHED.pack(size, 0, 0, message.flag, len(message.body)))
        parts.append(message.body)
        parts.append(len(message.properties).to_bytes(2, "big"))
        parts.append(message.properties)
    return b"".join(parts)


def decode_batch(data: bytes) -> tuple[BatchedMessage, ...]:
    """The messages of a batch send. Raises `WireError` unless the bytes are exactly a sequence of messages."""
    found = []
    at = 0
    while at < len(data):
        left = len(data) - at
        if left < _BATCHED.size + 2:
            raise WireError("size", at, f"at least {_BATCHED.size + 2} bytes", f"{left} bytes left")
        size, _, _, flag, body_length = _BATCHED.unpack_from(data, at)
        if not _BATCHED.size + 2 <= size <= left:
            raise WireError("size", at, f"{_BATCHED.size + 2} .. {left}", size)
        if not 0 <= body_length <= size - _BATCHED.size - 2:
            raise WireError("body length", at + 16, f"0 .. {size - _BATCHED.size - 2}", body_length)
        body_at = at + _BATCHED.size
        properties_at = body_at + body_length + 2
        properties_length = int.from_bytes(data[properties_at - 2 : properties_at], "big", signed=True)
        if properties_length != at + size - properties_at:
            raise WireError("properties length", properties_at - 2, at + size - properties_at, properties_length)
        body = data[body_at : properties_at - 2]
        found.append(BatchedMessage(flag, body, data[properties_at : at + size]))
        at += size
    assert at == len(data), "the messages are all of the body"
    return tuple(found)
