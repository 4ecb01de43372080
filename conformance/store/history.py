"""A history of one store: a setting and the steps it lives through. A value: printed, saved, shrunk, replayed.

Every step is total: one that makes no sense where it stands (a put into a stopped store) is passed over, so any
list of steps is a history and a shrunken one stays one. Steps that mirror an action of spec/store_recovery carry its
name; the others are what a producer, a consumer or an operator does.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Final, Literal

from conformance.plain_data import from_json, to_json

Crash = Literal["process", "power"]
Kind = Literal["plain", "delayed", "prepared", "commit", "rollback", "commit delayed"]


@dataclass(frozen=True, slots=True)
class Setting:
    """The store of a history. Files are tiny, so that a few messages reach every boundary."""

    log_file_bytes: int = 1024
    queue_file_units: int = 4
    index_slots: int = 3
    index_entries: int = 6
    page_bytes: int = 128
    sync_flush: bool = False
    transient_pool: bool = False
    ext: bool = False
    ext_file_bytes: int = 256
    store_ipv6: bool = False
    """Whether the broker's own address, which every record holds, has 16 bytes."""
    memory_bytes: int = 24 << 30
    """Of the machine. Messages that are further back than 40 % of it come from disk, and fewer of them at once."""
    piece_bytes: int = 1 << 20
    """How much an engine reads and writes at once at most, if it can be told: every seam of its loops is met."""
    files_max: int = 10
    """Files of the log that one cleaning may remove."""
    few: bool = False
    """One read of a queue gives few messages, and looks at few."""
    index: bool = True
    message_bytes_max: int = 4 << 20
    flush_page_bytes: int = 4096
    """The page of the rules that say when something is flushed, if an engine can be told."""
    cut_damage: bool = False
    """A log that is damaged where it was durable ends there, and the start is not refused."""

    @property
    def from_memory(self) -> tuple[int, int]:
        """Messages and bytes that one read gives at most, of messages that are in memory."""
        return (3, 900) if self.few else (32, 256 * 1024)

    @property
    def from_disk(self) -> tuple[int, int]:
        """The same of messages that are not."""
        return (2, 500) if self.few else (8, 64 * 1024)

    @property
    def units_at_once(self) -> int:
        """Units of a queue that one read looks at, unless more messages are wanted."""
        return 5 if self.few else 800


@dataclass(frozen=True, slots=True)
class AppendMessage:
    """A producer sends one message; it is answered at once (async flush) or after the next flush (sync)."""

    topic: int = 0
    queue: int = 0
    body_bytes: int = 4
    keys: tuple[int, ...] = ()
    tag: int = 0
    kind: Kind = "plain"
    level: int = 1
    leave: int | None = None
    """Not None: the body is made as long as it takes to leave so many bytes of the present log file."""
    early: bool = False
    """With sync flush: the producer is answered without waiting for a flush."""
    properties_bytes: int = 0
    """One more property makes the properties as long as this. More than 32767 do not fit a record."""
    ends_with_zero: bool = False
    """The last property ends with a zero byte, as a torn record would."""
    image: bool = False
    """The body holds all bytes of a record, as if somebody had sent a part of a log: nobody may take it for one."""


@dataclass(frozen=True, slots=True)
class AppendBatch:
    """A producer sends several messages at once."""

    topic: int = 0
    queue: int = 0
    bodies: tuple[int, ...] = (4, 4)
    key: int = 0
    filler: int = 0
    """Bytes of one more property in every member and in the batch. Twice 20,000 do not fit a record."""
    ends_with_zero: bool = False
    """As in `AppendMessage`, of the properties that the batch gives to all its members."""
    both: bool = False
    """One property is given by the members and by the batch; that of the batch stands last, and so it counts."""


Illegal = Literal[
    "no topic",
    "topic with a slash",
    "delayed topic with a slash",
    "topic of one dot",
    "topic of two dots",
    "topic with a zero",
    "topic of 128 bytes",
    "negative queue",
    "queue of 33 bits",
    "batch that ends early",
    "empty batch",
    "batch with a delay",
    "batch in a transaction",
    "batch of a negative queue",
]


@dataclass(frozen=True, slots=True)
class AppendIllegal:
    """A producer sends what no store may take."""

    how: Illegal = "no topic"


@dataclass(frozen=True, slots=True)
class FlushLog:
    """The log is flushed and every waiting put is answered."""


