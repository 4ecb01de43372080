"""The registered expressions, and the bitmaps computed from them."""

from __future__ import annotations

from refmq.filter.registry import FilterRegistry, TopicFilters, is_tag_expression
from tests.filter.entries import BLOOM, entry, wire


def test_an_entry_replaces_that_of_its_topic_and_group_and_is_counted_once() -> None:
    registry = FilterRegistry(BLOOM).with_entry(entry("t", "g")).with_entry(entry("t", "h"))
    registry = registry.with_entry(entry("t", "g", "a > 6"))
    assert len(registry) == 2
    found = registry.get("t", "g")
    assert found is not None
    assert found.text == "a > 6"


def test_what_is_removed_is_gone_and_a_topic_without_expressions_has_no_bitmaps() -> None:
    registry = FilterRegistry(BLOOM).with_entry(entry("t", "g"))
    assert registry.without("t", "other") is registry
    assert registry.without("u", "g") is registry
    emptied = registry.without("t", "g")
    assert (len(emptied), emptied.get("t", "g"), "t" in emptied.by_topic) == (0, None, False)


def test_entries_are_listed_by_topic_and_group() -> None:
    registry = FilterRegistry(BLOOM)
    for topic, group in (("u", "g"), ("t", "h"), ("t", "g")):
        registry = registry.with_entry(entry(topic, group))
    assert [(one.topic, one.group) for one in registry.every()] == [("t", "g"), ("t", "h"), ("u", "g")]
    assert [one.topic for one in registry.of_group("g")] == ["t", "u"]


def test_a_bitmap_has_the_bits_of_the_satisfied_expressions_only() -> None:
    registry = FilterRegistry(BLOOM).with_entry(entry("t", "g")).with_entry(entry("t", "h", "a > 100"))
    filters = registry.by_topic["t"]
    assert filters.bitmap(wire(a="6")) == BLOOM.bitmap(BLOOM.positions("g#t"))
    assert filters.bitmap(wire(a="5")) == bytes(BLOOM.bit_count // 8)
    assert TopicFilters(16).bitmap(wire(a="6")) == bytes(2)


def test_an_entry_is_dead_from_the_moment_it_was_born_on() -> None:
    assert [entry("t", "g", dead_ms=at).is_dead for at in (0, 9, 10, 11)] == [False, False, True, True]


def test_a_missing_type_means_tags() -> None:
    assert [is_tag_expression(kind) for kind in (None, "", "TAG", "SQL92", "tag")] == [True, True, True, False, False]
