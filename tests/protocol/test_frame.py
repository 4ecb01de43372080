"""Frames: any split of the bytes, any bytes at all, and the frames that Java writes."""

from __future__ import annotations

import itertools
import re
import struct
import tracemalloc
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from refmq.errors import UsageError, WireError
from refmq.protocol import frame, header_binary, header_json
from refmq.protocol._bytes import ByteReader
from refmq.protocol.command import LanguageCode, RemotingCommand, SerializeType
from refmq.protocol.frame import FRAME_LENGTH_MAX, HEADER_LENGTH_MAX, FrameDecoder, decode, encode, encode_head
from tests.protocol.strategies import commands

# Produced by the protocol classes of RocketMQ 4.9.8.
HEART_BEAT = (
    bytes.fromhex("0000006600000060")
    + b'{"code":34,"flag":0,"language":"JAVA","opaque":5,"serializeTypeCurrentRPC":"JSON","version":409}'
    + b"{}"
)


GET_ROUTE = bytes.fromhex(
    "00000026 01000022 0069 00 0199 00000006 00000000 00000000 0000000d 0005 746f706963 00000002 5431"
)


GOLDEN = {
    "heart beat": (
        HEART_BEAT,
        RemotingCommand(code=34, opaque=5, language=LanguageCode.JAVA, version=409, body=b"{}"),
    ),
    "route request": (
        GET_ROUTE,
        RemotingCommand(
            code=105,
            opaque=6,
            language=LanguageCode.JAVA,
            version=409,
            ext_fields={"topic": "T1"},
            serialize_type=SerializeType.ROCKETMQ,
        ),
    ),
}


@pytest.mark.parametrize(("raw", "command"), GOLDEN.values(), ids=list(GOLDEN))
def test_frames_of_java_decode_and_encode_to_the_same_bytes(raw: bytes, command: RemotingCommand) -> None:
    assert decode(raw) == command
    assert encode(command) == raw


def round_trips(command: RemotingCommand) -> None:
    assert decode(encode(command)) == command


def any_split_gives_the_same(sent: list[RemotingCommand], cuts: list[int]) -> None:
    stream = b"".join(encode(command) for command in sent)
    places = sorted({0, len(stream), *(cut % (len(stream) + 1) for cut in cuts)})
    decoder = FrameDecoder()
    received = []
    for start, end in itertools.pairwise(places):
        received += list(decoder.feed(stream[start:end]))
    decoder.end()
    assert received == sent
    assert decoder.buffered == 0


def decoding_is_total(data: bytes) -> None:
    decoder = FrameDecoder()
    offset = 0
    try:
        for command in decoder.feed(data):
            encode(command)  # whatever was accepted can be written again
        decoder.end()
    except WireError as error:
        offset = error.offset
    assert 0 <= offset <= len(data)


def forged_lengths_cost_nothing() -> None:
    """A few bytes that claim gigabytes must not make us ask for them."""
    tracemalloc.start()
    try:
        for raw, _, _ in FORGED.values():
            with pytest.raises(WireError):
                list(FrameDecoder().feed(raw))
        assert tracemalloc.get_traced_memory()[1] < 1_000_000
    finally:
        tracemalloc.stop()


@given(commands())
def test_decoding_what_was_encoded_gives_it_back(command: RemotingCommand) -> None:
    round_trips(command)


@given(st.lists(commands(), max_size=4), st.lists(st.integers(0, 10_000), max_size=12))
def test_any_split_of_the_bytes_gives_the_same_commands(sent: list[RemotingCommand], cuts: list[int]) -> None:
    any_split_gives_the_same(sent, cuts)


@given(st.lists(commands(), min_size=1, max_size=2))
def test_one_byte_at_a_time_gives_the_same_commands(sent: list[RemotingCommand]) -> None:
    any_split_gives_the_same(sent, list(range(2000)))


@given(st.binary(max_size=200))
def test_any_bytes_are_commands_or_an_error(data: bytes) -> None:
    decoding_is_total(data)


@given(st.integers(0, 1), st.binary(max_size=120), st.binary(max_size=10))
def test_any_bytes_in_a_header_are_a_command_or_an_error(kind: int, header: bytes, body: bytes) -> None:
    decoding_is_total(struct.pack(">iI", 4 + len(header) + len(body), kind << 24 | len(header)) + header + body)


@given(commands(), st.data())
def test_a_damaged_frame_is_a_command_or_an_error(command: RemotingCommand, data: st.DataObject) -> None:
    damaged = bytearray(encode(command))
    for _ in range(data.draw(st.integers(1, 3))):
        damaged[data.draw(st.integers(0, len(damaged) - 1))] = data.draw(st.integers(0, 255))
    decoding_is_total(bytes(damaged[: data.draw(st.integers(0, len(damaged)))]))


