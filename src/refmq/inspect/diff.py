"""Two stores side by side: the same messages, in the same places, found the same ways?

Values are compared, not files: bytes after a blank record or after the end of the data mean nothing, and two stores may
have files of different sizes. Records are compared byte for byte.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import zip_longest

from refmq.inspect.files import StoreFiles, index_entries, look_at_store, queue_units
from refmq.inspect.log import Damage, Found, read_records
from refmq.model.disk import Disk
from refmq.protocol.record import Record


@dataclass(frozen=True, slots=True)
class Difference:
    """One thing that the two stores do not have in common."""

    where: str
    left: str
    right: str


def diff_stores(left: Disk, right: Disk, *, with_index: bool = True) -> Iterator[Difference]:
    """Every difference, in the order log, queues, index."""
    left_files, right_files = look_at_store(left), look_at_store(right)
    yield from _diff_logs(left, left_files, right, right_files)
    yield from _diff_queues(left, left_files, right, right_files)
    if with_index:
        yield from _diff_indexes(left, left_files, right, right_files)


def _diff_logs(left: Disk, left_files: StoreFiles, right: Disk, right_files: StoreFiles) -> Iterator[Difference]:
    for one, other in zip_longest(_records(left, left_files), _records(right, right_files)):
        if one is None or other is None:
            at, _ = one or other or (0, None)
            yield Difference(f"log {at}", _text(one), _text(other))
            return
        if one[0] != other[0]:
            yield Difference(f"log {min(one[0], other[0])}", _text(one), _text(other))
            return  # from here on nothing lines up
        if isinstance(one[1], Found) and isinstance(other[1], Found):
            yield from _diff_records(one[1], other[1])
        elif one[1] != other[1]:
            yield Difference(f"log {one[0]}", _text(one), _text(other))


_Item = tuple[int, Found | str]


def _records(disk: Disk, files: StoreFiles) -> Iterator[_Item]:
    for item in read_records(disk, files.log):
        if isinstance(item, Found):
            yield int(item.record.physical_offset), item
        elif isinstance(item, Damage):
            yield int(item.begin), str(item.error)


def _diff_records(one: Found, other: Found) -> Iterator[Difference]:
    if one.data == other.data:
        return
    where = f"log {one.record.physical_offset}"
    names = [name for name in Record._fields if getattr(one.record, name) != getattr(other.record, name)]
    if not names:
        yield Difference(where, "other bytes", "for the same values")
    for name in names:
        yield Difference(f"{where} {name}", *(repr(getattr(found.record, name)) for found in (one, other)))


def _text(item: _Item | None) -> str:
    if item is None:
        return "nothing"
    return f"a record of {len(item[1].data)} bytes at {item[0]}" if isinstance(item[1], Found) else item[1]


def _diff_queues(left: Disk, left_files: StoreFiles, right: Disk, right_files: StoreFiles) -> Iterator[Difference]:
    names = {(queue.topic, queue.queue_id) for files in (left_files, right_files) for queue in files.queues}
    for topic, queue_id in sorted(names):
        mine, theirs = left_files.queue(topic, queue_id), right_files.queue(topic, queue_id)
        left_units = queue_units(left, mine) if mine is not None else iter(())
        right_units = queue_units(right, theirs) if theirs is not None else iter(())
        for one, other in zip_longest(left_units, right_units):
            if one != other:
                number = one[0] if one is not None else other[0] if other is not None else 0
                yield Difference(f"queue {topic}/{queue_id} unit {number}", _unit(one), _unit(other))
                break


def _unit(unit: tuple[int, int, int, int] | None) -> str:
    return "nothing" if unit is None else f"offset {unit[1]}, size {unit[2]}, tags code {unit[3]}"


def _diff_indexes(left: Disk, left_files: StoreFiles, right: Disk, right_files: StoreFiles) -> Iterator[Difference]:
    def entries(disk: Disk, files: StoreFiles) -> Iterator[tuple[int, int]]:
        for header in files.indexes:
            for entry in index_entries(disk, header):
                yield entry.hash, entry.physical_offset

    for number, (one, other) in enumerate(zip_longest(entries(left, left_files), entries(right, right_files)), start=1):
        if one != other:
            yield Difference(f"index entry {number}", _entry(one), _entry(other))
            return


def _entry(entry: tuple[int, int] | None) -> str:
    return "nothing" if entry is None else f"hash {entry[0]} at {entry[1]}"
