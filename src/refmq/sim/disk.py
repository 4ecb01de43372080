"""The simulated disk: it tears, forgets, fills up and fails, and always does so the same way twice.

Crash model (docs/explanation/crash-model.md):

- A written byte can be read immediately and survives a *process crash*. A write that the crash interrupts
  leaves any prefix of its bytes; a create that it interrupts leaves no file, an empty one or a whole one.
- A *power loss* keeps what was flushed. Of every page written since its last flush it keeps the newest
  content, the flushed content, or one in between (the kernel may have written the page back at any time).
  A file whose size was never flushed may be empty. A modification time may be an older one.
- A name that was created, renamed or removed is durable after its directory was flushed; before that a
  power loss may undo it. A file is reachable only if the names of all its directories survived.
- A flush that failed fails for as long as the process lives; what it covered may or may not be durable.
- The disk has a capacity; besides, "no room" can be injected at any operation that allocates or writes.

Whatever the model leaves open is decided by a `Choose`. Files are sparse: a simulated file of 1 GiB costs
what was written to it.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Awaitable, Callable
from enum import StrEnum
from typing import Final

from refmq.errors import DiskFailed, DiskFull, FlushFailed, StoreInUse
from refmq.model.disk import DiskFile, DiskUsage, FileInfo
from refmq.model.ids import TimestampMs
from refmq.sim.choice import Choose, mildest
from refmq.sim.medium import NEVER_MS, Inode, Medium, NameChange

PAGE_BYTES: Final = 4096
"""What the kernel writes back as one piece. Histories with tiny files use a smaller page to tear records."""

CAPACITY_BYTES: Final = 1 << 40

OPERATIONS_REMEMBERED: Final = 64
"""How many recent operations a disk can list when something goes wrong."""


class SimulatedCrash(BaseException):
    """The process died here. Not an `Exception`: no handler may turn a crash into an error and go on."""

    def __init__(self, operation: int, what: str) -> None:
        super().__init__(operation, what)
        self.operation = operation
        self.what = what

    def __str__(self) -> str:
        return f"simulated crash at operation {self.operation}: {self.what}"


class Fault(StrEnum):
    """What can be made to happen at an operation."""

    CRASH = "crash"
    DISK_FULL = "disk full"
    FLUSH_FAILS = "flush fails"


EFFECTS: Final = ("create", "write", "flush", "rename", "remove", "make directory", "flush directory")
"""The operations that are counted: everything that changes what a later process may find."""

_APPLIES_TO: Final[dict[Fault, frozenset[str]]] = {
    Fault.CRASH: frozenset(EFFECTS),
    Fault.DISK_FULL: frozenset({"create", "write"}),
    Fault.FLUSH_FAILS: frozenset({"flush", "flush directory"}),
}


class SimulatedDisk:
    """One process's view of a simulated disk. After a crash it is dead; the next process gets a new one."""

    def __init__(
        self,
        *,
        clock: Callable[[], TimestampMs],
        choose: Choose = mildest,
        page_bytes: int = PAGE_BYTES,
        capacity_bytes: int = CAPACITY_BYTES,
        on_flush: Callable[[], Awaitable[None]] | None = None,
        on_effect: Callable[[str], None] | None = None,
    ) -> None:
        """`choose` decides what an interrupted write or create leaves; `on_flush` is awaited inside every flush
        (a simulated loop makes flushes take time there); `on_effect` is called before every effect and may raise
        `SimulatedCrash` (a simulated node counts all its effects there, those on the network too)."""
        self._medium = Medium(page_bytes, capacity_bytes, Inode(True, 0, NEVER_MS, page_bytes))
        self._clock = clock
        self._choose = choose
        self._on_flush = on_flush
        self._on_effect = on_effect
        self._planned: list[tuple[int, Fault]] = []
        self._failed: dict[Inode | None, str] = {}
        self._dead: SimulatedCrash | None = None
        self._held: set[str] = set()
        self._open_files: set[_SimulatedFile] = set()
        self.operations = 0
        """How many effects this process has had. The next effect is number `operations`."""
        self.recent: deque[str] = deque(maxlen=OPERATIONS_REMEMBERED)
        self.happened: list[Fault] = []
        """The injected faults that have happened, in order."""

    # --- faults -----------------------------------------------------------------------------------------------

    def inject(self, fault: Fault, at_operation: int | None = None) -> None:
        """Let `fault` happen at the first operation that it can apply to, from number `at_operation` on (now by
        default). Each injected fault happens once."""
        self._planned.append((self.operations if at_operation is None else at_operation, fault))

    def crash_at(self, operation: int, choose: Choose | None = None) -> None:
        """Die instead of finishing effect number `operation`; `choose` decides what the interrupted effect leaves."""
        self._choose = choose or self._choose
        self.inject(Fault.CRASH, operation)

    def cancel_faults(self) -> None:
        """Drop injected faults that have not happened."""
        self._planned.clear()

    @property
    def has_planned_faults(self) -> bool:
        """Whether an injected fault has not happened yet."""
        return bool(self._planned)

    @property
    def capacity_bytes(self) -> int:
        return self._medium.capacity_bytes

    @capacity_bytes.setter
    def capacity_bytes(self, value: int) -> None:
        self._medium.capacity_bytes = value

    def kill(self) -> None:
        """The process dies between two operations: from now on everything raises `SimulatedCrash`."""
        self._dead = self._dead or SimulatedCrash(self.operations, "killed")

    def after_process_crash(self, *, choose: Choose | None = None) -> SimulatedDisk:
        """The disk that the next process sees: every written byte is there. This one is dead."""
        self.kill()
        for path in self._held:
            self._medium.locked.discard(path)
        return self._next(self._medium, choose)

    def after_power_loss(self, choices: Choose, *, choose: Choose | None = None) -> SimulatedDisk:
        """The disk after the power came back: `choices` decides what survived. This one is dead."""
        self.kill()
        self._medium.locked.clear()
        self._medium.lose_power(choices)
        return self._next(self._medium, choose)

    def copy(self) -> SimulatedDisk:
        """An independent disk in the same state, flushed and unflushed, without this one's locks and faults."""
        copies: dict[Inode, Inode] = {}

        def of(inode: Inode) -> Inode:
            if inode not in copies:
                copies[inode] = inode.copy()
                copies[inode].durable_names = {name: of(entry) for name, entry in inode.durable_names.items()}
            return copies[inode]

        def place_of(place: tuple[Inode, str] | None) -> tuple[Inode, str] | None:
            return (of(place[0]), place[1]) if place is not None else None

        old = self._medium
        medium = Medium(old.page_bytes, old.capacity_bytes, of(old.root))
        medium.names = {path: of(inode) for path, inode in old.names.items()}
        medium.changes = [
            NameChange(place_of(change.added), place_of(change.removed), of(change.inode)) for change in old.changes
        ]
        return self._next(medium, None)

    def contents(self) -> dict[str, bytes]:
        """Every file with its bytes as a reader sees them. For small disks: tests compare whole disks with it."""
        return {
            path: inode.read(0, inode.size_bytes)
            for path, inode in sorted(self._medium.names.items())
            if not inode.is_directory
        }

    def worst_contents(self) -> dict[str, bytes]:
        """The same as the worst power loss would leave it, which does not happen."""
        return self._medium.worst_contents()

    def put_contents(self, contents: dict[str, bytes]) -> None:
        """Lays down files as if they had always been there: durable, and not counted as operations."""
        for path, data in contents.items():
            for up in (*_ancestors(path), path):
                is_file = up == path
                inode = Inode(not is_file, len(data) if is_file else 0, self._clock(), self._medium.page_bytes)
                inode.durable_modified_ms, inode.size_is_durable = inode.modified_ms, True
                if is_file:
                    inode.write(0, data)
                    inode.unflushed.clear()
                elif up in self._medium.names:
                    continue
                directory, name = self._medium.directory(_parent(up)), up.rpartition("/")[2]
                self._forget_changes(directory, name)
                directory.durable_names[name] = inode
                self._medium.names[up] = inode

    def flip_bit(self, path: str, position: int, bit: int = 0) -> None:
        """Damages one bit of a file, also one that is open; not counted as an operation."""
        self._medium.names[path].flip_bit(position, bit)

    def take_away(self, path: str) -> None:
        """Removes a file as if it had never been there: durable, and not counted as an operation."""
        medium = self._medium
        medium.names.pop(path, None)
        directory, name = medium.directory(_parent(path)), path.rpartition("/")[2]
        directory.durable_names.pop(name, None)
        self._forget_changes(directory, name)

    def _forget_changes(self, directory: Inode, name: str) -> None:
        """What happened to a name before it was laid down or taken away never comes to be."""
        medium = self._medium
        medium.changes = [
            change for change in medium.changes if (directory, name) not in (change.added, change.removed)
        ]

    @property
    def is_durable(self) -> bool:
        """Whether a power loss now would change nothing."""
        medium = self._medium
        if any(inode.unflushed for inode in medium.names.values()):
            return False
        # Changes inside a directory that is durably gone no longer matter.
        durable = {medium.root, *medium.durable_paths().values()}
        return not any(directory in durable for change in medium.changes for directory in change.directories)

    @property
    def is_alive(self) -> bool:
        """Whether the process of this disk lives."""
        return self._dead is None

    @property
    def open_paths(self) -> tuple[str, ...]:
        """The files that this process has opened and not closed; once for each time it has opened them."""
        return tuple(sorted(file.path for file in self._open_files))

    @property
    def held_locks(self) -> tuple[str, ...]:
        """The locks that this process holds."""
        return tuple(sorted(self._held))

    def _next(self, medium: Medium, choose: Choose | None) -> SimulatedDisk:
        disk = SimulatedDisk(
            clock=self._clock, choose=choose or self._choose, on_flush=self._on_flush, on_effect=self._on_effect
        )
        disk._medium = medium
        return disk

    def another_process(self) -> SimulatedDisk:
        """A second living process on the same disk."""
        return self._next(self._medium, None)

    # --- the Disk interface -----------------------------------------------------------------------------------

    def exists(self, path: str) -> bool:
        self._alive()
        return path == "" or _checked(path) in self._medium.names

    def list(self, directory: str) -> tuple[str, ...]:
        self._alive()
        if directory:
            _checked(directory)
        begin = f"{directory}/" if directory else ""
        below = [path[len(begin) :] for path in self._medium.names if path.startswith(begin)]
        return tuple(sorted(name for name in below if "/" not in name))

    def is_directory(self, path: str) -> bool:
        self._alive()
        inode = self._medium.names.get(path)
        return path == "" or (inode is not None and inode.is_directory)

    def info(self, path: str) -> FileInfo:
        inode = self._inode(path, "examine")
        return FileInfo(inode.size_bytes, inode.modified_ms)

    def open(self, path: str, *, writable: bool = True) -> DiskFile:
        inode = self._inode(path, "open")
        if inode.is_directory:
            raise DiskFailed(path, "open", "it is a directory")
        return _SimulatedFile(self, path, inode, writable)

    def create(self, path: str, size_bytes: int, *, reserve: bool = True) -> DiskFile:
        assert size_bytes >= 0
        self._alive()
        if _checked(path) in self._medium.names:
            raise DiskFailed(path, "create", "the name exists already")
        self._make_parents(path)
        inode = Inode(False, size_bytes, self._clock(), self._medium.page_bytes, is_reserved=reserve)
        try:
            self._effect("create", path)
        except SimulatedCrash:
            left = self._choose(3)  # nothing, the whole file, or a name without its size
            if left:
                inode.size_bytes = size_bytes if left == 1 else 0
                self._medium.change_names(path, None, inode)
            raise
        if reserve and self._medium.used_bytes + size_bytes > self._medium.capacity_bytes:
            raise DiskFull(path, "create", "no space left on device")
        self._medium.change_names(path, None, inode)
        return _SimulatedFile(self, path, inode, True)

    def make_directory(self, path: str) -> None:
        self._alive()
        if self.is_directory(path):
            return
        if _checked(path) in self._medium.names:
            raise DiskFailed(path, "make directory", "the name exists already and is a file")
        self._make_parents(path)
        self._effect("make directory", path)
        self._medium.change_names(path, None, Inode(True, 0, self._clock(), self._medium.page_bytes))

    def remove(self, path: str) -> None:
        inode = self._inode(path, "remove")
        if inode.is_directory and self.list(path):
            raise DiskFailed(path, "remove", "the directory is not empty")
        self._effect("remove", path)
        self._medium.change_names(None, path, inode)

    def rename(self, source: str, target: str) -> None:
        inode = self._inode(source, "rename")
        _checked(target)
        if not self.is_directory(_parent(target)):
            raise DiskFailed(target, "rename", "its directory does not exist")
        self._effect("rename", f"{source} to {target}")
        self._medium.change_names(target, source, inode)

    async def flush_directory(self, directory: str) -> None:
        self._alive()
        if not self.is_directory(directory):
            raise DiskFailed(directory, "flush directory", "no such directory")
        changes = self._medium.changes_in(directory)  # changes made while the flush waits are not covered
        await self._flushing("flush directory", directory, None)
        self._medium.make_durable(changes)

    def usage(self, path: str) -> DiskUsage:
        self._alive()
        total = self._medium.capacity_bytes
        return DiskUsage(total, max(0, total - self._medium.used_bytes))

    def lock(self, path: str) -> _SimulatedLock:
        self._alive()
        if path in self._medium.locked:
            raise StoreInUse(path, "lock", "another process holds it")
        if path not in self._medium.names:
            self.create(path, len(LOCK_TEXT)).close()
        inode = self._inode(path, "lock")
        self._effect("write", path)
        inode.size_bytes = max(inode.size_bytes, len(LOCK_TEXT))
        inode.write(0, LOCK_TEXT)
        inode.unflushed.clear()  # real locks are forced, or never read; either way the bytes do not matter
        self._medium.locked.add(path)
        self._held.add(path)
        return _SimulatedLock(self, path)

    # --- inside -----------------------------------------------------------------------------------------------

    def _alive(self) -> None:
        if self._dead is not None:
            raise self._dead

    def _inode(self, path: str, operation: str) -> Inode:
        self._alive()
        inode = self._medium.names.get(_checked(path))
        if inode is None:
            raise DiskFailed(path, operation, "no such file or directory")
        return inode

    def _make_parents(self, path: str) -> None:
        for up in _ancestors(path):
            inode = self._medium.names.get(up)
            if inode is None:
                self._effect("make directory", up)
                self._medium.change_names(up, None, Inode(True, 0, self._clock(), self._medium.page_bytes))
            elif not inode.is_directory:
                raise DiskFailed(path, "create", f"{up} is a file")

    def _effect(self, kind: str, what: str) -> None:
        """Counts one effect, and lets an injected fault happen instead of it."""
        assert kind in EFFECTS
        self._alive()
        if self._on_effect is not None:
            self._on_effect(f"{kind} {what}")
        number = self.operations
        self.operations += 1
        self.recent.append(f"{number} {kind} {what}")
        for plan in self._planned:
            at, fault = plan
            if at > number or kind not in _APPLIES_TO[fault]:
                continue
            self._planned.remove(plan)
            self.happened.append(fault)
            match fault:
                case Fault.CRASH:
                    self._dead = SimulatedCrash(number, f"{kind} {what}")
                    raise self._dead
                case Fault.DISK_FULL:
                    raise DiskFull(what, kind, "no space left on device")
                case Fault.FLUSH_FAILS:
                    raise FlushFailed(what, kind, "input/output error")

    async def _flushing(self, kind: str, what: str, inode: Inode | None) -> None:
        """The part of a flush that can fail, stay failed, and take time."""
        self._alive()
        if inode in self._failed:
            raise FlushFailed(what, kind, self._failed[inode])
        try:
            self._effect(kind, what)
        except FlushFailed as error:
            self._failed[inode] = f"an earlier flush failed: {error.reason}"
            raise
        if self._on_flush is not None:
            await self._on_flush()
            self._alive()


