"""Which queue the next message goes to, and which brokers are better left alone for a while.

Without latency fault tolerance: round robin, and a retry avoids the broker of the attempt before. With it, a broker
that was slow or failed is not used until a time that grows with the latency seen:

    slower than (ms)      50   100     550    1,000    2,000    3,000   15,000
    left alone for (ms)    0     0  30,000   60,000  120,000  180,000  600,000
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from rpds import HashTrieMap

from refmq.model.ids import MessageQueue
from refmq.protocol.record import string_hash

LATENCIES_MS: Final = (50, 100, 550, 1_000, 2_000, 3_000, 15_000)
LEFT_ALONE_MS: Final = (0, 0, 30_000, 60_000, 120_000, 180_000, 600_000)
ISOLATION_LATENCY_MS: Final = 30_000
"""A broker that did not answer, or answered with an error, counts as so slow."""


@dataclass(frozen=True, slots=True)
class BrokerFault:
    """What is known of one broker."""

    latency_ms: int
    available_at_ms: int


@dataclass(frozen=True, slots=True)
class Chooser:
    """The state of a producer's queue choice."""

    index: int
    avoids_slow: bool = False
    faults: HashTrieMap[str, BrokerFault] = field(default_factory=HashTrieMap)


def left_alone_ms(latency_ms: int) -> int:
    """How long a broker with this latency is not used."""
    found = 0
    for limit, duration in zip(LATENCIES_MS, LEFT_ALONE_MS, strict=True):
        if latency_ms >= limit:
            found = duration
    return found


def note_attempt(chooser: Chooser, broker: str, latency_ms: int, now_ms: int, *, failed: bool) -> Chooser:
    """Remember how an attempt went. Does nothing without latency fault tolerance."""
    if not chooser.avoids_slow:
        return chooser
    counted = ISOLATION_LATENCY_MS if failed else latency_ms
    fault = BrokerFault(counted, now_ms + left_alone_ms(counted))
    return replace(chooser, faults=chooser.faults.insert(broker, fault))


def choose_queue(
    chooser: Chooser, queues: Sequence[MessageQueue], last_broker: str | None, now_ms: int
) -> tuple[Chooser, MessageQueue]:
    """The queue for the next attempt. ``last_broker`` is where the attempt before failed."""
    assert queues, "there is something to choose from"
    if chooser.avoids_slow:
        return _choose_quick(chooser, queues, now_ms)
    index = chooser.index
    for _ in queues:
        index += 1
        queue = queues[index % len(queues)]
        if queue.broker != last_broker:
            return Chooser(index, chooser.avoids_slow, chooser.faults), queue
    return replace(chooser, index=index + 1), queues[(index + 1) % len(queues)]


def _choose_quick(chooser: Chooser, queues: Sequence[MessageQueue], now_ms: int) -> tuple[Chooser, MessageQueue]:
    index = chooser.index
    for _ in queues:
        index += 1
        queue = queues[index % len(queues)]
        fault = chooser.faults.get(queue.broker)
        if fault is None or fault.available_at_ms <= now_ms:
            return replace(chooser, index=index), queue
    # Nobody is well: one of the better half of those who have queues here.
    here = {queue.broker for queue in queues}
    ranked = sorted(
        (broker for broker in here if broker in chooser.faults),
        key=lambda broker: (chooser.faults[broker].latency_ms, chooser.faults[broker].available_at_ms, broker),
    )
    assert ranked, "a broker of which nothing is known would have been chosen"
    better = ranked[: max(1, len(ranked) // 2)]
    index += 1
    broker = better[index % len(better)]
    of_broker = [queue for queue in queues if queue.broker == broker]
    return replace(chooser, index=index), of_broker[index % len(of_broker)]


def queue_by_hash(queues: Sequence[MessageQueue], key: str | int) -> MessageQueue:
    """The queue of a sharding key, the one that a Java producer with the hash selector chooses for it.

    A text hashes as Java's String, a number as Integer when it fits 32 bits and as Long otherwise.
    """
    assert queues, "there is something to choose from"
    if isinstance(key, str):
        hashed = string_hash(key)
    elif -(2**31) <= key < 2**31:
        hashed = key
    else:
        folded = (key ^ (key >> 32)) & 0xFFFF_FFFF
        hashed = folded - 2**32 if folded & 0x8000_0000 else folded
    return queues[abs(hashed) % len(queues)]
