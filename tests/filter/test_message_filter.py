"""Which messages a filter lets through, unit by unit and by their properties."""

from __future__ import annotations

import pytest

from refmq.filter import compile_expression
from refmq.filter.message_filter import BitmapTest, MatchAll, MessageFilter, OriginFilter
from refmq.filter.registry import FilterRegistry
from refmq.model.ids import PhysicalOffset
from refmq.protocol.record import string_hash
from tests.filter.entries import BLOOM, entry, wire


def test_without_parts_everything_passes_and_nothing_is_read() -> None:
    assert MatchAll.wants_every_unit
    assert not MatchAll.reads_properties
    assert MatchAll.matches_code(1)
    assert MatchAll.matches_properties(b"")


def test_a_tag_passes_by_its_hash_as_a_signed_32_bit_number() -> None:
    negative = string_hash("polygenelubricants")
    wanted = MessageFilter(tag_codes=frozenset({negative}))
    assert not wanted.wants_every_unit
    assert wanted.matches_code(negative)
    assert wanted.matches_code(negative & 0xFFFF_FFFF)
    assert not wanted.matches_code(negative + 1)


@pytest.mark.parametrize(
    ("bitmap", "offset", "passes"),
    [
        (b"\x01\x80", 100, True),
        (b"\x01\x00", 100, False),
        (b"\x00\x00", 99, True),  # written before the expression was registered
        (b"\x00", 100, True),  # of another shape
    ],
)
def test_a_bitmap_that_lacks_a_bit_rules_a_message_out_if_it_can_know(bitmap: bytes, offset: int, passes: bool) -> None:
    assert BitmapTest((0, 15), 16, PhysicalOffset(100)).matches(bitmap, offset) is passes


def test_an_expression_decides_by_the_properties() -> None:
    wanted = MessageFilter(expression=compile_expression("a > 5"))
    assert wanted.reads_properties
    assert wanted.wants_every_unit
    assert wanted.matches_properties(wire(a="6"))
    assert not wanted.matches_properties(wire(a="5"))
    assert not wanted.matches_properties(wire())


def test_a_retried_message_must_satisfy_the_expression_of_the_topic_it_came_from() -> None:
    registry = FilterRegistry(BLOOM).with_entry(entry("t", "g", "a > 5"))
    wanted = MessageFilter(origin=OriginFilter(registry, "g"))
    assert wanted.matches_properties(wire(RETRY_TOPIC="t", a="6"))
    assert not wanted.matches_properties(wire(RETRY_TOPIC="t", a="5"))
    assert wanted.matches_properties(wire(RETRY_TOPIC="other", a="5"))
    assert wanted.matches_properties(wire(a="5"))
