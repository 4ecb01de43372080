"""What a store has promised to keep, and what it must show of it: the ground of AckedSurvives."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Final

from conformance.oracles.store_events import (
    AckPut,
    Damaged,
    DeleteTopic,
    ExpireFile,
    FlushLog,
    Observation,
    PowerLoss,
    ProcessCrash,
    Readout,
    Sent,
    StopStore,
    Stored,
)
from conformance.store.record import COMMIT, Record

NUMBER_BYTES: Final = 4
"""Every body begins with its message's number."""
QUEUED: Final = (0, COMMIT)
"""Transaction types of messages that belong to a queue."""
ALL: Final = 1 << 62


def number_of(record: Record) -> int:
    """The number of the message that a record holds; -1 if it holds none."""
    return int.from_bytes(record.body[:NUMBER_BYTES], "big") if len(record.body) >= NUMBER_BYTES else -1


@dataclass(slots=True)
class Promised:
    """Which messages must be found, and where."""

    promised: dict[int, Stored] = field(default_factory=dict)
    """What must be found from now on."""
    powerproof: dict[int, Stored] = field(default_factory=dict)
    """... even after a power loss."""
    stored: dict[int, Stored] = field(default_factory=dict)
    sent: dict[int, Sent] = field(default_factory=dict)
    log_min: int = 0
    reachable: int = 0
    """Where the log starts, and where it may start if cleaning was interrupted."""
    built_from: int = 0
    """Where somebody removed all queues: offsets of messages before it can be forgotten."""
    deleted_to: dict[str, int] = field(default_factory=dict)

    def feed(self, seen: Observation) -> None:
        """Something happened to the store."""
        match seen:
            case Sent():
                self.sent[seen.number] = seen
            case Stored():
                self.stored[seen.number] = seen
            case AckPut():
                self.promised[seen.number] = self.stored[seen.number]
                if seen.promises_power:
                    self.powerproof[seen.number] = self.stored[seen.number]
            case FlushLog(flushed_to):
                covered = {n: at for n, at in self.stored.items() if at.physical_offset + at.size_bytes <= flushed_to}
                self.powerproof |= covered
            case StopStore():
                self.powerproof = dict(self.promised)
            case PowerLoss() | ProcessCrash(loses_unwritten=True):
                self.promised, self.stored = dict(self.powerproof), dict(self.powerproof)
            case ProcessCrash():
                # Written bytes survive, so everything that the store called stored is promised.
                self.promised |= self.stored
            case Damaged(what="LoseDerived"):
                self.built_from = ALL
            case DeleteTopic(topic, log_end):
                self.deleted_to[topic] = log_end
            case ExpireFile():
                self._expired(seen)
            case _:
                pass

    def _expired(self, seen: ExpireFile) -> None:
        if seen.interrupted:
            self.reachable = max(self.reachable, reachable_min(seen))
        elif not seen.removed_count:
            self.reachable = max(self.reachable, min(seen.begins_after, default=0))
        else:
            self.log_min = self.reachable = max(self.log_min, min(seen.begins_after, default=self.log_min))

    def read(self, seen: Readout) -> Iterator[str]:
        """What is missing when everything is read."""
        self.log_min = self.reachable = max(self.log_min, min(seen.log_min, self.reachable))
        hidden = {n: at for n, at in self.stored.items() if seen.hides_unwritten and at.physical_offset >= seen.log_max}
        self.stored = hidden | {number_of(record): _stored(record) for record in seen.records}
        self.built_from = min(self.built_from, seen.log_max)
        if seen.is_full:
            yield from self._short_queues(seen)
        at = {record.physical_offset: record for record in seen.records}
        for number, where in self.promised.items():
            if where.physical_offset < self.log_min or (seen.hides_unwritten and where.physical_offset >= seen.log_max):
                continue
            record = at.get(where.physical_offset)
            if record is None or number_of(record) != number:
                yield f"message {number} was promised at physical offset {where.physical_offset} and is gone"
            elif record.queue_offset != where.queue_offset:
                what = f"message {number} was promised at queue offset {where.queue_offset}"
                yield f"{what} and is at {record.queue_offset}"

    def _short_queues(self, seen: Readout) -> Iterator[str]:
        """Queues that end before a message that they have had."""
        for number, where in self.promised.items():
            origin = self.sent[number]
            queue = seen.queues.get((origin.topic, origin.queue_id))
            counts_from = max(self.built_from, self.deleted_to.get(origin.topic, 0))
            if origin.transaction not in QUEUED or where.physical_offset < counts_from:
                continue
            if queue is None or queue.max_offset <= where.queue_offset:
                name = f"queue {origin.topic}/{origin.queue_id}"
                end = queue.max_offset if queue else 0
                yield f"{name} was promised to have had offset {where.queue_offset} and ends at {end}"


def _stored(record: Record) -> Stored:
    size, queue_offset = record.size_bytes, record.queue_offset
    return Stored(number_of(record), record.physical_offset, size, queue_offset, record.store_ms)


def reachable_min(seen: ExpireFile) -> int:
    """The latest start of the log that an interrupted cleaning may leave."""
    reachable = seen.files[0][0] if seen.files else 0
    for (_, modified_ms), (following, _) in pairwise(seen.files):
        is_expired = seen.forced or seen.now_ms >= modified_ms + seen.reserved_ms
        if not seen.allowed or not is_expired or following > seen.safe_to:
            break
        reachable = following
    return reachable
