"""Files of one size that together form one long run of bytes: the log, each queue, each extension.

    name     the offset of the file's first byte in the run, 20 decimal digits
    size     the same for all, from creation to removal; what was not written is zero

The end of the data is recorded nowhere; recovery finds it. Three positions, all counted from the start of the run:

    begin <= flushed <= wrote

A new file is made outside the data directory, at full size, and then renamed into it: a crash never leaves a file of
another size where a reader, ours or Java's, would stumble over it.
"""

from __future__ import annotations

from typing import Final

from refmq.errors import StrayFile
from refmq.model.disk import Disk, DiskFile
from refmq.model.ids import TimestampMs
from refmq.store.config import PIECE_BYTES_DEFAULT

CREATING: Final = "creating.tmp"
"""The name of a file that is being made, in the root of the store. What a crash leaves there is removed at start."""

NAME_DIGITS: Final = 20


def file_name(offset: int) -> str:
    """The name of the file that starts at `offset`."""
    assert offset >= 0
    return f"{offset:0{NAME_DIGITS}d}"


class DirectoryNames:
    """Knows which directories have nothing left to flush: a file is durable when all names on its path are."""

    def __init__(self, disk: Disk) -> None:
        self._disk = disk
        self._changes = 0
        self._changed: dict[str, int] = {}
        """Directory -> number of the latest change in it; a directory that is not here was not changed by us."""
        self._flushed: dict[str, int] = {}
        """Directory -> number of the latest change that is durable; absent until it was flushed once."""

    def changed(self, directory: str) -> None:
        """A name in `directory` was added or removed."""
        self._changes += 1
        self._changed[directory] = self._changes

    def made(self, directory: str) -> None:
        """`directory` is new, and so may be those above it: all their names have to be flushed."""
        while directory:
            directory = directory.rpartition("/")[0]
            self.changed(directory)

    async def flush(self, directory: str) -> None:
        """Makes the names in `directory` durable, and the names of all directories above it.

        A directory that is removed while this waits has no names left; the one above it counts as changed again.
        """
        parts = directory.split("/") if directory else []
        for count in range(len(parts) + 1):
            path = "/".join(parts[:count])
            change = self._changed.get(path, 0)
            if self._flushed.get(path, -1) < change and self._disk.is_directory(path):
                await self._disk.flush_directory(path)
                # Not the latest change but the one from before the wait: there may have been another meanwhile.
                self._flushed[path] = max(self._flushed.get(path, -1), change)

    async def flush_below(self, directory: str) -> None:
        """Makes durable whatever a dead process may have changed in a directory or below it."""
        if not self._disk.is_directory(directory):
            return
        await self.flush(directory)
        for name in self._disk.list(directory):
            await self.flush_below(f"{directory}/{name}")

    async def flush_all(self) -> None:
        """Makes every change so far durable, including removals, which nobody else waits for."""
        for directory in sorted(self._changed):
            if self._flushed.get(directory, -1) < self._changed[directory]:
                await self.flush(directory)


def create_file(
    disk: Disk, names: DirectoryNames, directory: str, name: str, size_bytes: int, *, reserve: bool
) -> DiskFile:
    """Makes a file of zeros that is never seen with another size. Raises `DiskFull`."""
    assert size_bytes > 0
    assert directory and name, "a file of a store has a directory"
    if not disk.is_directory(directory):
        disk.make_directory(directory)
        names.made(directory)
    path = f"{directory}/{name}"
    disk.create(CREATING, size_bytes, reserve=reserve).close()
    disk.rename(CREATING, path)
    names.changed(directory)
    return disk.open(path)


