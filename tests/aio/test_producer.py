"""The producer against a broker of ours on a real socket."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest

from refmq.aio.producer import Producer
from refmq.client.faults import queue_by_hash
from refmq.client.message import Message, ReceivedMessage, SendStatus
from refmq.client.transaction import TransactionState
from refmq.errors import (
    ClosedError,
    ConnectFailed,
    InvalidMessage,
    InvalidName,
    NoReply,
    RouteNotFound,
    UsageError,
    WrongLoopError,
)
from refmq.model.broker_config import BrokerConfig
from refmq.model.ids import MessageQueue
from refmq.protocol.acl import SIGNATURE, Credentials, signature_is_valid
from refmq.protocol.codes import ResponseCode
from refmq.protocol.command import RemotingCommand, response
from refmq.protocol.compression import decompress
from refmq.protocol.record import decode_properties
from tests.aio.harness import run, servers, stop_broker, stored, until_stored
from tests.net.support import serving

pytestmark = pytest.mark.usefixtures("each_engine")


def test_a_message_is_stored_with_everything_it_was_given() -> None:
    async def story() -> None:
        async with servers() as running, Producer(running.namesrv, group="g") as producer:
            result = await producer.send(
                "Orders", b"paid", tag="Paid", keys=["o-17", "o-18"], properties={"region": "eu"}
            )
            assert result.status is SendStatus.SEND_OK
            assert result.queue.topic == "Orders"
            assert result.queue.broker == "broker-a"
            assert result.queue_offset == 0
            (record,) = await stored(running, "Orders")
            assert record.body == b"paid"
            properties = decode_properties(record.properties)
            assert properties["TAGS"] == "Paid"
            assert properties["KEYS"] == "o-17 o-18"
            assert properties["region"] == "eu"
            assert properties["UNIQ_KEY"] == result.msg_id
            assert record.message_id == result.offset_msg_id

    run(story())


def test_messages_go_round_the_queues() -> None:
    async def story() -> None:
        async with servers() as running, Producer(running.namesrv, group="g") as producer:
            results = [await producer.send("Orders", b"x") for _ in range(8)]
            assert sorted(result.queue.queue_id for result in results) == [0, 0, 1, 1, 2, 2, 3, 3]

    run(story())


def test_a_sharding_key_always_means_the_queue_that_java_chooses() -> None:
    queues = [MessageQueue("T", "a", number) for number in range(8)]
    assert queue_by_hash(queues, "order-1").queue_id == 6
    assert queue_by_hash(queues, 17).queue_id == 1
    assert queue_by_hash(queues, 5_000_000_000).queue_id == 1

    async def story() -> None:
        async with servers() as running, Producer(running.namesrv, group="g") as producer:
            results = [await producer.send("Orders", b"x", sharding_key="o-17") for _ in range(5)]
            assert len({result.queue for result in results}) == 1
            assert [result.queue_offset for result in results] == [0, 1, 2, 3, 4]

    run(story())


def test_a_long_body_is_compressed_on_its_way_and_a_batch_is_one_request() -> None:
    async def story() -> None:
        async with servers() as running, Producer(running.namesrv, group="g") as producer:
            body = b"a" * 10_000
            await producer.send("Long", body)
            (record,) = await stored(running, "Long")
            assert len(record.body) < 1_000
            assert decompress(record.body, record.sys_flag) == body

            result = await producer.send_batch("Batch", [b"one", b"two", b"three"])
            assert len(result.msg_id.split(",")) == 3
            records = await stored(running, "Batch")
            assert [record.body for record in records] == [b"one", b"two", b"three"]
            assert len({record.queue_id for record in records}) == 1

    run(story())


def test_a_oneway_message_arrives_and_a_delayed_one_waits() -> None:
    async def story() -> None:
        async with servers() as running, Producer(running.namesrv, group="g") as producer:
            await producer.send("Metrics", b"first")  # makes the topic
            await producer.send_oneway("Metrics", b"second")
            assert len(await until_stored(running, "Metrics", 2)) == 2
            await producer.send("Later", b"x", delay_level=5)
            assert await stored(running, "Later") == []
            assert len(await stored(running, "SCHEDULE_TOPIC_XXXX", queues=18)) == 1

    run(story())


@pytest.mark.parametrize(
    ("message", "error", "said"),
    [
        (Message("Orders", b""), InvalidMessage, "empty"),
        (Message("Orders", b"x" * (4 * 1024 * 1024 + 1)), InvalidMessage, "at most 4194304"),
        (Message("No such!", b"x"), InvalidName, "only have the characters"),
        (Message("SCHEDULE_TOPIC_XXXX", b"x"), InvalidName, "belongs to the brokers"),
        (Message("Orders", b"x", properties={"UNIQ_KEY": "1"}), InvalidMessage, "belongs to RocketMQ"),
        (Message("Orders", b"x", properties={"a": " "}), InvalidMessage, "a name and a value"),
        (Message("Orders", b"x", tag="a\x01b"), InvalidMessage, "separate properties"),
        (Message("Orders", b"x", keys=("a b",)), InvalidMessage, "contain a space"),
        (Message("Orders", b"x", delay_level=-1), InvalidMessage, "delay level"),
        (Message("Orders", b"x", properties={"a": "b" * 40_000}), InvalidMessage, "too long"),
    ],
)
def test_what_no_broker_would_take_is_refused_before_it_is_sent(
    message: Message, error: type[Exception], said: str
) -> None:
    async def story() -> None:
        async with Producer("127.0.0.1:1", group="g") as producer:
            with pytest.raises(error, match=said):
                await producer.send(message)

    run(story())


def test_wrong_use_is_told_in_words() -> None:
    async def story() -> None:
        producer = Producer("127.0.0.1:1", group="g")
        with pytest.raises(ClosedError, match="not open yet"):
            await producer.send("Orders", b"x")
        async with producer:
            with pytest.raises(InvalidMessage, match="a list of texts"):
                await producer.send("Orders", b"x", keys="o-17")
            with pytest.raises(UsageError, match="not both"):
                await producer.send("Orders", b"x", sharding_key="a", queue=MessageQueue("Orders", "a", 0))
            with pytest.raises(UsageError, match="check-backs"):
                producer.transaction("Orders", b"x")
            with pytest.raises(ConnectFailed):
                await producer.send("Orders", b"x")
        with pytest.raises(ClosedError, match="is closed"):
            await producer.send("Orders", b"x")
        await producer.close()

    run(story())
    with pytest.raises(InvalidName, match="producer group"):
        Producer("127.0.0.1:9876", group="no such")
    with pytest.raises(InvalidName, match="for itself"):
        Producer("127.0.0.1:9876", group="DEFAULT_PRODUCER")


def test_a_producer_belongs_to_its_loop() -> None:
    async def opened() -> Producer:
        producer = Producer("127.0.0.1:1", group="g")
        await producer.open()
        await producer._instance._client.close()
        for task in list(producer._instance._tasks):
            task.cancel()
        return producer

    producer = asyncio.run(opened())

    async def elsewhere() -> None:
        with pytest.raises(WrongLoopError, match="another event loop"):
            await producer.send("Orders", b"x")

    asyncio.run(elsewhere())


def test_no_route_says_who_was_asked_what_they_know_and_what_to_do() -> None:
    async def story() -> None:
        config = replace(BrokerConfig(), auto_create_topic_enable=False)
        async with servers(config=config) as running, Producer(running.namesrv, group="g") as producer:
            with pytest.raises(RouteNotFound) as caught:
                await producer.send("Orders", b"x")
            assert running.namesrv in str(caught.value)
            assert "create it first, with Admin.create_topic" in str(caught.value)
            await stop_broker(running, "broker-a")
            with pytest.raises(RouteNotFound, match="no broker at all"):
                await producer.send("Orders", b"x")

    run(story())


def test_every_request_of_an_account_is_signed() -> None:
    async def story() -> None:
        seen: list[RemotingCommand] = []

        def answer(connection: object, command: RemotingCommand) -> RemotingCommand:
            seen.append(command)
            return response(command, ResponseCode.TOPIC_NOT_EXIST, remark="no")

        async with serving(answer) as (_, address):
            account = Credentials("ak", "sk")
            async with Producer(address, group="g", credentials=account) as producer:
                with pytest.raises(RouteNotFound):
                    await producer.send("Orders", b"x")
        assert len(seen) >= 2
        assert all(signature_is_valid(command, "sk") for command in seen)
        assert not any(signature_is_valid(command, "other") for command in seen)
        assert all(command.fields[SIGNATURE] for command in seen)

    run(story())


def test_names_travel_with_their_namespace_and_come_back_without() -> None:
    async def story() -> None:
        async with servers() as running, Producer(running.namesrv, group="g", namespace="ns") as producer:
            result = await producer.send("Orders", b"x")
            assert result.queue.topic == "Orders"
            (record,) = await stored(running, "ns%Orders")
            assert decode_properties(record.properties)["INSTANCE_ID"] == "ns"

    run(story())


def test_a_transaction_commits_rolls_back_or_is_asked_about() -> None:
    async def story() -> None:
        asked: list[ReceivedMessage] = []

        async def check(message: ReceivedMessage) -> TransactionState:
            asked.append(message)
            return TransactionState.COMMIT if message.body == b"unknown" else TransactionState.UNKNOWN

        config = replace(BrokerConfig(), transaction_time_out=1, transaction_check_interval=50)
        async with servers(config=config) as running, Producer(running.namesrv, group="g", check=check) as producer:
            async with producer.transaction("Orders", b"commit") as tx:
                assert tx.result is not None
                assert await stored(running, "Orders") == []
            await until_stored(running, "Orders", 1)

            with pytest.raises(ZeroDivisionError):
                async with producer.transaction("Orders", b"rollback"):
                    raise ZeroDivisionError
            unknown = producer.transaction("Orders", b"unknown")
            await unknown.begin()
            await until_stored(running, "Orders", 2)
            assert b"unknown" in [message.body for message in asked]
            assert sorted(record.body for record in await stored(running, "Orders")) == [b"commit", b"unknown"]

    run(story())


def test_a_local_transaction_that_fails_is_left_to_the_check() -> None:
    async def story() -> None:
        async def check(message: ReceivedMessage) -> TransactionState:
            return TransactionState.UNKNOWN

        async def execute(message: Message, result: object) -> TransactionState:
            if message.body == b"bad":
                raise ZeroDivisionError
            return TransactionState.COMMIT

        async with servers() as running, Producer(running.namesrv, group="g", check=check) as producer:
            _, state = await producer.send_in_transaction(Message("Orders", b"good"), execute)
            assert state is TransactionState.COMMIT
            _, state = await producer.send_in_transaction(Message("Orders", b"bad"), execute)
            assert state is TransactionState.UNKNOWN

    run(story())


def test_a_request_without_a_reply_ends_in_time() -> None:
    async def story() -> None:
        async with servers() as running, Producer(running.namesrv, group="g") as producer:
            with pytest.raises(NoReply) as caught:
                await producer.request("Quote", b"?", timeout=0.3)
            assert caught.value.sent
            message = ReceivedMessage("T", b"", "", MessageQueue("T", "a", 0), 0, 0)
            with pytest.raises(InvalidMessage, match="not sent as a request"):
                await producer.reply(message, b"!")

    run(story())
