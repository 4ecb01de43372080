"""The pull consumer against a broker of ours on a real socket."""

from __future__ import annotations

import pytest

from refmq.aio.producer import Producer
from refmq.aio.pull_consumer import PullConsumer
from refmq.errors import RouteNotFound, UsageError
from refmq.model.ids import MessageQueue
from tests.aio.harness import Servers, create_topic, run, servers, until

pytestmark = pytest.mark.usefixtures("each_engine")


async def fill(running: Servers, count: int) -> None:
    await create_topic(running, "Orders", 1)
    async with Producer(running.namesrv, group="p") as producer:
        for number in range(count):
            await producer.send("Orders", b"%d" % number)


async def polled(consumer: PullConsumer, count: int) -> list[bytes]:
    found: list[bytes] = []
    while len(found) < count:
        found += [message.body for message in await consumer.poll(max_messages=4)]
    return found


def test_assigned_queues_are_polled_and_committed_when_told() -> None:
    async def story() -> None:
        async with servers() as running:
            await fill(running, 10)
            for expected in (range(10), range(10)):
                async with PullConsumer(running.namesrv, group="g", start="first", auto_commit=False) as consumer:
                    (queue,) = await consumer.queues("Orders")
                    await consumer.assign(queue)
                    assert await polled(consumer, 10) == [b"%d" % number for number in expected]
            async with PullConsumer(running.namesrv, group="g", start="first", auto_commit=False) as consumer:
                await consumer.assign(queue)
                await polled(consumer, 8)
                await consumer.commit()
                assert await consumer.committed(queue) == 8
            async with PullConsumer(running.namesrv, group="g", start="first") as consumer:
                await consumer.assign(queue)
                assert await polled(consumer, 2) == [b"8", b"9"]
                assert await consumer.poll(timeout=0.05) == []
                await consumer.commit()
                assert await consumer.committed(queue) == 10

    run(story())


def test_topics_are_shared_with_the_group() -> None:
    async def story() -> None:
        async with servers() as running:
            await create_topic(running, "Orders", 4)
            async with (
                PullConsumer(running.namesrv, group="g", topics="Orders") as first,
                PullConsumer(running.namesrv, group="g", topics="Orders") as second,
            ):
                await until(lambda: len(first.assignment()) == 2 and len(second.assignment()) == 2)
                assert not set(first.assignment()) & set(second.assignment())
                assert first.client_id.endswith("@STREAM")
                with pytest.raises(UsageError, match="not both"):
                    await first.assign(MessageQueue("Orders", "broker-a", 0))

    run(story())


def test_seek_stays_inside_the_queue() -> None:
    async def story() -> None:
        async with servers() as running:
            await fill(running, 5)
            async with PullConsumer(running.namesrv, group="g", start="first") as consumer:
                (queue,) = await consumer.queues("Orders")
                await consumer.assign(queue)
                assert await polled(consumer, 5) == [b"0", b"1", b"2", b"3", b"4"]
                await consumer.seek(queue, 3)
                assert await polled(consumer, 2) == [b"3", b"4"]
                await consumer.seek_to_begin(queue)
                assert (await polled(consumer, 1))[0] == b"0"
                await consumer.seek_to_end(queue)
                assert await consumer.poll(timeout=0.05) == []
                with pytest.raises(UsageError, match="has offsets 0 to 5"):
                    await consumer.seek(queue, 6)

    run(story())


def test_a_plain_pull_needs_no_state() -> None:
    async def story() -> None:
        async with servers() as running:
            await fill(running, 5)
            async with PullConsumer(running.namesrv, group="g") as consumer:
                (queue,) = await consumer.queues("Orders")
                messages, following = await consumer.pull(queue, 1, max_messages=2)
                assert [message.body for message in messages] == [b"1", b"2"]
                assert following == 3
                messages, following = await consumer.pull(queue, 5, timeout=0.0)
                assert (messages, following) == ([], 5)
                with pytest.raises(RouteNotFound):
                    await consumer.queues("Nothing")

    run(story())


def test_a_paused_queue_is_not_read() -> None:
    async def story() -> None:
        async with servers() as running:
            await fill(running, 3)
            async with PullConsumer(running.namesrv, group="g", start="first", prefetch=1, pull_batch=1) as consumer:
                (queue,) = await consumer.queues("Orders")
                await consumer.assign(queue)
                assert len(await consumer.poll()) == 1
                consumer.pause(queue)
                await consumer.poll(timeout=0.1)
                assert await consumer.poll(timeout=0.1) == []
                consumer.resume(queue)
                assert len(await consumer.poll()) == 1

    run(story())
