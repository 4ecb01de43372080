"""A history of a cluster: a setting and the steps that clients and the world take. A value: printed, saved, shrunk.

Every step is total: one that makes no sense where it stands (a pull by a dead client) is passed over, so any list of
steps is a history and a shrunken one stays one. Operations do not wait for each other: a step begins one, and
`AdvanceClock` lets time pass. Steps that mirror an action of a specification carry its name; operations of clients
have the names in `CLIENT_OPERATIONS`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Final, Literal, get_args

from conformance.plain_data import from_json, to_json

Decision = Literal["commit", "rollback", "unknown", "none"]
Stored = Literal["delayed", "half", "plain"]
Wanted = Literal["all", "tag a", "tags a || b", "sql n", "sql tag", "registered", "registered sql"]


@dataclass(frozen=True, slots=True)
class Setting:
    """The cluster of a history."""

    seed: int = 0
    """Decides delays, the order of what is ready, and what a power loss leaves."""
    brokers: int = 1
    clients: int = 2
    queues: int = 2
    groups: int = 1
    """Consumer groups: the clients are members of one or the other in turn."""
    sync_flush: bool = True
    force_register: bool = True
    """Brokers register in full every time; otherwise they ask first whether anything is new."""
    log_file_bytes: int = 64 * 1024
    """Small files: a few dozen messages roll them."""
    silent_nameserver: bool = False
    """There is a second nameserver, of which nothing is ever heard."""
    write_buffer_bytes: int = 0
    """Above so many unsent bytes a broker reads no more from a client; 0: as usual."""
    maintain_ms: int = 100
    """How often a broker looks whether something is due by the clock. What costs time in quiet histories is this."""
    ipv6: bool = False
    """Every host has an address of 16 bytes, and so have records and ids of messages."""


# --- operations of clients ---------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Send:
    """A client sends messages to one queue, one after the other."""

    client: int = 0
    broker: int = 0
    queue: int = 0
    count: int = 1
    body_bytes: int = 20
    delay_level: int = 0
    """Consumers get it only after the delay of this level; 0: at once."""
    at_once: bool = False
    """All of them are under way at a time, over one connection."""


@dataclass(frozen=True, slots=True)
class SendBatch:
    """A client sends messages to one queue in one request."""

    client: int = 0
    broker: int = 0
    queue: int = 0
    count: int = 2


@dataclass(frozen=True, slots=True)
class SendHalf:
    """A client begins a transaction and, if it lives to hear of it, ends it."""

    client: int = 0
    broker: int = 0
    queue: int = 0
    decision: Decision = "commit"
    """What it sends at the end; `none`: nothing, so that the broker has to ask."""
    reply: Decision = "commit"
    """What it answers when it is asked, and says at the end unless that is `unknown` or `none`."""
    ends: int = 1
    """How often its decision arrives."""
    after_ms: int = 0
    """How long it takes to decide."""
    immunity_s: int = 0
    """So long nobody may ask about it; 0: as the broker likes."""


@dataclass(frozen=True, slots=True)
class Pull:
    """A client reads a queue from where it stands, waiting for messages when there are none."""

    client: int = 0
    broker: int = 0
    queue: int = 0
    count: int = 4
    suspend_ms: int = 0
    commit: bool = False
    """The request also commits what the client has consumed."""
    wanted: Wanted = "all"
    """Which messages it asks for."""
    retry: bool = False
    """From the topic of messages that the group sent back."""


@dataclass(frozen=True, slots=True)
class SendBack:
    """A client could not handle the last message that it got from a broker and wants it again later."""

    client: int = 0
    broker: int = 0
    queue: int = 0
    retry: bool = False
    """The last one from the retry topic."""
    delay_level: int = 1


@dataclass(frozen=True, slots=True)
class CommitOffset:
    """A client commits what it has consumed of a queue."""

    client: int = 0
    broker: int = 0
    queue: int = 0
    back: int = 0
    """So many messages before: a commit that comes late, or a member that takes a step back."""


@dataclass(frozen=True, slots=True)
class QueryOffset:
    """A client asks for its group's committed offset and goes on from there."""

    client: int = 0
    broker: int = 0
    queue: int = 0


