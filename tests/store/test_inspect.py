"""Looking at stores: real ones of 4.9.7, and the same ones with something broken in them."""

from __future__ import annotations

import zipfile
from pathlib import Path

import pytest

from refmq.model.ids import TimestampMs
from refmq.net.files import RealDisk
from refmq.protocol.record import encode_record
from refmq.sim.disk import SimulatedDisk
from refmq.store.inspect import NotAStore, index_entries, look_at_store, queue_units
from refmq.store.inspect_diff import diff_stores
from refmq.store.inspect_log import Damage, Found, LogEnd, read_one, read_records
from refmq.store.inspect_verify import Severity, index_hashes, verify_store

GOLDEN = Path(__file__).parent.parent / "golden" / "store"
LOG_FILE_BYTES = 65536


def golden(name: str) -> dict[str, bytes]:
    """The files of a golden store by their paths."""
    with zipfile.ZipFile(GOLDEN / f"{name}-4.9.7.zip") as archive:
        names = [
            info.filename for info in archive.infolist() if info.filename.startswith("store/") and not info.is_dir()
        ]
        return {name.removeprefix("store/"): archive.read(name) for name in names}


def disk_of(contents: dict[str, bytes]) -> SimulatedDisk:
    disk = SimulatedDisk(clock=lambda: TimestampMs(0))
    disk.put_contents(contents)
    return disk


def changed(contents: dict[str, bytes], path: str, position: int, data: bytes) -> dict[str, bytes]:
    old = contents[path]
    return {**contents, path: old[:position] + data + old[position + len(data) :]}


LOG = "commitlog/00000000000000000000"
QUEUE = "consumequeue/GoldenTopic/1/00000000000000000000"


@pytest.mark.parametrize("name", ["clean", "killed"])
class TestGolden:
    def test_the_sizes_are_derived_from_the_files(self, name: str) -> None:
        files = look_at_store(disk_of(golden(name)))
        assert files.log.file_bytes == LOG_FILE_BYTES
        assert files.queue_file_bytes == 800
        assert [(index.slots, index.entries) for index in files.indexes] == [(100, 400), (100, 400)]
        assert files.has_abort == (name == "killed")

    def test_every_record_is_read_and_encodes_to_the_same_bytes(self, name: str) -> None:
        disk = disk_of(golden(name))
        items = list(read_records(disk, look_at_store(disk).log))
        found = [item for item in items if isinstance(item, Found)]
        assert len(found) == 286
        assert all(encode_record(item.record) == item.data for item in found)
        assert not any(isinstance(item, Damage) for item in items)
        assert isinstance(items[-1], LogEnd)
        last = found[-1]
        assert items[-1].offset == last.record.physical_offset + len(last.data)

    def test_every_unit_and_entry_names_a_record(self, name: str) -> None:
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

    def test_it_is_sound(self, name: str) -> None:
        result = verify_store(disk_of(golden(name)))
        assert result.is_sound
        assert (result.records, result.units, result.index_entries) == (286, 286, 562)

    def test_it_does_not_differ_from_itself(self, name: str) -> None:
        assert list(diff_stores(disk_of(golden(name)), disk_of(golden(name)))) == []


def test_a_store_that_was_killed_is_said_to_be() -> None:
    [note] = verify_store(disk_of(golden("killed"))).findings
    assert note.severity is Severity.NOTE
    assert note.where == "abort"


def test_a_damaged_body_is_found_and_what_follows_is_still_read() -> None:
    contents = golden("clean")
    disk = disk_of(changed(contents, LOG, 237 + 90, b"\xff"))
    items = list(read_records(disk, look_at_store(disk).log))
    [damage] = [item for item in items if isinstance(item, Damage)]
    assert (damage.begin, damage.error.field) == (237, "body crc")
    assert damage.end == 237 + 236
    assert sum(isinstance(item, Found) for item in items) == 285
    result = verify_store(disk)
    assert not result.is_sound
    assert any("body crc" in finding.sentence for finding in result.findings)


def test_a_hole_of_zeros_is_damage_when_records_follow() -> None:
    contents = golden("clean")
    disk = disk_of(changed(contents, LOG, 4096, bytes(LOG_FILE_BYTES - 4096)))
    items = list(read_records(disk, look_at_store(disk).log))
    damage = [item for item in items if isinstance(item, Damage)]
    assert damage
    assert damage[-1].end == LOG_FILE_BYTES
    assert any(isinstance(item, Found) and item.record.physical_offset >= LOG_FILE_BYTES for item in items)


