"""A history of a cluster: a setting and the steps that clients and the world take. A value: printed, saved, shrunk.

Every step is total: one that makes no sense where it stands (a pull by a dead client) is passed over, so any list of
steps is a history and a shrunken one stays one. Operations do not wait for each other: a step begins one, and
`AdvanceClock` lets time pass. Steps that mirror an action of a specification carry its name; operations of clients
have the names in `CLIENT_OPERATIONS`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Final, get_args

from conformance.cluster.steps_of_clients import (
    Arrange,
    Arranged,
    Ask,
    AskNameserver,
    CommitOffset,
    Configure,
    Decision,
    Forge,
    Forged,
    Heartbeat,
    Leave,
    LockQueue,
    Pull,
    QueryBounds,
    QueryKey,
    QueryOffset,
    QueryRoute,
    Send,
    SendBack,
    SendBatch,
    SendHalf,
    UnlockQueue,
    ViewRefresh,
    Wanted,
)
from conformance.cluster.steps_of_world import (
    AdvanceClock,
    ConsumerPause,
    Cut,
    Disconnect,
    FailFlush,
    FlipBit,
    FullDisk,
    HalfOpen,
    Heal,
    Intrude,
    JumpClock,
    LoseAnswer,
    LoseRequest,
    PowerLoss,
    ProcessCrash,
    ProducerDeath,
    RestartBroker,
    RestartNameserver,
    SlowDisk,
    SlowNetwork,
    SlowReader,
    StopBroker,
    Stored,
)
from conformance.plain_data import from_json, to_json

__all__ = [
    "OPERATIONS",
    "STANDS_FOR",
    "STEPS",
    "AdvanceClock",
    "Arrange",
    "Arranged",
    "Ask",
    "AskNameserver",
    "CommitOffset",
    "Configure",
    "ConsumerPause",
    "Cut",
    "Decision",
    "Disconnect",
    "FailFlush",
    "FlipBit",
    "Forge",
    "Forged",
    "FullDisk",
    "HalfOpen",
    "Heal",
    "Heartbeat",
    "History",
    "Intrude",
    "JumpClock",
    "Leave",
    "LockQueue",
    "LoseAnswer",
    "LoseRequest",
    "PowerLoss",
    "ProcessCrash",
    "ProducerDeath",
    "Pull",
    "QueryBounds",
    "QueryKey",
    "QueryOffset",
    "QueryRoute",
    "RestartBroker",
    "RestartNameserver",
    "Send",
    "SendBack",
    "SendBatch",
    "SendHalf",
    "Setting",
    "SlowDisk",
    "SlowNetwork",
    "SlowReader",
    "Step",
    "StopBroker",
    "Stored",
    "UnlockQueue",
    "ViewRefresh",
    "Wanted",
]


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
    in_flight_max: int = 0
    """So many requests of a client a broker serves at a time, and then reads no more from it; 0: as usual."""
    maintain_ms: int = 100
    """How often a broker looks whether something is due by the clock. What costs time in quiet histories is this."""
    ipv6: bool = False
    """Every host has an address of 16 bytes, and so have records and ids of messages."""


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
    | Arrange
    | AskNameserver
    | Forge
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