@dataclass(frozen=True, slots=True)
class DispatchMessage:
    """Up to `count` records get their queue units and index entries."""

    count: int = 100


@dataclass(frozen=True, slots=True)
class Maintain:
    """Time passes, and what is due by the clock is done: async flush, queue and index flush, checkpoint."""

    after_ms: int = 60_000


@dataclass(frozen=True, slots=True)
class AdvanceClock:
    """Time passes; negative when the clock is set back."""

    by_ms: int = 1


@dataclass(frozen=True, slots=True)
class ExpireFile:
    """Cleaning runs, after some time, at an hour of the day, on a disk of some fullness."""

    after_ms: int = 0
    hour: int | None = 4
    """None: an operator asks for it now."""
    used_percent: int = 10


@dataclass(frozen=True, slots=True)
class CleanQueues:
    """An operator has the files of queues and index removed whose messages are gone."""


@dataclass(frozen=True, slots=True)
class ServeMessage:
    """A consumer reads a queue, from an offset counted back from its end, until nothing is left."""

    topic: int = 0
    queue: int = 0
    behind: int = 3
    count: int = 32
    tag: int | None = None
    """Not None: only messages with this tag are wanted."""
    expression: int | None = None
    """Not None: only messages that satisfy this expression are wanted (`messages.bit_positions`)."""
    bits_only: bool = False
    """The expression is asked of the bitmaps alone, so that what they let through can be seen."""
    since: int = 1 << 40
    """How many bytes of the log ago the expression was registered: earlier bitmaps say nothing of it."""


@dataclass(frozen=True, slots=True)
class ReadEverything:
    """All records, queues, keys and times are read and compared."""


@dataclass(frozen=True, slots=True)
class DeleteTopic:
    """An operator removes the queues of a topic."""

    topic: int = 0


@dataclass(frozen=True, slots=True)
class StopStore:
    """A clean stop."""


@dataclass(frozen=True, slots=True)
class RestartStore:
    """A clean stop, and the same process starts its store again."""


@dataclass(frozen=True, slots=True)
class StartStore:
    """The store is started. It may die on its way, again and again, before it is let through."""

    deaths: tuple[tuple[Crash, int, tuple[int, ...]], ...] = ()
    """For each: how it dies, at which effect of the start, and what then survives."""


@dataclass(frozen=True, slots=True)
class ProcessCrash:
    """The process dies: now, or in the middle of a step that comes, after so many more effects."""

    effects: int = 0
    torn: int = 0
    """How many bytes of an interrupted write are left, or which form of an interrupted create."""


@dataclass(frozen=True, slots=True)
class PowerLoss:
    """The power goes, now or after so many more effects; `survivors` decides what is left of what was not flushed."""

    effects: int = 0
    torn: int = 0
    survivors: tuple[int, ...] = ()
    harsh: bool = False
    """Whether what `survivors` does not decide is lost; otherwise it survives."""


@dataclass(frozen=True, slots=True)
class FailFlush:
    """The next flush fails, and the ones after it."""


@dataclass(frozen=True, slots=True)
class Meanwhile:
    """One of the next flushes takes long: a producer sends, and a consumer is served, while it is under way."""

    flushes: int = 0
    """How many flushes end before it."""
    topic: int = 0
    queue: int = 0
    dispatch: bool = False
    count: int = 1
    """Messages that the producer sends."""
    after_ms: int = 0
    """How much later each of them is sent."""
    times: int = 1
    """In how many flushes in a row this happens."""
    body_bytes: int = 4
    keys: tuple[int, ...] = ()
    delete: bool = False
    """Somebody deletes the topic before the messages are sent."""


@dataclass(frozen=True, slots=True)
class FillDisk:
    """The next write or create finds no room, after so many more effects."""

    effects: int = 0


@dataclass(frozen=True, slots=True)
class Replicate:
    """A slave gets the log in pieces, dies now and then, and resumes. It may become the master before it has it all."""

    piece_bytes: int = 333
    deaths: tuple[tuple[Crash, int, tuple[int, ...]], ...] = ()
    """For each: how it dies, at which of its effects, and what then survives."""
    percent: int = 100
    """How much of the log it gets. With less than all it becomes the master and takes messages of its own."""
    dispatch_every: int = 1
    """After so many pieces it gives its records their units."""
    in_blank: bool = False
    """It gets the log up to the middle of the last blank, if there is one."""
    behind_ms: int = 0
    """How much slower the clock of the slave is than that of its master."""
    during_flush: bool = False
    """It becomes the master while its log is being flushed."""


