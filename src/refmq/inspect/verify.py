"""Whether the files of a stopped store agree with each other.

One walk over the log is compared with every queue and every index, in bounded memory:

- every record that belongs to a queue has its unit in its place, with its size and tags code; when that is so and a
  queue has as many live units as records, every unit is accounted for;
- every record's keys have entries in the index, in the order of the log, and every entry belongs to a record.

A finding is *damage*, or a *note*: something that a crash leaves and the next start repairs. The abort file decides:
without it the store was stopped cleanly and everything has to be complete.
"""

from __future__ import annotations

from collections import Counter, OrderedDict
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from refmq.inspect.files import (
    QUEUE_BLANK_SIZE,
    QUEUE_UNIT,
    IndexEntry,
    QueueFiles,
    StoreFiles,
    index_entries,
    look_at_store,
    queue_units,
)
from refmq.inspect.log import Damage, Found, LogEnd, Progress, read_records
from refmq.model.disk import Disk, DiskFile
from refmq.protocol.record import (
    KEY_SEPARATOR,
    TRANSACTION_COMMIT,
    TRANSACTION_NONE,
    TRANSACTION_ROLLBACK,
    Record,
    decode_properties,
    string_hash,
)

DELAY_TOPIC: Final = "SCHEDULE_TOPIC_XXXX"
OPEN_QUEUES_MAX: Final = 64
"""Queue files that are kept open while the log is walked."""
FINDINGS_MAX: Final = 1000
"""A store that is wrong everywhere is described by its first mistakes."""
EXT_ADDRESS_MAX: Final = -(2**31) - 1


