"""The codec in C beside `refmq.protocol.frame`: what it reads has the same values, what is refused it never reads.

It must also say yes to what clients really send, or it would be of no use and these tests of no worth.
"""

from __future__ import annotations

import dataclasses
import gc
import itertools
import json
import random
import sys
import weakref
from types import MappingProxyType
from typing import Any, NamedTuple

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import refmq_fast
from fuzz.mutate import damaged
from refmq.errors import UsageError, WireError
from refmq.net.codec import NATIVE
from refmq.protocol import frame
from refmq.protocol.command import LanguageCode, RemotingCommand, SerializeType, request
from refmq.protocol.frame import FRAME_LENGTH_MAX, HEADER_LENGTH_MAX, FrameDecoder
from tests.protocol.strategies import commands, text
from tests.protocol.test_captured import FRAMES

pytestmark = [
    pytest.mark.skipif(not refmq_fast.AVAILABLE, reason=f"extension is off: {refmq_fast.REASON}"),
    pytest.mark.extension,
]

FIELDS_MAX = 32
"""RMQ_FIELDS_MAX of core/command.h."""


def codec() -> refmq_fast.FrameCodec[RemotingCommand]:
    assert NATIVE is not None
    return NATIVE


class Read(NamedTuple):
    """What a decoder said of a frame: equal commands may still differ in what comparing leaves out."""

    command: RemotingCommand
    header: bytes
    types: tuple[type, ...]
    end: int


def read_of(command: RemotingCommand, end: int) -> Read:
    fields = [] if command.ext_fields is None else [*command.ext_fields.items()]
    values = (*(getattr(command, field.name) for field in dataclasses.fields(command)), *itertools.chain(*fields))
    return Read(command, command.header, tuple(map(type, values)), end)


def by_reference(data: bytes, start: int = 0) -> Read | None:
    """The first frame of what begins at ``start``, or None when it is refused or incomplete."""
    decoder = FrameDecoder()
    try:
        command = next(decoder.feed(data[start:]), None)
    except WireError:
        return None
    return None if command is None else read_of(command, len(data) - decoder.buffered)


def by_codec(data: bytes, start: int = 0) -> Read | None:
    read = codec().decode(data, start, FRAME_LENGTH_MAX)
    return None if read is None else read_of(*read)


def agree(data: bytes, start: int = 0) -> bool:
    """Whether C took the frame; it is compared if so."""
    found = by_codec(data, start)
    if found is not None:
        expected = by_reference(data, start)
        assert expected is not None, f"C accepts what the reference refuses: {data[start:]!r}"
        assert found == expected
        assert dict(found.command.fields) == dict(expected.command.fields)
        assert list(found.command.fields) == list(expected.command.fields)
    return found is not None


def json_frame(header: bytes, body: bytes = b"") -> bytes:
    return (4 + len(header) + len(body)).to_bytes(4, "big") + len(header).to_bytes(4, "big") + header + body


def binary_frame(header: bytes) -> bytes:
    return (4 + len(header)).to_bytes(4, "big") + (1 << 24 | len(header)).to_bytes(4, "big") + header


# --- decoding ---------------------------------------------------------------------------------------------------------


@given(commands(), st.binary(max_size=9), st.binary(max_size=9))
def test_what_was_encoded_is_read_as_the_reference_reads_it(
    command: RemotingCommand, before: bytes, behind: bytes
) -> None:
    data = before + frame.encode(command) + behind
    assert agree(data, len(before)), "C hands over what we write ourselves"


@pytest.mark.parametrize("captured", FRAMES, ids=map(str, FRAMES))
def test_what_clients_send_is_understood(captured: Any) -> None:
    assert agree(captured.frame)


@given(st.sampled_from(FRAMES), st.integers(0, 1 << 32))
@settings(max_examples=500)
def test_damaged_frames_are_never_read_in_another_way(captured: Any, seed: int) -> None:
    source = random.Random(seed)
    for _ in range(20):
        agree(damaged(source, [captured.frame, FRAMES[0].frame]))


