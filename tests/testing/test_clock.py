"""The clock of a test cluster."""

from __future__ import annotations

import asyncio
import threading
import time

import pytest

from refmq import sync
from refmq.aio.consumer import Consumer
from refmq.aio.producer import Producer
from refmq.client.message import ReceivedMessage
from refmq.client.transaction import TransactionState
from refmq.testing import TestCluster
from refmq.testing.clock import STEP_MAX_S, Clock, OwnedLoop, Stirred, advance


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


def test_a_jump_ends_where_it_should_and_passes_every_timer_at_its_time() -> None:
    loop = OwnedLoop()
    fired: list[float] = []

    async def story() -> None:
        began = loop.time()

        def again() -> None:
            fired.append(loop.time() - began)
            loop.call_later(600, again)

        loop.call_later(600, again)
        await advance(loop, 3_600 + 300, Stirred(), 0.0)
        assert loop.time() - began == pytest.approx(3_900, abs=1)

    before_ms = loop.wall_ms()
    try:
        loop.run_until_complete(story())
        assert loop.wall_ms() - before_ms == pytest.approx(3_900_000, abs=2_000)
        assert fired == pytest.approx([600 * n for n in range(1, 7)], abs=STEP_MAX_S * 7)
    finally:
        loop.close()


def test_time_does_not_go_back() -> None:
    asked: list[tuple[float, float]] = []
    clock = Clock(lambda seconds, settle: asked.append((seconds, settle)))
    clock.advance(seconds=1, minutes=2, hours=3, settle=4)
    assert asked == [(10_921.0, 4)]
    with pytest.raises(ValueError, match="forward only"):
        clock.advance(minutes=-1)
    loop = OwnedLoop()
    now = loop.time()
    loop.jump_to(now - 100)
    assert loop.time() >= now
    loop.close()
