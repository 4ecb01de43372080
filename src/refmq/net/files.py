"""Real files behind the `Disk` interface: pread and pwrite, a thread for every flush, one lock per store.

- A store can have far more files than a process may open (10,000 queues under a limit of 1,024), so open
  descriptors are kept in a pool of bounded size; the least recently used is closed first. Linux reports a
  write-back error to the next descriptor that flushes the file if no earlier one has seen it, so closing a
  descriptor between a write and its flush hides no error.
- Blocks are reserved when a file is created (unless it is to be sparse), so that later writes have room: on a full
    disk `create` fails, not a write in the middle of a record.
- A flush that failed is remembered under the file's name for as long as the disk object lives.
- The lock is a POSIX record lock on byte 0, the one Java takes. Closing *any* descriptor of a file drops the
  process's record locks on it, so the lock file is opened once, by `lock`, and `open` refuses it meanwhile.
"""

from __future__ import annotations

import asyncio
import errno
import fcntl
import os
import stat
import struct
import threading
import weakref
from collections import OrderedDict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from refmq.errors import DiskFailed, DiskFull, FlushFailed, StoreInUse
from refmq.model.disk import DiskFile, DiskUsage, FileInfo
from refmq.model.ids import TimestampMs

OPEN_FILES_MAX: Final = 256
"""Descriptors kept open by one disk: a quarter of the usual limit of 1,024; sockets need the rest."""

EXTENTS_MAX: Final = 1000
"""The most pieces of a file examined to find the end of its data."""

LOCK_TEXT: Final = b"lock"
"""What the lock file holds, as Java's store writes it."""

_NO_ROOM: Final = frozenset({errno.ENOSPC, errno.EDQUOT})
_NO_DESCRIPTOR: Final = frozenset({errno.EMFILE, errno.ENFILE})
_FILE_MODE: Final = 0o644
_DIRECTORY_MODE: Final = 0o755
_FLOCK: Final = struct.Struct("hhqqi4x")
"""`struct flock` of Linux on 64 bit: type, whence, start, length, pid."""

_locks_of_this_process: set[tuple[int, int]] = set()
"""(device, inode) of the lock files this process holds: record locks do not exclude their own process."""


