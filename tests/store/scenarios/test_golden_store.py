"""Directories that a real 4.9.7 broker wrote: read completely, encoded again to the same bytes, and served.

What each archive is and how it was made stands in tests/golden/store/README.md.
"""

from __future__ import annotations

import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from refmq.model.ids import PhysicalOffset, QueueOffset, TimestampMs
from refmq.protocol.names import TRANS_HALF_TOPIC
from refmq.protocol.record import BLANK_MAGIC, Record, decode_properties, decode_record, encode_record
from refmq.sim.disk import SimulatedDisk
from refmq.store import ReferenceStore, StoreConfig
from refmq.store.consume_queue import UNIT
from refmq.store.delay import SCHEDULE_TOPIC, DelayLevels
from refmq.store.dispatch import read_record
from refmq.store.index_file import IndexFile, key_hash
from tests.store.helpers import NOW, new_disk, run

GOLDEN = Path(__file__).parent.parent.parent / "golden" / "store"
ARCHIVES = ("clean-4.9.7.zip", "killed-4.9.7.zip")
CONFIG = StoreConfig(log_file_bytes=65536, queue_file_bytes=800, index_slots=100, index_entries=400, memory_bytes=2**34)
DELAYS = DelayLevels.parse(CONFIG.delay_levels)


def contents_of(archive: str) -> dict[str, bytes]:
    with zipfile.ZipFile(GOLDEN / archive) as files:
        return {
            name.removeprefix("store/"): files.read(name)
            for name in files.namelist()
            if name.startswith("store/") and not name.endswith("/")
        }


def disk_with(contents: dict[str, bytes]) -> SimulatedDisk:
    disk = new_disk(page_bytes=4096)
    disk.put_contents(contents)
    return disk


def records_in(contents: dict[str, bytes]) -> Iterator[tuple[int, bytes]]:
    """Every record of the log with its physical offset."""
    for name in sorted(name for name in contents if name.startswith("commitlog/")):
        data = contents[name]
        base, at = int(name.rpartition("/")[2]), 0
        while at + 8 <= len(data):
            size, magic = int.from_bytes(data[at : at + 4], "big"), int.from_bytes(data[at + 4 : at + 8], "big")
            if magic == BLANK_MAGIC or size == 0:
                break
            yield base + at, data[at : at + size]
            at += size


def lines_of(archive: str, kind: str) -> list[list[str]]:
    with zipfile.ZipFile(GOLDEN / archive) as files:
        lines = files.read("messages.txt").decode().splitlines()
    return [line.split() for line in lines if line.startswith(kind + " ")]


