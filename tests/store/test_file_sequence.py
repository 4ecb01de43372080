from __future__ import annotations

import pytest

from refmq.errors import DiskFailed, DiskFull, StrayFile
from refmq.sim.choice import harshest, seeded
from refmq.sim.disk import Fault, SimulatedCrash, SimulatedDisk
from refmq.store.file_sequence import CREATING, DirectoryNames, FileSequence, file_name
from tests.store.helpers import new_disk, run


def sequence(disk: SimulatedDisk) -> FileSequence:
    return FileSequence(disk, DirectoryNames(disk), "a/b", 100, reserve=False)


def filled(disk: SimulatedDisk, length: int) -> FileSequence:
    files = sequence(disk)
    while length:
        if not files.room:
            files.add_file(files.limit)
        count = min(length, files.room)
        files.append(b"x" * count)
        length -= count
    return files


def test_names_are_offsets_of_twenty_digits() -> None:
    assert file_name(0) == "0" * 20
    assert file_name(1073741824) == "00000000001073741824"


def test_what_was_appended_is_read_back_across_files() -> None:
    disk = new_disk()
    files = filled(disk, 250)
    assert files.bases == [0, 100, 200]
    assert (files.begin, files.wrote, files.limit, files.room) == (0, 250, 300, 50)
    assert files.read(200, 60) == b"x" * 50 + bytes(10)
    again = sequence(disk)
    assert again.load() == ()
    assert again.bases == [0, 100, 200]


def test_a_file_never_appears_at_another_size_than_its_own() -> None:
    sizes: set[int] = set()
    for step in range(8):
        for seed in range(4):
            disk = new_disk()
            disk._choose = seeded(seed)
            disk.crash_at(step)
            try:
                filled(disk, 10)
            except SimulatedCrash:
                disk = disk.after_process_crash()
            sizes.update(disk.info(f"a/b/{name}").size_bytes for name in disk.list("a/b"))
    assert sizes == {100}


@pytest.mark.parametrize(
    ("path", "size"),
    [("a/b/00000000000000000007", 100), ("a/b/notes.txt", 100), ("a/b/0", 100), ("a/b/00000000000000000100", 99)],
)
def test_a_stray_file_is_refused_by_name_and_nothing_is_changed(path: str, size: int) -> None:
    disk = new_disk()
    filled(disk, 10)
    disk.put_contents({path: bytes(size)})
    before = disk.contents()
    with pytest.raises(StrayFile) as caught:
        sequence(disk).load()
    assert caught.value.path == path
    assert disk.contents() == before


def test_a_directory_among_the_files_is_refused() -> None:
    disk = new_disk()
    disk.put_contents({"a/b/sub/x": b""})
    with pytest.raises(StrayFile, match="directory"):
        sequence(disk).load()


def test_empty_files_are_found_and_go_with_the_truncation() -> None:
    disk = new_disk()
    filled(disk, 150)
    disk.put_contents({"a/b/00000000000000000200": b""})
    files = sequence(disk)
    assert files.load() == (200,)
    files.truncate(200)
    assert disk.list("a/b") == ("00000000000000000000", "00000000000000000100")


def test_a_first_file_without_its_size_gets_it_and_its_name_is_never_missing() -> None:
    disk = new_disk()
    disk.put_contents({"a/b/00000000000000000200": b""})
    for effect in range(10):
        crashing = disk.copy()
        crashing.crash_at(effect)
        files = sequence(crashing)
        files.load()
        try:
            files.truncate(200)
        except SimulatedCrash:
            assert crashing.after_process_crash().list("a/b") == ("00000000000000000200",)
        else:
            break
    assert effect > 1
    assert (files.bases, files.wrote, files.room) == ([200], 200, 100)
    crashing.cancel_faults()
    files.append(b"x")
    assert crashing.info("a/b/00000000000000000200").size_bytes == 100


def test_a_last_file_that_was_never_written_can_go() -> None:
    disk = new_disk()
    files = filled(disk, 100)
    files.add_file(100)
    assert files.remove_unused_last()
    assert not files.remove_unused_last()
    assert (files.bases, files.wrote, files.room) == ([0], 100, 0)


@pytest.mark.parametrize("position", [0, 1, 99, 100, 101, 250, 300])
def test_truncation_zeroes_what_follows_and_removes_later_files(position: int) -> None:
    disk = new_disk()
    files = filled(disk, 300)
    files.truncate(position)
    assert files.wrote == position
    data = b"".join(disk.contents().values())
    assert data == (b"x" * position).ljust(len(data), b"\0")
    assert len(files.bases) == min(3, position // 100 + 1)


def test_zeroing_touches_only_what_is_not_zero() -> None:
    disk = new_disk()
    files = filled(disk, 50)
    before = disk.operations
    assert files.zero_from(50) == 0
    assert disk.operations == before
    assert files.zero_from(40) == 10


def test_a_flush_makes_bytes_and_names_durable() -> None:
    disk = new_disk()
    files = filled(disk, 250)
    run(files.flush())
    assert files.flushed == 250
    files.append(b"y")
    after = disk.after_power_loss(harshest)
    assert b"".join(after.contents().values()) == (b"x" * 250).ljust(300, b"\0")


def test_a_flush_that_fails_does_not_move_the_position() -> None:
    disk = new_disk()
    files = filled(disk, 250)
    disk.inject(Fault.FLUSH_FAILS, disk.operations + 3)  # not the first file, the second
    with pytest.raises(DiskFailed):
        run(files.flush())
    assert files.flushed < 250


def test_bytes_written_while_a_flush_waits_are_not_counted_as_durable() -> None:
    disk = new_disk()
    files = filled(disk, 50)

    async def append_meanwhile() -> None:
        if files.wrote == 50:
            files.append(b"late")

    disk._on_flush = append_meanwhile
    run(files.flush())
    assert (files.flushed, files.wrote) == (50, 54)


def test_a_cut_while_a_flush_waits_keeps_the_position_back() -> None:
    disk = new_disk()
    files = filled(disk, 90)

    async def cut() -> None:
        if files.wrote == 90:
            files.truncate(20)
            files.append(b"other")

    disk._on_flush = cut
    run(files.flush())
    assert files.flushed <= 20


def test_a_name_that_appears_while_its_directory_is_flushed_is_flushed_again() -> None:
    disk = new_disk()
    files = filled(disk, 100)
    names = files._names
    flushed: list[int] = []

    async def add_meanwhile() -> None:
        flushed.append(1)
        if len(flushed) == 3:  # root, a, and now a/b
            files.add_file(100)

    disk._on_flush = add_meanwhile
    run(names.flush("a/b"))
    assert len(flushed) == 3
    run(names.flush("a/b"))
    assert len(flushed) == 4  # only a/b has changed since
    run(names.flush("a/b"))
    assert len(flushed) == 4


def test_without_room_no_file_is_made_and_nothing_is_left_behind() -> None:
    disk = new_disk()
    files = filled(disk, 100)
    disk.inject(Fault.DISK_FULL)
    with pytest.raises(DiskFull):
        files.add_file(100)
    assert files.bases == [0]
    assert not disk.exists(CREATING)
    files.add_file(100)
    assert files.room == 100
