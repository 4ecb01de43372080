from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from refmq.errors import DiskFull, StrayFile
from refmq.model.ids import PhysicalOffset
from refmq.sim.disk import Fault, SimulatedDisk
from refmq.store.file_sequence import DirectoryNames
from refmq.store.index import Index, index_file_name
from tests.store.helpers import NOW, SMALL, new_disk, run

FOREVER = 2**62


def index_on(disk: SimulatedDisk) -> Index:
    index = Index(disk, DirectoryNames(disk), SMALL)
    index.load()
    return index


def found(index: Index, topic: str, key: str, begin_ms: int = 0, end_ms: int = FOREVER) -> list[int]:
    return list(index.find(topic, key, begin_ms, end_ms))


@given(st.lists(st.lists(st.sampled_from(["a", "b", "c", "dd", "Aa", "BB"]), max_size=4, unique=True), max_size=20))
def test_every_key_is_found_with_every_message_that_has_it(messages: list[list[str]]) -> None:
    disk = new_disk()
    index = index_on(disk)
    for number, keys in enumerate(messages):
        index.put_keys("T", tuple(keys), number * 100, NOW + number)
    for reader in (index, index_on(disk)):
        for key in ("a", "b", "c", "dd"):
            wanted = [number * 100 for number, keys in enumerate(messages) if key in keys]
            assert sorted(found(reader, "T", key)) == wanted
        # Two keys with one hash are not told apart here; the store looks at the records.
        both = [number * 100 for number, keys in enumerate(messages) for key in keys if key in ("Aa", "BB")]
        assert sorted(found(reader, "T", "Aa")) == both


def test_indexing_a_message_twice_adds_nothing() -> None:
    index = index_on(new_disk())
    for physical_offset in (0, 100, 100, 0):
        index.put_keys("T", ("a", "b"), physical_offset, NOW)
    assert found(index, "T", "a") == [100, 0]


def test_the_first_entry_of_every_file_is_zero_seconds_after_its_start() -> None:
    index = index_on(new_disk())
    for number in range(20):
        index.put_keys("T", ("k",), number * 100, NOW + 3000 * number)
    assert len(index.files) == 3
    assert [file.entry(1).seconds for file in index.files] == [0, 0, 0]
    assert index.files[1].entry(3).seconds == 6


def test_a_time_span_is_exact_to_a_second() -> None:
    index = index_on(new_disk())
    for number in range(20):
        index.put_keys("T", ("k",), number * 100, NOW + 3000 * number)
    assert found(index, "T", "k", NOW + 6000, NOW + 9000) == [300, 200]
    assert found(index, "T", "k", NOW + 3000 * 19 + 1000) == []
    assert found(index, "T", "k", 0, NOW - 1) == []
    assert found(index, "T", "k", NOW + 3000 * 6, NOW + 3000 * 8) == [800, 700, 600]


def test_names_follow_each_other_whatever_the_clock_does() -> None:
    assert index_file_name(1_700_000_000_123) == "20231114221320123"
    index = index_on(new_disk())
    for number in range(30):
        index.put_keys("T", ("k",), number * 100, NOW - number)
    names = [file.name for file in index.files]
    assert names == sorted(set(names))


def test_foreign_names_are_left_alone_and_a_wrong_size_is_refused() -> None:
    disk = new_disk()
    disk.put_contents({"index/notes.txt": b"x"})
    assert index_on(disk).files == []
    disk.put_contents({"index/20231114221320123": b"x" * 17})
    with pytest.raises(StrayFile, match="17 bytes"):
        index_on(disk)


def test_a_full_disk_in_the_middle_of_a_message_loses_no_key() -> None:
    for step in range(12):
        disk = new_disk()
        index = index_on(disk)
        index.put_keys("T", ("a", "b", "c", "d", "e"), 0, NOW)
        disk.inject(Fault.DISK_FULL, disk.operations + step)
        try:
            index.put_keys("T", ("a", "b", "c", "d", "e"), 100, NOW)
        except DiskFull:
            index.put_keys("T", ("a", "b", "c", "d", "e"), 100, NOW)
        for reader in (index, index_on(disk)):
            for key in "abcde":
                assert found(reader, "T", key) == [100, 0], step


def test_expired_files_go_but_never_the_last() -> None:
    disk = new_disk()
    index = index_on(disk)
    for number in range(20):
        index.put_keys("T", ("k",), number * 100, NOW)
    everything = PhysicalOffset(10**9)
    assert index.remove_expired_files(PhysicalOffset(600), everything) == 0
    assert index.remove_expired_files(PhysicalOffset(601), PhysicalOffset(700)) == 0, "no start goes on from the second"
    assert index.remove_expired_files(PhysicalOffset(601), PhysicalOffset(701)) == 1
    assert index.remove_expired_files(everything, everything) == 1
    assert len(disk.list("index")) == 1


def test_a_flush_that_fails_leaves_the_file_to_be_flushed() -> None:
    disk = new_disk()
    index = index_on(disk)
    index.put_keys("T", ("k",), 0, NOW)
    disk.inject(Fault.FLUSH_FAILS)
    with pytest.raises(Exception, match="flush"):
        run(index.flush())
    assert index.files[0].is_dirty


@pytest.mark.parametrize("created_ms", [-(2**63), -1, 0, 1_700_000_000_123, 253_402_300_800_000, 2**63 - 1])
def test_any_time_gives_a_name_of_17_digits(created_ms: int) -> None:
    name = index_file_name(created_ms)
    assert name.isdigit()
    assert len(name) == 17