@given(st.sampled_from(FRAMES), st.data())
def test_headers_damaged_inside_good_frames_are_never_read_in_another_way(captured: Any, data: st.DataObject) -> None:
    raw = captured.frame
    length = int.from_bytes(raw[5:8], "big")
    header = bytearray(raw[8 : 8 + length])
    for _ in range(data.draw(st.integers(1, 3))):
        at = data.draw(st.integers(0, max(0, len(header) - 1)))
        piece = data.draw(st.sampled_from(PIECES) | st.binary(max_size=3))
        header[at : at + data.draw(st.integers(0, 4))] = piece
    word = (raw[4] << 24 | len(header)).to_bytes(4, "big")
    rest = raw[8 + length :]
    agree((4 + len(header) + len(rest)).to_bytes(4, "big") + word + bytes(header) + rest)


@given(st.binary(max_size=80))
def test_random_bytes_are_never_read_in_another_way(data: bytes) -> None:
    agree(data)
    agree(json_frame(data))
    agree(binary_frame(data))


KEYS = ["code", "extFields", "flag", "language", "opaque", "remark", "serializeTypeCurrentRPC", "version", "other"]
PIECES = [
    *(character.encode() for character in '{}[]:,"\\'),
    *(rb"\"", rb"\u", rb"\u0001", rb"\ud83d\ude00", rb"\ud83d", rb"\udc00", rb"\/", rb"\x"),
    *(b'"%s":' % name for name in (b"code", b"extFields", b"flag", b"language", b"opaque", b"remark", b"version")),
    b'"serializeTypeCurrentRPC":"JSON"',
    *(b"null true false 0 -0 00 1 -1 2147483647 2147483648 -2147483648 -2147483649 1.0 1e3 NaN".split()),
    b'"a":"b"',
    b'"JAVA"',
    b'"Klingon"',
    b"\n",
    b" ",
    b"\x00",
    b"\x1f",
    b"\x7f",
    "é".encode(),
    "😀".encode(),
    b"\xed\xa0\x80",
    b"\xc0\x80",
    b"\xf4\x90\x80\x80",
    b"\xff",
]


@given(st.lists(st.sampled_from(PIECES), max_size=12).map(b"".join))
def test_pieces_of_json_are_never_read_in_another_way(header: bytes) -> None:
    agree(json_frame(header))
    agree(json_frame(b"{" + header + b"}"))
    agree(json_frame(b'{"extFields":{' + header + b"}}"))
    agree(json_frame(b'{"remark":"' + header + b'"}'))


SCALARS = st.none() | st.booleans() | st.integers(-(2**33), 2**33) | st.floats() | text | st.just("5")


@given(
    st.dictionaries(
        st.sampled_from(KEYS),
        SCALARS | st.dictionaries(text, SCALARS, max_size=5) | st.lists(SCALARS, max_size=2),
    ),
    st.booleans(),
    st.sampled_from([(",", ":"), (", ", ": ")]),
    st.sampled_from(["", "\n", " ", "x"]),
)
def test_any_json_object_is_never_read_in_another_way(
    document: dict[str, object], ascii_only: bool, separators: tuple[str, str], behind: str
) -> None:
    written = json.dumps(document, ensure_ascii=ascii_only, separators=separators) + behind
    agree(json_frame(written.encode()))


