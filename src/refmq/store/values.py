"""The values that cross the boundary of a store: what is put into it, what it answers, what it reports.

Both engines take and give exactly these: numbers, bytes, text and frozen records of them. Filters are values as well,
in `refmq.filter`.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum, StrEnum
from typing import Final, NamedTuple

from refmq.model.ids import HostAddress, PhysicalOffset, QueueOffset, TimestampMs

__all__ = [
    "AppendPlan",
    "BatchToStore",
    "Boundary",
    "Dispatched",
    "GetResult",
    "GetStatus",
    "LogPiece",
    "MessageToStore",
    "Place",
    "PutResult",
    "PutStatus",
    "QueryResult",
    "QueueId",
    "QueueUnit",
    "RecoveryReport",
]


NOWHERE: Final = PhysicalOffset(-1)
"""The physical offset of something that is not stored."""
NO_POSITION: Final = QueueOffset(-1)
NEVER: Final = TimestampMs(0)


class PutStatus(IntEnum):
    """How a put ended. Names and order are those of Java's `PutMessageStatus` (4.9.8)."""

    PUT_OK = 0
    FLUSH_DISK_TIMEOUT = 1
    """Stored, but not durable in time."""
    FLUSH_SLAVE_TIMEOUT = 2
    SLAVE_NOT_AVAILABLE = 3
    SERVICE_NOT_AVAILABLE = 4
    """Not stored: stopped, a slave, disk full, or a flush has failed."""
    CREATE_MAPEDFILE_FAILED = 5
    """Not stored: no room for the next file. (Java spells it so.)"""
    MESSAGE_ILLEGAL = 6
    PROPERTIES_SIZE_EXCEEDED = 7
    OS_PAGECACHE_BUSY = 8
    UNKNOWN_ERROR = 9
    LMQ_CONSUME_QUEUE_NUM_EXCEEDED = 10

    @property
    def is_stored(self) -> bool:
        return self <= PutStatus.SLAVE_NOT_AVAILABLE

    @property
    def is_for_good(self) -> bool:
        """A refusal that is the message's own fault: the store will never take it."""
        return self in (PutStatus.MESSAGE_ILLEGAL, PutStatus.PROPERTIES_SIZE_EXCEEDED)


class GetStatus(IntEnum):
    """How a read of a queue ended: Java's `GetMessageStatus` (4.9.8), in its order."""

    FOUND = 0
    NO_MATCHED_MESSAGE = 1
    MESSAGE_WAS_REMOVING = 2
    OFFSET_FOUND_NULL = 3
    OFFSET_OVERFLOW_BADLY = 4
    OFFSET_OVERFLOW_ONE = 5
    OFFSET_TOO_SMALL = 6
    NO_MATCHED_LOGIC_QUEUE = 7
    NO_MESSAGE_IN_QUEUE = 8


class Boundary(StrEnum):
    """Which message a search by time means."""

    LOWER = "lower"
    """The first message stored at or after the time; the end of the queue if all are older. What 5.x does."""
    UPPER = "upper"
    """The last message stored at or before the time; the start of the queue if all are newer."""
    NEAREST = "nearest"
    """The message stored nearest to the time, the earlier one of two; the last message if all are older. 4.9.8."""


class MessageToStore(NamedTuple):
    """One message, as the broker hands it to the store. (A tuple, because every send makes one.)"""

    topic: str
    queue_id: int
    body: bytes
    properties: bytes
    """Wire form: name U+0001 value U+0002 name ..., UTF-8."""
    born_timestamp_ms: TimestampMs
    born_host: HostAddress
    store_host: HostAddress
    flag: int = 0
    sys_flag: int = 0
    """The store sets the two bits for IPv6 hosts from the addresses, whatever they are here."""
    reconsume_times: int = 0
    prepared_transaction_offset: int = 0
    delay_level: int = 0
    """Above 0: the store redirects the message to the delay queue of the level and keeps its real topic and queue
    in properties. The caller decides, because a delivered delay message still carries its DELAY property."""


@dataclass(frozen=True, slots=True)
class BatchToStore:
    """Several messages for one queue, encoded by the client one after the other."""

    topic: str
    queue_id: int
    messages: bytes
    """Each: i32 size, i32 magic, i32 body CRC, i32 flag, i32 body length, body, i16 property length, properties."""
    properties: bytes
    """Added to the properties of every message."""
    born_timestamp_ms: TimestampMs
    born_host: HostAddress
    store_host: HostAddress
    sys_flag: int = 0
    reconsume_times: int = 0
    delay_level: int = 0


