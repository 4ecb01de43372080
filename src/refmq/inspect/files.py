"""Looking at the files of a store that nobody runs: what is there, and how large its files are meant to be.

A store, ours or Java's, records its file sizes nowhere. They are derived: every file of the log has one size, every
file of the queues another. The size of an index file is 40 + 4 * slots + 20 * entries; of the pairs that fit, the one
is chosen whose slots and entries agree with each other.

Nothing here writes. `log`, `verify` and `diff` build on it.
"""

from __future__ import annotations

import struct
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from refmq.errors import RefmqError
from refmq.model.disk import Disk, DiskFile
from refmq.model.ids import TimestampMs
from refmq.store.checkpoint import Checkpoint, read_checkpoint

ABORT_FILE: Final = "abort"
LOCK_FILE: Final = "lock"
LOG_DIRECTORY: Final = "commitlog"
QUEUE_DIRECTORY: Final = "consumequeue"
EXT_DIRECTORY: Final = "consumequeue_ext"
INDEX_DIRECTORY: Final = "index"
CONFIG_DIRECTORY: Final = "config"

QUEUE_UNIT: Final = struct.Struct(">qiq")
QUEUE_BLANK_SIZE: Final = 0x7FFF_FFFF
INDEX_HEADER: Final = struct.Struct(">qqqqii")
INDEX_ENTRY: Final = struct.Struct(">iqii")
INDEX_NAME_DIGITS: Final = 17

INDEX_SLOTS_DEFAULT: Final = 5_000_000
INDEX_ENTRIES_DEFAULT: Final = 20_000_000
INDEX_GUESSES_MAX: Final = 20_000
"""Pairs of slots and entries that are tried on an index file of unusual size."""

READ_BYTES: Final = 1 << 20
"""Read at once from queues and indexes."""


class NotAStore(RefmqError):
    """The directory is not the directory of a store."""


@dataclass(frozen=True, slots=True)
class SequenceFile:
    """One file of a run of files of equal size."""

    path: str
    begin: int
    size_bytes: int
    modified_ms: TimestampMs


@dataclass(frozen=True, slots=True)
class Sequence:
    """A run of files: the log, or one queue."""

    directory: str
    file_bytes: int
    """What every file should have; 0 if there is no file."""
    files: tuple[SequenceFile, ...]
    strays: tuple[str, ...] = ()
    """Names that do not belong here."""

    @property
    def begin(self) -> int:
        return self.files[0].begin if self.files else 0


@dataclass(frozen=True, slots=True)
class QueueFiles:
    """The files of one queue."""

    topic: str
    queue_id: int
    sequence: Sequence


@dataclass(frozen=True, slots=True)
class IndexFileInfo:
    """One index file and its header."""

    path: str
    size_bytes: int
    begin_ms: int
    end_ms: int
    begin_offset: int
    end_offset: int
    slots_used: int
    next_entry: int
    slots: int
    entries: int
    """Derived from the size; 0 and 0 when no pair fits."""


@dataclass(frozen=True, slots=True)
class StoreFiles:
    """Everything that belongs to a store, by its names and sizes."""

    log: Sequence
    queues: tuple[QueueFiles, ...]
    indexes: tuple[IndexFileInfo, ...]
    checkpoint: Checkpoint
    has_checkpoint: bool
    has_abort: bool
    configs: tuple[str, ...]
    queue_file_bytes: int
    ext_file_bytes: int
    strays: tuple[str, ...]

    def queue(self, topic: str, queue_id: int) -> QueueFiles | None:
        return next((q for q in self.queues if (q.topic, q.queue_id) == (topic, queue_id)), None)