SAMPLE = RemotingCommand(code=11, opaque=7, remark="r", ext_fields={"k": "v"}, body=b"body")


def test_the_round_trip_catches_an_encoder_that_forgets_a_field(monkeypatch: pytest.MonkeyPatch) -> None:
    genuine = header_json.encode_json_header
    monkeypatch.setattr(frame, "encode_json_header", lambda command: genuine(command.with_opaque(0)))
    with pytest.raises(AssertionError):
        round_trips(SAMPLE)


def test_the_round_trip_catches_a_code_cut_to_sixteen_bits(monkeypatch: pytest.MonkeyPatch) -> None:
    """The mistake of 5.0.0 to 5.3.3: a POP request in a binary header becomes another request."""
    cut: Callable[[int, int, int, str], int] = lambda value, low, high, field: value & 0x7FFF  # noqa: E731
    monkeypatch.setattr(header_binary, "check_range", cut)
    with pytest.raises(AssertionError):
        round_trips(RemotingCommand(code=200050, serialize_type=SerializeType.ROCKETMQ))


def test_the_split_property_catches_a_decoder_that_forgets_the_rest(monkeypatch: pytest.MonkeyPatch) -> None:
    class Forgetful(FrameDecoder):
        def feed(self, data: bytes | bytearray | memoryview):  # type: ignore[no-untyped-def] # a broken decoder
            yield from super().feed(data)
            self._buffer.clear()

    monkeypatch.setitem(any_split_gives_the_same.__globals__, "FrameDecoder", Forgetful)
    with pytest.raises((AssertionError, WireError)):
        any_split_gives_the_same([SAMPLE], [10])


def test_totality_catches_a_number_that_is_not_checked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(header_json, "_INTEGER", re.compile(".*"))
    with pytest.raises(ValueError, match="invalid literal"):
        decoding_is_total(struct.pack(">iI", 16, 12) + b'{"code":"x"}')


def test_forged_lengths_cost_nothing() -> None:
    forged_lengths_cost_nothing()


def test_the_cost_property_catches_a_reader_that_trusts_a_length(monkeypatch: pytest.MonkeyPatch) -> None:
    """The mistake of 4.9.2 and before: room for the claimed length is made before it is compared with the frame."""

    genuine = ByteReader.length

    def trusting(reader: ByteReader, size: int, field: str, limit: int) -> int:
        bytearray(50_000_000)
        return genuine(reader, size, field, limit)

    monkeypatch.setattr(ByteReader, "length", trusting)
    with pytest.raises(AssertionError):
        forged_lengths_cost_nothing()


BROKEN = {
    "length too large": (struct.pack(">i", FRAME_LENGTH_MAX - 3), "length", 0),
    "length negative": (struct.pack(">i", -1), "length", 0),
    "length too small": (struct.pack(">i", 3), "length", 0),
    "unknown type": (struct.pack(">iI", 100, 2 << 24 | 10), "serializeType", 4),
    "header longer than the frame": (struct.pack(">iI", 10, 7), "headerLength", 5),
    "header longer than a header": (struct.pack(">iI", 4_000_000, HEADER_LENGTH_MAX + 1), "headerLength", 5),
    "empty header": (struct.pack(">iI", 4, 0), "header", 8),
    "not an object": (struct.pack(">iI", 6, 2) + b"[]", "header", 8),
    "not UTF-8": (struct.pack(">iI", 7, 3) + b'{"\xff', "header", 10),
    "not JSON": (struct.pack(">iI", 13, 9) + b'{"code":x', "header", 16),
    "not JSON behind letters of several bytes": (
        struct.pack(">iI", 30, 26) + '{"remark":"\u00e9\u4f53","code":x'.encode(),
        "header",
        33,
    ),
    "code not a number": (struct.pack(">iI", 17, 13) + b'{"code":true}', "code", 16),
    "code too large": (struct.pack(">iI", 23, 19) + b'{"code":2147483648}', "code", 16),
    "unknown language number": (struct.pack(">iI", 19, 15) + b'{"language":14}', "language", 20),
    "not a number of JSON": (struct.pack(">iI", 16, 12) + b'{"code":NaN}', "header", 8),
    "remark not text": (struct.pack(">iI", 16, 12) + b'{"remark":1}', "remark", 18),
    "remark half a character": (struct.pack(">iI", 23, 19) + b'{"remark":"\\uD83D"}', "remark", 18),
    "fields not an object": (struct.pack(">iI", 20, 16) + b'{"extFields":[]}', "extFields", 21),
    "field an object": (struct.pack(">iI", 26, 22) + b'{"extFields":{"k":{}}}', "extFields.k", 26),
    "field an array": (struct.pack(">iI", 26, 22) + b'{"extFields":{"k":[]}}', "extFields.k", 26),
    "code in a remark before": (struct.pack(">iI", 35, 31) + b'{"remark":"\\"code\\"","code":{}}', "code", 36),
    "field named in another": (
        struct.pack(">iI", 46, 42) + b'{"a":{"k":1},"extFields":{"k":"1","k":[]}}',
        "extFields.k",
        46,
    ),
    "field half a character": (struct.pack(">iI", 32, 28) + b'{"extFields":{"k":"\\uDE00"}}', "extFields.k", 26),
    "short binary header": (struct.pack(">iI", 24, 1 << 24 | 20) + bytes(20), "headerLength", 5),
}


