"""The commit log: all messages of all topics, one record after the other (layout: refmq.protocol.record).

Every file but the last one ends with a blank record of at least 8 bytes, so a record of length L is written into a file
only if L + 8 bytes are left; otherwise the blank is written and the record starts the next file (`roll_file`).

Positions, all physical offsets:

    log_min <= flushed <= readable <= wrote

`readable` is `wrote` unless the transient pool is on: then appended bytes stay in memory until they are committed to
the file, and nobody reads, dispatches or flushes beyond what is committed. A process crash loses the rest; that is the
price of that mode.
"""

from __future__ import annotations

from typing import Final

from refmq.errors import CorruptRecord, UsageError
from refmq.model.disk import Disk
from refmq.model.ids import PhysicalOffset, TimestampMs
from refmq.protocol.record import (
    BLANK_HEADER_BYTES,
    BLANK_MAGIC,
    HEADER_BYTES_MAX,
    RecordHeader,
    encode_blank,
    is_record_at,
    read_header,
    read_size_and_magic,
)
from refmq.store.config import StoreConfig
from refmq.store.file_sequence import DirectoryNames, FileSequence

LOG_DIRECTORY: Final = "commitlog"


class CommitLog:
    """The files of the log, where it ends, and how much of it is durable."""

    def __init__(self, disk: Disk, names: DirectoryNames, config: StoreConfig) -> None:
        self.files = FileSequence(
            disk, names, LOG_DIRECTORY, config.log_file_bytes, reserve=True, piece_bytes=config.piece_bytes
        )
        assert config.flush_page_bytes > 0
        self._flush_page_bytes = config.flush_page_bytes
        self._pool = config.uses_transient_pool
        self._uncommitted: list[tuple[int, bytes]] = []
        self._incomplete = b""
        """What a slave has received of a record that is not complete yet."""
        self._appended = 0
        """With the transient pool, the end of the log; `files.wrote` is then the end of what is committed."""
        self.last_store_ms = TimestampMs(0)
        """The newest store time of all appended records."""
        self.readable_store_ms = TimestampMs(0)
        """The newest store time of the records before `readable`."""
        self.flushed_store_ms = TimestampMs(0)
        """The newest store time that is durable; goes to the checkpoint."""

    # --- positions -------------------------------------------------------------------------------------------------

    @property
    def log_min(self) -> PhysicalOffset:
        return PhysicalOffset(self.files.begin)

    @property
    def readable(self) -> PhysicalOffset:
        return PhysicalOffset(self.files.wrote)

    @property
    def wrote(self) -> PhysicalOffset:
        return PhysicalOffset(self._appended if self._pool else self.files.wrote)

    @property
    def flushed(self) -> PhysicalOffset:
        return PhysicalOffset(self.files.flushed)

    @property
    def file_bytes(self) -> int:
        return self.files.file_bytes

    def end_at(self, position: int) -> None:
        """Recovery found the end of the log; everything before it is readable."""
        assert self.files.begin <= position <= self.files.limit
        assert not self._incomplete, "a start has received nothing yet"
        self.files.wrote = position
        self._appended = position
        self._uncommitted.clear()

    def saw_store_time(self, store_ms: TimestampMs) -> None:
        """A record that somebody else wrote has this store time: a dead process, or a master."""
        assert self.readable_store_ms <= self.last_store_ms
        self.last_store_ms = max(self.last_store_ms, store_ms)
        self.readable_store_ms = max(self.readable_store_ms, store_ms)

    def next_file(self, position: int) -> int:
        """The first position of the file after the one that holds `position`."""
        return position - position % self.file_bytes + self.file_bytes

    # --- append ----------------------------------------------------------------------------------------------------

    @property
    def room(self) -> int:
        """Bytes left in the last file."""
        return self.files.limit - self.wrote

    def has_room(self, length: int) -> bool:
        return length + BLANK_HEADER_BYTES <= self.room

    def roll_file(self) -> None:
        """Makes the next file and ends the last one with a blank record. Raises `DiskFull`; then the log still ends
        before the blank, or after it with the next file in place, and the next attempt resumes there."""
        # In this order: a blank without a next file is taken for the end of the log, and the log would end twice.
        self.files.prepare_file(self.files.limit)
        if self.room:
            at, room = self.wrote, self.room
            self._write(encode_blank(room))
            self._move_to(at + room)
        position = self.wrote
        # Adding the file moves the committed end into it, so what is still in memory has to be written first.
        self.commit()
        self.files.add_file(position)
        self._appended = position
        assert self.room == self.file_bytes, "the next record has a whole file"

    def append(self, data: bytes, store_ms: TimestampMs) -> PhysicalOffset:
        """Writes records that fit the last file."""
        at = self.wrote
        assert data
        assert len(data) + BLANK_HEADER_BYTES <= self.room
        assert not self._incomplete, "a slave does not append records of its own"
        self._write(data)
        self.last_store_ms = max(self.last_store_ms, store_ms)
        if not self._pool:
            self.readable_store_ms = self.last_store_ms
        return at

    def _write(self, data: bytes) -> None:
        if self._pool:
            self._uncommitted.append((self._appended, data))
            self._appended += len(data)
        else:
            self.files.append(data)

    def _move_to(self, position: int) -> None:
        """Skips the rest of a blank record."""
        assert position == self.files.limit
        if self._pool:
            self._appended = position
        else:
            self.files.wrote = position

    def commit(self, least_pages: int = 0) -> bool:
        """Hands the bytes in memory to the file; with `least_pages`, only if that many pages have filled up."""
        if not self._pool or self._appended == self.files.wrote:
            return False
        page_bytes = self._flush_page_bytes
        if least_pages and self._appended // page_bytes - self.files.wrote // page_bytes < least_pages:
            return False
        while self._uncommitted:
            position, data = self._uncommitted[0]
            assert position >= self.files.wrote, "bytes leave the memory in the order of the log"
            self.files.write(position, data)
            del self._uncommitted[0]
            self.files.wrote = position + len(data)
        self.files.wrote = self._appended
        self.readable_store_ms = self.last_store_ms
        return True

    @property
    def received_to(self) -> PhysicalOffset:
        """How far a slave has received its master's log: `wrote`, plus the part of an incomplete record."""
        return PhysicalOffset(self.wrote + len(self._incomplete))

    def append_raw(self, position: PhysicalOffset, data: bytes) -> None:
        """A slave's append: bytes of the master's log. They never cross a file.

        A record is written in one go when all of it has arrived, as its master wrote it: only then does whatever a
        power loss leaves of it look torn. Until then its first part waits in memory.
        """
        if not self.files.bases and self.wrote == 0:
            if position != self.files.base_of(position) or position < 0:
                raise UsageError(f"an empty log starts at the start of a file, not at {position}")
            self.files.add_file(position)
        if position != self.received_to:
            raise UsageError(f"the log ends at {self.received_to}, bytes for {position} cannot be appended")
        if position == self.files.limit:
            if self.files.flushed == self.files.begin:
                # A power loss could take the first file and leave the second. To a start that would be a log that
                # begins there, and the master would never send the missing part again.
                raise UsageError(f"no part of the log is durable yet: flush it before continuing at {position}")
            self.files.add_file(self.files.limit)
        if len(self._incomplete) + len(data) > self.files.room:
            raise UsageError(f"{len(data)} bytes at {position} cross the end of a file")
        self._incomplete += data
        whole = 0
        while whole < len(self._incomplete) and whole + self._incomplete_size_at(whole) <= len(self._incomplete):
            whole += self._incomplete_size_at(whole)
        assert whole <= len(self._incomplete)
        self.files.append(self._incomplete[:whole])
        self._incomplete = self._incomplete[whole:]

    def _incomplete_size_at(self, at: int) -> int:
        """How long the record that starts there will be. A blank one reaches to the end of its file; anything that is
        not a record is taken as it is."""
        room = self.files.room - at
        assert room > 0, "what waits for its rest fits the file"
        if len(self._incomplete) - at < BLANK_HEADER_BYTES:
            return min(BLANK_HEADER_BYTES, room)
        size, magic = read_size_and_magic(self._incomplete, at)
        if magic == BLANK_MAGIC:
            return room
        return size if 0 < size <= room else len(self._incomplete) - at

    def forget_incomplete(self) -> None:
        """The rest of an incomplete record will never come."""
        self._incomplete = b""

    # --- read ------------------------------------------------------------------------------------------------------

    def read(self, position: int, length: int) -> bytes | None:
        """Bytes inside one file; None unless all of them are there."""
        if length < 0 or position < self.files.begin or position + length > self.files.wrote:
            return None
        if position % self.file_bytes + length > self.file_bytes or not self.files.holds(position):
            return None
        return self.files.read(position, length)

    def read_up_to(self, position: int, length_max: int, end: int | None = None) -> bytes:
        """The bytes from `position` on, up to `end` (default: the end of the readable part) or the end of the file."""
        assert end is None or end <= self.files.wrote, "nothing past the readable part may be read"
        limit = min(self.files.wrote if end is None else end, self.next_file(position))
        if position < self.files.begin or position >= limit or not self.files.holds(position):
            return b""
        return self.files.read(position, min(length_max, limit - position))

    def record_at(self, position: int) -> bytes | None:
        """The record that starts there; None when no record does."""
        header = _header_of(self.read_up_to(position, HEADER_BYTES_MAX), position)
        return None if header is None else self.read(position, header.size_bytes)

    def record(self, position: int, size: int) -> bytes | None:
        """The record that a queue unit names; None when it is not (or no longer) there."""
        data = self.read(position, size)
        return data if data is not None and is_record_at(data, position) else None

    def store_time(self, position: int, size: int) -> TimestampMs:
        """The store time of a record; -1 when it is not there."""
        data = self.read(position, min(size, HEADER_BYTES_MAX))
        header = None if data is None else _header_of(data, position)
        return TimestampMs(-1 if header is None else header.store_timestamp_ms)

    # --- durability ------------------------------------------------------------------------------------------------

    def pages_to_flush(self) -> int:
        return self.files.wrote // self._flush_page_bytes - self.files.flushed // self._flush_page_bytes

    async def flush(self) -> PhysicalOffset:
        """Makes durable what is readable now. Raises `DiskFailed`; after that no flush succeeds any more."""
        target, store_ms = self.files.wrote, self.readable_store_ms
        assert store_ms <= self.last_store_ms
        await self.files.flush(target)
        assert self.files.flushed <= self.files.wrote
        self.flushed_store_ms = max(self.flushed_store_ms, store_ms)
        return self.flushed


def _header_of(data: bytes, position: int) -> RecordHeader | None:
    """The header of a record that starts with `data` and stands at `position`; None if it is no such record."""
    try:
        header = read_header(data, base=position)
    except CorruptRecord:
        return None
    return header if header.physical_offset == position else None