def look_at_store(disk: Disk) -> StoreFiles:
    """Lists a store. Raises `NotAStore` if there is no commit log directory, and `DiskError`."""
    if not disk.is_directory(""):
        raise NotAStore("there is no such directory")
    if not disk.is_directory(LOG_DIRECTORY):
        raise NotAStore(f"it is not a store: it has no directory {LOG_DIRECTORY}")
    queues, strays = _queues(disk, QUEUE_DIRECTORY)
    exts, ext_strays = _queues(disk, EXT_DIRECTORY)
    log = look_at_sequence(disk, LOG_DIRECTORY)
    index_names = [name for name in disk.list(INDEX_DIRECTORY) if len(name) == INDEX_NAME_DIGITS and name.isdigit()]
    stray_indexes = [f"{INDEX_DIRECTORY}/{name}" for name in disk.list(INDEX_DIRECTORY) if name not in index_names]
    strays += ext_strays + [f"{LOG_DIRECTORY}/{name}" for name in log.strays] + stray_indexes
    strays += [f"{queue.sequence.directory}/{name}" for queue in (*queues, *exts) for name in queue.sequence.strays]
    return StoreFiles(
        log=log,
        queues=tuple(queues),
        indexes=tuple(look_at_index(disk, f"{INDEX_DIRECTORY}/{name}") for name in index_names),
        checkpoint=read_checkpoint(disk),
        has_checkpoint=disk.exists("checkpoint"),
        has_abort=disk.exists(ABORT_FILE),
        configs=disk.list(CONFIG_DIRECTORY),
        queue_file_bytes=_common_size([queue.sequence for queue in queues]),
        ext_file_bytes=_common_size([queue.sequence for queue in exts]),
        strays=tuple(strays),
    )


def _queues(disk: Disk, directory: str) -> tuple[list[QueueFiles], list[str]]:
    queues: list[QueueFiles] = []
    strays: list[str] = []
    for topic in disk.list(directory):
        if not disk.is_directory(f"{directory}/{topic}"):
            strays.append(f"{directory}/{topic}")
            continue
        for name in disk.list(f"{directory}/{topic}"):
            path = f"{directory}/{topic}/{name}"
            if name.isdigit() and disk.is_directory(path):
                queues.append(QueueFiles(topic, int(name), look_at_sequence(disk, path)))
            else:
                strays.append(path)
    return sorted(queues, key=lambda queue: (queue.topic, queue.queue_id)), strays


def _common_size(sequences: list[Sequence]) -> int:
    sizes = Counter(sequence.file_bytes for sequence in sequences if sequence.file_bytes)
    return sizes.most_common(1)[0][0] if sizes else 0


def look_at_sequence(disk: Disk, directory: str) -> Sequence:
    """The files of a directory whose names are offsets, in order; the usual size among them is the right one."""
    files = []
    strays = []
    for name in disk.list(directory):
        path = f"{directory}/{name}"
        if not name.isdigit() or disk.is_directory(path):
            strays.append(name)
            continue
        info = disk.info(path)
        files.append(SequenceFile(path, int(name), info.size_bytes, info.modified_ms))
    files.sort(key=lambda file: file.begin)
    sizes = Counter(file.size_bytes for file in files if file.size_bytes)
    return Sequence(directory, sizes.most_common(1)[0][0] if sizes else 0, tuple(files), tuple(strays))


# --- queues ---------------------------------------------------------------------------------------------------------


