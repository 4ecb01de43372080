from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from refmq.model.ids import PhysicalOffset
from refmq.sim.disk import SimulatedDisk
from refmq.store.consume_queue import BLANK_UNIT, UNIT, ConsumeQueue
from refmq.store.file_sequence import DirectoryNames
from tests.store.helpers import SMALL, new_disk, run

EVERYTHING = 2**62


def queue_on(disk: SimulatedDisk) -> ConsumeQueue:
    return ConsumeQueue(disk, DirectoryNames(disk), "TopicA", 0, SMALL)


def filled(disk: SimulatedDisk, count: int, *, first: int = 0) -> ConsumeQueue:
    queue = queue_on(disk)
    for number in range(first, first + count):
        assert queue.put_unit(number, number * 100, 100, number, 0, None)
    return queue


def reloaded(disk: SimulatedDisk, durable_to: int = EVERYTHING) -> ConsumeQueue:
    queue = queue_on(disk)
    queue.load()
    queue.end_at(queue.find_end(durable_to))
    return queue


def test_unit_q_stands_at_byte_20_q_over_all_files() -> None:
    disk = new_disk()
    queue = filled(disk, 25)  # 10 units in a file
    assert queue.end == 25
    data = b"".join(disk.contents()[name] for name in sorted(disk.contents()))
    assert data[: 25 * 20] == b"".join(UNIT.pack(number * 100, 100, number) for number in range(25))
    assert len(data) == 600
    assert queue.unit(24) == (2400, 100, 24)
    assert queue.unit(25) is None
    assert queue.read_units(8, 100) == UNIT.pack(800, 100, 8) + UNIT.pack(900, 100, 9)


def test_dispatching_a_record_twice_changes_nothing() -> None:
    disk = new_disk()
    queue = filled(disk, 25)
    before = disk.contents()
    for number in (24, 0, 13):
        assert not queue.put_unit(number, number * 100, 100, number, 0, None)
    assert disk.contents() == before


@pytest.mark.parametrize("unit", [(1250, 100, 12), (1200, 99, 12), (1200, 100, 13)])
def test_a_later_record_owns_its_offset_and_what_followed_goes(unit: tuple[int, int, int]) -> None:
    disk = new_disk()
    queue = filled(disk, 25)
    assert queue.put_unit(12, *unit, 0, None)
    assert queue.end == 13
    assert queue.unit(12) == unit
    data = b"".join(disk.contents()[name] for name in sorted(disk.contents()))
    assert not any(data[13 * 20 :])


def test_a_queue_that_begins_late_is_filled_with_blank_units() -> None:
    disk = new_disk()
    queue = filled(disk, 2, first=13)
    assert list(disk.contents()) == ["consumequeue/TopicA/0/00000000000000000200"]
    data = disk.contents()["consumequeue/TopicA/0/00000000000000000200"]
    assert BLANK_UNIT.hex() == "00000000000000007fffffff0000000000000000"
    assert data[:60] == BLANK_UNIT * 3
    assert (queue.first, queue.min_offset, queue.end) == (10, 13, 15)
    again = reloaded(disk)
    again.correct_min_offset(PhysicalOffset(0))
    assert (again.first, again.min_offset, again.end) == (10, 13, 15)


def test_a_gap_keeps_the_later_units_in_their_places() -> None:
    disk = new_disk()
    queue = filled(disk, 3)
    queue.put_unit(25, 9000, 50, 1, 0, None)
    assert queue.unit(25) == (9000, 50, 1)
    assert queue.unit(10) == (0, 0x7FFFFFFF, 0)
    assert reloaded(disk).end == 26


def test_the_end_is_found_again() -> None:
    for count in (1, 9, 10, 11, 20, 25):
        disk = new_disk()
        filled(disk, count)
        queue = reloaded(disk)
        assert (queue.end, queue.last_physical_end) == (count, count * 100)


def test_only_units_of_records_that_are_durable_stay() -> None:
    disk = new_disk()
    filled(disk, 25)
    queue = reloaded(disk, 1250)
    assert queue.end == 13
    assert queue.last_physical_end == 1300
    data = b"".join(disk.contents()[name] for name in sorted(disk.contents()))
    assert not any(data[13 * 20 :])
    assert reloaded(disk, 0).files.bases == []


