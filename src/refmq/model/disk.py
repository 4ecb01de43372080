"""The disk as the store sees it: the one door between the pure store and real or simulated files.

Writes and reads are immediate and never wait for the medium, as with a mapped file: a written byte
can be read at once and survives a process crash. Only `flush` makes it survive a power loss, and
only `flush_directory` makes a created, renamed or removed name survive one. Both are awaited: real
files flush in a thread, simulated ones can fail or crash there.

Paths are relative to the disk's root and use `/`. Every failure is a `DiskError` of
`refmq.errors`; a disk never raises `OSError` through this interface.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from refmq.model.ids import TimestampMs


@dataclass(frozen=True, slots=True)
class FileInfo:
    """What a directory knows of a file."""

    size_bytes: int
    modified_ms: TimestampMs


@dataclass(frozen=True, slots=True)
class DiskUsage:
    """How full the disk is that holds a directory."""

    total_bytes: int
    free_bytes: int

    @property
    def used_ratio(self) -> float:
        return 1.0 - self.free_bytes / self.total_bytes if self.total_bytes else 0.0


class DiskFile(Protocol):
    """An open file. Reading or writing beyond its size is a mistake of ours, not of the disk."""

    @property
    def path(self) -> str: ...

    @property
    def size_bytes(self) -> int: ...

    def read(self, position: int, length: int) -> bytes:
        """Exactly `length` bytes from `position`."""
        ...

    def write(self, position: int, data: bytes) -> None:
        """Overwrites bytes inside the file. Raises `DiskFull` before a byte is changed, or `DiskFailed`."""
        ...

    def data_end(self) -> int:
        """A position behind which the file is all zeros because nothing was ever written there.

        An upper bound that saves reading holes (SEEK_DATA); a disk that does not know answers `size_bytes`.
        """
        ...

    async def flush(self, start: int = 0, end: int | None = None) -> None:
        """Makes the bytes in [start, end) durable, all of the file by default.

        A flush that failed once fails for ever: after it nobody knows which pages are on the
        medium, so a later success would be a lie.
        """
        ...

    def close(self) -> None: ...


class DiskLock(Protocol):
    """The right to use a store directory, held against other processes."""

    def release(self) -> None: ...


class Disk(Protocol):
    """A tree of files."""

    def exists(self, path: str) -> bool: ...

    def list(self, directory: str) -> tuple[str, ...]:
        """The names in a directory, sorted; empty if the directory does not exist."""
        ...

    def is_directory(self, path: str) -> bool: ...

    def info(self, path: str) -> FileInfo: ...

    def open(self, path: str, *, writable: bool = True) -> DiskFile: ...

    def create(self, path: str, size_bytes: int, *, reserve: bool = True) -> DiskFile:
        """A new file of zeros. The name must not exist; parents are made.

        With `reserve` its blocks are reserved, so that a later write inside it cannot run out of room; without,
        the file is sparse (10,000 queues of 6 MB that are nearly empty must not need 60 GB).
        Raises `DiskFull` when the blocks cannot be reserved, and then leaves no file behind.
        """
        ...

    def make_directory(self, path: str) -> None: ...

    def remove(self, path: str) -> None:
        """Removes a file or an empty directory."""
        ...

    def rename(self, source: str, target: str) -> None:
        """Replaces `target` in one step, as far as running processes can see."""
        ...

    async def flush_directory(self, directory: str) -> None:
        """Makes the names in a directory durable."""
        ...

    def usage(self, path: str) -> DiskUsage: ...

    def lock(self, path: str) -> DiskLock:
        """Takes the lock at once or raises `StoreInUse`; never waits."""
        ...