class RealDisk:
    """The files below one directory."""

    def __init__(self, root: Path | str, *, open_files_max: int = OPEN_FILES_MAX) -> None:
        self.root = Path(root)
        self._descriptors = _Descriptors(open_files_max)
        self._failed: dict[str, str] = {}
        # Open files by name: after a rename they must be found under the new one.
        self._opened: dict[str, weakref.WeakSet[_RealFile]] = {}

    def close(self) -> None:
        """Closes every descriptor. Locks are released by their holders."""
        self._descriptors.close()

    def exists(self, path: str) -> bool:
        with _errors(path, "examine"):
            return self._at(path).exists()

    def list(self, directory: str) -> tuple[str, ...]:
        with _errors(directory, "list"):
            try:
                return tuple(sorted(entry.name for entry in self._at(directory).iterdir()))
            except FileNotFoundError:
                return ()

    def is_directory(self, path: str) -> bool:
        with _errors(path, "examine"):
            return self._at(path).is_dir()

    def info(self, path: str) -> FileInfo:
        with _errors(path, "examine"):
            status = self._at(path).stat()
            return FileInfo(status.st_size, TimestampMs(status.st_mtime_ns // 1_000_000))

    def open(self, path: str, *, writable: bool = True) -> DiskFile:
        with _errors(path, "open"):
            status = self._at(path).stat()
            if stat.S_ISDIR(status.st_mode):
                raise DiskFailed(path, "open", "it is a directory")
            if not stat.S_ISREG(status.st_mode):
                raise DiskFailed(path, "open", "it is not a regular file")
            if (status.st_dev, status.st_ino) in _locks_of_this_process:
                raise DiskFailed(path, "open", "it is locked, and closing it would drop the lock")
            file = _RealFile(self, path, writable, status.st_size, (status.st_dev, status.st_ino))
            with self._descriptors.lock:
                self._descriptors.descriptor(file)  # fails now rather than at the first read
            return self._remember(file)

    def create(self, path: str, size_bytes: int, *, reserve: bool = True) -> DiskFile:
        assert size_bytes >= 0
        target = self._at(path)
        with _errors(path, "create"):
            target.parent.mkdir(mode=_DIRECTORY_MODE, parents=True, exist_ok=True)
            flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
            descriptor = self._descriptors.patiently(lambda: os.open(target, flags, _FILE_MODE))
            try:
                if not reserve:
                    os.ftruncate(descriptor, size_bytes)
                elif size_bytes:
                    os.posix_fallocate(descriptor, 0, size_bytes)
                status = os.fstat(descriptor)
            except OSError:
                os.close(descriptor)
                target.unlink()
                raise
        self._failed.pop(path, None)
        self._opened.pop(path, None)
        file = _RealFile(self, path, True, size_bytes, (status.st_dev, status.st_ino))
        self._descriptors.adopt(file, descriptor)
        return self._remember(file)

    def make_directory(self, path: str) -> None:
        with _errors(path, "make directory"):
            self._at(path).mkdir(mode=_DIRECTORY_MODE, parents=True, exist_ok=True)

    def remove(self, path: str) -> None:
        target = self._at(path)
        with self._descriptors.lock, _errors(path, "remove"):
            if target.is_dir():
                target.rmdir()
            else:
                target.unlink()
            for file in self._opened.pop(path, ()):
                file.is_removed = True
        self._failed.pop(path, None)

    def rename(self, source: str, target: str) -> None:
        with _errors(source, "rename"):
            os.replace(self._at(source), self._at(target))  # noqa: PTH105 - both names read alike this way
        for file in self._opened.pop(source, ()):
            file.current_path = target
            self._remember(file)
        self._failed.pop(target, None)
        if source in self._failed:
            self._failed[target] = self._failed.pop(source)

    async def flush_directory(self, directory: str) -> None:
        self._refuse_failed(directory, "flush directory")
        # Opened now: by the time a thread is free, the directory may have been removed.
        flags, at = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC, self._at(directory)
        with _errors(directory, "flush directory"):
            descriptor = self._descriptors.patiently(lambda: os.open(at, flags))

        def flush() -> None:
            try:
                os.fsync(descriptor)
            finally:
                os.close(descriptor)

        await self._in_thread(directory, "flush directory", flush)

    def usage(self, path: str) -> DiskUsage:
        with _errors(path, "measure"):
            there = self._at(path)
            while not there.exists() and there != there.parent:
                there = there.parent
            values = os.statvfs(there)
            # Space reserved for root counts as used, as in Java's getUsableSpace.
            reserved = values.f_bfree - values.f_bavail
            return DiskUsage((values.f_blocks - reserved) * values.f_frsize, values.f_bavail * values.f_frsize)

    def lock(self, path: str) -> _RealLock:
        target = self._at(path)
        with _errors(str(target), "lock"):
            if target.exists():
                status = target.stat()
                if (status.st_dev, status.st_ino) in _locks_of_this_process:
                    raise StoreInUse(str(target.parent), "use", "this process is already using it")
            target.parent.mkdir(mode=_DIRECTORY_MODE, parents=True, exist_ok=True)
            descriptor = os.open(target, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, _FILE_MODE)
            try:
                fcntl.lockf(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, 0)
            except (BlockingIOError, PermissionError):
                os.close(descriptor)
                holder = self.lock_holder(path)
                user = f"process {holder}" if holder else "another process"
                raise StoreInUse(str(target.parent), "use", f"{user} is using it") from None
            os.pwrite(descriptor, LOCK_TEXT, 0)
            os.fsync(descriptor)
            status = os.fstat(descriptor)
        _locks_of_this_process.add((status.st_dev, status.st_ino))
        return _RealLock(descriptor, (status.st_dev, status.st_ino))

    def lock_holder(self, path: str) -> int | None:
        """The id of another process holding the lock, or None. Changes nothing."""
        with _errors(path, "examine"):
            try:
                status = self._at(path).stat()
            except FileNotFoundError:
                return None
            if (status.st_dev, status.st_ino) in _locks_of_this_process:
                return os.getpid()
            at = self._at(path)
            descriptor = self._descriptors.patiently(lambda: os.open(at, os.O_RDONLY | os.O_CLOEXEC))
            try:
                question = _FLOCK.pack(fcntl.F_WRLCK, os.SEEK_SET, 0, 1, 0)
                answer = _FLOCK.unpack(fcntl.fcntl(descriptor, fcntl.F_GETLK, question))
            finally:
                os.close(descriptor)
            return None if answer[0] == fcntl.F_UNLCK else int(answer[4])

    def is_locked_here(self, path: str) -> bool:
        """Whether this process holds the file as a lock: closing any descriptor of it would drop that."""
        try:
            status = self._at(path).stat()
        except OSError:
            return False
        return (status.st_dev, status.st_ino) in _locks_of_this_process

    def _remember(self, file: _RealFile) -> _RealFile:
        self._opened.setdefault(file.current_path, weakref.WeakSet()).add(file)
        return file

    def _at(self, path: str) -> Path:
        assert path == "" or all(part not in ("", ".", "..") for part in path.split("/")), f"{path!r} is not relative"
        return self.root / path

    def _refuse_failed(self, path: str, operation: str) -> None:
        if path in self._failed:
            raise FlushFailed(path, operation, self._failed[path])

    async def _in_thread(self, path: str, operation: str, work: Callable[[], None]) -> None:
        """Runs a flush in a thread. A failure is remembered there, even if no one is waiting any more."""

        def run() -> None:
            try:
                work()
            except OSError as error:
                reason = error.strerror or str(error)
                self._failed[path] = f"an earlier flush failed: {reason}"
                raise FlushFailed(path, operation, reason) from error

        # It runs even if the caller stops waiting: it may have a descriptor to close.
        await asyncio.shield(asyncio.get_running_loop().run_in_executor(None, run))


class _RealFile:
    """An open file; its descriptor may be closed and reopened underneath it."""

    def __init__(self, disk: RealDisk, path: str, writable: bool, size_bytes: int, identity: tuple[int, int]) -> None:
        self._disk = disk
        self._size_bytes = size_bytes
        self.current_path = path
        self.writable = writable
        self.identity = identity
        self.is_removed = False

    @property
    def path(self) -> str:
        return self.current_path

    @property
    def size_bytes(self) -> int:
        return self._size_bytes

    @property
    def location(self) -> Path:
        return self._disk.root / self.current_path

    def read(self, position: int, length: int) -> bytes:
        assert 0 <= position <= position + length <= self._size_bytes, "read outside the file"
        pool = self._disk._descriptors
        with pool.lock:
            descriptor = pool.descriptor(self)
            try:
                data = os.pread(descriptor, length, position)
                while len(data) < length:  # Linux reads at most 2 GiB per call, and a signal may cut a read short
                    more = os.pread(descriptor, length - len(data), position + len(data))
                    if not more:
                        raise DiskFailed(self.current_path, "read", "the file became shorter while it was open")
                    data += more
            except OSError as error:
                raise DiskFailed(self.current_path, "read", error.strerror or str(error)) from error
            return data

    def write(self, position: int, data: bytes) -> None:
        assert self.writable, f"{self.current_path} was opened for reading"
        assert 0 <= position <= position + len(data) <= self._size_bytes, "write outside the file"
        pool = self._disk._descriptors
        with pool.lock:
            descriptor = pool.descriptor(self)
            done = 0
            try:
                while done < len(data):
                    done += os.pwrite(descriptor, data[done:] if done else data, position + done)
            except OSError as error:
                reason = error.strerror or str(error)
                if error.errno in _NO_ROOM and done == 0:
                    raise DiskFull(self.current_path, "write", reason) from error
                reason = f"{reason}; {done} of {len(data)} bytes were written" if done else reason
                raise DiskFailed(self.current_path, "write", reason) from error

    def data_end(self) -> int:
        pool = self._disk._descriptors
        with pool.lock:
            descriptor = pool.descriptor(self)
            end = 0
            try:
                for _ in range(EXTENTS_MAX):
                    end = os.lseek(descriptor, os.lseek(descriptor, end, os.SEEK_DATA), os.SEEK_HOLE)
            except OSError as error:
                if error.errno == errno.ENXIO:  # no data after `end`
                    return end
        return self._size_bytes  # a file system that cannot tell, or a file in very many pieces

    async def flush(self, start: int = 0, end: int | None = None) -> None:
        end = self._size_bytes if end is None else end
        assert 0 <= start <= end <= self._size_bytes, "flush outside the file"

        self._disk._refuse_failed(self.current_path, "flush")

        def flush() -> None:
            # This thread owns the duplicate: the pool may close its own descriptor meanwhile.
            try:
                descriptor = self._disk._descriptors.patiently(lambda: self._disk._descriptors.duplicate(self))
            except DiskFailed:
                if self.is_removed:  # removed while the flush waited for a thread: nothing is left to flush
                    return
                raise
            try:
                os.fdatasync(descriptor)
            finally:
                os.close(descriptor)

        await self._disk._in_thread(self.current_path, "flush", flush)

    def close(self) -> None:
        self._disk._descriptors.forget(self)


class _RealLock:
    """A held lock. Closing its descriptor gives it back."""

    def __init__(self, descriptor: int, identity: tuple[int, int]) -> None:
        self._descriptor: int | None = descriptor
        self._identity = identity

    def release(self) -> None:
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None
            _locks_of_this_process.discard(self._identity)


class _Descriptors:
    """A bounded number of open descriptors, least recently used closed first. Safe to use from flush threads."""

    def __init__(self, open_files_max: int) -> None:
        assert open_files_max > 0
        self._max = open_files_max
        self._open: OrderedDict[_RealFile, int] = OrderedDict()
        self.lock = threading.RLock()

    def __len__(self) -> int:
        return len(self._open)

    def duplicate(self, file: _RealFile) -> int:
        with self.lock:
            return os.dup(self.descriptor(file))

    def patiently(self, take: Callable[[], int]) -> int:
        """What `take` gives, which needs a descriptor that the process may not have: then one of ours is closed. That
        nothing could be opened says nothing of the medium, and must not count as a failed flush."""
        while True:
            try:
                return take()
            except (OSError, DiskFailed) as error:
                cause = error if isinstance(error, OSError) else error.__cause__
                if getattr(cause, "errno", None) not in _NO_DESCRIPTOR or not self.give_up_oldest():
                    raise

    def give_up_oldest(self) -> bool:
        """Closes the descriptor that was used least recently. False if there is none."""
        with self.lock:
            if not self._open:
                return False
            os.close(self._open.popitem(last=False)[1])
            return True

    def adopt(self, file: _RealFile, descriptor: int) -> None:
        with self.lock:
            while len(self._open) >= self._max:
                os.close(self._open.popitem(last=False)[1])
            self._open[file] = descriptor

    def forget(self, file: _RealFile) -> None:
        with self.lock:
            descriptor = self._open.pop(file, None)
            if descriptor is not None:
                os.close(descriptor)

    def close(self) -> None:
        with self.lock:
            while self._open:
                os.close(self._open.popitem()[1])

    def descriptor(self, file: _RealFile) -> int:
        """A descriptor that stays open while the caller holds `lock`."""
        descriptor = self._open.get(file)
        if descriptor is not None:
            self._open.move_to_end(file)
            return descriptor
        with _errors(file.current_path, "open"):
            flags = (os.O_RDWR if file.writable else os.O_RDONLY) | os.O_CLOEXEC
            descriptor = self.patiently(lambda: os.open(file.location, flags))
            status = os.fstat(descriptor)
        if (status.st_dev, status.st_ino) != file.identity:
            os.close(descriptor)
            raise DiskFailed(file.current_path, "open", "another file has taken its name")
        self.adopt(file, descriptor)
        return descriptor


@contextmanager
def _errors(path: str, operation: str) -> Iterator[None]:
    """Translates `OSError` into the errors of the `Disk` interface."""
    try:
        yield
    except OSError as error:
        kind = DiskFull if error.errno in _NO_ROOM else DiskFailed
        raise kind(path or ".", operation, error.strerror or str(error)) from error
