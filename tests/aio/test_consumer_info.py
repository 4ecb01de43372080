"""What operators ask a consumer through a broker."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from refmq.aio.consumer import Consumer
from refmq.aio.producer import Producer
from refmq.client.message import ReceivedMessage
from refmq.model.ids import MessageQueue
from refmq.net.client import Client
from refmq.protocol.bodies.codec import decode_body
from refmq.protocol.bodies.connections import ConsumeMessageDirectlyResult, ConsumeResult, ConsumerRunningInfo
from refmq.protocol.bodies.offsets import GetConsumerStatusBody
from refmq.protocol.codes import RequestCode, ResponseCode
from refmq.protocol.command import RemotingCommand, request
from tests.aio.harness import Servers, create_topic, run, servers, until

pytestmark = pytest.mark.usefixtures("each_engine")


@asynccontextmanager
async def asking(running: Servers) -> AsyncIterator[Client]:
    client = Client()
    try:
        yield client
    finally:
        await client.close()


async def ask(running: Servers, code: RequestCode, **fields: str) -> RemotingCommand:
    async with asking(running) as client:
        return await client.invoke(running.node().broker.config.address, request(code, fields), 10)


def test_a_consumer_tells_what_it_holds_and_how_far_it_is() -> None:
    async def story() -> None:
        seen: list[bytes] = []

        async def listen(message: ReceivedMessage) -> None:
            seen.append(message.body)

        async with servers() as running, Producer(running.namesrv, group="p") as producer:
            await create_topic(running, "Orders", 1)
            await producer.send("Orders", b"x")
            consumer = Consumer(running.namesrv, group="g", topics="Orders", start="first", listener=listen)
            async with consumer:
                await until(lambda: seen == [b"x"])
                asked = {"consumerGroup": "g", "clientId": consumer.client_id, "jstackEnable": "true"}
                answer = await ask(running, RequestCode.GET_CONSUMER_RUNNING_INFO, **asked)
                assert answer.code == ResponseCode.SUCCESS, answer.remark
                info = decode_body(ConsumerRunningInfo, answer.body)
                assert info.mq_table[MessageQueue("Orders", "broker-a", 0)].commit_offset == 1
                assert info.properties["PROP_CONSUME_TYPE"] == "CONSUME_PASSIVELY"
                assert {data.topic for data in info.subscription_set} == {"Orders", "%RETRY%g"}

                fields = {"topic": "Orders", "group": "g", "clientAddr": ""}
                answer = await ask(running, RequestCode.INVOKE_BROKER_TO_GET_CONSUMER_STATUS, **fields)
                assert answer.code == ResponseCode.SUCCESS, answer.remark
                table = decode_body(GetConsumerStatusBody, answer.body).consumer_table
                assert table[consumer.client_id] == {MessageQueue("Orders", "broker-a", 0): 1}

    run(story())


def test_one_message_is_consumed_on_request_and_nothing_else_changes() -> None:
    async def story() -> None:
        seen: list[bytes] = []

        async def listen(message: ReceivedMessage) -> None:
            seen.append(message.body)
            if len(seen) > 2:
                raise ZeroDivisionError("enough")

        async with servers() as running, Producer(running.namesrv, group="p") as producer:
            await create_topic(running, "Orders", 1)
            sent = await producer.send("Orders", b"x")
            consumer = Consumer(running.namesrv, group="g", topics="Orders", start="first", listener=listen)
            async with consumer:
                await until(lambda: seen == [b"x"])
                asked = {"consumerGroup": "g", "clientId": consumer.client_id, "msgId": sent.offset_msg_id}
                results = []
                for _ in range(2):
                    answer = await ask(running, RequestCode.CONSUME_MESSAGE_DIRECTLY, **asked)
                    assert answer.code == ResponseCode.SUCCESS, answer.remark
                    results.append(decode_body(ConsumeMessageDirectlyResult, answer.body))
                assert [result.consume_result for result in results] == [
                    ConsumeResult.CR_SUCCESS,
                    ConsumeResult.CR_THROW_EXCEPTION,
                ]
                assert results[1].remark == "ZeroDivisionError: enough"
                assert seen == [b"x"] * 3

    run(story())
