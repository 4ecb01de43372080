"""Long polling: pulls that found nothing new and wait for a message.

A pull is parked under its queue. It is woken when a message that its filter wants becomes readable, when its time is
up, or by a look every few seconds: a queue that moved on although nothing matched wakes it as well, so that the
consumer learns how far it may skip. A woken pull is run again and then always answered.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Final, TypeAlias, TypeVar

from rpds import HashTrieMap

from refmq.filter.message_filter import MessageFilter
from refmq.filter.work import WORK_MAX, work_of
from refmq.model.ids import QueueOffset
from refmq.plane.inputs import Frame
from refmq.store.api import StoreReader
from refmq.store.values import Dispatched

K = TypeVar("K", bound=Hashable)

HELD_MAX: Final = 100_000
"""Pulls that may wait at once: upstream's queue for pulls has this length."""


HELD_PER_QUEUE_MAX: Final = 4_096
"""Pulls that may wait for one queue, and that one message can wake. Members of a group share queues; only those of a
group that broadcasts all wait for the same."""

HELD_BYTES_MAX: Final = 128 << 20
"""What the waiting pulls may take in memory."""

PULL_BYTES: Final = 2_048
"""What a waiting pull takes beside the texts of its fields."""


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

    def may_want(self, message: Dispatched) -> bool:
        """Whether this message can be one that the pull waits for, as far as its unit tells."""
        return message.queue_offset >= self.queue_offset and self.message_filter.matches_code(message.tags_code)

    @property
    def size_bytes(self) -> int:
        """What it takes in memory, roughly."""
        command = self.frame.command
        return PULL_BYTES + len(command.body) + sum(map(len, command.fields.values()))


Pulls: TypeAlias = "HashTrieMap[int, HeldPull]"
_NONE: Final[Pulls] = HashTrieMap()


@dataclass(frozen=True, slots=True)
class Hold:
    """The waiting pulls of a broker, by queue and by connection; in both by the number of their frame."""

    by_queue: HashTrieMap[tuple[str, int], Pulls] = field(default_factory=HashTrieMap)
    by_connection: HashTrieMap[int, Pulls] = field(default_factory=HashTrieMap)
    count: int = 0
    size_bytes: int = 0

    def __len__(self) -> int:
        return self.count

    def has_room(self, pull: HeldPull) -> bool:
        waiting = self.by_queue.get((pull.topic, pull.queue_id)) or _NONE
        has_bytes = self.size_bytes + pull.size_bytes <= HELD_BYTES_MAX
        return self.count < HELD_MAX and len(waiting) < HELD_PER_QUEUE_MAX and has_bytes

    def park(self, pull: HeldPull) -> Hold:
        """The pull waits from now on."""
        assert self.has_room(pull), "whoever parks a pull has asked whether there is room"
        queue, connection, number = (pull.topic, pull.queue_id), pull.frame.connection, pull.frame.number
        here, there = self.by_queue.get(queue) or _NONE, self.by_connection.get(connection) or _NONE
        assert number not in here, "a frame is parked once"
        assert number not in there, "the two indexes know the same pulls"
        return Hold(
            self.by_queue.insert(queue, here.insert(number, pull)),
            self.by_connection.insert(connection, there.insert(number, pull)),
            self.count + 1,
            self.size_bytes + pull.size_bytes,
        )

    def arrived(self, message: Dispatched) -> tuple[HeldPull, ...]:
        """The pulls that wait for this message."""
        waiting = self.by_queue.get((message.topic, message.queue_id))
        return () if waiting is None else tuple(_wanting(in_order(waiting.values()), message))

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
        by_queue = _without(self.by_queue, [((pull.topic, pull.queue_id), pull.frame.number) for pull in pulls])
        by_connection = _without(self.by_connection, [(pull.frame.connection, pull.frame.number) for pull in pulls])
        assert self.count >= len(pulls), "only what waits can stop waiting"
        assert (self.count == len(pulls)) == (not len(by_queue)) == (not len(by_connection)), "the count is theirs"
        size_bytes = self.size_bytes - sum(pull.size_bytes for pull in pulls)
        assert size_bytes >= 0
        return Hold(by_queue, by_connection, self.count - len(pulls), size_bytes)


def _wanting(pulls: Iterable[HeldPull], message: Dispatched) -> Iterator[HeldPull]:
    """Those that wait for a message. When asking their expressions has cost enough, the others are simply woken."""
    work = 0
    for pull in pulls:
        if not pull.may_want(message):
            continue
        wanted = pull.message_filter
        if wanted.reads_properties and work < WORK_MAX:
            work += work_of(wanted.terms, len(message.properties))
            if not wanted.matches_properties(message.properties):
                continue
        yield pull


def in_order(pulls: Iterable[HeldPull]) -> tuple[HeldPull, ...]:
    """The order in which pulls are answered: that of their requests. A map has none of its own."""
    return tuple(sorted(pulls, key=lambda pull: pull.frame.number))


def _without(index: HashTrieMap[K, Pulls], entries: list[tuple[K, int]]) -> HashTrieMap[K, Pulls]:
    """The index without these frames; thousands may go at once, so each key is looked at once."""
    numbers: dict[K, list[int]] = {}
    for key, number in entries:
        numbers.setdefault(key, []).append(number)
    for key, gone in numbers.items():
        left = index[key]
        if len(left) == len(gone):
            assert all(number in left for number in gone), "only what waits can stop waiting"
            index = index.remove(key)
            continue
        for number in gone:
            left = left.remove(number)
        index = index.insert(key, left)
    return index
