"""The index over all its files: from a key to the messages that have it.

Every message except a rollback is indexed: first by its unique key, then by each of its keys. The files follow each
other in log order. A message is indexed only if its physical offset is above that of the newest entry, so dispatching
a record twice adds nothing.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Final

from refmq.errors import StrayFile
from refmq.model.disk import Disk
from refmq.model.ids import PhysicalOffset, TimestampMs
from refmq.store.config import StoreConfig
from refmq.store.file_sequence import DirectoryNames, create_file
from refmq.store.index_file import IndexEnd, IndexFile, key_hash

INDEX_DIRECTORY: Final = "index"
NAME_DIGITS: Final = 17
NAMED_MS_MAX: Final = 253_402_300_799_999
"""The end of the year 9999."""


def index_file_name(created_ms: int) -> str:
    """17 digits: year to millisecond. Java takes local time, we take UTC; only the order matters.

    A damaged record may claim any time; a name has four digits for the year.
    """
    named_ms = min(max(0, created_ms), NAMED_MS_MAX)
    created = datetime.fromtimestamp(named_ms // 1000, tz=UTC)
    name = f"{created:%Y%m%d%H%M%S}{named_ms % 1000:03d}"
    assert len(name) == NAME_DIGITS
    return name


class Index:
    """All index files, oldest first."""

    def __init__(self, disk: Disk, names: DirectoryNames, config: StoreConfig) -> None:
        self._disk = disk
        self._names = names
        self._config = config
        self.files: list[IndexFile] = []
        self._half_done: tuple[int, int] | None = None
        """A message whose keys are not all in yet, because the disk was full: its physical offset and how many are."""

    # --- files -----------------------------------------------------------------------------------------------------

    def load(self) -> None:
        """Finds the files. Names that are not 17 digits are left alone, as Java leaves them; a file of another size
        is a `StrayFile`."""
        for name in self._disk.list(INDEX_DIRECTORY):
            path = f"{INDEX_DIRECTORY}/{name}"
            if not (name.isascii() and name.isdigit() and len(name) == NAME_DIGITS) or self._disk.is_directory(path):
                continue
            size = self._disk.info(path).size_bytes
            if size not in (0, self._config.index_file_bytes):
                raise StrayFile(path, "load", f"it has {size} bytes, index files have {self._config.index_file_bytes}")
            if size:
                self.files.append(self._open(name))
        # Java names files by local time, so names from two time zones may be out of order; offsets are not.
        self.files.sort(key=lambda file: (file.count == 0, file.header.begin_physical if file.count else 0, file.name))

    def remove_empty(self) -> None:
        """Removes the files of 0 bytes that a power loss leaves when their size was not durable."""
        for name in self._disk.list(INDEX_DIRECTORY):
            path = f"{INDEX_DIRECTORY}/{name}"
            if name.isdigit() and len(name) == NAME_DIGITS and self._disk.info(path).size_bytes == 0:
                self._disk.remove(path)
                self._names.changed(INDEX_DIRECTORY)

    def _open(self, name: str) -> IndexFile:
        file = self._disk.open(f"{INDEX_DIRECTORY}/{name}")
        return IndexFile(name, file, self._config.index_slots, self._config.index_entries, self._config.piece_bytes)

    def _file_for_next(self, store_ms: int) -> IndexFile:
        if self.files and not self.files[-1].is_full:
            return self.files[-1]
        name = index_file_name(store_ms)
        newest = max((file.name for file in self.files), default="")
        if name <= newest:
            name = f"{int(newest) + 1:0{NAME_DIGITS}d}"
        create_file(
            self._disk, self._names, INDEX_DIRECTORY, name, self._config.index_file_bytes, reserve=False
        ).close()
        self.files.append(self._open(name))
        assert self.files[-1].count == 0
        return self.files[-1]

    def remove(self, file: IndexFile) -> None:
        assert file in self.files, "each file is removed once"
        file.file.close()
        self._disk.remove(f"{INDEX_DIRECTORY}/{file.name}")
        self._names.changed(INDEX_DIRECTORY)
        self.files.remove(file)

    def remove_after(self, end: IndexEnd) -> None:
        """Removes the files after the one that `end` names; all of them if `end` is the end of an empty index."""
        while self.files and int(self.files[-1].name) != end.file:
            self.remove(self.files[-1])

    def remove_expired_files(self, log_min: PhysicalOffset, checkpointed_to: PhysicalOffset) -> int:
        """Removes the oldest files whose records are all gone and returns how many. Never the file in which the index
        ended at the last checkpoint, nor a later one: a start resumes there."""
        removed = 0
        while len(self.files) > 1 and self.files[0].header.end_physical < log_min:
            following = self.files[1]
            if not following.count or following.header.begin_physical >= checkpointed_to:
                break
            self.remove(self.files[0])
            removed += 1
        return removed

    def close(self) -> None:
        for file in self.files:
            file.file.close()

    # --- entries ---------------------------------------------------------------------------------------------------

    @property
    def end(self) -> IndexEnd:
        """Where the newest entry is."""
        for file in reversed(self.files):
            if file.count:
                return IndexEnd(file.header.end_physical, int(file.name), file.count)
        return IndexEnd()

    def has(self, end: IndexEnd) -> bool:
        """Whether the entry that was once the newest one is still in its place."""
        if not end.count:
            return True
        file = next((file for file in self.files if int(file.name) == end.file), None)
        return file is not None and end.count <= file.count and file.entry(end.count).physical_offset == end.last

    @property
    def last_physical(self) -> int:
        """The physical offset of the newest entry; -1 without one."""
        return self.end.last

    @property
    def last_ms(self) -> TimestampMs:
        for file in reversed(self.files):
            if file.count:
                return TimestampMs(file.header.end_ms)
        return TimestampMs(0)

    def put_keys(self, topic: str, keys: tuple[str, ...], physical_offset: int, store_ms: int) -> None:
        """Indexes one message. Raises `DiskFull`; calling again with the same message resumes where it stopped."""
        assert physical_offset >= 0
        done = 0
        if self._half_done is not None and self._half_done[0] == physical_offset:
            done = self._half_done[1]
            for earlier in self.files[-2:]:  # the header of a file that became full may be what was not written
                earlier.write_header()
        elif physical_offset <= self.last_physical:
            return
        file: IndexFile | None = None
        for number, key in enumerate(keys[done:], done):
            self._half_done = (physical_offset, number)
            if file is None or file.is_full:
                if file is not None:
                    file.write_header()
                file = self._file_for_next(store_ms)
            file.put_key(key_hash(topic, key), physical_offset, store_ms)
        assert done <= len(keys), "a message that is tried again has the keys that it had"
        self._half_done = (physical_offset, len(keys))
        if file is not None:
            file.write_header()
        self._half_done = None

    def find(self, topic: str, key: str, begin_ms: int, end_ms: int) -> Iterator[int]:
        """Physical offsets of entries with the hash of the key, newest first. Other keys may have the same hash."""
        hashed = key_hash(topic, key)
        for file in reversed(self.files):
            if file.covers(begin_ms, end_ms):
                yield from file.find(hashed, begin_ms, end_ms)
            if file.count and file.header.begin_ms < begin_ms:
                break

    # --- durability ------------------------------------------------------------------------------------------------

    async def flush(self) -> None:
        """Makes every entry durable that is there now."""
        for file in list(self.files):
            if file.is_dirty:
                file.is_dirty = False  # before the wait: an entry that comes meanwhile makes it dirty again
                try:
                    await file.file.flush()
                except BaseException:
                    file.is_dirty = True
                    raise
        if self._disk.is_directory(INDEX_DIRECTORY):  # also when the last file has just been removed
            await self._names.flush(INDEX_DIRECTORY)