class Severity(StrEnum):
    """What a finding means."""

    DAMAGE = "damage"
    NOTE = "note"


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that is not as it should be."""

    severity: Severity
    where: str
    sentence: str


@dataclass(frozen=True, slots=True)
class Verified:
    """What was looked at and what was found."""

    records: int
    units: int
    index_entries: int
    log_begin: int
    log_end: int
    findings: tuple[Finding, ...]

    @property
    def is_sound(self) -> bool:
        return not any(finding.severity is Severity.DAMAGE for finding in self.findings)


def verify_store(disk: Disk, *, check_crc: bool = True, progress: Progress | None = None) -> Verified:
    """Compares log, queues and index. Raises `NotAStore` and `DiskError`."""
    files = look_at_store(disk)
    check = _Check(disk, files)
    check.names()
    for item in read_records(disk, files.log, check_crc=check_crc, progress=progress):
        match item:
            case Found(record):
                check.record(record)
            case Damage():
                check.damage(f"log {item.begin}", f"{item.error} (unreadable up to {item.end})")
            case LogEnd(offset):
                check.end(offset)
    return check.result()


class _Check:
    """One verification under way."""

    def __init__(self, disk: Disk, files: StoreFiles) -> None:
        self._disk = disk
        self._files = files
        self._findings: list[Finding] = []
        self._records = 0
        self._units = 0
        self._entries = 0
        self._log_end = 0
        self._matched: Counter[tuple[str, int]] = Counter()
        self._queues = {(queue.topic, queue.queue_id): queue for queue in files.queues}
        self._reader = _UnitReader(disk)
        self._index = _IndexWalk(disk, files)
        self._unindexed = 0

    def damage(self, where: str, sentence: str) -> None:
        self._add(Severity.DAMAGE, where, sentence)

    def _repairable(self, where: str, sentence: str) -> None:
        """After a crash this is what the next start repairs; after a clean stop it should not be."""
        self._add(Severity.NOTE if self._files.has_abort else Severity.DAMAGE, where, sentence)

    def _add(self, severity: Severity, where: str, sentence: str) -> None:
        if len(self._findings) < FINDINGS_MAX:
            self._findings.append(Finding(severity, where, sentence))

    def names(self) -> None:
        """The names and sizes of the files."""
        if self._files.has_abort:
            self._add(Severity.NOTE, "abort", "The store was not stopped cleanly, or is running.")
        for path in self._files.strays:
            self._add(Severity.NOTE, path, "This does not belong to a store.")
        for sequence in (self._files.log, *(queue.sequence for queue in self._files.queues)):
            expected = sequence.begin
            for file in sequence.files:
                if file.size_bytes != sequence.file_bytes:
                    is_last = file is sequence.files[-1]
                    severity = Severity.NOTE if is_last and not file.size_bytes else Severity.DAMAGE
                    self._add(severity, file.path, f"It has {file.size_bytes} bytes instead of {sequence.file_bytes}.")
                if file.begin != expected:
                    self.damage(file.path, f"A file that starts at {expected} is missing before it.")
                expected = file.begin + sequence.file_bytes

    def record(self, record: Record) -> None:
        """One record of the log against its queue unit and its index entries."""
        self._records += 1
        if record.transaction_type in (TRANSACTION_NONE, TRANSACTION_COMMIT):
            self._unit_of(record)
        expected = index_hashes(record)
        missing = self._index.take(record.physical_offset, expected)
        if missing:
            self._unindexed += 1
        for entry in self._index.strangers():
            self.damage(
                f"index entry {entry.number}", f"It names {entry.physical_offset}, where no record has such a key."
            )

    def _unit_of(self, record: Record) -> None:
        where = f"queue {record.topic}/{record.queue_id} unit {record.queue_offset}"
        queue = self._queues.get((record.topic, record.queue_id))
        unit = self._reader.read(queue, record.queue_offset) if queue is not None else None
        if unit is None or unit[1] <= 0:
            self._repairable(where, f"The record at {record.physical_offset} has no unit.")
            return
        physical_offset, size, tags_code = unit
        if physical_offset != record.physical_offset:
            self.damage(where, f"It names {physical_offset}, but its record is at {record.physical_offset}.")
            return
        self._matched[record.topic, record.queue_id] += 1
        if size != record.size_bytes:
            self.damage(where, f"It has the size {size}, its record {record.size_bytes}.")
        expected = tags_code_of(record)
        if expected is not None and tags_code != expected and tags_code > EXT_ADDRESS_MAX:
            self.damage(where, f"It has the tags code {tags_code}, its record {expected}.")

    def end(self, offset: int) -> None:
        """The end of the log is known: reports what points past it, and what was not matched."""
        self._log_end = offset
        self._reader.close()
        begin = self._files.log.begin
        for queue in self._files.queues:
            live = 0
            for queue_offset, physical_offset, size, _ in queue_units(self._disk, queue):
                self._units += 1
                if size == QUEUE_BLANK_SIZE or physical_offset < begin:
                    continue
                if physical_offset >= offset:
                    self._repairable(
                        f"queue {queue.topic}/{queue.queue_id} unit {queue_offset}",
                        f"It names {physical_offset}, and the log ends at {offset}.",
                    )
                    continue
                live += 1
            matched = self._matched[queue.topic, queue.queue_id]
            if live != matched:
                self.damage(
                    f"queue {queue.topic}/{queue.queue_id}", f"It has {live} live units for {matched} matching records."
                )
        for entry in self._index.rest():
            if entry.physical_offset >= offset:
                self._repairable(
                    f"index entry {entry.number}", f"It names {entry.physical_offset}, past the end of the log."
                )
        if self._unindexed and self._files.indexes:
            self._repairable("index", f"{self._unindexed} records have keys that the index does not know.")
        for header in self._files.indexes:
            if not header.size_bytes:
                self._add(Severity.NOTE, header.path, "It has 0 bytes, as a power loss leaves a new file.")
            elif not header.slots:
                self.damage(header.path, f"No number of slots and entries fits its size of {header.size_bytes} bytes.")

    def result(self) -> Verified:
        return Verified(
            self._records,
            self._units,
            self._index.count,
            self._files.log.begin,
            self._log_end,
            tuple(self._findings),
        )


def tags_code_of(record: Record) -> int | None:
    """What the unit of a record must hold; None when it cannot be told from the record (a time of delivery)."""
    if record.topic == DELAY_TOPIC:
        return None
    tags = decode_properties(record.properties).get("TAGS", "")
    return string_hash(tags) if tags else 0


def index_hashes(record: Record) -> list[int]:
    """The hashes under which the index must know a record, in their order."""
    if record.transaction_type == TRANSACTION_ROLLBACK:
        return []
    properties = decode_properties(record.properties)
    keys = [properties["UNIQ_KEY"]] if "UNIQ_KEY" in properties else []
    keys += [key for key in properties.get("KEYS", "").split(KEY_SEPARATOR) if key]
    return [key_hash(record.topic, key) for key in keys]


def key_hash(topic: str, key: str) -> int:
    value = abs(string_hash(f"{topic}#{key}"))
    return 0 if value == 1 << 31 else value


class _UnitReader:
    """Single units, from a bounded number of open files, each with the page that was read last."""

    _WINDOW_UNITS: Final = 1024

    def __init__(self, disk: Disk) -> None:
        self._disk = disk
        self._open: OrderedDict[str, DiskFile] = OrderedDict()
        self._windows: dict[str, tuple[int, bytes]] = {}

    def read(self, queue: QueueFiles, queue_offset: int) -> tuple[int, int, int] | None:
        position = queue_offset * QUEUE_UNIT.size
        size = queue.sequence.file_bytes
        for found in queue.sequence.files:
            if found.begin <= position < found.begin + size == found.begin + found.size_bytes:
                return self._in_file(found.path, position - found.begin, size)
        return None

    def _in_file(self, path: str, position: int, size: int) -> tuple[int, int, int] | None:
        begin, data = self._windows.get(path, (0, b""))
        if not begin <= position <= begin + len(data) - QUEUE_UNIT.size:
            file = self._open.pop(path, None) or self._disk.open(path, writable=False)
            self._open[path] = file
            begin = position
            data = file.read(position, min(self._WINDOW_UNITS * QUEUE_UNIT.size, size - position))
            self._windows[path] = (begin, data)
            if len(self._open) > OPEN_QUEUES_MAX:
                oldest, handle = self._open.popitem(last=False)
                handle.close()
                self._windows.pop(oldest, None)
        if len(data) < QUEUE_UNIT.size:
            return None
        physical_offset, length, tags_code = QUEUE_UNIT.unpack_from(data, position - begin)
        return physical_offset, length, tags_code

    def close(self) -> None:
        for file in self._open.values():
            file.close()
        self._open.clear()


class _IndexWalk:
    """The entries of all index files beside the records of the log: both are in the order of physical offsets."""

    def __init__(self, disk: Disk, files: StoreFiles) -> None:
        self.count = 0
        self._entries = self._all(disk, files)
        self._next = next(self._entries, None)
        self._strangers: list[IndexEntry] = []
        self._begin = files.log.begin
        self._seen = 0

    def _all(self, disk: Disk, files: StoreFiles) -> Iterator[IndexEntry]:
        for header in files.indexes:
            for entry in index_entries(disk, header):
                self.count += 1
                yield entry

    def take(self, physical_offset: int, expected: list[int]) -> list[int]:
        """Takes the entries of one record; returns the hashes that are missing."""
        left = list(expected)
        known = set(expected)
        while self._next is not None and self._next.physical_offset <= physical_offset:
            entry = self._next
            self._next = next(self._entries, None)
            if entry.physical_offset < self._begin or entry.physical_offset <= self._seen - 1:
                continue  # of a removed file, or a second entry of a record that was indexed again after a crash
            if entry.physical_offset < physical_offset or entry.hash not in known:
                self._strangers.append(entry)
            elif entry.hash in left:
                left.remove(entry.hash)
        self._seen = physical_offset + 1
        return left

    def strangers(self) -> list[IndexEntry]:
        found, self._strangers = self._strangers, []
        return found

    def rest(self) -> Iterator[IndexEntry]:
        """The entries after the last record."""
        while self._next is not None:
            yield self._next
            self._next = next(self._entries, None)
