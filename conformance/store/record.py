"""A reader of commit log records that shares no code with any engine: the oracles must not repeat its mistakes.

Offsets below are for IPv4 hosts; an IPv6 host (bits 0x10 and 0x20 of the system flag) takes 12 bytes more.

| offset | type  | field                                             |
|--------|-------|---------------------------------------------------|
| 0      | i32   | total size, 91 + body + topic + properties        |
| 4      | u32   | magic: DAA320A7 message, CBD43194 blank           |
| 8      | i32   | CRC-32 of the body without its top bit            |
| 12     | i32   | queue id                                          |
| 16     | i32   | flag                                              |
| 20     | i64   | queue offset                                      |
| 28     | i64   | physical offset                                   |
| 36     | i32   | system flag                                       |
| 40     | i64   | born time                                         |
| 48     | 8     | born host: 4 bytes address, i32 port              |
| 56     | i64   | store time                                        |
| 64     | 8     | store host                                        |
| 72     | i32   | reconsume times                                   |
| 76     | i64   | prepared transaction offset                       |
| 84     | i32   | body length, then the body                        |
| 88+B   | i8    | topic length, then the topic                      |
| 89+B+T | i16   | properties length, then the properties            |
"""

from __future__ import annotations

import struct
import zlib
from dataclasses import dataclass
from typing import Final

HEADS: Final = {(born, store): struct.Struct(f">iIiiiqqiq{born}sq{store}siqi") for born in (8, 20) for store in (8, 20)}
BORN_IPV6: Final = 0x10
STORE_IPV6: Final = 0x20
IPV6_EXTRA_BYTES: Final = 12
MESSAGE_MAGIC: Final = 0xDAA320A7
BLANK_MAGIC: Final = 0xCBD43194
BLANK_BYTES: Final = 8
FIXED_BYTES: Final = 91

TRANSACTION_BITS: Final = 0xC
PREPARED: Final = 0x4
COMMIT: Final = 0x8
ROLLBACK: Final = 0xC


@dataclass(frozen=True, slots=True)
class Record:
    """One record, decoded."""

    physical_offset: int
    size_bytes: int
    topic: str
    queue_id: int
    queue_offset: int
    flag: int
    sys_flag: int
    born_ms: int
    store_ms: int
    prepared_offset: int
    body: bytes
    properties: tuple[tuple[str, str], ...]
    born_host: bytes = b""
    store_host: bytes = b""
    reconsume_times: int = 0

    @property
    def transaction(self) -> int:
        return self.sys_flag & TRANSACTION_BITS

    @property
    def has_queue_unit(self) -> bool:
        return self.transaction in (0, COMMIT)

    @property
    def keys(self) -> tuple[str, ...]:
        """The keys under which the index must know it."""
        if self.transaction == ROLLBACK:
            return ()
        found = dict(self.properties)
        unique = [found["UNIQ_KEY"]] if "UNIQ_KEY" in found else []
        return tuple(unique + [key for key in found.get("KEYS", "").split(" ") if key])


def decode(data: bytes, physical_offset: int) -> Record | str | None:
    """A record, or a sentence on why it is none, or None for a blank."""
    if len(data) >= BLANK_BYTES and int.from_bytes(data[4:8], "big") == BLANK_MAGIC:
        return None
    if len(data) < FIXED_BYTES:
        return f"only {len(data)} bytes"
    flags = int.from_bytes(data[36:40], "big")
    head = HEADS[20 if flags & BORN_IPV6 else 8, 20 if flags & STORE_IPV6 else 8]
    fixed = head.size + 3
    if len(data) < fixed:
        return f"only {len(data)} bytes"
    fields = head.unpack_from(data)
    size, magic, crc, queue_id, flag, queue_offset, stored_offset, sys_flag, born_ms = fields[:9]
    born_host, store_ms, store_host, reconsume_times, prepared_offset, body_length = fields[9:]
    if magic != MESSAGE_MAGIC:
        return f"magic {magic:08x}"
    if size != len(data) or not 0 <= body_length <= size - fixed:
        return f"size {size} of {len(data)} bytes with a body of {body_length}"
    tail = head.size + body_length
    body = data[head.size : tail]
    if zlib.crc32(body) & 0x7FFFFFFF != crc:
        return "body does not match its CRC"
    topic_end = tail + 1 + data[tail]
    properties_length = int.from_bytes(data[topic_end : topic_end + 2], "big", signed=True)
    if topic_end + 2 + properties_length != size:
        return f"lengths do not add up to {size}"
    if stored_offset != physical_offset:
        return f"physical offset {stored_offset} at {physical_offset}"
    text = data[topic_end + 2 :].decode()
    pairs = tuple(tuple(piece.split("\x01", 1)) for piece in text.split("\x02") if "\x01" in piece)
    return Record(
        physical_offset,
        size,
        data[tail + 1 : topic_end].decode(),
        queue_id,
        queue_offset,
        flag,
        sys_flag,
        born_ms,
        store_ms,
        prepared_offset,
        body,
        pairs,  # type: ignore[arg-type]  # split at most once and "\x01" is there: always pairs
        born_host,
        store_host,
        reconsume_times,
    )


def java_hash(text: str) -> int:
    """Java's `String.hashCode`, as a signed 32-bit number."""
    units = text.encode("utf-16-be")
    value = 0
    for position in range(0, len(units), 2):
        value = (31 * value + int.from_bytes(units[position : position + 2], "big")) & 0xFFFFFFFF
    return value - (1 << 32) if value >= 1 << 31 else value
