"""Letters between the threads of the C shell and the control plane, as `src/refmq_fast/shell/mail.h` lays them down."""

from __future__ import annotations

from enum import IntEnum
from typing import Any, NamedTuple

from refmq.model.ids import HostAddress
from refmq.protocol.host_address import host_text
from refmq.store.values import Dispatched


class Up(IntEnum):
    """To the control plane."""

    FRAME = 0
    """A frame that is not for C, or bytes that are none."""
    SOCKET = 1
    """A connection that may speak TLS; `number` is its descriptor."""
    PULL = 2
    """A parked pull that C cannot serve any more: header and body."""
    CLOSED = 3
    """A connection of which the control plane has heard is gone."""
    EMPTY = 4
    """After `CLOSE_ALL`: no connection is left."""
    ARRIVED = 5
    """A record of a watched topic can be read."""
    MISSED = 6
    """There were too many of those: anything may have arrived."""
    DURABLE = 7
    """The flush that was asked for has ended: the log is durable up to `number`."""
    FAILED = 8
    """The engine cannot go on."""


class Down(IntEnum):
    """To the IO thread."""

    WRITE = 9
    BEGUN = 10
    """The control plane has begun `number` frames of a connection."""
    PAUSE = 11
    RESUME = 12
    CLOSE = 13
    """When everything has been sent."""
    ABORT = 14
    WORK = 15
    """The control plane has put something into the log."""
    FLUSH = 16
    """And waits until it is durable."""
    LISTEN = 17
    """One more listening socket."""
    DRAIN = 18
    """No more connections and frames, and no pull waits on."""
    CLOSE_ALL = 19
    ABORT_ALL = 20


class Letter(NamedTuple):
    """A letter up."""

    kind: Up
    connection: int
    number: int
    ip: bytes
    port: int
    on_vip_port: bool
    serialize: int
    data: bytes
    split: int
    """Where the second part of `data` begins, if there are two."""
    arrived: Dispatched | None

    @classmethod
    def of(cls, fields: tuple[Any, ...]) -> Letter:
        """A letter as `refmq_fast.Shell.collect` gives it."""
        kind, *rest, arrived = fields
        return cls._make((Up(kind), *rest, None if arrived is None else Dispatched._make(arrived)))

    @property
    def peer(self) -> str:
        """The address of the peer, as `host:port`."""
        return host_text(HostAddress(self.ip, self.port))
