"""A client: one connection per address, opened again after a loss, and every failure has its type."""

from __future__ import annotations

import asyncio

import pytest

from refmq.errors import ConnectFailed, RequestTimedOut, UsageError
from refmq.net.client import Client
from refmq.net.connection import Connection
from refmq.net.limits import Limits
from refmq.net.server import Server
from refmq.protocol.command import RemotingCommand, oneway, request, response
from tests.net.support import asking, echo, run, serving, until

CODE = 105


async def never(connection: Connection, command: RemotingCommand) -> RemotingCommand | None:
    await asyncio.Event().wait()
    return None


def test_a_request_without_an_answer_times_out_and_the_silent_connection_is_closed() -> None:
    async def scenario() -> None:
        async with serving(never) as (server, address), asking() as client:
            await client.connect(address, 20)
            with pytest.raises(RequestTimedOut, match=r"no answer to request 105 within 0\.05 s"):
                await client.invoke(address, request(CODE), 0.05)
            await until(lambda: not server.connections)

    run(scenario())


def test_a_timeout_keeps_a_connection_on_which_other_answers_come() -> None:
    async def only_even(connection: Connection, command: RemotingCommand) -> RemotingCommand | None:
        return response(command, 0) if command.code % 2 == 0 else await never(connection, command)

    async def scenario() -> None:
        limits = Limits(requests_waiting_max=2)
        async with serving(only_even) as (server, address), asking(Client(limits=limits)) as client:
            await client.connect(address, 20)
            late = asyncio.create_task(client.invoke(address, request(1), 1.0))
            while not late.done():
                await client.invoke(address, request(2), 5)
                await asyncio.sleep(0.005)
            with pytest.raises(RequestTimedOut):
                await late
            assert [connection.number for connection in server.connections] == [1]
            # Who timed out waits no longer: there is room for two again.
            await asyncio.gather(*(client.invoke(address, request(2), 5) for _ in range(2)))

    run(scenario())


def test_nobody_listening_is_a_failed_connect() -> None:
    async def scenario() -> None:
        async with serving() as (server, address):
            await server.close(1)
        async with asking() as client:
            with pytest.raises(ConnectFailed, match=address):
                await client.invoke(address, request(CODE), 5)
            with pytest.raises(UsageError, match="host:port"):
                await client.invoke("nonsense", request(CODE), 5)

    run(scenario())


def test_requests_at_the_same_time_share_one_connection() -> None:
    """A client that closed a healthy connection because another caller was first is bug B99 of upstream."""

    async def scenario() -> None:
        async with serving() as (server, address), asking() as client:
            await asyncio.gather(*(client.invoke(address, request(CODE), 5) for _ in range(50)))
            assert [connection.number for connection in server.connections] == [1]

    run(scenario())


def test_a_client_connects_again_after_the_server_restarted() -> None:
    async def scenario() -> None:
        first = Server(echo)
        host, port = await first.start("127.0.0.1", 0)
        async with asking() as client:
            await client.invoke(f"{host}:{port}", request(CODE), 5)
            await first.close(1)
            second = Server(echo)
            await second.start(host, port)
            answer = await client.invoke(f"{host}:{port}", request(CODE), 5)
            assert answer.code == 0
            await second.close(1)

    run(scenario())


def test_a_client_answers_what_it_does_not_serve_and_nothing_after_its_end() -> None:
    async def ask_back(connection: Connection, command: RemotingCommand) -> RemotingCommand:
        answer = await connection.request(request(307), 5)
        return response(command, answer.code, remark=answer.remark)

    async def scenario() -> None:
        async with serving(ask_back) as (_, address), asking() as client:
            answer = await client.invoke(address, request(CODE), 5)
            assert (answer.code, answer.remark) == (3, " request type 307 not supported")
            await client.close()
            with pytest.raises(ConnectFailed, match="the client is closed"):
                await client.invoke(address, request(CODE), 5)

    run(scenario())


def test_a_oneway_request_waits_for_a_peer_that_takes_nothing_and_then_fails() -> None:
    async def scenario() -> None:
        accepted: list[asyncio.StreamWriter] = []
        listener = await asyncio.start_server(lambda _, writer: accepted.append(writer), "127.0.0.1", 0, limit=1024)
        address = f"127.0.0.1:{listener.sockets[0].getsockname()[1]}"

        async def tell_for_ever(client: Client) -> None:
            while True:
                await client.oneway(address, oneway(CODE, body=bytes(100_000)), 0.05)

        async with asking(Client(limits=Limits(write_buffer_high_bytes=10_000))) as client:
            await client.connect(address, 20)
            with pytest.raises(RequestTimedOut, match="accepted no data"):
                await tell_for_ever(client)
        listener.close()
        accepted[0].transport.abort()
        await asyncio.sleep(0)

    run(scenario())
