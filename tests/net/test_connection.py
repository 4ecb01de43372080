"""Connections: requests and answers in both directions, and what each kind of bad peer may cost."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable

import pytest

from refmq.errors import ConnectionLost, NetworkError, UsageError
from refmq.net.client import Client
from refmq.net.connection import OPAQUE_MAX, Connection
from refmq.net.limits import Limits
from refmq.protocol.command import RemotingCommand, SerializeType, oneway, request, response
from refmq.protocol.frame import decode, encode
from tests.net.support import asking, raw_peer, read_to_end, run, serving, until

CODE = 105


async def never(connection: Connection, command: RemotingCommand) -> RemotingCommand | None:
    await asyncio.Event().wait()
    return None


@pytest.mark.parametrize("serialize_type", list(SerializeType))
def test_a_request_gets_the_answer_of_the_handler(serialize_type: SerializeType) -> None:
    async def scenario() -> None:
        async with serving() as (_, address), asking() as client:
            command = request(CODE, {"topic": "T1"}, b"body", serialize_type=serialize_type)
            answer = await client.invoke(address, command, 5)
            assert (answer.code, answer.fields, answer.body) == (0, {"topic": "T1"}, b"body")
            assert answer.serialize_type is serialize_type

    run(scenario())


def test_answers_find_their_requests_in_any_order() -> None:
    async def slow_first(connection: Connection, command: RemotingCommand) -> RemotingCommand:
        for _ in range(100 - int(command.fields["n"])):
            await asyncio.sleep(0)
        return response(command, 0, command.ext_fields)

    async def scenario() -> None:
        async with serving(slow_first) as (_, address), asking() as client:
            commands = [request(CODE, {"n": str(n)}) for n in range(100)]
            answers = await asyncio.gather(*(client.invoke(address, command, 5) for command in commands))
            assert [answer.fields["n"] for answer in answers] == [str(n) for n in range(100)]

    run(scenario())


def test_a_server_can_ask_its_client() -> None:
    async def ask_back(connection: Connection, command: RemotingCommand) -> RemotingCommand:
        answer = await connection.request(request(307, {"q": "who"}), 5)
        return response(command, 0, {"told": answer.fields["a"]})

    def tell(_: Connection, command: RemotingCommand) -> RemotingCommand:
        return response(command, 0, {"a": command.fields["q"] + "?"})

    async def scenario() -> None:
        async with serving(ask_back) as (_, address), asking(Client(tell)) as client:
            answer = await client.invoke(address, request(CODE), 5)
            assert answer.fields == {"told": "who?"}

    run(scenario())


def test_a_oneway_request_is_served_and_never_answered() -> None:
    async def scenario() -> None:
        served: list[int] = []

        def handler(_: Connection, command: RemotingCommand) -> RemotingCommand:
            served.append(command.code)
            if command.code == 1:
                raise UsageError("an error is no answer either")
            return response(command, 0)

        async with serving(handler) as (_, address), raw_peer(address) as (reader, writer):
            writer.write(encode(oneway(1)) + encode(oneway(2)) + encode(request(3, opaque=9)))
            answer = await read_command(reader)
            assert answer.opaque == 9
            assert served == [1, 2, 3]

    run(scenario())


async def read_command(reader: asyncio.StreamReader) -> RemotingCommand:
    prefix = await reader.readexactly(4)
    return decode(prefix + await reader.readexactly(int.from_bytes(prefix, "big")))


def test_a_lost_connection_fails_every_request_that_waits() -> None:
    async def hang_up(connection: Connection, command: RemotingCommand) -> None:
        if command.code == 2:
            connection.give_up("test")
        await never(connection, command)

    async def scenario() -> None:
        async with serving(hang_up) as (_, address), asking() as client:
            waiting = [asyncio.create_task(client.invoke(address, request(1), 20)) for _ in range(3)]
            await until(lambda: len(asyncio.all_tasks()) > 3)
            with pytest.raises(ConnectionLost):
                await client.invoke(address, request(2), 20)
            for task in waiting:
                with pytest.raises(ConnectionLost):
                    await task

    run(scenario())


def test_an_unknown_answer_is_dropped() -> None:
    async def scenario() -> None:
        async with serving() as (_, address), raw_peer(address) as (reader, writer):
            writer.write(encode(response(request(1, opaque=77), 0)) + encode(request(2, opaque=78)))
            assert (await read_command(reader)).opaque == 78

    run(scenario())


def test_an_error_of_the_peer_becomes_an_answer_with_code_1() -> None:
    def handler(_: Connection, command: RemotingCommand) -> Awaitable[RemotingCommand | None]:
        if command.code == 1:
            raise UsageError("at once")

        async def later() -> None:
            raise UsageError("later")

        return later()

    async def scenario() -> None:
        async with serving(handler) as (_, address), asking() as client:
            first = await client.invoke(address, request(1), 5)
            second = await client.invoke(address, request(2), 5)
            assert [(answer.code, answer.remark) for answer in (first, second)] == [(1, "at once"), (1, "later")]

    run(scenario())


def test_a_mistake_of_ours_is_answered_and_reported() -> None:
    def handler(_: Connection, command: RemotingCommand) -> RemotingCommand:
        raise KeyError("no such queue")

    async def scenario() -> list[object]:
        reported: list[object] = []
        asyncio.get_running_loop().set_exception_handler(lambda _, context: reported.append(context["exception"]))
        async with serving(handler) as (_, address), asking() as client:
            answer = await client.invoke(address, request(CODE), 5)
            assert (answer.code, answer.remark) == (1, "'no such queue'")
            await client.oneway(address, oneway(CODE), 5)
            await until(lambda: len(reported) == 2)
        return reported

    assert [type(error) for error in run(scenario())] == [KeyError, KeyError]


def test_an_answer_that_fits_no_frame_becomes_an_error() -> None:
    def handler(_: Connection, command: RemotingCommand) -> RemotingCommand:
        return response(command, 0, body=bytes(2000))

    async def scenario() -> None:
        async with serving(handler, Limits(frame_length_max=1000)) as (_, address), asking() as client:
            answer = await client.invoke(address, request(CODE), 5)
            assert answer.code == 1
            assert answer.remark is not None
            assert "at most 1000 bytes" in answer.remark

    run(scenario())


GARBAGE = {
    "text": b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n",
    "a negative length": b"\xff\xff\xff\xff" + bytes(16),
    "a length of 2 GiB": b"\x7f\xff\xff\xff" + bytes(16),
    "a length too short for its prefix": b"\x00\x00\x00\x03" + bytes(16),
    "a serialization nobody knows": b"\x00\x00\x00\x08\x02\x00\x00\x04" + bytes(4),
    "a header longer than the frame": b"\x00\x00\x00\x08\x00\x00\x00\x05" + bytes(4),
    "a header that is no JSON": b"\x00\x00\x00\x08\x00\x00\x00\x04nope",
    "a remark of 2 GiB": bytes.fromhex("00000019010000150069000199000000060000000 07fffffff00000000".replace(" ", "")),
    "TLS where there is none": b"\x16\x03\x01\x02\x00" + bytes(512),
    "noise": random.Random(4).randbytes(100_000),
}


@pytest.mark.parametrize("kind", GARBAGE)
def test_garbage_costs_its_sender_the_connection_and_nobody_else(kind: str) -> None:
    async def scenario() -> None:
        async with serving() as (server, address), asking() as client:
            await client.invoke(address, request(CODE), 5)
            async with raw_peer(address) as (reader, writer):
                writer.write(GARBAGE[kind])
                assert await read_to_end(reader) == b""
            assert (await client.invoke(address, request(CODE), 5)).code == 0
            await until(lambda: len(server.connections) == 1)
            assert server.held_bytes == 0

    run(scenario())


def test_requests_before_garbage_are_answered() -> None:
    async def scenario() -> None:
        async with serving() as (_, address), raw_peer(address) as (reader, writer):
            writer.write(encode(request(1, opaque=1)) + encode(request(2, opaque=2)) + GARBAGE["text"])
            data = await read_to_end(reader)
            assert data == encode(response(request(1, opaque=1), 0)) + encode(response(request(2, opaque=2), 0))

    run(scenario())


def test_a_frame_may_come_byte_by_byte_and_between_others() -> None:
    async def scenario() -> None:
        async with serving() as (_, address), raw_peer(address) as (reader, writer), asking() as client:
            frame = encode(request(CODE, {"topic": "T1"}, b"body", opaque=5))
            for index in range(len(frame)):
                writer.write(frame[index : index + 1])
                await writer.drain()
                if index % 16 == 0:
                    assert (await client.invoke(address, request(CODE), 5)).code == 0
            assert (await read_command(reader)).body == b"body"

    run(scenario())


def test_requests_in_flight_are_bounded_by_not_reading() -> None:
    async def scenario() -> None:
        peak = 0
        gate = asyncio.Event()

        async def wait(connection: Connection, command: RemotingCommand) -> RemotingCommand:
            nonlocal peak
            peak = max(peak, connection.in_flight)
            await gate.wait()
            return response(command, 0)

        limits = Limits(requests_in_flight_max=10, requests_per_turn_max=4)
        async with serving(wait, limits) as (server, address), raw_peer(address) as (reader, writer):
            frames = b"".join(encode(request(CODE, body=bytes(1000), opaque=n)) for n in range(5000))
            writer.write(frames)  # 5 MB: more than the buffers of the kernel take
            await until(lambda: bool(server.connections) and server.connections[0].in_flight == 10)
            for _ in range(50):
                await asyncio.sleep(0.001)
            assert server.connections[0].in_flight == 10
            assert server.held_bytes < 1_000_000
            gate.set()
            opaques = [(await read_command(reader)).opaque for _ in range(5000)]
            assert sorted(opaques) == list(range(5000))
            assert peak <= 10

    run(scenario())


def test_bytes_in_flight_are_bounded_by_not_reading() -> None:
    async def scenario() -> None:
        gate = asyncio.Event()

        async def wait(connection: Connection, command: RemotingCommand) -> RemotingCommand:
            await gate.wait()
            return response(command, 0)

        limits = Limits(request_bytes_in_flight_max=25_000)
        async with serving(wait, limits) as (server, address), raw_peer(address) as (reader, writer):
            writer.write(b"".join(encode(request(CODE, body=bytes(10_000), opaque=n)) for n in range(50)))
            await until(lambda: bool(server.connections) and server.connections[0].in_flight == 3)
            for _ in range(50):
                await asyncio.sleep(0.001)
            assert server.connections[0].in_flight == 3, "the third one crosses the bound"
            gate.set()
            assert sorted([(await read_command(reader)).opaque for _ in range(50)]) == list(range(50))
            await until(lambda: server.held_bytes == 0)

    run(scenario())


def test_many_requests_in_one_piece_are_served_in_turns() -> None:
    async def scenario() -> None:
        served = 0

        def count(_: Connection, command: RemotingCommand) -> None:
            nonlocal served
            served += 1

        async with serving(count, Limits(requests_per_turn_max=4)) as (server, address), raw_peer(address):
            await until(lambda: bool(server.connections))
            server.connections[0].data_received(b"".join(encode(request(CODE, opaque=n)) for n in range(100)))
            assert served == 4
            await asyncio.sleep(0)
            assert served <= 8
            await until(lambda: served == 100)

    run(scenario())


def test_what_a_peer_held_is_free_when_it_has_gone() -> None:
    async def scenario() -> None:
        async with serving() as (server, address):
            async with raw_peer(address) as (_, writer):
                writer.write(encode(request(CODE, body=bytes(100_000)))[:50_000])
                await until(lambda: server.held_bytes == 50_000)
            await until(lambda: not server.connections)
            assert server.held_bytes == 0

    run(scenario())


def test_a_close_does_not_wait_for_a_peer_that_takes_nothing() -> None:
    async def scenario() -> None:
        limits = Limits(linger_s=0.05, write_buffer_bytes_max=1 << 30)
        async with serving(limits=limits) as (server, address), raw_peer(address):
            await until(lambda: bool(server.connections))
            connection = server.connections[0]
            connection.send_oneway(oneway(40, body=bytes(15_000_000)))  # more than the buffers of the kernel take
            connection.close()
            await connection.wait_closed()
            await until(lambda: not server.connections)

    run(scenario())


def test_request_ids_begin_again_and_pass_over_those_that_wait() -> None:
    async def scenario() -> None:
        gate = asyncio.Event()

        async def wait(connection: Connection, command: RemotingCommand) -> RemotingCommand:
            if command.fields["n"] == "0":
                await gate.wait()
            return response(command, 0, command.ext_fields)

        async with serving(wait) as (_, address), asking() as client:
            connection = await client.connect(address, 20)
            first = asyncio.ensure_future(connection.request(request(CODE, {"n": "0"}), 50))
            await until(lambda: len(connection._waiting) == 1)
            connection._last_opaque = OPAQUE_MAX - 1
            for n in ("1", "2", "3"):
                assert (await connection.request(request(CODE, {"n": n}), 50)).fields["n"] == n
            gate.set()
            assert (await first).fields["n"] == "0"

    run(scenario())


def test_who_does_not_read_its_answers_is_not_read_either() -> None:
    async def scenario() -> None:
        served = 0

        def big_answer(_: Connection, command: RemotingCommand) -> RemotingCommand:
            nonlocal served
            served += 1
            return response(command, 0, body=bytes(100_000))

        limits = Limits(write_buffer_high_bytes=300_000, idle_timeout_s=60)
        served_here = serving(big_answer, limits)
        async with served_here as (server, address), asking() as client, raw_peer(address) as (_, writer):
            writer.write(b"".join(encode(request(CODE, opaque=n)) for n in range(10_000)))  # would be 1 GB
            await until(lambda: served > 0)
            before = -1
            while served != before:
                before = served
                for _ in range(20):
                    await asyncio.sleep(0.001)
            assert served < 1000
            assert server.held_bytes < 2_000_000
            assert (await client.invoke(address, request(CODE), 5)).code == 0

    run(scenario())


def test_who_reads_its_answers_late_gets_all_of_them() -> None:
    async def scenario() -> None:
        def big_answer(_: Connection, command: RemotingCommand) -> RemotingCommand:
            return response(command, 0, body=bytes(100_000))

        async with (
            serving(big_answer, Limits(write_buffer_high_bytes=300_000)) as (server, address),
            raw_peer(address) as (reader, writer),
        ):
            writer.write(b"".join(encode(request(CODE, opaque=n)) for n in range(300)))  # 30 MB of answers
            await until(lambda: server.held_bytes > 300_000)
            assert [(await read_command(reader)).opaque for _ in range(300)] == list(range(300))
            await until(lambda: server.held_bytes == 0)

    run(scenario())


def test_who_does_not_read_what_it_is_told_is_given_up() -> None:
    async def scenario() -> None:
        limits = Limits(write_buffer_high_bytes=100_000, write_buffer_bytes_max=1_000_000)
        async with serving(limits=limits) as (server, address), raw_peer(address):
            await until(lambda: bool(server.connections))
            connection = server.connections[0]
            told = 0
            while connection.send_oneway(oneway(40, body=bytes(100_000))):
                told += 1
            assert told < 1000
            assert connection.close_reason is not None
            assert "bytes unread" in connection.close_reason

    run(scenario())


def test_the_greediest_connection_goes_when_the_memory_is_used_up() -> None:
    async def scenario() -> None:
        limits = Limits(memory_bytes_max=300_000)
        async with serving(limits=limits) as (server, address), asking() as client:
            part = encode(request(CODE, body=bytes(1_000_000)))
            async with raw_peer(address) as (_, small), raw_peer(address) as (reader, large):
                small.write(part[:50_000])
                await until(lambda: server.held_bytes == 50_000)
                large.write(part[:290_000])
                await read_to_end(reader)
                await until(lambda: len(server.connections) == 1)
                assert server.held_bytes == 50_000
                assert (await client.invoke(address, request(CODE), 5)).code == 0

    run(scenario())


def test_requests_that_wait_for_answers_are_bounded() -> None:
    async def scenario() -> None:
        async with serving(never) as (_, address), asking(Client(limits=Limits(requests_waiting_max=2))) as client:
            waiting = [asyncio.create_task(client.invoke(address, request(CODE), 20)) for _ in range(2)]
            connection = await client.connect(address, 5)
            await asyncio.sleep(0)
            with pytest.raises(NetworkError, match="not sent"):
                await connection.request(request(CODE), 5)
            for task in waiting:
                task.cancel()

    run(scenario())


def test_a_close_callback_is_called_once_and_late_ones_too() -> None:
    async def scenario() -> None:
        called: list[int] = []
        async with serving() as (server, address), asking() as client:
            connection = await client.connect(address, 5)
            connection.on_close(lambda gone: called.append(1))
            connection.close()
            await connection.wait_closed()
            connection.on_close(lambda gone: called.append(2))
            await until(lambda: len(called) == 2)
            assert called == [1, 2]
            assert not connection.send(request(CODE))
            with pytest.raises(ConnectionLost):
                await connection.request(request(CODE), 1)
            await until(lambda: server.connections == ())

    run(scenario())
