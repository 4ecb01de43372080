"""Steps of a history of a cluster that clients take: each begins an operation. What they mean is said in `history`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Arranged = Literal["a topic", "a group", "a route", "a route that is gone", "a permission", "a value", "a clone"]
Forged = Literal["group", "offset", "id", "place"]
Decision = Literal["commit", "rollback", "unknown", "none"]
Wanted = Literal["all", "tag a", "tags a || b", "sql n", "sql tag", "registered", "registered sql"]


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
    delay_level: int = 0
    """It says that it is delayed, as a half message must not be: brokers pass over that."""


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


@dataclass(frozen=True, slots=True)
class Arrange:
    """An operator makes or changes something at a broker or the nameserver, and reads it back."""

    client: int = 0
    broker: int = 0
    what: Arranged = "a topic"
    number: int = 0
    """Decides the value."""


@dataclass(frozen=True, slots=True)
class AskNameserver:
    """A client, or a tool of an operator, asks the nameserver something, perhaps in a form that is damaged."""

    client: int = 0
    number: int = 0
    """Which of the requests."""
    damage: int = 0


@dataclass(frozen=True, slots=True)
class Forge:
    """Somebody who is not its producer commits the newest half message of a broker, or one commits it by a wrong name:
    the broker must not."""

    client: int = 0
    broker: int = 0
    wrong: Forged = "group"
