"""Long polling: pulls that found nothing new and wait for a message.

A pull is parked under its queue. It is woken when a message that its filter wants becomes readable, when its time is
up, or by a look every few seconds: a queue that moved on although nothing matched wakes it as well, so that the
consumer learns how far it may skip. A woken pull is run again and then always answered.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, TypeVar

from refmq.model.ids import QueueOffset, TimestampMs
from refmq.protocol.command import RemotingCommand
from refmq.store.values import Dispatched, MessageFilter, QueueId

K = TypeVar("K")

HELD_MAX: Final = 100_000
"""Pulls that may wait at once: upstream's queue for pulls has this length."""


@dataclass(frozen=True, slots=True)
class HeldPull:
    """One waiting pull."""

    number: int
    connection: int
    command: RemotingCommand
    queue: QueueId
    queue_offset: QueueOffset
    """The first message that it has not seen."""
    deadline_ms: TimestampMs
    message_filter: MessageFilter


class PullHold:
    """The waiting pulls of a broker, by queue and by connection."""

    def __init__(self) -> None:
        self._by_queue: dict[QueueId, dict[int, HeldPull]] = {}
        self._by_connection: dict[int, dict[int, HeldPull]] = {}
        self._next_number = 0
        self._count = 0

    def __len__(self) -> int:
        return self._count

    def park(
        self,
        connection: int,
        command: RemotingCommand,
        queue: QueueId,
        queue_offset: QueueOffset,
        deadline_ms: TimestampMs,
        message_filter: MessageFilter,
    ) -> bool:
        """Whether the pull waits now. False when too many do: then it is answered at once."""
        if self._count >= HELD_MAX:
            return False
        self._next_number += 1
        pull = HeldPull(self._next_number, connection, command, queue, queue_offset, deadline_ms, message_filter)
        self._by_queue.setdefault(queue, {})[pull.number] = pull
        self._by_connection.setdefault(connection, {})[pull.number] = pull
        self._count += 1
        return True

    def arrived(self, message: Dispatched) -> tuple[HeldPull, ...]:
        """Wakes the pulls that wait for this message."""
        waiting = self._by_queue.get(QueueId(message.topic, message.queue_id))
        if not waiting:
            return ()
        woken = [
            pull
            for pull in waiting.values()
            if message.queue_offset >= pull.queue_offset and wants(pull.message_filter, message)
        ]
        return self._take(woken)

    def look(self, now_ms: TimestampMs, max_offset: Callable[[QueueId], QueueOffset]) -> tuple[HeldPull, ...]:
        """Wakes the pulls whose time is up and those whose queue has moved on."""
        woken: list[HeldPull] = []
        for queue, waiting in self._by_queue.items():
            end = max_offset(queue)
            woken.extend(p for p in waiting.values() if now_ms >= p.deadline_ms or end > p.queue_offset)
        return self._take(woken)

    def drop_connection(self, connection: int) -> None:
        """Forgets the pulls of a connection that is gone."""
        self._take(list(self._by_connection.get(connection, {}).values()))

    def take_all(self) -> tuple[HeldPull, ...]:
        """Wakes everybody: the broker stops."""
        return self._take([pull for waiting in self._by_queue.values() for pull in waiting.values()])

    def _take(self, pulls: list[HeldPull]) -> tuple[HeldPull, ...]:
        for pull in pulls:
            _discard(self._by_queue, pull.queue, pull.number)
            _discard(self._by_connection, pull.connection, pull.number)
            self._count -= 1
        return tuple(sorted(pulls, key=lambda pull: pull.number))


def _discard(index: dict[K, dict[int, HeldPull]], key: K, number: int) -> None:
    waiting = index[key]
    del waiting[number]
    if not waiting:
        del index[key]


def wants(message_filter: MessageFilter, message: Dispatched) -> bool:
    """Whether a filter lets a message pass, as far as the arrival tells."""
    codes = message_filter.tag_codes
    if codes is not None and _int32(message.tags_code) not in codes:
        return False
    return message_filter.matches_properties is None or message_filter.matches_properties(message.properties)


def _int32(value: int) -> int:
    value &= 0xFFFF_FFFF
    return value - 0x1_0000_0000 if value & 0x8000_0000 else value
