"""Simulated connections: streams, windows, back-pressure."""

from __future__ import annotations

import asyncio

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from refmq.sim.network import Delay
from refmq.sim.transport import HIGH_WATER_BYTES, WINDOW_BYTES
from refmq.sim.world import Node, World
from tests.sim.echo import PORT, ask, run


@settings(max_examples=30)
@given(st.integers(0, 1 << 30), st.lists(st.integers(1, 5_000), min_size=1, max_size=12))
def test_a_stream_arrives_whole_and_in_order_in_other_pieces(seed: int, sizes: list[int]) -> None:
    text = bytes(i % 251 for i in range(sum(sizes)))
    pieces: list[bytes] = []

    async def gather(node: Node) -> None:
        async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            while data := await reader.read(1 << 20):
                pieces.append(data)
            writer.close()

        async with await asyncio.start_server(serve, port=PORT) as server:
            await server.serve_forever()

    async def story(world: World, server: Node, client: Node) -> None:
        async def send() -> None:
            _, writer = await asyncio.open_connection("server", PORT)
            at = 0
            for size in sizes:
                writer.write(text[at : at + size])
                at += size
                await asyncio.sleep(0.001)
            writer.close()
            await writer.wait_closed()

        await client.call(send)
        await asyncio.sleep(1)

    run(story, seed, gather)
    assert b"".join(pieces) == text


def test_a_reader_that_does_not_read_stops_the_writer_and_reading_resumes_it() -> None:
    release = asyncio.Event()
    received = 0

    async def deaf(node: Node) -> None:
        async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            nonlocal received
            await release.wait()
            while data := await reader.read(1 << 20):
                received += len(data)
            writer.close()

        async with await asyncio.start_server(serve, port=PORT, limit=1024) as server:
            await server.serve_forever()

    async def story(world: World, server: Node, client: Node) -> int:
        accepted = 0

        async def flood() -> None:
            nonlocal accepted
            _, writer = await asyncio.open_connection("server", PORT)
            for _ in range(100):
                writer.write(bytes(64 * 1024))
                accepted += 64 * 1024
                await writer.drain()
            writer.close()

        flooding = asyncio.ensure_future(client.call(flood))
        await asyncio.sleep(60)
        stopped_at = accepted
        assert not flooding.done()
        release.set()
        await flooding
        await asyncio.sleep(60)
        return stopped_at

    stopped_at = run(story, 1, deaf)
    assert stopped_at <= 2 * WINDOW_BYTES + HIGH_WATER_BYTES + 2 * 64 * 1024
    assert received == 100 * 64 * 1024


def test_a_slow_reader_takes_its_time() -> None:
    async def story(world: World, server: Node, client: Node) -> float:
        world.network.slow_reader("server", 1_000)
        started_s = world.loop.elapsed_s
        assert await client.call(lambda: ask("server", bytes(10_000))) == bytes(10_000)
        return world.loop.elapsed_s - started_s

    assert run(story) >= 9


def test_a_connection_that_is_lost_while_its_process_is_paused_is_told_of() -> None:
    async def story(world: World, server: Node, client: Node) -> bytes:
        world.network.set_delay(Delay(1.0, 1.0), "client", "server")

        async def read() -> bytes:
            reader, _ = await asyncio.open_connection("server", PORT)
            return await asyncio.wait_for(reader.read(), 5)

        reading = asyncio.ensure_future(client.call(read))
        await asyncio.sleep(1.5)
        client.pause()
        await asyncio.sleep(1)
        assert world.network.reset_between("client", "server") == 1
        client.resume()
        return await reading

    with pytest.raises(ConnectionResetError):
        run(story)