@pytest.mark.parametrize(
    "header",
    [
        b'{"code":1}',
        b'{"version":409,"code":-2147483648,"opaque":2147483647,"flag":-0}',
        b'{"code":1}\n \t\r',
        b'{"language":13}',
        b'{"language":"Klingon"}',
        b'{"remark":null,"extFields":null}',
        b'{"remark":""}',
        b'{"extFields":{}}',
        b'{"extFields":{"a":1,"b":-0,"c":true,"d":false,"e":"","f":12345678901234567890123}}',
        b'{"remark":"\\"\\\\\\/\\b\\f\\n\\r\\t\\u0041\\u00e9\\u20ac\\uD83D\\uDE00\\u0000"}',
        b'{"\\u0063ode":7}',
        '{"remark":"é€😀\x7f","extFields":{"ключ":"значение"}}'.encode(),
        b'{"serializeTypeCurrentRPC":"anything at all"}',
    ],
)
def test_the_subset_has(header: bytes) -> None:
    assert agree(json_frame(header, b"body"))


@pytest.mark.parametrize(
    "header",
    [
        b"",
        b"{",
        b"{}",
        b"[]",
        b"null",
        b' {"code":1}',
        b'{"code": 1}',
        b'{"code":1,}',
        b'{"code":1}}',
        b'{"code":1}x',
        b'{"code":"1"}',
        b'{"code":01}',
        b'{"code":+1}',
        b'{"code":1.0}',
        b'{"code":1e1}',
        b'{"code":-}',
        b'{"code":null}',
        b'{"code":true}',
        b'{"code":2147483648}',
        b'{"code":99999999999999999999}',
        b'{"code":1,"code":2}',
        b'{"other":1}',
        b'{"language":14}',
        b'{"language":-0}',
        b'{"language":null}',
        b'{"remark":1}',
        b'{"remark":"\\u12"}',
        b'{"remark":"\\ud83d"}',
        b'{"remark":"\\ude00"}',
        b'{"remark":"\\ud83d\\u0041"}',
        b'{"remark":"\\ud83d\\ud83d"}',
        b'{"remark":"\\ud83d\\udbff"}',
        b'{"remark":"\\ud83d\\ue000"}',
        b'{"remark":"\\ud83d\\uffff"}',
        b'{"remark":"\\x41"}',
        b'{"remark":"\x01"}',
        b'{"remark":"\xff"}',
        b'{"remark":"\xc3\\u0041\xa9"}',
        b'{"remark":"',
        b'{"remark":"\\',
        b'{"extFields":[]}',
        b'{"extFields":{"a":null}}',
        b'{"extFields":{"a":{}}}',
        b'{"extFields":{"a":1.5}}',
        b'{"extFields":{"a":"1","a":"2"}}',
        b'{"extFields":{"a":"1","\\u0061":"2"}}',
        b'{"extFields":{"a":"1"},"extFields":{"b":"2"}}',
        b'{"extFields":{"a":"1",}}',
        b'{"extFields":{"a":tru}}',
    ],
)
def test_all_else_is_left_to_the_reference(header: bytes) -> None:
    assert not agree(json_frame(header))


def test_a_name_that_occurs_twice_is_left_whatever_it_is() -> None:
    for name in (*map(chr, range(0x21, 0x7F)), *(f"key{number}" for number in range(100)), ""):
        written = json.dumps(name)
        header = f'{{"extFields":{{"first":1,{written}:"1","between":"x",{written}:"2"}}}}'
        assert not agree(json_frame(header.encode())), name


def test_every_escape_of_one_unit_is_read_as_the_reference_reads_it() -> None:
    taken = sum(agree(json_frame(b'{"remark":"\\u%04x"}' % unit)) for unit in range(0x1_0000))
    assert taken == 0x1_0000 - 0x800


@given(st.binary(min_size=1, max_size=6))
@example(b"\xe0\x9f\xbf")
@example(b"\xf0\x8f\xbf\xbf")
@example(b"\xed\x9f\xbf\xee\x80\x80")
def test_bytes_inside_a_string_are_read_as_the_reference_reads_them(data: bytes) -> None:
    header = b'{"extFields":{"k":"1234567' + data + b'"}}'
    taken = agree(json_frame(header))
    if not set(data) & {*b'"\\', *range(0x20)}:
        assert taken == (by_reference(json_frame(header)) is not None), "valid text is handed over"


