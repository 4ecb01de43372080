"""Administration against brokers of ours on real sockets."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta

import pytest

from refmq.aio.admin import Admin
from refmq.aio.consumer import Consumer
from refmq.aio.producer import Producer
from refmq.errors import ConnectFailed, RouteNotFound, UsageError
from refmq.model.ids import MessageQueue
from tests.aio.harness import run, servers, stop_broker, take

pytestmark = pytest.mark.usefixtures("each_engine")


def test_topics_are_made_on_every_master_and_deleted_everywhere() -> None:
    async def story() -> None:
        async with servers("broker-a", "broker-b") as running, Admin(running.namesrv) as admin:
            assert sorted((await admin.cluster()).masters) == ["broker-a", "broker-b"]
            await admin.create_topic("Orders", queues=3)
            assert await admin.topics() == ("Orders",)
            assert "TBW102" in await admin.topics(system=True)
            assert len(await admin.topic_offsets("Orders")) == 6
            await admin.delete_topic("Orders")
            assert await admin.topics() == ()
            with pytest.raises(RouteNotFound, match="Orders2"):
                await admin.topic_offsets("Orders2")
            with pytest.raises(UsageError, match="belongs to RocketMQ"):
                await admin.create_topic("TBW102")
            await stop_broker(running, "broker-a")
            await stop_broker(running, "broker-b")
            with pytest.raises(ConnectFailed, match="know no broker"):
                await admin.create_topic("Orders")

    run(story())


def test_groups_members_and_lag_are_shown() -> None:
    async def story() -> None:
        async with (
            servers() as running,
            Admin(running.namesrv) as admin,
            Producer(running.namesrv, group="p") as producer,
        ):
            await admin.create_topic("Orders", queues=2)
            await admin.create_group("billing", max_retries=3)
            assert await admin.groups() == ("billing",)
            assert await admin.members("billing") == ()
            assert (await admin.lag("billing")).total == 0
            for number in range(6):
                await producer.send("Orders", b"%d" % number)
            async with Consumer(running.namesrv, group="billing", topics="Orders", start="first") as consumer:
                await take(consumer, 4)
                await consumer.commit()
                (member,) = await admin.members("billing")
                assert member.client_id == consumer.client_id
                assert member.language.name == "PYTHON"
            lag = await admin.lag("billing")
            assert lag.total == 2
            assert sum((await admin.offsets("billing", "Orders")).values()) == 4
            await admin.clone_offsets("billing", "audit", "Orders")
            assert await admin.offsets("audit", "Orders") == await admin.offsets("billing", "Orders")
            await admin.delete_group("billing")
            assert "billing" not in await admin.groups()

    run(story())


def test_an_offset_is_reset_offline_and_online() -> None:
    async def story() -> None:
        async with (
            servers() as running,
            Admin(running.namesrv) as admin,
            Producer(running.namesrv, group="p") as producer,
        ):
            await admin.create_topic("Orders", queues=1)
            queue = MessageQueue("Orders", "broker-a", 0)
            for number in range(5):
                await producer.send("Orders", b"%d" % number)
            assert await admin.reset_offset(group="g", topic="Orders", to="last") == {queue: 5}
            assert await admin.offsets("g", "Orders") == {queue: 5}
            long_ago = datetime.now(UTC) - timedelta(hours=1)
            assert await admin.reset_offset(group="g", topic="Orders", to=long_ago) == {queue: 0}
            assert await admin.reset_offset(group="g", topic="Orders", to="last", force=False) == {queue: 0}
            async with Consumer(running.namesrv, group="g", topics="Orders") as consumer:
                assert len(await take(consumer, 5)) == 5
                await consumer.commit()
                assert await admin.reset_offset(group="g", topic="Orders", to="first") == {queue: 0}
                async with asyncio.timeout(10):
                    assert [message.body for message in await take(consumer, 5)] == [b"%d" % n for n in range(5)]

    run(story())


def test_messages_are_found_by_id_key_and_time() -> None:
    async def story() -> None:
        async with (
            servers() as running,
            Admin(running.namesrv) as admin,
            Producer(running.namesrv, group="p") as producer,
        ):
            begin = datetime.now(UTC)
            sent = [await producer.send("Orders", b"%d" % number, keys=[f"k{number}", "all"]) for number in range(4)]
            end = datetime.now(UTC) + timedelta(seconds=1)

            async def by_key(key: str) -> list[bytes]:
                return sorted(message.body for message in await admin.messages_by_key("Orders", key))

            async with asyncio.timeout(10):
                while len(await by_key("all")) < 4:  # the index is behind the log for a moment
                    await asyncio.sleep(0.01)
            assert await by_key("k2") == [b"2"]
            assert await by_key("nothing") == []
            found = await admin.message("Orders", sent[1].msg_id)
            assert found is not None
            assert found.body == b"1"
            assert (await admin.message_at(sent[3].offset_msg_id)).body == b"3"
            assert await admin.message("Orders", "0" * 32) is None
            found_by_time = await admin.messages_by_time("Orders", begin=begin, end=end)
            assert sorted(message.body for message in found_by_time) == [b"0", b"1", b"2", b"3"]
            later = await admin.messages_by_time("Orders", begin=end, end=end + timedelta(hours=1))
            assert later == ()

    run(story())
