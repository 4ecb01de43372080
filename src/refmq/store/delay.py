"""Delay levels: how long each one waits, where its messages wait, and how far each one is delivered.

A delayed message is stored in topic `SCHEDULE_TOPIC_XXXX`, queue `level - 1`, with its real topic and queue in the
properties REAL_TOPIC and REAL_QID. The tags code of its queue unit is the time of its delivery. How far a level is
delivered is kept in `config/delayOffset.json`, by level. (ScheduleMessageService, 4.9.8.)
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from refmq.errors import UsageError
from refmq.protocol.record import decode_properties, encode_properties

SCHEDULE_TOPIC: Final = "SCHEDULE_TOPIC_XXXX"
PROPERTY_DELAY: Final = "DELAY"
PROPERTY_REAL_TOPIC: Final = "REAL_TOPIC"
PROPERTY_REAL_QUEUE: Final = "REAL_QID"

UNKNOWN_LEVEL_MS: Final = 1000
"""How long a level waits that is not in the table; Java's number."""

LEVEL_DIGITS_MAX: Final = 10
"""Of a DELAY property."""

_UNIT_MS: Final = {"s": 1000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}


@dataclass(frozen=True, slots=True)
class DelayLevels:
    """The table of levels. Level 1 is `delays_ms[0]`."""

    delays_ms: tuple[int, ...]

    @classmethod
    def parse(cls, text: str) -> DelayLevels:
        """From `1s 5s 10s ...` (`messageDelayLevel`)."""
        delays = []
        for part in text.split():
            number, unit = part[:-1], part[-1:].lower()
            if unit not in _UNIT_MS or not (number.isascii() and number.isdigit()):
                raise UsageError(f"the delay level {part!r} is not a number followed by s, m, h or d")
            delays.append(int(number) * _UNIT_MS[unit])
        return cls(tuple(delays))

    @property
    def level_max(self) -> int:
        return len(self.delays_ms)

    def delay_ms(self, level: int) -> int:
        return self.delays_ms[level - 1] if 1 <= level <= len(self.delays_ms) else UNKNOWN_LEVEL_MS

    def deliver_ms(self, level_text: str, store_ms: int) -> int | None:
        """When a message of the delay topic is due, by its DELAY property; None if that is not a level, which has
        nothing but ASCII digits and fits 32 bits."""
        if not (level_text.isascii() and level_text.isdigit()) or len(level_text) > LEVEL_DIGITS_MAX:
            return None
        level = min(int(level_text), self.level_max)
        return store_ms + self.delay_ms(level) if level > 0 else None


def clamped_offset(offset: int, queue_min: int, queue_max: int) -> int:
    """The delivered offset of a level, moved into its queue: a position outside of it would wait for ever.

    For a master only: a slave's queue may not have reached the offset that its master sent.
    """
    assert queue_min <= queue_max
    return min(max(offset, queue_min), queue_max)


def redirect(levels: DelayLevels, level: int, topic: str, queue_id: int, properties: bytes) -> tuple[int, bytes]:
    """The delay queue that a message goes to, and its properties there."""
    assert level > 0
    assert levels.level_max > 0
    level = min(level, levels.level_max)
    found = decode_properties(properties)
    found[PROPERTY_DELAY] = str(level)
    found[PROPERTY_REAL_TOPIC] = topic
    found[PROPERTY_REAL_QUEUE] = str(queue_id)
    return level - 1, encode_properties(found)
