"""What a broker needs from outside besides its engine: time, randomness, files, nameservers and peers.

The broker itself is pure. A shell gives it these on real sockets and files; the simulated world gives it others.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Mapping
from typing import Any, Protocol

from refmq.acl.policy import Policy
from refmq.model.ids import TimestampMs
from refmq.model.step import Event
from refmq.plane.engine import Peer
from refmq.protocol.headers.admin import UpdateAclConfigRequest


class AccountFiles(Protocol):
    """The files of access control. A change is durable and in force when its call returns, or `RefmqError`."""

    @property
    def policy(self) -> Policy: ...

    @property
    def plain_path(self) -> object:
        """The path of `plain_acl.yml`."""
        ...

    async def put_account(self, given: UpdateAclConfigRequest, now_ms: int) -> None: ...

    async def delete_account(self, access_key: str, now_ms: int) -> None: ...

    async def put_white_list(self, addresses: str, path: str | None, now_ms: int) -> None: ...


class Environment(Protocol):
    """Time, randomness, files and neighbours."""

    def now_ms(self) -> TimestampMs: ...

    def local_time(self, at_ms: TimestampMs) -> str:
        """A time in the broker's local time zone: `yyyy-MM-dd HH:mm:ss,SSS`."""
        ...

    def random_below(self, bound: int) -> int:
        """A number in [0, bound)."""
        ...

    def emit(self, event: Event) -> None:
        """Records a trace event; never fails and never waits."""
        ...

    def warn(self, sentence: str) -> None:
        """Tells the operator of something that is wrong and that the broker can live with."""
        ...

    async def save(self, file: str, encode: Callable[[], bytes]) -> None:
        """Replaces a file of the config directory, atomically and durably. Saves of one file that come while it is
        written share the next write, and only the newest of them is encoded: a table may be long."""
        ...

    async def save_settings(self, given: Mapping[str, str]) -> None:
        """Saves settings changed over the wire, for the next start."""
        ...

    def disk_capacity(self) -> tuple[int, int]:
        """Total and free bytes of the store's disk."""
        ...

    async def register(self) -> None:
        """Tells the nameservers about all topics."""
        ...

    async def give_way(self) -> None:
        """Lets everything else that can go on have its turn. Work without an end in sight calls it again and again."""
        ...

    def spawn(self, work: Coroutine[Any, Any, None], name: str) -> None:
        """Runs a background task, no longer than the broker lives; an error in it is reported."""
        ...

    def connection(self, number: int) -> Peer | None:
        """The open connection with this number."""
        ...