def test_every_two_bytes_in_a_binary_text_are_read_as_the_reference_reads_them() -> None:
    for first, second, more in itertools.product(range(0xC0, 0x100), range(0x70, 0xD0), range(3)):
        value = bytes((0x41, first, second)) + b"\x80" * more
        entry = b"\x00\x01k" + len(value).to_bytes(4, "big") + value
        data = binary_frame(bytes(17) + len(entry).to_bytes(4, "big") + entry)
        assert agree(data) == (by_reference(data) is not None)


@pytest.mark.parametrize(("key", "value"), [(b"k", b""), (b"", b"v"), (b"", b"")])
def test_what_is_empty_is_nothing_in_a_binary_header(key: bytes, value: bytes) -> None:
    pairs = ((b"a", b"1"), (key, value))
    for chosen in (pairs, pairs[1:]):
        entries = b"".join(
            len(name).to_bytes(2, "big") + name + len(text).to_bytes(4, "big") + text for name, text in chosen
        )
        data = binary_frame(bytes(17) + len(entries).to_bytes(4, "big") + entries)
        assert agree(data)
        found = by_codec(data)
        assert found is not None
        assert found.command.ext_fields == ({"a": "1"} if len(chosen) == 2 else {})


@pytest.mark.parametrize(("length", "taken"), [(0x7FFF, True), (0x8000, False), (0xFFFF, False)])
def test_the_length_of_a_key_in_a_binary_header_has_a_sign(length: int, taken: bool) -> None:
    entry = length.to_bytes(2, "big") + b"k" * length + b"\x00\x00\x00\x01v"
    data = binary_frame(bytes(17) + len(entry).to_bytes(4, "big") + entry)
    assert agree(data) == taken == (by_reference(data) is not None)


@pytest.mark.parametrize("length", [-1, 2, 0x7FFFFFFF, -(2**31)])
def test_lengths_that_lie_are_refused_in_a_binary_header(length: int) -> None:
    four = length.to_bytes(4, "big", signed=True)
    value = b"\x00\x01k" + four + b"v"
    assert not agree(binary_frame(bytes(17) + len(value).to_bytes(4, "big") + value))
    assert not agree(binary_frame(bytes(17) + four + b"\x00\x01k\x00\x00\x00\x01v"))
    assert not agree(binary_frame(bytes(13) + four + b"r" + bytes(4)))


def test_of_a_key_that_occurs_twice_in_a_binary_header_the_last_value_counts() -> None:
    entries = b"".join(b"\x00\x01%c\x00\x00\x00\x01%c" % pair for pair in zip(b"abac", b"1234", strict=True))
    data = binary_frame(bytes(17) + len(entries).to_bytes(4, "big") + entries)
    assert agree(data)
    found = by_codec(data)
    assert found is not None
    assert found.command.ext_fields == {"a": "3", "b": "2", "c": "4"}


@pytest.mark.parametrize("serialize_type", SerializeType)
@pytest.mark.parametrize(("count", "taken"), [(FIELDS_MAX, True), (FIELDS_MAX + 1, False)])
def test_so_many_fields_are_taken(serialize_type: SerializeType, count: int, taken: bool) -> None:
    command = request(10, {f"k{number}": "v" for number in range(count)}, serialize_type=serialize_type)
    data = frame.encode(command)
    assert agree(data) == taken
    assert (codec().encode(command, None, FRAME_LENGTH_MAX) == data) == taken


@pytest.mark.parametrize("length", [0, 1, 3, 4, 7, 8, 50])
def test_a_frame_that_is_not_complete_is_left(length: int) -> None:
    data = frame.encode(request(10, {"a": "b"}))
    assert codec().decode(data[:length], 0, FRAME_LENGTH_MAX) is None
    assert codec().decode(data + data[:length], len(data) + length, FRAME_LENGTH_MAX) is None


