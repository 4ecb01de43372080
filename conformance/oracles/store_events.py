"""What can be observed of a store: the values that the oracles of the store judge.

The observations of one history are a list in the order of time. Nothing in them names an engine.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from conformance.store.record import Record


@dataclass(frozen=True, slots=True)
class Sent:
    """A producer sent a message. Its number is unique in the history and stands at the start of its body."""

    number: int
    topic: str
    """Where it belongs in the log: the delay topic for a delayed message."""
    queue_id: int
    flag: int
    transaction: int
    prepared_offset: int
    born_ms: int
    body: bytes
    properties: tuple[tuple[str, str], ...]
    """All that the record must hold, in this order; of a delayed message in any order."""
    at_ms: int
    """The clock when it was sent."""
    delay_ms: int = -1
    """Of a delayed message: how long after its store time it is due."""
    sys_flag: int = 0
    """Without the bits that say how long the two hosts are: the store sets those."""
    born_host: bytes = b""
    store_host: bytes = b""
    """Address and port as they stand in the record."""
    reconsume_times: int = 0


@dataclass(frozen=True, slots=True)
class Stored:
    """The store said where a message is. A batch has one of these for each member."""

    number: int
    physical_offset: int
    size_bytes: int
    queue_offset: int
    store_ms: int


@dataclass(frozen=True, slots=True)
class PutRefused:
    """The store said that a message is not stored."""

    number: int
    status: str


@dataclass(frozen=True, slots=True)
class AckPut:
    """The producer was told that its message is safe."""

    number: int
    promises_power: bool
    """Whether the flush mode promises that it survives a power loss."""


@dataclass(frozen=True, slots=True)
class FlushLog:
    """The store said that the log is durable up to here."""

    flushed_to: int


@dataclass(frozen=True, slots=True)
class ServeMessage:
    """A record was handed to a consumer."""

    record: Record | str
    """The decoded record, or why it is none."""
    wanted_topic: str
    wanted_queue_id: int
    wanted_queue_offset: int
    is_durable: bool
    """Whether it would still be there if the power went now."""
    must_be_durable: bool
    """Whether the flush mode forbids to serve it otherwise."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """One message of a queue, and whether the filter of a reader lets it through."""

    queue_offset: int
    physical_offset: int
    size_bytes: int
    is_wanted: bool = True


@dataclass(frozen=True, slots=True)
class Pulled:
    """One read of a queue: where it stood, what it gave, and where it says to go on."""

    topic: str
    queue_id: int
    offset: int
    count_max: int
    status: str
    next_offset: int
    min_offset: int
    max_offset: int
    found: tuple[int, ...]
    """Queue offsets of what was given."""
    units: tuple[Wanted, ...]
    """Everything that is in the queue."""
    log_max: int = 0
    units_per_file: int = 1 << 30
    memory_bytes: int = 24 << 30
    suggest_slave: bool = False
    from_memory: tuple[int, int] = (32, 256 * 1024)
    from_disk: tuple[int, int] = (8, 64 * 1024)
    """Messages and bytes that one read gives at most."""
    units_at_once: int = 800


@dataclass(frozen=True, slots=True)
class ProcessCrash:
    """Memory is gone."""

    loses_unwritten: bool = False
    """The transient pool keeps acknowledged bytes in memory; only flushed ones are promised then."""


@dataclass(frozen=True, slots=True)
class PowerLoss:
    """What was not flushed may be gone."""


@dataclass(frozen=True, slots=True)
class StopStore:
    """A clean stop ended well: everything is durable."""


@dataclass(frozen=True, slots=True)
class StartStore:
    """The store serves again."""

    was_clean: bool
    valid_to: int
    records_dispatched: int = 0
    """How many records got their queue units and index entries again."""
    notes: tuple[str, ...] = ()
    """What the store has to say to an operator: what it did not believe."""


@dataclass(frozen=True, slots=True)
class StartFailed:
    """The store did not start although nothing forbade it."""

    error: str


@dataclass(frozen=True, slots=True)
class DiskFault:
    """From now on the disk may have no room for a write, or fail to flush, once."""


@dataclass(frozen=True, slots=True)
class FaultsOver:
    """Every fault that the disk was to have has happened; what is written from here on is what it says."""


@dataclass(frozen=True, slots=True)
class Failed:
    """An operation raised what its interface does not allow here."""

    step: str
    error: str


@dataclass(frozen=True, slots=True)
class SaveConfig:
    """A small file of the broker is being saved; nobody knows yet how that ends."""

    value: int


@dataclass(frozen=True, slots=True)
class ConfigSaved:
    """The save came to its end."""

    value: int


@dataclass(frozen=True, slots=True)
class ConfigRead:
    """What a broker finds when it reads the file; -1 without one."""

    value: int


@dataclass(frozen=True, slots=True)
class ConfigLost:
    """Somebody has taken the file away, or what was in it; its backup is still there."""


@dataclass(frozen=True, slots=True)
class Damaged:
    """Somebody changed a file of the store while it was stopped."""

    what: str


@dataclass(frozen=True, slots=True)
class DeleteTopic:
    """The queues of a topic were removed."""

    topic: str
    log_end: int
    """Records before it belong to no queue any more."""
    dispatched_to: int = 0
    """Records before it had their units, which are gone; those after it will get them."""


@dataclass(frozen=True, slots=True)
class DeletionsKept:
    """The store has had its occasion to make the removals of queues durable."""


@dataclass(frozen=True, slots=True)
class ExpireFile:
    """Cleaning ran. `files` are those of the log before it: (first position, modified_ms)."""

    files: tuple[tuple[int, int], ...]
    begins_after: tuple[int, ...]
    removed_count: int
    now_ms: int
    reserved_ms: int
    forced: bool
    """Whether the disk was so full that age does not matter."""
    allowed: bool
    """Whether anything may be removed at all at this hour and fullness."""
    required: bool
    """Whether expired files have to go now."""
    files_max: int
    interrupted: bool = False
    """A crash fell into it: nobody knows how many files went, and `begins_after` says nothing."""
    safe_to: int = 1 << 62
    """What is dispatched and durable when it ends, and covered by the checkpoint: files that reach beyond it stay."""
    safe_before: int = 1 << 62
    """The same when it begins: only files before it have to go. A consumer may be served while cleaning waits."""


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """The checkpoint as it may survive, and what a power loss now would take at worst.

    Each of `missing_...` lists (store time, physical offset) of records that are written to the log.
    """

    log_ms: int
    queue_ms: int
    index_ms: int
    log_to: int = -1
    """Physical offsets, if the engine writes such; -1 otherwise."""
    queues_to: int = -1
    index_to: int = -1
    missing_in_log: tuple[tuple[int, int], ...] = ()
    missing_in_queues: tuple[tuple[int, int], ...] = ()
    """Records whose queue unit would be lost, or is not written yet."""
    missing_in_index: tuple[tuple[int, int], ...] = ()
    """Records of which a key's entry would be lost, or is not written yet."""
    is_durable: bool = True
    """Whether a power loss would leave this checkpoint and not the one before it."""
    missing_for_java: tuple[int, ...] = ()
    """Physical offsets of records that no key would find if Java started after a power loss now."""


