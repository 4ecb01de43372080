"""Reading the log from a record boundary to the first bytes that are not a record: where the log ends.

What is checked of every record: its magic, that its physical offset is where it stands, that its total size is the sum
of its parts and fits the file, the CRC of its body, and that it names a queue that can exist.

The CRC covers nothing but the body, so two more things are checked, because what was not written reads as zeros:

- A write that a crash interrupted ends early. A record whose last text ends with a zero byte is torn. (`append` never
  writes a record that looks like that.)
- A page that a power failure took is all zeros. So a record is torn if its topic or its properties are nothing but
  zeros from one page boundary to the next, or, where pages are that small, if its header has a whole page of zeros.

The log is read in pieces, so a log of any size is scanned in bounded memory.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, Protocol

from refmq.errors import CorruptRecord
from refmq.model.ids import PhysicalOffset, TimestampMs
from refmq.protocol.record import (
    BLANK_HEADER_BYTES,
    BLANK_MAGIC,
    HEADER_BYTES_MAX,
    PHYSICAL_OFFSET_AT,
    QUEUE_ID_AT,
    RECORD_BYTES_MIN,
    RECORD_MAGIC,
    TRANSACTION_PREPARED,
    RecordHeader,
    RecordParts,
    check_body,
    decode_topic,
    find_parts,
    is_record_magic,
    read_header,
    read_size_and_magic,
)
from refmq.store.config import PIECE_BYTES_DEFAULT
from refmq.store.consume_queue import is_storable_topic
from refmq.store.file_sequence import FileSequence

_NOT_QUEUED: Final = TRANSACTION_PREPARED
"""A bit that prepared and rolled-back records have: they belong to no queue."""
_MAGIC_AT: Final = 4
_MAGIC_BYTES: Final = RECORD_MAGIC.to_bytes(4, "big")


@dataclass(frozen=True, slots=True)
class ScanResult:
    """How far the log is valid, and why no further."""

    valid_to: PhysicalOffset
    records: int
    last_store_ms: TimestampMs
    """Store time of the last valid record; 0 without one."""
    stopped_by: CorruptRecord | None
    """None: the log simply ends there (zeros, or the end of its last file)."""


class ScanRecords(Protocol):
    """A faster way over sound records: `refmq_fast` has one."""

    def __call__(
        self, data: memoryview, position: int, in_file: int, page_bytes: int, check_crc: bool, /
    ) -> tuple[int, int, int]:
        """How many bytes of records from the start of `data` on `check_record` would pass, how many records they are,
        and the store time of the last one. It may stop at any of them: what it leaves is looked at here."""
        ...


def scan_log(
    files: FileSequence,
    scan_from: int,
    *,
    page_bytes: int = 4096,
    check_crc: bool = True,
    piece_bytes: int = PIECE_BYTES_DEFAULT,
    scan_records: ScanRecords | None = None,
) -> ScanResult:
    """Reads from `scan_from`, which must be a record boundary, to the first position where no record is.

    A blank record leads to the next file; in the last file the log ends before it, so that the file can be continued.
    With `scan_records` only what it does not pass is looked at here.
    """
    position, records, last_store_ms = scan_from, 0, 0
    stopped_by: CorruptRecord | None = None
    whole = {base for base in files.bases if files.file(base).size_bytes == files.file_bytes}
    window = _Window(files, piece_bytes)
    while files.base_of(position) in whole:
        base = files.base_of(position)
        left = base + files.file_bytes - position
        if left < BLANK_HEADER_BYTES:
            stopped_by = CorruptRecord("blank record", position, f"at least {BLANK_HEADER_BYTES} bytes", left)
            break
        data, at = window.at(position, BLANK_HEADER_BYTES)
        size, magic = read_size_and_magic(data, at)
        if magic == BLANK_MAGIC:
            if size != left:
                stopped_by = CorruptRecord("blank record", position, f"the {left} bytes that are left", size)
                break
            if base + files.file_bytes not in whole:
                break
            position = base + files.file_bytes
            continue
        if size == magic == 0:
            break  # nothing was ever written here
        try:
            data, at = window.at(position, _record_size(size, magic, left, position))
            if scan_records is not None:
                passed = memoryview(data)[at:]
                done, count, last_ms = scan_records(passed, position, position - base, page_bytes, check_crc)
                if count:
                    records, last_store_ms, position = records + count, last_ms, position + done
                    continue
            header = check_record(data, at, position, position - base, page_bytes=page_bytes, check_crc=check_crc)
        except CorruptRecord as damage:
            stopped_by = damage
            break
        assert header.size_bytes >= RECORD_BYTES_MIN, "every record takes the scan further"
        records += 1
        last_store_ms = header.store_timestamp_ms
        position += header.size_bytes
    assert position >= scan_from
    return ScanResult(PhysicalOffset(position), records, TimestampMs(last_store_ms), stopped_by)


class _Window:
    """The piece of a file that is in memory. One read serves many records; a record that does not fit is read alone."""

    def __init__(self, files: FileSequence, piece_bytes: int) -> None:
        self._files = files
        self._piece_bytes = piece_bytes
        self._data = b""
        self._position = 0

    def at(self, position: int, length: int) -> tuple[bytes, int]:
        """Some bytes, and where in them `position` is: at least `length` from there, all in one file."""
        index = position - self._position
        if not 0 <= index <= len(self._data) - length:
            left = self._files.file_bytes - position % self._files.file_bytes
            assert length <= left
            self._data = self._files.read(position, min(max(length, self._piece_bytes), left))
            self._position, index = position, 0
        assert index + length <= len(self._data)
        return self._data, index


def _record_size(size: int, magic: int, left: int, position: int) -> int:
    """The size of a record that starts so, `left` bytes before the end of its file. Raises `CorruptRecord`."""
    if not is_record_magic(magic):
        raise CorruptRecord("magic", position + _MAGIC_AT, f"{RECORD_MAGIC:#010x}", f"{magic:#010x}")
    if not RECORD_BYTES_MIN <= size <= left:
        raise CorruptRecord("total size", position, f"{RECORD_BYTES_MIN} .. {left}", size)
    return size


def check_record(
    data: bytes, at: int, position: int, in_file: int, *, page_bytes: int, check_crc: bool = True
) -> RecordHeader:
    """The header of the record at `data[at]`, which stands at `position` of the log and `in_file` bytes into its file.

    Raises `CorruptRecord` if it is not a record as it was once written there: everything that this module's head
    promises is checked here.
    """
    base = position - at
    header = read_header(data, at, base=base)
    parts = find_parts(data, at, header, base=base)
    if check_crc:
        check_body(data, at, header, parts, base=base)
    topic = decode_topic(data, parts, base=base)
    if header.physical_offset != position:
        raise CorruptRecord("physical offset", position + PHYSICAL_OFFSET_AT, position, header.physical_offset)
    if not header.sys_flag & _NOT_QUEUED:
        if header.queue_id < 0 or header.queue_offset < 0:
            raise CorruptRecord("queue", position + QUEUE_ID_AT, "a queue id and an offset in it", header.queue_id)
        if not is_storable_topic(topic):
            raise CorruptRecord("topic", base + parts.topic_at, "the name of a queue", topic)
    _refuse_zeros(data, at, position, in_file, parts, page_bytes)
    return header


def _refuse_zeros(data: bytes, at: int, position: int, in_file: int, parts: RecordParts, page_bytes: int) -> None:
    """Raises `CorruptRecord` for zeros that nobody wrote. Neither the checksum nor any length can notice them."""
    assert at < parts.body_at <= parts.topic_end <= parts.properties_at <= parts.end <= len(data)
    last_text_end = parts.end if parts.end > parts.properties_at else parts.topic_end
    if not data[last_text_end - 1]:
        raise CorruptRecord("properties", position, "bytes as they were written", "zeros at the end")
    start = in_file - at  # of `data` in the file, from which pages are counted
    if page_bytes < HEADER_BYTES_MAX and has_lost_page(data, at, parts.body_at, start, page_bytes, whole_only=True):
        raise CorruptRecord("header", position, "bytes as they were written", "a lost page of zeros")
    if (start + parts.body_end) // page_bytes == (start + parts.end - 1) // page_bytes:
        return  # within one page, texts that were lost would have been lost to the end
    for text_at, text_end in ((parts.topic_at, parts.topic_end), (parts.properties_at, parts.end)):
        if has_lost_page(data, text_at, text_end, start, page_bytes):
            raise CorruptRecord("properties", position, "bytes as they were written", "a lost page of zeros")


def has_lost_page(
    data: bytes, start: int, stop: int, in_file: int, page_bytes: int, *, whole_only: bool = False
) -> bool:
    """Whether some page holds nothing but zeros of `data[start:stop]`.

    With `whole_only`, a page counts only if all of it lies within. `in_file` is the position of `data[0]` in its
    file, from which pages are counted.
    """
    assert 0 <= start <= stop <= len(data)
    at = start
    while at < stop:
        piece_end = min(at + page_bytes - (in_file + at) % page_bytes, stop)
        if not any(data[at:piece_end]) and (piece_end - at == page_bytes or not whole_only):
            return True
        at = piece_end
    return False


def find_next_record(
    files: FileSequence, position: int, *, page_bytes: int = 4096, piece_bytes: int = PIECE_BYTES_DEFAULT
) -> tuple[int, TimestampMs] | None:
    """The first good record after `position`, with its store time: does anything follow the damage?"""
    for base in files.bases:
        if base + files.file_bytes <= position or files.file(base).size_bytes != files.file_bytes:
            continue
        for at in _places_of_magic(files, base, max(base, position + 1), piece_bytes):
            left = base + files.file_bytes - at
            try:
                size = _record_size(*read_size_and_magic(files.read(at, BLANK_HEADER_BYTES)), left, at)
                header = check_record(files.read(at, size), 0, at, at - base, page_bytes=page_bytes)
            except CorruptRecord:
                continue  # the body of a message may hold anything, also what looks like a record
            assert at > position, "what follows the damage comes after it"
            return at, TimestampMs(header.store_timestamp_ms)
    return None


def _places_of_magic(files: FileSequence, base: int, start: int, piece_bytes: int) -> Iterator[int]:
    """Positions in one file where a record could start, going by its magic."""
    end = base + min(files.file(base).data_end(), files.file_bytes)
    at = start
    while at < end:
        data = files.read(at, min(piece_bytes, end - at))
        found = data.find(_MAGIC_BYTES)
        while found >= 0:
            if at + found - _MAGIC_AT >= start:
                yield at + found - _MAGIC_AT
            found = data.find(_MAGIC_BYTES, found + 1)
        at += max(1, len(data) - len(_MAGIC_BYTES) + 1) if at + len(data) < end else len(data)
