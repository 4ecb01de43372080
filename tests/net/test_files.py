"""One set of cases for every disk, and what only real files can show, in Python and in C (`refmq.net.posix_disk`)."""

from __future__ import annotations

import asyncio
import concurrent.futures
import contextlib
import errno
import multiprocessing
import os
import resource
import subprocess
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import refmq_fast
from refmq.errors import DiskFailed, DiskFull, FlushFailed, StoreInUse
from refmq.model.disk import Disk
from refmq.model.ids import TimestampMs
from refmq.net.files import RealDisk
from refmq.net.posix_disk import PosixDisk
from refmq.sim.disk import SimulatedDisk

NEEDS_C = [
    pytest.mark.skipif(not refmq_fast.AVAILABLE, reason=f"extension is off: {refmq_fast.REASON}"),
    pytest.mark.extension,
]
FilesOf = Callable[..., RealDisk | PosixDisk]


@pytest.fixture(params=[RealDisk, pytest.param(PosixDisk, marks=NEEDS_C)], ids=["python", "c"])
def files(request: pytest.FixtureRequest) -> FilesOf:
    """Makes a disk of real files."""
    made: FilesOf = request.param
    return made


def descriptors(disk: RealDisk | PosixDisk) -> int:
    return disk.native.descriptors if isinstance(disk, PosixDisk) else len(disk._descriptors)


