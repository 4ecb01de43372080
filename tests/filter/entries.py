"""Registered expressions and properties, for tests of filters."""

from __future__ import annotations

from refmq.filter import BloomFilter, compile_expression
from refmq.filter.registry import FilterData
from refmq.model.ids import PhysicalOffset, TimestampMs
from refmq.protocol.record import join_properties

BLOOM = BloomFilter.for_groups()


def entry(topic: str, group: str, text: str = "a > 5", *, dead_ms: int = 0) -> FilterData:
    return FilterData(
        topic=topic,
        group=group,
        expression_type="SQL92",
        text=text,
        compiled=compile_expression(text),
        terms=3,
        born_ms=TimestampMs(10),
        since=PhysicalOffset(0),
        client_version=1,
        bit_positions=BLOOM.positions(f"{group}#{topic}"),
        dead_ms=TimestampMs(dead_ms),
    )


def wire(**properties: str) -> bytes:
    return join_properties(properties).encode()
