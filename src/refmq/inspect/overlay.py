"""A disk over another: reads see the lower one, changes stay in memory. What would a start do to this store?

The lower disk is never changed; only its reading methods are called. Written bytes are kept in pages, so
that a change in a file of 1 GiB costs a page.
"""

from __future__ import annotations

from typing import Final

from refmq.errors import DiskFailed
from refmq.model.disk import Disk, DiskFile, DiskLock, DiskUsage, FileInfo
from refmq.model.ids import TimestampMs

PAGE_BYTES: Final = 4096
COMPARE_BYTES: Final = 1 << 20
"""Compared at once if a file was created again under an old name."""


class OverlayDisk:
    """All files of `below`, and what was done to them since."""

    def __init__(self, below: Disk, now_ms: TimestampMs) -> None:
        self._below = below
        self._now_ms = now_ms
        self._files: dict[str, _OverlayFile | None] = {}
        """Changed or new files; None for a removed one."""
        self._directories: dict[str, bool] = {}
        """Made (True) and removed (False) directories."""

    def changes(self) -> tuple[tuple[str, str], ...]:
        """(what, path) of every file that is not as it was: created, changed or removed."""
        found = []
        for path, file in sorted(self._files.items()):
            existed = self._below.exists(path)
            if file is None:
                if existed:
                    found.append(("removed", path))
            elif not existed:
                found.append(("created", path))
            elif self._differs(path, file):
                found.append(("changed", path))
        return tuple(found)

    def _differs(self, path: str, file: _OverlayFile) -> bool:
        """Whether the bytes are others in the end: what was written may be what had been there."""
        below = self._below.open(path, writable=False)
        try:
            if below.size_bytes != file.size_bytes:
                return True
            if file.is_below(below):
                return any(page != _page(below, number) for number, page in file.pages.items())
            for position in range(0, file.size_bytes, COMPARE_BYTES):
                length = min(COMPARE_BYTES, file.size_bytes - position)
                if below.read(position, length) != file.read(position, length):
                    return True
            return False
        finally:
            below.close()

    def exists(self, path: str) -> bool:
        if path in self._files:
            return self._files[path] is not None
        return self._directories.get(path, self._below.exists(path))

    def list(self, directory: str) -> tuple[str, ...]:
        prefix = f"{directory}/" if directory else ""
        names = {name for name in self._below.list(directory) if self.exists(prefix + name)}
        for path in [*self._files, *self._directories]:
            if path.startswith(prefix) and self.exists(path):
                names.add(path[len(prefix) :].partition("/")[0])
        return tuple(sorted(names))

    def is_directory(self, path: str) -> bool:
        return path not in self._files and self._directories.get(path, self._below.is_directory(path))

    def info(self, path: str) -> FileInfo:
        file = self._files.get(path)
        if file is not None:
            return FileInfo(file.size_bytes, self._now_ms if file.is_changed else self._below.info(path).modified_ms)
        self._must_exist(path, "examine")
        return self._below.info(path)

    def open(self, path: str, *, writable: bool = True) -> DiskFile:
        self._must_exist(path, "open")
        file = self._files.get(path)
        if file is None:
            file = _OverlayFile(path, self._below.open(path, writable=False))
            if writable:
                self._files[path] = file
        return file

    def create(self, path: str, size_bytes: int, *, reserve: bool = True) -> DiskFile:
        if self.exists(path):
            raise DiskFailed(path, "create", "the name exists already")
        file = _OverlayFile(path, None, size_bytes)
        self._files[path] = file
        self.make_directory(path.rpartition("/")[0])
        return file

    def make_directory(self, path: str) -> None:
        while path and not self.is_directory(path):
            self._directories[path] = True
            path = path.rpartition("/")[0]

    def remove(self, path: str) -> None:
        self._must_exist(path, "remove")
        if self.is_directory(path):
            if self.list(path):
                raise DiskFailed(path, "remove", "the directory is not empty")
            self._directories[path] = False
        else:
            self._files[path] = None

    def rename(self, source: str, target: str) -> None:
        self._must_exist(source, "rename")
        file = self.open(source)
        assert isinstance(file, _OverlayFile)
        file.is_changed = True
        file.rename(target)
        self._files[source] = None
        self._files[target] = file

    async def flush_directory(self, directory: str) -> None:
        pass

    def usage(self, path: str) -> DiskUsage:
        return self._below.usage(path)

    def lock(self, path: str) -> DiskLock:
        return _NoLock()

    def _must_exist(self, path: str, operation: str) -> None:
        if not self.exists(path):
            raise DiskFailed(path, operation, "no such file or directory")


class _OverlayFile:
    """A file with its changed pages; without a lower file it began as zeros."""

    def __init__(self, path: str, below: DiskFile | None, size_bytes: int = 0) -> None:
        self._path = path
        self._below = below
        self._size_bytes = below.size_bytes if below is not None else size_bytes
        self.pages: dict[int, bytearray] = {}
        self.is_changed = below is None

    @property
    def path(self) -> str:
        return self._path

    @property
    def size_bytes(self) -> int:
        return self._size_bytes

    def rename(self, path: str) -> None:
        self._path = path

    def is_below(self, below: DiskFile) -> bool:
        """Whether the unchanged pages of this file are those of `below`."""
        return self._below is not None and self._below.path == below.path

    def read(self, position: int, length: int) -> bytes:
        assert 0 <= position <= position + length <= self._size_bytes, "read outside the file"
        if not self.pages:
            return self._lower(position, length)
        data = bytearray(self._lower(position, length))
        for number in range(position // PAGE_BYTES, -(-(position + length) // PAGE_BYTES)):
            page = self.pages.get(number)
            if page is not None:
                begin = max(position, number * PAGE_BYTES)
                end = min(position + length, (number + 1) * PAGE_BYTES)
                data[begin - position : end - position] = page[begin - number * PAGE_BYTES : end - number * PAGE_BYTES]
        return bytes(data)

    def write(self, position: int, data: bytes) -> None:
        assert 0 <= position <= position + len(data) <= self._size_bytes, "write outside the file"
        if self.read(position, len(data)) == data:
            return
        self.is_changed = True
        done = 0
        while done < len(data):
            number, inside = divmod(position + done, PAGE_BYTES)
            count = min(PAGE_BYTES - inside, len(data) - done)
            if number not in self.pages:
                begin = number * PAGE_BYTES
                self.pages[number] = bytearray(self._lower(begin, min(PAGE_BYTES, self._size_bytes - begin)))
            self.pages[number][inside : inside + count] = data[done : done + count]
            done += count

    def data_end(self) -> int:
        lower = self._below.data_end() if self._below is not None else 0
        return min(self._size_bytes, max(lower, (max(self.pages, default=-1) + 1) * PAGE_BYTES))

    async def flush(self, start: int = 0, end: int | None = None) -> None:
        pass

    def close(self) -> None:
        pass

    def _lower(self, position: int, length: int) -> bytes:
        return self._below.read(position, length) if self._below is not None else bytes(length)


def _page(file: DiskFile, number: int) -> bytes:
    begin = number * PAGE_BYTES
    return file.read(begin, min(PAGE_BYTES, file.size_bytes - begin))


class _NoLock:
    def release(self) -> None:
        pass
