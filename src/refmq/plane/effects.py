"""What a plane wants done, in the order of the tuple. A crash can fall between any two of them.

    effect     who performs it                         if it fails
    Append     the store: writes what was planned      the step did not happen; `puts.append_failed` answers instead
    Flush      the flusher, as soon as it is free      `FlushFailed` comes in
    Dispatch   the store, at the loop's next turn      what is left is dispatched later
    Reply      the connection that asked               the peer is gone and needs no answer
    Tell       the control plane, whose put it was     -
    Wait       nobody: the answer follows an input     -
    Park       nobody: the answer follows an arrival   -
    HandOver   the control plane                       it answers
    PutNote    this plane, as an `OwnPut`              nobody waits for it
    SetFilters the store                               -
    Count...   the counters that statistics are from   -

`Append` is always the first effect of its step. So a step whose append fails has had no other effect, its next state
is dropped, and nobody was told anything.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

from refmq.filter.registry import Filters
from refmq.plane.ack import Put
from refmq.plane.inputs import Frame, Ticket
from refmq.plane.needs import Need
from refmq.protocol.command import RemotingCommand
from refmq.store.values import MessageToStore, PutResult


class Append(NamedTuple):
    """Write the planned records at the end of the log."""

    put: Put


@dataclass(frozen=True, slots=True)
class Flush:
    """Make the log durable as far as it is written: somebody waits for it."""


@dataclass(frozen=True, slots=True)
class Dispatch:
    """Give records their queue units."""


class Reply(NamedTuple):
    """Send the answer to a request."""

    frame: Frame
    command: RemotingCommand


@dataclass(frozen=True, slots=True)
class Tell:
    """Tell the control plane how its put ended."""

    ticket: Ticket
    result: PutResult


class Wait(NamedTuple):
    """The request counts as being served until its reply: its peer may be stopped from sending more."""

    frame: Frame


@dataclass(frozen=True, slots=True)
class Park:
    """The request waits for a message and costs its peer nothing meanwhile."""

    frame: Frame
    topic: str


@dataclass(frozen=True, slots=True)
class WakeMore:
    """More pulls were woken than one step answers: the next step is taken when others have had their turn."""


@dataclass(frozen=True, slots=True)
class HandOver:
    """The control plane serves this request: it is none of ours, or needs something first."""

    frame: Frame
    need: Need | None = None


@dataclass(frozen=True, slots=True)
class PutNote:
    """Store a message that nobody waits for."""

    message: MessageToStore


@dataclass(frozen=True, slots=True)
class SetFilters:
    """From now on the store computes the bitmaps of new messages from these expressions; None: it computes none."""

    filters: Filters | None


class CountSend(NamedTuple):
    """A message or a batch was stored, and its producer told after so long."""

    topic: str
    messages: int
    size_bytes: int
    took_ms: int


@dataclass(frozen=True, slots=True)
class CountRefusedSend:
    """The store did not take a message."""


class CountPut(NamedTuple):
    """A put of the control plane took so long until it could be acknowledged."""

    took_ms: int


class CountPull(NamedTuple):
    """A pull brought so many messages; 0 is a miss."""

    group: str
    topic: str
    queue_id: int
    messages: int
    size_bytes: int


Effect: TypeAlias = (
    Append
    | Flush
    | Dispatch
    | Reply
    | Tell
    | Wait
    | Park
    | WakeMore
    | HandOver
    | PutNote
    | SetFilters
    | CountSend
    | CountRefusedSend
    | CountPut
    | CountPull
)
