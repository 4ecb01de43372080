"""The settings that a store's own files ask for, and what a repair does to them."""

from __future__ import annotations

import asyncio
import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from refmq.cli._store_repair import config_of, repair
from refmq.errors import RefmqError
from refmq.inspect.files import look_at_store
from refmq.model.ids import TimestampMs
from refmq.net.files import RealDisk
from refmq.store import OnDamage, ReferenceStore, StoreConfig, direct
from tests.store.helpers import NOW, message

CONFIG = StoreConfig(log_file_bytes=4096, queue_file_bytes=200, index_slots=10, index_entries=8)
LATER = TimestampMs(NOW + 60_000)


def contents(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


async def abandoned(folder: Path, count: int = 30) -> None:
    """A store whose process died: what it wrote is there, and nothing was stopped. A copy has nobody's lock on it."""
    disk = RealDisk(folder.with_name("living"))
    folder.with_name("living").mkdir()
    store = ReferenceStore(disk, CONFIG)
    await store.start(NOW)
    for number in range(count):
        direct.put(store, message(body=b"%d" % number, keys=f"k{number}"), NOW)
    store.dispatch(count)
    shutil.copytree(folder.with_name("living"), folder)
    await store.stop(NOW)
    disk.close()


def test_a_repair_fits_the_files_and_a_dry_one_changes_none_of_them(tmp_path: Path) -> None:
    folder = tmp_path / "dead"

    async def story() -> None:
        await abandoned(folder)
        before = contents(folder)
        disk = RealDisk(folder)
        dry = await repair(disk, look_at_store(disk), LATER, dry_run=True, cut_damage=False)
        after = contents(folder)
        assert after == before
        assert dry["files"], "it says what a repair would change"
        wet = await repair(disk, look_at_store(disk), LATER, dry_run=False, cut_damage=False)
        assert {**wet, "files": [], "dry_run": True} == {**dry, "files": []}
        assert (wet["was_clean"], wet["bytes_cut"], wet["queues"]) == (False, 0, 1)
        changed = {path for path in before | contents(folder) if before.get(path) != contents(folder).get(path)}
        assert changed == {path for _, path in dry["files"]}
        again = await repair(disk, look_at_store(disk), LATER, dry_run=False, cut_damage=False)
        assert again["was_clean"], "once is enough"
        disk.close()

    asyncio.run(story())


def test_the_sizes_are_those_of_the_files(tmp_path: Path) -> None:
    folder = tmp_path / "dead"
    asyncio.run(abandoned(folder))
    disk = RealDisk(folder)
    files = look_at_store(disk)
    config = config_of(files, cut_damage=True)
    assert (config.log_file_bytes, config.queue_file_bytes) == (4096, 200)
    assert config.on_damage is OnDamage.CUT
    assert config_of(files, cut_damage=False).on_damage is OnDamage.REFUSE
    (index, *_) = files.indexes
    assert (config.index_slots, config.index_entries) == (index.slots, index.entries)
    odd = replace(files, indexes=(replace(index, slots=0, entries=0),))
    with pytest.raises(RefmqError, match="the size of the index files fits no number of slots and entries"):
        config_of(odd, cut_damage=False)
    assert config_of(replace(files, indexes=()), cut_damage=False).index_slots == StoreConfig().index_slots
    disk.close()
