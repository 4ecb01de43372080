from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import refmq_fast
from refmq.errors import CorruptRecord
from refmq.model.ids import HostAddress, TimestampMs
from refmq.store.commit_log import CommitLog
from refmq.store.file_sequence import DirectoryNames, FileSequence
from refmq.store.scan import ScanResult, check_record, find_next_record
from refmq.store.scan import scan_log as scan_log_here
from tests.store.helpers import BORN, SMALL, at, message, new_disk, put, started

IPV6 = HostAddress(bytes(15) + b"\x01", 1)


def log_of(*sizes: int, properties: bytes = b"a\x01b", **fields: object) -> tuple[FileSequence, list[int]]:
    """A log with messages of these body sizes, and where each begins."""
    store = started(new_disk())
    offsets = [
        int(put(store, message(body=b"x" * size, properties=properties, **fields), at(number)).physical_offset)  # type: ignore[arg-type]  # fields by name
        for number, size in enumerate(sizes)
    ]
    offsets.append(int(store.log_max))
    return store.parts.log.files, offsets


def scan_log(files: FileSequence, scan_from: int, **options: Any) -> ScanResult:
    """What the scan says, and that it says the same when C passes the sound records."""
    result = scan_log_here(files, scan_from, **options)
    if refmq_fast.AVAILABLE:
        other = scan_log_here(files, scan_from, scan_records=refmq_fast.scan_records, **options)
        assert replace(other, stopped_by=None) == replace(result, stopped_by=None)
        assert repr(other.stopped_by) == repr(result.stopped_by)
    return result


def damage(files: FileSequence, position: int, data: bytes) -> None:
    files.write(position, data)


def test_a_sound_log_is_valid_to_its_end_over_all_files() -> None:
    files, offsets = log_of(*[500] * 30)
    result = scan_log(files, 0, page_bytes=512)
    assert (result.valid_to, result.records, result.stopped_by) == (offsets[-1], 30, None)
    assert result.last_store_ms == at(29)


@given(st.lists(st.integers(0, 900), min_size=1, max_size=20), st.integers(200, 3000), st.booleans())
def test_the_size_of_a_read_makes_no_difference(sizes: list[int], piece_bytes: int, ipv6: bool) -> None:
    files, offsets = log_of(*sizes, born_host=IPV6 if ipv6 else BORN)
    result = scan_log(files, 0, page_bytes=512, piece_bytes=piece_bytes)
    assert (result.valid_to, result.records) == (offsets[-1], len(sizes))


def test_a_blank_in_the_last_file_is_where_the_log_ends() -> None:
    files, offsets = log_of(3000, 3000)
    files.remove(4096)
    assert scan_log(files, 0).valid_to == offsets[0] + 91 + 3000 + 6 + 3


def test_an_unused_file_after_a_full_one_is_where_the_log_continues() -> None:
    files, _ = log_of(3000, 3000)
    files.write(4096, bytes(200))
    assert scan_log(files, 0).valid_to == 4096


@pytest.mark.parametrize(
    ("at_byte", "data", "field"),
    [
        (4, b"\0\0\0\0", "magic"),
        (0, b"\0\0\0\x05", "total size"),
        (0, b"\x7f\xff\xff\xff", "total size"),
        (28, b"\x01", "physical offset"),
        (90, b"y", "body crc"),
        (84, b"\0\0\x01\0", "body length"),
        (84, b"\xff\xff\xff\xff", "body length"),
        (188, b"\xff", "topic length"),
        (195, b"\x80\0", "properties length"),
        (199, b"\0", "properties"),
        (12, b"\xff", "queue"),
        (20, b"\xff", "queue"),
        (190, b"/", "topic"),
    ],
)
def test_the_scan_stops_at_what_is_not_a_record_and_says_why(at_byte: int, data: bytes, field: str) -> None:
    files, offsets = log_of(100, 100, 100, 100)
    damage(files, offsets[2] + at_byte, data)
    result = scan_log(files, 0, page_bytes=512)
    assert (result.valid_to, result.records) == (offsets[2], 2)
    assert result.stopped_by is not None
    assert result.stopped_by.field == field
    assert find_next_record(files, result.valid_to) == (offsets[3], at(3))


