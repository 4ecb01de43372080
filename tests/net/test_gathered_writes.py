"""What a connection writes in one turn of the loop goes out together, in order, and before it closes."""

from __future__ import annotations

import asyncio

from refmq.net.connection import GATHERED_BYTES_MAX, Connection
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
