"""What is found in the directory of a store."""

from __future__ import annotations

from pathlib import Path

import pytest

from refmq.inspect.files import NotAStore, index_entries, look_at_store, queue_units
from refmq.inspect.log import read_one
from refmq.inspect.verify import index_hashes
from refmq.net.files import RealDisk
from tests.inspect.golden import LOG_FILE_BYTES, disk_of, golden


@pytest.mark.parametrize("name", ["clean", "killed"])
def test_the_sizes_are_derived_from_the_files(name: str) -> None:
    files = look_at_store(disk_of(golden(name)))
    assert files.log.file_bytes == LOG_FILE_BYTES
    assert files.queue_file_bytes == 800
    assert [(index.slots, index.entries) for index in files.indexes] == [(100, 400), (100, 400)]
    assert files.has_abort == (name == "killed")


@pytest.mark.parametrize("name", ["clean", "killed"])
def test_every_unit_and_entry_names_a_record(name: str) -> None:
    disk = disk_of(golden(name))
    files = look_at_store(disk)
    units = 0
    for queue in files.queues:
        for queue_offset, physical_offset, size, _ in queue_units(disk, queue):
            record = read_one(disk, files.log, physical_offset).record
            expected = (queue.topic, queue.queue_id, queue_offset)
            assert (record.topic, record.queue_id, record.queue_offset) == expected
            assert record.size_bytes == size
            units += 1
    assert units == 286
    entries = [entry for index in files.indexes for entry in index_entries(disk, index)]
    assert len(entries) == 562
    for entry in entries:
        assert entry.hash in index_hashes(read_one(disk, files.log, entry.physical_offset).record)


def test_a_directory_that_is_no_store_is_said_to_be_none(tmp_path: Path) -> None:
    with pytest.raises(NotAStore, match="no directory commitlog"):
        look_at_store(RealDisk(tmp_path))
    with pytest.raises(NotAStore, match="no such directory"):
        look_at_store(RealDisk(tmp_path / "nowhere"))
