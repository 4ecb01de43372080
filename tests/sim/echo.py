"""A tiny service for the simulated world: it sends back what it gets."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any

from refmq.sim.world import Node, World

PORT = 7


async def echo(node: Node) -> None:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while data := await reader.read(1000):
                writer.write(data)
                await writer.drain()
        except ConnectionError:
            pass
        finally:
            writer.close()

    server = await asyncio.start_server(serve, port=PORT)
    async with server:
        await server.serve_forever()


async def ask(host: str, text: bytes) -> bytes:
    """One request on a connection of its own; what has come back when the connection is over."""
    reader, writer = await asyncio.open_connection(host, PORT)
    try:
        writer.write(text)
        writer.write_eof()
        return await reader.read()
    finally:
        writer.close()


async def idle(node: Node) -> None:
    """A node that does nothing; stories run code in it with `Node.call`."""
    await asyncio.Event().wait()


Story = Callable[[World, Node, Node], Awaitable[Any]]


def run(story: Story, seed: int = 1, server_main: Callable[[Node], Coroutine[Any, Any, None]] = echo) -> Any:
    world = World(seed)
    server, client = world.node("server", server_main), world.node("client", idle)

    async def whole() -> Any:
        server.start()
        client.start()
        await asyncio.sleep(0.1)
        return await story(world, server, client)

    return world.run(whole())
