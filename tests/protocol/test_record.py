"""Golden bytes of the 4.9.8 store, and that decoding and encoding undo each other."""

from __future__ import annotations

import struct
import zlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from refmq.errors import CorruptRecord, UsageError, WireError
from refmq.model.ids import HostAddress, PhysicalOffset, QueueOffset, TimestampMs
from refmq.protocol import record as record_module
from refmq.protocol.record import (
    BatchedMessage,
    Record,
    body_crc,
    concatenate_properties,
    decode_batch,
    decode_properties,
    decode_record,
    decode_records,
    encode_batch,
    encode_properties,
    encode_record,
    message_id,
    parse_message_id,
    string_hash,
)

GOLDEN = bytes.fromhex(
    """
    00000087 daa320a7 060bb6a6 00000000 00000007 0000000000000000 0000000000000000
    00000000 0000018bcfe5687b 0a010203 00009c41 000001a1e21f7986 0a090807 00002a9f
    00000000 0000000000000000 00000006 626f64792d30 06 546f70696341 0020
    544147530174616730 02 4b455953016b30206b6b 02 554e49515f4b4559015530
    """
)
GOLDEN_RECORD = Record(
    topic="TopicA",
    queue_id=0,
    queue_offset=QueueOffset(0),
    physical_offset=PhysicalOffset(0),
    flag=7,
    sys_flag=0,
    born_timestamp_ms=TimestampMs(1700000000123),
    born_host=HostAddress(bytes((10, 1, 2, 3)), 40001),
    store_timestamp_ms=TimestampMs(1794795075974),
    store_host=HostAddress(bytes((10, 9, 8, 7)), 10911),
    reconsume_times=0,
    prepared_transaction_offset=0,
    body=b"body-0",
    properties=b"TAGS\x01tag0\x02KEYS\x01k0 kk\x02UNIQ_KEY\x01U0",
)


def test_the_golden_record_is_encoded_and_decoded_byte_for_byte() -> None:
    assert encode_record(GOLDEN_RECORD) == GOLDEN
    assert decode_record(GOLDEN) == GOLDEN_RECORD
    assert GOLDEN_RECORD.size_bytes == len(GOLDEN) == 135
    assert GOLDEN_RECORD.message_id == "0A09080700002A9F0000000000000000"
    assert decode_properties(GOLDEN_RECORD.properties) == {"TAGS": "tag0", "KEYS": "k0 kk", "UNIQ_KEY": "U0"}


def test_golden_hashes_and_crcs() -> None:
    assert body_crc(b"body-0") == 0x060BB6A6
    assert body_crc(b"") == 0
    assert body_crc(b"123456789") == 0x4BF43926
    assert string_hash("tag0") == 0x003633D6
    assert string_hash("tg") == 0xE73
    assert string_hash("TagA") == 2598919
    assert string_hash("polygenelubricants") == -(2**31)
    assert abs(string_hash("TopicA#U0")) == 1903241332
    assert string_hash("") == 0
    # Outside the basic plane a character counts as its two surrogates: U+1F600 is D83D DE00.
    assert string_hash("\U0001f600") == 31 * 0xD83D + 0xDE00


hosts = st.builds(
    HostAddress,
    st.one_of(st.binary(min_size=4, max_size=4), st.binary(min_size=16, max_size=16)),
    st.integers(0, 65535),
)
int32 = st.integers(-(2**31), 2**31 - 1)
int64 = st.integers(-(2**63), 2**63 - 1)
topics = st.text(max_size=40).filter(lambda topic: len(topic.encode()) <= 127)


@st.composite
def records(draw: st.DrawFn) -> Record:
    born, store = draw(hosts), draw(hosts)
    sys_flag = draw(st.integers(0, 0xF)) | (0x10 if born.is_ipv6 else 0) | (0x20 if store.is_ipv6 else 0)
    return Record(
        topic=draw(topics),
        queue_id=draw(int32),
        queue_offset=QueueOffset(draw(int64)),
        physical_offset=PhysicalOffset(draw(int64)),
        flag=draw(int32),
        sys_flag=sys_flag,
        born_timestamp_ms=TimestampMs(draw(int64)),
        born_host=born,
        store_timestamp_ms=TimestampMs(draw(int64)),
        store_host=store,
        reconsume_times=draw(int32),
        prepared_transaction_offset=draw(int64),
        body=draw(st.binary(max_size=200)),
        properties=draw(st.binary(max_size=200)),
    )


