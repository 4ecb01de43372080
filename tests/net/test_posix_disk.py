"""A C store over files in C: the same bytes as over files in Python, and what is raised when the system refuses. The
disk by itself has the cases of every disk (test_files.py)."""

from __future__ import annotations

import asyncio
import contextlib
import shutil
import subprocess
from pathlib import Path

import pytest

import refmq_fast
from refmq.errors import DiskFailed, DiskFull, FlushFailed, UsageError
from refmq.model.ids import HostAddress, QueueOffset, TimestampMs
from refmq.net import posix_disk
from refmq.net.fast_store import FastStore
from refmq.net.files import RealDisk
from refmq.net.posix_disk import PosixDisk
from refmq.store import AppendPlan, MessageStore, MessageToStore, PutStatus, ReferenceStore, StoreConfig

pytestmark = [
    pytest.mark.skipif(not refmq_fast.AVAILABLE, reason=f"extension is off: {refmq_fast.REASON}"),
    pytest.mark.extension,
]

NOW = TimestampMs(1_700_000_000_000)
LATER = TimestampMs(NOW + 100_000_000)
HOST = HostAddress(bytes((10, 1, 2, 3)), 40001)
CONFIG = StoreConfig(log_file_bytes=4096, queue_file_bytes=1000, index_slots=5, index_entries=80, file_reserved_ms=1000)
MAPPED = StoreConfig(log_file_bytes=1 << 20, queue_file_bytes=100_000, index_slots=5, index_entries=1000)


def put(store: MessageStore, number: int) -> PutStatus:
    message = MessageToStore(
        topic="T",
        queue_id=number % 3,
        properties=b"TAGS\x01a\x02KEYS\x01k%d" % (number % 7),
        body=bytes([number % 251]) * (number % 900),
        born_timestamp_ms=NOW,
        born_host=HOST,
        store_host=HOST,
    )
    plan = store.plan_message(message, NOW)
    return store.append(plan) if isinstance(plan, AppendPlan) else plan


