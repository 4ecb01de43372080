"""Numbers and names that must not be mixed up.

`offset` alone is never enough: a physical offset counts bytes from the start of the commit log, a
queue offset counts messages of one queue. `NewType` makes mypy refuse to add one to the other.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NewType

PhysicalOffset = NewType("PhysicalOffset", int)
"""Bytes from the beginning of the commit log, over all its files."""

QueueOffset = NewType("QueueOffset", int)
"""Messages from the beginning of one consume queue."""

TimestampMs = NewType("TimestampMs", int)
"""Milliseconds since 1970-01-01 UTC, as they stand on the wire and on disk."""

ClientId = NewType("ClientId", str)
"""What a client calls itself: `address@instance`, unique among the live clients."""

BrokerId = NewType("BrokerId", int)
"""0 is the master, everything above is a slave."""


@dataclass(frozen=True, slots=True, order=True)
class MessageQueue:
    """One queue of one topic at one broker: what consumers share among themselves.

    The order (topic, broker, queue id) is the order in which every client sorts the queues
    before it allocates them, so it is part of the protocol.
    """

    topic: str
    broker: str
    queue_id: int

    def __eq__(self, other: object) -> bool:
        # Tables of queues are asked several times for each message, nearly always with the very object they hold.
        if self is other:
            return True
        if not isinstance(other, MessageQueue):
            return NotImplemented
        return self.queue_id == other.queue_id and self.topic == other.topic and self.broker == other.broker

    def __hash__(self) -> int:
        return hash((self.topic, self.broker, self.queue_id))


@dataclass(frozen=True, slots=True, order=True)
class HostAddress:
    """An IPv4 or IPv6 address and a port, as records and message ids hold them."""

    ip: bytes
    """4 or 16 bytes."""
    port: int

    def __post_init__(self) -> None:
        assert len(self.ip) in (4, 16), "an address has 4 or 16 bytes"

    @property
    def is_ipv6(self) -> bool:
        return len(self.ip) == 16
