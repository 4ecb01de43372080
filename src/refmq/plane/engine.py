"""An engine: a plane, a store below it and the ports above it. What a broker is given, and never builds itself.

    reference   `refmq.net.engine`: this package on an event loop, with `refmq.store`
    fast        the same machine in C, on a thread of its own

An engine serves the requests of the hot path from their first byte to their last. Everything else it hands over to the
control plane, which in turn installs snapshots of its tables and puts messages of its own.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Protocol, TypeAlias

from refmq.model.ids import QueueOffset, TimestampMs
from refmq.plane.counts import Counts
from refmq.plane.flow import Flow
from refmq.plane.inputs import Frame
from refmq.plane.needs import Need
from refmq.plane.offsets import OffsetTable
from refmq.plane.snapshot import Snapshot
from refmq.protocol.command import RemotingCommand
from refmq.store.api import MessageStore
from refmq.store.values import MessageToStore, PutResult, RecoveryReport
from refmq.trace.record import Recorder

Answer: TypeAlias = RemotingCommand | None
"""None: there is no answer, or not now."""


class Peer(Protocol):
    """The other end of a connection, as handlers see it. `refmq.net.connection.Connection` is one."""

    @property
    def number(self) -> int:
        """Its identity at this broker: never used twice."""
        ...

    @property
    def peer(self) -> str:
        """Its address as `host:port`."""
        ...

    @property
    def closed(self) -> bool: ...

    async def request(self, command: RemotingCommand, timeout_s: float) -> RemotingCommand: ...

    def send_oneway(self, command: RemotingCommand) -> bool: ...

    def close(self, reason: str = ...) -> None: ...


class ControlPlane(Protocol):
    """Whom an engine hands over to."""

    def serve(self, peer: Peer, frame: Frame, need: Need | None) -> Answer | Awaitable[Answer]:
        """A request that is none of the hot path's, or that needs something before the hot path can serve it."""
        ...

    def connection_closed(self, number: int) -> None:
        """A connection that has sent something is gone."""
        ...


class HotPath(Protocol):
    """An engine as the control plane uses it."""

    @property
    def store(self) -> MessageStore: ...

    @property
    def offsets(self) -> OffsetTable:
        """What groups have committed."""
        ...

    @property
    def flow(self) -> Flow:
        """The requests that have begun and are not answered."""
        ...

    @property
    def uptime_ms(self) -> int:
        """The clock that durations are measured with."""
        ...

    def install(self, snapshot: Snapshot, *, new_group: str | None = None) -> None:
        """From now on requests are checked against this. `new_group`: nothing is new but this group."""
        ...

    def commit_offset(self, group: str, topic: str, queue_id: int, offset: QueueOffset) -> None: ...

    def set_offsets(self, offsets: OffsetTable) -> None: ...

    async def put(self, message: MessageToStore, *, wait_durable: bool = True) -> PutResult:
        """Appends, and returns when a producer could be told. The status says what it could be told."""
        ...

    def again(self, frame: Frame) -> Answer | Awaitable[Answer]:
        """Serves a request that was handed over with a need which is met now."""
        ...

    def take_counts(self) -> Counts:
        """What was counted since the last call."""
        ...

    def watch(self, topic: str, told: Callable[[], None]) -> None:
        """Calls `told` whenever a message of the topic can be read."""
        ...


class Engine(HotPath, Protocol):
    """An engine as a process runs it: recover, listen, run, close, stop."""

    @property
    def name(self) -> str:
        """What `--engine` calls it."""
        ...

    @property
    def recorder(self) -> Recorder | None:
        """What a broker with this engine records with, so that its events are in order with those of the engine."""
        ...

    @property
    def failure(self) -> Awaitable[BaseException]:
        """Done when the engine cannot go on: a failed flush, or a mistake of ours."""
        ...

    async def recover(self, now_ms: TimestampMs) -> RecoveryReport:
        """Starts the store."""
        ...

    async def listen(self, host: str, port: int) -> tuple[str, int]:
        """Opens the main port and says where it is. Requests are refused as busy until `run`."""
        ...

    async def listen_vip(self, host: str, port: int) -> None:
        """Opens the port of the VIP channel, which serves everything but pulls."""
        ...

    def run(self, control: ControlPlane, snapshot: Snapshot, offsets: OffsetTable) -> None:
        """Serves."""
        ...

    def connection(self, number: int) -> Peer | None:
        """The open connection with this number."""
        ...

    async def close(self, timeout_s: float) -> None:
        """Answers the pulls that wait, takes no more requests and lets those that are being served end."""
        ...

    async def stop(self, now_ms: TimestampMs) -> None:
        """Stops the clockwork and the store. Puts that still wait for a flush are told that it came too late."""
        ...