def tree(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


async def live(store: MessageStore, disk: RealDisk | PosixDisk) -> list[object]:
    """A life with files that roll, flushes, a checkpoint, expiry, a deleted topic, a stop and a second start."""
    seen: list[object] = []
    for round_number in range(2):
        await store.start(NOW)
        for number in range(round_number * 200, round_number * 200 + 200):
            assert put(store, number) is PutStatus.PUT_OK
            if number % 10 == 0:
                store.dispatch(100)
                seen.append(await store.flush() if number % 50 == 0 else None)
                seen.extend(store.get_message("T", 0, QueueOffset(number // 6), 32).records)
        store.dispatch(1000)
        await store.maintain(LATER)
        seen.append(store.query_by_key("T", "k3", 64, TimestampMs(0), LATER))
        if round_number:
            seen.append(await store.clean(LATER, None))
            await store.clean_queues()
        await store.stop(LATER)
    disk.close()
    return seen


@pytest.mark.parametrize("config", [CONFIG, MAPPED], ids=["small", "mapped"])
def test_a_life_on_files_in_c_leaves_the_same_files(config: StoreConfig, tmp_path: Path) -> None:
    ours = PosixDisk(tmp_path / "c", open_files_max=5, mapped_bytes=1 << 18, mapped_file_bytes_min=1 << 20)
    theirs = RealDisk(tmp_path / "python", open_files_max=5)
    assert asyncio.run(live(FastStore(ours, config), ours)) == asyncio.run(live(FastStore(theirs, config), theirs))
    files = tree(tmp_path / "c")
    assert len(files) > 5
    assert files == tree(tmp_path / "python")
    assert ours.native.descriptors == 0


def test_the_reference_can_live_on_files_in_c(tmp_path: Path) -> None:
    ours, theirs = PosixDisk(tmp_path / "c", open_files_max=5), RealDisk(tmp_path / "python")
    assert asyncio.run(live(ReferenceStore(ours, CONFIG), ours)) == asyncio.run(
        live(ReferenceStore(theirs, CONFIG), theirs)
    )
    assert tree(tmp_path / "c") == tree(tmp_path / "python")


def test_a_flush_that_the_system_refuses_fails_the_store(tmp_path: Path) -> None:
    disk = PosixDisk(tmp_path)
    store = FastStore(disk, CONFIG)

    async def run() -> None:
        await store.start(NOW)
        assert put(store, 1) is PutStatus.PUT_OK
        shutil.rmtree(tmp_path / "commitlog")
        disk.close()  # its descriptors, so that the files have to be found again
        with pytest.raises(DiskFailed, match=r"cannot open commitlog/0{20}: No such file or directory") as caught:
            await store.flush()
        assert store.failure is caught.value
        assert not store.accepts_puts
        with pytest.raises(DiskFailed) as again:
            await store.flush()
        assert again.value is caught.value

    asyncio.run(run())


def test_what_performs_a_flush_may_find_the_reason(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = FastStore(PosixDisk(tmp_path), CONFIG)
    reason = FlushFailed("commitlog", "flush", "the process has no file descriptor left")

    async def fail(work: refmq_fast.DiskWork, *, alone: object) -> None:
        with pytest.raises(UsageError):
            work.finish()
        raise reason

    async def run() -> None:
        await store.start(NOW)
        assert put(store, 1) is PutStatus.PUT_OK
        monkeypatch.setattr(posix_disk, "perform", fail)
        with pytest.raises(FlushFailed, match="no file descriptor left"):
            await store.flush()
        assert store.failure is reason

    asyncio.run(run())


def test_a_full_disk_refuses_and_has_room_again(tmp_path: Path) -> None:
    mount = ["mount", "-t", "tmpfs", "-o", "size=1m", "none", str(tmp_path)]
    try:
        if subprocess.run(mount, capture_output=True, timeout=60, check=False).returncode:
            pytest.skip("file systems may not be mounted here")
    except FileNotFoundError:
        pytest.skip("there is no mount(8)")
    try:
        disk = PosixDisk(tmp_path)
        store = FastStore(disk, StoreConfig(log_file_bytes=65536, queue_file_bytes=2000, index_enabled=False))

        async def run() -> None:
            disk.create("filler", 300_000)
            await store.start(NOW)
            number = 0
            while put(store, number) is PutStatus.PUT_OK:
                number += 1
            assert number > 500
            assert put(store, number) is PutStatus.CREATE_MAPEDFILE_FAILED
            while store.dispatched_to < store.log_max:
                with contextlib.suppress(DiskFull):
                    store.dispatch(100)
                if disk.exists("filler"):
                    disk.remove("filler")
                    disk.close()
            assert store.failure is None
            assert put(store, number) is PutStatus.PUT_OK
            assert await store.flush() == store.log_max
            assert sum(store.max_offset("T", queue) for queue in range(3)) == number

        asyncio.run(run())
        disk.close()
    finally:
        subprocess.run(["umount", "--lazy", str(tmp_path)], timeout=60, check=True)


def test_a_work_is_performed_once_and_in_order(tmp_path: Path) -> None:
    disk = refmq_fast.PosixDisk(tmp_path)
    file = disk.create("f", 10, True)
    work = file.start_flush(0, 10)
    assert work.start()
    with pytest.raises(UsageError):
        work.finish()
    work.perform()
    assert not work.start()
    with pytest.raises(UsageError):
        work.perform()
    file.close()
    work.finish()
    with pytest.raises(UsageError):
        work.finish()
    for call in (lambda: file.read(0, 1), lambda: file.write(0, b"x"), file.data_end, lambda: file.path):
        with pytest.raises(UsageError, match="closed"):
            call()
    with pytest.raises(UsageError, match="smaller than nothing"):
        disk.create("g", -1, True)
    with pytest.raises(ValueError, match="needs a descriptor"):
        refmq_fast.PosixDisk(tmp_path, open_files_max=0)
    with pytest.raises(UsageError, match="empty or too long"):
        refmq_fast.PosixDisk("x" * 5000)
