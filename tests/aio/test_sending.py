"""Attempts to send, against brokers that refuse, are slow or are gone."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest

from refmq.aio.producer import Producer
from refmq.client.message import SendStatus
from refmq.errors import (
    SendFailed,
    SendNotDurable,
)
from refmq.model.ids import MessageQueue
from refmq.protocol.codes import RequestCode, ResponseCode
from refmq.protocol.command import RemotingCommand, response
from tests.aio.harness import create_topic, main_server, run, servers, stop_broker

pytestmark = pytest.mark.usefixtures("each_engine")


@pytest.mark.reference_only
def test_a_failed_attempt_is_repeated_at_another_broker() -> None:
    async def story() -> None:
        async with servers("broker-a", "broker-b") as running, Producer(running.namesrv, group="g") as producer:
            await create_topic(running, "Orders")
            for queue in (MessageQueue("Orders", name, 0) for name in ("broker-a", "broker-b")):
                await producer.send("Orders", b"x", queue=queue)
            refused = 0

            def refuse(connection: object, command: RemotingCommand) -> RemotingCommand | None:
                nonlocal refused
                refused += 1
                return response(command, ResponseCode.SYSTEM_BUSY, remark="too much to do")

            node = running.node("broker-a")
            serve = main_server(node)._handler
            main_server(node)._handler = lambda connection, command: (
                refuse(connection, command)
                if command.code == RequestCode.SEND_MESSAGE_V2
                else serve(connection, command)
            )
            for connection in main_server(node).connections:
                connection._handler = main_server(node)._handler
            results = [await producer.send("Orders", b"x") for _ in range(8)]
            assert {result.queue.broker for result in results} == {"broker-b"}
            assert refused > 0
            with pytest.raises(SendFailed, match="SYSTEM_BUSY") as caught:
                await producer.send("Orders", b"x", queue=MessageQueue("Orders", "broker-a", 0))
            assert not caught.value.maybe_stored
            await stop_broker(running, "broker-a")
            results = [await producer.send("Orders", b"x") for _ in range(8)]
            assert {result.queue.broker for result in results} == {"broker-b"}

    run(story())


@pytest.mark.reference_only
def test_a_broker_that_never_answers_costs_the_timeout_and_no_more() -> None:
    async def story() -> None:
        async with servers() as running, Producer(running.namesrv, group="g") as producer:
            await producer.send("Orders", b"x")
            never = asyncio.get_running_loop().create_future()
            server = main_server(running.node())
            for connection in server.connections:
                connection._handler = lambda connection, command: never
            began = asyncio.get_running_loop().time()
            with pytest.raises(SendFailed) as caught:
                await producer.send("Orders", b"x", timeout=0.2)
            assert asyncio.get_running_loop().time() - began < 2
            assert caught.value.maybe_stored
            never.cancel()

    run(story())


@pytest.mark.reference_only
def test_an_error_that_another_broker_would_not_mend_is_raised_as_it_is() -> None:
    async def story() -> None:
        def answer(connection: object, command: RemotingCommand) -> RemotingCommand:
            return response(command, ResponseCode.MESSAGE_ILLEGAL, remark="no")

        async with servers() as running, Producer(running.namesrv, group="g") as producer:
            await producer.send("Orders", b"x")
            for connection in main_server(running.node()).connections:
                connection._handler = answer
            from refmq.errors import MessageIllegal

            with pytest.raises(MessageIllegal, match=r"SEND_MESSAGE_V2 with MESSAGE_ILLEGAL \(13\): no"):
                await producer.send("Orders", b"x")

    run(story())


@pytest.mark.reference_only
def test_a_message_that_is_not_durable_yet_is_told_with_its_result() -> None:
    async def story() -> None:
        async with servers() as running, Producer(running.namesrv, group="g") as producer:
            await producer.send("Orders", b"x")
            server = main_server(running.node())
            serve = server._handler

            async def slow_disk(connection: object, command: RemotingCommand) -> RemotingCommand | None:
                answer = serve(connection, command)  # type: ignore[arg-type]  # the connection is one
                done = await answer if not isinstance(answer, RemotingCommand) and answer is not None else answer
                return replace(done, code=ResponseCode.FLUSH_DISK_TIMEOUT) if done is not None else None

            for connection in server.connections:
                connection._handler = slow_disk
            with pytest.raises(SendNotDurable) as caught:
                await producer.send("Orders", b"x")
            assert caught.value.result.status is SendStatus.FLUSH_DISK_TIMEOUT  # type: ignore[attr-defined]  # known

    run(story())


def test_hooks_see_every_attempt() -> None:
    async def story() -> None:
        from refmq.aio.sending import Attempt

        seen: list[Attempt] = []
        async with (
            servers() as running,
            Producer(running.namesrv, group="g", before_send=[seen.append], after_send=[seen.append]) as producer,
        ):
            result = await producer.send("Orders", b"x")
            before, after = seen
            assert before.result is None
            assert after.result == result

    run(story())