class DiskCases:
    """What the store relies on, whichever disk it has."""

    @pytest.fixture
    def disk(self, tmp_path: Path) -> Disk:
        raise NotImplementedError

    def test_a_new_file_is_zeros_and_its_parents_are_made(self, disk: Disk) -> None:
        file = disk.create("a/b/c", 10_000)
        assert file.path == "a/b/c"
        assert file.size_bytes == 10_000
        assert file.read(0, 10_000) == bytes(10_000)
        assert disk.exists("a/b/c")
        assert disk.is_directory("a/b")
        assert not disk.is_directory("a/b/c")
        assert disk.info("a/b/c").size_bytes == 10_000

    def test_an_empty_file_is_a_file(self, disk: Disk) -> None:
        assert disk.create("abort", 0).size_bytes == 0
        assert disk.exists("abort")
        assert disk.open("abort").read(0, 0) == b""

    def test_written_bytes_are_read_back_through_every_handle(self, disk: Disk) -> None:
        disk.create("f", 9000).write(4090, b"across the page")
        assert disk.open("f", writable=False).read(4090, 15) == b"across the page"
        assert disk.open("f").read(4089, 17) == b"\0across the page\0"

    def test_a_sparse_file_is_zeros_too(self, disk: Disk) -> None:
        file = disk.create("s", 1 << 40, reserve=False)
        file.write(1 << 39, b"far")
        assert file.read((1 << 39) - 1, 5) == b"\0far\0"
        assert file.size_bytes == 1 << 40
        assert disk.usage("").free_bytes > 0

    @pytest.mark.parametrize("reserve", [True, False])
    def test_behind_the_data_end_is_nothing(self, disk: Disk, reserve: bool) -> None:
        file = disk.create("f", 10_000_000, reserve=reserve)
        for position in (0, 8_000_000, 4_000_000):
            file.write(position, b"data")
        assert 8_000_004 <= file.data_end() <= 10_000_000
        assert 8_000_004 <= disk.open("f", writable=False).data_end() <= 10_000_000
        assert 0 <= disk.create("empty", 0).data_end() <= 0

    def test_a_name_is_created_once(self, disk: Disk) -> None:
        disk.create("f", 10).write(0, b"kept")
        with pytest.raises(DiskFailed) as error:
            disk.create("f", 20)
        assert error.value.path == "f"
        assert disk.open("f").read(0, 4) == b"kept"

    @pytest.mark.parametrize("operation", ["open", "info", "remove", "rename"])
    def test_a_missing_file_is_said_to_be_missing(self, disk: Disk, operation: str) -> None:
        calls: dict[str, Callable[[], object]] = {
            "open": lambda: disk.open("none"),
            "info": lambda: disk.info("none"),
            "remove": lambda: disk.remove("none"),
            "rename": lambda: disk.rename("none", "other"),
        }
        with pytest.raises(DiskFailed, match=r"(?i)no such file"):
            calls[operation]()
        assert not disk.exists("none")

    def test_a_directory_cannot_be_opened(self, disk: Disk) -> None:
        disk.make_directory("d")
        with pytest.raises(DiskFailed, match="directory"):
            disk.open("d")

    def test_names_are_listed_in_order_and_an_unknown_directory_is_empty(self, disk: Disk) -> None:
        for name in ("d/b", "d/a", "d/c/x"):
            disk.create(name, 0)
        assert disk.list("d") == ("a", "b", "c")
        assert disk.list("") == ("d",)
        assert disk.list("nowhere") == ()

    def test_a_directory_is_removed_only_when_empty(self, disk: Disk) -> None:
        disk.create("d/a", 0)
        with pytest.raises(DiskFailed, match="not empty"):
            disk.remove("d")
        disk.remove("d/a")
        disk.remove("d")
        assert not disk.exists("d")

    def test_making_a_directory_twice_changes_nothing(self, disk: Disk) -> None:
        disk.make_directory("x/y")
        disk.make_directory("x/y")
        assert disk.list("x") == ("y",)

    def test_a_rename_replaces_its_target_and_open_files_follow(self, disk: Disk) -> None:
        disk.create("old", 4).write(0, b"old!")
        new = disk.create("new", 4)
        new.write(0, b"new!")
        disk.rename("new", "old")
        assert disk.list("") == ("old",)
        assert disk.open("old").read(0, 4) == b"new!"
        new.write(0, b"NEW!")
        assert disk.open("old").read(0, 4) == b"NEW!"

    def test_flushes_succeed(self, disk: Disk) -> None:
        async def run() -> None:
            file = disk.create("d/f", 10_000)
            file.write(0, b"x")
            await file.flush()
            await file.flush(0, 1)
            await file.flush(9_999, 10_000)
            await disk.flush_directory("d")
            await disk.flush_directory("")
            with pytest.raises(DiskFailed):
                await disk.flush_directory("none")

        asyncio.run(run())

    def test_reading_and_writing_outside_is_our_mistake(self, disk: Disk) -> None:
        file = disk.create("f", 10)
        for call in (
            lambda: file.read(8, 3),
            lambda: file.read(-1, 1),
            lambda: file.write(9, b"xy"),
            lambda: disk.open("f", writable=False).write(0, b"x"),
            lambda: disk.exists("../f"),
        ):
            with pytest.raises(AssertionError):
                call()

    def test_a_lock_is_held_once_and_can_be_taken_again(self, disk: Disk) -> None:
        lock = disk.lock("lock")
        with pytest.raises(StoreInUse):
            disk.lock("lock")
        lock.release()
        lock.release()
        again = disk.lock("lock")
        again.release()
        assert disk.open("lock").read(0, 4) == b"lock"

    def test_a_lock_makes_its_directory(self, disk: Disk) -> None:
        disk.lock("new/store/lock").release()
        assert disk.exists("new/store/lock")

    def test_usage_is_between_empty_and_full(self, disk: Disk) -> None:
        usage = disk.usage("not/there/yet")
        assert 0 < usage.free_bytes <= usage.total_bytes
        assert 0.0 <= usage.used_ratio < 1.0


class TestSimulatedDisk(DiskCases):
    @pytest.fixture
    def disk(self, tmp_path: Path) -> Disk:
        return SimulatedDisk(clock=lambda: TimestampMs(0))


class TestRealDisk(DiskCases):
    @pytest.fixture
    def disk(self, tmp_path: Path) -> Disk:
        return RealDisk(tmp_path, open_files_max=2)


class TestPosixDisk(DiskCases):
    pytestmark = NEEDS_C

    @pytest.fixture
    def disk(self, tmp_path: Path) -> Disk:
        return PosixDisk(tmp_path, open_files_max=2)


def test_many_more_files_than_descriptors(files: FilesOf, tmp_path: Path) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (128, hard))
    try:
        disk = files(tmp_path, open_files_max=16)
        opened = [disk.create(f"q/{number}", 8) for number in range(300)]
        for number, file in enumerate(opened):
            file.write(0, number.to_bytes(8, "big"))

        async def flush_all() -> None:
            await asyncio.gather(*[file.flush() for file in opened])

        asyncio.run(flush_all())
        assert [int.from_bytes(file.read(0, 8), "big") for file in opened] == list(range(300))
        assert descriptors(disk) == 16
        disk.close()
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def test_an_open_file_follows_a_rename_without_a_descriptor(files: FilesOf, tmp_path: Path) -> None:
    disk = files(tmp_path, open_files_max=1)
    file = disk.create("a", 4)
    file.write(0, b"mine")
    disk.create("other", 4)  # takes the only descriptor
    disk.rename("a", "b")
    assert file.read(0, 4) == b"mine"


