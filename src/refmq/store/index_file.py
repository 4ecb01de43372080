"""One index file: from the hash of a key to the records that have the key. H slots, room for N entries.

    offset        size  type  field           valid
    0             8     i64   begin ms        store time of the first entry's message
    8             8     i64   end ms          ... of the last entry's
    16            8     i64   begin physical  physical offset of the first entry's message
    24            8     i64   end physical    ... of the last entry's
    32            4     i32   used slots      slots that are not empty
    36            4     i32   next entry      number of the next free entry; 0 or less in a new file means 1
    40            4*H   i32   slots           newest entry of the slot, 0: none
    40+4*H        20*N        entries         number 0 is never used, so N - 1 fit

    entry  0   4  i32  hash         of "topic#key", never negative
           4   8  i64  physical     of the record
           12  4  i32  seconds      store time - begin ms, in whole seconds
           16  4  i32  previous     older entry of the same slot, 0: none

Names are 17 digits: the time of creation. (IndexFile, IndexHeader, 4.9.8. Java computes the seconds of a later file's
first entry against the previous file's end; ours are 0 there, as a reader expects.)
"""

from __future__ import annotations

import struct
from array import array
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Final

from refmq.model.disk import DiskFile
from refmq.protocol.record import string_hash
from refmq.store.config import PIECE_BYTES_DEFAULT

HEADER_BYTES: Final = 40
SLOT_BYTES: Final = 4
ENTRY_BYTES: Final = 20
INT32_MAX: Final = 2**31 - 1
PAGE_BYTES: Final = 4096
"""What a file system allocates at once."""

_HEADER = struct.Struct(">qqqqii")
_SLOT = struct.Struct(">i")
_ENTRY = struct.Struct(">iqii")
assert _HEADER.size == HEADER_BYTES
assert _ENTRY.size == ENTRY_BYTES


@dataclass(frozen=True, slots=True)
class IndexHeader:
    """The first 40 bytes."""

    begin_ms: int = 0
    end_ms: int = 0
    begin_physical: int = 0
    end_physical: int = 0
    used_slots: int = 0
    next_entry: int = 1

    def encode(self) -> bytes:
        return _HEADER.pack(
            self.begin_ms, self.end_ms, self.begin_physical, self.end_physical, self.used_slots, self.next_entry
        )


@dataclass(frozen=True, slots=True)
class IndexEntry:
    """One entry."""

    key_hash: int
    physical_offset: int
    seconds: int
    previous: int


@dataclass(frozen=True, slots=True)
class IndexEnd:
    """Where an index ends: the record of the newest entry, its file's name as a number, and its place in that file."""

    last: int = -1
    file: int = 0
    count: int = 0


def key_hash(topic: str, key: str) -> int:
    """The hash of a key as the index stores it: Java's `abs`, with 0 for the number that has no positive twin."""
    value = abs(string_hash(f"{topic}#{key}"))
    return 0 if value > INT32_MAX else value