def queue_units(disk: Disk, queue: QueueFiles, begin: int = 0) -> Iterator[tuple[int, int, int, int]]:
    """(queue offset, physical offset, size, tags code) from `begin` on, up to the first place without a unit."""
    for found in queue.sequence.files:
        if found.size_bytes != queue.sequence.file_bytes:
            return
        position = max(0, begin * QUEUE_UNIT.size - found.begin)
        file = disk.open(found.path, writable=False)
        try:
            while position < found.size_bytes:
                length = min(READ_BYTES // QUEUE_UNIT.size * QUEUE_UNIT.size, found.size_bytes - position)
                data = file.read(position, length - length % QUEUE_UNIT.size)
                for number, unit in enumerate(QUEUE_UNIT.iter_unpack(data)):
                    physical_offset, size, tags_code = unit
                    if size <= 0 or physical_offset < 0:
                        return
                    at = (found.begin + position) // QUEUE_UNIT.size + number
                    yield at, physical_offset, size, tags_code
                if not data:
                    break
                position += len(data)
        finally:
            file.close()


# --- indexes --------------------------------------------------------------------------------------------------------


def look_at_index(disk: Disk, path: str) -> IndexFileInfo:
    """The header of an index file, and how many slots and entries it was made for."""
    file = disk.open(path, writable=False)
    try:
        size = file.size_bytes
        if size < INDEX_HEADER.size:
            return IndexFileInfo(path, size, 0, 0, 0, 0, 0, 0, 0, 0)
        fields = INDEX_HEADER.unpack(file.read(0, INDEX_HEADER.size))
        slots, entries = _slots_and_entries(file, size, fields[4], max(1, fields[5]))
        begin_ms, end_ms, begin_offset, end_offset, slots_used, next_entry = fields
        return IndexFileInfo(
            path, size, begin_ms, end_ms, begin_offset, end_offset, slots_used, next_entry, slots, entries
        )
    finally:
        file.close()


def _slots_and_entries(file: DiskFile, size: int, slots_used: int, next_entry: int) -> tuple[int, int]:
    room = size - INDEX_HEADER.size
    if room == 4 * INDEX_SLOTS_DEFAULT + INDEX_ENTRY.size * INDEX_ENTRIES_DEFAULT:
        return INDEX_SLOTS_DEFAULT, INDEX_ENTRIES_DEFAULT
    guesses = [room // 84] if room % 84 == 0 else []  # four entries to a slot, as in the default
    first = room // 4 % 5 or 5
    guesses += range(first, min(room // 4, first + 5 * INDEX_GUESSES_MAX), 5)
    for slots in guesses:
        entries, rest = divmod(room - 4 * slots, INDEX_ENTRY.size)
        if rest == 0 and entries >= max(2, next_entry) and _agree(file, slots, slots_used, next_entry):
            return slots, entries
    return 0, 0


def _agree(file: DiskFile, slots: int, slots_used: int, next_entry: int) -> bool:
    """Whether the newest entries stand in the slots of their hashes."""
    for number in range(max(1, next_entry - 8), next_entry):
        at = INDEX_HEADER.size + 4 * slots + INDEX_ENTRY.size * number
        if at + INDEX_ENTRY.size > file.size_bytes:
            return False
        hash_, physical_offset, _, previous = INDEX_ENTRY.unpack(file.read(at, INDEX_ENTRY.size))
        if hash_ < 0 or physical_offset < 0 or not 0 <= previous < number:
            return False
        newest = int.from_bytes(file.read(INDEX_HEADER.size + 4 * (hash_ % slots), 4), "big")
        if not number <= newest < next_entry:
            return False
    return next_entry > 1 or slots_used == 0


@dataclass(frozen=True, slots=True)
class IndexEntry:
    """One entry of an index file."""

    number: int
    hash: int
    physical_offset: int
    store_ms: int
    """Rounded down to whole seconds since the start of the file."""
    previous: int


def index_entries(disk: Disk, index: IndexFileInfo) -> Iterator[IndexEntry]:
    """The entries of an index file in the order in which they were made."""
    if not index.slots:
        return
    file = disk.open(index.path, writable=False)
    try:
        number = 1
        while number < min(index.next_entry, index.entries):
            count = min(READ_BYTES // INDEX_ENTRY.size, min(index.next_entry, index.entries) - number)
            at = INDEX_HEADER.size + 4 * index.slots + INDEX_ENTRY.size * number
            for hash_, physical_offset, seconds, previous in INDEX_ENTRY.iter_unpack(
                file.read(at, count * INDEX_ENTRY.size)
            ):
                yield IndexEntry(number, hash_, physical_offset, index.begin_ms + 1000 * seconds, previous)
                number += 1
    finally:
        file.close()
