"""A crowd of idle connections and several kinds of hostile senders at once: the server answers, memory is bounded.

The full-sized form of this, 10,000 connections and 100 MB/s, is ``python -m bench.hostile``.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Iterator
from contextlib import AsyncExitStack, suppress
from dataclasses import replace

from hypothesis import given, settings
from hypothesis import strategies as st

from refmq.net.connection import Connection
from refmq.net.limits import Limits
from refmq.net.server import Server
from refmq.protocol.command import RemotingCommand, request, response
from refmq.protocol.frame import FrameDecoder, encode
from tests.net.support import asking, echo, raw_peer, run, serving, until

IDLE_CONNECTIONS = 200
QUESTIONS = 50
MEMORY_MAX = 8 << 20
LIMITS = Limits(memory_bytes_max=MEMORY_MAX, frame_length_max=1 << 20, write_buffer_high_bytes=1 << 16)


def noise(seed: int) -> Iterator[bytes]:
    """Random bytes."""
    source = random.Random(seed)
    while True:
        yield source.randbytes(65_536)


def long_frames(seed: int) -> Iterator[bytes]:
    """Frames of the greatest length with nothing sensible in them."""
    while True:
        yield (LIMITS.frame_length_max - 4).to_bytes(4, "big") + b"\0\0\0\x10"
        yield from (bytes([seed]) * 65_536 for _ in range(16))


def pieces_of_frames(seed: int) -> Iterator[bytes]:
    """The beginnings of frames, each on a connection of its own that then stays open."""
    while True:
        yield encode(request(105, body=bytes(500_000)))[:400_000]


def requests_without_end(seed: int) -> Iterator[bytes]:
    """Good requests, as fast as they can be written, whose answers nobody reads."""
    frame = encode(request(9999, {"x": "y"}, bytes(100)))
    while True:
        yield frame * 500


SENDERS: list[Callable[[int], Iterator[bytes]]] = [noise, long_frames, pieces_of_frames, requests_without_end]


async def send_for_ever(address: str, pieces: Iterator[bytes], *, stay: bool) -> None:
    """Send piece after piece; connect again whenever the server has had enough, or for every piece."""
    async with AsyncExitStack() as open_connections:
        while True:
            async with AsyncExitStack() as this_one:
                where = open_connections if stay else this_one
                _, writer = await where.enter_async_context(raw_peer(address))
                try:
                    for piece in pieces:
                        writer.write(piece)
                        await writer.drain()
                        await asyncio.sleep(0)
                        if stay:
                            break
                except (ConnectionError, OSError):
                    pass
            await asyncio.sleep(0.001)


def test_a_crowd_and_hostile_senders_leave_the_server_answering() -> None:
    async def scenario() -> None:
        async with serving(echo, LIMITS) as (server, address), AsyncExitStack() as stack:
            idle = [await stack.enter_async_context(raw_peer(address)) for _ in range(IDLE_CONNECTIONS)]
            await until(lambda: len(server.connections) == IDLE_CONNECTIONS)
            hostile = [
                asyncio.create_task(send_for_ever(address, make(seed), stay=make is pieces_of_frames))
                for seed, make in enumerate(SENDERS)
            ]
            client = await stack.enter_async_context(asking())
            peak = 0
            for number in range(QUESTIONS):
                answer = await client.invoke(address, request(105, {"n": str(number)}), 20)
                assert answer.fields == {"n": str(number)}
                peak = max(peak, server.held_bytes)
                await asyncio.sleep(0.005)
            # What is counted is bounded by the budget and one piece more of each connection.
            assert peak <= MEMORY_MAX + len(SENDERS) * 300_000
            for task in hostile:
                assert not task.done(), task.exception()
                task.cancel()
            await asyncio.gather(*hostile, return_exceptions=True)
            for reader, writer in idle:
                assert not reader.at_eof()
                writer.write(encode(request(105, opaque=1)))
            for reader, _ in idle:
                assert (await reader.readexactly(4)) != b""

    run(scenario())


@settings(deadline=None, max_examples=30)
@given(
    seed=st.integers(0, 2**32),
    cuts=st.lists(st.integers(0, 400), max_size=8),
    flips=st.lists(st.tuples(st.integers(0, 10_000), st.integers(1, 255)), max_size=4),
)
def test_damaged_and_cut_streams_never_harm_the_server(
    seed: int, cuts: list[int], flips: list[tuple[int, int]]
) -> None:
    """Good frames with flipped bytes, cut into pieces anywhere: each is answered or the connection is closed."""
    source = random.Random(seed)
    frames = [encode(request(105, {"k": "v" * source.randrange(50)}, source.randbytes(60), opaque=n)) for n in range(5)]
    stream = bytearray(b"".join(frames))
    for position, value in flips:
        stream[position % len(stream)] ^= value

    async def scenario() -> None:
        async with serving(echo, Limits(frame_length_max=1 << 16)) as (server, address), asking() as client:
            async with raw_peer(address) as (reader, writer):
                last = 0
                for cut in [*sorted(cut % len(stream) for cut in cuts), len(stream)]:
                    writer.write(bytes(stream[last:cut]))
                    last = cut
                    await asyncio.sleep(0)
                with suppress(OSError):  # the server may have closed by now
                    writer.write_eof()
                decoder = FrameDecoder()
                answers = 0
                try:
                    while data := await reader.read(65_536):
                        answers += sum(1 for _ in decoder.feed(data))
                except ConnectionError:
                    pass
                if not flips:
                    assert answers == 5
            assert (await client.invoke(address, request(105), 20)).code == 0
            await until(lambda: len(server.connections) == 1)
            assert server.held_bytes == 0

    run(scenario())


def test_the_order_of_good_and_bad_peers_does_not_matter() -> None:
    """Interleaved: while one peer's frame is half there, the others' are served between its bytes."""

    async def scenario() -> None:
        served: list[int] = []

        def note(_: Connection, command: RemotingCommand) -> RemotingCommand:
            served.append(int(command.fields["n"]))
            return response(command, 0)

        async with serving(note) as (_, address), AsyncExitStack() as stack:
            peers = [await stack.enter_async_context(raw_peer(address)) for _ in range(20)]
            frames = [encode(request(105, {"n": str(n)}, bytes(1000), opaque=n)) for n in range(20)]
            for index in range(0, len(frames[0]) + 10, 97):
                for (_, writer), frame in zip(peers, frames, strict=True):
                    writer.write(frame[index : index + 97])
                await asyncio.sleep(0)
            await until(lambda: len(served) == 20)
            assert sorted(served) == list(range(20))

    run(scenario())


def test_the_budget_is_what_keeps_the_memory_small() -> None:
    """Pieces of frames with and without the budget: without it what is held grows past it, so the bound is needed."""

    async def held_after(limits: Limits) -> int:
        server = Server(echo, limits)
        host, port = await server.start("127.0.0.1", 0)
        try:
            async with AsyncExitStack() as stack:
                for _ in range(40):
                    _, writer = await stack.enter_async_context(raw_peer(f"{host}:{port}"))
                    writer.write(next(pieces_of_frames(0)))
                    await writer.drain()
                before = -1
                while server.held_bytes != before:
                    before = server.held_bytes
                    await asyncio.sleep(0.05)
                return server.held_bytes
        finally:
            await server.close(1)

    async def scenario() -> tuple[int, int]:
        return await held_after(LIMITS), await held_after(replace(LIMITS, memory_bytes_max=1 << 40))

    bounded, unbounded = run(scenario())
    assert bounded <= MEMORY_MAX < unbounded
