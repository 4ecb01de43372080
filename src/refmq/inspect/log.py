"""Reading the log of a stopped store record by record, in bounded memory, past damage if there is any."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final

from refmq.errors import CorruptRecord
from refmq.inspect.files import Sequence, SequenceFile
from refmq.model.disk import Disk, DiskFile
from refmq.model.ids import PhysicalOffset
from refmq.protocol.record import BLANK_HEADER_BYTES, BLANK_MAGIC, RECORD_BYTES_MIN, RECORD_MAGIC, Record, decode_record

CHUNK_BYTES: Final = 4 << 20
"""Read at once; a record that is longer is read by itself."""

Progress = Callable[[int, int], None]
"""Called now and then with the bytes done and the bytes in all."""


@dataclass(frozen=True, slots=True)
class Damage:
    """Bytes that are neither a record nor the end of the log."""

    begin: PhysicalOffset
    end: PhysicalOffset
    error: CorruptRecord


@dataclass(frozen=True, slots=True)
class LogEnd:
    """Where the last record ends."""

    offset: PhysicalOffset


@dataclass(frozen=True, slots=True)
class Found:
    """A record and the bytes it stands in."""

    record: Record
    data: bytes


def read_records(
    disk: Disk,
    log: Sequence,
    *,
    begin: int = 0,
    check_crc: bool = True,
    progress: Progress | None = None,
) -> Iterator[Found | Damage | LogEnd]:
    """Every record from the first one at or after `begin`, damage where it is found, and the end of the log last.

    After damage, reading continues at the next whole record.
    """
    files = [file for file in log.files if file.size_bytes == log.file_bytes]
    total = sum(file.size_bytes for file in files)
    end = PhysicalOffset(log.begin)
    for number, file in enumerate(files):
        if file.begin + file.size_bytes <= begin:
            continue
        handle = disk.open(file.path, writable=False)
        try:
            reader = _FileReader(handle, file, check_crc)
            for item in reader.items(progress and _Part(progress, number * log.file_bytes, total)):
                if isinstance(item, LogEnd):
                    end = item.offset
                elif isinstance(item, Damage) or item.record.physical_offset >= begin:
                    yield item
            if reader.is_open:
                # Zeros: the log ends in this file, unless a later one has records.
                if any(_begins_with_record(disk, later) for later in files[number + 1 :]):
                    error = CorruptRecord("magic", end + 4, f"{RECORD_MAGIC:#010x}", "0x00000000")
                    yield Damage(end, PhysicalOffset(file.begin + file.size_bytes), error)
                else:
                    break
        finally:
            handle.close()
    if progress is not None:
        progress(total, total)
    yield LogEnd(end)


def _begins_with_record(disk: Disk, file: SequenceFile) -> bool:
    handle = disk.open(file.path, writable=False)
    try:
        return any(handle.read(0, min(8, file.size_bytes)))
    finally:
        handle.close()


class _Part:
    """Progress in one file as progress in all."""

    def __init__(self, progress: Progress, before: int, total: int) -> None:
        self._progress = progress
        self._before = before
        self._total = total

    def __call__(self, done: int) -> None:
        self._progress(self._before + done, self._total)


class _FileReader:
    """The records of one file."""

    def __init__(self, handle: DiskFile, file: SequenceFile, check_crc: bool) -> None:
        self._handle = handle
        self._file = file
        self._check_crc = check_crc
        self.is_open = True
        """Whether the file ended without a blank record: it was not full."""

    def items(self, progress: Callable[[int], None] | None) -> Iterator[Found | Damage | LogEnd]:
        position, size = 0, self._file.size_bytes
        data, data_at, told = b"", 0, 0
        end = 0
        while position + BLANK_HEADER_BYTES <= size:
            if position + RECORD_BYTES_MIN > data_at + len(data) and data_at + len(data) < size:
                data, data_at = self._handle.read(position, min(CHUNK_BYTES, size - position)), position
                if progress is not None and position - told >= CHUNK_BYTES:
                    told = position
                    progress(position)
            at = position - data_at
            total = int.from_bytes(data[at : at + 4], "big", signed=True)
            magic = int.from_bytes(data[at + 4 : at + 8], "big")
            if magic == BLANK_MAGIC:
                if total != size - position:
                    wrong = CorruptRecord("blank record", self._file.begin + position, size - position, total)
                    end_of_file = PhysicalOffset(self._file.begin + size)
                    yield Damage(PhysicalOffset(self._file.begin + position), end_of_file, wrong)
                self.is_open = False
                end = size
                break
            if total == 0 and magic == 0 and not any(data[at : at + RECORD_BYTES_MIN]):
                break
            if RECORD_BYTES_MIN <= total <= size - position and at + total > len(data):
                data, data_at, at = (
                    self._handle.read(position, max(total, min(CHUNK_BYTES, size - position))),
                    position,
                    0,
                )
            found = self._decode(data, at, position)
            if isinstance(found, Found):
                yield found
                position += total
                end = position
            else:
                next_position = self._next_record(position + 1)
                yield Damage(
                    PhysicalOffset(self._file.begin + position), PhysicalOffset(self._file.begin + next_position), found
                )
                position = end = next_position
        if position + BLANK_HEADER_BYTES > size:
            self.is_open = False
        yield LogEnd(PhysicalOffset(self._file.begin + end))

    def _decode(self, data: bytes, at: int, position: int) -> Found | CorruptRecord:
        offset = self._file.begin + position
        try:
            record = decode_record(memoryview(data)[at:], base=offset, check_crc=self._check_crc)
        except CorruptRecord as error:
            return error
        if record.physical_offset != offset:
            return CorruptRecord("physical offset", offset + 28, offset, record.physical_offset)
        total = int.from_bytes(data[at : at + 4], "big")
        return Found(record, data[at : at + total])

    def _next_record(self, position: int) -> int:
        """The next position that holds a whole record, or the end of the file's content."""
        magic = RECORD_MAGIC.to_bytes(4, "big")
        size = self._file.size_bytes
        start = position
        while start < size:
            data = self._handle.read(start, min(CHUNK_BYTES, size - start))
            found = data.find(magic)
            while found >= 0:
                at = start + found - 4
                if at >= position:
                    total = int.from_bytes(self._handle.read(at, 4), "big", signed=True)
                    if RECORD_BYTES_MIN <= total <= size - at and isinstance(
                        self._decode(self._handle.read(at, total), 0, at), Found
                    ):
                        return at
                found = data.find(magic, found + 1)
            if start + len(data) >= size:
                break
            start += len(data) - 3
        return size


def read_one(disk: Disk, log: Sequence, physical_offset: int) -> Found:
    """The record at an offset. Raises `CorruptRecord` when there is none."""
    for file in log.files:
        position = physical_offset - file.begin
        if 0 <= position < file.size_bytes:
            handle = disk.open(file.path, writable=False)
            try:
                left = file.size_bytes - position
                head = handle.read(position, min(8, left))
                total = int.from_bytes(head[:4], "big", signed=True)
                length = total if RECORD_BYTES_MIN <= total <= left else min(CHUNK_BYTES, left)
                found = _FileReader(handle, file, check_crc=True)._decode(handle.read(position, length), 0, position)
            finally:
                handle.close()
            if isinstance(found, CorruptRecord):
                raise found
            return found
    last = log.files[-1].begin + log.files[-1].size_bytes if log.files else 0
    raise CorruptRecord("physical offset", physical_offset, f"{log.begin} .. {last}", physical_offset)
