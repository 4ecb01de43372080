"""The SQL92 expressions that consumer groups have registered: what consumerFilter.json holds.

Heartbeats register them; a pull asks for the compiled one. An entry whose group is gone, or no longer subscribes
the topic, is dead: it stays for a day, so that a consumer that comes back finds the bitmaps of the meantime.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Annotated, Final

from rpds import HashTrieMap

from refmq.filter import BloomFilter, SqlSyntaxError, compile_expression, matches
from refmq.filter.sql_ast import Expression
from refmq.model.ids import PhysicalOffset, TimestampMs
from refmq.protocol.bodies.heartbeat import EXPRESSION_SQL92, EXPRESSION_TAG, SubscriptionData
from refmq.protocol.headers.codec import Int32, Int64, Wire
from refmq.protocol.record import decode_properties

ENTRIES_MAX: Final = 100_000
"""Registered expressions kept; a heartbeat with one more is served without it (its pulls answer 27)."""

RELOADED_DEAD_MS: Final = 30_000
"""After a restart every entry counts as dead since so long, until a heartbeat revives it. As upstream."""


@dataclass(frozen=True, slots=True)
class FilterData:
    """One registered expression. `dead_ms` is 0 while a live group uses it."""

    topic: str
    group: str
    expression_type: str
    text: str
    compiled: Expression
    born_ms: TimestampMs
    since: PhysicalOffset
    """The end of the log when it was born: what lies before has bitmaps that say nothing about it."""
    client_version: int
    bit_positions: tuple[int, ...]
    dead_ms: TimestampMs

    @property
    def is_dead(self) -> bool:
        return self.dead_ms >= self.born_ms


@dataclass(frozen=True, slots=True)
class FilterRegistry:
    """All registered expressions, by topic and group, and the shape of their bitmaps."""

    bloom: BloomFilter
    entries: HashTrieMap[tuple[str, str], FilterData] = field(default_factory=HashTrieMap)

    def get(self, topic: str, group: str) -> FilterData | None:
        return self.entries.get((topic, group))

    def of_topic(self, topic: str) -> tuple[FilterData, ...]:
        """Every expression on a topic, dead ones included: what a bitmap is computed from."""
        found = [entry for key, entry in self.entries.items() if key[0] == topic]
        return tuple(sorted(found, key=lambda entry: entry.group))


class Bitmaps:
    """Computes the bitmaps of messages: the bits of every registered expression that a message satisfies."""

    def __init__(self, registry: Callable[[], FilterRegistry]) -> None:
        self._registry = registry
        self._known: FilterRegistry | None = None
        self._by_topic: dict[str, tuple[FilterData, ...]] = {}

    def __call__(self, topic: str, properties: bytes) -> bytes:
        """The bitmap of a message; empty when nobody filters its topic, which says nothing."""
        registry = self._registry()
        if registry is not self._known:
            self._known, self._by_topic = registry, {}
        entries = self._by_topic.get(topic)
        if entries is None:
            entries = self._by_topic[topic] = registry.of_topic(topic)
        if not entries:
            return b""
        found = decode_properties(properties)
        positions = [p for entry in entries if matches(entry.compiled, found) for p in entry.bit_positions]
        return registry.bloom.bitmap(tuple(positions))


def is_tag_expression(expression_type: str | None) -> bool:
    """Whether a subscription is one by tags; a missing or empty type means that."""
    return not expression_type or expression_type == EXPRESSION_TAG


def compile_filter(
    registry: FilterRegistry, group: str, subscription: SubscriptionData, now_ms: TimestampMs, log_end: PhysicalOffset
) -> FilterData | None:
    """The filter of a subscription, or None when its expression or its type is not one that we know."""
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
    """The registry after a heartbeat of a group: its expressions are the live ones, all others of it are dead."""
    wanted = {s.topic: s for s in subscriptions if not is_tag_expression(s.expression_type) and s.sub_string}
    entries = registry.entries
    for topic in sorted(wanted):
        entries = _register_one(registry, entries, group, wanted[topic], now_ms, log_end)
    for key in sorted(k for k in entries if k[1] == group and k[0] not in wanted):
        entries = _bury(entries, key, now_ms)
    return registry if entries is registry.entries else replace(registry, entries=entries)


def _register_one(
    registry: FilterRegistry,
    entries: HashTrieMap[tuple[str, str], FilterData],
    group: str,
    subscription: SubscriptionData,
    now_ms: TimestampMs,
    log_end: PhysicalOffset,
) -> HashTrieMap[tuple[str, str], FilterData]:
    key = (subscription.topic, group)
    known = entries.get(key)
    if known is not None:
        if subscription.sub_version < known.client_version:
            return entries
        alive = known
        if known.is_dead:
            alive = replace(known, dead_ms=TimestampMs(0), born_ms=now_ms, since=log_end)
        if subscription.sub_version == known.client_version:
            return entries if alive is known else entries.insert(key, alive)
        if (subscription.expression_type, subscription.sub_string) == (known.expression_type, known.text):
            return entries.insert(key, replace(alive, client_version=subscription.sub_version))
    elif len(entries) >= ENTRIES_MAX:
        return entries
    compiled = compile_filter(registry, group, subscription, now_ms, log_end)
    return entries.discard(key) if compiled is None else entries.insert(key, compiled)


def _bury(
    entries: HashTrieMap[tuple[str, str], FilterData], key: tuple[str, str], now_ms: TimestampMs
) -> HashTrieMap[tuple[str, str], FilterData]:
    entry = entries[key]
    return entries if entry.is_dead else entries.insert(key, replace(entry, dead_ms=now_ms))


def bury_group(registry: FilterRegistry, group: str, now_ms: TimestampMs) -> FilterRegistry:
    """The last member of a group is gone: its expressions are dead."""
    entries = registry.entries
    for key in sorted(k for k in entries if k[1] == group):
        entries = _bury(entries, key, now_ms)
    return replace(registry, entries=entries)


def purge(registry: FilterRegistry, now_ms: TimestampMs, keep_ms: int) -> FilterRegistry:
    """Forgets what has been dead for `keep_ms`."""
    entries = registry.entries
    for key in sorted(k for k, e in entries.items() if e.is_dead and now_ms - e.dead_ms >= keep_ms):
        entries = entries.discard(key)
    return registry if entries is registry.entries else replace(registry, entries=entries)


# The file ----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class BloomFilterData:
    """The bits of one entry in the file."""

    bit_num: Int32
    bit_pos: tuple[Int32, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredFilter:
    """One entry of the file. `dead` is written for people and not read."""

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
class TopicFilters:
    topic: str
    group_filter_data: Mapping[str, StoredFilter] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class FilterFile:
    """consumerFilter.json."""

    by_topic: Annotated[Mapping[str, TopicFilters], Wire("filterDataByTopic")] = field(default_factory=dict)


def to_file(registry: FilterRegistry) -> FilterFile:
    topics: dict[str, dict[str, StoredFilter]] = {}
    for topic, group in sorted(registry.entries):
        entry = registry.entries[(topic, group)]
        topics.setdefault(topic, {})[group] = StoredFilter(
            topic=topic,
            consumer_group=group,
            expression=entry.text,
            expression_type=entry.expression_type,
            born_time=entry.born_ms,
            client_version=entry.client_version,
            dead_time=entry.dead_ms,
            bloom_filter_data=BloomFilterData(bit_num=registry.bloom.bit_count, bit_pos=entry.bit_positions),
            dead=entry.is_dead,
        )
    return FilterFile(by_topic={t: TopicFilters(topic=t, group_filter_data=groups) for t, groups in topics.items()})


def from_file(
    stored: FilterFile | None, bloom: BloomFilter, now_ms: TimestampMs, log_end: PhysicalOffset
) -> FilterRegistry:
    """The registry of a broker that starts. Bitmaps of another shape make the whole file useless.

    Bitmaps from before the start are not asked: nobody knows whether the file has the last expressions of before.
    """
    empty = FilterRegistry(bloom)
    every = [] if stored is None else [f for t in stored.by_topic.values() for f in t.group_filter_data.values()]
    if any(not _fits(f.bloom_filter_data, bloom) for f in every):
        return empty
    entries = empty.entries
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
            entries = entries.insert((old.topic, old.consumer_group), replace(compiled, dead_ms=TimestampMs(dead_ms)))
    return replace(empty, entries=entries)


def _fits(data: BloomFilterData | None, bloom: BloomFilter) -> bool:
    return data is not None and data.bit_num == bloom.bit_count and len(data.bit_pos) == bloom.hash_count
