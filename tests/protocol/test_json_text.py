"""JSON strings with fastjson's escapes."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from refmq.protocol.json_text import quote, quote_ascii


@pytest.mark.parametrize(
    ("text", "quoted"),
    [
        ('a"b\\', '"a\\"b\\\\"'),
        ("\b\t\n\f\r", '"\\b\\t\\n\\f\\r"'),
        ("\0\x1f\x7f\x9f", '"\\u0000\\u001F\\u007F\\u009F"'),
        ("\u2028\u2029", '"\\u2028\\u2029"'),
        ("/é€\U0001f600", '"/é€\U0001f600"'),
    ],
)
def test_the_escapes_are_javas(text: str, quoted: str) -> None:
    assert quote(text) == quoted


def test_the_form_for_routes_escapes_slashes_and_everything_outside_ascii() -> None:
    assert quote_ascii("/é\U0001f600\n") == '"\\/\\u00E9\\uD83D\\uDE00\\n"'


@given(st.text(st.characters(exclude_categories=["Cs"])))
def test_both_forms_mean_the_text(text: str) -> None:
    assert json.loads(quote(text)) == text
    assert json.loads(quote_ascii(text)) == text
    assert quote_ascii(text).isascii()