def test_an_all_zero_header_is_a_plain_end() -> None:
    files, offsets = log_of(100, 100)
    damage(files, offsets[1], bytes(100))
    result = scan_log(files, 0)
    assert (result.valid_to, result.stopped_by) == (offsets[1], None)


@pytest.mark.parametrize("page", range(1, 7))
def test_a_page_that_was_lost_is_noticed_wherever_it_lies_in_the_record(page: int) -> None:
    # One record of nearly seven pages, most of it properties; the pages before and after survive.
    text = b"name\x01" + b"v" * 3000
    files, offsets = log_of(100, 500, 10, properties=text)
    start = offsets[0]
    assert offsets[1] == 4096
    damage(files, start + page * 512 - start % 512, bytes(512))
    assert scan_log(files, 0, page_bytes=512).valid_to == start
    with pytest.raises(CorruptRecord):
        check_record(files.read(start, offsets[1] - start), 0, start, start, page_bytes=512)


@given(st.data())
def test_a_record_that_was_written_in_part_is_cut(data: st.DataObject) -> None:
    properties = data.draw(st.binary(max_size=60).filter(lambda text: not text.endswith(b"\0")))
    files, offsets = log_of(data.draw(st.integers(0, 50)), data.draw(st.integers(0, 50)), properties=properties)
    written = data.draw(st.integers(0, offsets[2] - offsets[1] - 1))
    whole = files.read(offsets[1], offsets[2] - offsets[1])
    torn = whole[:written].ljust(len(whole), b"\0")
    damage(files, offsets[1], torn)
    # Bytes that are zero anyway are not missed.
    assert scan_log(files, 0).valid_to == (offsets[2] if torn == whole else offsets[1])


def test_properties_with_zeros_inside_a_page_are_no_damage() -> None:
    files, offsets = log_of(10, 10, properties=b"a\x01b\0\0c\x02d\x01\0\0\0e")
    assert scan_log(files, 0, page_bytes=512).valid_to == offsets[2]


def test_without_the_crc_a_changed_body_passes() -> None:
    files, offsets = log_of(100, 100)
    damage(files, offsets[0] + 90, b"y")
    assert scan_log(files, 0, check_crc=False).valid_to == offsets[2]


def test_a_scan_of_no_files_is_empty() -> None:
    disk = new_disk()
    log = CommitLog(disk, DirectoryNames(disk), replace(SMALL))
    result = scan_log(log.files, 0)
    assert (result.valid_to, result.records, result.last_store_ms) == (0, 0, TimestampMs(0))


def test_pages_are_counted_from_the_start_of_a_file() -> None:
    # Files whose size is not a multiple of the page: the pages of the second one lie elsewhere in the log.
    config = replace(SMALL, log_file_bytes=4096 + 100)
    store = started(new_disk(), config)
    put(store, message(body=bytes(3900)))
    second = put(store, message(body=b"x", properties=b"name\x01" + b"v" * 2000), at(1))
    assert second.physical_offset == 4196
    files = store.parts.log.files
    damage(files, 4196 + 512, bytes(512))
    assert scan_log(files, 0, page_bytes=512).valid_to == 4196


def test_a_blank_of_another_length_is_torn_and_ends_the_log() -> None:
    files, offsets = log_of(3000, 3000)
    end = offsets[0] + 91 + 3000 + 6 + 3
    damage(files, end, (7).to_bytes(4, "big"))
    result = scan_log(files, 0)
    assert result.valid_to == end
    assert result.stopped_by is not None
    assert result.stopped_by.field == "blank record"


def test_a_header_that_has_lost_a_whole_page_is_torn() -> None:
    host = HostAddress(bytes(range(1, 17)), 1)
    files, offsets = log_of(200, 200, born_host=host, store_host=host)
    page = -(-(offsets[1] + 40) // 32) * 32  # after the fields that are checked, before the body: its CRC still fits
    assert page + 32 <= offsets[1] + 112 - 4
    assert scan_log(files, 0, page_bytes=32).valid_to == offsets[2]
    damage(files, page, bytes(32))
    assert scan_log(files, 0, page_bytes=32).valid_to == offsets[1]
