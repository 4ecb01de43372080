"""Tag subscriptions: `*`, or tags joined by `||`.

The broker compares the 32-bit hashes in the queue units; two tags with the same hash both reach the
consumer, which compares the strings. That division is RocketMQ's, and clients rely on it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from refmq.protocol.record import string_hash

ALL_TAGS = "*"
TAG_SEPARATOR = "||"


TAGS_MAX: Final = 1024
"""Of one subscription: each message of a queue may be compared with all of them."""


@dataclass(frozen=True, slots=True)
class TagFilter:
    """A parsed tag subscription. `codes` is empty when every message is wanted."""

    tags: frozenset[str] = frozenset()
    codes: frozenset[int] = frozenset()

    @property
    def wants_all(self) -> bool:
        return not self.codes

    def matches_code(self, tags_code: int | None) -> bool:
        """Decides on a queue unit. An unknown hash (None) matches: the consumer will look again."""
        if tags_code is None or not self.codes:
            return True
        return to_int32(tags_code) in self.codes


def parse_tags(expression: str | None) -> TagFilter | None:
    """The subscription in `expression`, or None if it consists only of separators, or of more than `TAGS_MAX` tags.

    An empty, missing or `*` expression wants everything.
    """
    if not expression or expression == ALL_TAGS:
        return TagFilter()
    parts = expression.split(TAG_SEPARATOR)
    if not any(parts) or len(parts) > TAGS_MAX:
        return None
    tags = frozenset(part.strip() for part in parts if part.strip())
    return TagFilter(tags, frozenset(string_hash(tag) for tag in tags))


def to_int32(value: int) -> int:
    """Queue units hold the hash in 64 bits; a unit of the delay topic holds a time, cut as Java cuts it."""
    value &= 0xFFFFFFFF
    return value - 0x1_0000_0000 if value & 0x8000_0000 else value
