"""Our Python client against the cluster of the run (``--broker real`` makes it RocketMQ 4.9.7), beside Java clients."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Coroutine
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, TypeVar

import pytest

import refmq
from interop.jvm import Jvm, Remote
from interop.ours import ask
from interop.rocketmq import Broker, Clients, Nameserver
from interop.scene import QUICK, Scene, numbered
from interop.tests.test_java_consume import numbers, send
from refmq import Admin, Consumer, Message, MessageQueue, Producer, PullConsumer, ReceivedMessage, TransactionState
from refmq.aio.consumer import Mode
from refmq.errors import RouteNotFound
from refmq.protocol.codes import RequestCode
from refmq.protocol.command import request

STORY_TIMEOUT_S = 180.0
T = TypeVar("T")


def tell(story: Coroutine[Any, Any, T]) -> T:
    async def limited() -> T:
        async with asyncio.timeout(STORY_TIMEOUT_S):
            return await story

    return asyncio.run(limited())


async def until(condition: Callable[[], bool]) -> None:
    """Waits for something that may ask a JVM: not on the loop."""
    loop = asyncio.get_running_loop()
    while not await loop.run_in_executor(None, condition):
        await asyncio.sleep(0.05)


class Heard:
    """A listener that remembers."""

    def __init__(self, fails: int = 0, takes_s: float = 0.0) -> None:
        self.messages: list[ReceivedMessage] = []
        self.fails = fails
        self.takes_s = takes_s

    async def __call__(self, message: ReceivedMessage) -> None:
        if self.takes_s:
            await asyncio.sleep(self.takes_s)
        self.messages.append(message)
        if message.reconsume_times < self.fails:
            raise ValueError("not yet")

    @property
    def numbers(self) -> Counter[int]:
        return Counter(int(message.body) for message in self.messages)


@pytest.fixture(params=["4.9.8"])
def version(request: pytest.FixtureRequest) -> str:
    """One version of Java clients is enough where it is our client that is looked at."""
    return str(request.param)


def test_all_kinds_of_sends_reach_java(on: Scene) -> None:
    topic = on.topic()
    java = on.push(topic)

    async def story() -> None:
        async with Producer(on.cluster.address, group="ours", timeout=10) as producer:
            sent = await producer.send(topic, b"0", tag="A", keys=["k-0"], properties={"colour": "red"})
            assert sent.status is refmq.SendStatus.SEND_OK
            await producer.send(topic, b"1" * 5000)
            await producer.send_batch(topic, [b"2", b"3"])
            await producer.send(topic, b"4", delay_level=1)
            ordered = [await producer.send(topic, b"5", sharding_key="order-1") for _ in range(3)]
            assert len({result.queue for result in ordered}) == 1
            await producer.send_oneway(topic, b"6")
            await until(lambda: len(java.bodies()) >= 9)

    tell(story())
    assert Counter(java.bodies()) == Counter(["0", "1" * 5000, "2", "3", "4", "5", "5", "5", "6"])


def test_we_consume_what_java_sends_and_commit_it(on: Scene) -> None:
    topic = on.topic()
    send(on, numbered(topic, 40))
    heard = Heard()

    async def story() -> None:
        async with Consumer(
            on.cluster.address, group=on.group, topics=topic, start="first", listener=heard
        ) as consumer:
            await until(lambda: heard.numbers == Counter(range(40)))
            assert len(consumer.assignment()) == 8
        async with Admin(on.cluster.address) as admin:
            assert (await admin.lag(on.group)).total == 0

    tell(story())
    assert on.cluster.committed(topic, on.group) == 40


@pytest.mark.parametrize("kind", ["concurrent", "orderly"])
def test_one_group_is_shared_with_java_through_joins_and_leaves(on: Scene, kind: Mode) -> None:
    topic = on.topic()
    java = on.push(topic, kind=kind)
    first, second = Heard(), Heard()

    def consumer(listener: Heard) -> Consumer:
        options = {"group": on.group, "topics": topic, "start": "first", "heartbeat": 2.0}
        return Consumer(on.cluster.address, listener=listener, mode=kind, **options)  # type: ignore[arg-type]  # a plain dict

    def owned(*ours: Consumer) -> list[set[tuple[str, int]]]:
        return [{(queue.broker, queue.queue_id) for queue in each.assignment()} for each in ours]

    def javas() -> set[tuple[str, int]]:
        return {(broker, queue_id) for _, broker, queue_id in java.owned()}

    async def story() -> None:
        async with consumer(first) as one:
            await until(lambda: len(javas()) == 4 and len(one.assignment()) == 4)
            assert not javas() & owned(one)[0]
            async with consumer(second) as two:
                await until(
                    lambda: (
                        len(javas()) + len(one.assignment()) + len(two.assignment()) == 8
                        and not javas() & owned(one)[0]
                        and not javas() & owned(two)[0]
                        and not owned(one)[0] & owned(two)[0]
                    )
                )
                await asyncio.get_running_loop().run_in_executor(None, send, on, numbered(topic, 60))
                await until(lambda: set(numbers(java) + first.numbers + second.numbers) == set(range(60)))
                assert first.messages
                assert second.messages
            await until(lambda: len(javas()) == 4 and len(one.assignment()) == 4)
        await until(lambda: len(javas()) == 8)

    tell(story())


def test_one_group_is_shared_with_both_javas_when_one_of_them_is_killed(on: Scene, clients: dict[str, Clients]) -> None:
    """Members of 4.9.8 and 5.3.3 and two of ours: joins, a leave, and a ``kill -9`` of the newer JVM."""
    topic = on.topic()
    old = on.push(topic)
    ours = [Heard(), Heard()]
    sent = 0

    def consumer(listener: Heard) -> Consumer:
        return Consumer(
            on.cluster.address, group=on.group, topics=topic, start="first", heartbeat=2.0, listener=listener
        )

    async def story() -> None:
        loop = asyncio.get_running_loop()
        doomed = await loop.run_in_executor(None, Jvm(clients["5.3.3"]).start)
        new = await loop.run_in_executor(None, lambda: on.push(topic, jvm=doomed))

        def heard() -> set[int]:
            return {*numbers(old), *numbers(new), *ours[0].numbers, *ours[1].numbers}

        async def shared(javas: list[Remote], *consumers: Consumer) -> None:
            """Every one of the eight queues has one owner, and nobody has two more than another."""

            def is_shared() -> bool:
                parts = [{(broker, queue) for _, broker, queue in java.owned()} for java in javas]
                parts += [{(queue.broker, queue.queue_id) for queue in each.assignment()} for each in consumers]
                sizes = [len(part) for part in parts]
                return len(set.union(*parts)) == sum(sizes) == 8 and max(sizes) - min(sizes) <= 1

            await until(is_shared)

        async def consumed(count: int) -> None:
            nonlocal sent
            batch = numbered(topic, sent + count)[sent:]
            sent += count
            await loop.run_in_executor(None, send, on, batch)
            await until(lambda: heard() >= set(range(sent)))

        try:
            async with consumer(ours[0]) as one:
                async with consumer(ours[1]) as two:
                    await shared([old, new], one, two)
                    await consumed(40)
                    assert all(len(numbers(java)) for java in (old, new))
                    assert ours[0].messages
                    assert ours[1].messages
                await shared([old, new], one)
                await consumed(40)
                await loop.run_in_executor(None, doomed.kill)
                await shared([old], one)
                await consumed(40)
                await loop.run_in_executor(None, on.close, old)
                await until(lambda: len(one.assignment()) == 8)
                await consumed(8)
        finally:
            await loop.run_in_executor(None, doomed.kill)

    tell(story())
    assert on.cluster.committed(topic, on.group) == sent


def test_we_read_on_from_a_real_slave_while_its_master_is_dead(tmp_path: Path) -> None:
    with Nameserver(tmp_path / "names") as nameserver:
        settings = {**QUICK, "registerNameServerPeriod": "10000"}
        master = Broker(tmp_path / "master", nameserver.address, settings=settings)
        slave = Broker(
            tmp_path / "slave", nameserver.address, settings={**settings, "brokerRole": "SLAVE", "brokerId": "1"}
        )
        with master, slave:
            tell(slave_story(nameserver.address, master, slave))


async def slave_story(address: str, master: Broker, slave: Broker) -> None:
    loop = asyncio.get_running_loop()
    heard = Heard(takes_s=0.05)
    queue = MessageQueue("Orders", "broker-a", 0)

    def slave_has(count: int) -> bool:
        fields = {"topic": "Orders", "queueId": "0"}
        answer = ask(slave.address, request(RequestCode.GET_MAX_OFFSET, fields))
        return int((answer.ext_fields or {}).get("offset", "0")) >= count

    async def produce(numbers_: range) -> None:
        async with Producer(address, group="ours", timeout=10, retries=5) as producer:
            for number in numbers_:
                await producer.send("Orders", b"%d" % number, queue=queue)

    async with Admin(address) as admin:
        await admin.create_topic("Orders", queues=1)
        while "Orders" not in await admin.topics():
            await asyncio.sleep(0.1)
    await produce(range(60))
    await until(lambda: slave_has(60))
    consumer = Consumer(
        address,
        group="readers",
        topics="Orders",
        start="first",
        listener=heard,
        concurrency=1,
        prefetch=4,
        pull_batch=4,
        route_poll=1.0,
        heartbeat=2.0,
        commit_interval=1.0,
    )
    async with consumer:
        await until(lambda: len(heard.messages) >= 10)
        await loop.run_in_executor(None, master.kill)
        before = len(heard.messages)
        assert before < 40
        await until(lambda: set(heard.numbers) == set(range(60)))
        await loop.run_in_executor(None, master.start)
        await produce(range(60, 80))
        await until(lambda: set(heard.numbers) == set(range(80)))
    async with Admin(address) as admin:
        assert (await admin.lag("readers")).total == 0
    repeated = {number: times for number, times in heard.numbers.items() if times > 1}
    assert repeated == {}, "a member that keeps its queue goes on where it is, whoever answers"


def test_a_failure_is_retried_and_dead_in_the_end(on: Scene) -> None:
    topic = on.topic(queues=1)
    send(on, numbered(topic, 1))
    good, bad = Heard(fails=2), Heard(fails=100)

    async def story() -> None:
        address = on.cluster.address
        async with Consumer(address, group=on.group, topics=topic, start="first", listener=good):
            await until(lambda: len(good.messages) == 3)
        assert [message.reconsume_times for message in good.messages] == [0, 1, 2]
        assert {message.topic for message in good.messages} == {topic}
        group = f"{on.group}-dead"
        async with Consumer(address, group=group, topics=topic, start="first", listener=bad, max_retries=1):
            await until(lambda: len(bad.messages) == 2)
            async with PullConsumer(address, group="clerk", start="first") as clerk:
                queues: tuple[refmq.MessageQueue, ...] = ()
                while not queues:
                    try:
                        queues = await clerk.queues(f"%DLQ%{group}")
                    except RouteNotFound:
                        await asyncio.sleep(0.2)
                await clerk.assign(*queues)
                letters = await clerk.poll(30)
                assert [letter.body for letter in letters] == [b"0"]

    tell(story())


def test_a_transaction_is_committed_rolled_back_and_asked_about(on: Scene) -> None:
    topic = on.topic()
    java = on.push(topic)
    asked: list[bytes] = []

    async def check(message: ReceivedMessage) -> TransactionState:
        asked.append(message.body)
        return TransactionState.COMMIT

    async def story() -> None:
        async with Producer(on.cluster.address, group=f"tx-{on.tag}", check=check, timeout=10) as producer:
            async with producer.transaction(topic, b"commit"):
                pass
            with pytest.raises(ZeroDivisionError):
                async with producer.transaction(topic, b"rollback"):
                    raise ZeroDivisionError
            await producer.transaction(topic, b"unknown").begin()
            await until(lambda: len(java.bodies()) >= 2)

    tell(story())
    assert sorted(java.bodies()) == ["commit", "unknown"]
    assert b"unknown" in asked
    assert b"rollback" not in asked


def test_a_request_gets_its_reply(on: Scene) -> None:
    topic = on.topic(queues=1)

    async def story() -> None:
        async def answer(message: ReceivedMessage) -> None:
            await desk.reply(message, b"yes, " + message.body, timeout=10)

        desk = Consumer(on.cluster.address, group=on.group, topics=topic, start="first", listener=answer)
        async with desk, Producer(on.cluster.address, group=f"ask-{on.tag}", timeout=10) as producer:
            await desk.assigned()
            reply = await producer.request(topic, b"really?", timeout=30)
            assert reply.body == b"yes, really?"

    tell(story())


def test_filters_work(on: Scene) -> None:
    topic = on.topic()

    async def story() -> None:
        async with Producer(on.cluster.address, group="ours", timeout=10) as producer:
            for number, tag in enumerate(["Aa", "BB", "Cc"]):
                await producer.send(topic, str(number).encode(), tag=tag, properties={"n": str(number)})
        for wanted, expected in (("Aa || Cc", {0, 2}), (refmq.sql("n > 0"), {1, 2})):
            heard = Heard()
            group = f"{on.group}-{len(expected)}-{isinstance(wanted, str)}"
            async with Consumer(on.cluster.address, group=group, topics={topic: wanted}, start="first", listener=heard):
                await until(lambda heard=heard, expected=expected: set(heard.numbers) == expected)  # type: ignore[misc]  # bound

    tell(story())


def test_admin_sees_and_changes_what_is_there(on: Scene) -> None:
    async def story() -> None:
        topic = on.tag[-60:]
        async with (
            Admin(on.cluster.address) as admin,
            Producer(on.cluster.address, group="ours", timeout=10) as producer,
        ):
            assert sorted((await admin.cluster()).masters) == ["broker-a", "broker-b"]
            await admin.create_topic(topic, queues=2)
            while topic not in await admin.topics():
                await asyncio.sleep(0.1)
            begin = datetime.now(UTC) - timedelta(seconds=1)
            sent = [await producer.send(Message(topic, b"%d" % n, keys=(f"k{n}",))) for n in range(4)]
            # The queues of a Java broker follow its log a moment later.
            while sum(offsets.max_offset for offsets in (await admin.topic_offsets(topic)).values()) < 4:
                await asyncio.sleep(0.1)
            while not await admin.messages_by_key(topic, "k2"):
                await asyncio.sleep(0.1)
            found = await admin.message(topic, sent[1].msg_id)
            assert found is not None
            assert found.body == b"1"
            assert (await admin.message_at(sent[3].offset_msg_id)).body == b"3"
            end = datetime.now(UTC) + timedelta(minutes=1)
            assert len(await admin.messages_by_time(topic, begin=begin, end=end)) == 4
            heard = Heard()
            async with Consumer(on.cluster.address, group=on.group, topics=topic, start="first", listener=heard) as us:
                await until(lambda: heard.numbers == Counter(range(4)))
                await us.commit()
                assert [member.client_id for member in await admin.members(on.group)] == [us.client_id]
                await admin.reset_offset(group=on.group, topic=topic, to="first")
                await until(lambda: heard.numbers == Counter(dict.fromkeys(range(4), 2)))
            await admin.delete_topic(topic)

    tell(story())


def test_a_killed_broker_costs_no_acknowledged_message(on: Scene) -> None:
    topic = on.topic()
    heard = Heard()
    broker = on.cluster.brokers["broker-a"]

    async def story() -> None:
        loop = asyncio.get_running_loop()
        acknowledged: set[int] = set()
        async with (
            Producer(on.cluster.address, group="ours", timeout=5, retries=3, route_poll=1.0) as producer,
            Consumer(
                on.cluster.address,
                group=on.group,
                topics=topic,
                start="first",
                listener=heard,
                route_poll=1.0,
                heartbeat=2.0,
            ) as consumer,
        ):
            await consumer.assigned()

            async def produce(numbers_: range) -> None:
                for number in numbers_:
                    try:
                        await producer.send(topic, b"%d" % number)
                    except refmq.RefmqError:
                        continue
                    acknowledged.add(number)

            await produce(range(50))
            sending = asyncio.create_task(produce(range(50, 150)))
            await asyncio.sleep(0.05)
            await loop.run_in_executor(None, broker.kill)
            await sending
            assert len(acknowledged) >= 140, "the other broker takes nearly everything"
            await loop.run_in_executor(None, broker.start)
            await produce(range(150, 160))
            await until(lambda: set(heard.numbers) >= acknowledged)

    tell(story())
