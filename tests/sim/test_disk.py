"""The simulated disk by itself: what a crash, a power loss and an injected fault may leave behind."""

from __future__ import annotations

import asyncio
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from refmq.errors import DiskFailed, DiskFull, StoreInUse
from refmq.model.ids import TimestampMs
from refmq.sim.choice import harshest, mildest, scripted, seeded
from refmq.sim.disk import EFFECTS, Fault, SimulatedCrash, SimulatedDisk

PAGE = 16


def small_disk(choices: list[int] | None = None, capacity_bytes: int = 1 << 20) -> SimulatedDisk:
    return SimulatedDisk(
        clock=lambda: TimestampMs(7),
        choose=scripted(choices or []),
        page_bytes=PAGE,
        capacity_bytes=capacity_bytes,
    )


def durable_file(disk: SimulatedDisk, path: str, size_bytes: int) -> None:
    async def make() -> None:
        await disk.create(path, size_bytes).flush()
        await disk.flush_directory(path.rpartition("/")[0])
        await disk.flush_directory("")

    asyncio.run(make())


def test_a_process_crash_keeps_every_written_byte() -> None:
    disk = small_disk()
    disk.create("a", 40).write(10, b"x" * 20)
    after = disk.after_process_crash()
    assert after.contents() == {"a": bytes(10) + b"x" * 20 + bytes(10)}


def test_a_power_loss_can_keep_any_subset_of_the_unflushed_pages() -> None:
    seen = set()
    for choices in product((0, 1), repeat=3):
        disk = small_disk()
        durable_file(disk, "a", 3 * PAGE)
        disk.open("a").write(0, b"x" * 3 * PAGE)
        content = disk.after_power_loss(scripted(choices)).contents()["a"]
        seen.add(tuple(content[number * PAGE : (number + 1) * PAGE] for number in range(3)))
    assert seen == set(product((b"x" * PAGE, bytes(PAGE)), repeat=3))


def test_a_page_can_survive_as_it_was_at_an_earlier_time() -> None:
    seen = set()
    for choice in range(3):
        disk = small_disk()
        durable_file(disk, "a", PAGE)
        file = disk.open("a")
        file.write(0, b"1" * PAGE)
        file.write(0, b"2" * PAGE)
        seen.add(disk.after_power_loss(scripted([choice])).contents()["a"][:1])
    assert seen == {b"2", b"1", b"\0"}


def test_what_was_flushed_survives_and_what_was_written_later_may_not() -> None:
    disk = small_disk()
    durable_file(disk, "a", 2 * PAGE)
    file = disk.open("a")
    file.write(0, b"f" * 2 * PAGE)
    asyncio.run(file.flush(0, PAGE))
    file.write(0, b"late")
    assert disk.after_power_loss(harshest).contents()["a"] == b"f" * PAGE + bytes(PAGE)


def test_what_is_written_while_a_flush_is_under_way_is_not_covered_by_it() -> None:
    async def run() -> bytes:
        async def write_meanwhile() -> None:
            if file is not None:
                file.write(0, b"late")

        disk = SimulatedDisk(clock=lambda: TimestampMs(0), page_bytes=PAGE, on_flush=write_meanwhile)
        file = None
        durable = disk.create("a", PAGE)
        await durable.flush()
        await disk.flush_directory("")
        durable.write(0, b"soon")
        file = durable
        await durable.flush()
        return disk.after_power_loss(harshest).contents()["a"][:4]

    assert asyncio.run(run()) == b"soon"


def test_a_flush_that_ends_late_takes_nothing_durable_back() -> None:
    """Two flushes of one page overlap; the one that began first, with less in the page, ends last."""
    gates = [asyncio.Event(), asyncio.Event()]
    waiting = iter(gates)

    async def takes_time() -> None:
        await next(waiting).wait()

    disk = small_disk()
    durable_file(disk, "a", PAGE)
    disk._on_flush = takes_time

    async def overlap() -> None:
        file = disk.open("a")
        file.write(0, b"x" * 4)
        first = asyncio.create_task(file.flush())
        await asyncio.sleep(0)
        file.write(4, b"y" * 4)
        second = asyncio.create_task(file.flush())
        await asyncio.sleep(0)
        for gate, flush in ((gates[1], second), (gates[0], first)):
            gate.set()
            await flush

    asyncio.run(overlap())
    assert disk.after_power_loss(harshest).contents()["a"] == b"xxxxyyyy".ljust(PAGE, b"\0")


