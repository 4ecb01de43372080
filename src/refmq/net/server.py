"""A server: listens, makes a ``Connection`` for each peer, and stops in bounded time."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
from collections.abc import Iterator, Sequence

from refmq.errors import RefmqError
from refmq.net.address import format_address
from refmq.net.connection import Connection, Handler
from refmq.net.limits import Admission, Budget, Limits
from refmq.net.tls import ServerTls

ACCEPT_BACKLOG = 1024  # the same as upstream's netty server


class Server:
    """Serves requests on one port.

        server = Server(handler)
        host, port = await server.start("127.0.0.1", 9876)
        ...
        await server.close(timeout_s=10)

    ``handler`` is described in ``refmq.net.connection``. ``failure`` ends with an ``AssertionError`` when a handler
    finds a bug in refmq; the owner of the server waits for it and stops. Servers that number their connections
    together (a broker has two ports) share ``numbers``, and those that share descriptors an ``admission``.
    """

    def __init__(
        self,
        handler: Handler,
        limits: Limits | None = None,
        *,
        tls: ServerTls | None = None,
        numbers: Iterator[int] | None = None,
        admission: Admission | None = None,
    ) -> None:
        self.limits = limits or Limits()
        self.refused = 0
        """Connections closed on arrival because there were too many."""
        self._handler = handler
        self._tls = tls or ServerTls()
        self._admission = admission or Admission(self.limits.connections_max)
        self._budget = Budget(self.limits.memory_bytes_max)
        self._connections: dict[int, Connection] = {}
        self._numbers = itertools.count(1) if numbers is None else numbers
        self._tasks: set[asyncio.Task[None]] = set()
        self._listener: asyncio.AbstractServer | None = None
        self._closing = False
        self.failure: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    @property
    def connections(self) -> Sequence[Connection]:
        """The open connections, oldest first."""
        return tuple(self._connections.values())

    def connection(self, number: int) -> Connection | None:
        """The open connection with this number."""
        return self._connections.get(number)

    @property
    def held_bytes(self) -> int:
        """Bytes held by all connections together, as the budget counts them."""
        return self._budget.total

    async def start(self, host: str, port: int) -> tuple[str, int]:
        """Listen. Returns the address in use, with the actual port if 0 was asked for."""
        assert self._listener is None, "a server is started once"
        loop = asyncio.get_running_loop()
        try:
            listener = await loop.create_server(self._accept, host, port, backlog=ACCEPT_BACKLOG)
        except OSError as error:
            reason = error.strerror or str(error)
            raise RefmqError(f"cannot listen on {format_address(host, port)}: {reason}") from None
        self._listener = listener
        name = listener.sockets[0].getsockname()
        return str(name[0]), int(name[1])

    async def close(self, timeout_s: float) -> None:
        """Stop in at most about ``timeout_s``: refuse new connections and requests, answer what is in flight, close
        every connection, and abort any that is still open."""
        self._closing = True
        if self._listener is not None:
            self._listener.close()
        for connection in self.connections:
            connection.stop_reading()
        loop = asyncio.get_running_loop()
        deadline = loop.time() + timeout_s
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=timeout_s)
        late = list(self._tasks)
        for task in late:
            task.cancel()
        for connection in self.connections:
            connection.close("the server is stopping")
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout_at(deadline):
                for connection in self.connections:
                    await connection.wait_closed()
        for connection in self.connections:
            connection.give_up("the server is stopping")
        if late:
            await asyncio.wait(late, timeout=1)
        self.failure.cancel()

    def adopt(self, number: int) -> Connection:
        """A connection that somebody else has accepted, and numbered; its transport is still to be made."""
        connection = Connection(
            self._handler,
            self.limits,
            number=number,
            tls=self._tls,
            budget=self._budget,
            tasks=self._tasks,
            on_failure=self._fail,
        )
        if self._closing or not self._admission.enter():
            self.refused += 1
            connection.give_up("too many connections")
            return connection
        self._connections[connection.number] = connection
        connection.on_close(self._forget)
        return connection

    def _accept(self) -> Connection:
        return self.adopt(next(self._numbers))

    def _forget(self, connection: Connection) -> None:
        if self._connections.pop(connection.number, None) is not None:
            self._admission.leave()

    def _fail(self, error: AssertionError) -> None:
        if not self.failure.done():
            self.failure.set_exception(error)