def test_the_longest_frame_is_a_bound() -> None:
    data = frame.encode(request(10, {"a": "b"}, b"x" * 100))
    assert codec().decode(data, 0, len(data)) is not None
    assert codec().decode(data, 0, len(data) - 1) is None
    assert codec().encode(request(10), None, 8) is None
    assert codec().decode(data, 0, -1) is None
    assert codec().decode(data, 0, 1 << 40) is None


def test_the_longest_header_is_a_bound() -> None:
    pad = HEADER_LENGTH_MAX - len(b'{"remark":""}')
    assert agree(json_frame(b'{"remark":"%s"}' % (b"x" * pad)))
    assert not agree(json_frame(b'{"remark":"%s"}' % (b"x" * (pad + 1))))
    assert agree(json_frame(b'{"remark":"%s"}' % (b"\\u0041" * (pad // 6))))


# --- encoding ---------------------------------------------------------------------------------------------------------


def written_alike(command: RemotingCommand, opaque: int | None = None) -> bool:
    """Whether C wrote the frame; it is compared if so."""
    found = codec().encode(command, opaque, FRAME_LENGTH_MAX)
    if found is not None:
        renumbered = command if opaque is None else command.with_opaque(opaque)
        assert found == frame.encode(renumbered)
    return found is not None


@given(commands(), st.none() | st.integers(-(2**31), 2**31 - 1))
def test_commands_are_written_as_the_reference_writes_them(command: RemotingCommand, opaque: int | None) -> None:
    assert written_alike(command, opaque)


CHARACTERS = "".join(map(chr, [*range(0x100), 0x2027, 0x2028, 0x2029, 0x202A, 0xFFFF, 0x1_0000, 0x10_FFFF]))


def test_every_character_is_written_as_the_reference_writes_it() -> None:
    for character in CHARACTERS:
        assert written_alike(request(1, {"k": f"a{character}b", character: character}, remark=character))


NUMBERS = st.integers(-(2**33), 2**33)
HALVES = st.text(max_size=4)


@given(
    st.builds(
        RemotingCommand,
        code=NUMBERS,
        opaque=NUMBERS,
        flag=NUMBERS,
        version=NUMBERS,
        remark=st.none() | HALVES,
        ext_fields=st.none() | st.dictionaries(HALVES, HALVES, max_size=3),
        serialize_type=st.sampled_from(SerializeType),
    )
)
@example(RemotingCommand(1, remark="\ud800"))
@example(RemotingCommand(2**15, serialize_type=SerializeType.ROCKETMQ))
@example(RemotingCommand(1, version=-(2**15) - 1, serialize_type=SerializeType.ROCKETMQ))
@example(RemotingCommand(1, ext_fields={"k" * 2**15: "v"}, serialize_type=SerializeType.ROCKETMQ))
def test_what_does_not_fit_is_left_to_the_reference(command: RemotingCommand) -> None:
    try:
        frame.encode(command)
    except UsageError:
        assert not written_alike(command)
    else:
        assert written_alike(command)


@pytest.mark.parametrize(
    "command",
    [
        request(1, MappingProxyType({"a": "b"})),
        RemotingCommand(1, ext_fields={"a": 1}),  # type: ignore[dict-item]  # on purpose
        RemotingCommand(1, remark=b"x"),  # type: ignore[arg-type]  # on purpose
        RemotingCommand(1, body=bytearray(b"x")),  # type: ignore[arg-type]  # on purpose
        RemotingCommand("1"),  # type: ignore[arg-type]  # on purpose
        RemotingCommand(1, serialize_type=2),  # type: ignore[arg-type]  # on purpose
        RemotingCommand(1, language=14),  # type: ignore[arg-type]  # on purpose
        "no command",
    ],
)
def test_unusual_values_are_left_to_the_reference(command: Any) -> None:
    assert codec().encode(command, None, FRAME_LENGTH_MAX) is None


@pytest.mark.parametrize("serialize_type", SerializeType)
@pytest.mark.parametrize("size", [3000, 5000, HEADER_LENGTH_MAX - 200, HEADER_LENGTH_MAX])
def test_long_headers_are_written_or_left(serialize_type: SerializeType, size: int) -> None:
    command = request(1, {"k": "x" * size}, b"body", serialize_type=serialize_type)
    assert written_alike(command) == (size < HEADER_LENGTH_MAX)


def test_a_header_that_is_too_long_by_its_escapes_is_left() -> None:
    assert not written_alike(request(1, {"k": "\x01" * (HEADER_LENGTH_MAX // 2)}))


def test_the_longest_frame_is_a_bound_for_writing() -> None:
    command = request(1, {"k": "v"}, b"x" * 1000)
    size = len(frame.encode(command))
    assert codec().encode(command, None, size) is not None
    assert codec().encode(command, None, size - 1) is None


# --- connections ------------------------------------------------------------------------------------------------------


# --- the type ---------------------------------------------------------------------------------------------------------


def test_wrong_arguments_of_the_type_are_refused() -> None:
    languages, serializations = tuple(LanguageCode), tuple(SerializeType)
    no_slots = type("NoSlots", (), dict.fromkeys((field.name for field in dataclasses.fields(RemotingCommand)), 0))
    kind: Any = refmq_fast.FrameCodec
    with pytest.raises(TypeError):
        kind(RemotingCommand, languages)
    with pytest.raises(TypeError):
        kind(1, languages, serializations)
    with pytest.raises(ValueError, match="14 languages and 2 serializations"):
        kind(RemotingCommand, languages[1:], serializations)
    with pytest.raises(AttributeError):
        kind(object, languages, serializations)
    with pytest.raises(TypeError, match="code of a command is to be a slot"):
        kind(no_slots, languages, serializations)


def test_wrong_arguments_of_the_methods_are_refused() -> None:
    loose: Any = codec()
    wrong: list[tuple[Any, tuple[object, ...]]] = [
        (loose.decode, (b"",)),
        (loose.decode, (b"", "0", 99)),
        (loose.decode, (1, 0, 99)),
        (loose.encode, (request(1),)),
        (loose.encode, (request(1), None, "99")),
    ]
    for method, arguments in wrong:
        with pytest.raises(TypeError):
            method(*arguments)
    for start in (-1, 2):
        with pytest.raises(ValueError, match="a frame begins at 0 to 1"):
            loose.decode(b"x", start, 99)


def test_nothing_is_kept() -> None:
    command = request(10, {"a": "b" * 50, "ключ": "é"}, b"body", remark="remark")
    data = frame.encode(command)
    held: list[object] = [command, command.body, command.ext_fields, data, RemotingCommand]
    for _ in range(3):  # whatever is made once is made before counting
        codec().decode(data, 0, FRAME_LENGTH_MAX)
        codec().encode(command, 5, FRAME_LENGTH_MAX)
    before = [sys.getrefcount(each) for each in held]
    for _ in range(100):
        codec().decode(data, 0, FRAME_LENGTH_MAX)
        codec().decode(b"\0\0\0\x05" + data, 0, FRAME_LENGTH_MAX)
        codec().encode(command, 5, FRAME_LENGTH_MAX)
        codec().encode(RemotingCommand(1, remark="\ud800", body=command.body), 5, FRAME_LENGTH_MAX)
    assert [sys.getrefcount(each) for each in held] == before


def test_a_codec_goes_when_nobody_needs_it() -> None:
    class Command:
        __slots__ = tuple(field.name for field in dataclasses.fields(RemotingCommand))
        made: Any

    Command.made = refmq_fast.FrameCodec(Command, tuple(LanguageCode), tuple(SerializeType))  # a circle
    gone = weakref.ref(Command)
    del Command
    gc.collect()
    assert gone() is None
