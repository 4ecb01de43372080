"""What a store is to the rest of refmq: three Protocols, one for each way of using it.

    StoreReader      what anybody may ask, and planning an append: changes nothing
    StoreWriter      what changes the log and the queues
    StoreClockwork   start, stop, and everything that waits for a disk or is due by the clock

`MessageStore` is all three. Two engines are meant to implement it: `refmq.store.ReferenceStore` (this package) and the
C data plane. The values that cross the boundary are in `refmq.store.values`. Time is always an argument, in
milliseconds.

How the parts of a send fit together, for whoever drives a store:

1. `plan_message` or `plan_batch` checks everything, decides where the records go and encodes them. Nothing is written.
2. `append` performs the plan. The plan says up to which physical offset the log must be durable before a producer that
   waits for the disk may be told (`durable_at`).
3. `flush` makes the log durable up to where it was when it was called. With sync flush the shell collects the waiting
   puts and awaits one `flush` for all of them: one flush, many acknowledgements. When a put may be acknowledged is not
   the store's decision: see `refmq.plane.ack`.
4. `dispatch` gives the next records their queue units and index entries and returns them, so that long polls can be
   answered. With sync flush it never goes past the flushed position, so nobody is served what a power loss could take
   back. Call it after every append (async) or flush (sync).
5. `maintain` does what is due by the clock: async flush, queue flush, checkpoint. `clean` removes what has expired.

The plain methods never wait. The awaited ones may run at the same time as plain ones and as each other. A store belongs
to one thread.

Errors: a message that cannot be stored gets a `PutStatus`, never an exception. `DiskError` (a failed flush, no room)
comes out of the awaited methods. After a failed flush or write the store refuses puts and every later `flush` fails,
because nobody knows what is on the medium; `failure` says what happened. A full disk is another matter: `dispatch` and
`maintain` do what they can, puts are refused, and everything resumes when there is room again. `UsageError` means that
the caller is wrong: the store is not started, for example.
"""

from __future__ import annotations

from typing import Protocol

from refmq.errors import DiskError
from refmq.filter.message_filter import MatchAll, MessageFilter
from refmq.filter.registry import Filters
from refmq.model.ids import PhysicalOffset, QueueOffset, TimestampMs
from refmq.store.values import (
    AppendPlan,
    BatchToStore,
    Boundary,
    Dispatched,
    GetResult,
    LogPiece,
    MessageToStore,
    PutStatus,
    QueryResult,
    QueueId,
    QueueUnit,
    RecoveryReport,
)

__all__ = ["MessageStore", "StoreClockwork", "StoreReader", "StoreWriter"]


class StoreReader(Protocol):
    """What anybody may ask of a store. Nothing here changes it."""

    # --- may it accept? -----------------------------------------------------------------------------------------

    @property
    def accepts_puts(self) -> bool:
        """Whether a legal put would be stored now: started, not a slave, disk not full, nothing has failed."""
        ...

    @property
    def failure(self) -> DiskError | None:
        """The first failed flush or write since the start. From then on nothing is durable for certain."""
        ...

    @property
    def disk_used_ratio(self) -> float:
        """How full the disk is, 0 to 1."""
        ...

    # --- planning an append -------------------------------------------------------------------------------------

    def plan_message(self, message: MessageToStore, now_ms: TimestampMs) -> AppendPlan | PutStatus:
        """How the message would be stored, or why it cannot be."""
        ...

    def plan_batch(self, batch: BatchToStore, now_ms: TimestampMs) -> AppendPlan | PutStatus:
        """The same for a batch: all of its messages or none."""
        ...

    # --- queues -------------------------------------------------------------------------------------------------

    def get_message(
        self,
        topic: str,
        queue_id: int,
        queue_offset: QueueOffset,
        count_max: int,
        message_filter: MessageFilter = MatchAll,
    ) -> GetResult:
        """The next messages of a queue that the filter wants, and where to continue."""
        ...

    def min_offset(self, topic: str, queue_id: int) -> QueueOffset:
        """The first readable message; 0 for an unknown queue."""
        ...

    def max_offset(self, topic: str, queue_id: int) -> QueueOffset:
        """One past the last readable message; 0 for an unknown queue."""
        ...

    def offset_by_time(self, topic: str, queue_id: int, timestamp_ms: TimestampMs, boundary: Boundary) -> QueueOffset:
        """The message that was stored at that time, as `boundary` understands it."""
        ...

    def store_time(self, topic: str, queue_id: int, queue_offset: QueueOffset) -> TimestampMs:
        """When the message was stored; -1 if it cannot be read."""
        ...

    def units(self, topic: str, queue_id: int, queue_offset: QueueOffset, count_max: int) -> tuple[QueueUnit, ...]:
        """Units from `queue_offset` on, without their records; none at the end of the queue or before its start."""
        ...

    def queues(self) -> tuple[QueueId, ...]:
        """Every queue, sorted."""
        ...

    # --- messages -----------------------------------------------------------------------------------------------

    def message_at(self, physical_offset: PhysicalOffset) -> bytes | None:
        """The record that starts there, or None."""
        ...

    def query_by_key(
        self, topic: str, key: str, count_max: int, begin_ms: TimestampMs, end_ms: TimestampMs
    ) -> QueryResult:
        """Messages of the topic with this key that were stored in the period, oldest first."""
        ...

    # --- the log ------------------------------------------------------------------------------------------------

    @property
    def log_min(self) -> PhysicalOffset:
        """Where the oldest file starts."""
        ...

    @property
    def log_max(self) -> PhysicalOffset:
        """Where the readable part ends. With the transient pool the appended part may end later."""
        ...

    @property
    def received_to(self) -> PhysicalOffset:
        """Where a slave's next piece starts: `log_max` plus what has arrived of an incomplete record. That part is in
        memory only; after a restart it is `log_max`."""
        ...

    @property
    def flushed_to(self) -> PhysicalOffset:
        """Where the durable part ends."""
        ...

    @property
    def dispatched_to(self) -> PhysicalOffset:
        """Where the part ends that has its queue units and index entries."""
        ...

    def read_log(self, physical_offset: PhysicalOffset, length_max: int) -> LogPiece | None:
        """The next bytes of the log from there on; None at its end or outside of it."""
        ...


