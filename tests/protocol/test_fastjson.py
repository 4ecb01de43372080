from __future__ import annotations

import json
import math
import tracemalloc
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from refmq.errors import WireError
from refmq.protocol import fastjson
from refmq.protocol.fastjson import DEPTH_MAX, JsonArray, JsonObject, JsonValue, parse
from refmq.protocol.json_text import quote, quote_ascii


def plain(value: JsonValue) -> Any:
    """The value as the standard library would give it; for documents that are trees of string-keyed objects."""
    match value:
        case JsonArray():
            return [plain(item) for item in value.items]
        case JsonObject():
            return {key: plain(content) for key, content in value.members}
        case _:
            return value


def keys(data: bytes) -> list[Any]:
    document = parse(data)
    assert isinstance(document, JsonObject)
    return [key for key, _ in document.members]


json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(exclude_categories=["Cs"]), max_size=8),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(st.text(st.characters(exclude_categories=["Cs"]), max_size=8), inner, max_size=4)
    ),
    max_leaves=20,
)


def agrees_with_the_standard_library(value: Any, indent: int | None, ascii_only: bool) -> None:
    data = json.dumps(value, indent=indent, ensure_ascii=ascii_only).encode()
    assert plain(parse(data)) == json.loads(data)


@given(json_values, st.sampled_from([None, 1]), st.booleans())
def test_standard_json_is_read_as_the_standard_library_reads_it(
    value: Any, indent: int | None, ascii_only: bool
) -> None:
    agrees_with_the_standard_library(value, indent, ascii_only)


def test_the_comparison_catches_a_reader_that_takes_bytes_for_characters(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fastjson, "_utf8", lambda text: text)
    with pytest.raises(AssertionError):
        agrees_with_the_standard_library("é", None, False)


@given(st.text(st.characters(exclude_categories=["Cs"])))
def test_quoted_text_comes_back(text: str) -> None:
    for quoted in (quote(text), quote_ascii(text)):
        assert parse(quoted.encode()) == text
        assert json.loads(quoted) == text
    assert quote_ascii(text).isascii()


def test_escapes_are_those_of_fastjson() -> None:
    assert (
        quote('"\\/\b\t\n\f\r\x01\x1f\x7f\x9f\u2028é')
        == '"\\"\\\\/\\b\\t\\n\\f\\r\\u0001\\u001F\\u007F\\u009F\\u2028é"'
    )


def is_total(data: bytes) -> None:
    where = 0
    try:
        parse(data)
    except WireError as error:
        where = error.offset
    assert 0 <= where <= len(data)


@given(st.binary(max_size=60))
def test_any_bytes_are_a_value_or_an_error(data: bytes) -> None:
    is_total(data)


@given(st.text("{}[]:,\"'\\$ref.@0123456789-+eE.utfalsn\x00é", max_size=60))
def test_any_text_of_the_grammar_is_a_value_or_an_error(text: str) -> None:
    is_total(text.encode())


def test_totality_catches_a_parser_without_a_limit_on_depth(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fastjson, "DEPTH_MAX", 10**9)
    with pytest.raises(RecursionError):
        is_total(b"[" * 100_000)


# The dialect --------------------------------------------------------------------------------------


def test_numbers_as_keys() -> None:
    assert keys(b"{0:12,3:0,-1:1}") == [0, 3, -1]


def test_objects_as_keys() -> None:
    (key,) = keys(b'{{"queueId":2,"topic":"T1"}:11}')
    assert plain(key) == {"queueId": 2, "topic": "T1"}
    assert key.offset == 1


def test_single_quotes_bare_keys_and_a_last_comma() -> None:
    assert plain(parse(b"{'a':'it\\'s \"x\"',b_$1:[1,2,],}")) == {"a": 'it\'s "x"', "b_$1": [1, 2]}


def test_escapes_that_only_fastjson_knows() -> None:
    assert parse(b'"\\x41\\\'\\n"') == "A'\n"
    assert parse("'é\\n\\u00e9'".encode()) == "é\né"
    assert parse('"é\\n\\u00e9"'.encode()) == "é\né"


def test_unusual_escapes_are_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fastjson, "ESCAPES_MAX", 2)
    assert parse(b'"\\n\\n\\n\\n"') == "\n" * 4
    assert parse(b"'\\n\\n'") == "\n" * 2
    with pytest.raises(WireError, match="at most 2 escapes"):
        parse(b"['\\n','\\n\\n']")


def test_a_later_duplicate_wins() -> None:
    document = parse(b'{"a":1,"a":2}')
    assert isinstance(document, JsonObject)
    assert document.get("a") == 2
    assert document.get("b") is None


def test_large_numbers_keep_every_digit() -> None:
    assert parse(b"9223372036854775807") == 2**63 - 1
    assert parse(b"-12.5e-1") == -1.25


def test_escaped_halves_of_a_character_are_one_character() -> None:
    assert parse(b'"\\uD83D\\uDE00 \\x41"') == "\U0001f600 A"


REFERENCES: dict[str, tuple[bytes, str]] = {
    "a path": (b'{"a":{"x":1},"b":{"$ref":"$.a"}}', "a"),
    "a path with a quoted character": (b'{"a-b":{"x":1},"b":{"$ref":"$.a\\\\-b"}}', "a-b"),
    "a number as a name": (b'{7:{"x":1},"b":{"$ref":"$[7]"}}', "7"),
    "a path to a reference": (b'{"a":{"x":1},"c":{"$ref":"$.a"},"b":{"$ref":"$.c"}}', "a"),
}


