"""What can happen to a plane. A shell feeds these, one at a time, with the time; the plane never asks for anything.

    input           from                                     step
    Frame           a connection: one request                `serve.serve_frame`
    OwnPut          the control plane: a message it makes    `puts.put_own`
    Arrived         the store: records have their units      `pull.wake_arrived`
    Durable         the flusher: the log is flushed so far   `puts.ack_puts`
    FlushFailed     the flusher: nothing more is promised    `puts.give_up`
    Replicated      a slave: it has the log so far           `replicate.master_read_report`
    Tick            a timer                                  `serve.tick`
    Install         the control plane: new tables            `serve.install`
    Commit          the control plane: an offset             `offset_requests.commit`
    SetOffsets      the control plane: many offsets          `serve.step`
    Closed          a connection is gone                     `serve.forget_connection`
    Deferred, Done  the control plane: a request takes its time, and is over
    Drain           the broker stops: nobody waits on        `pull.wake`

Each comes with the `Moment` at which it happened.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple, NewType, TypeAlias

from refmq.model.ids import PhysicalOffset, QueueOffset, TimestampMs
from refmq.plane.offsets import OffsetTable
from refmq.plane.snapshot import Snapshot
from refmq.protocol.command import RemotingCommand
from refmq.store.values import Dispatched, MessageToStore

Ticket = NewType("Ticket", int)
"""The control plane's name for a put of its own."""


class Moment(NamedTuple):
    """The time of an input: the wall's for what is written down, the uptime for how long something takes."""

    wall_ms: TimestampMs
    uptime_ms: int
    """Never goes back, whatever is done to the clock on the wall."""


class Frame(NamedTuple):
    """One request of a peer. (A tuple, like all values here that every message needs one of: a frozen dataclass takes
    four times as long to make.)"""

    number: int
    """Counted up by the shell: no two frames of a broker's life share one."""
    connection: int
    peer: str
    """The peer's address as `host:port`."""
    command: RemotingCommand
    waited_ms: int = 0
    """Between its last byte and its turn."""
    draw: int = 0
    """A random number of 31 bits, for a choice that nobody else makes."""
    on_vip_port: bool = False


@dataclass(frozen=True, slots=True)
class OwnPut:
    """A message of the control plane: a half message's final, a delayed one whose time has come, a retry."""

    ticket: Ticket
    message: MessageToStore
    waits: bool
    """Whether the answer waits until the message is as safe as the broker promises."""


@dataclass(frozen=True, slots=True)
class Arrived:
    """Records that can be read from their queues from now on."""

    messages: tuple[Dispatched, ...]


@dataclass(frozen=True, slots=True)
class Durable:
    """The log is flushed up to here."""

    flushed_to: PhysicalOffset


@dataclass(frozen=True, slots=True)
class FlushFailed:
    """A flush failed, or the broker stops: nobody who still waits for one will see it."""


@dataclass(frozen=True, slots=True)
class Replicated:
    """A slave reports that it has the log up to here."""

    slave: int
    to: PhysicalOffset


@dataclass(frozen=True, slots=True)
class Tick:
    """Some time has passed."""


@dataclass(frozen=True, slots=True)
class Install:
    """The control plane has changed its tables."""

    snapshot: Snapshot


@dataclass(frozen=True, slots=True)
class Commit:
    """The control plane sets the offset of a group."""

    group: str
    topic: str
    queue_id: int
    offset: QueueOffset


@dataclass(frozen=True, slots=True)
class SetOffsets:
    """The control plane has changed many offsets at once: a group was deleted or cloned."""

    offsets: OffsetTable


@dataclass(frozen=True, slots=True)
class Drain:
    """The broker stops: pulls that wait are answered as they stand."""


@dataclass(frozen=True, slots=True)
class NextWoken:
    """The turn of more of the pulls that were woken together."""


@dataclass(frozen=True, slots=True)
class Closed:
    """A connection is gone."""

    connection: int


@dataclass(frozen=True, slots=True)
class Deferred:
    """The control plane cannot answer a request at once."""

    frame: Frame


@dataclass(frozen=True, slots=True)
class Done:
    """The control plane has answered a request that was deferred."""

    frame: Frame


Input: TypeAlias = (
    Frame
    | OwnPut
    | Arrived
    | Durable
    | FlushFailed
    | Replicated
    | Tick
    | Install
    | Commit
    | SetOffsets
    | Closed
    | Deferred
    | Done
    | Drain
    | NextWoken
)
