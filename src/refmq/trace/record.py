"""The bytes of a trace: what a node did, 64 bytes per event.

A trace file is a sequence of 64-byte records and nothing else, so it can be mapped as one array. All
numbers are little-endian, the order of the machines that write millions of them. The first byte of a
record is its kind:

| kind | record       | meaning                                                                  |
|------|--------------|--------------------------------------------------------------------------|
| 0x00 | nothing      | space that was reserved and never used: the clean end of a file          |
| 0x01 | event        | one step of a node, or one moment of a client's operation                |
| 0x02 | string       | a piece of a string of the table; strings stand before their first use   |
| 0x03 | drop         | how many events are missing here, because the disk was too slow          |
| 0x04 | block        | the head of a block: how many records follow, and their checksum         |
| 0x72 | file         | the head of the file (`r`, the first letter of the magic)                |

File head, once at offset 0:

| offset | size | type | name        | meaning                                                          |
|--------|------|------|-------------|------------------------------------------------------------------|
| 0      | 8    | text | magic       | `refmqtrc`                                                       |
| 8      | 2    | u16  | version     | 1                                                                |
| 10     | 2    | u16  | record_size | 64                                                               |
| 12     | 4    | u32  | file_number | 0 for the first file of a life, then one more for each           |
| 16     | 8    | i64  | life_ns     | when the node started, ns since 1970: the name of this life      |
| 24     | 8    | i64  | created_ns  | when the file was started                                        |
| 32     | 28   |      | reserved    | zeros                                                            |
| 60     | 4    | u32  | crc         | CRC-32 of the first 60 bytes                                     |

Block head. A block is written as one piece; a torn tail is a block whose checksum does not hold:

| offset | size | type | name           | meaning                                                       |
|--------|------|------|----------------|---------------------------------------------------------------|
| 0      | 1    | u8   | kind           | 0x04                                                          |
| 1      | 1    |      | reserved       | zero                                                          |
| 2      | 2    | u16  | count          | records that follow and belong to the block, at least 1       |
| 4      | 4    | u32  | number         | 0 for the first block of a file, then one more for each       |
| 8      | 8    | u64  | first_sequence | the smallest sequence number that an event of it can have     |
| 16     | 40   |      | reserved       | zeros                                                         |
| 56     | 4    | u32  | records_crc    | CRC-32 of the records that follow                             |
| 60     | 4    | u32  | crc            | CRC-32 of the first 60 bytes                                  |

Event:

| offset | size | type | name      | meaning                                                            |
|--------|------|------|-----------|--------------------------------------------------------------------|
| 0      | 1    | u8   | kind      | 0x01                                                               |
| 1      | 1    | u8   | outcome   | 0 a step of a node; 1 invoke, 2 ok, 3 fail, 4 unknown, 5 consumed  |
| 2      | 2    | u16  | action    | string: the name of the action, or of the client's operation       |
| 4      | 4    | u32  | sequence  | counts the events of a life, modulo 2^32; a gap is a drop          |
| 8      | 8    | i64  | at_ns     | wall clock of the node, ns since 1970                              |
| 16     | 8    | i64  | a         | what `refmq.model.vocabulary` says for the action                  |
| 24     | 8    | i64  | b         | ...                                                                |
| 32     | 8    | i64  | c         | ...                                                                |
| 40     | 4    | u32  | d         | ...                                                                |
| 44     | 4    | u32  | actor     | string: who                                                        |
| 48     | 4    | u32  | subject   | string: on what, nearly always a topic                             |
| 52     | 4    | i32  | queue_id  | -1 without a queue                                                 |
| 56     | 8    | u64  | operation | client events: joins an invoke with its outcome; otherwise 0       |

String. Number 0 is the empty string and is never written; number 1 is the name of the node. Numbers
are valid within one file. A string longer than a record is written as several in a row:

| offset | size | type | name   | meaning                                                               |
|--------|------|------|--------|-----------------------------------------------------------------------|
| 0      | 1    | u8   | kind   | 0x02                                                                  |
| 1      | 1    | u8   | length | bytes of text in this record, at most 56                              |
| 2      | 2    | u16  | more   | 1 if the next record goes on with the same string                     |
| 4      | 4    | u32  | number | of the string, 1 to 65,535                                            |
| 8      | 56   | text | text   | UTF-8, zeros at the end                                               |

Drop: kind 0x03, `sequence` (offset 4) of the first event that is missing, `at_ns` (offset 8), and the number
of missing events as i64 at offset 16; the rest is zeros.

A message is named by its fingerprint (`refmq.model.fingerprint`): two CRC-32s, cheap in C as well.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from enum import IntEnum
from typing import Final, Protocol
from zlib import crc32

from refmq.errors import CorruptRecord
from refmq.model.step import Event, EventFields

RECORD_BYTES: Final = 64
VERSION: Final = 1
MAGIC: Final = b"refmqtrc"
BLOCK_RECORDS_MAX: Final = 4096
"""256 KiB: large enough to be written in one go, small enough to lose."""
STRING_PIECE_BYTES: Final = 56
STRINGS_MAX: Final = 65_535
"""Strings of one file; action numbers have 16 bits. A file whose table is full is followed by a new one."""
STRING_BYTES_MAX: Final = 32_767
"""The longest topic has 127 characters and the longest group 255; anything longer than this is cut."""

KIND_NOTHING: Final = 0x00
KIND_EVENT: Final = 0x01
KIND_STRING: Final = 0x02
KIND_DROP: Final = 0x03
KIND_BLOCK: Final = 0x04

_EVENT: Final = struct.Struct("<BBHIqqqqIIIiQ")
_pack_event: Final = _EVENT.pack
pack_event_into: Final = _EVENT.pack_into
"""Writes one event record into a buffer: buffer, offset, and the fields of the table above in their order."""
_FILE_HEAD: Final = struct.Struct("<8sHHIqq28x")
_BLOCK_HEAD: Final = struct.Struct("<BxHIQ40xI")
_STRING: Final = struct.Struct("<BBHI56s")
_DROP: Final = struct.Struct("<BxHIqq40x")
_U32: Final = struct.Struct("<I")
assert _EVENT.size == _STRING.size == _DROP.size == RECORD_BYTES
assert _FILE_HEAD.size == _BLOCK_HEAD.size == RECORD_BYTES - _U32.size

COLUMNS: Final = (
    ("kind", "u1", 0),
    ("outcome", "u1", 1),
    ("action", "<u2", 2),
    ("sequence", "<u4", 4),
    ("at_ns", "<i8", 8),
    ("a", "<i8", 16),
    ("b", "<i8", 24),
    ("c", "<i8", 32),
    ("d", "<u4", 40),
    ("actor", "<u4", 44),
    ("subject", "<u4", 48),
    ("queue_id", "<i4", 52),
    ("operation", "<u8", 56),
)
"""The event as columns: name, numpy format, offset."""


class Outcome(IntEnum):
    """What an event is a moment of: a step of a node, or an operation of a client."""

    STEP = 0
    INVOKE = 1
    OK = 2
    FAIL = 3
    """It certainly did not happen."""
    UNKNOWN = 4
    """It cannot be known whether it happened."""
    CONSUMED = 5
    """A message reached a listener."""


_OUTCOMES: Final = tuple(Outcome)


@dataclass(frozen=True, slots=True)
class Recorded:
    """An event as a trace holds it."""

    event: Event
    at_ns: int
    sequence: int
    outcome: Outcome = Outcome.STEP
    operation: int = 0


@dataclass(frozen=True, slots=True)
class Dropped:
    """How many events are missing, and the sequence number of the first."""

    count: int
    sequence: int
    at_ns: int


class Recorder(Protocol):
    """Where a node's steps go. Recording never fails, never waits and never changes what the node does."""

    def record(self, event: EventFields, outcome: Outcome = Outcome.STEP, operation: int = 0) -> None: ...