@dataclass(frozen=True, slots=True)
class SecondProcess:
    """Somebody starts a second store on the directory of the running one."""


@dataclass(frozen=True, slots=True)
class SaveConfig:
    """The broker saves a small file of its configuration."""

    value: int = 0


Lost = Literal["", "queues", "index", "checkpoint", "file"]


@dataclass(frozen=True, slots=True)
class DamageRecord:
    """After a clean stop a byte of a record changes in a copy of the store, and the copy is started."""

    record: int = 0
    byte: int = 0
    lost: Lost = ""
    """What the copy has lost besides; `file` is that of the log with the record, and then no byte is changed."""
    cut: bool = False
    """It is started with the setting that ends the log at the damage."""


@dataclass(frozen=True, slots=True)
class DamageAbort:
    """Between two lives somebody makes the abort file, or takes it away."""

    present: bool = True


@dataclass(frozen=True, slots=True)
class DamageCheckpoint:
    """Between two lives the checkpoint is changed: it may be missing, empty, zero, old, from the future, or torn."""

    how: Literal["missing", "empty", "zero", "behind", "ahead", "torn"] = "zero"


@dataclass(frozen=True, slots=True)
class DamageConfig:
    """Between two lives a small file of the broker's configuration is lost, or only its name is left."""

    how: Literal["missing", "empty"] = "missing"


@dataclass(frozen=True, slots=True)
class StrayFile:
    """Between two lives a 0-byte log file or queue file appears after the last one, as a crash leaves it; or a file
    that no store has written, which must be refused (`log text`, `queue text`, `index text`), or which is somebody
    else's business and must stay as it is (`light queue`, `queue name`, `topic text`)."""

    where: Literal[
        "log",
        "queue",
        "zero log",
        "log text",
        "queue text",
        "index text",
        "light queue",
        "queue name",
        "topic text",
    ] = "log"


Losable = Literal["queues", "one queue", "queue file", "index", "index file", "index content"]


@dataclass(frozen=True, slots=True)
class LoseDerived:
    """Between two lives somebody removes what can be built again from the log."""

    what: Losable = "queues"


Step = (
    AppendMessage
    | AppendBatch
    | AppendIllegal
    | FlushLog
    | DispatchMessage
    | Maintain
    | AdvanceClock
    | ExpireFile
    | CleanQueues
    | ServeMessage
    | ReadEverything
    | DeleteTopic
    | StopStore
    | RestartStore
    | StartStore
    | ProcessCrash
    | PowerLoss
    | FailFlush
    | Meanwhile
    | FillDisk
    | Replicate
    | SecondProcess
    | SaveConfig
    | DamageRecord
    | DamageAbort
    | DamageCheckpoint
    | DamageConfig
    | StrayFile
    | LoseDerived
)

STEPS: Final[dict[str, type[Step]]] = {
    kind.__name__: kind
    for kind in (
        AppendMessage,
        AppendBatch,
        AppendIllegal,
        FlushLog,
        DispatchMessage,
        Maintain,
        AdvanceClock,
        ExpireFile,
        CleanQueues,
        ServeMessage,
        ReadEverything,
        DeleteTopic,
        StopStore,
        RestartStore,
        StartStore,
        ProcessCrash,
        PowerLoss,
        FailFlush,
        Meanwhile,
        FillDisk,
        Replicate,
        SecondProcess,
        SaveConfig,
        DamageRecord,
        DamageAbort,
        DamageCheckpoint,
        DamageConfig,
        StrayFile,
        LoseDerived,
    )
}


@dataclass(frozen=True, slots=True)
class History:
    """What happened to one store."""

    setting: Setting = Setting()
    steps: tuple[Step, ...] = ()

    kind: ClassVar[str] = "store"

    def to_json(self) -> dict[str, Any]:
        """Plain data."""
        return to_json(self.setting, self.steps)

    @staticmethod
    def from_json(data: dict[str, Any]) -> History:
        return History(*from_json(data, "store", Setting, STEPS))

    def __str__(self) -> str:
        return "\n".join([str(self.setting), *[f"  {step}" for step in self.steps]])
