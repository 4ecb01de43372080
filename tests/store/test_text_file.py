"""Files that are replaced as a whole: old or new after any crash, and the previous content beside it."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from refmq.errors import DiskFailed, DiskFull
from refmq.model.ids import TimestampMs
from refmq.sim.choice import Choose, harshest, scripted
from refmq.sim.disk import Fault, SimulatedCrash, SimulatedDisk
from refmq.store import text_file
from refmq.store.text_file import read_text_file, read_text_file_or_backup, replace_text_file

PATH = "config/kvConfig.json"
CONTENTS = (b"", b"first", b"second and longer", b"3")


def new_disk() -> SimulatedDisk:
    return SimulatedDisk(clock=lambda: TimestampMs(0))


def replace(disk: SimulatedDisk, content: bytes) -> None:
    asyncio.run(replace_text_file(disk, PATH, content))


def test_the_previous_content_is_kept_as_a_backup() -> None:
    disk = new_disk()
    assert read_text_file_or_backup(disk, PATH) is None
    for content in (b"one", b"two", b"two", b"three"):
        replace(disk, content)
        assert read_text_file(disk, PATH) == content
    assert disk.contents() == {PATH: b"three", f"{PATH}.bak": b"two"}
    disk.remove(PATH)
    assert read_text_file_or_backup(disk, PATH) == b"two"


def crash_and_check(power: bool, operation: int, choices: Choose) -> bool:
    """Replace three contents and die at an operation; says whether it died. The content must be the last that was
    acknowledged or the one under way."""
    disk = new_disk()
    disk.crash_at(operation, choices)
    acknowledged: bytes | None = None
    under_way: bytes | None = None
    try:
        for content in CONTENTS[1:]:
            under_way = content
            replace(disk, content)
            acknowledged = content
    except SimulatedCrash:
        disk = disk.after_power_loss(choices) if power else disk.after_process_crash()
        assert read_text_file(disk, PATH) in (acknowledged, under_way)
        asyncio.run(replace_text_file(disk, PATH, b"after"))  # what was left behind does not disturb
        assert read_text_file(disk, PATH) == b"after"
        return True
    return False


@given(power=st.booleans(), operation=st.integers(0, 40), choices=st.lists(st.integers(0, 3), max_size=30))
def test_a_crash_at_any_moment_leaves_the_old_or_the_new_content(
    power: bool, operation: int, choices: list[int]
) -> None:
    crash_and_check(power, operation, scripted(choices, then=harshest))


def mutant_without_flush(monkeypatch: pytest.MonkeyPatch) -> None:
    async def hasty(disk: SimulatedDisk, path: str, content: bytes) -> None:
        file = disk.create(f"{path}.tmp", len(content))
        file.write(0, content)
        file.close()
        disk.rename(f"{path}.tmp", path)
        await disk.flush_directory(path.rpartition("/")[0])

    monkeypatch.setattr(text_file, "_write_under_name", hasty)


def mutant_in_place(monkeypatch: pytest.MonkeyPatch) -> None:
    async def direct(disk: SimulatedDisk, path: str, content: bytes) -> None:
        if disk.exists(path):
            disk.remove(path)
        file = disk.create(path, len(content))
        file.write(0, content)
        await file.flush()
        file.close()
        await disk.flush_directory(path.rpartition("/")[0])

    monkeypatch.setattr(text_file, "_write_under_name", direct)


@pytest.mark.parametrize("mutant", [mutant_without_flush, mutant_in_place])
def test_the_crashes_catch_a_writer_that_is_not_careful(
    mutant: Callable[[pytest.MonkeyPatch], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    mutant(monkeypatch)
    caught = False
    for operation in range(40):
        try:
            crash_and_check(power=True, operation=operation, choices=harshest)
        except AssertionError:
            caught = True
    assert caught


def test_every_operation_is_crashed_at() -> None:
    died = [crash_and_check(power=True, operation=operation, choices=harshest) for operation in range(60)]
    assert died.count(True) > 10
    assert died[-1] is False


def test_a_full_disk_changes_nothing() -> None:
    disk = new_disk()
    replace(disk, b"old")
    disk.inject(Fault.DISK_FULL)
    with pytest.raises(DiskFull):
        replace(disk, b"new")
    assert read_text_file(disk, PATH) == b"old"
    replace(disk, b"new")
    assert read_text_file(disk, PATH) == b"new"


@pytest.mark.parametrize("operation", range(8))
def test_a_save_that_succeeds_after_a_failed_flush_is_durable(operation: int) -> None:
    """Whichever flush of the first attempt fails, and whether or not its name was in place already."""
    disk = new_disk()
    disk.inject(Fault.FLUSH_FAILS, operation)
    with contextlib.suppress(DiskFailed):
        replace(disk, b"content")
    disk.cancel_faults()
    try:
        replace(disk, b"content")
    except DiskFailed:
        return  # a directory whose flush failed fails for ever: nothing was promised
    assert read_text_file(disk.after_power_loss(harshest), PATH) == b"content"


@pytest.mark.parametrize("operation", range(8))
def test_a_save_of_what_an_earlier_life_left_is_durable(operation: int) -> None:
    disk = new_disk()
    disk.crash_at(operation)
    with contextlib.suppress(SimulatedCrash):
        replace(disk, b"content")
    disk = disk.after_process_crash()
    replace(disk, b"content")
    assert read_text_file(disk.after_power_loss(harshest), PATH) == b"content"
