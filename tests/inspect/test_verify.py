"""Whether the files of a store agree with each other."""

from __future__ import annotations

import pytest

from refmq.inspect.verify import Severity, verify_store
from refmq.model.ids import TimestampMs
from refmq.sim.disk import SimulatedDisk
from tests.inspect.golden import LOG_FILE_BYTES, QUEUE, changed, disk_of, golden


@pytest.mark.parametrize("name", ["clean", "killed"])
def test_a_golden_store_is_sound(name: str) -> None:
    result = verify_store(disk_of(golden(name)))
    assert result.is_sound
    assert (result.records, result.units, result.index_entries) == (286, 286, 562)


def test_a_store_that_was_killed_is_said_to_be() -> None:
    [note] = verify_store(disk_of(golden("killed"))).findings
    assert note.severity is Severity.NOTE
    assert note.where == "abort"


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


def test_an_empty_store_is_sound() -> None:
    disk = SimulatedDisk(clock=lambda: TimestampMs(0))
    disk.make_directory("commitlog")
    result = verify_store(disk)
    assert result.is_sound
    assert (result.records, result.log_end) == (0, 0)
