"""Messages that are given back, and answers to requests."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest

from refmq.aio.consumer import Consumer
from refmq.aio.producer import Producer
from refmq.client.message import ReceivedMessage
from refmq.model.broker_config import BrokerConfig
from refmq.protocol.record import decode_properties
from tests.aio.harness import create_topic, run, servers, until_stored

pytestmark = pytest.mark.usefixtures("each_engine")


def test_a_failure_comes_again_and_is_a_dead_letter_in_the_end() -> None:
    async def story() -> None:
        attempts: list[int] = []

        async def listener(message: ReceivedMessage) -> None:
            assert message.topic == "Orders"
            attempts.append(message.reconsume_times)
            raise ZeroDivisionError

        config = replace(BrokerConfig())
        async with servers(config=config) as running, Producer(running.namesrv, group="p") as producer:
            await producer.send("Orders", b"bad", keys=["k"])
            consumer = Consumer(
                running.namesrv, group="g", topics="Orders", start="first", listener=listener, max_retries=0
            )
            async with consumer:
                (dead,) = await until_stored(running, "%DLQ%g", 1)
            assert dead.body == b"bad"
            assert attempts == [0]

            attempts.clear()
            async with Consumer(running.namesrv, group="h", topics="Orders", start="first") as consumer:
                async for message in consumer:
                    attempts.append(message.reconsume_times)
                    if message.reconsume_times == 0:
                        await message.retry_later(delay_level=1)  # one second
                    else:
                        assert message.topic == "Orders"
                        assert message.keys == ("k",)
                        await message.ack()
                        break
            assert attempts == [0, 1]

    run(story())


def test_a_message_can_be_given_up_at_once() -> None:
    async def story() -> None:
        async with servers() as running, Producer(running.namesrv, group="p") as producer:
            await producer.send("Orders", b"hopeless")
            async with Consumer(running.namesrv, group="g", topics="Orders", start="first") as consumer:
                async for message in consumer:
                    await message.to_dead_letters("no such order")
                    break
            (dead,) = await until_stored(running, "%DLQ%g", 1)
            assert dead.body == b"hopeless"

    run(story())


def test_a_copy_is_sent_when_the_broker_does_not_take_a_message_back() -> None:
    async def story() -> None:
        async with servers() as running, Producer(running.namesrv, group="p") as producer:
            await producer.send("Orders", b"x", tag="T")
            async with Consumer(running.namesrv, group="g", topics="Orders", start="first") as consumer:
                async for message in consumer:
                    moved = replace(message, physical_offset=1 << 40)  # nothing is there
                    await moved.retry_later(delay_level=5)
                    break
            (record,) = await until_stored(running, "SCHEDULE_TOPIC_XXXX", 1)
            properties = decode_properties(record.properties)
            assert record.body == b"x"
            assert properties["RETRY_TOPIC"] == "Orders"
            assert properties["RECONSUME_TIME"] == "1"
            assert properties["REAL_TOPIC"] == "%RETRY%g"
            assert properties["TAGS"] == "T"

    run(story())


def test_a_reply_reaches_who_asked() -> None:
    async def story() -> None:
        async with servers() as running, Producer(running.namesrv, group="p") as producer:
            await create_topic(running, "Quote", 1)

            async def answer(message: ReceivedMessage) -> None:
                await consumer.reply(message, b"42 " + message.body)

            consumer = Consumer(running.namesrv, group="g", topics="Quote", start="first", listener=answer)
            async with consumer:
                await consumer.assigned()
                reply = await producer.request("Quote", b"EUR", timeout=10)
                assert reply.body == b"42 EUR"
                replies = await asyncio.gather(*(producer.request("Quote", b"%d" % n, timeout=10) for n in range(5)))
                assert [reply.body for reply in replies] == [b"42 %d" % n for n in range(5)]

    run(story())
