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