@given(st.integers(20, 24), st.binary(min_size=1, max_size=40))
def test_the_last_file_is_sound_up_to_the_first_damage(place: int, garbage: bytes) -> None:
    disk = new_disk()
    filled(disk, 25)
    base, at = divmod(place * 20, 200)
    disk.open(f"consumequeue/TopicA/0/{base * 200:020d}").write(at, garbage[: 200 - at])
    queue = queue_on(disk)
    queue.load()
    queue.end_at(queue.find_end(EVERYTHING))
    units = [queue.unit(number) for number in range(queue.first, queue.end)]
    offsets = [unit[0] for unit in units if unit is not None and unit[1] != 0x7FFFFFFF]
    assert offsets == sorted(set(offsets))
    assert queue.end >= 20
    if queue.files.room:
        assert queue.files.zero_from(queue.files.wrote) == 0


def test_a_file_of_zeros_after_a_full_one_has_no_unit() -> None:
    disk = new_disk()
    filled(disk, 10)
    disk.put_contents({"consumequeue/TopicA/0/00000000000000000200": bytes(200)})
    queue = reloaded(disk)
    assert queue.end == 10
    queue.put_unit(10, 1000, 100, 10, 0, None)
    assert queue.unit(10) == (1000, 100, 10)


def test_a_queue_of_blank_units_only_is_no_queue() -> None:
    disk = new_disk()
    disk.put_contents({"consumequeue/TopicA/0/00000000000000000200": BLANK_UNIT * 4 + bytes(120)})
    queue = reloaded(disk)
    assert (queue.end, queue.files.bases) == (0, [])


def test_stale_units_past_the_end_are_not_counted_again() -> None:
    disk = new_disk()
    filled(disk, 25)
    # Java cut the queue after 21 units without erasing the others, then wrote two new ones.
    file = disk.open("consumequeue/TopicA/0/00000000000000000400")
    file.write(20, UNIT.pack(5000, 100, 0) + UNIT.pack(5100, 100, 0))
    assert reloaded(disk).end == 23


def test_a_missing_or_empty_file_ends_the_queue() -> None:
    disk = new_disk()
    filled(disk, 35)
    disk.remove("consumequeue/TopicA/0/00000000000000000200")
    assert reloaded(disk).end == 10
    disk = new_disk()
    filled(disk, 10)
    disk.put_contents({"consumequeue/TopicA/0/00000000000000000200": b""})
    assert reloaded(disk).end == 10


@pytest.mark.parametrize(("log_min", "first"), [(0, 0), (1, 1), (1200, 12), (1250, 13), (9999, 25)])
def test_the_min_offset_follows_the_log(log_min: int, first: int) -> None:
    disk = new_disk()
    queue = filled(disk, 25)
    queue.correct_min_offset(PhysicalOffset(log_min))
    assert queue.min_offset == first
    again = reloaded(disk)
    again.correct_min_offset(PhysicalOffset(log_min))
    assert again.min_offset == first


def test_expired_files_go_from_the_oldest_on_and_never_the_last() -> None:
    disk = new_disk()
    queue = filled(disk, 25)
    all_of_it = PhysicalOffset(10_000)
    assert not queue.remove_expired_file(all_of_it, all_of_it), "the units behind it may not survive"
    queue.files.flushed = queue.files.wrote
    assert not queue.remove_expired_file(all_of_it, PhysicalOffset(1000)), "the records of the units behind it may not"
    assert not queue.remove_expired_file(PhysicalOffset(900), all_of_it)
    assert queue.remove_expired_file(PhysicalOffset(901), all_of_it)
    assert queue.remove_expired_file(all_of_it, all_of_it)
    assert not queue.remove_expired_file(all_of_it, all_of_it)
    assert (queue.first, queue.end) == (20, 25)


def test_a_flush_covers_what_was_there_when_it_began() -> None:
    disk = new_disk()
    queue = filled(disk, 25)
    assert run(queue.flush()) == 25
    assert queue.pages_to_flush(64) == 0
    queue.put_unit(25, 2500, 100, 0, 0, None)
    assert queue.files.flushed == 500


def test_a_flush_does_not_cover_what_is_cut_while_the_extension_is_flushed() -> None:
    disk = new_disk()
    queue = ConsumeQueue(disk, DirectoryNames(disk), "T", 0, replace(SMALL, ext_enabled=True))
    for number in range(3):
        queue.put_unit(number, 100 * number, 100, 7, 1, b"")

    async def cut() -> None:
        disk._on_flush = None
        queue.truncate(1)

    disk._on_flush = cut
    assert run(queue.flush()) == 1
    assert queue.files.flushed == queue.files.wrote