@pytest.fixture(params=ARCHIVES)
def archive(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def test_every_record_is_encoded_again_to_the_same_bytes(archive: str) -> None:
    contents = contents_of(archive)
    count = 0
    for physical_offset, data in records_in(contents):
        record = decode_record(data, base=physical_offset)
        assert record.physical_offset == physical_offset
        assert encode_record(record) == data
        count += 1
    assert count > 250


def test_every_queue_unit_is_what_dispatching_its_record_gives(archive: str) -> None:
    contents = contents_of(archive)
    by_queue: dict[str, dict[int, bytes]] = {}
    for physical_offset, data in records_in(contents):
        record = read_record(data, 0, physical_offset, DELAYS)
        unit = UNIT.pack(physical_offset, record.size, record.tags_code)
        by_queue.setdefault(f"consumequeue/{record.topic}/{record.queue_id}", {})[record.queue_offset] = unit
    queues = {name.rpartition("/")[0] for name in contents if name.startswith("consumequeue/")}
    assert queues == set(by_queue)
    for queue, units in by_queue.items():
        files = sorted(name for name in contents if name.startswith(queue + "/"))
        data = b"".join(contents[name] for name in files)
        wanted = b"".join(units[number] for number in range(len(units)))
        assert data == wanted.ljust(len(data), b"\0"), queue


def test_every_index_entry_leads_to_a_record_with_its_key(archive: str) -> None:
    contents = contents_of(archive)
    disk = disk_with(contents)
    records = dict(records_in(contents))
    hashes: dict[int, list[int]] = {}
    for physical_offset, data in records.items():
        record = read_record(data, 0, physical_offset, DELAYS)
        hashes[physical_offset] = [key_hash(record.topic, key) for key in record.keys]
    indexed = []
    for name in sorted(name for name in contents if name.startswith("index/")):
        file = IndexFile(name, disk.open(name), CONFIG.index_slots, CONFIG.index_entries)
        assert file.header.encode() == contents[name][:40]
        indexed += [file.entry(number) for number in range(1, file.header.next_entry)]
    assert [(entry.physical_offset, entry.key_hash) for entry in indexed] == [
        (physical_offset, hashed) for physical_offset in sorted(hashes) for hashed in hashes[physical_offset]
    ]


def check_served(store: ReferenceStore, archive: str, records: dict[int, bytes]) -> None:
    """Every message that the clients know of, by queue, by key and by id."""
    served: dict[str, Record] = {}
    halves: dict[int, Record] = {}
    for queue in store.queues():
        for number in range(store.max_offset(queue.topic, queue.queue_id)):
            result = store.get_message(queue.topic, queue.queue_id, QueueOffset(number), 1)
            (data,) = result.records
            record = decode_record(data)
            assert records[record.physical_offset] == data
            served[record.message_id] = record
            if record.topic == TRANS_HALF_TOPIC:
                halves[record.queue_offset] = record
    assert len(served) == len(records)
    sent = lines_of(archive, "sent")
    assert len(sent) > 200
    for _, status, unique, offset_id, _, queue_id, queue_offset, key, tag in sent:
        assert status == "SEND_OK"
        # A transaction's client is not told the id of the half message, only its place in the half topic.
        record = halves[int(queue_offset)] if offset_id == "null" else served[offset_id]
        properties = decode_properties(record.properties)
        assert (properties["UNIQ_KEY"], properties["TAGS"]) == (unique, tag)
        assert key in properties["KEYS"].split()
        assert record.queue_offset == int(queue_offset)
        # Half and delayed messages wait elsewhere; the client was told the queue that it had asked for.
        assert record.queue_id == int(queue_id) or record.topic in (TRANS_HALF_TOPIC, SCHEDULE_TOPIC)
        data = records[record.physical_offset]
        assert store.message_at(PhysicalOffset(record.physical_offset)) == data
        for asked in (key, unique):
            found = store.query_by_key(record.topic, asked, 64, TimestampMs(0), TimestampMs(2**62))
            assert data in found.records


def test_a_store_of_java_is_opened_and_serves_every_message(archive: str) -> None:
    contents = contents_of(archive)
    disk = disk_with(contents)
    store = ReferenceStore(disk, CONFIG)
    report = run(store.start(NOW))
    assert report.was_clean == archive.startswith("clean")
    assert report.bytes_cut == 0 or archive.startswith("killed")
    check_served(store, archive, dict(records_in(contents)))


def test_opening_and_stopping_leaves_the_log_and_the_queues_as_java_wrote_them(archive: str) -> None:
    contents = contents_of(archive)
    disk = disk_with(contents)
    store = ReferenceStore(disk, CONFIG)
    run(store.start(NOW))
    run(store.stop(NOW))
    after = disk.contents()
    for name in contents:
        if name.startswith("consumequeue/"):
            assert after[name] == contents[name], name
        elif name.startswith("commitlog/") and name in after:
            assert after[name].rstrip(b"\0") == contents[name].rstrip(b"\0"), name
    assert "abort" not in after
    again = ReferenceStore(disk, CONFIG)
    report = run(again.start(NOW))
    assert report.was_clean
    assert report.notes == ()
    check_served(again, archive, dict(records_in(contents)))
