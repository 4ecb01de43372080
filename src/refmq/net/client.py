"""A client: one connection per address, opened on first use and reopened after a loss."""

from __future__ import annotations

import asyncio
import contextlib

from refmq.errors import ConnectFailed, NetworkError, RequestTimedOut
from refmq.net.address import parse_address
from refmq.net.connection import Connection, Handler
from refmq.net.limits import Limits
from refmq.net.tls import ClientTls
from refmq.protocol.command import RemotingCommand, response

REQUEST_CODE_NOT_SUPPORTED = 3


def no_requests(connection: Connection, command: RemotingCommand) -> RemotingCommand:
    """The handler of a client that serves nothing: it answers "not supported", as Java clients do."""
    return response(command, REQUEST_CODE_NOT_SUPPORTED, remark=f" request type {command.code} not supported")


class Client:
    """Sends requests to any number of servers.

        client = Client()
        answer = await client.invoke("127.0.0.1:9876", command, timeout_s=3)
        ...
        await client.close()

    ``handler`` serves requests from servers. If a request times out and the server was silent all that time, it may
    have vanished, so its connection is closed and the next request opens a new one.
    """

    def __init__(
        self, handler: Handler = no_requests, limits: Limits | None = None, *, tls: ClientTls | None = None
    ) -> None:
        self.limits = limits or Limits()
        self._handler = handler
        self._tls = tls
        self._connections: dict[str, Connection] = {}
        self._connecting: dict[str, asyncio.Task[Connection]] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._made = 0
        self._closed = False

    async def invoke(self, address: str, command: RemotingCommand, timeout_s: float) -> RemotingCommand:
        """The answer to a request. ``ConnectFailed``, ``ConnectionLost`` or ``RequestTimedOut`` without one."""
        left_s = timeout_s
        connection = self._connections.get(address)
        if connection is None or connection.close_reason is not None:
            loop = asyncio.get_running_loop()
            deadline = loop.time() + timeout_s
            connection = await self.connect(address, timeout_s)
            left_s = max(0.0, deadline - loop.time())
        sent_at = connection.now()
        try:
            return await connection.request(command, left_s)
        except RequestTimedOut:
            if connection.last_received_at < sent_at:
                connection.give_up("no answer and no other traffic")
            raise RequestTimedOut(address, f"no answer to request {command.code} within {timeout_s:g} s") from None

    async def oneway(self, address: str, command: RemotingCommand, timeout_s: float) -> None:
        """Send a one-way request; returns once it is on its way."""
        connection = await self.connect(address, timeout_s)
        try:
            async with asyncio.timeout(timeout_s):
                await connection.drained()
        except TimeoutError:
            raise RequestTimedOut(address, f"the peer accepted no data for {timeout_s:g} s") from None
        connection.send_oneway(command)

    async def connect(self, address: str, timeout_s: float) -> Connection:
        """The open connection to ``address``, opened if needed; concurrent callers share one attempt."""
        if self._closed:
            raise ConnectFailed(address, "the client is closed")
        connection = self._connections.get(address)
        if connection is not None and not connection.closed:
            return connection
        attempt = self._connecting.get(address)
        if attempt is None:
            attempt = asyncio.get_running_loop().create_task(self._connect(address))
            attempt.add_done_callback(lambda done: done.cancelled() or done.exception())
            self._connecting[address] = attempt
        try:
            async with asyncio.timeout(timeout_s):
                return await asyncio.shield(attempt)
        except TimeoutError:
            raise ConnectFailed(address, f"no connection within {timeout_s:g} s") from None

    async def close(self, timeout_s: float = 5.0) -> None:
        """Close every connection in at most about ``timeout_s``."""
        self._closed = True
        attempts = list(self._connecting.values())
        for attempt in attempts:
            attempt.cancel()
        connections = list(self._connections.values())
        for connection in connections:
            connection.close("the client is stopping")
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(timeout_s):
                for connection in connections:
                    await connection.wait_closed()
        for connection in connections:
            connection.give_up("the client is stopping")
        for task in list(self._tasks):
            task.cancel()
        late = [*attempts, *self._tasks]
        if late:
            await asyncio.wait(late, timeout=1)  # what was cancelled has ended when we say that we are closed

    async def _connect(self, address: str) -> Connection:
        try:
            host, port = parse_address(address)
            loop = asyncio.get_running_loop()
            try:
                async with asyncio.timeout(self.limits.connect_timeout_s):
                    _, connection = await loop.create_connection(self._make, host, port)
                    try:
                        await connection.ready
                    except BaseException:
                        connection.give_up("the handshake failed")
                        raise
            except TimeoutError:
                raise ConnectFailed(address, f"no connection within {self.limits.connect_timeout_s:g} s") from None
            except OSError as error:
                raise ConnectFailed(address, error.strerror or str(error)) from None
            except NetworkError as error:
                raise ConnectFailed(address, error.reason) from None
            if self._closed:
                connection.give_up("the client is stopping")
                raise ConnectFailed(address, "the client is closed")
            self._connections[address] = connection
            connection.on_close(lambda gone: self._forget(address, gone))
            return connection
        finally:
            self._connecting.pop(address, None)

    def _make(self) -> Connection:
        self._made += 1
        return Connection(self._handler, self.limits, number=self._made, tls=self._tls, tasks=self._tasks)

    def _forget(self, address: str, connection: Connection) -> None:
        if self._connections.get(address) is connection:
            del self._connections[address]
