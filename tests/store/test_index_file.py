"""One index file: its hashes, slots and entries, and what is left of it after a cut."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from refmq.store.index_file import HEADER_BYTES, IndexFile, key_hash
from tests.store.helpers import NOW, new_disk
from tests.store.test_index import found, index_on


def test_golden_hashes_of_keys() -> None:
    assert key_hash("TopicA", "U0") == 1903241332
    assert key_hash("TopicA", "k0") == 1903240650
    assert key_hash("TopicA", "kk") == 1903240591
    assert key_hash("TopicI", "U0") == 1903003004


def test_the_hash_that_has_no_positive_twin_is_zero(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("refmq.store.index_file.string_hash", lambda text: -(2**31))
    assert key_hash("T", "k") == 0


def test_the_golden_file_of_ten_slots_and_eight_entries() -> None:
    disk = new_disk()
    index = index_on(disk)
    for number in range(3):
        keys = (f"U{number}", f"k{number}", "kk") if number < 2 else ("U2",)
        index.put_keys("TopicI" if number > 5 else "TopicA", keys, 135 * number, NOW)
    (file,) = index.files
    assert (file.header.next_entry, file.header.used_slots) == (8, 4)
    assert {slot: file.slot(slot) for slot in range(10) if file.slot(slot)} == {0: 7, 1: 6, 2: 1, 9: 5}
    entries = [file.entry(number) for number in range(1, 8)]
    assert [(entry.physical_offset, entry.previous) for entry in entries] == [
        (0, 0),
        (0, 0),
        (0, 0),
        (135, 3),
        (135, 0),
        (135, 4),
        (270, 2),
    ]
    assert file.is_full
    again = IndexFile(file.name, disk.open(f"index/{file.name}"), 10, 8)
    assert again.header == file.header


@given(st.integers(1, 7), st.data())
def test_a_file_is_cut_and_finds_the_entries_that_stay(kept: int, data: st.DataObject) -> None:
    disk = new_disk()
    index = index_on(disk)
    for number in range(7):
        index.put_keys("T", (f"k{number % 3}",), number * 100, NOW + number * 1000)
    (file,) = index.files
    # Slots of any age, entries after the kept ones in any state.
    for slot in range(10):
        file.file.write(HEADER_BYTES + 4 * slot, data.draw(st.integers(0, 7)).to_bytes(4, "big"))
    for number in range(kept + 1, 8):
        if data.draw(st.booleans()):
            file.file.write(HEADER_BYTES + 40 + 20 * number, data.draw(st.binary(min_size=20, max_size=20)))
    file.keep(kept, NOW + (kept - 1) * 1000)
    for reader in (index, index_on(disk)):
        for key in range(3):
            assert sorted(found(reader, "T", f"k{key}")) == [n * 100 for n in range(kept) if n % 3 == key]
    assert file.header == replace(file.header, next_entry=kept + 1, end_physical=(kept - 1) * 100)


def test_cutting_a_sparse_file_takes_no_room() -> None:
    disk = new_disk(page_bytes=4096)
    slots, entries = 5_000_000, 1000
    size = HEADER_BYTES + 4 * slots + 20 * entries
    file = IndexFile("i", disk.create("i", size, reserve=False), slots, entries)
    for number in range(100):
        file.put_key(number * 40_000, number, NOW)
    file.write_header()
    disk.capacity_bytes -= disk.usage("").free_bytes
    file.keep(50, NOW)
    assert file.count == 50
    assert list(file.find(49 * 40_000, 0, NOW)) == [49]
    assert list(file.find(50 * 40_000, 0, NOW)) == []