class NoRecorder:
    """Records nothing: what a node has without `--trace`."""

    def record(self, event: EventFields, outcome: Outcome = Outcome.STEP, operation: int = 0) -> None:
        pass


class Encoder:
    """Turns events into records, and keeps the string table of the file that they go to."""

    def __init__(self, node: str, life_ns: int) -> None:
        self.node = node
        self.life_ns = life_ns
        self.sequence = 0
        """Of the next event. Dropped events count too."""
        self.string_count = 0
        self.strings: dict[str, int] = {}
        """The table: text -> number."""

    def begin_file(self, created_ns: int) -> bytes:
        """The head of a first file with a table of its own. The caller writes the node's name into its first block."""
        self.begin_table()
        return encode_file_head(0, self.life_ns, created_ns)

    def begin_table(self) -> None:
        """Forgets all strings."""
        self.strings = {"": 0}
        self.string_count = 0

    def node_name(self) -> bytes:
        """The record of the node's name, string number 1: the first record of every file."""
        assert self.string_count == 0
        return self.define(self.node)

    @property
    def is_full(self) -> bool:
        """Whether the table might not take the three strings of another event."""
        return self.string_count > STRINGS_MAX - 3

    def event(self, event: EventFields, at_ns: int, outcome: int = 0, operation: int = 0) -> bytes:
        """The records of one event: itself, and before it the strings that it uses for the first time.

        `struct.error` when a number does not fit its field; the encoder is then as before.
        """
        strings = self.strings
        action, actor, subject, queue_id, a, b, c, d = event
        try:
            record = _pack_event(
                KIND_EVENT,
                outcome,
                strings[action],
                self.sequence & 0xFFFF_FFFF,
                at_ns,
                a,
                b,
                c,
                d,
                strings[actor],
                strings[subject],
                queue_id,
                operation,
            )
        except KeyError:
            known = self.string_count
            texts = dict.fromkeys((action, actor, subject))  # a string may stand in two fields
            before = b"".join([self.define(text) for text in texts if text not in strings])
            try:
                return before + self.event(event, at_ns, outcome, operation)
            except struct.error:  # a number does not fit: nothing of this event will be in the file
                self.strings = {text: number for text, number in strings.items() if number <= known}
                self.string_count = known
                raise
        self.sequence += 1
        return record

    def drop(self, dropped: Dropped) -> bytes:
        """The record that reports missing events."""
        return _DROP.pack(KIND_DROP, 0, dropped.sequence & 0xFFFF_FFFF, dropped.at_ns, dropped.count)

    def define(self, text: str) -> bytes:
        """Adds a string to the table; returns the records that define it."""
        number = self.string_count + 1
        assert number <= STRINGS_MAX
        self.string_count = number
        self.strings[text] = number
        data = _cut(text.encode(errors="replace"))
        pieces = [data[at : at + STRING_PIECE_BYTES] for at in range(0, len(data), STRING_PIECE_BYTES)] or [b""]
        return b"".join(
            _STRING.pack(KIND_STRING, len(piece), position < len(pieces) - 1, number, piece)
            for position, piece in enumerate(pieces)
        )


