"""Records, batches, properties and hashes in C against the reference: same values, same refusals, for valid bytes,
damaged ones and random ones."""

from __future__ import annotations

import struct
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import refmq_fast
from refmq.errors import DecodeError
from refmq.model.fingerprint import message_fingerprint
from refmq.model.ids import HostAddress, PhysicalOffset, QueueOffset, TimestampMs
from refmq.protocol import record as reference
from refmq.store import scan
from refmq.store.append import unique_key
from refmq.store.index_file import key_hash

if refmq_fast.AVAILABLE:
    from refmq_fast import _native

pytestmark = [
    pytest.mark.skipif(not refmq_fast.AVAILABLE, reason=f"extension is off: {refmq_fast.REASON}"),
    pytest.mark.extension,
]

I8, I16, I32, I64 = (st.integers(-(1 << bits - 1), (1 << bits - 1) - 1) for bits in (8, 16, 32, 64))
HOSTS = st.builds(HostAddress, st.one_of(st.binary(min_size=4, max_size=4), st.binary(min_size=16, max_size=16)), I32)
NAMES = st.sampled_from(["TAGS", "KEYS", "UNIQ_KEY", "DELAY", "x", "", "größe"])
VALUES = st.one_of(st.sampled_from(["", "1", "a b", " ", "𝄞", "x\x01y"]), st.text(max_size=6))
PIECES = st.one_of(
    st.builds(lambda name, value: f"{name}\x01{value}".encode(errors="replace"), NAMES, VALUES),
    st.binary(max_size=6),
    st.just(b"UNIQ_KEY\x01"),
)
WIRE = st.one_of(st.lists(PIECES, max_size=6).map(b"\x02".join), st.binary(max_size=40))
RECORDS = st.builds(
    reference.Record,
    topic=st.one_of(st.sampled_from(["T", "", ".", "..", "a/b", "a\0b", "größe"]), st.text(max_size=20)),
    queue_id=I32,
    queue_offset=I64.map(QueueOffset),
    physical_offset=st.one_of(I64, st.just(7)).map(PhysicalOffset),
    flag=I32,
    sys_flag=I32,
    born_timestamp_ms=I64.map(TimestampMs),
    born_host=HOSTS,
    store_timestamp_ms=I64.map(TimestampMs),
    store_host=HOSTS,
    reconsume_times=I32,
    prepared_transaction_offset=I64,
    body=st.binary(max_size=60),
    properties=WIRE,
)


@st.composite
def damaged(draw: st.DrawFn, whole: st.SearchStrategy[bytes]) -> bytes:
    """Bytes that may be whole, cut, continued, with a field of another number or a run of zeros."""
    data = bytearray(draw(whole))
    for _ in range(draw(st.integers(0, 2))):
        at = draw(st.integers(0, max(0, len(data) - 1)))
        match draw(st.integers(0, 4)):
            case 0:
                data = data[:at]
            case 1:
                data += draw(st.binary(max_size=9))
            case 2:
                data[at : at + 1] = draw(st.binary(min_size=1, max_size=1))
            case 3:
                form = draw(st.sampled_from([">i", ">h", ">b"]))
                number = draw(st.one_of(st.integers(-2, 130), I8))
                data[at : at + struct.calcsize(form)] = struct.pack(form, max(-128, min(127, number)))
            case _:
                length = draw(st.integers(0, 50))
                data[at : at + length] = bytes(len(data[at : at + length]))
    return bytes(data)


def encoded(record: reference.Record) -> bytes:
    try:
        data = reference.encode_record(record)
    except Exception:
        return b""
    if record.flag & 1 and len(record.topic.encode()) < 128:  # as 5.x writes it, with a longer length of the topic
        header = reference.read_header(data)
        at = reference.find_parts(data, 0, header).body_end
        data = struct.pack(">iI", len(data) + 1, reference.RECORD_MAGIC_V2) + data[8:at] + b"\0" + data[at:]
    return data


ANY_RECORD = st.one_of(damaged(RECORDS.map(encoded)), st.binary(max_size=140))


def outcome(call: Callable[[], Any]) -> Any:
    try:
        return call()
    except DecodeError as error:
        return type(error), error.args


