"""What a store is to the rest of refmq: the `MessageStore` Protocol and the values that cross it.

Two engines implement it: `refmq.store.ReferenceStore` (this package) and the C data plane. So everything here is
plain: numbers, bytes, text and frozen records of them. Time is always an argument, in milliseconds.

How the parts of a send fit together, for whoever drives a store:

1. `put` or `put_batch` checks and appends, at once. The result says where the record is and up to which physical
   offset the log must be durable before anybody may be told (`durable_at`).
2. `flush` makes the log durable up to where it was when it was called. With sync flush the shell collects the waiting
   puts, awaits one `flush` for all of them and then calls `ack_put` for each: one flush, many acknowledgements. With
   async flush it calls `ack_put` at once.
3. `dispatch` gives the next records their queue units and index entries and says which; then long polls can be
   answered. With sync flush it never goes past the flushed position, so nobody is served what a power loss could take
   back. Call it after every put (async) or flush (sync).
4. `maintain` does what is due by the clock: async flush, queue flush, checkpoint. `clean` removes what is expired.

`put`, `dispatch`, `get_message` and all other plain methods never wait. The awaited ones may run at the same time as
plain ones and as each other. A store belongs to one thread.

Errors: a message that cannot be stored gets a `PutStatus`, never an exception. `DiskError` (a failed flush, no room)
comes out of the awaited methods. After a failed flush the store refuses puts and every later `flush` fails, because
nobody knows what is on the medium. A disk that is full is another matter: `dispatch` and `maintain` do what they can,
puts are refused, and when there is room again both go on where they stopped.
`UsageError` is ours to make: a store that is not started.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import IntEnum, StrEnum
from typing import Final, Protocol, TypeAlias

from refmq.model.ids import HostAddress, PhysicalOffset, QueueOffset, TimestampMs

__all__ = [
    "BatchToStore",
    "Boundary",
    "Dispatched",
    "ExtTest",
    "FilterBitmap",
    "GetResult",
    "GetStatus",
    "LogPiece",
    "MatchAll",
    "MessageFilter",
    "MessageStore",
    "MessageToStore",
    "PutResult",
    "PutStatus",
    "QueryResult",
    "QueueId",
    "QueueUnit",
    "RecoveryReport",
]


NOWHERE: Final = PhysicalOffset(-1)
"""The physical offset of what is not stored."""
NO_POSITION: Final = QueueOffset(-1)
NEVER: Final = TimestampMs(0)


class PutStatus(IntEnum):
    """How a put ended. The names are those of Java's `PutMessageStatus` (4.9.8), the numbers its order."""

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
    """The first message stored at or after the time; the queue's end when all are older. What 5.x does."""
    UPPER = "upper"
    """The last message stored at or before the time; the queue's begin when all are newer."""
    NEAREST = "nearest"
    """The message stored nearest to the time, the earlier one of two; the last message when all are older. 4.9.8."""


@dataclass(frozen=True, slots=True)
class MessageToStore:
    """One message, as the broker hands it to the store."""

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
    """The two bits for IPv6 hosts are set by the store from the addresses, whatever they are here."""
    reconsume_times: int = 0
    prepared_transaction_offset: int = 0
    delay_level: int = 0
    """Above 0: the store redirects the message to the delay queue of the level and keeps its real topic and queue
    in properties. The caller decides, because a delivered delay message still carries its DELAY property."""


@dataclass(frozen=True, slots=True)
class BatchToStore:
    """Several messages for one queue, encoded by the client one behind the other."""

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


