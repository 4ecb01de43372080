"""Consumers against brokers of ours on real sockets."""

from __future__ import annotations

import asyncio
import time
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from refmq.aio.consumer import Consumer
from refmq.aio.producer import Producer
from refmq.client.message import ReceivedMessage
from refmq.client.subscription import sql
from refmq.errors import BrokerError, InvalidName, UsageError
from refmq.model.broker_config import BrokerConfig
from refmq.model.ids import MessageQueue
from refmq.trace.memory import MemoryRecorder
from tests.aio.harness import create_topic, run, servers, start_broker, stop_broker, take, until

pytestmark = pytest.mark.usefixtures("each_engine")


def test_what_was_sent_is_received_with_everything_it_had() -> None:
    async def story() -> None:
        async with servers() as running, Producer(running.namesrv, group="p") as producer:
            sent = await producer.send("Orders", b"x" * 5000, tag="Paid", keys=["o-1"], properties={"region": "eu"})
            async with Consumer(running.namesrv, group="g", topics="Orders", start="first") as consumer:
                (message,) = await take(consumer, 1)
                assert message.body == b"x" * 5000
                assert (message.topic, message.tag, message.keys) == ("Orders", "Paid", ("o-1",))
                assert message.properties["region"] == "eu"
                assert message.msg_id == sent.msg_id
                assert message.offset_msg_id == sent.offset_msg_id
                assert (message.queue, message.queue_offset) == (sent.queue, sent.queue_offset)
                assert message.reconsume_times == 0
                assert abs(message.stored_at - datetime.now(UTC)) < timedelta(minutes=1)
                await consumer.commit()

    run(story())


def test_brokers_and_consumers_name_a_compressed_message_alike() -> None:
    """In their traces: by the body as it is stored."""
    recorder = MemoryRecorder("all", time.time_ns)

    async def story() -> None:
        async with servers(recorder=recorder) as running:
            async with Producer(running.namesrv, group="p") as producer:
                await producer.send("Orders", b"x" * 5000)
            for consumer in (
                Consumer(running.namesrv, group="g", topics="Orders", start="first", recorder=recorder),
                Consumer(running.namesrv, group="h", topics="Orders", start="first"),
            ):
                async with consumer:
                    (message,) = await take(consumer, 1)
                    assert (message.fingerprint != 0) == (message.body == b"x" * 5000 and consumer.group == "g")

    run(story())
    events = [recorded.event for recorded in recorder.events]
    (appended,) = (event.c for event in events if event.action == "AppendMessage")
    (started,) = (event.b for event in events if event.action == "ConsumeStart")
    (finished,) = (event.b for event in events if event.action == "ConsumeFinish")
    assert appended == started == finished


def test_tags_and_sql_choose_messages() -> None:
    async def story() -> None:
        config = replace(BrokerConfig(), enable_property_filter=True)
        async with servers(config=config) as running, Producer(running.namesrv, group="p") as producer:
            # "Aa" and "BB" have one hash: the broker lets both through.
            for number, tag in enumerate(["Aa", "BB", "Cc", "Aa"]):
                await producer.send("Orders", tag.encode(), tag=tag, properties={"n": str(number)})
            async with Consumer(running.namesrv, group="t", topics={"Orders": "Aa || Cc"}, start="first") as consumer:
                assert sorted(message.body for message in await take(consumer, 3)) == [b"Aa", b"Aa", b"Cc"]
            wanted = {"Orders": sql("n > 1")}
            async with Consumer(running.namesrv, group="s", topics=wanted, start="first") as consumer:
                assert sorted(message.body for message in await take(consumer, 2)) == [b"Aa", b"Cc"]
            with pytest.raises(BrokerError):
                async with Consumer(running.namesrv, group="w", topics={"Orders": sql("n >> 1")}):
                    pass

    run(story())


def test_an_orderly_consumer_keeps_the_order_through_failures() -> None:
    async def story() -> None:
        seen: list[bytes] = []
        failed: set[bytes] = set()

        async def listener(message: ReceivedMessage) -> None:
            if message.body[-1:] == b"3" and message.body not in failed:
                failed.add(message.body)
                raise ZeroDivisionError
            await asyncio.sleep(0)
            seen.append(message.body)

        async with servers() as running, Producer(running.namesrv, group="p") as producer:
            for number in range(10):
                for key in ("a", "b"):
                    await producer.send("Orders", b"%s%d" % (key.encode(), number), sharding_key=key)
            consumer = Consumer(
                running.namesrv,
                group="g",
                topics="Orders",
                start="first",
                mode="orderly",
                listener=listener,
                suspend=0.05,
            )
            async with consumer:
                await until(lambda: len(seen) == 20)
            for letter in (b"a", b"b"):
                expected = [b"%s%d" % (letter, number) for number in range(10)]
                assert [body for body in seen if body[:1] == letter] == expected
            assert len(failed) == 2

    run(story())


def test_everybody_gets_a_broadcast_and_remembers_it(tmp_path: Path) -> None:
    async def story() -> None:
        async with servers() as running, Producer(running.namesrv, group="p") as producer:
            await create_topic(running, "News", 2)

            def reader(name: str) -> Consumer:
                return Consumer(
                    running.namesrv,
                    group="g",
                    topics="News",
                    mode="broadcast",
                    start="first",
                    instance_name=name,
                    client_ip="10.0.0.1",
                    offsets_folder=tmp_path,
                )

            await producer.send("News", b"1")
            async with reader("a") as first, reader("b") as second:
                assert [message.body for message in await take(first, 1)] == [b"1"]
                assert [message.body for message in await take(second, 1)] == [b"1"]
            assert (tmp_path / "10.0.0.1@a" / "g" / "offsets.json").exists()
            await producer.send("News", b"2")
            async with reader("a") as first:
                assert [message.body for message in await take(first, 1)] == [b"2"]

    run(story())