class IndexFile:
    """One file of the index. The header is kept in memory; `write_header` writes it, once for every message."""

    def __init__(
        self, name: str, file: DiskFile, slots: int, entries: int, piece_bytes: int = PIECE_BYTES_DEFAULT
    ) -> None:
        self.name = name
        self.file = file
        self.slots = slots
        self.entries = entries
        self._entries_at_once = piece_bytes // ENTRY_BYTES
        self.is_dirty = False
        begin_ms, end_ms, begin, end, used, following = _HEADER.unpack(file.read(0, HEADER_BYTES))
        self.header = IndexHeader(begin_ms, end_ms, begin, end, used, max(1, following))

    @property
    def count(self) -> int:
        return self.header.next_entry - 1

    @property
    def is_full(self) -> bool:
        return self.header.next_entry >= self.entries

    def _entry_at(self, number: int) -> int:
        return HEADER_BYTES + SLOT_BYTES * self.slots + ENTRY_BYTES * number

    def entry(self, number: int) -> IndexEntry:
        assert 0 <= number < self.entries
        return IndexEntry(*_ENTRY.unpack(self.file.read(self._entry_at(number), ENTRY_BYTES)))

    def slot(self, number: int) -> int:
        assert 0 <= number < self.slots
        return int(_SLOT.unpack(self.file.read(HEADER_BYTES + SLOT_BYTES * number, SLOT_BYTES))[0])

    def put_key(self, hashed: int, physical_offset: int, store_ms: int) -> None:
        """Adds one entry: first the entry, then the slot that leads to it. The header that counts it comes last."""
        assert not self.is_full
        assert 0 <= hashed <= INT32_MAX
        assert physical_offset >= self.header.end_physical or not self.count, "entries are in the order of the log"
        header = self.header
        number = header.next_entry
        slot_number = hashed % self.slots
        previous = self.slot(slot_number)
        if not 0 < previous < number:
            previous = 0
        begin_ms = store_ms if number == 1 else header.begin_ms
        seconds = min(max(0, (store_ms - begin_ms) // 1000), INT32_MAX)
        self.is_dirty = True
        self.file.write(self._entry_at(number), _ENTRY.pack(hashed, physical_offset, seconds, previous))
        self.file.write(HEADER_BYTES + SLOT_BYTES * slot_number, _SLOT.pack(number))
        self.header = IndexHeader(
            begin_ms,
            store_ms,
            physical_offset if number == 1 else header.begin_physical,
            physical_offset,
            header.used_slots + (previous == 0),
            number + 1,
        )

    def write_header(self) -> None:
        self.is_dirty = True
        self.file.write(0, self.header.encode())

    def find(self, hashed: int, begin_ms: int, end_ms: int) -> Iterator[int]:
        """Physical offsets of the entries with this hash and time, newest first."""
        assert 0 <= hashed <= INT32_MAX
        header, read = self.header, self.file.read
        number = self.slot(hashed % self.slots)
        while 0 < number < header.next_entry:
            key_hash, physical_offset, seconds, previous = _ENTRY.unpack(read(self._entry_at(number), ENTRY_BYTES))
            if seconds < 0:
                break
            # The seconds are rounded down, so a message may be up to 999 ms newer than they say.
            stored_ms = header.begin_ms + 1000 * seconds
            if key_hash == hashed and begin_ms - 999 <= stored_ms <= end_ms:
                yield physical_offset
            if previous >= number or stored_ms < begin_ms - 999:
                break
            number = previous

    def covers(self, begin_ms: int, end_ms: int) -> bool:
        """Whether any entry may lie in the time span."""
        return self.count > 0 and begin_ms <= self.header.end_ms and self.header.begin_ms <= end_ms

    # --- recovery --------------------------------------------------------------------------------------------------

    def walk(self) -> Iterator[tuple[int, int, int, int]]:
        """Hash, physical offset, seconds and previous entry of every place from number 1 on, whatever is there.

        Plain tuples, because a file has up to twenty million entries.
        """
        number = 1
        while number < self.entries:
            count = min(self._entries_at_once, self.entries - number)
            yield from _ENTRY.iter_unpack(self.file.read(self._entry_at(number), count * ENTRY_BYTES))
            number += count

    def keep(self, count: int, end_ms: int) -> None:
        """Cuts the file after `count` entries: slots and header are rebuilt from the entries that stay."""
        assert 0 <= count < self.entries
        slots = array("i", bytes(SLOT_BYTES * self.slots))
        assert slots.itemsize == SLOT_BYTES
        used, last, begin = 0, 0, 0
        for number, (hashed, physical_offset, _, _) in enumerate(self.walk(), 1):
            if number > count:
                break
            place = hashed % self.slots
            used += slots[place] == 0
            slots[place] = number
            last = physical_offset
            if number == 1:
                begin = physical_offset
        if int.from_bytes(array("i", [1]).tobytes(), "little") == 1:
            slots.byteswap()
        self.is_dirty = True
        self._write_slots(slots.tobytes())
        self.header = replace(
            self.header,
            end_ms=end_ms,
            begin_physical=begin,
            end_physical=last,
            used_slots=used,
            next_entry=count + 1,
        )
        self.write_header()

    def _write_slots(self, slots: bytes) -> None:
        """Writes the pages that differ. Most of the table is a hole of 20 MB, and a start must not need room for it."""
        assert len(slots) == SLOT_BYTES * self.slots
        table = range(HEADER_BYTES, HEADER_BYTES + len(slots))
        for page in range(0, table.stop, PAGE_BYTES):
            start, stop = max(page, table.start), min(page + PAGE_BYTES, table.stop)
            piece = slots[start - table.start : stop - table.start]
            if self.file.read(start, len(piece)) != piece:
                self.file.write(start, piece)