class StoreWriter(Protocol):
    """What changes the log, the queues and the role of a store."""

    def append(self, plan: AppendPlan) -> PutStatus:
        """Performs a plan of this store that was made just now: PUT_OK. Otherwise nothing was appended, and the status
        is CREATE_MAPEDFILE_FAILED (no next file) or SERVICE_NOT_AVAILABLE (the write failed, or puts are refused)."""
        ...

    def append_log(self, piece: LogPiece) -> None:
        """A slave appends what its master sent. The piece must start at `received_to`, or at the start of any file if
        the log is empty, and the second file of a log is begun only after a flush; otherwise `UsageError`. Raises
        `DiskFull` and `DiskFailed`."""
        ...

    def delete_topic(self, topic: str) -> int:
        """Removes the queues of a topic and returns how many there were. Its records stay in the log."""
        ...

    def set_slave(self, is_slave: bool) -> None:
        """Makes the store a slave's, which refuses puts, or a master's."""
        ...

    def set_filters(self, filters: Filters | None) -> None:
        """The expressions from which dispatch computes the bitmaps in the extension files; None: there are none."""
        ...


class StoreClockwork(Protocol):
    """The life of a store, and the work that nobody waits for."""

    async def start(self, now_ms: TimestampMs) -> RecoveryReport:
        """Locks the directory, recovers and serves. Raises `StoreInUse`, `DiskError`, `CorruptRecord`, `UsageError`;
        then nothing is locked and nothing was damaged."""
        ...

    async def stop(self, now_ms: TimestampMs) -> None:
        """Flushes everything, marks the stop as clean and unlocks. If that is impossible, raises `DiskError`; the store
        is unlocked, and its stop was not clean."""
        ...

    async def flush(self) -> PhysicalOffset:
        """Makes the log durable as far as it is written now, and returns how far that is."""
        ...

    def dispatch(self, count_max: int) -> tuple[Dispatched, ...]:
        """Gives the next records their queue units and index entries, in log order, and returns them, at most
        `count_max`. Records that belong to no queue (prepared and rolled back) are passed over and not returned.
        An empty answer means that the bound is reached, or that the disk is full."""
        ...

    async def maintain(self, now_ms: TimestampMs) -> None:
        """Does what is due: async flush, queue and index flush, checkpoint. Call it every 10 to 500 ms."""
        ...

    async def clean(self, now_ms: TimestampMs, local_hour: int | None) -> int:
        """Removes expired files, oldest first, checks how full the disk is and returns how many log files went. Call it
        every 10 s. `local_hour` (0..23) is compared with `delete_when`; None means that an operator wants it now.
        Awaited because each removal is made durable before the next one: a power loss must not bring back a file whose
        successor stays gone."""
        ...

    async def clean_queues(self) -> None:
        """Removes files of queues and index whose messages are all gone from the log. The last file of a queue stays:
        only it knows where the queue continues."""
        ...


class MessageStore(StoreReader, StoreWriter, StoreClockwork, Protocol):
    """A whole store."""