class _SimulatedFile:
    """An open file of a simulated disk."""

    def __init__(self, disk: SimulatedDisk, path: str, inode: Inode, writable: bool) -> None:
        self._disk = disk
        self._inode = inode
        self._writable = writable
        self._path = path
        disk._open_files.add(self)

    @property
    def path(self) -> str:
        return self._path

    @property
    def size_bytes(self) -> int:
        return self._inode.size_bytes

    def _usable(self) -> None:
        self._disk._alive()
        assert self in self._disk._open_files, f"{self._path} is used after it was closed"

    def read(self, position: int, length: int) -> bytes:
        disk, inode = self._disk, self._inode  # no further calls: half of what a history does are reads
        if disk._dead is not None:
            raise disk._dead
        assert self in disk._open_files, f"{self._path} is used after it was closed"
        assert 0 <= position <= position + length <= inode.size_bytes, "read outside the file"
        return inode.read(position, length)

    def write(self, position: int, data: bytes) -> None:
        disk = self._disk
        self._usable()
        assert self._writable, f"{self._path} was opened for reading"
        assert 0 <= position <= position + len(data) <= self._inode.size_bytes, "write outside the file"
        try:
            disk._effect("write", f"{self._path} [{position}, {position + len(data)})")
        except SimulatedCrash:
            self._inode.write(position, data[: disk._choose(len(data) + 1)])
            raise
        new_bytes = self._inode.new_bytes(position, len(data))
        if new_bytes and disk._medium.used_bytes + new_bytes > disk._medium.capacity_bytes:
            raise DiskFull(self._path, "write", "no space left on device")
        self._inode.write(position, data)
        self._inode.modified_ms = disk._clock()

    def data_end(self) -> int:
        self._usable()
        return min(self._inode.size_bytes, (max(self._inode.pages, default=-1) + 1) * self._inode.page_bytes)

    async def flush(self, start: int = 0, end: int | None = None) -> None:
        inode = self._inode
        self._usable()
        end = inode.size_bytes if end is None else end
        assert 0 <= start <= end <= inode.size_bytes, "flush outside the file"
        first, last = start // inode.page_bytes, -(-end // inode.page_bytes)
        # The flush does not cover what is written while it runs.
        contents = {number: inode.page(number) for number in inode.unflushed if first <= number < last}
        modified_ms = inode.modified_ms
        inode.flushes += 1
        number_of_flush = inode.flushes
        await self._disk._flushing("flush", f"{self._path} [{start}, {end})", inode)
        inode.make_durable(contents, number_of_flush)
        inode.size_is_durable = True
        inode.durable_modified_ms = modified_ms

    def close(self) -> None:
        self._disk._open_files.discard(self)


class _SimulatedLock:
    """The lock of a store directory. It goes with its process."""

    def __init__(self, disk: SimulatedDisk, path: str) -> None:
        self._disk = disk
        self._path = path

    def release(self) -> None:
        if self._disk._dead is None:
            self._disk._medium.locked.discard(self._path)
            self._disk._held.discard(self._path)


LOCK_TEXT: Final = b"lock"
"""What the lock file holds, as Java's store writes it."""


def _checked(path: str) -> str:
    """The same path; a path that could leave the disk's root is a bug in the caller."""
    assert all(part not in ("", ".", "..") for part in path.split("/")), f"{path!r} is not a relative path"
    return path


def _parent(path: str) -> str:
    return path.rpartition("/")[0]


def _ancestors(path: str) -> tuple[str, ...]:
    """The directories above a path, outermost first, without the root."""
    parts = path.split("/")
    return tuple("/".join(parts[:count]) for count in range(1, len(parts)))