@dataclass(frozen=True, slots=True)
class PutResult:
    """Where a message went. Everything but `status` is meaningful only if the message is stored."""

    status: PutStatus
    physical_offset: PhysicalOffset = NOWHERE
    size_bytes: int = 0
    """Of all records of a batch together."""
    durable_at: PhysicalOffset = NOWHERE
    """The log must be durable up to here before the put may be acknowledged (sync flush)."""
    store_timestamp_ms: TimestampMs = NEVER
    topic: str = ""
    """Where it was stored: the delay topic for a delayed message."""
    queue_id: int = -1
    queue_offset: QueueOffset = NO_POSITION
    """Of the first message of a batch."""
    message_id: str = ""
    """Store host and physical offset in hex; comma separated for a batch."""
    count: int = 1
    fingerprint: int = 0
    """`message_fingerprint` of the message, of the first one of a batch."""


FilterBitmap: TypeAlias = Callable[[str, bytes], bytes]
"""Topic and properties (wire form) of a message -> the bitmap of the expressions that it satisfies, or nothing."""


@dataclass(frozen=True, slots=True)
class ExtTest:
    """What a filter by expression asks of a unit's bitmap in the extension file before the record is read."""

    bit_positions: tuple[int, ...]
    bit_count: int
    """A bitmap of another length says nothing and matches."""
    since: PhysicalOffset
    """Messages before this place of the log say nothing: the expression was not registered yet. (4.9.8 compares times,
    and a clock that is set back then hides messages.)"""


@dataclass(frozen=True, slots=True)
class MessageFilter:
    """Which messages of a queue are wanted. Each part that is None wants everything."""

    tag_codes: frozenset[int] | None = None
    """Java hashes of the wanted tags, as signed 32-bit numbers; compared with the unit alone."""
    ext_test: ExtTest | None = None
    matches_properties: Callable[[bytes], bool] | None = None
    """Asked with the record's properties (wire form) when all else matches: the expression itself."""


MatchAll: Final = MessageFilter()


@dataclass(frozen=True, slots=True)
class GetResult:
    """Messages of one queue, and where to go on."""

    status: GetStatus
    next_offset: QueueOffset
    min_offset: QueueOffset
    max_offset: QueueOffset
    records: tuple[bytes, ...] = ()
    """Whole records as they are in the log: also what a pull response carries."""
    suggest_slave: bool = False
    """The consumer is so far behind that the messages are no longer in memory."""

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


@dataclass(frozen=True, slots=True)
class Dispatched:
    """A record that can be read from its queue from now on; for whoever waits for it."""

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
    """Bytes behind the valid end that were not zero."""
    records_dispatched: int = 0
    queues: int = 0
    notes: tuple[str, ...] = ()
    """One sentence for each thing an operator should know."""


