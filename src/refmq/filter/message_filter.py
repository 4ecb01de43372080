"""Which messages of a queue a consumer wants, as a value: what a pull hands to the store.

The queue unit is checked first (the hash of the tags, a bit of the extension's bitmap), because it is at hand. If it
passes, the message's properties are read, if the filter needs them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from refmq.filter.registry import FilterRegistry
from refmq.filter.sql_ast import Expression
from refmq.filter.sql_eval import matches
from refmq.filter.tags import to_int32
from refmq.model.ids import PhysicalOffset
from refmq.protocol.names import RETRY_TOPIC
from refmq.protocol.record import decode_properties


@dataclass(frozen=True, slots=True)
class BitmapTest:
    """What an expression asks of a unit's bitmap in the extension file before the record is read."""

    bit_positions: tuple[int, ...]
    bit_count: int
    """A bitmap of another length says nothing and matches."""
    since: PhysicalOffset
    """Bitmaps before this point of the log say nothing: the expression was not registered yet. (4.9.8 compares times,
    and a clock that is set back then hides messages.)"""

    def matches(self, bitmap: bytes, physical_offset: int) -> bool:
        if physical_offset < self.since or len(bitmap) * 8 != self.bit_count:
            return True
        return all(bitmap[position // 8] & 1 << position % 8 for position in self.bit_positions)


@dataclass(frozen=True, slots=True)
class OriginFilter:
    """A retried message must satisfy its group's expression on the topic that it came from, if there is one."""

    registry: FilterRegistry
    group: str

    def matches(self, properties: dict[str, str]) -> bool:
        data = self.registry.get(properties.get(RETRY_TOPIC, ""), self.group)
        return data is None or matches(data.compiled, properties)


@dataclass(frozen=True, slots=True)
class MessageFilter:
    """Each part that is None wants everything."""

    tag_codes: frozenset[int] | None = None
    """Java hashes of the wanted tags, as signed 32-bit numbers."""
    bitmap_test: BitmapTest | None = None
    expression: Expression | None = None
    origin: OriginFilter | None = None
    terms: int = 0
    """Parts of the expression, or of the longest that a retried message may have to satisfy."""

    @property
    def wants_every_unit(self) -> bool:
        return self.tag_codes is None and self.bitmap_test is None

    @property
    def reads_properties(self) -> bool:
        return self.expression is not None or self.origin is not None

    def matches_code(self, tags_code: int) -> bool:
        """Whether a unit's tags code lets the message through. The consumer compares the tags themselves."""
        return self.tag_codes is None or to_int32(tags_code) in self.tag_codes

    def matches_properties(self, wire: bytes) -> bool:
        """Whether the properties of a message (wire form) let it through: the expression itself."""
        if not self.reads_properties:
            return True
        properties = decode_properties(wire)
        if self.expression is not None and not matches(self.expression, properties):
            return False
        return self.origin is None or self.origin.matches(properties)


MatchAll: Final = MessageFilter()