def test_a_new_name_is_lost_until_its_directory_is_flushed() -> None:
    disk = small_disk()
    disk.make_directory("d")
    asyncio.run(disk.flush_directory(""))
    asyncio.run(disk.create("d/a", PAGE).flush())
    assert disk.copy().after_power_loss(harshest).list("d") == ()
    assert disk.copy().after_power_loss(mildest).list("d") == ("a",)
    asyncio.run(disk.flush_directory("d"))
    assert disk.after_power_loss(harshest).list("d") == ("a",)


def test_a_name_in_a_directory_that_was_lost_is_lost() -> None:
    disk = small_disk()
    asyncio.run(disk.create("d/e/a", PAGE).flush())
    for directory in ("d/e", "d"):
        asyncio.run(disk.flush_directory(directory))
    assert disk.copy().after_power_loss(harshest).list("") == ()
    asyncio.run(disk.flush_directory(""))
    assert disk.after_power_loss(harshest).exists("d/e/a")


def test_a_directory_that_is_made_anew_has_nothing_of_the_one_before() -> None:
    disk = small_disk()
    asyncio.run(disk.create("d/old", PAGE).flush())
    for directory in ("d", ""):
        asyncio.run(disk.flush_directory(directory))
    disk.remove("d/old")
    disk.remove("d")
    asyncio.run(disk.flush_directory(""))  # nobody can flush the removal of d/old any more
    disk.make_directory("d")
    disk.create("d/new", PAGE).close()
    for choices in product((0, 1), repeat=3):  # which of the changes that are not durable yet survive
        after = disk.copy().after_power_loss(scripted(list(choices)))
        assert after.list("") == () or set(after.list("d")) <= {"new"}
    asyncio.run(disk.flush_directory(""))
    assert disk.after_power_loss(harshest).list("d") == ()


def test_a_name_that_is_made_while_a_flush_of_its_directory_is_under_way_is_not_covered_by_it() -> None:
    async def create_meanwhile() -> None:
        disk.create("late", PAGE).close()

    disk = SimulatedDisk(clock=lambda: TimestampMs(0), page_bytes=PAGE, on_flush=create_meanwhile)
    disk.create("early", PAGE).close()
    asyncio.run(disk.flush_directory(""))
    assert disk.list("") == ("early", "late")
    assert disk.after_power_loss(harshest).list("") == ("early",)


def test_a_rename_is_undone_or_done_but_never_half_done() -> None:
    for choice, expected in ((0, {"b": b"new!"}), (1, {"a": b"new!", "b": b"old!"})):
        disk = small_disk()
        for name, text in (("a", b"new!"), ("b", b"old!")):
            durable_file(disk, name, 4)
            file = disk.open(name)
            file.write(0, text)
            asyncio.run(file.flush())
        disk.rename("a", "b")
        assert disk.after_power_loss(scripted([choice])).contents() == expected


def test_a_removed_file_may_come_back() -> None:
    disk = small_disk()
    durable_file(disk, "a", 4)
    disk.remove("a")
    assert disk.copy().after_power_loss(harshest).exists("a")
    asyncio.run(disk.flush_directory(""))
    assert not disk.after_power_loss(harshest).exists("a")


def test_a_size_can_be_ahead_of_the_content_and_a_name_ahead_of_the_size() -> None:
    disk = small_disk()
    disk.create("a", PAGE).write(0, b"x")
    asyncio.run(disk.flush_directory(""))
    assert disk.copy().after_power_loss(harshest).contents() == {"a": b""}
    assert disk.after_power_loss(scripted([1, 0])).contents() == {"a": bytes(PAGE)}


