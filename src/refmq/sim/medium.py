"""What is left of a simulated disk when every process is gone: files, directories, and which of it is durable.

The rules are those of the crash model (docs/explanation/crash-model.md); `SimulatedDisk` is how a process sees it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final, TypeAlias

from refmq.model.ids import TimestampMs
from refmq.sim.choice import Choose

NEVER_MS: Final = TimestampMs(0)

PAGE_VERSIONS_MAX: Final = 4
"""Contents remembered of one unflushed page: the flushed one and the newest few before the present one."""

SMALL_BYTES: Final = 1 << 16
"""A file of at most this size is kept in one piece, of which its pages are parts: most of what histories do is read."""


Page: TypeAlias = bytearray | memoryview


@dataclass(slots=True, eq=False)
class Inode:
    """A file or a directory, apart from its names."""

    is_directory: bool
    size_bytes: int
    modified_ms: TimestampMs
    page_bytes: int
    is_reserved: bool = True
    """Whether its blocks were set aside at its creation; otherwise it takes what was written to it."""
    pages: dict[int, Page] = field(default_factory=dict)
    """What a reader sees; a missing page is all zeros."""
    unflushed: dict[int, list[bytes]] = field(default_factory=dict)
    """Per dirty page: its flushed content, then the newest few contents before the present one."""
    size_is_durable: bool = False
    durable_modified_ms: TimestampMs = NEVER_MS
    flushes: int = 0
    """Flushes that were started. They may overlap and end in any order."""
    flushed_by: dict[int, int] = field(default_factory=dict)
    """Per page: the latest-started flush whose content the medium holds."""
    durable_names: dict[str, Inode] = field(default_factory=dict)
    """Of a directory: the names in it that a power loss leaves."""
    whole: bytearray | None = None
    """All of a small file as a reader sees it; its pages are parts of it."""

    def __post_init__(self) -> None:
        if self.size_bytes <= SMALL_BYTES and not self.is_directory:
            self.whole = bytearray(-(-self.size_bytes // self.page_bytes) * self.page_bytes)

    def copy(self) -> Inode:
        """The same file apart from this one; a directory without its names."""
        inode = Inode(self.is_directory, self.size_bytes, self.modified_ms, self.page_bytes, self.is_reserved)
        for number, page in self.pages.items():
            inode._page_to_write(number)[:] = page
        inode.unflushed = {number: list(versions) for number, versions in self.unflushed.items()}
        inode.size_is_durable, inode.durable_modified_ms = self.size_is_durable, self.durable_modified_ms
        return inode

    @property
    def used_bytes(self) -> int:
        return self.size_bytes if self.is_reserved else len(self.pages) * self.page_bytes

    def new_bytes(self, position: int, length: int) -> int:
        """How much more of the disk a write takes."""
        if self.is_reserved or not length:
            return 0
        first, last = position // self.page_bytes, (position + length - 1) // self.page_bytes
        return sum(number not in self.pages for number in range(first, last + 1)) * self.page_bytes

    def page(self, number: int) -> bytes:
        page = self.pages.get(number)
        return bytes(page) if page is not None else bytes(self.page_bytes)

    def read(self, position: int, length: int) -> bytes:
        whole = self.whole
        if whole is not None and position + length <= len(whole):
            return bytes(whole[position : position + length])
        number, inside = divmod(position, self.page_bytes)
        if inside + length <= self.page_bytes:  # most reads; the loop below gives the same
            page = self.pages.get(number)
            return bytes(length) if page is None else bytes(page[inside : inside + length])
        last = (position + length - 1) // self.page_bytes
        # Files are sparse: a long read asks for few of its pages.
        span = range(number, last + 1)
        written = [n for n in self.pages if n in span] if len(self.pages) < len(span) else span
        data = bytearray(len(span) * self.page_bytes)
        for n in written:
            page = self.pages.get(n)
            if page is not None:
                at = (n - number) * self.page_bytes
                data[at : at + self.page_bytes] = page
        return bytes(data[inside : inside + length])

    def _page_to_write(self, number: int) -> Page:
        """A page that is there from now on."""
        page = self.pages.get(number)
        if page is None:
            at, whole = number * self.page_bytes, self.whole
            is_part = whole is not None and at + self.page_bytes <= len(whole)
            page = memoryview(whole or b"")[at : at + self.page_bytes] if is_part else bytearray(self.page_bytes)
            self.pages[number] = page
        return page

    def write(self, position: int, data: bytes) -> None:
        done = 0
        while done < len(data):
            number, inside = divmod(position + done, self.page_bytes)
            count = min(self.page_bytes - inside, len(data) - done)
            versions = self.unflushed.setdefault(number, [])
            if len(versions) >= PAGE_VERSIONS_MAX:
                del versions[1]  # versions[0] is the flushed content and must stay
            versions.append(self.page(number))
            self._page_to_write(number)[inside : inside + count] = data[done : done + count]
            done += count

    def flip_bit(self, position: int, bit: int) -> None:
        """What the medium does to a page by itself, whatever it holds: nobody wrote, and nobody is told."""
        assert 0 <= position < self.size_bytes and 0 <= bit < 8
        number, inside = divmod(position, self.page_bytes)
        self._page_to_write(number)[inside] ^= 1 << bit
        versions = self.unflushed.get(number, [])
        for at, version in enumerate(versions):
            versions[at] = version[:inside] + bytes([version[inside] ^ 1 << bit]) + version[inside + 1 :]

    def make_durable(self, contents: dict[int, bytes], flush: int) -> None:
        """The medium holds these contents now, unless a flush that began later has put newer ones there.

        A page that was written meanwhile stays unflushed.
        """
        for number, content in contents.items():
            if self.flushed_by.get(number, 0) > flush:
                continue
            self.flushed_by[number] = flush
            if self.page(number) == content:
                self.unflushed.pop(number, None)
            else:
                self.unflushed[number] = [content]

    def worst_content(self) -> bytes:
        """What a power loss leaves that takes all it may."""
        if not self.size_is_durable:
            return b""
        data = bytearray(self.read(0, self.size_bytes))
        for number, versions in self.unflushed.items():
            at = number * self.page_bytes
            data[at : at + self.page_bytes] = versions[0][: len(data) - at]
        return bytes(data)

    def lose_power(self, choose: Choose) -> None:
        for number in sorted(self.unflushed):
            versions = self.unflushed[number]
            kept = choose(len(versions) + 1)  # 0: the present content, 1: the one before it, ..., last: the flushed one
            if kept:
                self._page_to_write(number)[:] = versions[-kept]
        self.unflushed.clear()
        if not self.size_is_durable and self.size_bytes and choose(2):
            self.size_bytes = 0
            self.pages.clear()
            self.whole = None
        if self.modified_ms != self.durable_modified_ms and choose(2):
            self.modified_ms = self.durable_modified_ms
        self.size_is_durable = True
        self.durable_modified_ms = self.modified_ms


@dataclass(slots=True, eq=False)
class NameChange:
    """One change of names that its directory has not been flushed for. Renames are one step, as on real disks.

    A name is one of a directory, not a path: a directory that is made where another one was has nothing of the old one.
    """

    added: tuple[Inode, str] | None
    removed: tuple[Inode, str] | None
    inode: Inode

    @property
    def directories(self) -> tuple[Inode, ...]:
        return tuple(place[0] for place in (self.added, self.removed) if place is not None)

    def make_durable(self) -> None:
        if self.removed is not None:
            directory, name = self.removed
            if directory.durable_names.get(name) is self.inode:
                del directory.durable_names[name]
        if self.added is not None:
            directory, name = self.added
            directory.durable_names[name] = self.inode


@dataclass(slots=True, eq=False)
class Medium:
    """What is left when every process is gone."""

    page_bytes: int
    capacity_bytes: int
    root: Inode
    names: dict[str, Inode] = field(default_factory=dict)
    """What a process sees, by path."""
    changes: list[NameChange] = field(default_factory=list)
    locked: set[str] = field(default_factory=set)

    @property
    def used_bytes(self) -> int:
        return sum(inode.used_bytes for inode in self.names.values() if not inode.is_directory)

    def directory(self, path: str) -> Inode:
        return self.names[path] if path else self.root

    def change_names(self, added: str | None, removed: str | None, inode: Inode) -> None:
        self.changes.append(NameChange(self._place(added), self._place(removed), inode))
        if removed is not None:
            del self.names[removed]
        if added is not None:
            self.names[added] = inode

    def _place(self, path: str | None) -> tuple[Inode, str] | None:
        if path is None:
            return None
        parent, _, name = path.rpartition("/")
        return self.directory(parent), name

    def changes_in(self, directory: str) -> set[NameChange]:
        inode = self.directory(directory)
        return {change for change in self.changes if inode in change.directories}

    def make_durable(self, changes: set[NameChange]) -> None:
        """The medium holds these changes now, in the order in which they were made."""
        for change in self.changes:
            if change in changes:
                change.make_durable()
        self.changes = [change for change in self.changes if change not in changes]

    def worst_contents(self) -> dict[str, bytes]:
        """Every file as a power loss now would leave it that takes all it may; nothing happens."""
        durable = sorted(self.durable_paths().items())
        return {path: inode.worst_content() for path, inode in durable if not inode.is_directory}

    def durable_paths(self) -> dict[str, Inode]:
        """What is left after a power loss that undoes every change. A name in a lost directory is lost too."""
        found: dict[str, Inode] = {}

        def look_into(directory: Inode, prefix: str) -> None:
            for name, inode in directory.durable_names.items():
                found[prefix + name] = inode
                if inode.is_directory:
                    look_into(inode, f"{prefix}{name}/")

        look_into(self.root, "")
        return found

    def lose_power(self, choose: Choose) -> None:
        for change in self.changes:
            if choose(2) == 0:
                change.make_durable()
        self.changes = []
        self.names = self.durable_paths()
        for path in sorted(self.names):
            self.names[path].lose_power(choose)
