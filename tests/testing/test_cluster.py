"""The test cluster: what the fixture `refmq` can do, used as a test would use it."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Iterator

import pytest

from refmq import sync
from refmq.aio.consumer import Consumer
from refmq.aio.producer import Producer
from refmq.client.message import ReceivedMessage
from refmq.client.transaction import TransactionState
from refmq.errors import ConnectFailed, RefmqError, SendFailed, SendNotDurable, UsageError
from refmq.model.broker_config import BrokerConfig
from refmq.testing import TestCluster


@pytest.fixture
def cluster() -> Iterator[TestCluster]:
    with TestCluster() as running:
        yield running


def test_it_starts_in_a_moment_and_leaves_nothing_behind() -> None:
    before = threading.active_count()
    with TestCluster():  # whatever is imported is imported now
        pass
    began = time.monotonic()
    for _ in range(5):
        with TestCluster() as cluster:
            assert cluster.messages("Nothing").bodies() == []
    assert (time.monotonic() - began) / 5 < 2.0
    assert threading.active_count() == before


def test_two_of_them_know_nothing_of_each_other(cluster: TestCluster) -> None:
    with TestCluster() as other:
        cluster.send("Orders", b"here")
        assert cluster.namesrv != other.namesrv
        assert other.messages("Orders").bodies() == []
        assert cluster.messages("Orders").bodies() == [b"here"]


def test_messages_come_in_the_order_in_which_they_were_stored(cluster: TestCluster) -> None:
    cluster.add_broker("broker-b")
    cluster.topic("Orders", queues=4)
    with sync.Producer(cluster.namesrv, group="p") as producer:
        queues = producer.queues("Orders")
        assert {queue.broker for queue in queues} == {"broker-a", "broker-b"}
        for number in range(20):
            producer.send("Orders", b"%d" % number, queue=queues[(7 * number) % len(queues)])
            time.sleep(0.002)  # of one millisecond only a broker knows the order
    assert cluster.messages("Orders").bodies() == [b"%d" % number for number in range(20)]


def test_messages_offsets_and_lag_can_be_asked_for(cluster: TestCluster) -> None:
    cluster.topic("Orders", queues=2)
    for number in range(4):
        cluster.send("Orders", b"%d" % number, tag="even" if number % 2 == 0 else "odd", keys=[f"k{number}"])
    stored = cluster.messages("Orders")
    assert sorted(stored.bodies()) == [b"0", b"1", b"2", b"3"]
    assert sorted(stored.tags()) == ["even", "even", "odd", "odd"]
    assert stored.with_key("k3").bodies() == [b"3"]
    assert len(stored) == 4
    assert "4 messages in Orders" in repr(stored)
    with sync.Consumer(cluster.namesrv, group="g", topics="Orders", start="first") as consumer:
        for _ in range(3):
            message = consumer.receive(10)
            assert message is not None
            consumer.ack(message)
        assert cluster.members("g") == [consumer.asynchronous.client_id]
    assert cluster.lag("g") == 1
    assert sum(cluster.offsets("g", "Orders").values()) == 3
    assert cluster.requests("PULL_MESSAGE")
    assert any("PULL_MESSAGE Orders (g)" in line for line in cluster.events())


def test_a_delayed_message_comes_when_the_clock_says_so(cluster: TestCluster) -> None:
    cluster.topic("Later")
    cluster.send("Later", b"x", delay_level=16)  # half an hour
    cluster.clock.advance(minutes=29)
    assert cluster.messages("Later").bodies() == []
    assert cluster.delayed().bodies() == [b"x"]
    cluster.clock.advance(minutes=2)
    assert cluster.messages("Later").bodies() == [b"x"]
    with pytest.raises(ValueError, match="forward only"):
        cluster.clock.advance(seconds=-1)


class Service(threading.Thread):
    """An application: an asynchronous consumer on a loop in a thread of its own."""

    def __init__(self, namesrv: str, **options: object) -> None:
        super().__init__(daemon=True)
        self.attempts: list[int] = []
        self.good: list[bytes] = []
        self._namesrv = namesrv
        self._options = options
        self._ready = threading.Event()
        self.start()
        assert self._ready.wait(10)

    def run(self) -> None:
        asyncio.run(self._run())

    async def _run(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._end = asyncio.Event()
        async with Consumer(
            self._namesrv,
            group="billing",
            topics="Orders",
            start="first",
            listener=self._listen,
            **self._options,  # type: ignore[arg-type]  # options of any kind
        ) as consumer:
            await consumer.assigned()
            self._ready.set()
            await self._end.wait()

    async def _listen(self, message: ReceivedMessage) -> None:
        if message.body == b"bad":
            self.attempts.append(message.reconsume_times)
            raise ZeroDivisionError
        self.good.append(message.body)

    def stop(self) -> None:
        self._loop.call_soon_threadsafe(self._end.set)
        self.join(20)


def test_all_retries_happen_within_one_advance(cluster: TestCluster) -> None:
    cluster.topic("Orders")
    service = Service(cluster.namesrv, max_retries=5)
    try:
        cluster.send("Orders", b"bad", tag="Paid")
        cluster.send("Orders", b"good")
        cluster.wait_for(lambda: service.attempts == [0] and service.good == [b"good"])
        began = time.monotonic()
        cluster.clock.advance(minutes=30)
        assert time.monotonic() - began < 30, "thirty minutes of retries are not waited for"
        assert service.attempts == [0, 1, 2, 3, 4, 5]
        assert cluster.dlq("billing").bodies() == [b"bad"]
        assert cluster.dlq("billing").tags() == ["Paid"]
        assert len(cluster.members("billing")) == 1, "a client that lives is not taken for dead"
    finally:
        service.stop()
    assert cluster.lag("billing") == 0


def test_a_transaction_is_asked_about_when_the_clock_says_so(cluster: TestCluster) -> None:
    asked: list[bytes] = []

    async def check(message: ReceivedMessage) -> TransactionState:
        asked.append(message.body)
        return TransactionState.COMMIT

    cluster.topic("Orders")
    with sync.Producer(cluster.namesrv, group="p", check=check) as producer:

        async def begin() -> None:
            await producer.asynchronous.transaction("Orders", b"x").begin()

        producer._call(begin())
        assert cluster.messages("Orders").bodies() == []
        cluster.clock.advance(minutes=2)
        assert asked == [b"x"]
        cluster.wait_for(lambda: cluster.messages("Orders").bodies() == [b"x"])


def test_faults_strike_as_often_as_they_shall(cluster: TestCluster) -> None:
    cluster.topic("Orders")
    with sync.Producer(cluster.namesrv, group="p") as producer:
        producer.send("Orders", b"0")
        cluster.faults.respond("SEND_MESSAGE_V2", "SYSTEM_BUSY", times=2)
        producer.send("Orders", b"1")  # the third attempt
        assert cluster.faults.waiting == 0
        assert len(cluster.faults.happened) == 2
        cluster.faults.respond("SEND_MESSAGE_V2", "SYSTEM_BUSY", times=3)
        with pytest.raises(SendFailed, match="SYSTEM_BUSY"):
            producer.send("Orders", b"2")
        cluster.faults.drop_answer("SEND_MESSAGE_V2")
        with pytest.raises(SendFailed) as caught:
            producer.send("Orders", b"3", timeout=0.3)
        assert caught.value.maybe_stored
        cluster.faults.close_connection("SEND_MESSAGE_V2")
        producer.send("Orders", b"4")
        cluster.faults.delay("SEND_MESSAGE_V2", 0.05)
        producer.send("Orders", b"5")
        cluster.faults.respond("*", 16)
        cluster.faults.clear()
    assert sorted(cluster.messages("Orders").bodies()) == [b"0", b"1", b"3", b"4", b"5"]
    with pytest.raises(UsageError, match="SEND_MESSAGE_V2"):
        cluster.faults.respond("SEND_MASSAGE", "SYSTEM_BUSY")
    with pytest.raises(UsageError, match="no response code"):
        cluster.faults.respond("SEND_MESSAGE", "BUSY")


def test_a_crash_keeps_what_was_written_and_a_power_loss_what_was_flushed(cluster: TestCluster) -> None:
    cluster.topic("Orders", queues=1)
    cluster.send("Orders", b"1")
    address = cluster.broker.address
    cluster.broker.crash()
    assert not cluster.broker.is_up
    with pytest.raises(RefmqError):
        cluster.send("Orders", b"lost")
    cluster.broker.restart()
    assert cluster.broker.address == address
    assert cluster.messages("Orders").bodies() == [b"1"]
    cluster.clock.advance(seconds=5)  # flushed every half second
    cluster.send("Orders", b"2")
    cluster.broker.crash(lose_unflushed=True)
    cluster.broker.restart()
    assert cluster.messages("Orders").bodies() == [b"1"]
    cluster.send("Orders", b"3")
    assert cluster.messages("Orders").bodies() == [b"1", b"3"]


def test_a_frozen_flush_is_told_and_a_power_loss_then_takes_the_message() -> None:
    config = BrokerConfig(sync_flush_timeout=200)
    with TestCluster(config=config, sync_flush=True) as cluster:
        cluster.topic("Orders", queues=1)
        cluster.send("Orders", b"safe")
        cluster.faults.freeze_flush()
        with pytest.raises(SendNotDurable, match="FLUSH_DISK_TIMEOUT"):
            cluster.send("Orders", b"unsafe")
        cluster.broker.crash(lose_unflushed=True)
        cluster.broker.restart()
        assert cluster.messages("Orders").bodies() == [b"safe"]


def test_there_can_be_more_than_one_broker(cluster: TestCluster) -> None:
    second = cluster.add_broker("broker-b")
    cluster.topic("Orders", queues=1)
    for _ in range(4):
        cluster.send("Orders", b"x")
    assert {message.queue.broker for message in cluster.messages("Orders")} == {"broker-a", "broker-b"}
    second.stop()
    assert {message.queue.broker for message in cluster.messages("Orders")} == {"broker-a"}
    with pytest.raises(UsageError, match="already"):
        cluster.add_broker("broker-b")


def test_a_test_that_is_a_coroutine_can_use_it(cluster: TestCluster) -> None:
    async def story() -> None:
        cluster.topic("Orders")
        seen: list[int] = []

        async def listen(message: ReceivedMessage) -> None:
            seen.append(message.reconsume_times)
            if message.reconsume_times < 2:
                raise ZeroDivisionError

        async with (
            Producer(cluster.namesrv, group="p") as producer,
            Consumer(cluster.namesrv, group="g", topics="Orders", start="first", listener=listen) as consumer,
        ):
            await consumer.assigned()
            await producer.send("Orders", b"x")
            await cluster.wait_for_async(lambda: seen == [0])
            await cluster.clock.advance_async(minutes=5)
            assert seen == [0, 1, 2]

    asyncio.run(story())


def test_clients_that_fell_silent_are_forgotten_when_asked(cluster: TestCluster) -> None:
    cluster.topic("Orders")
    with sync.Consumer(cluster.namesrv, group="g", topics="Orders"):
        cluster.wait_for(lambda: len(cluster.members("g")) == 1)
        cluster.clock.advance(minutes=3)
        assert len(cluster.members("g")) == 1

        def forgotten() -> bool:
            """A heartbeat may have come just before the look; the next jump finds the client silent again."""
            cluster.expire_clients()
            if any("RemoveMember g" in line for line in cluster.events()):
                return True
            cluster.clock.advance(minutes=3)
            return False

        cluster.wait_for(forgotten)


def test_after_its_end_it_says_so() -> None:
    with TestCluster() as cluster:
        pass
    with pytest.raises(UsageError, match="not running"):
        cluster.topic("Orders")
    with pytest.raises(ConnectFailed), sync.Admin(cluster.namesrv) as admin:
        admin.topics()
