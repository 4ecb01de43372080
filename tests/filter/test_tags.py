"""Tag subscriptions, compared by the hash of their tags."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from refmq.filter import parse_tags
from refmq.protocol.record import string_hash


@pytest.mark.parametrize(
    ("text", "value"),
    [("", 0), ("a", 97), ("TagA", 2598919), ("polygenelubricants", -(2**31)), ("\U0001f600", 1772899)],
)
def test_the_hash_is_javas(text: str, value: int) -> None:
    assert string_hash(text) == value


@pytest.mark.parametrize("text", [None, "", "*"])
def test_nothing_and_a_star_want_everything(text: str | None) -> None:
    parsed = parse_tags(text)
    assert parsed is not None
    assert parsed.wants_all
    assert parsed.matches_code(12345)


def test_separators_alone_are_no_subscription() -> None:
    assert parse_tags("||") is None
    assert parse_tags("||||") is None


def test_tags_are_trimmed_and_compared_by_hash() -> None:
    parsed = parse_tags(" Aa ||  || C")
    assert parsed is not None
    assert parsed.tags == {"Aa", "C"}
    assert parsed.matches_code(string_hash("C"))
    assert parsed.matches_code(string_hash("BB"))  # the same hash as Aa: the consumer decides
    assert not parsed.matches_code(string_hash("D"))
    assert parsed.matches_code(None)


def test_a_blank_between_separators_leaves_no_tag_and_wants_everything() -> None:
    parsed = parse_tags(" || ")
    assert parsed is not None
    assert parsed.wants_all


@given(st.text(max_size=8))
def test_a_negative_hash_survives_the_64_bits_of_a_queue_unit(tag: str) -> None:
    parsed = parse_tags(tag)
    if parsed is None or parsed.wants_all or tag.strip() != tag or "||" in tag:
        return
    code = string_hash(tag)
    assert parsed.matches_code(code)
    assert parsed.matches_code(code & 0xFFFF_FFFF_FFFF_FFFF)