class FileSequence:
    """One run of bytes in files. Positions are bytes from its start; `base` is the first position of a file."""

    def __init__(
        self,
        disk: Disk,
        names: DirectoryNames,
        directory: str,
        file_bytes: int,
        *,
        reserve: bool,
        piece_bytes: int = PIECE_BYTES_DEFAULT,
    ) -> None:
        assert file_bytes > 0 and piece_bytes > 0, "a run of files is read in pieces"
        self._disk = disk
        self._names = names
        self.directory = directory
        self.file_bytes = file_bytes
        self._reserve = reserve
        self._piece_bytes = piece_bytes
        self.bases: list[int] = []
        self._files: dict[int, DiskFile] = {}
        self.wrote = 0
        self.flushed = 0
        self._cuts = 0
        """How often the data was cut: a flush that was under way at the time must not move `flushed`."""
        self._zeroed_base = -1
        """The file in which bytes past the end were zeroed: its next flush covers them too. -1: none."""

    # --- loading ---------------------------------------------------------------------------------------------------

    def load(self) -> tuple[int, ...]:
        """Finds the files. Raises `StrayFile` for one that cannot be ours; changes nothing.

        Returns the files that are empty (0 bytes): their size did not survive a power loss, or Java had created them
        and not yet extended them. They hold nothing, so whoever truncates may remove them.
        """
        bases, empty = [], []
        for name in self._disk.list(self.directory):
            path = f"{self.directory}/{name}"
            if self._disk.is_directory(path):
                raise StrayFile(path, "load", "it is a directory, and only files of the store belong here")
            if not (name.isascii() and name.isdigit() and len(name) >= NAME_DIGITS) or int(name) % self.file_bytes:
                raise StrayFile(path, "load", f"its name is not a multiple of the file size {self.file_bytes}")
            size = self._disk.info(path).size_bytes
            if size == 0:
                empty.append(int(name))
            elif size != self.file_bytes:
                raise StrayFile(path, "load", f"it has {size} bytes, files here have {self.file_bytes}")
            bases.append(int(name))
        self.bases = sorted(bases)
        assert not self._files, "names are looked at before a file is opened"
        self.wrote = self.flushed = self.begin
        return tuple(empty)

    @property
    def begin(self) -> int:
        """The first position; 0 without files."""
        return self.bases[0] if self.bases else 0

    @property
    def limit(self) -> int:
        """The end of the last file."""
        return self.bases[-1] + self.file_bytes if self.bases else 0

    @property
    def room(self) -> int:
        """Bytes left in the last file."""
        return self.limit - self.wrote

    def base_of(self, position: int) -> int:
        return position - position % self.file_bytes

    def holds(self, position: int) -> bool:
        """Whether there is a file for this position."""
        if not self.bases or position < self.bases[0] or position >= self.limit:
            return False
        base = position - position % self.file_bytes
        if base in self._files:
            return True
        return base in self.bases

    def are_whole_before(self, position: int) -> bool:
        """Whether no file before `position` is missing or empty."""
        earlier = [base for base in self.bases if base < position]
        expected = range(self.begin, self.base_of(position), self.file_bytes)
        return earlier == list(expected) and all(self.file(base).size_bytes == self.file_bytes for base in earlier)

    def path(self, base: int) -> str:
        assert base % self.file_bytes == 0, "files start at multiples of their size"
        return f"{self.directory}/{file_name(base)}"

    def modified_ms(self, base: int) -> TimestampMs:
        return self._disk.info(self.path(base)).modified_ms

    def file(self, base: int) -> DiskFile:
        file = self._files.get(base)
        if file is None:
            file = self._files[base] = self._disk.open(self.path(base))
        return file

    # --- bytes -----------------------------------------------------------------------------------------------------

    def read(self, position: int, length: int) -> bytes:
        """Bytes inside one file."""
        assert position % self.file_bytes + length <= self.file_bytes
        base = position - position % self.file_bytes
        return self.file(base).read(position - base, length)

    def write(self, position: int, data: bytes) -> None:
        """Overwrites bytes inside one file; does not move `wrote`."""
        assert position % self.file_bytes + len(data) <= self.file_bytes
        base = position - position % self.file_bytes
        self.file(base).write(position - base, data)

    def append(self, data: bytes) -> None:
        """Writes at the end of the data. It must fit the last file."""
        assert len(data) <= self.room
        self.write(self.wrote, data)
        self.wrote += len(data)

    def prepare_file(self, base: int) -> None:
        """Makes the next file, or the first one at any base, without using it yet: a later `add_file` cannot fail.
        Raises `DiskFull`, having changed nothing."""
        assert base % self.file_bytes == 0
        assert not self.bases or base == self.limit
        if base not in self._files:
            self._files[base] = create_file(
                self._disk, self._names, self.directory, file_name(base), self.file_bytes, reserve=self._reserve
            )

    def add_file(self, base: int) -> None:
        """Makes the next file, or the first one at any base, and moves the end there. Raises `DiskFull`, having changed
        nothing."""
        self.prepare_file(base)
        if not self.bases:
            self.flushed = base
        assert self.wrote <= base, "the data never moves back"
        self.bases.append(base)
        self.wrote = base
        assert self.room == self.file_bytes

    def zero_from(self, position: int) -> int:
        """Zeroes a file from `position` to its end. Writes only where it is not zero, and returns how many bytes that
        covers."""
        base = self.base_of(position)
        assert self.holds(position), "nothing is zeroed without a file"
        file = self.file(base)
        end = min(file.data_end(), file.size_bytes)
        at = position - base
        found = 0
        while at < end:
            chunk = file.read(at, min(self._piece_bytes, end - at))
            used = chunk.rstrip(b"\0")
            if used:
                skipped = len(used) - len(used.lstrip(b"\0"))
                file.write(at + skipped, bytes(len(used) - skipped))
                found += len(used) - skipped
            at += len(chunk)
        return found

    # --- files -----------------------------------------------------------------------------------------------------

    def truncate(self, position: int) -> int:
        """Ends the data at `position`: later files go, newest first, and the rest of its own file becomes zero.

        Returns how many bytes that were not zero went; a removed file counts as a whole.
        """
        assert position >= self.begin
        cut = 0
        self._cuts += 1
        while self.remove_last_after(position):
            cut += self.file_bytes
        assert not self.bases or self.bases[-1] <= position, "what comes later went first"
        if self.holds(position):
            zeroed = self.zero_from(position)
            if zeroed:
                self._zeroed_base = self.base_of(position)
            cut += zeroed
            self._make_whole(self.base_of(position))
        self.wrote = position
        self.flushed = min(self.flushed, position)
        return cut

    def remove_last_after(self, position: int) -> bool:
        """Removes the last file if it starts after `position`. One that starts right there stays if it is whole or the
        only one: its name says where the run starts."""
        if not self.bases or self.bases[-1] < position:
            return False
        last = self.bases[-1]
        if last == position and (len(self.bases) == 1 or self.file(last).size_bytes == self.file_bytes):
            return False
        self.remove(last)
        return True

    def remove_unused_last(self) -> bool:
        """Removes the last file if nothing was written to it and it is not the only one."""
        if len(self.bases) < 2 or self.wrote > self.bases[-1]:
            return False
        self.remove(self.bases[-1])
        return True

    def _make_whole(self, base: int) -> None:
        """A file of 0 bytes gets its size; its name is there all the time."""
        if self.file(base).size_bytes == self.file_bytes:
            return
        self._files.pop(base).close()
        self._files[base] = create_file(
            self._disk, self._names, self.directory, file_name(base), self.file_bytes, reserve=self._reserve
        )
        assert self.file(base).size_bytes == self.file_bytes

    def remove(self, base: int) -> None:
        """Removes one file, the first or the last."""
        assert self.bases, "there is a file to remove"
        assert base in (self.bases[0], self.bases[-1])
        file = self._files.pop(base, None)
        if file is not None:
            file.close()
        self._disk.remove(self.path(base))
        self.bases.remove(base)
        self._names.changed(self.directory)

    def remove_all(self) -> None:
        """Removes every file and the directory. A later append may start afresh."""
        self._cuts += 1
        while self.bases:
            self.remove(self.bases[-1])
        if self._disk.is_directory(self.directory) and not self._disk.list(self.directory):
            self._disk.remove(self.directory)
            self._names.changed(self.directory.rpartition("/")[0])
        self.wrote = self.flushed = 0

    def close(self) -> None:
        for file in self._files.values():
            file.close()
        self._files.clear()

    # --- durability ------------------------------------------------------------------------------------------------

    async def flush(self, to: int | None = None) -> None:
        """Makes everything up to `to` durable, file by file in order: first the bytes, then the names.

        `to` defaults to what is written at the call; bytes that are written while the flush waits are not covered.
        """
        target = self.wrote if to is None else to
        assert target <= self.wrote
        cuts = self._cuts
        while self.flushed < target and self._cuts == cuts:
            position = max(self.flushed, self.begin)
            base = self.base_of(position)
            if base not in self.bases:  # removed meanwhile by cleaning
                self.flushed = max(self.flushed, min(target, base + self.file_bytes))
                continue
            end = min(target, base + self.file_bytes)
            has_zeroed = base == self._zeroed_base
            await self.file(base).flush(position - base, self.file_bytes if has_zeroed else end - base)
            if end == target and end in self.bases:
                # An empty file follows; what belongs there is still in the transient pool. The file shows that the log
                # continues after the blank at the end of this one, so it has to survive with its size.
                await self.file(end).flush(0, 0)
            await self._names.flush(self.directory)
            if self._cuts == cuts:
                self.flushed = max(self.flushed, end)
                self._zeroed_base = -1 if has_zeroed else self._zeroed_base
        assert self.flushed <= self.wrote, "only what was written is durable"

    async def flush_last_file(self) -> None:
        """Makes all of the last file durable, including what is past the end of the data, and the names."""
        assert self.bases
        await self.file(self.bases[-1]).flush()
        await self._names.flush(self.directory)
