"""Steps of a history of a cluster that the world takes: time, faults, repairs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Stored = Literal["delayed", "half", "plain"]


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
