"""Registered expressions: who is alive, who is dead, and what survives a restart."""

from __future__ import annotations

from dataclasses import replace

import pytest

from refmq.broker import registered_filters as filters
from refmq.filter import BloomFilter, matches
from refmq.filter.registry import FilterRegistry
from refmq.model.ids import PhysicalOffset, TimestampMs
from refmq.protocol.bodies.heartbeat import SubscriptionData

BLOOM = BloomFilter.for_groups()
START = PhysicalOffset(0)
DAY_MS = 24 * 3600 * 1000


def sql(text: str, version: int = 1, topic: str = "t") -> SubscriptionData:
    return SubscriptionData(topic=topic, sub_string=text, sub_version=version, expression_type="SQL92")


def beat(registry: FilterRegistry, at_ms: int, *subscriptions: SubscriptionData) -> FilterRegistry:
    return filters.register(registry, "g", subscriptions, TimestampMs(at_ms), PhysicalOffset(at_ms))


def start(*subscriptions: SubscriptionData) -> FilterRegistry:
    return beat(FilterRegistry(BLOOM), 100, *subscriptions)


def test_a_heartbeat_registers_what_compiles_and_nothing_else() -> None:
    registry = start(sql("a > 5"), sql("a >", topic="u"), SubscriptionData(topic="v", sub_string="x || y"))
    entry = registry.get("t", "g")
    assert entry is not None
    assert matches(entry.compiled, {"a": "6"})
    assert entry.bit_positions == BLOOM.positions("g#t")
    assert registry.get("u", "g") is None
    assert registry.get("v", "g") is None


def test_an_older_version_is_ignored_a_newer_one_replaces_and_a_broken_one_removes() -> None:
    registry = start(sql("a > 5", 2))
    assert beat(registry, 200, sql("a > 9", 1)) is registry
    newer = beat(registry, 200, sql("a > 9", 3)).get("t", "g")
    assert newer is not None
    assert (newer.text, newer.client_version, newer.born_ms, newer.since) == ("a > 9", 3, 200, 200)
    same = beat(registry, 200, sql("a > 5", 3)).get("t", "g")
    assert same is not None
    assert (same.client_version, same.born_ms, same.since) == (3, 100, 100)
    assert beat(registry, 200, sql("a >", 3)).get("t", "g") is None


def test_what_a_heartbeat_no_longer_names_is_dead_until_it_is_named_again() -> None:
    registry = start(sql("a > 5"), sql("b = 1", topic="u"))
    without = beat(registry, 200, sql("a > 5"))
    dead = without.get("u", "g")
    assert dead is not None
    assert dead.is_dead
    alive = without.get("t", "g")
    assert alive is not None
    assert not alive.is_dead
    revived = beat(without, 300, sql("a > 5"), sql("b = 1", topic="u")).get("u", "g")
    assert revived is not None
    assert not revived.is_dead
    assert (revived.born_ms, revived.since) == (300, 300)  # bitmaps computed while it was dead are not asked


def test_a_group_that_is_gone_is_forgotten_after_a_day() -> None:
    registry = filters.bury_group(start(sql("a > 5")), "g", TimestampMs(200))
    assert filters.purge(registry, TimestampMs(200 + DAY_MS - 1), DAY_MS) is registry
    assert filters.purge(registry, TimestampMs(200 + DAY_MS), DAY_MS).get("t", "g") is None


def test_the_file_brings_everything_back_as_dead() -> None:
    registry = start(sql("a > 5"), sql("b = 1", topic="u"))
    loaded = filters.from_file(filters.to_file(registry), BLOOM, TimestampMs(90_000), PhysicalOffset(7))
    entry = loaded.get("t", "g")
    assert entry is not None
    assert entry.is_dead
    assert entry.dead_ms == 60_000
    before = registry.get("t", "g")
    assert before is not None
    assert entry.since == 7  # bitmaps from before the start are not asked
    assert replace(entry, dead_ms=before.dead_ms, since=before.since) == before
    assert {e.topic for e in loaded.every()} == {"t", "u"}


def test_a_file_with_bitmaps_of_another_shape_is_ignored() -> None:
    other = filters.register(FilterRegistry(BloomFilter.for_groups(10, 32)), "g", [sql("a > 5")], TimestampMs(0), START)
    assert len(filters.from_file(filters.to_file(other), BLOOM, TimestampMs(0), START)) == 0


def test_the_registry_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(filters, "ENTRIES_MAX", 1)
    assert len(start(sql("a > 5"), sql("b = 1", topic="u"))) == 1