@pytest.mark.parametrize(("data", "name"), REFERENCES.values(), ids=list(REFERENCES))
def test_a_reference_is_the_value_at_its_path(data: bytes, name: str) -> None:
    document = parse(data)
    assert isinstance(document, JsonObject)
    target = next(value for key, value in document.members if str(key) == name)
    assert document.get("b") is target


def test_references_into_arrays_to_the_parent_to_itself_and_as_keys() -> None:
    document = parse(
        b'{"a":[[5],{"$ref":"$.a[0]"}],"b":{"self":{"$ref":"@"},"up":{"$ref":".."}},"c":{{"$ref":"$.b"}:1}}'
    )
    assert isinstance(document, JsonObject)
    a, b, c = (document.get(name) for name in "abc")
    assert isinstance(a, JsonArray)
    assert a.items[0] is a.items[1]
    assert isinstance(b, JsonObject)
    assert b.get("self") is b
    assert b.get("up") is document
    assert isinstance(c, JsonObject)
    assert c.members[0][0] is b


@pytest.mark.parametrize(
    "data",
    [
        b'{"$ref":"$"}',
        b'[{"$ref":"$[0]"}]',
        b'[{"$ref":"$[1]"}]',
        b'[{"$ref":".."}]',
        b'{"a":{"$ref":"$.b"}}',
        b'{"a":{"$ref":"$.b"},"b":{"$ref":"$.a"}}',
        b'{"a":{"$ref":"b"}}',
        b'{"a":{"$ref":"$..b"}}',
        b'{"a":1,"b":{"$ref":"$.a.c"}}',
    ],
)
def test_a_reference_to_nothing_is_an_error(data: bytes) -> None:
    with pytest.raises(WireError, match=r"^\$ref at byte offset"):
        parse(data)


def test_many_references_into_a_large_object_do_not_search_it_each_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """A thousand names looked up in an object of a thousand: its keys are looked at once, not a million times."""
    looked_at = 0

    def counting(key: JsonValue) -> str | None:
        nonlocal looked_at
        looked_at += 1
        return key if isinstance(key, str) else None

    monkeypatch.setattr(fastjson, "key_text", counting)
    names = ",".join(f'"n{index}":[]' for index in range(1000))
    references = ",".join(f'{{"$ref":"$.a.n{index}"}}' for index in range(1000))
    document = parse(f'{{"a":{{{names}}},"b":[{references}]}}'.encode())
    assert isinstance(document, JsonObject)
    b = document.get("b")
    assert isinstance(b, JsonArray)
    assert all(isinstance(item, JsonArray) for item in b.items)
    assert looked_at <= 1002  # the members of the two objects on the path


# Errors and limits --------------------------------------------------------------------------------

BROKEN: dict[str, tuple[bytes, int]] = {
    "nothing": (b"", 0),
    "only space": (b"  ", 2),
    "two values": (b"1 2", 2),
    "open object": (b'{"a":1', 6),
    "open array": (b"[1,", 3),
    "no colon": (b'{"a" 1}', 5),
    "no comma": (b"[1 2]", 3),
    "two commas": (b"[1,,2]", 3),
    "open string": (b'"abc', 4),
    "unknown escape": (b'"a\\q"', 2),
    "short escape": (b'"\\u12"', 1),
    "half a character": (b'"\\uD83D"', 0),
    "unknown word": (b"[nil]", 1),
    "null as a key": (b"{[1]:2}", 4),
    "not UTF-8": (b'"\xff"', 1),
    "infinite": (b"[1e999]", 1),
    "offsets count bytes": ('{"é":x}'.encode(), 6),
}


@pytest.mark.parametrize(("data", "offset"), BROKEN.values(), ids=list(BROKEN))
def test_an_error_tells_the_byte(data: bytes, offset: int) -> None:
    with pytest.raises(WireError) as caught:
        parse(data, base=1000)
    assert caught.value.offset == 1000 + offset


def test_depth_digits_and_values_are_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    parse(b"[" * DEPTH_MAX + b"]" * DEPTH_MAX)
    with pytest.raises(WireError, match=f"at most {DEPTH_MAX} levels"):
        parse(b"[" * (DEPTH_MAX + 1) + b"]" * (DEPTH_MAX + 1))
    with pytest.raises(WireError, match="a number of at most"):
        parse(b"1" * 401)
    assert parse(b"1" * 400) == int("1" * 400)
    monkeypatch.setattr(fastjson, "VALUES_MAX", 10)
    with pytest.raises(WireError, match="at most 10 values"):
        parse(b"[1,1,1,1,1,1,1,1,1,1]")


def test_memory_is_bounded_by_the_text() -> None:
    """The densest document there is, empty arrays, must not take more than its values are worth."""
    data = b"[" + b"[]," * 10_000 + b"]"
    tracemalloc.start()
    try:
        document = parse(data)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert isinstance(document, JsonArray)
    assert len(document.items) == 10_000
    assert peak < 200 * len(document.items)


def test_floats_keep_their_value() -> None:
    assert parse(repr(math.pi).encode()) == math.pi
