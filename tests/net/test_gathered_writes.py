"""What a connection writes in one turn of the loop goes out together, in order, and before it closes."""

from __future__ import annotations

import asyncio

from refmq.net.connection import GATHERED_BYTES_MAX, Connection
from refmq.net.limits import Limits
from refmq.protocol.command import RemotingCommand, request, response
from refmq.protocol.frame import FrameDecoder, encode
from tests.net.support import echo, run, serving


def test_answers_of_one_turn_go_out_together_and_in_order() -> None:
    async def scenario() -> None:
        written: list[bytes] = []

        def watch(connection: Connection, command: RemotingCommand) -> RemotingCommand:
            transport = connection._transport
            assert transport is not None
            if not written:
                written.append(b"")
                through = transport.write

                def write(data: bytes | bytearray | memoryview) -> None:
                    written.append(bytes(data))
                    through(data)

                transport.write = write  # type: ignore[method-assign]  # to see what goes to the system
            return echo(connection, command)

        async with serving(watch) as (_, address):
            reader, writer = await asyncio.open_connection(*address.split(":"))
            frames = [encode(request(1, {}, b"%d" % number, opaque=number)) for number in range(10)]
            writer.write(b"".join(frames))
            decoder = FrameDecoder()
            found: list[bytes] = []
            while len(found) < 10:
                found += [command.body for command in decoder.feed(await reader.read(1 << 16))]
            assert found == [b"%d" % number for number in range(10)]
            assert len(written[1:]) == 1
            # More than is gathered goes out at once, before the turn ends, and behind what was gathered.
            writer.write(encode(request(1, opaque=1)) + encode(request(1, {}, bytes(GATHERED_BYTES_MAX), opaque=2)))
            opaques: list[int] = []
            while len(opaques) < 2:
                opaques += [command.opaque for command in decoder.feed(await reader.read(1 << 18))]
            assert opaques == [1, 2]
            writer.close()

    run(scenario())


def test_what_was_sent_before_a_close_arrives() -> None:
    async def scenario() -> None:
        def last_words(connection: Connection, command: RemotingCommand) -> None:
            connection.send(response(command, 0, {}, b"farewell"))
            connection.close("said everything")

        async with serving(last_words) as (_, address):
            reader, writer = await asyncio.open_connection(*address.split(":"))
            writer.write(encode(request(1)))
            (answer,) = FrameDecoder().feed(await reader.read())
            assert answer.body == b"farewell"
            writer.close()

    run(scenario())


class Written(asyncio.Transport):
    """A transport that keeps what is written."""

    def __init__(self) -> None:
        super().__init__()
        self.pieces: list[bytes] = []

    def write(self, data: bytes | bytearray | memoryview) -> None:
        self.pieces.append(bytes(data))

    def get_write_buffer_size(self) -> int:
        return 0

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None: ...

    def abort(self) -> None: ...


def connected(transport: Written) -> Connection:
    connection = Connection(echo, Limits())
    connection.connection_made(transport)
    return connection


def test_answers_do_not_wait_for_another_turn() -> None:
    async def scenario() -> None:
        transport = Written()
        connection = connected(transport)
        connection.data_received(encode(request(1, opaque=1)) + encode(request(1, opaque=2)))
        assert len(transport.pieces) == 1
        assert [answer.opaque for answer in FrameDecoder().feed(transport.pieces[0])] == [1, 2]
        connection.give_up("the end")

    run(scenario())


def test_what_an_answer_brings_about_goes_out_right_behind_it() -> None:
    async def scenario() -> None:
        transport = Written()
        connection = connected(transport)

        async def ask_twice() -> None:
            for _ in range(2):
                await connection.request(request(1), 5)

        asking = [asyncio.ensure_future(ask_twice()) for _ in range(3)]
        while not transport.pieces:
            await asyncio.sleep(0)
        (first,) = transport.pieces
        answers = [response(command, 0) for command in FrameDecoder().feed(first)]
        connection.data_received(b"".join(map(encode, answers)))
        await asyncio.sleep(0)  # one turn
        assert len(transport.pieces) == 2, "all three ask again, and together"
        again = list(FrameDecoder().feed(transport.pieces[1]))
        assert len(again) == 3
        connection.data_received(b"".join(encode(response(command, 0)) for command in again))
        await asyncio.gather(*asking)
        connection.give_up("the end")

    run(scenario())


def test_a_handler_that_fails_leaves_the_connection_able_to_write() -> None:
    async def scenario() -> None:
        def fail(connection: Connection, command: RemotingCommand) -> RemotingCommand:
            assert command.opaque != 1, "on purpose"
            return echo(connection, command)

        transport = Written()
        connection = Connection(fail, Limits())
        connection.connection_made(transport)
        try:
            connection.data_received(encode(request(1, opaque=1)))
        except AssertionError:
            pass
        else:
            raise RuntimeError("a failed assertion is not swallowed")
        connection.data_received(encode(request(1, opaque=2)))
        connection.send(request(1, opaque=3))
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        assert [each.opaque for each in FrameDecoder().feed(b"".join(transport.pieces))] == [2, 3]
        connection.give_up("the end")

    run(scenario())