def comes_back(record: Record, before: bytes, behind: bytes) -> None:
    data = encode_record(record)
    assert len(data) == record.size_bytes
    assert decode_record(before + data + behind, len(before)) == record


@given(records(), st.binary(max_size=20), st.binary(max_size=20))
def test_decoding_what_was_encoded_gives_it_back(record: Record, before: bytes, behind: bytes) -> None:
    comes_back(record, before, behind)


def one_bit_is_noticed(record: Record, at: int, bit: int) -> None:
    """A flipped bit makes the record unreadable or another one; it never goes unseen and never moves a length."""
    encoded = bytearray(encode_record(record))
    encoded[at % len(encoded)] ^= 1 << bit
    try:
        found = decode_record(bytes(encoded))
    except CorruptRecord:
        return
    assert found != record
    assert found.size_bytes == len(encoded)


@given(records(), st.integers(0), st.integers(0, 7))
def test_a_damaged_record_is_refused_or_keeps_its_lengths(record: Record, at: int, bit: int) -> None:
    one_bit_is_noticed(record, at, bit)


def decoding_is_total(data: bytes) -> None:
    try:
        record = decode_record(data)
    except CorruptRecord:
        return
    assert record.size_bytes <= len(data)


@given(st.binary(max_size=300))
def test_any_bytes_give_a_record_or_a_decode_error(data: bytes) -> None:
    decoding_is_total(data)


# Broken codecs that the properties above must catch.


