from __future__ import annotations

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from refmq.errors import CorruptRecord, UsageError, WireError
from refmq.protocol._bytes import ByteReader, check_range, encode_utf8
from tests.protocol.strategies import int16, int32, int64


def reads_what_was_packed(small: int, medium: int, large: int, text: str) -> None:
    raw = text.encode()
    data = struct.pack(">bhiqi", -1, small, medium, large, len(raw)) + raw
    reader = ByteReader(b"?" + data + b"?", start=1, end=1 + len(data))
    assert [reader.int8("a"), reader.int16("b"), reader.int32("c"), reader.int64("d")] == [-1, small, medium, large]
    assert reader.text(reader.length(4, "e", 1000), "f") == text
    assert reader.remaining == 0
    with pytest.raises(WireError):
        reader.take(1, "beyond")


@given(int16, int32, int64, st.text(st.characters(exclude_categories=["Cs"]), max_size=20))
def test_fields_are_read_one_after_the_other_and_never_beyond_the_end(
    small: int, medium: int, large: int, text: str
) -> None:
    reads_what_was_packed(small, medium, large, text)


def test_the_property_catches_a_reader_that_goes_beyond_its_end(monkeypatch: pytest.MonkeyPatch) -> None:
    def careless(reader: ByteReader, size: int, field: str) -> int:
        reader.position += size
        return reader.position - size

    monkeypatch.setattr(ByteReader, "_advance", careless)
    with pytest.raises(pytest.fail.Exception):
        reads_what_was_packed(1, 2, 3, "x")


@pytest.mark.parametrize("size", [1, 2, 4])
def test_a_length_is_compared_with_the_limit_and_with_what_is_there(size: int) -> None:
    data = (3).to_bytes(size, "big") + b"abc"
    assert ByteReader(data).length(size, "length", 3) == 3
    with pytest.raises(WireError, match="length at byte offset 100 should be 0 to 2 but is 3"):
        ByteReader(data, base=100).length(size, "length", 2)
    with pytest.raises(WireError, match="0 to 2 but is 3"):
        ByteReader(data[:-1]).length(size, "length", 1000)
    with pytest.raises(WireError, match="but is -1"):
        ByteReader(b"\xff" * 4).length(size, "length", 1000)


def test_errors_tell_the_offset_and_have_the_class_that_was_asked_for() -> None:
    reader = ByteReader(b"ab\xffd", base=10, error=CorruptRecord)
    with pytest.raises(CorruptRecord) as caught:
        reader.text(4, "text")
    assert caught.value.offset == 12
    with pytest.raises(WireError, match="number at byte offset 7 should be 8 bytes but is only 2 bytes before the end"):
        ByteReader(b"ab", base=7).int64("number")


def test_what_does_not_fit_is_the_callers_mistake() -> None:
    assert check_range(5, 0, 5, "x") == 5
    with pytest.raises(UsageError, match="x must be from 0 to 5; 6 does not fit"):
        check_range(6, 0, 5, "x")
    assert encode_utf8("é", "x") == b"\xc3\xa9"
    with pytest.raises(UsageError, match="half a surrogate pair"):
        encode_utf8("\ud800", "x")
