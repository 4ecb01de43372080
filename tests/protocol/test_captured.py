"""Frames that real clients and servers exchanged: we read all of them and write them back byte for byte.

Headers have one form only, whatever their serialization, so whole frames are compared. Bodies are compared by what they
say, because the order of a hash map is no form. See tests/golden/frames/README.md for how the frames were captured.
"""

from __future__ import annotations

import base64
import json
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from refmq.protocol import bodies, fastjson
from refmq.protocol.bodies.codec import JsonStyle, decode_body, encode_body
from refmq.protocol.command import SerializeType
from refmq.protocol.frame import FrameDecoder, decode, encode
from refmq.protocol.headers import decode_header, encode_header
from refmq.protocol.headers.send import decode_send_header
from refmq.protocol.registry import ROWS

FILE = Path(__file__).parent.parent / "golden" / "frames" / "captured.jsonl"
SEND_CODES = frozenset({10, 310, 320, 324, 325})
ROW = {int(row.code): row for row in ROWS}


@dataclass(frozen=True)
class Captured:
    """One line of the file."""

    request_code: int
    kind: str
    response_code: int | None
    version: int
    command: str
    frame: bytes

    def __str__(self) -> str:
        outcome = f"-{self.response_code}" if self.response_code is not None else ""
        return f"{self.request_code}-{self.kind.replace(' ', '-')}{outcome}-{self.version}"


def read_captured() -> list[Captured]:
    found = []
    for line in FILE.read_text().splitlines():
        record = json.loads(line)
        frame = base64.b64decode(record["frame"])
        found.append(
            Captured(
                record["request_code"],
                record["kind"],
                record["response_code"],
                record["version"],
                record["command"],
                frame,
            )
        )
    return found


FRAMES = read_captured()
every_frame = pytest.mark.parametrize("captured", FRAMES, ids=map(str, FRAMES))


def test_the_recording_is_there_and_broad() -> None:
    assert len(FRAMES) > 250
    requests = {each.request_code for each in FRAMES if each.kind != "response"}
    answered = {each.request_code for each in FRAMES if each.kind == "response" and each.response_code == 0}
    nameserver = {100, 101, 102, 103, 104, 105, 106, 205, 206, 216, 219, 224, 304, 311, 312, 313, 318, 319, 322, 327}
    broker = {11, 12, 14, 15, 29, 30, 31, 33, 34, 35, 36, 37, 38, 41, 42, 46, 308, 310, 314, 320, 323, 325}
    long_names = {10, 324}  # what clients send that are told not to abbreviate
    from_broker = {39, 40, 221, 307, 309, 326}
    refused = {50, 51, 53, 302, 343, 345, 351, 352, 361}  # by a broker of 4.9.7 without ACL
    assert requests >= nameserver | broker | long_names | from_broker | refused
    assert answered >= (nameserver | broker | long_names) - {15, 37, 42, 219}
    assert {SerializeType(each.frame[4]) for each in FRAMES} == set(SerializeType)
    assert {each.version for each in FRAMES} >= {407, 409, 479}


@every_frame
def test_a_captured_frame_is_read_and_written_back_byte_for_byte(captured: Captured) -> None:
    command = decode(captured.frame)
    assert encode(command) == captured.frame


@every_frame
def test_a_captured_frame_cut_anywhere_is_the_same_command(captured: Captured) -> None:
    whole = decode(captured.frame)
    decoder = FrameDecoder()
    step = max(1, len(captured.frame) // 7)
    pieces = [captured.frame[start : start + step] for start in range(0, len(captured.frame), step)]
    assert [command for piece in pieces for command in decoder.feed(piece)] == [whole]


@every_frame
def test_the_fields_of_a_captured_frame_fit_their_header_class(captured: Captured) -> None:
    command = decode(captured.frame)
    row = ROW[captured.request_code]
    if captured.kind == "response":
        header_class = row.response_header if captured.response_code == 0 else None
    else:
        header_class = row.header
    if captured.kind != "response" and captured.request_code in SEND_CODES:
        assert decode_send_header(command).topic
        return
    if header_class is None:
        return
    header: Any = decode_header(header_class, command)
    written = encode_header(header)
    # What we write back is a part of what was there, with the same text; we may add defaults that Java left out.
    for name, text in written.items():
        assert command.fields.get(name, text) == text
    assert decode_header(header_class, replace(command, ext_fields=written)) == header


def body_class_of(captured: Captured) -> type | None:
    row = ROW[captured.request_code]
    if captured.kind == "response":
        return row.response_body if isinstance(row.response_body, type) and captured.response_code == 0 else None
    return row.body if isinstance(row.body, type) else None


def plain(value: fastjson.JsonValue) -> object:
    """A parsed document without the order of its members."""
    if isinstance(value, fastjson.JsonObject):
        return {json.dumps(plain_key(key), sort_keys=True): plain(item) for key, item in value.members}
    if isinstance(value, fastjson.JsonArray):
        items = [plain(item) for item in value.items]
        return sorted(items, key=repr)
    return value


def plain_key(key: Any) -> object:
    return plain(key) if isinstance(key, fastjson.JsonObject) else str(key)


@every_frame
def test_the_body_of_a_captured_frame_fits_its_class(captured: Captured) -> None:
    command = decode(captured.frame)
    body_class = body_class_of(captured)
    if body_class is None or not command.body:
        return
    if body_class is bodies.RegisterBrokerBody:
        compressed = command.fields.get("compressed") == "true"
        value: Any = bodies.decode_register_broker_body(command.body, compressed=compressed)
        again = bodies.encode_register_broker_body(value, compressed=compressed)
        assert bodies.decode_register_broker_body(again, compressed=compressed) == value
        if compressed:
            assert again == command.body
        return
    value = decode_body(body_class, command.body)
    again = encode_body(value, style=JsonStyle.FASTJSON)
    assert decode_body(body_class, again) == value
    if captured.version < 413:  # what 5.x adds is ignored, so it is not written back
        assert plain(fastjson.parse(again)) == plain(fastjson.parse(command.body))


def test_the_comparison_sees_a_changed_byte() -> None:
    frame = FRAMES[0].frame
    command = decode(frame)
    assert encode(replace(command, opaque=command.opaque + 1)) != frame
