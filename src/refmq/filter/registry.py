"""The SQL92 expressions that consumer groups have registered, as values: what a pull is filtered with.

The broker keeps them (`refmq.broker.registered_filters`), the plane looks them up, and the store computes the bitmaps
of new messages from them.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TypeAlias

from rpds import HashTrieMap

from refmq.filter.bloom import BloomFilter
from refmq.filter.sql_ast import Expression
from refmq.filter.sql_eval import matches
from refmq.model.ids import PhysicalOffset, TimestampMs
from refmq.protocol.bodies.heartbeat import EXPRESSION_TAG
from refmq.protocol.record import decode_properties


@dataclass(frozen=True, slots=True)
class FilterData:
    """One registered expression. `dead_ms` is 0 while a live group uses it."""

    topic: str
    group: str
    expression_type: str
    text: str
    compiled: Expression
    terms: int
    """Parts of the expression: what it costs to ask it."""
    born_ms: TimestampMs
    since: PhysicalOffset
    """The end of the log when it was registered: bitmaps before that say nothing about it."""
    client_version: int
    bit_positions: tuple[int, ...]
    dead_ms: TimestampMs

    @property
    def is_dead(self) -> bool:
        return self.dead_ms >= self.born_ms


@dataclass(frozen=True, slots=True)
class TopicFilters:
    """The expressions on one topic, dead ones included: what the bitmaps of its messages are computed from."""

    bit_count: int
    """Of every bitmap; a multiple of 8."""
    groups: HashTrieMap[str, FilterData] = field(default_factory=HashTrieMap)

    def bitmap(self, properties: bytes) -> bytes:
        """The bits of every expression that a message with these properties (wire form) satisfies."""
        found = decode_properties(properties)
        bits = bytearray(self.bit_count // 8)
        for entry in self.groups.values():
            if matches(entry.compiled, found):
                for position in entry.bit_positions:
                    bits[position // 8] |= 1 << position % 8
        return bytes(bits)


Filters: TypeAlias = "HashTrieMap[str, TopicFilters]"
"""The filters a store knows, by topic. A topic without filters has no entry, and its messages no bitmap."""


@dataclass(frozen=True, slots=True)
class FilterRegistry:
    """All registered expressions, by topic and group, and the shape of their bitmaps."""

    bloom: BloomFilter
    by_topic: Filters = field(default_factory=HashTrieMap)
    count: int = 0

    def __len__(self) -> int:
        return self.count

    def get(self, topic: str, group: str) -> FilterData | None:
        filters = self.by_topic.get(topic)
        return None if filters is None else filters.groups.get(group)

    def every(self) -> tuple[FilterData, ...]:
        """All expressions, dead ones included, by topic and group."""
        found = [entry for filters in self.by_topic.values() for entry in filters.groups.values()]
        return tuple(sorted(found, key=lambda entry: (entry.topic, entry.group)))

    def terms_of_group(self, group: str) -> int:
        """The parts of the longest expression of a group."""
        return max((entry.terms for entry in self.of_group(group)), default=0)

    def of_group(self, group: str) -> tuple[FilterData, ...]:
        found = [filters.groups[group] for filters in self.by_topic.values() if group in filters.groups]
        return tuple(sorted(found, key=lambda entry: entry.topic))

    def with_entry(self, entry: FilterData) -> FilterRegistry:
        """The registry with this expression replacing that of its topic and group."""
        assert all(0 <= bit < self.bloom.bit_count for bit in entry.bit_positions), "its bits are of another shape"
        filters = self.by_topic.get(entry.topic) or TopicFilters(self.bloom.bit_count)
        more = 0 if entry.group in filters.groups else 1
        filters = replace(filters, groups=filters.groups.insert(entry.group, entry))
        return replace(self, by_topic=self.by_topic.insert(entry.topic, filters), count=self.count + more)

    def without(self, topic: str, group: str) -> FilterRegistry:
        filters = self.by_topic.get(topic)
        if filters is None or group not in filters.groups:
            return self
        left = replace(filters, groups=filters.groups.remove(group))
        by_topic = self.by_topic.insert(topic, left) if len(left.groups) else self.by_topic.remove(topic)
        assert self.count > 0, "a removed expression was counted"
        return replace(self, by_topic=by_topic, count=self.count - 1)


def is_tag_expression(expression_type: str | None) -> bool:
    """Whether a subscription is one by tags; a missing or empty type means that."""
    return not expression_type or expression_type == EXPRESSION_TAG
