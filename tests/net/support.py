"""Helpers for tests of the shells: run a coroutine with a limit, a server with a client, a raw peer."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, TypeVar

from refmq.net.client import Client
from refmq.net.connection import Connection, Handler
from refmq.net.limits import Limits
from refmq.net.server import Server
from refmq.net.tls import ServerTls
from refmq.protocol.command import RemotingCommand, response

T = TypeVar("T")

TEST_TIMEOUT_S = 60.0  # a test that takes longer hangs
TLS_FOLDER = Path(__file__).parent.parent / "golden" / "tls"


def run(coroutine: Coroutine[Any, Any, T]) -> T:
    """Run on a fresh loop, with an end in any case. What a callback raised unseen fails the test."""
    problems: list[dict[str, Any]] = []

    async def limited() -> T:
        asyncio.get_running_loop().set_exception_handler(lambda _, context: problems.append(context))
        async with asyncio.timeout(TEST_TIMEOUT_S):
            return await coroutine

    result = asyncio.run(limited())
    assert problems == []
    return result


async def until(condition: Callable[[], bool]) -> None:
    """Wait for a condition; the limit of ``run`` ends a wait that is in vain."""
    while not condition():
        await asyncio.sleep(0.001)


def echo(connection: Connection, command: RemotingCommand) -> RemotingCommand:
    """A handler that sends back what it was sent."""
    return response(command, 0, command.ext_fields, command.body)


@asynccontextmanager
async def serving(
    handler: Handler = echo, limits: Limits | None = None, *, tls: ServerTls | None = None
) -> AsyncIterator[tuple[Server, str]]:
    """A server on a free port and its address."""
    server = Server(handler, limits, tls=tls)
    host, port = await server.start("127.0.0.1", 0)
    try:
        yield server, f"{host}:{port}"
    finally:
        await server.close(timeout_s=0.2)  # some handlers never end


@asynccontextmanager
async def asking(client: Client | None = None) -> AsyncIterator[Client]:
    """A client that is closed in the end."""
    client = client or Client(limits=Limits(connect_timeout_s=20))  # a busy machine is slow
    try:
        yield client
    finally:
        await client.close(timeout_s=0.5)  # some peers take nothing any more


@asynccontextmanager
async def raw_peer(address: str) -> AsyncIterator[tuple[asyncio.StreamReader, asyncio.StreamWriter]]:
    """A connection that can send anything."""
    host, _, port = address.rpartition(":")
    reader, writer = await asyncio.open_connection(host, int(port))
    try:
        yield reader, writer
    finally:
        writer.transport.abort()


async def read_to_end(reader: asyncio.StreamReader) -> bytes:
    """Everything until the other end closes, in whatever way."""
    pieces = []
    try:
        while piece := await reader.read(65536):
            pieces.append(piece)
    except ConnectionError:
        pass
    return b"".join(pieces)
