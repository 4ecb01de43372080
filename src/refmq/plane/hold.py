"""Long polling: pulls that found nothing new and wait for a message.

A pull is parked under its queue. It is woken when a message that its filter wants becomes readable, when its time is
up, or by a look every few seconds: a queue that moved on although nothing matched wakes it as well, so that the
consumer learns how far it may skip. A woken pull is run again and then always answered.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from dataclasses import dataclass, field, replace
from typing import Final, TypeAlias, TypeVar

from rpds import HashTrieMap

from refmq.filter.message_filter import MessageFilter
from refmq.model.ids import QueueOffset
from refmq.plane.inputs import Frame
from refmq.store.api import StoreReader
from refmq.store.values import Dispatched

K = TypeVar("K", bound=Hashable)

HELD_MAX: Final = 100_000
"""Pulls that may wait at once: upstream's queue for pulls has this length."""


@dataclass(frozen=True, slots=True)
class HeldPull:
    """One waiting pull."""

    frame: Frame
    topic: str
    queue_id: int
    queue_offset: QueueOffset
    """The first message that it has not seen."""
    deadline_ms: int
    """In uptime."""
    message_filter: MessageFilter

    def wants(self, message: Dispatched) -> bool:
        """Whether this message is one that the pull waits for, as far as the arrival tells."""
        wanted = self.message_filter
        return (
            message.queue_offset >= self.queue_offset
            and wanted.matches_code(message.tags_code)
            and wanted.matches_properties(message.properties)
        )


Pulls: TypeAlias = "HashTrieMap[int, HeldPull]"
_NONE: Final[Pulls] = HashTrieMap()


@dataclass(frozen=True, slots=True)
class Hold:
    """The waiting pulls of a broker, by queue and by connection; in both by the number of their frame."""

    by_queue: HashTrieMap[tuple[str, int], Pulls] = field(default_factory=HashTrieMap)
    by_connection: HashTrieMap[int, Pulls] = field(default_factory=HashTrieMap)
    count: int = 0

    def __len__(self) -> int:
        return self.count

    def has_room(self) -> bool:
        return self.count < HELD_MAX

    def park(self, pull: HeldPull) -> Hold:
        """The pull waits from now on."""
        assert self.has_room(), "whoever parks a pull has asked whether there is room"
        queue, connection, number = (pull.topic, pull.queue_id), pull.frame.connection, pull.frame.number
        here, there = self.by_queue.get(queue) or _NONE, self.by_connection.get(connection) or _NONE
        assert number not in here, "a frame is parked once"
        assert number not in there, "the two indexes know the same pulls"
        return Hold(
            self.by_queue.insert(queue, here.insert(number, pull)),
            self.by_connection.insert(connection, there.insert(number, pull)),
            self.count + 1,
        )

    def arrived(self, message: Dispatched) -> tuple[HeldPull, ...]:
        """The pulls that wait for this message."""
        waiting = self.by_queue.get((message.topic, message.queue_id))
        return () if waiting is None else in_order(pull for pull in waiting.values() if pull.wants(message))

    def due(self, store: StoreReader, uptime_ms: int) -> tuple[HeldPull, ...]:
        """The pulls whose time is up and those whose queue has moved on."""
        woken: list[HeldPull] = []
        for (topic, queue_id), waiting in self.by_queue.items():
            end = store.max_offset(topic, queue_id)
            woken.extend(p for p in waiting.values() if uptime_ms >= p.deadline_ms or end > p.queue_offset)
        return in_order(woken)

    def of_connection(self, connection: int) -> tuple[HeldPull, ...]:
        return in_order((self.by_connection.get(connection) or _NONE).values())

    def every(self) -> tuple[HeldPull, ...]:
        return in_order(pull for waiting in self.by_queue.values() for pull in waiting.values())

    def without(self, pulls: tuple[HeldPull, ...]) -> Hold:
        """These pulls no longer wait."""
        if not pulls:
            return self
        by_queue, by_connection = self.by_queue, self.by_connection
        for pull in pulls:
            by_queue = _without(by_queue, (pull.topic, pull.queue_id), pull.frame.number)
            by_connection = _without(by_connection, pull.frame.connection, pull.frame.number)
        assert self.count >= len(pulls), "only what waits can stop waiting"
        assert (self.count == len(pulls)) == (not len(by_queue)) == (not len(by_connection)), "the count is theirs"
        return replace(self, by_queue=by_queue, by_connection=by_connection, count=self.count - len(pulls))


def in_order(pulls: Iterable[HeldPull]) -> tuple[HeldPull, ...]:
    """The order in which pulls are answered: that of their requests. A map has none of its own."""
    return tuple(sorted(pulls, key=lambda pull: pull.frame.number))


def _without(index: HashTrieMap[K, Pulls], key: K, number: int) -> HashTrieMap[K, Pulls]:
    left = index[key].remove(number)
    return index.insert(key, left) if len(left) else index.remove(key)