@dataclass(frozen=True, slots=True)
class Unit:
    """One unit of a queue."""

    queue_offset: int
    physical_offset: int
    size_bytes: int
    tags_code: int


@dataclass(frozen=True, slots=True)
class Queue:
    """One queue as a reader finds it."""

    min_offset: int
    max_offset: int
    units: tuple[Unit, ...]
    served: tuple[Record | str, ...]
    """What reading from start to end gave, record by record."""
    times: tuple[tuple[int, str, int], ...] = ()
    """Searches by time: (time, boundary, found queue offset)."""
    store_times: tuple[int, ...] | None = None
    """What the store says of each message's store time; None when it was not asked."""
    reads: tuple[Pulled, ...] = ()
    """The reads from start to end, one by one."""


@dataclass(frozen=True, slots=True)
class Readout:
    """Everything that a store answers, at one moment."""

    log_min: int
    log_max: int
    flushed_to: int
    dispatched_to: int
    records: tuple[Record, ...]
    log_end: int
    """Where the walk over the log ended: `log_max` if every byte below it belongs to a record or a blank."""
    log_fault: str
    """Why it ended earlier; empty if it did not."""
    queues: Mapping[tuple[str, int], Queue] = field(default_factory=dict)
    by_key: Mapping[tuple[str, str], tuple[int, ...]] = field(default_factory=dict)
    """(topic, key) -> physical offsets that the query found."""
    by_key_between: Mapping[tuple[str, str, int, int], tuple[int, ...]] = field(default_factory=dict)
    """(topic, key, begin, end) -> what the query found of messages stored in that time, both ends included."""
    newest_by_key: Mapping[tuple[str, str], tuple[int, ...]] = field(default_factory=dict)
    """(topic, key) -> what a query for one message found."""
    by_offset: Mapping[int, bool] = field(default_factory=dict)
    """Physical offset of a record -> whether it can be looked up and is the same record."""
    index_last: tuple[int, int] | None = None
    """Store time and physical offset of the newest message in the index, as a query says; None: not asked."""
    hides_unwritten: bool = False
    """The transient pool shows a message only when it was handed to the file; memory holds what is past `log_max`."""
    is_full: bool = True
    """Whether everything in the log is dispatched, so that queues and index must be complete."""
    outside: tuple[str, ...] = ()
    """What was answered to questions about places that are outside of the log or of a queue, if it was wrong."""


@dataclass(frozen=True, slots=True)
class Recovered:
    """Two ways to the same place: a start that nothing disturbed, and one that was interrupted and repeated."""

    undisturbed: Readout
    disturbed: Readout


@dataclass(frozen=True, slots=True)
class Cut:
    """A store that was damaged and told to end its log at the damage: what is left must fit together."""

    left: Readout


@dataclass(frozen=True, slots=True)
class Replicated:
    """A log, and what became of it in a slave that was fed with it in pieces."""

    master: Readout
    slave: Readout
    with_queues: bool
    """Whether the queues can be compared: no topic was deleted."""


@dataclass(frozen=True, slots=True)
class Promoted:
    """A slave that had got the log up to some point became the master and took messages of its own."""

    master: Readout
    arrived_to: int
    """How much of the log it had."""
    sent: tuple[Sent, ...]
    """Its own messages."""
    slave: Readout
    restarted: Readout
    """The same after its log was flushed and the power was lost."""
    with_queues: bool
    """Whether the queues can be judged: no topic was deleted."""


Observation = (
    Sent
    | Stored
    | PutRefused
    | AckPut
    | FlushLog
    | ServeMessage
    | Pulled
    | ProcessCrash
    | DiskFault
    | FaultsOver
    | PowerLoss
    | StopStore
    | StartStore
    | StartFailed
    | Failed
    | SaveConfig
    | ConfigSaved
    | ConfigRead
    | ConfigLost
    | Damaged
    | DeleteTopic
    | DeletionsKept
    | ExpireFile
    | Checkpoint
    | Readout
    | Recovered
    | Cut
    | Replicated
    | Promoted
)
