"""Real frames with a few bytes changed, read all the way down: each layer gives a value or a ``WireError``."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from refmq.errors import WireError
from refmq.protocol import bodies, record
from refmq.protocol.bodies import decode_body, decode_register_broker_body, encode_body
from refmq.protocol.codes import RequestCode
from refmq.protocol.command import RemotingCommand
from refmq.protocol.compression import decompress
from refmq.protocol.frame import decode, encode
from refmq.protocol.headers import RegisterBrokerRequest, decode_header, decode_send_header, encode_header
from refmq.protocol.properties import parse_properties
from refmq.protocol.record import decode_batch, decode_properties, decode_records, encode_batch, encode_record
from refmq.protocol.registry import ROWS
from tests.protocol.test_captured import FRAMES, SEND_CODES

ROW = {int(row.code): row for row in ROWS}


def read_all_the_way(code: int, raw: bytes) -> int:
    """Read a frame, its header and its body as those of request ``code``; write again what was read.

    Returns how many layers could be read, so that a test can see that it does get there.
    """
    layers = 0
    try:
        command = decode(raw)
        layers += 1
        encode(command)
        header = read_header(code, command)
        layers += 1
        read_body(code, command, header)
        layers += 1
    except WireError:
        pass
    return layers


def read_header(code: int, command: RemotingCommand) -> Any:
    row = ROW[code]
    if code in SEND_CODES and not command.is_response:
        send = decode_send_header(dataclasses.replace(command, code=code))
        decode_properties((send.properties or "").encode())
        return send
    header_type: Any = row.response_header if command.is_response else row.header
    if header_type is None:
        return None
    header = decode_header(header_type, command)
    encode_header(header)
    return header


def read_body(code: int, command: RemotingCommand, header: Any) -> None:
    row = ROW[code]
    expected: Any = row.response_body if command.is_response else row.body
    if code == RequestCode.REGISTER_BROKER and command.is_response and not command.body:
        return  # the table comes only when there is one
    if expected is bodies.RegisterBrokerBody:
        assert isinstance(header, RegisterBrokerRequest)
        encode_body(decode_register_broker_body(command.body, compressed=header.compressed))
    elif isinstance(expected, type):
        encode_body(decode_body(expected, command.body))
    elif expected == "batch":
        encode_batch(decode_batch(command.body))
    elif expected in ("messages", "one message"):
        for found in decode_records(command.body):
            encode_record(found)
            decode_properties(found.properties)
            decompress(found.body, found.sys_flag)
    elif expected == "`key=value` lines":
        parse_properties(command.body.decode("utf-8", "replace"))


@given(
    st.sampled_from(range(len(FRAMES))),
    st.lists(st.tuples(st.integers(0), st.integers(0, 255)), max_size=4),
    st.integers(0, 40),
)
@example(0, [], 0)
def test_a_damaged_frame_is_read_or_refused(number: int, changes: list[tuple[int, int]], cut: int) -> None:
    captured = FRAMES[number]
    raw = bytearray(captured.frame)
    for at, value in changes:
        raw[at % len(raw)] = value
    if cut:
        # The frame is as short as it says, so that what is inside is cut and not the frame.
        raw = raw[: max(8, len(raw) - cut)]
        raw[:4] = (len(raw) - 4).to_bytes(4, "big")
    read_all_the_way(captured.request_code, bytes(raw))


def test_undamaged_frames_are_read_to_the_last_layer() -> None:
    """Answers without success carry neither header nor body; everything else is read completely."""
    complete = [each for each in FRAMES if each.kind != "response" or each.response_code == 0]
    assert len(complete) > 250
    assert [str(each) for each in complete if read_all_the_way(each.request_code, each.frame) < 3] == []


def test_the_property_catches_a_decoder_that_lets_another_error_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the check of its size a cut record reads beyond its end."""
    pulled = next(each for each in FRAMES if each.request_code == 11 and each.kind == "response" and each.frame[-1])
    monkeypatch.setattr(record, "RECORD_BYTES_MIN", 0)
    body = decode(pulled.frame).body
    assert body, "the capture holds no pulled message"
    command = dataclasses.replace(decode(pulled.frame), body=body[:6])
    with pytest.raises(Exception, match="unpack_from requires a buffer"):
        read_all_the_way(11, encode(command))
