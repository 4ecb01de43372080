"""Real files in C behind the `Disk` interface: `refmq_fast.PosixDisk`, with what only Python asks of a disk.

A `FastStore` over it makes its system calls without Python in between, and its flushes are performed in a thread
without the GIL. What each call does is what `RealDisk` does; names are listed and the store is locked by one of them.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Final

import refmq_fast
from refmq.errors import DiskFailed, FlushFailed
from refmq.model.disk import DiskFile, DiskLock, DiskUsage, FileInfo
from refmq.model.ids import TimestampMs
from refmq.net.files import OPEN_FILES_MAX, RealDisk

MAPPED_BYTES_DEFAULT: Final = 64 << 20
"""How much of the log is read through windows, which are mapped where somebody reads. It counts as resident memory."""

MAPPED_FILE_BYTES_MIN: Final = 8 << 20
"""Smaller files have no windows: queues of usual size are smaller, and there may be ten thousand of them."""

DESCRIPTOR_WAIT_S: Final = 30.0
"""How long a flush waits for a descriptor when the process has none left. The pool of the disk gives up its own at
once, so this is for a process that holds all of them otherwise; afterwards the flush has failed."""

DESCRIPTOR_RETRY_S: Final = 0.01


class PosixDisk:
    """The files below one directory."""

    def __init__(
        self,
        root: Path | str,
        *,
        open_files_max: int = OPEN_FILES_MAX,
        mapped_bytes: int = MAPPED_BYTES_DEFAULT,
        mapped_file_bytes_min: int = MAPPED_FILE_BYTES_MIN,
    ) -> None:
        self.root = Path(root)
        self.native: Final = refmq_fast.PosixDisk(
            self.root,
            open_files_max=open_files_max,
            mapped_bytes=mapped_bytes,
            mapped_file_bytes_min=mapped_file_bytes_min,
        )
        self._names = RealDisk(root, open_files_max=1)

    def close(self) -> None:
        """Closes every descriptor. Locks are released by their holders."""
        self.native.rest()

    def exists(self, path: str) -> bool:
        return self.native.exists(_below(path))

    def list(self, directory: str) -> tuple[str, ...]:
        return self._names.list(directory)

    def is_directory(self, path: str) -> bool:
        return self.native.is_directory(_below(path))

    def info(self, path: str) -> FileInfo:
        return FileInfo(self._names.info(path).size_bytes, TimestampMs(self.native.modified_ms(path)))

    def open(self, path: str, *, writable: bool = True) -> DiskFile:
        if self._names.is_locked_here(path):
            raise DiskFailed(path, "open", "it is locked, and closing it would drop the lock")
        return _PosixFile(self.native.open(_below(path)), writable)

    def create(self, path: str, size_bytes: int, *, reserve: bool = True) -> DiskFile:
        return _PosixFile(self.native.create(_below(path), size_bytes, reserve), True)

    def make_directory(self, path: str) -> None:
        self.native.make_directory(_below(path))

    def remove(self, path: str) -> None:
        self.native.remove(_below(path))

    def rename(self, source: str, target: str) -> None:
        self.native.rename(_below(source), _below(target))

    async def flush_directory(self, directory: str) -> None:
        await perform(self.native.start_flush(_below(directory)), directory)

    def usage(self, path: str) -> DiskUsage:
        return DiskUsage(*self.native.usage(_below(path)))

    def lock(self, path: str) -> DiskLock:
        return self._names.lock(path)

    def lock_holder(self, path: str) -> int | None:
        """The id of another process holding the lock, or None. Changes nothing."""
        return self._names.lock_holder(path)


class _PosixFile:
    """An open file; its descriptor may be closed and reopened underneath it."""

    def __init__(self, native: refmq_fast.PosixFile, writable: bool) -> None:
        self._native = native
        self._size_bytes = native.size_bytes
        self.writable = writable

    @property
    def path(self) -> str:
        return self._native.path

    @property
    def size_bytes(self) -> int:
        return self._size_bytes

    def read(self, position: int, length: int) -> bytes:
        assert 0 <= position <= position + length <= self._size_bytes, "read outside the file"
        return self._native.read(position, length)

    def write(self, position: int, data: bytes) -> None:
        assert self.writable, f"{self.path} was opened for reading"
        assert 0 <= position <= position + len(data) <= self._size_bytes, "write outside the file"
        self._native.write(position, data)

    def data_end(self) -> int:
        return self._native.data_end()

    async def flush(self, start: int = 0, end: int | None = None) -> None:
        end = self._size_bytes if end is None else end
        assert 0 <= start <= end <= self._size_bytes, "flush outside the file"
        await perform(self._native.start_flush(start, end), self.path)

    def close(self) -> None:
        self._native.close()


async def perform(
    work: refmq_fast.DiskWork,
    path: str = "a file of the store",
    alone: Callable[[], AbstractContextManager[object]] = nullcontext,
) -> None:
    """Performs a flush in a thread. It runs to its end even if the caller stops waiting; a failure is remembered.
    `alone` keeps other threads away from the disk."""
    await asyncio.shield(asyncio.ensure_future(_performed(work, path, alone)))


async def _performed(work: refmq_fast.DiskWork, path: str, alone: Callable[[], AbstractContextManager[object]]) -> None:
    loop = asyncio.get_running_loop()
    give_up_at = loop.time() + DESCRIPTOR_WAIT_S
    while not _has_started(work, alone):
        if loop.time() > give_up_at:
            raise FlushFailed(path, "flush", "the process has no file descriptor left")
        await asyncio.sleep(DESCRIPTOR_RETRY_S)
    await loop.run_in_executor(None, work.perform)
    with alone():
        work.finish()


def _has_started(work: refmq_fast.DiskWork, alone: Callable[[], AbstractContextManager[object]]) -> bool:
    with alone():
        return work.start()


def _below(path: str) -> str:
    assert path == "" or all(part not in ("", ".", "..") for part in path.split("/")), f"{path!r} is not relative"
    return path
