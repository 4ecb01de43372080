"""Ten thousand queues in one store, on real files."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from refmq.net.files import OPEN_FILES_MAX, RealDisk
from refmq.store import FlushMode, ReferenceStore, StoreConfig
from tests.store.helpers import NOW, at, bodies, message, put

QUEUES = 10_000
CONFIG = StoreConfig(log_file_bytes=1 << 24, index_slots=1000, index_entries=50_000, flush_mode=FlushMode.ASYNC)


@pytest.mark.slow
def test_ten_thousand_queues_work_in_one_store(tmp_path: Path) -> None:
    async def live() -> None:
        disk = RealDisk(tmp_path)
        store = ReferenceStore(disk, CONFIG)
        await store.start(NOW)
        for number in range(QUEUES + 100):
            put(
                store, message(f"T{number % 100}", number // 100 % 100, b"%d" % number, unique=f"U{number}"), at(number)
            )
        while store.dispatch(1000):
            assert len(disk._descriptors) <= OPEN_FILES_MAX
        assert len(store.queues()) == QUEUES
        await store.stop(NOW)
        again = ReferenceStore(disk, CONFIG)
        report = await again.start(NOW)
        assert (report.queues, report.notes) == (QUEUES, ())
        assert bodies(again, "T7", 0) == [b"7", b"10007"]
        assert bodies(again, "T99", 99) == [b"9999"]
        again.parts.close()
        disk.close()

    asyncio.run(live())