class Place(NamedTuple):
    """Where one message goes, and the number by which a trace knows it."""

    physical_offset: PhysicalOffset
    queue_offset: QueueOffset
    """0 for a prepared or rolled-back transactional message: it has no place in its queue."""
    fingerprint: int
    """See `refmq.model.fingerprint`."""
    size_bytes: int


class AppendPlan(NamedTuple):
    """An append that has been decided and not yet performed: which bytes go where.

    A plan is good for the state it was made from. Perform it at once or forget it. (A tuple, as `Place` is, because
    every message makes one of each and a frozen dataclass takes four times as long to make.)
    """

    physical_offset: PhysicalOffset
    """Of the first record: the end of the log, or the start of the next file if the records do not fit the last one."""
    data: bytes
    """All records, one after the other."""
    topic: str
    """Where the messages are stored: the delay topic for a delayed message."""
    queue_id: int
    queue_offset: QueueOffset
    """Of the first message."""
    count: int  # type: ignore[assignment]  # hides the method of tuples, which nobody calls
    """Messages: more than one for a batch."""
    size_bytes: int
    """Of all records together."""
    durable_at: PhysicalOffset
    """The log must be durable up to here before a put that waits for the disk may be acknowledged."""
    store_timestamp_ms: TimestampMs
    message_id: str
    """Store host and physical offset in hex; comma separated for a batch."""
    places: tuple[Place, ...]
    """One for each message, in order."""
    is_queued: bool = True
    """Whether the messages take offsets of their queue. A prepared or rolled-back transactional message does not."""


@dataclass(frozen=True, slots=True)
class PutResult:
    """How a put ended and where the message went. Everything but `status` is meaningful only if it is stored."""

    status: PutStatus
    physical_offset: PhysicalOffset = NOWHERE
    size_bytes: int = 0
    durable_at: PhysicalOffset = NOWHERE
    store_timestamp_ms: TimestampMs = NEVER
    topic: str = ""
    queue_id: int = -1
    queue_offset: QueueOffset = NO_POSITION
    message_id: str = ""
    count: int = 1
    fingerprint: int = 0
    """Of the first message. The other fields are those of the `AppendPlan`."""

    @classmethod
    def of(cls, status: PutStatus, plan: AppendPlan) -> PutResult:
        """The result of performing a plan."""
        if not status.is_stored:
            return cls(status)
        return cls(
            status,
            plan.physical_offset,
            plan.size_bytes,
            plan.durable_at,
            plan.store_timestamp_ms,
            plan.topic,
            plan.queue_id,
            plan.queue_offset,
            plan.message_id,
            plan.count,
            plan.places[0].fingerprint,
        )


@dataclass(frozen=True, slots=True)
class GetResult:
    """Messages of one queue, and where to continue."""

    status: GetStatus
    next_offset: QueueOffset
    min_offset: QueueOffset
    max_offset: QueueOffset
    records: tuple[bytes, ...] = ()
    """Whole records as they are in the log, which is how a pull response carries them."""
    suggest_slave: bool = False
    """The consumer lags so far that the messages are no longer in memory."""

    @property
    def size_bytes(self) -> int:
        return sum(map(len, self.records))


@dataclass(frozen=True, slots=True)
class QueryResult:
    """Messages with a key, oldest first."""

    records: tuple[bytes, ...]
    index_last_update_ms: TimestampMs
    index_last_update_offset: PhysicalOffset


@dataclass(frozen=True, slots=True)
class QueueUnit:
    """One unit of a consume queue."""

    queue_offset: QueueOffset
    physical_offset: PhysicalOffset
    size_bytes: int
    tags_code: int
    """The hash of the tags, or the time of delivery in a delay queue. An address of the extension file is resolved."""


class Dispatched(NamedTuple):
    """A record that can now be read from its queue; for whoever waits for it."""

    topic: str
    queue_id: int
    queue_offset: QueueOffset
    physical_offset: PhysicalOffset
    size_bytes: int
    tags_code: int
    store_timestamp_ms: TimestampMs
    properties: bytes


@dataclass(frozen=True, slots=True)
class LogPiece:
    """Bytes of the log for a slave. Never crosses a file."""

    physical_offset: PhysicalOffset
    data: bytes


@dataclass(frozen=True, slots=True, order=True)
class QueueId:
    """One queue of this store."""

    topic: str
    queue_id: int


@dataclass(frozen=True, slots=True)
class RecoveryReport:
    """What a start found and did."""

    was_clean: bool
    scanned_from: PhysicalOffset
    valid_to: PhysicalOffset
    records_scanned: int = 0
    bytes_cut: int = 0
    """Bytes after the valid end that were not zero."""
    records_dispatched: int = 0
    queues: int = 0
    notes: tuple[str, ...] = ()
    """One sentence for each thing that an operator should know."""
