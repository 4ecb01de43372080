"""The binary header: empty strings, duplicates, and nothing after the map."""

from __future__ import annotations

import struct

import pytest

from refmq.errors import WireError
from refmq.protocol import frame
from refmq.protocol.command import LanguageCode, RemotingCommand, SerializeType
from refmq.protocol.frame import decode, encode

ANSWER = bytes.fromhex(
    "0000002a 01000026 0000 00 0199 00000009 00000001 00000002 6f6b 0000000f 0001 61 00000000 0001 62 00000001 78"
)


def test_an_empty_string_in_a_binary_header_is_no_string() -> None:
    command = RemotingCommand(
        code=0,
        opaque=9,
        flag=1,
        language=LanguageCode.JAVA,
        version=409,
        remark="ok",
        ext_fields={"a": "", "b": "x"},
        serialize_type=SerializeType.ROCKETMQ,
    )
    assert encode(command) == ANSWER
    assert decode(ANSWER).ext_fields == {"b": "x"}


@pytest.mark.parametrize("entries", [b"", bytes.fromhex("0001 61 00000001 62")], ids=["no map", "a map"])
def test_nothing_stands_behind_the_map_of_a_binary_header(entries: bytes) -> None:
    fixed = bytes.fromhex("0069 00 0199 00000006 00000000 00000000")
    header = fixed + struct.pack(">i", len(entries)) + entries + b"\0\x01a\0\0\0\x01b"
    raw = struct.pack(">iI", 4 + len(header), 1 << 24 | len(header)) + header
    with pytest.raises(WireError) as caught:
        decode(raw)
    assert (caught.value.field, caught.value.offset) == ("extFieldsLength", 8 + len(fixed))


def test_a_later_duplicate_wins_in_a_binary_header() -> None:
    entry = b"\x00\x01k\x00\x00\x00\x01"
    header = encode(RemotingCommand(code=1, serialize_type=SerializeType.ROCKETMQ))[8:-4]
    header += struct.pack(">i", 16) + entry + b"1" + entry + b"2"
    raw = struct.pack(">iI", 4 + len(header), 1 << 24 | len(header)) + header
    assert decode(raw).ext_fields == {"k": "2"}


def test_an_empty_duplicate_is_not_where_a_value_of_a_binary_header_stands() -> None:
    header = encode(RemotingCommand(code=1, serialize_type=SerializeType.ROCKETMQ))[8:-4]
    entries = b"\x00\x01k\x00\x00\x00\x01" + b"1" + b"\x00\x01k\x00\x00\x00\x00"
    header += struct.pack(">i", len(entries)) + entries
    command = decode(struct.pack(">iI", 4 + len(header), 1 << 24 | len(header)) + header)
    assert command.ext_fields == {"k": "1"}
    assert frame.field_offset(command, "k") == 8 + len(header) - len(entries) + 7