@dataclass(frozen=True, slots=True)
class LockQueue:
    """A client asks for a queue of its own, or for all of a broker in one request."""

    client: int = 0
    broker: int = 0
    queue: int = 0
    every: bool = False


@dataclass(frozen=True, slots=True)
class UnlockQueue:
    """A client gives a queue back, or all of a broker in one request."""

    client: int = 0
    broker: int = 0
    queue: int = 0
    every: bool = False


@dataclass(frozen=True, slots=True)
class Heartbeat:
    """A client tells a broker that it is there: it can be asked about its transactions from then on."""

    client: int = 0
    broker: int = 0
    alone: bool = False
    """It speaks of the group that it consumes for, and of nothing else that it is part of."""


@dataclass(frozen=True, slots=True)
class Leave:
    """A client says good-bye to a broker: it is no member of its groups there any more."""

    client: int = 0
    broker: int = 0


@dataclass(frozen=True, slots=True)
class ViewRefresh:
    """A client asks a broker for the members of its group."""

    client: int = 0
    broker: int = 0


@dataclass(frozen=True, slots=True)
class QueryRoute:
    """A client asks the nameserver which brokers have the topic."""

    client: int = 0


@dataclass(frozen=True, slots=True)
class QueryKey:
    """A client asks a broker for the last message that it sent there, by its key."""

    client: int = 0
    broker: int = 0


@dataclass(frozen=True, slots=True)
class QueryBounds:
    """A client asks where a queue begins and ends."""

    client: int = 0
    broker: int = 0
    queue: int = 0


@dataclass(frozen=True, slots=True)
class Ask:
    """A client, or a tool of an operator, asks a broker something else, perhaps in a form that is damaged."""

    client: int = 0
    broker: int = 0
    number: int = 0
    """Which of the requests."""
    damage: int = 0


@dataclass(frozen=True, slots=True)
class Configure:
    """An operator changes a setting of a broker, to a value that is legal or not, and reads it back."""

    client: int = 0
    broker: int = 0
    value: int = 40


# --- the world ---------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class AdvanceClock:
    """Time passes."""

    by_ms: int = 100


@dataclass(frozen=True, slots=True)
class JumpClock:
    """The wall clock of a broker is set, forward or back."""

    broker: int = 0
    by_ms: int = -1000


@dataclass(frozen=True, slots=True)
class ProcessCrash:
    """A broker's process dies, now or before the effect that follows so many more."""

    broker: int = 0
    effects: int = 0
    at: str = ""
    """Not empty: it dies right behind a step of this name, after as many more of them; one that is down does so in its
    next life."""


@dataclass(frozen=True, slots=True)
class PowerLoss:
    """A broker loses its power, now or before the effect that follows so many more."""

    broker: int = 0
    effects: int = 0
    at: str = ""
    """As of `ProcessCrash`."""


@dataclass(frozen=True, slots=True)
class RestartBroker:
    """A broker that is down is started; one that is up is stopped in good order first."""

    broker: int = 0


@dataclass(frozen=True, slots=True)
class FailFlush:
    """The next flush of a broker's disk fails, and the ones after it; the next now, or after so many effects."""

    broker: int = 0
    effects: int = 0


@dataclass(frozen=True, slots=True)
class FullDisk:
    """The disk of a broker has no room for the next new bytes; the next now, or after so many effects."""

    broker: int = 0
    effects: int = 0


@dataclass(frozen=True, slots=True)
class StopBroker:
    """A broker is stopped in good order and stays down."""

    broker: int = 0


@dataclass(frozen=True, slots=True)
class RestartNameserver:
    """The nameserver dies and is started: it has forgotten everything that brokers told it."""


@dataclass(frozen=True, slots=True)
class ProducerDeath:
    """A client dies with everything that it has not sent, and another one takes its place."""

    client: int = 0


@dataclass(frozen=True, slots=True)
class ConsumerPause:
    """A client stands still for a while."""

    client: int = 0
    for_ms: int = 1000


@dataclass(frozen=True, slots=True)
class Disconnect:
    """Every connection between a client and a broker breaks; what is under way is lost."""

    client: int = 0
    broker: int = 0


@dataclass(frozen=True, slots=True)
class LoseAnswer:
    """The next bytes from a broker to a client are lost, and the connection with them."""

    client: int = 0
    broker: int = 0