def test_a_file_whose_name_was_taken_is_not_read_as_another(files: FilesOf, tmp_path: Path) -> None:
    disk = files(tmp_path, open_files_max=1)
    file = disk.create("a", 4)
    disk.create("other", 4)
    disk.rename("other", "a")
    disk.create("third", 4)
    with pytest.raises(DiskFailed, match="another file has taken its name"):
        file.read(0, 4)


def test_a_failed_flush_stays_failed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    disk = RealDisk(tmp_path)
    file = disk.create("a", 4)

    def fail(descriptor: int) -> None:
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    async def run() -> None:
        with monkeypatch.context() as patch:
            patch.setattr(os, "fdatasync", fail)
            with pytest.raises(DiskFailed, match="Input/output error"):
                await file.flush()
        for handle in (file, disk.open("a")):
            with pytest.raises(DiskFailed, match="an earlier flush failed"):
                await handle.flush()
        disk.rename("a", "b")
        with pytest.raises(DiskFailed, match="an earlier flush failed"):
            await file.flush()

    asyncio.run(run())


@pytest.mark.parametrize("open_files_max", [1, 8])
def test_what_is_removed_while_its_flush_waits_for_a_thread_was_flushed(
    files: FilesOf, tmp_path: Path, open_files_max: int
) -> None:
    disk = files(tmp_path, open_files_max=open_files_max)

    async def run() -> None:
        loop = asyncio.get_running_loop()
        with concurrent.futures.ThreadPoolExecutor(1) as only:
            loop.set_default_executor(only)
            file = disk.create("d/a", 4)
            disk.create("other", 4)
            free = threading.Event()
            only.submit(free.wait, 10)
            flushes = [asyncio.ensure_future(file.flush()), asyncio.ensure_future(disk.flush_directory("d"))]
            await asyncio.sleep(0)  # they have begun, and the only thread is busy
            file.close()
            disk.remove("d/a")
            disk.remove("d")
            free.set()
            await asyncio.gather(*flushes)

    before = len(list(Path("/proc/self/fd").iterdir()))
    asyncio.run(run())
    disk.close()
    assert len(list(Path("/proc/self/fd").iterdir())) == before


def test_a_full_disk_leaves_no_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(descriptor: int, start: int, length: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "posix_fallocate", fail)
    disk = RealDisk(tmp_path)
    with pytest.raises(DiskFull, match="No space left"):
        disk.create("d/a", 100)
    assert disk.list("d") == ()


def test_a_full_disk_at_a_write_is_told_apart_from_a_failed_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    disk = RealDisk(tmp_path)
    file = disk.create("a", 100)
    write = os.pwrite

    def half_then_full(descriptor: int, data: bytes, position: int) -> int:
        if position:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return write(descriptor, data[:3], position)

    monkeypatch.setattr(os, "pwrite", half_then_full)
    with pytest.raises(DiskFull):
        file.write(10, b"nothing")
    with pytest.raises(DiskFailed, match="3 of 7 bytes were written"):
        file.write(0, b"partial")


def test_a_directory_without_permission_is_a_clear_error(files: FilesOf, tmp_path: Path) -> None:
    if os.geteuid() == 0:
        pytest.skip("root may do everything")
    (tmp_path / "d").mkdir(mode=0)
    with pytest.raises(DiskFailed, match="Permission denied"):
        files(tmp_path).list("d")


# --- what the system really does -------------------------------------------------------------------------------------


def test_a_flush_that_failed_once_fails_for_ever(files: FilesOf) -> None:
    disk = files("/proc")  # whose files and directories have no flush

    async def run() -> None:
        file = disk.open("self/comm")
        with pytest.raises(FlushFailed, match="cannot flush self/comm: Invalid argument"):
            await file.flush()
        for handle in (file, disk.open("self/comm")):
            with pytest.raises(FlushFailed, match="an earlier flush failed: Invalid argument"):
                await handle.flush()
        with pytest.raises(FlushFailed, match="cannot flush directory self: Invalid argument"):
            await disk.flush_directory("self")
        with pytest.raises(FlushFailed, match="an earlier flush failed"):
            await disk.flush_directory("self")

    asyncio.run(run())