@pytest.mark.parametrize("fault", [Fault.DISK_FULL, Fault.FLUSH_FAILS])
def test_an_injected_fault_happens_once_at_the_first_operation_it_applies_to(fault: Fault) -> None:
    disk = small_disk()
    file = disk.create("a", 4)
    disk.inject(fault)
    if fault is Fault.DISK_FULL:
        asyncio.run(file.flush())
        with pytest.raises(DiskFull):
            file.write(0, b"x")
        assert file.read(0, 1) == b"\0"
        file.write(0, b"x")
    else:
        file.write(0, b"x")
        for _ in range(3):  # it stays failed
            with pytest.raises(DiskFailed):
                asyncio.run(file.flush())
        with pytest.raises(DiskFailed):
            asyncio.run(disk.open("a").flush())
        assert disk.copy().after_power_loss(scripted([1])).contents() == {}
        asyncio.run(disk.after_process_crash().open("a").flush())


def test_a_full_disk_refuses_a_new_file_and_leaves_no_name() -> None:
    disk = small_disk(capacity_bytes=100)
    disk.create("a", 60)
    with pytest.raises(DiskFull):
        disk.create("b", 41)
    assert disk.list("") == ("a",)
    assert disk.usage("").free_bytes == 40


def test_a_sparse_file_takes_what_is_written_to_it() -> None:
    disk = small_disk(capacity_bytes=3 * PAGE)
    file = disk.create("a", 1000, reserve=False)
    file.write(PAGE - 1, b"xy")
    assert disk.usage("").free_bytes == PAGE
    file.write(0, b"z" * PAGE)
    with pytest.raises(DiskFull):
        file.write(2 * PAGE, b"x" * (PAGE + 1))
    assert file.read(2 * PAGE, 1) == b"\0"


def work(disk: SimulatedDisk) -> None:
    """One operation of every kind."""

    async def run() -> None:
        disk.make_directory("d")
        file = disk.create("d/a", 8)
        file.write(0, b"abcdefgh")
        await file.flush()
        await disk.flush_directory("d")
        disk.rename("d/a", "d/b")
        disk.remove("d/b")

    asyncio.run(run())


def test_a_crash_falls_before_every_operation_and_leaves_what_was_done_before() -> None:
    undisturbed = small_disk()
    work(undisturbed)
    assert {line.split(" ", 1)[1].startswith(kind) for line in undisturbed.recent for kind in EFFECTS} == {True, False}
    states = []
    for operation in range(undisturbed.operations):
        disk = small_disk()
        disk.crash_at(operation)
        with pytest.raises(SimulatedCrash) as crash:
            work(disk)
        assert crash.value.operation == operation
        with pytest.raises(SimulatedCrash):
            disk.list("")
        states.append(disk.after_process_crash().contents())
    assert states == [{}, {}, *[{"d/a": bytes(8)}], *[{"d/a": b"abcdefgh"}] * 3, {"d/b": b"abcdefgh"}]


@pytest.mark.parametrize(("choice", "expected"), [(0, b""), (3, b"abc"), (8, b"abcdefgh")])
def test_a_write_that_a_crash_interrupts_leaves_a_prefix(choice: int, expected: bytes) -> None:
    disk = small_disk([choice])
    disk.crash_at(2)
    with pytest.raises(SimulatedCrash):
        work(disk)
    assert disk.after_process_crash().contents()["d/a"] == expected.ljust(8, b"\0")


@pytest.mark.parametrize(("choice", "expected"), [(0, {}), (1, {"d/a": bytes(8)}), (2, {"d/a": b""})])
def test_a_create_that_a_crash_interrupts_leaves_nothing_all_or_an_empty_file(
    choice: int, expected: dict[str, bytes]
) -> None:
    disk = small_disk([choice])
    disk.crash_at(1)
    with pytest.raises(SimulatedCrash):
        work(disk)
    assert disk.after_process_crash().contents() == expected


def test_a_lock_goes_with_its_process() -> None:
    disk = small_disk()
    disk.lock("lock")
    with pytest.raises(StoreInUse):
        disk.another_process().lock("lock")
    disk.after_process_crash().lock("lock")


