"""Reading the log from a record boundary to the first bytes that are no record: where the log ends.

What is checked of every record: magic, that its physical offset is where it stands, that its total size is the sum of
its parts and fits the file, the CRC of its body, and that it names a queue that can be. The CRC covers nothing but the
body, so two more things are looked at, because what was not written reads as zeros. A write that a crash interrupted
ends early: a record whose last text ends with a zero byte is torn. A page that a power failure took is all zeros: so is
a record whose topic or properties are nothing but zeros from one page boundary to the next, or whose header has a whole
page of zeros, where pages are that small. (`append` never writes a record that looks like the first.)

The loop is the hot part of a recovery: one `unpack_from`, one CRC and a few comparisons per record, in pieces of some
MiB, so that a log of any size is scanned in bounded memory.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final
from zlib import crc32

from refmq.errors import CorruptRecord
from refmq.model.ids import PhysicalOffset, TimestampMs
from refmq.protocol.record import (
    BLANK_MAGIC,
    RECORD_BYTES_MIN,
    RECORD_MAGIC,
    RECORD_MAGIC_V2,
    SYS_FLAG_BORN_IPV6,
    SYS_FLAG_STORE_IPV6,
    TRANSACTION_PREPARED,
    decode_record,
)
from refmq.store.config import PIECE_BYTES_DEFAULT
from refmq.store.consume_queue import is_storable_topic
from refmq.store.file_sequence import FileSequence

HEADER_BYTES_MAX: Final = 88 + 24
"""What stands before the body of a record with two IPv6 hosts."""

# total size, magic, body crc, queue id, queue offset, physical offset, sys flag, body length: two IPv4 hosts
_HEAD4 = struct.Struct(">iIii4xqqi44xi")
assert _HEAD4.size == 88
_SIZE_AND_MAGIC = struct.Struct(">iI")
_INT64 = struct.Struct(">q")
_NOT_QUEUED: Final = TRANSACTION_PREPARED  # a bit that rolled back records have as well
_IPV6 = SYS_FLAG_BORN_IPV6 | SYS_FLAG_STORE_IPV6
_MAGIC_BYTES = struct.pack(">I", RECORD_MAGIC)


@dataclass(frozen=True, slots=True)
class ScanResult:
    """How far the log is valid, and why not further."""

    valid_to: PhysicalOffset
    records: int
    last_store_ms: TimestampMs
    """Store time of the last valid record; 0 without one."""
    stopped_by: CorruptRecord | None
    """None: the log simply ends there (zeros, or the end of its last file)."""


def scan_log(
    files: FileSequence,
    scan_from: int,
    *,
    page_bytes: int = 4096,
    check_crc: bool = True,
    piece_bytes: int = PIECE_BYTES_DEFAULT,
) -> ScanResult:
    """Reads from `scan_from`, which must be a record boundary, to the first position where no record is.

    A blank record leads to the next file; in the last file the log ends before it, so that the file can go on.
    """
    position = scan_from
    records = 0
    last_at = -1
    stopped_by: CorruptRecord | None = None
    topics: set[bytes] = set()
    whole = {base for base in files.bases if files.file(base).size_bytes == files.file_bytes}
    while position - position % files.file_bytes in whole:
        base = position - position % files.file_bytes
        data = _piece(files, base, position, piece_bytes)
        consumed, count, last = _scan_chunk(data, position, position - base, page_bytes, check_crc, topics)
        records += count
        if count:
            last_at = position + last
        position += consumed
        left = base + files.file_bytes - position
        if left < 8:
            # No room for another record: never written so, but a file that ends exactly is no damage.
            stopped_by = None if left == 0 else CorruptRecord("blank record", position, "at least 8 bytes", left)
            position = position if left else base + files.file_bytes
            if left:
                break
            continue
        size, magic = _SIZE_AND_MAGIC.unpack(files.read(position, 8))
        if magic == BLANK_MAGIC:
            if size != left:
                stopped_by = CorruptRecord("blank record", position, f"the {left} bytes that are left", size)
                break
            if base + files.file_bytes not in whole:
                break
            position = base + files.file_bytes
            continue
        if consumed and RECORD_BYTES_MIN <= size <= left and magic in (RECORD_MAGIC, RECORD_MAGIC_V2):
            continue  # a record that only reaches over the end of the piece, or one for the slow look below
        stopped_by = check_slowly(files, position, page_bytes=page_bytes, check_crc=check_crc)
        if stopped_by is None and magic != 0:
            records += 1
            last_at = position
            position += size
            continue
        break
    last_store_ms = _store_time(files, last_at) if last_at >= 0 else TimestampMs(0)
    return ScanResult(PhysicalOffset(position), records, last_store_ms, stopped_by)


def _piece(files: FileSequence, base: int, position: int, piece_bytes: int) -> bytes:
    left = base + files.file_bytes - position
    return files.read(position, min(piece_bytes, left))


def _scan_chunk(
    data: bytes, position: int, in_file: int, page_bytes: int, check_crc: bool, topics: set[bytes]
) -> tuple[int, int, int]:
    """Takes whole plain records off the front of `data`, which stands at `position` and `in_file` bytes into its file.
    `topics` are those that are known to be good.

    Returns how many bytes and records those are and where the last one begins. Stops at anything else: whoever
    called looks at it again, slowly.
    """
    unpack = _HEAD4.unpack_from
    view = memoryview(data)
    length = len(data)
    end = length - RECORD_BYTES_MIN
    page_mask = -page_bytes
    pages_fit_header = page_bytes < HEADER_BYTES_MAX
    at = 0
    count = 0
    last = 0
    while at <= end:
        total, magic, crc, queue_id, queue_offset, physical, sys_flag, body_length = unpack(data, at)
        body = at + 88
        stop = at + total
        if magic != RECORD_MAGIC or physical != position + at or stop > length:
            break
        if sys_flag & _IPV6:
            body += 12 * ((sys_flag >> 4 & 1) + (sys_flag >> 5 & 1))
            body_length = int.from_bytes(data[body - 4 : body], "big", signed=True)
        tail = body + body_length
        if body_length < 0 or tail + 3 > stop or (check_crc and crc32(view[body:tail]) & 0x7FFFFFFF != crc):
            break
        properties = tail + data[tail] + 3
        if properties > stop or data[tail] > 127 or stop - properties > 32767:
            break
        if (data[properties - 2] << 8) | data[properties - 1] != stop - properties:
            break
        if not data[stop - 1] and (stop > properties or not data[properties - 3]):
            break
        topic = data[tail + 1 : properties - 2]
        if (topic not in topics or (queue_id | queue_offset) < 0) and not sys_flag & _NOT_QUEUED:
            if queue_id < 0 or queue_offset < 0 or not _is_topic(topic):
                break
            topics.add(topic)
        if pages_fit_header and has_lost_page(data, at, body, in_file, page_bytes, whole_only=True):
            break
        if ((in_file + tail) ^ (in_file + stop - 1)) & page_mask and (
            has_lost_page(data, tail + 1, properties - 2, in_file, page_bytes)
            or has_lost_page(data, properties, stop, in_file, page_bytes)
        ):
            break
        last = at
        count += 1
        at = stop
    return at, count, last


def _is_topic(topic: bytes) -> bool:
    try:
        return is_storable_topic(topic.decode())
    except UnicodeDecodeError:
        return False


def has_lost_page(
    data: bytes, start: int, stop: int, in_file: int, page_bytes: int, *, whole_only: bool = False
) -> bool:
    """Whether some page holds nothing but zeros of the text `data[start:stop]`, or all of a page with `whole_only`.

    `in_file` is the position of `data[0]` in its file: pages are counted from there.
    """
    at = start
    while at < stop:
        piece_end = min(at + page_bytes - (in_file + at) % page_bytes, stop)
        if not any(data[at:piece_end]) and (piece_end - at == page_bytes or not whole_only):
            return True
        at = piece_end
    return False


def check_slowly(
    files: FileSequence, position: int, *, page_bytes: int = 4096, check_crc: bool = True
) -> CorruptRecord | None:
    """What is wrong with the record at `position`; None when it is a good one, or when nothing was ever written."""
    base = files.base_of(position)
    left = base + files.file_bytes - position
    head = files.read(position, min(left, 8))
    if not any(head):
        return None
    size, magic = _SIZE_AND_MAGIC.unpack(head) if len(head) == 8 else (0, 0)
    if magic not in (RECORD_MAGIC, RECORD_MAGIC_V2):
        return CorruptRecord("magic", position + 4, f"{RECORD_MAGIC:#010x}", f"{magic:#010x}")
    if not RECORD_BYTES_MIN <= size <= left:
        return CorruptRecord("total size", position, f"{RECORD_BYTES_MIN} .. {left}", size)
    data = files.read(position, size)
    try:
        record = decode_record(data, base=position, check_crc=check_crc)
    except CorruptRecord as error:
        return error
    if record.physical_offset != position:
        return CorruptRecord("physical offset", position + 28, position, record.physical_offset)
    if not record.sys_flag & _NOT_QUEUED:
        if record.queue_id < 0 or record.queue_offset < 0:
            return CorruptRecord("queue", position + 12, "a queue id and an offset in it", record.queue_id)
        if not is_storable_topic(record.topic):
            return CorruptRecord("topic", position, "the name of a queue", record.topic)
    texts = size - len(record.properties)
    topic = texts - 2 - len(record.topic.encode())
    if not data[size - 1] and (size > texts or not data[texts - 3]):
        return CorruptRecord("properties", position, "bytes as they were written", "zeros at the end")
    in_file = position - base
    if has_lost_page(data, 0, topic - 1 - len(record.body), in_file, page_bytes, whole_only=True):
        return CorruptRecord("header", position, "bytes as they were written", "a lost page of zeros")
    if has_lost_page(data, topic, texts - 2, in_file, page_bytes) or has_lost_page(
        data, texts, size, in_file, page_bytes
    ):
        return CorruptRecord("properties", position, "bytes as they were written", "a lost page of zeros")
    return None


def find_next_record(
    files: FileSequence, position: int, *, page_bytes: int = 4096, piece_bytes: int = PIECE_BYTES_DEFAULT
) -> tuple[int, TimestampMs] | None:
    """The first good record behind `position`, with its store time: does anything follow the damage?"""
    for base in files.bases:
        if base + files.file_bytes <= position or files.file(base).size_bytes != files.file_bytes:
            continue
        for at in _places_of_magic(files, base, max(base, position + 1), piece_bytes):
            if check_slowly(files, at, page_bytes=page_bytes) is None:
                return at, _store_time(files, at)
    return None


def _places_of_magic(files: FileSequence, base: int, start: int, piece_bytes: int) -> Iterator[int]:
    """Positions in one file where a record could begin, by its magic."""
    end = base + min(files.file(base).data_end(), files.file_bytes)
    at = start
    while at < end:
        data = files.read(at, min(piece_bytes, end - at))
        found = data.find(_MAGIC_BYTES)
        while found >= 0:
            if at + found - 4 >= start:
                yield at + found - 4
            found = data.find(_MAGIC_BYTES, found + 1)
        at += max(1, len(data) - 3) if at + len(data) < end else len(data)


def _store_time(files: FileSequence, position: int) -> TimestampMs:
    head = files.read(position, 76)
    sys_flag = int.from_bytes(head[36:40], "big")
    return TimestampMs(_INT64.unpack_from(head, 68 if sys_flag & SYS_FLAG_BORN_IPV6 else 56)[0])