@pytest.fixture
def small(tmp_path: Path) -> Iterator[Path]:
    """A file system of one megabyte."""
    folder = tmp_path / "small"
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=1m", "none", str(folder)]
    try:
        if subprocess.run(mount, capture_output=True, timeout=60, check=False).returncode:
            pytest.skip("file systems may not be mounted here")
    except FileNotFoundError:
        pytest.skip("there is no mount(8)")
    yield folder
    subprocess.run(["umount", "--lazy", str(folder)], timeout=60, check=True)


def test_a_disk_that_is_really_full_changes_nothing_and_goes_on_when_there_is_room(files: FilesOf, small: Path) -> None:
    disk = files(small)
    sparse = disk.create("sparse", 1 << 22, reserve=False)
    disk.create("most", 900_000).write(0, b"x")
    with pytest.raises(DiskFull, match="cannot create d/more: No space left on device"):
        disk.create("d/more", 500_000)
    assert disk.list("d") == ()
    with pytest.raises(DiskFailed, match=r"No space left on device; \d+ of 1000000 bytes were written"):
        sparse.write(0, b"y" * 1_000_000)
    with pytest.raises(DiskFull, match="cannot write sparse: No space left on device"):
        sparse.write(3_000_000, b"z")
    assert sparse.read(3_000_000, 1) == b"\0"
    disk.remove("most")
    disk.close()
    sparse.write(3_000_000, b"z")
    assert sparse.read(2_999_999, 3) == b"\0z\0"
    assert disk.usage("").used_ratio > 0.1


def test_a_write_past_the_largest_file_allowed_failed(files: FilesOf, tmp_path: Path) -> None:
    disk = files(tmp_path)
    file = disk.create("f", 100_000, reserve=False)
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (50_000, hard))
    try:
        with pytest.raises(DiskFailed, match="File too large; 1000 of 2000 bytes were written"):
            file.write(49_000, b"x" * 2_000)
        with pytest.raises(DiskFailed, match="cannot write f: File too large"):
            file.write(60_000, b"x")
        with pytest.raises(DiskFailed, match="cannot create g: File too large"):
            disk.create("g", 60_000)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert disk.list("") == ("f",)
    file.write(60_000, b"x")


def test_a_file_that_became_shorter_is_an_error_and_no_signal(files: FilesOf, tmp_path: Path) -> None:
    disk = files(tmp_path)
    disk.create("f", 100_000).write(0, b"x")
    file = disk.open("f")
    os.truncate(tmp_path / "f", 10)
    with pytest.raises(DiskFailed, match="became shorter"):
        file.read(50_000, 10)
    assert file.read(0, 1) == b"x"


@pytest.mark.skipif(not refmq_fast.AVAILABLE, reason=f"extension is off: {refmq_fast.REASON}")
@pytest.mark.extension
class TestWithoutDescriptors:
    """A process that has none left: the pool gives up its own, and a flush waits."""

    @pytest.fixture
    def taken(self) -> Iterator[list[int]]:
        """Every descriptor of this process but those that are open."""
        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        highest = max(int(entry.name) for entry in Path("/proc/self/fd").iterdir())
        resource.setrlimit(resource.RLIMIT_NOFILE, (max(highest + 8, 64), hard))
        held: list[int] = []
        yield held
        for descriptor in held:
            os.close(descriptor)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))

    @pytest.fixture
    def runner(self) -> Iterator[asyncio.Runner]:
        """Its loop has its descriptors already."""
        with asyncio.Runner() as runner:
            runner.get_loop()
            yield runner

    @staticmethod
    def take_all(held: list[int]) -> None:
        soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
        with contextlib.suppress(OSError):
            for _ in range(soft + 1):
                held.append(os.open("/dev/null", os.O_RDONLY))
        with pytest.raises(OSError, match="Too many open files"):
            os.open("/dev/null", os.O_RDONLY)

    def test_files_are_used_all_the_same(self, tmp_path: Path, runner: asyncio.Runner, taken: list[int]) -> None:
        disk = PosixDisk(tmp_path, open_files_max=4)
        opened = [disk.create(f"q/{number}", 8) for number in range(20)]
        self.take_all(taken)
        for number, file in enumerate(opened):
            file.write(0, bytes([number] * 8))
        assert [file.read(0, 1)[0] for file in opened] == list(range(20))

        async def flush() -> None:
            await asyncio.gather(*[file.flush() for file in opened], disk.flush_directory("q"))

        runner.run(flush())
        disk.rename("q/0", "q/x")
        disk.remove("q/x")
        assert not disk.native.is_empty("q")

    def test_a_flush_waits_for_one_and_has_not_failed(
        self, tmp_path: Path, runner: asyncio.Runner, taken: list[int]
    ) -> None:
        disk = PosixDisk(tmp_path)
        file = disk.create("f", 8)
        file.write(0, b"12345678")
        disk.close()
        self.take_all(taken)
        with pytest.raises(DiskFailed, match="cannot open f: Too many open files"):
            file.read(0, 8)

        async def run() -> None:
            flushes = [asyncio.ensure_future(file.flush()), asyncio.ensure_future(disk.flush_directory(""))]
            await asyncio.sleep(0.05)
            assert not any(flush.done() for flush in flushes)
            os.close(taken.pop())
            await asyncio.wait_for(asyncio.gather(*flushes), 20)

        runner.run(run())
        assert file.read(0, 8) == b"12345678"


