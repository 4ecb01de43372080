from __future__ import annotations

import dataclasses
import zlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from refmq.errors import WireError
from refmq.protocol.bodies import (
    RegisterBrokerBody,
    decode_register_broker_body,
    encode_register_broker_body,
)
from refmq.protocol.bodies import registration as registration_module
from refmq.protocol.record import body_crc
from tests.protocol.bodies.samples import (
    T1,
    TOPICS,
)

COMPRESSED = bytes.fromhex(
    "78da63606050af564ace2fcd2b492d52b232d7512ac9cc4d2d2e49cc2d50b232343740805a0606064620160e31543001423385604f3f771fd7"
    "f8104777a03053742c00d5091139"
)


def test_the_compressed_registration_of_java_decodes_and_encodes_to_the_same_bytes() -> None:
    body = RegisterBrokerBody(topic_config_serialize_wrapper=TOPICS)
    assert decode_register_broker_body(COMPRESSED, compressed=True) == body
    assert encode_register_broker_body(body, compressed=True) == COMPRESSED
    assert body_crc(COMPRESSED) == 1395831088
    assert decode_register_broker_body(encode_register_broker_body(body)) == body


def inflated(*parts: bytes | int) -> bytes:
    raw = b"".join(
        part.to_bytes(4, "big", signed=True) if isinstance(part, int) else len(part).to_bytes(4, "big") + part
        for part in parts
    )
    return zlib.compress(raw)


DATA_VERSION = b'{"counter":7,"stateVersion":0,"timestamp":1700000000000}'


def test_the_compressed_registration_of_5_3_3_is_read() -> None:
    raw = inflated(DATA_VERSION, 1, b'T1 4 4 6 SINGLE_TAG {"+a":"b c"}', b'["10.0.0.1:1"]', 1, b"{}")
    body = decode_register_broker_body(raw, compressed=True)
    (topic,) = body.topic_config_serialize_wrapper.topic_config_table.values()
    assert topic == dataclasses.replace(T1, attributes={"+a": "b c"})
    assert body.filter_server_list == ("10.0.0.1:1",)


BAD_REGISTRATIONS: dict[str, tuple[bytes, str]] = {
    "not zlib": (b"hello", "body"),
    "cut off": (COMPRESSED[:-8], "body"),
    "four words": (inflated(DATA_VERSION, 1, b"T1 4 4 6", b"[]"), "topic"),
    "no number": (inflated(DATA_VERSION, 1, b"T1 x 4 6 SINGLE_TAG", b"[]"), "topic"),
    "too large": (inflated(DATA_VERSION, 1, b"T1 9999999999 4 6 SINGLE_TAG", b"[]"), "topic"),
    "unknown filter": (inflated(DATA_VERSION, 1, b"T1 4 4 6 NO_TAG", b"[]"), "topic"),
    "forged count": (inflated(DATA_VERSION, 2**31 - 1, b"T1 4 4 6 SINGLE_TAG", b"[]"), "topicCount"),
    "negative count": (inflated(DATA_VERSION, -1), "topicCount"),
    "servers no array": (inflated(DATA_VERSION, 0, b"{}"), "filterServerList"),
    "servers no strings": (inflated(DATA_VERSION, 0, b"[1]"), "filterServerList"),
    "more": (inflated(DATA_VERSION, 0, b"[]", 0, 0), "body"),
}


@pytest.mark.parametrize(("data", "field"), BAD_REGISTRATIONS.values(), ids=list(BAD_REGISTRATIONS))
def test_a_bad_registration_is_an_error(data: bytes, field: str) -> None:
    with pytest.raises(WireError) as caught:
        decode_register_broker_body(data, compressed=True)
    assert caught.value.field == field


def test_a_stream_that_inflates_without_end_is_stopped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registration_module, "INFLATED_MAX", 1000)
    with pytest.raises(WireError, match="more than 1000 bytes inflated"):
        decode_register_broker_body(zlib.compress(bytes(2000)), compressed=True)


@given(st.binary(max_size=80), st.booleans())
def test_any_bytes_are_a_registration_or_an_error(data: bytes, wrapped: bool) -> None:
    raw = zlib.compress(data) if wrapped else data
    with pytest.raises(WireError):
        decode_register_broker_body(raw, compressed=True)
