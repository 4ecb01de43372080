"""Where a queue begins and ends, asked of the master that has it."""

from __future__ import annotations

import asyncio
import time

import pytest

from refmq.aio.places import Places
from refmq.aio.producer import Producer
from refmq.errors import ConnectFailed
from refmq.model.ids import MessageQueue
from tests.aio.harness import create_topic, run, servers


def test_the_ends_of_a_queue_and_a_time_between_them() -> None:
    async def story() -> None:
        async with servers("broker-a", "broker-b") as running, Producer(running.namesrv, group="g") as producer:
            await create_topic(running, "Orders", 2)
            queue, other = MessageQueue("Orders", "broker-b", 1), MessageQueue("Orders", "broker-a", 1)
            for number in range(3):
                await producer.send("Orders", b"%d" % number, queue=queue)
            await asyncio.sleep(0.02)  # so that no message has just this time
            early_ms = time.time_ns() // 1_000_000
            await asyncio.sleep(0.2)
            await producer.send("Orders", b"3", queue=queue)
            places = Places(producer._instance)
            assert (await places.min_offset(queue), await places.max_offset(queue)) == (0, 4)
            assert (await places.min_offset(other), await places.max_offset(other)) == (0, 0)
            late_ms = time.time_ns() // 1_000_000
            assert await places.offset_at(queue, early_ms) == 2, "the nearest, as upstream has it"
            assert await places.offset_at(queue, late_ms) == 3
            assert await places.offset_at(queue, 1) == 0

    run(story())


def test_a_broker_that_nobody_knows_is_named() -> None:
    async def story() -> None:
        async with servers() as running, Producer(running.namesrv, group="g") as producer:
            await create_topic(running, "Orders", 1)
            with pytest.raises(ConnectFailed, match="broker-z"):
                await Places(producer._instance).max_offset(MessageQueue("Orders", "broker-z", 0))

    run(story())