class TestRecords:
    @given(ANY_RECORD, st.integers(0, 3), I32, st.booleans())
    def test_every_record_is_decoded_or_refused_alike(self, data: bytes, before: int, base: int, check: bool) -> None:
        data = bytes(before) + data

        def expected() -> Any:
            header = reference.read_header(data, before, base=base)
            found = reference.decode_record(data, before, base=base, check_crc=check)
            return tuple(header), found.topic.encode(), found.body, found.properties

        assert outcome(lambda: _native.decode_record(data, before, base, check)) == outcome(expected)

    @given(ANY_RECORD, st.integers(0, 3), st.sampled_from([0, 7, 1 << 40]), st.integers(0, 300), st.booleans())
    def test_what_a_recovery_refuses_is_the_same(
        self, data: bytes, at: int, position: int, in_file: int, check: bool
    ) -> None:
        data = bytes(at) + data
        if len(data) >= at + 36 and in_file % 3:  # a record that stands where it says, for two of three
            data = data[: at + 28] + struct.pack(">q", position) + data[at + 36 :]
        for page_bytes in (16, 64, 4096):
            fast = outcome(partial(_native.check_record, data, at, position, in_file, page_bytes, check))
            slow = partial(scan.check_record, page_bytes=page_bytes, check_crc=check)
            assert fast == outcome(partial(slow, data, at, position, in_file))

    @given(st.lists(RECORDS.map(encoded), max_size=4), st.binary(max_size=120), st.booleans())
    def test_a_scan_goes_as_far_as_there_are_sound_records(self, whole: list[bytes], rest: bytes, check: bool) -> None:
        data, position = b"", 1000
        for record in whole:
            data += record[:28] + struct.pack(">q", position + len(data)) + record[36:] if record else b""
        data += rest
        at, count, last = 0, 0, 0
        sound = partial(scan.check_record, data, page_bytes=64, check_crc=check)
        while isinstance(header := outcome(partial(sound, at, position + at, at)), reference.RecordHeader):
            at, count, last = at + header.size_bytes, count + 1, header.store_timestamp_ms
        assert refmq_fast.scan_records(data, position, 0, 64, check) == (at, count, last)


MESSAGES = st.lists(st.builds(reference.BatchedMessage, I32, st.binary(max_size=9), st.binary(max_size=9)), max_size=4)


class TestBatches:
    @given(st.one_of(damaged(MESSAGES.map(tuple).map(reference.encode_batch)), st.binary(max_size=60)))
    def test_every_batch_is_decoded_or_refused_alike(self, data: bytes) -> None:
        expected = outcome(lambda: list(map(tuple, reference.decode_batch(data))))
        assert outcome(lambda: _native.decode_batch(data)) == expected


class TestTexts:
    @given(st.one_of(st.binary(max_size=12), st.text(max_size=8).map(str.encode)))
    @example(b"\xf0\x90\x28\xed\xa0\x80\xc0\x80\xf4\x90\x80\x80\xe1\x80")
    @example(b"\xff\xc1\xf8\x80\xf0\x9d\x84\x9e\xe2\x82\xac")
    def test_what_is_not_utf8_is_replaced_alike(self, data: bytes) -> None:
        try:
            data.decode()
            valid_to = len(data)
        except UnicodeDecodeError as error:
            valid_to = error.start
        text = data.decode("utf-8", "replace")
        assert _native.replace_utf8(data) == (text.encode(), valid_to)
        assert _native.string_hash(data) == reference.string_hash(text)

    @pytest.mark.parametrize(
        ("text", "value"), [("tag0", 0x3633D6), ("TagA", 2598919), ("polygenelubricants", -(2**31)), ("", 0)]
    )
    def test_known_hashes_come_out(self, text: str, value: int) -> None:
        assert _native.string_hash(text.encode()) == value

    @given(st.text(max_size=8), st.text(max_size=8))
    @example("", "olygenelubricants")
    def test_keys_are_hashed_alike(self, topic: str, key: str) -> None:
        topic, key = topic.encode(errors="replace").decode(), key.encode(errors="replace").decode()
        assert _native.key_hash(topic.encode(), key.encode()) == key_hash(topic, key)

    @given(WIRE, st.binary(max_size=9))
    def test_the_same_properties_are_found(self, wire: bytes, body: bytes) -> None:
        found = reference.decode_properties(wire)
        *known, unique = _native.find_properties(wire)
        texts = [value if value is None else value.decode("utf-8", "replace") for value in known]
        assert texts == [found.get(name) for name in ("TAGS", "KEYS", "UNIQ_KEY", "DELAY")]
        assert message_fingerprint(unique, body) == message_fingerprint(unique_key(wire), body)

    @given(HOSTS, I64)
    def test_a_message_id_names_host_and_place(self, host: HostAddress, position: int) -> None:
        text = reference.message_id(host, position)
        assert _native.message_id(host.ip, host.port, position) == text
        assert _native.parse_message_id(text) == (host.ip, host.port, position)
        assert _native.parse_message_id(text.lower()) == (host.ip, host.port, position)

    @pytest.mark.parametrize("text", ["", "0A", "0G090807000026F0000000000000000A", "0" * 31, "0" * 33, "0" * 57])
    def test_what_is_no_message_id_is_refused(self, text: str) -> None:
        assert _native.parse_message_id(text) is None
