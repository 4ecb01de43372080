"""The SQL92 expressions that consumer groups have registered: what consumerFilter.json holds.

Heartbeats register them; a pull uses the compiled one. An entry is dead once its group is gone or no longer subscribes
to the topic. It stays for a day, so that a returning consumer finds the bitmaps written while it was away.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Annotated, Final

from refmq.filter import BloomFilter, SqlSyntaxError, compile_expression
from refmq.filter.registry import FilterData, FilterRegistry, is_tag_expression
from refmq.filter.work import terms_and_depth
from refmq.model.ids import PhysicalOffset, TimestampMs
from refmq.protocol.bodies.heartbeat import EXPRESSION_SQL92, SubscriptionData
from refmq.protocol.headers.codec import Int32, Int64, Wire

ENTRIES_MAX: Final = 100_000
"""Registered expressions kept; a heartbeat with one more is served without it (its pulls answer 27)."""

RELOADED_DEAD_MS: Final = 30_000
"""After a restart every entry counts as dead for this long already, until a heartbeat revives it. As upstream."""


def compile_filter(
    registry: FilterRegistry, group: str, subscription: SubscriptionData, now_ms: TimestampMs, log_end: PhysicalOffset
) -> FilterData | None:
    """The filter of a subscription, or None if we cannot compile its expression or do not know its type."""
    if subscription.expression_type != EXPRESSION_SQL92:
        return None
    try:
        compiled = compile_expression(subscription.sub_string)
    except SqlSyntaxError:
        return None
    return FilterData(
        topic=subscription.topic,
        group=group,
        expression_type=subscription.expression_type,
        text=subscription.sub_string,
        compiled=compiled,
        terms=terms_and_depth(compiled)[0],
        born_ms=now_ms,
        since=log_end,
        client_version=subscription.sub_version,
        bit_positions=registry.bloom.positions(f"{group}#{subscription.topic}"),
        dead_ms=TimestampMs(0),
    )


def register(
    registry: FilterRegistry,
    group: str,
    subscriptions: Iterable[SubscriptionData],
    now_ms: TimestampMs,
    log_end: PhysicalOffset,
) -> FilterRegistry:
    """The registry after a group's heartbeat: the expressions in it are live, the group's others are dead."""
    wanted = {s.topic: s for s in subscriptions if not is_tag_expression(s.expression_type) and s.sub_string}
    for topic in sorted(wanted):
        registry = _register_one(registry, group, wanted[topic], now_ms, log_end)
    for entry in registry.of_group(group):
        if entry.topic not in wanted:
            registry = _bury(registry, entry, now_ms)
    return registry


def _register_one(
    registry: FilterRegistry,
    group: str,
    subscription: SubscriptionData,
    now_ms: TimestampMs,
    log_end: PhysicalOffset,
) -> FilterRegistry:
    known = registry.get(subscription.topic, group)
    if known is not None:
        if subscription.sub_version < known.client_version:
            return registry
        alive = known
        if known.is_dead:
            alive = replace(known, dead_ms=TimestampMs(0), born_ms=now_ms, since=log_end)
        if subscription.sub_version == known.client_version:
            return registry if alive is known else registry.with_entry(alive)
        if (subscription.expression_type, subscription.sub_string) == (known.expression_type, known.text):
            return registry.with_entry(replace(alive, client_version=subscription.sub_version))
    elif len(registry) >= ENTRIES_MAX:
        return registry
    compiled = compile_filter(registry, group, subscription, now_ms, log_end)
    return registry.without(subscription.topic, group) if compiled is None else registry.with_entry(compiled)


def _bury(registry: FilterRegistry, entry: FilterData, now_ms: TimestampMs) -> FilterRegistry:
    return registry if entry.is_dead else registry.with_entry(replace(entry, dead_ms=now_ms))


def bury_group(registry: FilterRegistry, group: str, now_ms: TimestampMs) -> FilterRegistry:
    """The last member of a group has left: its expressions are dead."""
    for entry in registry.of_group(group):
        registry = _bury(registry, entry, now_ms)
    return registry


def purge(registry: FilterRegistry, now_ms: TimestampMs, keep_ms: int) -> FilterRegistry:
    """Forgets what has been dead for `keep_ms`."""
    for entry in registry.every():
        if entry.is_dead and now_ms - entry.dead_ms >= keep_ms:
            registry = registry.without(entry.topic, entry.group)
    return registry


# The file ----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class BloomFilterData:
    """The bits of one entry in the file."""

    bit_num: Int32
    bit_pos: tuple[Int32, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredFilter:
    """One entry of the file. `dead` is for human readers; we never read it."""

    topic: str
    consumer_group: str
    expression: str
    expression_type: str
    born_time: Int64
    client_version: Int64
    dead_time: Int64 = 0
    bloom_filter_data: BloomFilterData | None = None
    dead: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredTopicFilters:
    topic: str
    group_filter_data: Mapping[str, StoredFilter] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class FilterFile:
    """consumerFilter.json."""

    by_topic: Annotated[Mapping[str, StoredTopicFilters], Wire("filterDataByTopic")] = field(default_factory=dict)


def to_file(registry: FilterRegistry) -> FilterFile:
    topics: dict[str, dict[str, StoredFilter]] = {}
    for entry in registry.every():
        topics.setdefault(entry.topic, {})[entry.group] = StoredFilter(
            topic=entry.topic,
            consumer_group=entry.group,
            expression=entry.text,
            expression_type=entry.expression_type,
            born_time=entry.born_ms,
            client_version=entry.client_version,
            dead_time=entry.dead_ms,
            bloom_filter_data=BloomFilterData(bit_num=registry.bloom.bit_count, bit_pos=entry.bit_positions),
            dead=entry.is_dead,
        )
    return FilterFile(
        by_topic={t: StoredTopicFilters(topic=t, group_filter_data=groups) for t, groups in topics.items()}
    )


def from_file(
    stored: FilterFile | None, bloom: BloomFilter, now_ms: TimestampMs, log_end: PhysicalOffset
) -> FilterRegistry:
    """The registry at startup. A file with bitmaps of another shape is ignored as a whole.

    Bitmaps from before the start are not used: the file may not hold the latest expressions from then.
    """
    empty = FilterRegistry(bloom)
    every = [] if stored is None else [f for t in stored.by_topic.values() for f in t.group_filter_data.values()]
    if any(not _fits(f.bloom_filter_data, bloom) for f in every):
        return empty
    registry = empty
    for old in every:
        subscription = SubscriptionData(
            topic=old.topic,
            sub_string=old.expression,
            sub_version=old.client_version,
            expression_type=old.expression_type,
        )
        compiled = compile_filter(empty, old.consumer_group, subscription, TimestampMs(old.born_time), log_end)
        if compiled is not None:
            dead_ms = old.dead_time or max(now_ms - RELOADED_DEAD_MS, old.born_time)
            registry = registry.with_entry(replace(compiled, dead_ms=TimestampMs(dead_ms)))
    return registry


def _fits(data: BloomFilterData | None, bloom: BloomFilter) -> bool:
    return data is not None and data.bit_num == bloom.bit_count and len(data.bit_pos) == bloom.hash_count