def test_the_round_trip_catches_hosts_of_the_wrong_size(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(record_module, "host_flags", lambda sys_flag, born, store: sys_flag & ~0x30)
    ipv6 = HostAddress(bytes(16), 1)
    with pytest.raises((AssertionError, CorruptRecord)):
        comes_back(GOLDEN_RECORD._replace(born_host=ipv6, sys_flag=0x10), b"", b"")


def test_the_round_trip_catches_a_checksum_with_its_highest_bit(monkeypatch: pytest.MonkeyPatch) -> None:
    """The CRC of `a` has the highest bit set, and the field of a record has a sign: Java masks it away."""
    monkeypatch.setattr(record_module, "body_crc", zlib.crc32)
    with pytest.raises(UsageError, match="does not fit"):
        comes_back(GOLDEN_RECORD._replace(body=b"a"), b"", b"")


def test_damage_catches_a_decoder_that_does_not_look_at_the_checksum(monkeypatch: pytest.MonkeyPatch) -> None:
    """A bit of the checksum itself changes nothing that the record says, so only the check can see it."""
    genuine = decode_record
    monkeypatch.setitem(one_bit_is_noticed.__globals__, "decode_record", lambda data: genuine(data, check_crc=False))
    with pytest.raises(AssertionError):
        one_bit_is_noticed(GOLDEN_RECORD, 9, 0)


def test_totality_catches_a_decoder_that_trusts_a_length(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(record_module, "RECORD_BYTES_MIN", 0)
    with pytest.raises(struct.error):
        decoding_is_total(b"\x00")


def test_the_batch_property_catches_a_size_without_its_own_field(monkeypatch: pytest.MonkeyPatch) -> None:
    genuine = record_module._BATCHED

    class Short:
        size = genuine.size
        unpack_from = staticmethod(genuine.unpack_from)

        @staticmethod
        def pack(size: int, *rest: int) -> bytes:
            return genuine.pack(size - 4, *rest)

    monkeypatch.setattr(record_module, "_BATCHED", Short)
    message = BatchedMessage(0, b"body", b"K\x01v")
    with pytest.raises(WireError):
        decode_batch(encode_batch((message,)))


@pytest.mark.parametrize(
    ("at", "change", "field"),
    [
        (0, b"\x00\x00\x00\x86", "properties length"),
        (0, b"\x00\x00\x00\x88", "total size"),
        (0, b"\xff\xff\xff\xff", "total size"),
        (4, b"\xcb\xd4\x31\x94", "magic"),
        (8, b"\x01", "body crc"),
        (36, b"\x00\x00\x00\x10", "body length"),
        (84, b"\xff\xff\xff\xff", "body length"),
        (84, b"\x00\x00\x01\x00", "body length"),
        (88, b"B", "body crc"),
        (94, b"\xff", "topic length"),
        (94, b"\x7f", "topic length"),
        (95, b"\xff", "topic"),
        (101, b"\x80\x00", "properties length"),
        (101, b"\x00\x21", "properties length"),
    ],
)
def test_every_length_and_checksum_is_checked(at: int, change: bytes, field: str) -> None:
    damaged = GOLDEN[:at] + change + GOLDEN[at + len(change) :]
    with pytest.raises(CorruptRecord) as caught:
        decode_record(damaged, base=1000)
    assert caught.value.field == field
    assert caught.value.offset >= 1000


def test_a_record_of_5x_with_a_long_topic_length_is_read() -> None:
    data = bytearray(GOLDEN)
    data[4:8] = bytes.fromhex("daa320ab")
    data[94:95] = b"\x00\x06"
    data[0:4] = (136).to_bytes(4, "big")
    assert decode_record(bytes(data)) == GOLDEN_RECORD


def test_what_does_not_fit_its_length_field_is_refused() -> None:
    with pytest.raises(UsageError):
        encode_record(GOLDEN_RECORD._replace(topic="t" * 128))
    with pytest.raises(UsageError):
        encode_record(GOLDEN_RECORD._replace(properties=b"p" * 32768))


def test_records_of_a_response_are_decoded_one_by_one() -> None:
    assert list(decode_records(GOLDEN * 3)) == [GOLDEN_RECORD] * 3
    with pytest.raises(WireError):
        list(decode_records(GOLDEN + GOLDEN[:-1]))


def test_properties_without_name_or_value_are_dropped_and_later_ones_win() -> None:
    assert decode_properties(b"a\x01b\x02\x01x\x02c\x01\x02d\x02a\x01z") == {"a": "z"}
    assert decode_properties(b"") == {}
    assert decode_properties(b"a\x01b\x01c\x02") == {"a": "b\x01c"}


@given(
    st.dictionaries(
        st.text(st.characters(exclude_characters="\x01\x02", exclude_categories=["Cs"]), min_size=1, max_size=5),
        st.text(st.characters(exclude_characters="\x01\x02", exclude_categories=["Cs"]), min_size=1, max_size=5),
        max_size=5,
    ),
    st.booleans(),
)
def test_properties_survive_their_wire_form(properties: dict[str, str], trailing: bool) -> None:
    encoded = encode_properties(properties)
    assert decode_properties(encoded) == properties
    added = concatenate_properties(encoded + (b"\x02" if trailing and encoded else b""), b"CLUSTER\x01c")
    assert decode_properties(added) == {**properties, "CLUSTER": "c"}


@given(hosts, int64)
def test_a_message_id_says_where_the_message_is(host: HostAddress, offset: int) -> None:
    assert parse_message_id(message_id(host, offset)) == (host, offset)


@pytest.mark.parametrize("text", ["", "0A", "zz" * 16, "0A" * 17, "0a " * 16])
def test_a_wrong_message_id_is_refused(text: str) -> None:
    with pytest.raises(WireError):
        parse_message_id(text)


batched = st.builds(BatchedMessage, int32, st.binary(max_size=50), st.binary(max_size=50))


@given(st.lists(batched, max_size=5).map(tuple))
def test_a_batch_survives_its_wire_form(messages: tuple[BatchedMessage, ...]) -> None:
    assert decode_batch(encode_batch(messages)) == messages


@given(st.binary(max_size=100))
def test_any_bytes_are_a_batch_or_a_wire_error(data: bytes) -> None:
    try:
        messages = decode_batch(data)
    except WireError:
        return
    assert len(encode_batch(messages)) == len(data)
