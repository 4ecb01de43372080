"""Java properties: read as java.util.Properties reads them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from refmq.errors import UsageError, WireError
from refmq.protocol.properties import format_properties, parse_properties

CASES = {
    "": {},
    "# comment\n! comment\n\n   # indented": {},
    "a=b": {"a": "b"},
    "a = b \n": {"a": "b "},
    "a:b": {"a": "b"},
    "a b c": {"a": "b c"},
    "a\t=\tb": {"a": "b"},
    "a": {"a": ""},
    "a=": {"a": ""},
    "=b": {"": "b"},
    "a==b": {"a": "=b"},
    "a\\=b=c": {"a=b": "c"},
    "a\\ b c": {"a b": "c"},
    "a=b\\\n   c": {"a": "bc"},
    "a=b\\\\\nc=d": {"a": "b\\", "c": "d"},
    "a=1\r\nb=2\rc=3": {"a": "1", "b": "2", "c": "3"},
    "a=\\t\\n\\r\\f\\q": {"a": "\t\n\r\fq"},
    "a=\\u00e9\\uD83D\\uDE00": {"a": "é😀"},
    "a=1\na=2": {"a": "2"},
    "a=b\\": {"a": "b"},
    "  a=b # no comment": {"a": "b # no comment"},
    "namesrvAddr=127.0.0.1:9876;127.0.0.2:9876": {"namesrvAddr": "127.0.0.1:9876;127.0.0.2:9876"},
}


@pytest.mark.parametrize("text", CASES)
def test_a_text_means_what_it_means_to_java(text: str) -> None:
    assert parse_properties(text) == CASES[text]


@pytest.mark.parametrize("text", ["a=\\u12", "a=\\uzzzz", "\\u=1"])
def test_a_broken_escape_is_an_error(text: str) -> None:
    with pytest.raises(WireError, match="hexadecimal"):
        parse_properties("x=y\n" + text)


LINES = st.text(st.characters(codec="utf-8", exclude_characters="\r\n") | st.sampled_from("\\ =:#!\t\f"), max_size=8)


@given(st.dictionaries(LINES, LINES, max_size=6))
def test_reading_what_was_written_gives_it_back(given_: dict[str, str]) -> None:
    assert parse_properties(format_properties(given_)) == given_


@given(st.text(max_size=60))
def test_any_text_is_read_or_refused(text: str) -> None:
    try:
        parse_properties(text)
    except WireError:
        assert "\\u" in text


def test_a_line_break_cannot_be_written() -> None:
    with pytest.raises(UsageError, match="line break"):
        format_properties({"a": "b\nc=d"})