@given(st.integers(0, 1 << 32), st.lists(st.tuples(st.integers(0, 90), st.binary(max_size=40)), max_size=12))
def test_the_same_seed_gives_the_same_disk(seed: int, writes: list[tuple[int, bytes]]) -> None:
    def run() -> dict[str, bytes]:
        disk = small_disk()
        file = disk.create("a", 130)
        for position, data in writes:
            file.write(position, data)
        return disk.after_power_loss(seeded(seed)).contents()

    assert run() == run()


@given(
    st.lists(st.tuples(st.integers(0, 90), st.binary(max_size=40), st.booleans()), max_size=12),
    st.lists(st.integers(0, 5), max_size=30),
)
def test_no_power_loss_takes_flushed_bytes_or_invents_others(
    writes: list[tuple[int, bytes, bool]], choices: list[int]
) -> None:
    disk = small_disk()
    durable_file(disk, "a", 130)
    file = disk.open("a")
    versions = [bytes(130)]
    for position, data, flush in writes:
        file.write(position, data)
        versions.append(file.read(0, 130))
        if flush:
            asyncio.run(file.flush())
            del versions[:-1]
    content = disk.after_power_loss(scripted(choices)).contents()["a"]
    for start in range(0, 130, PAGE):
        assert content[start : start + PAGE] in {version[start : start + PAGE] for version in versions}


@given(
    st.lists(st.tuples(st.sampled_from(["a", "d/b"]), st.integers(0, 90), st.binary(max_size=40)), max_size=12),
    st.sets(st.sampled_from(["a", "d/b", "", "d"])),
    st.booleans(),
)
def test_the_worst_that_a_power_loss_leaves_is_known_before(
    writes: list[tuple[str, int, bytes]], flushed: set[str], is_removed: bool
) -> None:
    disk = small_disk()
    files = {path: disk.create(path, 130) for path in ("a", "d/b")}
    for number, (path, position, data) in enumerate(writes):
        files[path].write(position, data)
        if number == len(writes) // 2:
            for each in sorted(flushed):
                asyncio.run(files[each].flush() if each in files else disk.flush_directory(each))
    if is_removed:
        disk.remove("a")
    known = disk.worst_contents()
    assert known == disk.copy().after_power_loss(harshest).contents()


def test_a_file_that_is_used_after_it_was_closed_is_noticed() -> None:
    disk = small_disk()
    file = disk.create("a", PAGE)
    other = disk.open("a")
    opened = [disk.open_paths]
    file.close()
    opened.append(disk.open_paths)
    for use in (lambda: file.read(0, 1), lambda: file.write(0, b"x"), file.data_end):
        with pytest.raises(AssertionError, match="after it was closed"):
            use()
    with pytest.raises(AssertionError, match="after it was closed"):
        asyncio.run(file.flush())
    other.write(0, b"x")
    other.close()
    assert [*opened, disk.open_paths] == [("a", "a"), ("a",), ()]


def test_a_disk_knows_which_locks_its_process_holds() -> None:
    disk = small_disk()
    lock = disk.lock("lock")
    held = [disk.held_locks]
    lock.release()
    assert [*held, disk.held_locks, disk.open_paths] == [("lock",), (), ()]
    disk.kill()
    assert not disk.is_alive


@pytest.mark.parametrize("flushed", [False, True])
def test_a_bit_that_flips_is_damaged_for_every_reader_and_after_every_loss(flushed: bool) -> None:
    disk = small_disk()
    durable_file(disk, "a", 40)
    file = disk.open("a")
    file.write(20, b"x")
    if flushed:
        asyncio.run(file.flush())
    before = disk.operations
    disk.flip_bit("a", 20, 1)
    assert file.read(19, 3) == b"\0z\0"
    assert disk.operations == before, "nobody wrote"
    kept = disk.copy().after_power_loss(mildest).contents()["a"][20:21]
    lost = disk.copy().after_power_loss(harshest).contents()["a"][20:21]
    assert (kept, lost) == (b"z", b"z" if flushed else b"\x02")


def test_what_is_laid_down_is_not_what_a_crash_left_unfinished_before() -> None:
    disk = small_disk()
    disk.create("a", 0)  # the name is not durable
    disk = disk.after_process_crash()
    disk.put_contents({"a": b""})
    disk.remove("a")
    asyncio.run(disk.flush_directory(""))
    assert disk.worst_contents() == {}
