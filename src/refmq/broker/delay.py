"""Delivery of delayed messages: each level is a queue ordered by due time, and a cursor.

A message whose time has come is stored again, under its real topic and queue, and the cursor passes it. Two things
must never happen: a message delivered early, and a sound message skipped. Therefore

- a message that can never be delivered, because it is damaged or because no store would take it, is set aside: the
  operator is told, and the cursor passes it. Whatever is behind it has its own time;
- a cursor outside its queue is moved to the nearest end (a copied file, a log that lost its tail);
- what is written to delayOffset.json is the cursor only as far as the delivered copies are durable: a power loss that
  takes a copy back must find the cursor before it. (Upstream writes the cursor as it is.)

A message that was delivered after the last write of the file is delivered again after a crash: at least once.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from typing import Final

from refmq.broker.environment import Environment
from refmq.broker.message_copy import copy_of
from refmq.broker.real_place import real_place
from refmq.broker.sound_record import sound_record
from refmq.model.ids import PhysicalOffset, QueueOffset, TimestampMs
from refmq.plane.engine import HotPath
from refmq.protocol.bodies.offsets import DelayOffsets
from refmq.protocol.names import SCHEDULE_TOPIC
from refmq.protocol.record import Record, decode_properties
from refmq.store.delay import DelayLevels
from refmq.store.values import MessageToStore, PutResult, QueueUnit

DELIVER_AT_ONCE: Final = 64
"""Messages delivered before others have their turn."""

RETRY_MS: Final = 100
"""How long to wait before retrying a message the store refused."""


@dataclass(frozen=True, slots=True)
class Delivered:
    """A stored copy: the cursor past its original may be written once the copy is durable."""

    level: int
    cursor: QueueOffset
    durable_at: PhysicalOffset


@dataclass(frozen=True, slots=True)
class Turn:
    """What one turn found: when the next message is due, or None if none is waiting."""

    next_due_ms: TimestampMs | None
    delivered: int = 0


class DelayService:
    """The cursors of all levels."""

    def __init__(
        self, engine: HotPath, environment: Environment, levels: DelayLevels, stored: DelayOffsets | None
    ) -> None:
        self._engine = engine
        self._environment = environment
        self._levels = levels
        found = {} if stored is None else stored.offset_table
        self.cursors = {
            level: self._in_range(level, QueueOffset(found.get(level, 0))) for level in range(1, levels.level_max + 1)
        }
        self._safe = dict(self.cursors)
        self._not_durable: deque[Delivered] = deque()
        self._backed_off: dict[int, TimestampMs] = {}

    def _in_range(self, level: int, cursor: QueueOffset) -> QueueOffset:
        """Clamps a cursor to its queue: messages below it are gone, and nothing beyond it was ever delivered."""
        store = self._engine.store
        low, high = store.min_offset(SCHEDULE_TOPIC, level - 1), store.max_offset(SCHEDULE_TOPIC, level - 1)
        return min(max(cursor, low), high)

    def to_file(self) -> DelayOffsets:
        """The cursors that may be saved now: only of levels that have delivered something, as upstream."""
        flushed_to = self._engine.store.flushed_to
        while self._not_durable and self._not_durable[0].durable_at <= flushed_to:
            done = self._not_durable.popleft()
            self._safe[done.level] = done.cursor
        return DelayOffsets(offset_table={level: cursor for level, cursor in self._safe.items() if cursor > 0})

    async def deliver_due(self, now_ms: TimestampMs) -> Turn:
        """Delivers what is due, a bounded number of messages."""
        delivered = 0
        next_due_ms: TimestampMs | None = None
        for level in self.cursors:
            count, due_ms = await self._deliver_level(level, now_ms)
            delivered += count
            if due_ms is not None:
                next_due_ms = due_ms if next_due_ms is None else min(next_due_ms, due_ms)
        return Turn(next_due_ms, delivered)

    async def _deliver_level(self, level: int, now_ms: TimestampMs) -> tuple[int, TimestampMs | None]:
        """Delivers one level; returns how many messages were delivered and when the next is due."""
        until = self._backed_off.get(level)
        if until is not None and now_ms < until:
            return 0, until
        store = self._engine.store
        delivered = 0
        self.cursors[level] = self._in_range(level, self.cursors[level])
        end = store.max_offset(SCHEDULE_TOPIC, level - 1)
        units = store.units(SCHEDULE_TOPIC, level - 1, self.cursors[level], DELIVER_AT_ONCE)
        if not units and self.cursors[level] < end:
            self.cursors[level] = QueueOffset(self.cursors[level] + 1)  # an empty slot: its message is gone
        for unit in units:
            due_ms = self._due_ms(level, unit, now_ms)
            if due_ms > now_ms:
                return delivered, due_ms
            result = await self._deliver(unit)
            if result is not None and result.status.is_for_good:
                sentence = f"the delayed message at physical offset {unit.physical_offset} is set aside"
                self._environment.warn(f"{sentence}: the store refuses it, {result.status.name}")
                result = None
            elif result is not None and not result.status.is_stored:
                self._backed_off[level] = TimestampMs(now_ms + RETRY_MS)
                return delivered, self._backed_off[level]
            self._pass(level, unit, result)
            delivered += 1
        # The turn was full or reached the end of a queue file: more may already be due.
        return delivered, now_ms if self.cursors[level] < end else None

    def _due_ms(self, level: int, unit: QueueUnit, now_ms: TimestampMs) -> TimestampMs:
        """When a message is due. A time further off than the level's delay means a clock set back: due now."""
        return TimestampMs(unit.tags_code if unit.tags_code <= now_ms + self._levels.delay_ms(level) else now_ms)

    def _pass(self, level: int, unit: QueueUnit, result: PutResult | None) -> None:
        cursor = QueueOffset(unit.queue_offset + 1)
        assert cursor > self.cursors[level], "a cursor only moves forward"
        self.cursors[level] = cursor
        durable_at = self._engine.store.log_max if result is None else result.durable_at
        self._not_durable.append(Delivered(level, cursor, durable_at))

    async def _deliver(self, unit: QueueUnit) -> PutResult | None:
        """Stores the message under its real topic. None when there is nothing to deliver: gone, damaged, or with
        properties that name no place for it."""
        record = sound_record(self._engine.store, self._environment, unit.physical_offset, "a delayed message")
        if record is None:
            return None
        message = real_message(record)
        if message is None:
            sentence = f"the delayed message at physical offset {unit.physical_offset} is set aside"
            self._environment.warn(f"{sentence}: its properties name no topic and queue to which it could go")
            return None
        return await self._engine.put(message, wait_durable=False)


def real_message(record: Record) -> MessageToStore | None:
    """The message held in a record of the delay topic, as it is stored when it is due.

    Its properties are unchanged, DELAY included; `delay_level` 0 keeps it from being delayed again.
    """
    properties = decode_properties(record.properties)
    place = real_place(properties)
    if place is None:
        return None
    return copy_of(record)._replace(topic=place.topic, queue_id=place.queue_id, delay_level=0)