FORGED = {
    "forged remark length": (
        struct.pack(">iI", 25, 1 << 24 | 21) + bytes(13) + b"\x7f\xff\xff\xff" + bytes(4),
        "remarkLength",
        21,
    ),
    "forged map length": (
        struct.pack(">iI", 25, 1 << 24 | 21) + bytes(17) + b"\x7f\xff\xff\xff",
        "extFieldsLength",
        25,
    ),
}


@pytest.mark.parametrize(("raw", "field", "offset"), [*BROKEN.values(), *FORGED.values()], ids=[*BROKEN, *FORGED])
def test_an_error_names_the_field_and_its_offset(raw: bytes, field: str, offset: int) -> None:
    with pytest.raises(WireError) as caught:
        list(FrameDecoder().feed(raw))
    assert (caught.value.field, caught.value.offset) == (field, offset)


def test_a_cut_frame_is_an_error_at_the_end() -> None:
    decoder = FrameDecoder()
    assert list(decoder.feed(HEART_BEAT[:-1])) == []
    with pytest.raises(WireError, match="before the end"):
        decoder.end()


def test_good_frames_before_a_bad_one_are_given_and_the_error_stays() -> None:
    decoder = FrameDecoder()
    received = decoder.feed(HEART_BEAT + HEART_BEAT + b"\xff\xff\xff\xff")
    assert [next(received).opaque, next(received).opaque] == [5, 5]
    with pytest.raises(WireError):
        next(received)
    with pytest.raises(WireError):
        list(decoder.feed(HEART_BEAT))
    with pytest.raises(WireError):
        decoder.end()
    assert decoder.buffered == 0


def test_a_limit_that_no_frame_could_keep_is_the_callers_mistake() -> None:
    with pytest.raises(UsageError):
        FrameDecoder(frame_length_max=7)


def test_a_claimed_length_costs_nothing_until_the_bytes_come() -> None:
    decoder = FrameDecoder()
    assert list(decoder.feed(struct.pack(">iI", FRAME_LENGTH_MAX - 4, 10))) == []
    assert decoder.buffered == 8


def test_frames_that_were_given_are_not_kept() -> None:
    frame_bytes = encode(RemotingCommand(code=1, opaque=1, body=bytes(10_000)))
    decoder = FrameDecoder()
    tracemalloc.start()
    try:
        for _ in range(300):
            assert len(list(decoder.feed(frame_bytes))) == 1
        assert tracemalloc.get_traced_memory()[0] < 300_000
    finally:
        tracemalloc.stop()


def test_the_longest_frame_passes_and_one_byte_more_does_not() -> None:
    head = len(encode_head(SAMPLE, 0))
    longest = RemotingCommand(code=11, opaque=7, remark="r", ext_fields={"k": "v"}, body=bytes(1000 - head))
    assert decode(encode(longest, frame_length_max=1000), frame_length_max=1000) == longest
    with pytest.raises(UsageError):
        encode(longest, frame_length_max=999)
    with pytest.raises(WireError):
        decode(encode(longest), frame_length_max=999)


def test_a_value_that_the_header_cannot_hold_is_the_callers_mistake() -> None:
    for bad in (
        RemotingCommand(code=2**31),
        RemotingCommand(code=200050, serialize_type=SerializeType.ROCKETMQ),
        RemotingCommand(code=1, remark="\ud800"),
        RemotingCommand(code=1, remark="\ud800", serialize_type=SerializeType.ROCKETMQ),
        RemotingCommand(code=1, ext_fields={"k" * 2**15: "v"}, serialize_type=SerializeType.ROCKETMQ),
        RemotingCommand(code=1, remark="x" * HEADER_LENGTH_MAX),
    ):
        with pytest.raises(UsageError):
            encode(bad)


def test_two_frames_are_not_one() -> None:
    with pytest.raises(WireError, match="exactly one frame"):
        decode(HEART_BEAT + HEART_BEAT)