def _cut(data: bytes) -> bytes:
    """At most `STRING_BYTES_MAX` bytes, without half a character at the end."""
    if len(data) <= STRING_BYTES_MAX:
        return data
    return data[:STRING_BYTES_MAX].decode(errors="ignore").encode()


def encode_file_head(file_number: int, life_ns: int, created_ns: int) -> bytes:
    """The head of a file. The strings of the table follow it, as far as the file uses them."""
    head = _FILE_HEAD.pack(MAGIC, VERSION, RECORD_BYTES, file_number, life_ns, created_ns)
    return head + _U32.pack(crc32(head))


def strings_in(records: bytes) -> Iterator[bytes]:
    """The strings that are defined among some records, each with all of its pieces."""
    kinds = records[::RECORD_BYTES]
    first = kinds.find(KIND_STRING)
    while first >= 0:
        last = first
        while unpack_string(records, last * RECORD_BYTES)[2]:
            last += 1
        yield records[first * RECORD_BYTES : (last + 1) * RECORD_BYTES]
        first = kinds.find(KIND_STRING, last + 1)


def first_sequence_in(records: bytes, least: int) -> int:
    """The whole sequence number of the first event, or drop, among some records, which is not below `least`."""
    for at in range(0, len(records), RECORD_BYTES):
        if records[at] in (KIND_EVENT, KIND_DROP):
            low = int.from_bytes(records[at + 4 : at + 8], "little")
            return least + ((low - least) & 0xFFFF_FFFF)
    return least


def seal_block(records: bytes, number: int, first_sequence: int) -> bytes:
    """A block: its head and its records, to be written as one piece."""
    count, rest = divmod(len(records), RECORD_BYTES)
    assert rest == 0, "a block holds whole records"
    assert 0 < count <= BLOCK_RECORDS_MAX, f"a block of {count} records"
    head = _BLOCK_HEAD.pack(KIND_BLOCK, count, number, first_sequence, crc32(records))
    return head + _U32.pack(crc32(head)) + records


