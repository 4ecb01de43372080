"""What a broker needs from outside: peers, time, chance, files, nameservers and a data plane.

The broker itself is pure. A shell gives it these on real sockets and files; the simulated world gives it others.
"""

from __future__ import annotations

from collections.abc import Coroutine, Mapping
from typing import Any, Protocol

from refmq.model.ids import TimestampMs
from refmq.model.step import Event
from refmq.protocol.command import RemotingCommand
from refmq.store.api import MessageStore
from refmq.store.values import BatchToStore, MessageToStore, PutResult


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

    def send(self, command: RemotingCommand) -> bool:
        """Sends an answer that a handler did not return at once (a held pull)."""
        ...

    def close(self, reason: str = ...) -> None: ...


class Engine(Protocol):
    """The data plane as the control plane sees it: a store, and appends that wait until they may be acknowledged."""

    @property
    def store(self) -> MessageStore: ...

    async def put(self, message: MessageToStore, *, wait_durable: bool = True) -> PutResult:
        """Appends, and returns when the producer may be told. The status says what it may be told."""
        ...

    async def put_batch(self, batch: BatchToStore, *, wait_durable: bool = True) -> PutResult: ...


class World(Protocol):
    """Time, chance, files and neighbours."""

    def now_ms(self) -> TimestampMs: ...

    def local_time(self, at_ms: TimestampMs) -> str:
        """A time as people at the broker's place read it: `yyyy-MM-dd HH:mm:ss,SSS`."""
        ...

    def disk_used_ratio(self) -> float:
        """How full the store's disk is, 0 to 1."""
        ...

    def random_below(self, bound: int) -> int:
        """A number in [0, bound)."""
        ...

    def emit(self, event: Event) -> None:
        """Records a trace event; never fails and never waits."""
        ...

    async def save(self, file: str, body: bytes) -> None:
        """Replaces a file of the broker's config directory, atomically and durably."""
        ...

    async def save_settings(self, given: Mapping[str, str]) -> None:
        """Keeps settings that were changed over the wire, for the next start."""
        ...

    def disk_capacity(self) -> tuple[int, int]:
        """All and free bytes of the store's disk."""
        ...

    async def register(self, topic: str | None = None) -> None:
        """Tells the nameservers about all topics, or about one that an administrator changed."""
        ...

    def spawn(self, work: Coroutine[Any, Any, None], name: str) -> None:
        """Runs something beside the requests; an error in it is reported, and ends at the latest with the broker."""
        ...

    def connection(self, number: int) -> Peer | None:
        """The open connection with this number."""
        ...
