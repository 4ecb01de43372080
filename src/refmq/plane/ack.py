"""AckPut: when a producer may be told that its message is safe, and who still waits to be told.

The guard stands here and nowhere else. A mode that does not wait for the flush, or for slaves, passes None for it.

    flush   replication   flushed_to     replicated_to
    async   async         None           None
    sync    async         the log's      None
    async   sync          None           the slaves'
    sync    sync          the log's      the slaves'

Puts wait in the order of the log. Both positions only grow, so whoever is in front is ready first, and acknowledgements
leave in the order of the log as well.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Final, NamedTuple

from rpds import HashTrieMap

from refmq.model.ids import PhysicalOffset
from refmq.model.step import EventFields
from refmq.plane.inputs import Frame, Ticket
from refmq.store.values import AppendPlan, PutResult, PutStatus


class Put(NamedTuple):
    """A message or a batch on its way: what was planned for it, and who is told how it ended."""

    plan: AppendPlan
    asker: Frame | Ticket | None
    """None: nobody wants to know."""
    queue_id: int
    """The queue that the answer names: the requested one, even when the message went to a delay queue."""
    begun_ms: int
    """In uptime."""
    also: tuple[EventFields, ...] = ()
    """What a trace says of it besides, once it is acknowledged: that it was a half message."""


def ack_put_enabled(
    put: AppendPlan | PutResult, flushed_to: PhysicalOffset | None, replicated_to: PhysicalOffset | None
) -> bool:
    """Whether everything that this mode waits for has happened to the put."""
    assert put.durable_at > 0, "only what is in the log is acknowledged"
    is_durable = flushed_to is None or put.durable_at <= flushed_to
    is_replicated = replicated_to is None or put.durable_at <= replicated_to
    return is_durable and is_replicated


def timeout_status(put: AppendPlan, flushed_to: PhysicalOffset | None) -> PutStatus:
    """What is told of a put whose time is up: the disk is blamed before the slave, as upstream does."""
    assert put.durable_at > put.physical_offset
    if flushed_to is not None and flushed_to < put.durable_at:
        return PutStatus.FLUSH_DISK_TIMEOUT
    return PutStatus.FLUSH_SLAVE_TIMEOUT


def ack_put_events(plan: AppendPlan, status: PutStatus) -> tuple[EventFields, ...]:
    """What a trace says of an acknowledgement: one event for each message of a batch."""
    assert status.is_stored, "only what is stored is acknowledged"
    assert len(plan.places) == plan.count, "an event for each message"
    return tuple(
        (
            "AckPut",
            "",
            plan.topic,
            plan.queue_id,
            place.physical_offset,
            place.queue_offset,
            place.fingerprint,
            status,
        )
        for place in plan.places
    )


_NO_PUTS: Final[HashTrieMap[int, Put]] = HashTrieMap()


@dataclass(frozen=True, slots=True)
class WaitingPuts:
    """The puts that nobody has been told about, numbered in the order of the log."""

    first: int = 0
    end: int = 0
    puts: HashTrieMap[int, Put] = field(default_factory=lambda: _NO_PUTS)

    def __len__(self) -> int:
        return self.end - self.first

    @property
    def head(self) -> Put | None:
        return self.puts[self.first] if self.first < self.end else None

    def append(self, put: Put) -> WaitingPuts:
        if self.first < self.end:
            last = self.puts[self.end - 1].plan
            assert last.durable_at <= put.plan.physical_offset, "puts wait in the order of the log"
        return replace(self, end=self.end + 1, puts=self.puts.insert(self.end, put))

    def without_head(self) -> WaitingPuts:
        assert self.first < self.end, "somebody waits"
        return replace(self, first=self.first + 1, puts=self.puts.remove(self.first))
