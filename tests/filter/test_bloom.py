"""The Bloom filter of the consume queue extension has upstream's bits."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from refmq.filter import BloomFilter, bloom

SHAPE = BloomFilter.for_groups()


def test_the_default_shape() -> None:
    assert (SHAPE.hash_count, SHAPE.bit_count) == (3, 112)


@pytest.mark.parametrize(
    ("key", "positions"),
    [("g#t", (22, 87, 58)), ("group1#topic1", (71, 62, 59)), ("CID_abc#TopicTest", (103, 61, 29))],
)
def test_positions_are_upstreams(key: str, positions: tuple[int, ...]) -> None:
    assert SHAPE.positions(key) == positions


def test_a_bitmap_has_upstreams_bytes() -> None:
    assert SHAPE.bitmap(SHAPE.positions("g#t")).hex() == "0000400000000004000080000000"


@given(st.lists(st.text(max_size=40), min_size=1, max_size=8))
def test_what_was_put_in_is_contained(keys: list[str]) -> None:
    bits: bytes | None = None
    for key in keys:
        bits = SHAPE.bitmap(SHAPE.positions(key), bits)
    assert bits is not None
    assert all(SHAPE.contains(bits, SHAPE.positions(key)) for key in keys)


def test_an_empty_bitmap_contains_nothing_and_a_foreign_one_everything() -> None:
    positions = SHAPE.positions("g#t")
    assert not SHAPE.contains(bytes(14), positions)
    assert SHAPE.contains(bytes(13), positions)


def test_the_vectors_catch_a_wrong_tail(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bloom, "_mix_k2", lambda k2: k2)
    assert SHAPE.positions("CID_abc#TopicTest") != (103, 61, 29)