@dataclass(frozen=True, slots=True)
class LoseRequest:
    """The next bytes from a client to a broker are lost, and the connection with them."""

    client: int = 0
    broker: int = 0


@dataclass(frozen=True, slots=True)
class Cut:
    """Nothing gets through between a client and a broker, or only from the client to the broker."""

    client: int = 0
    broker: int = 0
    answers_only: bool = False


@dataclass(frozen=True, slots=True)
class HalfOpen:
    """A broker's ends of the connections to a client vanish; the client does not know."""

    client: int = 0
    broker: int = 0


@dataclass(frozen=True, slots=True)
class SlowNetwork:
    """What goes between a client and a broker takes long, and some of it much longer."""

    client: int = 0
    broker: int = 0
    by_ms: int = 200


@dataclass(frozen=True, slots=True)
class SlowReader:
    """A client reads slowly: what brokers send it piles up."""

    client: int = 0
    bytes_per_s: int = 2_000


@dataclass(frozen=True, slots=True)
class SlowDisk:
    """From now on each flush of a broker's disk takes so long."""

    broker: int = 0
    by_ms: int = 700


@dataclass(frozen=True, slots=True)
class FlipBit:
    """A bit of the newest message flips that a broker keeps for later: one that is delayed, or half of a transaction.
    Or of the newest plain one: consumers get it as it is, and tell by its checksum.

    A store does not start on a log that is damaged in its middle, so in a history in which one starts nothing flips.
    """

    broker: int = 0
    what: Stored = "delayed"


@dataclass(frozen=True, slots=True)
class Intrude:
    """Somebody connects to a broker, or to a nameserver, who does not speak the protocol."""

    broker: int = 0
    way: int = 0
    nameserver: bool = False


@dataclass(frozen=True, slots=True)
class Heal:
    """Every cut ends."""


Step = (
    Send
    | SendBatch
    | SendHalf
    | Pull
    | SendBack
    | CommitOffset
    | QueryOffset
    | LockQueue
    | UnlockQueue
    | Heartbeat
    | Leave
    | ViewRefresh
    | QueryRoute
    | QueryKey
    | QueryBounds
    | Ask
    | Configure
    | AdvanceClock
    | JumpClock
    | ProcessCrash
    | PowerLoss
    | RestartBroker
    | FailFlush
    | FullDisk
    | StopBroker
    | RestartNameserver
    | ProducerDeath
    | ConsumerPause
    | Disconnect
    | LoseAnswer
    | LoseRequest
    | Cut
    | HalfOpen
    | SlowNetwork
    | SlowReader
    | SlowDisk
    | FlipBit
    | Intrude
    | Heal
)

STEPS: Final[dict[str, type[Step]]] = {kind.__name__: kind for kind in get_args(Step)}

STANDS_FOR: Final = {
    "AdvanceClock": ("ImmunityOver", "TrustExpire", "LoanExpire"),
    "SendHalf": ("DuplicateEnd",),
    "LoseAnswer": ("LoseCheck",),
    "LoseRequest": ("LoseEnd", "LoseCommit"),
    "ProducerDeath": ("ConsumerDeath",),
}
"""Steps of a history that make several actions of the specifications happen."""


OPERATIONS: Final = (
    Send,
    SendBatch,
    SendHalf,
    Pull,
    SendBack,
    CommitOffset,
    QueryOffset,
    LockQueue,
    UnlockQueue,
    Heartbeat,
    Leave,
    ViewRefresh,
    QueryRoute,
    QueryKey,
    QueryBounds,
    Ask,
    Configure,
)
"""What clients do; the other steps are the world's."""


@dataclass(frozen=True, slots=True)
class History:
    """What happened to one cluster."""

    setting: Setting = Setting()
    steps: tuple[Step, ...] = ()

    kind: ClassVar[str] = "cluster"

    def to_json(self) -> dict[str, Any]:
        """Plain data."""
        return to_json(self.setting, self.steps)

    @staticmethod
    def from_json(data: dict[str, Any]) -> History:
        return History(*from_json(data, "cluster", Setting, STEPS))

    def __str__(self) -> str:
        return "\n".join([str(self.setting), *[f"  {step}" for step in self.steps]])