class MessageStore(Protocol):
    """A store. See the module's head for how its calls fit together."""

    # --- life ---------------------------------------------------------------------------------------------------

    async def start(self, now_ms: TimestampMs) -> RecoveryReport:
        """Locks the directory, recovers and serves. Raises `StoreInUse`, `DiskError`, `CorruptRecord`, `UsageError`;
        then nothing is locked and nothing was damaged."""
        ...

    async def stop(self, now_ms: TimestampMs) -> None:
        """Flushes everything, marks the stop as clean and unlocks. Raises `DiskError` when that was impossible; it is
        unlocked and not clean then."""
        ...

    # --- write --------------------------------------------------------------------------------------------------

    def put(self, message: MessageToStore, now_ms: TimestampMs) -> PutResult: ...

    def put_batch(self, batch: BatchToStore, now_ms: TimestampMs) -> PutResult:
        """All messages of the batch or none."""
        ...

    def ack_put(self, result: PutResult) -> PutStatus:
        """What the producer may be told now: PUT_OK, or FLUSH_DISK_TIMEOUT while the log is not durable up to
        `durable_at` (sync flush). Call it once for every stored put that is answered."""
        ...

    async def flush(self) -> PhysicalOffset:
        """Makes the log durable as far as it is written now, and says how far that is."""
        ...

    def dispatch(self, count_max: int) -> tuple[Dispatched, ...]:
        """Gives the next records their queue units and index entries, in the order of the log, at most `count_max`
        that belong to a queue. Records that belong to none (prepared and rolled back ones) are passed and are not in
        the answer. An empty answer means that the bound is reached, or that the disk is full."""
        ...

    async def maintain(self, now_ms: TimestampMs) -> None:
        """Does what is due: async flush, queue and index flush, checkpoint. Call it every 10 to 500 ms."""
        ...

    async def clean(self, now_ms: TimestampMs, local_hour: int | None) -> int:
        """Removes expired files, oldest first, and looks how full the disk is. Says how many log files went. Call it
        every 10 s; `local_hour` (0..23) is compared with `delete_when`, None means an operator who asks for it now.
        Awaited because each removal is made durable before the next one: a power loss must not bring back a file whose
        neighbour stays away."""
        ...

    async def clean_queues(self) -> None:
        """Removes files of queues and index whose messages are all gone from the log. The last file of a queue stays:
        only it says where the queue goes on."""
        ...

    # --- read ---------------------------------------------------------------------------------------------------

    def get_message(
        self,
        topic: str,
        queue_id: int,
        queue_offset: QueueOffset,
        count_max: int,
        message_filter: MessageFilter = MatchAll,
    ) -> GetResult: ...

    def min_offset(self, topic: str, queue_id: int) -> QueueOffset:
        """The first readable message; 0 for an unknown queue."""
        ...

    def max_offset(self, topic: str, queue_id: int) -> QueueOffset:
        """One behind the last readable message; 0 for an unknown queue."""
        ...

    def offset_by_time(
        self, topic: str, queue_id: int, timestamp_ms: TimestampMs, boundary: Boundary
    ) -> QueueOffset: ...

    def store_time(self, topic: str, queue_id: int, queue_offset: QueueOffset) -> TimestampMs:
        """When the message was stored; -1 when it cannot be read."""
        ...

    def units(self, topic: str, queue_id: int, queue_offset: QueueOffset, count_max: int) -> tuple[QueueUnit, ...]:
        """Units from `queue_offset` on, without their records: empty at the end of the queue or below its begin."""
        ...

    def message_at(self, physical_offset: PhysicalOffset) -> bytes | None:
        """The record that begins there, or None."""
        ...

    def query_by_key(
        self, topic: str, key: str, count_max: int, begin_ms: TimestampMs, end_ms: TimestampMs
    ) -> QueryResult: ...

    def queues(self) -> tuple[QueueId, ...]: ...

    # --- the log as replication sees it ---------------------------------------------------------------------------

    @property
    def log_min(self) -> PhysicalOffset: ...

    @property
    def log_max(self) -> PhysicalOffset: ...

    @property
    def received_to(self) -> PhysicalOffset:
        """Where the next piece of a slave begins: `log_max`, or behind the begin of a record that is not whole yet.
        That is in memory only; a restart goes on at `log_max`."""
        ...

    @property
    def flushed_to(self) -> PhysicalOffset: ...

    @property
    def dispatched_to(self) -> PhysicalOffset: ...

    def read_log(self, physical_offset: PhysicalOffset, length_max: int) -> LogPiece | None:
        """The next bytes of the log from there, None at its end or outside of it."""
        ...

    def append_log(self, piece: LogPiece) -> None:
        """A slave appends what its master sent. The offset must be `received_to`, or any file's begin in an empty log,
        and the second file of a log is begun only after a flush; otherwise `UsageError`. Raises `DiskFull` and
        `DiskFailed`."""
        ...

    # --- administration ---------------------------------------------------------------------------------------------

    def set_filter_bitmap(self, filter_bitmap: FilterBitmap) -> None:
        """Says who computes the bitmaps that dispatch writes to the extension files."""
        ...

    @property
    def accepts_puts(self) -> bool:
        """Whether a legal put would be stored now: started, no slave, disk not full, no flush has failed."""
        ...

    def set_slave(self, is_slave: bool) -> None: ...

    def delete_topic(self, topic: str) -> int:
        """Removes the queues of a topic and says how many there were. The log keeps its records."""
        ...
