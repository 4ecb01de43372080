"""Store directories in pieces: what the log says that queues and indexes should hold, and what they hold.

A piece of the log is any stretch of a file. It begins at its first record: one that says its own position, so none is
taken for a record that is not one. A record belongs to the piece in which it begins. So pieces are read apart, and
together they are the log if each ends where the next one begins.

    unit of a record (`UNIT`)                               key of a record (`KEY`)
    offset  size  type  name             meaning            offset  size  type  name             meaning
    0       8     i64   physical_offset  of the record      0       8     i64   physical_offset  of the record
    8       8     i64   queue_offset                        8       8     i64   hash             as the index has it
    16      8     i64   tags_code
    24      8     i64   store_ms
    32      8     i64   message          its fingerprint
    40      8     u64   topic            FNV-1a of its name
    48      4     i32   queue_id
    52      4     i32   size_bytes
    56      4     u32   transaction      bits 2 and 3 of the sys flag
    60      4     u32   reserved
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final

import numpy as np
from numpy.typing import NDArray

from refmq.errors import CorruptRecord
from refmq.inspect.verify import index_hashes, key_hash
from refmq.model.fingerprint import message_fingerprint
from refmq.protocol.record import (
    BLANK_HEADER_BYTES,
    BLANK_MAGIC,
    RECORD_BYTES_MIN,
    RECORD_MAGIC,
    decode_properties,
    decode_record,
    string_hash,
)
from refmq.verify.spark import native

UNIT: Final = np.dtype(
    [
        *((name, "<i8") for name in ("physical_offset", "queue_offset", "tags_code", "store_ms", "message")),
        ("topic", "<u8"),
        *((name, "<i4") for name in ("queue_id", "size_bytes")),
        *((name, "<u4") for name in ("transaction", "reserved")),
    ]
)
KEY: Final = np.dtype([("physical_offset", "<i8"), ("hash", "<i8")])
QUEUE_UNIT: Final = np.dtype([("physical_offset", ">i8"), ("size_bytes", ">i4"), ("tags_code", ">i8")])
INDEX_ENTRY: Final = np.dtype([("hash", ">i4"), ("physical_offset", ">i8"), ("seconds", ">i4"), ("previous", ">i4")])
RECORD_BYTES_MAX: Final = 8 << 20
"""Read beyond the end of a piece, for its last record: more than the largest message that a broker takes."""
READ_BYTES: Final = 16 << 20
LOOK_BYTES: Final = 64 << 10
"""How far the first look for a record goes; the next ones go further. Most records are shorter."""
MAGICS: Final = (RECORD_MAGIC.to_bytes(4, "big"), (0xDAA320AB).to_bytes(4, "big"))
SIGN: Final = 0xCBF29CE484222325

Rows = NDArray[np.void]


def topic_hash(topic: str) -> int:
    """FNV-1a."""
    value = SIGN
    for byte in topic.encode():
        value = (value ^ byte) * 0x100000001B3 & 0xFFFF_FFFF_FFFF_FFFF
    return value


@dataclass(slots=True)
class PieceOfLog:
    """What stands in one piece."""

    begin: int
    """Physical offset of the first record, or where the piece ends if there is none."""
    end: int
    """Where the record after the last one would begin."""
    is_end: bool = False
    """The log ends here: zeros follow."""
    damage: list[tuple[int, int, str]] = field(default_factory=list)
    """Stretches that are neither records nor the rest of a file: from, to, and why."""
    records: int = 0


Decoded = tuple[Rows, Rows, int]


def decode_units(data: memoryview, position: int, *, check_crc: bool = True, fast: bool | None = None) -> Decoded:
    """Units and keys of the records from `data[0]` on, which stands at `position`; and where reading stopped."""
    if native.kernels() is not None if fast is None else fast:
        units, keys, stopped = native.kernels().read_log_units(data, position, check_crc)
        return np.frombuffer(units, UNIT), np.frombuffer(keys, KEY), stopped
    return _decode_plainly(data, position, check_crc)


def _decode_plainly(data: memoryview, position: int, check_crc: bool) -> Decoded:
    units: list[tuple[int, ...]] = []
    keys: list[tuple[int, int]] = []
    at = 0
    while len(data) - at >= RECORD_BYTES_MIN:
        try:
            record = decode_record(data[at:], base=position + at, check_crc=check_crc)
        except CorruptRecord:
            break
        if record.physical_offset != position + at:
            break
        size = int.from_bytes(data[at : at + 4], "big")
        properties = decode_properties(record.properties)
        tags = properties.get("TAGS", "")
        message = message_fingerprint(properties.get("UNIQ_KEY", "").encode(), record.body)
        place = (record.physical_offset, record.queue_offset, string_hash(tags) if tags else 0)
        about = (record.store_timestamp_ms, message, topic_hash(record.topic), record.queue_id, size)
        units.append((*place, *about, record.transaction_type, 0))
        keys += [(record.physical_offset, value) for value in index_hashes(record)]
        at += size
    return np.array(units, UNIT), np.array(keys, KEY), at


def read_piece(
    file_begin: int, file_bytes: bytes | memoryview, first: int, last: int
) -> Iterator[tuple[Rows, Rows] | PieceOfLog]:
    """Units and keys of the records that begin in `[first, last)` of a file, and at the end what the piece was like.

    `file_bytes` is the whole file, mapped.
    """
    data = memoryview(file_bytes)
    at = first if first == 0 else find_record(data, file_begin, first, min(last, len(data)))
    piece = PieceOfLog(file_begin + at, file_begin + at)
    while at < min(last, len(data)):
        stop = min(at + READ_BYTES, last)
        units, keys, taken = decode_units(data[at : min(stop + RECORD_BYTES_MAX, len(data))], file_begin + at)
        within = units["physical_offset"] < file_begin + last
        if not within.all():
            taken = int(units["physical_offset"][~within][0]) - file_begin - at
            keys = keys[keys["physical_offset"] < file_begin + last]
            units = units[within]
        if len(units):
            piece.records += len(units)
            yield units, keys
            at += taken
            continue
        kind = what_stands(data, at)
        if kind == "blank":
            at = len(data)
        elif kind == "zeros":
            piece.is_end = True
            break
        else:
            following = find_record(data, file_begin, at + 1, min(last, len(data)))
            piece.damage.append((file_begin + at, file_begin + following, "no whole record"))
            at = following
    piece.end = file_begin + at
    yield piece


def what_stands(data: memoryview, at: int) -> str:
    """What stands where no record does: the blank record at the end of a file, nothing, or damage."""
    left = len(data) - at
    if left < BLANK_HEADER_BYTES:
        return "blank"
    size, magic = (int.from_bytes(data[at + offset : at + offset + 4], "big") for offset in (0, 4))
    if magic == BLANK_MAGIC and size == left:
        return "blank"
    return "zeros" if not any(data[at : at + RECORD_BYTES_MIN]) else "damage"


def find_record(data: memoryview, file_begin: int, start: int, stop: int) -> int:
    """The first position from `start` on, and before `stop`, where a whole record stands; `stop` if there is none."""
    at, look = start, LOOK_BYTES
    while at < stop:
        window = bytes(data[at : min(at + look, stop) + 8])
        candidates = sorted(
            place - 4 for magic in MAGICS for place in _places(window, magic) if place >= 4 and at + place - 4 < stop
        )
        for candidate in candidates:
            place = at + candidate
            size = int.from_bytes(data[place : place + 4], "big")
            own = int.from_bytes(data[place + 28 : place + 36], "big")
            if own == file_begin + place and RECORD_BYTES_MIN <= size <= len(data) - place:
                units, _, _ = decode_units(data[place : place + size], file_begin + place)
                if len(units):
                    return place
        at += look
        look = min(2 * look, READ_BYTES)
    return stop


def _places(data: bytes, sought: bytes) -> Iterator[int]:
    at = data.find(sought)
    while at >= 0:
        yield at
        at = data.find(sought, at + 1)


assert key_hash("t", "k") == key_hash("t", "k") >= 0
