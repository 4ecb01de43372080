"""A disk that writes down what is done to it: every effect with its bytes, in order."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

from refmq.model.disk import Disk, DiskFile, DiskLock, DiskUsage, FileInfo

Effect: TypeAlias = tuple[Any, ...]
"""The operation, and all that says what it did."""


class RecordedDisk:
    """A `Disk` over another one. `note` gets each effect before it happens, also the one in which a process dies."""

    def __init__(self, disk: Disk, note: Callable[[Effect], None]) -> None:
        self._disk = disk
        self._note = note

    def exists(self, path: str) -> bool:
        return self._disk.exists(path)

    def list(self, directory: str) -> tuple[str, ...]:
        return self._disk.list(directory)

    def is_directory(self, path: str) -> bool:
        return self._disk.is_directory(path)

    def info(self, path: str) -> FileInfo:
        return self._disk.info(path)

    def usage(self, path: str) -> DiskUsage:
        return self._disk.usage(path)

    def open(self, path: str, *, writable: bool = True) -> DiskFile:
        return RecordedFile(self._disk.open(path, writable=writable), self._note)

    def create(self, path: str, size_bytes: int, *, reserve: bool = True) -> DiskFile:
        self._note(("create", path, size_bytes, reserve))
        return RecordedFile(self._disk.create(path, size_bytes, reserve=reserve), self._note)

    def make_directory(self, path: str) -> None:
        self._note(("make directory", path))
        self._disk.make_directory(path)

    def remove(self, path: str) -> None:
        self._note(("remove", path))
        self._disk.remove(path)

    def rename(self, source: str, target: str) -> None:
        self._note(("rename", source, target))
        self._disk.rename(source, target)

    async def flush_directory(self, directory: str) -> None:
        self._note(("flush directory", directory))
        await self._disk.flush_directory(directory)

    def lock(self, path: str) -> DiskLock:
        self._note(("lock", path))
        return self._disk.lock(path)


class RecordedFile:
    """An open file of a `RecordedDisk`."""

    def __init__(self, file: DiskFile, note: Callable[[Effect], None]) -> None:
        self._file = file
        self._note = note

    @property
    def path(self) -> str:
        return self._file.path

    @property
    def size_bytes(self) -> int:
        return self._file.size_bytes

    def read(self, position: int, length: int) -> bytes:
        return self._file.read(position, length)

    def write(self, position: int, data: bytes) -> None:
        self._note(("write", self.path, position, bytes(data)))
        self._file.write(position, data)

    def data_end(self) -> int:
        return self._file.data_end()

    async def flush(self, start: int = 0, end: int | None = None) -> None:
        self._note(("flush", self.path, start, self.size_bytes if end is None else end))
        await self._file.flush(start, end)

    def close(self) -> None:
        self._file.close()