@pytest.mark.parametrize(
    ("path", "position", "data", "expected"),
    [
        ("commitlog/00000000000000000000", 65480, (55).to_bytes(4, "big"), "blank record at physical offset 65480"),
        (QUEUE, 0, (7).to_bytes(8, "big"), "It names 7, but its record is at 237."),
        (QUEUE, 8, (99).to_bytes(4, "big"), "It has the size 99, its record 236."),
        (QUEUE, 12, bytes(8), "It has the tags code 0, its record"),
        (QUEUE, 20 * 39, bytes(20), "has no unit"),
        (
            "consumequeue/GoldenTopic/1/00000000000000000800",
            20 * 18,
            (237).to_bytes(8, "big") + b"\0\0\0\1",
            "live units",
        ),
        (
            "consumequeue/GoldenTopic/1/00000000000000000800",
            20 * 18,
            (1 << 40).to_bytes(8, "big") + b"\0\0\0\1",
            "the log ends",
        ),
        ("index/20261116161149075", 40 + 400 + 20 * 3, b"\x01", "no record has such a key"),
        ("index/20261116161149075", 40 + 400 + 20 * 3, b"\x01", "keys that the index does not know"),
    ],
)
def test_what_does_not_agree_is_found(path: str, position: int, data: bytes, expected: str) -> None:
    result = verify_store(disk_of(changed(golden("clean"), path, position, data)))
    assert not result.is_sound
    assert any(expected in finding.sentence for finding in result.findings), result.findings


@pytest.mark.parametrize(
    ("change", "severity", "expected"),
    [
        ({"commitlog/00000000000000131072": b""}, Severity.NOTE, "0 bytes instead of 65536"),
        ({"commitlog/notes.txt": b"hello"}, Severity.NOTE, "does not belong"),
        ({"consumequeue/README": b"hello"}, Severity.NOTE, "does not belong"),
        ({"commitlog/00000000000000262144": bytes(LOG_FILE_BYTES)}, Severity.DAMAGE, "is missing before it"),
        ({"commitlog/00000000000000131072": b"short"}, Severity.DAMAGE, "5 bytes instead of 65536"),
        ({"index/20261116161149999": bytes(41)}, Severity.DAMAGE, "No number of slots"),
        ({"index/20261116161149999": b""}, Severity.NOTE, "It has 0 bytes"),
    ],
)
def test_stray_and_wrong_files_are_named(change: dict[str, bytes], severity: Severity, expected: str) -> None:
    findings = verify_store(disk_of({**golden("clean"), **change})).findings
    assert [finding.severity for finding in findings if expected in finding.sentence] == [severity], findings


def test_a_difference_is_named_by_its_field() -> None:
    contents = golden("clean")
    differences = list(diff_stores(disk_of(contents), disk_of(changed(contents, LOG, 16, (5).to_bytes(4, "big")))))
    assert [(difference.where, difference.left, difference.right) for difference in differences] == [
        ("log 0 flag", "0", "5")
    ]
    queue = list(diff_stores(disk_of(contents), disk_of(changed(contents, QUEUE, 15, b"\x01"))))
    assert [difference.where for difference in queue] == ["queue GoldenTopic/1 unit 0"]
    shorter = {path: data for path, data in contents.items() if path != "commitlog/00000000000000065536"}
    assert next(d.right for d in diff_stores(disk_of(contents), disk_of(shorter))) == "nothing"


def test_a_directory_that_is_no_store_is_said_to_be_none(tmp_path: Path) -> None:
    with pytest.raises(NotAStore, match="no directory commitlog"):
        look_at_store(RealDisk(tmp_path))
    with pytest.raises(NotAStore, match="no such directory"):
        look_at_store(RealDisk(tmp_path / "nowhere"))


def test_an_empty_store_is_sound() -> None:
    disk = SimulatedDisk(clock=lambda: TimestampMs(0))
    disk.make_directory("commitlog")
    result = verify_store(disk)
    assert result.is_sound
    assert (result.records, result.log_end) == (0, 0)