@dataclass(frozen=True, slots=True)
class FileHead:
    """The head of a trace file."""

    version: int
    file_number: int
    life_ns: int
    created_ns: int


def decode_file_head(data: bytes) -> FileHead:
    """The head at the start of `data`; `CorruptRecord` if it is none."""
    if len(data) < RECORD_BYTES:
        raise CorruptRecord("file head", 0, f"{RECORD_BYTES} bytes", f"{len(data)} bytes")
    magic, version, record_size, file_number, life_ns, created_ns = _FILE_HEAD.unpack_from(data)
    if magic != MAGIC:
        raise CorruptRecord("magic", 0, MAGIC, magic)
    if version != VERSION:
        raise CorruptRecord("version", 8, VERSION, version)
    if record_size != RECORD_BYTES:
        raise CorruptRecord("record_size", 10, RECORD_BYTES, record_size)
    crc = crc32(data[: RECORD_BYTES - 4])
    (stored,) = _U32.unpack_from(data, RECORD_BYTES - 4)
    if crc != stored:
        raise CorruptRecord("crc", RECORD_BYTES - 4, f"{crc:#010x}", f"{stored:#010x}")
    return FileHead(version, file_number, life_ns, created_ns)


@dataclass(frozen=True, slots=True)
class BlockHead:
    """The head of a block."""

    count: int
    number: int
    first_sequence: int
    records_crc: int


def decode_block_head(data: bytes, base: int = 0) -> BlockHead:
    """The block head at the start of `data`, which stands at `base` in its file; `CorruptRecord` if there is none."""
    if len(data) < RECORD_BYTES:
        raise CorruptRecord("block head", base, f"{RECORD_BYTES} bytes", f"{len(data)} bytes")
    kind, count, number, first_sequence, records_crc = _BLOCK_HEAD.unpack_from(data)
    if kind != KIND_BLOCK:
        raise CorruptRecord("kind", base, f"{KIND_BLOCK:#04x}", f"{kind:#04x}")
    crc = crc32(data[: RECORD_BYTES - 4])
    (stored,) = _U32.unpack_from(data, RECORD_BYTES - 4)
    if crc != stored:
        raise CorruptRecord("crc", base + RECORD_BYTES - 4, f"{crc:#010x}", f"{stored:#010x}")
    if not 0 < count <= BLOCK_RECORDS_MAX:
        raise CorruptRecord("count", base + 2, f"1 to {BLOCK_RECORDS_MAX}", count)
    return BlockHead(count, number, first_sequence, records_crc)


def unpack_event(data: bytes, at: int, strings: dict[int, str], base: int = 0) -> Recorded:
    """The event record at offset `at`. `base` is where the data stand in the file."""
    _, outcome, action, sequence, at_ns, a, b, c, d, actor, subject, queue_id, operation = _EVENT.unpack_from(data, at)
    if outcome > Outcome.CONSUMED:
        raise CorruptRecord("outcome", base + at + 1, "0 to 5", outcome)
    try:
        event = Event(strings[action], strings[actor], strings[subject], queue_id, a, b, c, d)
    except KeyError:
        fields = (("action", 2, action), ("actor", 44, actor), ("subject", 48, subject))
        field, offset, number = next(found for found in fields if found[2] not in strings)
        raise CorruptRecord(field, base + at + offset, "a string of this file", number) from None
    return Recorded(event, at_ns, sequence, _OUTCOMES[outcome], operation)


def unpack_string(data: bytes, at: int, base: int = 0) -> tuple[int, bytes, bool]:
    """Number, piece and whether more follows, of the string record at offset `at`."""
    _, length, more, number, text = _STRING.unpack_from(data, at)
    if length > STRING_PIECE_BYTES:
        raise CorruptRecord("length", base + at + 1, f"at most {STRING_PIECE_BYTES}", length)
    if more not in (0, 1):
        raise CorruptRecord("more", base + at + 2, "0 or 1", more)
    if not 0 < number <= STRINGS_MAX:
        raise CorruptRecord("number", base + at + 4, f"1 to {STRINGS_MAX}", number)
    return number, text[:length], bool(more)


def unpack_drop(data: bytes, at: int) -> Dropped:
    """The drop record at offset `at`."""
    _, _, sequence, at_ns, count = _DROP.unpack_from(data, at)
    return Dropped(count, sequence, at_ns)
