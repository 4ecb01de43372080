"""A server: bounded, stopped in bounded time, and it reports a broken invariant."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable

import pytest

from refmq.net.connection import Connection
from refmq.net.limits import Limits
from refmq.net.server import Server
from refmq.protocol.command import RemotingCommand, request, response
from refmq.protocol.frame import decode, encode
from tests.net.support import asking, raw_peer, read_to_end, run, serving, until

CODE = 105


async def read_command(reader: asyncio.StreamReader) -> RemotingCommand:
    prefix = await reader.readexactly(4)
    return decode(prefix + await reader.readexactly(int.from_bytes(prefix, "big")))


def test_a_broken_invariant_is_told_to_whoever_runs_the_server() -> None:
    def handler(_: Connection, command: RemotingCommand) -> RemotingCommand:
        raise AssertionError("two masters")

    async def scenario() -> None:
        async with serving(handler) as (server, address), asking() as client:
            await client.invoke(address, request(CODE), 5)
            with pytest.raises(AssertionError, match="two masters"):
                await server.failure

    run(scenario())


def test_one_connection_too_many_is_closed_at_once() -> None:
    async def scenario() -> None:
        async with serving(limits=Limits(connections_max=2)) as (server, address), asking() as client:
            await client.invoke(address, request(CODE), 5)
            async with raw_peer(address):
                await until(lambda: len(server.connections) == 2)
                async with raw_peer(address) as (reader, _):
                    assert await read_to_end(reader) == b""
                assert server.refused == 1
            await until(lambda: len(server.connections) == 1)
            async with raw_peer(address) as (reader, writer):
                writer.write(encode(request(CODE)))
                assert (await read_command(reader)).code == 0

    run(scenario())


def test_a_server_that_stops_answers_what_is_in_flight() -> None:
    async def scenario() -> None:
        gate = asyncio.Event()

        async def wait(_: Connection, command: RemotingCommand) -> RemotingCommand:
            await gate.wait()
            return response(command, 0)

        async with serving(wait) as (server, address), asking() as client:
            waiting = asyncio.create_task(client.invoke(address, request(CODE), 20))
            await until(lambda: bool(server.connections) and server.connections[0].in_flight == 1)
            closing = asyncio.create_task(server.close(10))
            await asyncio.sleep(0)
            gate.set()
            assert (await waiting).code == 0
            await closing
            assert server.connections == ()

    run(scenario())


def test_a_server_stops_in_bounded_time_whatever_its_peers_do() -> None:
    async def scenario() -> None:
        def big_answer(connection: Connection, command: RemotingCommand) -> Awaitable[None] | RemotingCommand:
            return never_(connection, command) if command.code == 1 else response(command, 0, body=bytes(8_000_000))

        async def never_(connection: Connection, command: RemotingCommand) -> None:
            await asyncio.Event().wait()

        server = Server(big_answer)
        host, port = await server.start("127.0.0.1", 0)
        async with raw_peer(f"{host}:{port}") as (_, writer):
            writer.write(encode(request(1)) + encode(request(2)))  # one is parked, the other's answer is not read
            await until(lambda: bool(server.connections) and server.held_bytes > 1_000_000)
            loop = asyncio.get_running_loop()
            before = loop.time()
            await server.close(0.2)
            assert loop.time() - before < 5
            await until(lambda: server.connections == ())

    run(scenario())
