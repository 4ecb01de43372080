"""A history of a consumer group: a setting, and the steps that applications and the world take. A value, as all are.

The clients are the real ones (`refmq.aio`), so there are no steps for what they decide themselves: when they pull,
commit, lock, rebalance, give back. A step starts or ends a consumer, sends messages, or breaks something. The steps of
the world are those of histories of a cluster; their `client` counts the consumers, and one more is the producer.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Final, Literal, get_args

from conformance.cluster.history import (
    AdvanceClock,
    ConsumerPause,
    Cut,
    Disconnect,
    HalfOpen,
    Heal,
    LoseAnswer,
    LoseRequest,
    PowerLoss,
    ProcessCrash,
    RestartBroker,
    RestartNameserver,
    SlowNetwork,
    StopBroker,
)
from conformance.plain_data import from_json, to_json

__all__ = [
    "CALM",
    "STEPS",
    "AdvanceClock",
    "Asked",
    "ConsumerDeath",
    "ConsumerPause",
    "Cut",
    "Disconnect",
    "HalfOpen",
    "Heal",
    "History",
    "Join",
    "Leave",
    "LoseAnswer",
    "LoseRequest",
    "PowerLoss",
    "ProcessCrash",
    "Produce",
    "Refuse",
    "RestartBroker",
    "RestartNameserver",
    "Setting",
    "SlowNetwork",
    "Step",
    "StopBroker",
]

Asked = Literal[
    "offset", "commit", "members", "lock", "unlock", "heartbeat", "pull", "send back", "route", "max offset"
]
"""What a consumer asks brokers and nameservers for."""


@dataclass(frozen=True, slots=True)
class Setting:
    """The cluster of a history, and how its group consumes."""

    seed: int = 0
    """Decides delays, the order of what is ready, and what a power loss leaves."""
    brokers: int = 1
    members: int = 2
    """Machines on which a consumer can run. None runs at first."""
    queues: int = 2
    """Of the topic, at each broker."""
    orderly: bool = False
    start_at_last: bool = False
    tag_a: bool = False
    """The group wants only every other message."""
    concurrency: int = 4
    retries_max: int = 2
    prefetch: int = 8
    pull_batch: int = 4
    maintain_ms: int = 100
    """How often a broker looks whether something is due by the clock."""


# --- applications ------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Produce:
    """The producer sends messages, one after the other."""

    broker: int = 0
    queue: int = 0
    count: int = 1
    fails: int = 0
    """So many attempts to consume one of them fail."""
    takes_ms: int = 0
    """How long a listener is busy with one of them."""
    anywhere: bool = False
    """The producer chooses the queue, and tries another broker when one does not answer."""
    body_bytes: int = 20


@dataclass(frozen=True, slots=True)
class Join:
    """A consumer starts, if there is none on this machine."""

    member: int = 0


@dataclass(frozen=True, slots=True)
class Leave:
    """A consumer is closed in good order."""

    member: int = 0


@dataclass(frozen=True, slots=True)
class ConsumerDeath:
    """The process of a consumer dies, with what it has in hand."""

    member: int = 0
    power: bool = False
    """Its machine loses its power: brokers hear nothing of it."""
    at: str = ""
    """Not empty: it dies right behind its next step of this name."""


# --- the world ---------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Refuse:
    """The next requests of one kind from a consumer are answered with an error."""

    member: int = 0
    asked: Asked = "offset"
    count: int = 1


Step = (
    Produce
    | Join
    | Leave
    | ConsumerDeath
    | Refuse
    | AdvanceClock
    | ProcessCrash
    | PowerLoss
    | RestartBroker
    | StopBroker
    | RestartNameserver
    | ConsumerPause
    | Disconnect
    | LoseAnswer
    | LoseRequest
    | Cut
    | HalfOpen
    | SlowNetwork
    | Heal
)

STEPS: Final[dict[str, type[Step]]] = {kind.__name__: kind for kind in get_args(Step)}

CALM: Final = (Produce, AdvanceClock)
"""What happens in a history in which nothing disturbs, once its members have joined."""


@dataclass(frozen=True, slots=True)
class History:
    """What happened to one group."""

    setting: Setting = Setting()
    steps: tuple[Step, ...] = ()

    kind: ClassVar[str] = "group"

    def to_json(self) -> dict[str, Any]:
        """Plain data."""
        return to_json(self.setting, self.steps)

    @staticmethod
    def from_json(data: dict[str, Any]) -> History:
        return History(*from_json(data, "group", Setting, STEPS))

    def __str__(self) -> str:
        return "\n".join([str(self.setting), *[f"  {step}" for step in self.steps]])