@pytest.mark.skipif(not refmq_fast.AVAILABLE, reason=f"extension is off: {refmq_fast.REASON}")
@pytest.mark.extension
def test_a_directory_of_the_c_disk_knows_whether_it_is_empty(tmp_path: Path) -> None:
    disk = PosixDisk(tmp_path)
    assert disk.native.is_empty("nowhere")
    file = disk.create("d/f", 1)
    assert not disk.native.is_empty("d")
    with pytest.raises(DiskFailed, match="Not a directory"):
        disk.native.is_empty("d/f")
    for path in ("/etc", "d//f", "d/", "./d", "d/..", "..", "d/./f"):
        with pytest.raises(DiskFailed, match="no path below the store"):
            disk.native.open(path)
    with pytest.raises(DiskFailed, match="File name too long"):
        disk.create("x/" * 3000 + "x", 1)
    disk.remove("d/f")
    assert disk.native.is_empty("d")
    assert file.size_bytes == 1


def _take_lock(root: str, taken: object) -> None:
    disk = RealDisk(root)
    try:
        disk.lock("lock")
        outcome = "taken"
    except StoreInUse as error:
        outcome = str(error)
    taken.put((outcome, disk.lock_holder("lock")))  # type: ignore[attr-defined]  # a multiprocessing queue


def test_another_process_cannot_take_the_lock_and_learns_who_has_it(files: FilesOf, tmp_path: Path) -> None:
    context = multiprocessing.get_context("spawn")
    disk = files(tmp_path)
    assert disk.lock_holder("lock") is None

    def try_elsewhere() -> tuple[str, int | None]:
        taken = context.Queue()
        process = context.Process(target=_take_lock, args=(str(tmp_path), taken))
        process.start()
        answer: tuple[str, int | None] = taken.get(timeout=60)
        process.join(60)
        taken.close()
        taken.join_thread()
        return answer

    lock = disk.lock("lock")
    with pytest.raises(DiskFailed, match="would drop the lock"):
        disk.open("lock")
    outcome, holder = try_elsewhere()
    assert f"process {os.getpid()} is using it" in outcome
    assert holder == os.getpid()
    lock.release()
    assert try_elsewhere()[0] == "taken"


def test_a_flush_finds_a_descriptor_when_the_process_has_none(files: FilesOf, tmp_path: Path) -> None:
    """Somebody else has taken them all; nothing is wrong with the disk, and the next flush must not be told so."""

    async def story() -> None:
        disk = files(tmp_path, open_files_max=8)
        kept = [disk.create(f"f{number}", 100) for number in range(8)]
        taken = []
        with contextlib.suppress(OSError):
            while True:
                taken.append(os.open("/dev/null", os.O_RDONLY))
        try:
            for file in kept:
                file.write(0, b"x")
                await file.flush()
            await disk.flush_directory("")
        finally:
            for descriptor in taken:
                os.close(descriptor)
        for file in kept:
            await file.flush()
        disk.close()

    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(256, hard), hard))
    try:
        asyncio.run(story())
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
