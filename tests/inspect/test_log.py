"""Records read from a stopped store, also from a damaged one."""

from __future__ import annotations

import pytest

from refmq.inspect.files import look_at_store
from refmq.inspect.log import Damage, Found, LogEnd, read_records
from refmq.inspect.verify import verify_store
from refmq.protocol.record import encode_record
from tests.inspect.golden import LOG, LOG_FILE_BYTES, changed, disk_of, golden


@pytest.mark.parametrize("name", ["clean", "killed"])
def test_every_record_is_read_and_encodes_to_the_same_bytes(name: str) -> None:
    disk = disk_of(golden(name))
    items = list(read_records(disk, look_at_store(disk).log))
    found = [item for item in items if isinstance(item, Found)]
    assert len(found) == 286
    assert all(encode_record(item.record) == item.data for item in found)
    assert not any(isinstance(item, Damage) for item in items)
    assert isinstance(items[-1], LogEnd)
    last = found[-1]
    assert items[-1].offset == last.record.physical_offset + len(last.data)


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