def test_a_group_begins_where_it_is_told() -> None:
    async def story() -> None:
        async with servers() as running, Producer(running.namesrv, group="p") as producer:
            await create_topic(running, "Orders", 1)
            for number in range(3):
                await producer.send("Orders", b"%d" % number)
            when = datetime.now(UTC) + timedelta(hours=1)
            async with Consumer(running.namesrv, group="time", topics="Orders", start=when) as consumer:
                await consumer.assigned()
            async with Consumer(running.namesrv, group="first", topics="Orders", start="first") as consumer:
                assert [message.body for message in await take(consumer, 3)] == [b"0", b"1", b"2"]

    run(story())


def test_seek_goes_back_and_forth() -> None:
    async def story() -> None:
        async with servers() as running, Producer(running.namesrv, group="p") as producer:
            await create_topic(running, "Orders", 1)
            for number in range(5):
                await producer.send("Orders", b"%d" % number)
            async with Consumer(running.namesrv, group="g", topics="Orders", start="first") as consumer:
                (queue,) = await consumer.assigned()
                assert [message.body for message in await take(consumer, 5)] == [b"%d" % n for n in range(5)]
                await consumer.seek(queue, 2)
                assert [message.body for message in await take(consumer, 3)] == [b"2", b"3", b"4"]
                await consumer.seek_to_time(queue, "first")
                assert [message.body for message in await take(consumer, 1)] == [b"0"]
                with pytest.raises(UsageError, match="not assigned"):
                    await consumer.seek(MessageQueue("Orders", "broker-a", 7), 0)

    run(story())


def test_batches_settle_together() -> None:
    async def story() -> None:
        async with servers() as running, Producer(running.namesrv, group="p") as producer:
            for number in range(10):
                await producer.send("Orders", b"%d" % number)
            async with Consumer(running.namesrv, group="g", topics="Orders", start="first") as consumer:
                seen: list[bytes] = []
                async for batch in consumer.batches(max_messages=4, max_wait=0.05):
                    assert 1 <= len(batch) <= 4
                    async with batch.processing():
                        seen += [message.body for message in batch]
                    if len(seen) == 10:
                        break
                assert sorted(seen) == [b"%d" % number for number in range(10)]

    run(story())


@pytest.mark.reference_only
def test_a_broker_that_dies_and_comes_back_is_used_again() -> None:
    async def story() -> None:
        async with servers() as running, Producer(running.namesrv, group="p") as producer:
            await producer.send("Orders", b"before")
            node = running.node()
            port = node.broker.config.listen_port
            disk = node._disk
            async with Consumer(running.namesrv, group="g", topics="Orders", start="first") as consumer:
                assert [message.body for message in await take(consumer, 1)] == [b"before"]
                await stop_broker(running, "broker-a")
                await start_broker(running, "broker-a", disk=disk.after_process_crash(), port=port)  # type: ignore[attr-defined]  # a simulated one
                await producer.send("Orders", b"after", timeout=10)
                async with asyncio.timeout(20):
                    assert [message.body for message in await take(consumer, 1)] == [b"after"]

    run(story())


def test_closing_waits_for_listeners_but_not_for_ever() -> None:
    async def story() -> None:
        started = asyncio.Event()

        async def hangs(message: ReceivedMessage) -> None:
            started.set()
            await asyncio.sleep(3600)

        async with servers() as running, Producer(running.namesrv, group="p") as producer:
            await producer.send("Orders", b"x")
            consumer = Consumer(running.namesrv, group="g", topics="Orders", start="first", listener=hangs)
            await consumer.open()
            await started.wait()
            began = asyncio.get_running_loop().time()
            await consumer.close(timeout=0.5)
            assert asyncio.get_running_loop().time() - began < 3
            async with Consumer(running.namesrv, group="g", topics="Orders", start="first") as again:
                assert [message.body for message in await take(again, 1)] == [b"x"]

    run(story())


def test_an_iteration_ends_when_the_consumer_closes() -> None:
    async def story() -> None:
        async with servers() as running:
            consumer = Consumer(running.namesrv, group="g", topics="Orders")
            await consumer.open()
            reading = asyncio.create_task(take(consumer, 1))
            await asyncio.sleep(0.05)
            await consumer.close()
            assert await reading == []

    run(story())


def test_wrong_use_is_told_in_words() -> None:
    with pytest.raises(UsageError, match="needs a topic"):
        Consumer("127.0.0.1:1", group="g", topics=[])
    with pytest.raises(UsageError, match="mode is"):
        Consumer("127.0.0.1:1", group="g", topics="T", mode="x")  # type: ignore[arg-type]  # the point of it
    with pytest.raises(UsageError, match="time zone"):
        Consumer("127.0.0.1:1", group="g", topics="T", start=datetime(2026, 1, 1))
    with pytest.raises(UsageError, match="prefetch is between"):
        Consumer("127.0.0.1:1", group="g", topics="T", prefetch=0)
    with pytest.raises(InvalidName, match="for itself"):
        Consumer("127.0.0.1:1", group="DEFAULT_CONSUMER", topics="T")
