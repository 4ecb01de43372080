"""A broker on its loop: its tables, its timers, its start and its end."""

from __future__ import annotations

import asyncio
import contextlib
from dataclasses import replace
from functools import partial

import pytest

from refmq.broker.delay import Turn
from refmq.errors import DiskError, DiskFull, FlushFailed
from refmq.model.ids import TimestampMs
from refmq.net.broker_node import BrokerNode
from refmq.net.engine import reference_engine
from refmq.protocol.codes import ResponseCode
from refmq.sim.disk import Fault, SimulatedDisk
from tests.net.broker_requests import TIMEOUT_S, send_request
from tests.net.broker_support import FREE_PORT, SMALL_STORE, memory_disk, serving_broker
from tests.net.support import asking, run

STORE = replace(SMALL_STORE, log_file_bytes=64 << 10, queue_file_bytes=2_000, index_slots=100, index_entries=400)


def test_a_table_that_cannot_be_flushed_ends_the_broker() -> None:
    """Otherwise it would go on and refuse whatever needs a new topic, group or offset, for ever."""

    async def story() -> None:
        disk = memory_disk()
        node = BrokerNode(FREE_PORT, STORE, disk, reference_engine(disk, STORE))
        host, port = await node.start("127.0.0.1")
        async with asking() as client:
            disk.inject(Fault.FLUSH_FAILS)
            answer = await client.invoke(f"{host}:{port}", send_request("new", b"lost"), TIMEOUT_S)
            assert answer.code != ResponseCode.SUCCESS
            assert isinstance(await node.failure, FlushFailed)
        with contextlib.suppress(DiskError):
            await node.stop(1)
        async with serving_broker(FREE_PORT, STORE, disk.after_process_crash()) as (_, address), asking() as client:
            assert (await client.invoke(address, send_request("new", b"kept"), TIMEOUT_S)).code == ResponseCode.SUCCESS

    run(story())


def test_a_stop_writes_every_table_that_can_be_written() -> None:
    async def story() -> None:
        disk = memory_disk()
        node = BrokerNode(FREE_PORT, STORE, disk, reference_engine(disk, STORE))
        host, port = await node.start("127.0.0.1")
        async with asking() as client:
            sent = send_request("T", b"late", properties={"DELAY": "1"})
            assert (await client.invoke(f"{host}:{port}", sent, TIMEOUT_S)).code == ResponseCode.SUCCESS
            while not node.broker.delay.cursors[1]:
                await asyncio.sleep(0.01)
        disk.inject(Fault.DISK_FULL)  # strikes the first table, that of the offsets
        with pytest.raises(DiskFull):
            await node.stop(1)
        assert not disk.exists("config/consumerOffset.json")
        assert disk.exists("config/delayOffset.json")

    run(story())


def test_a_stop_writes_a_group_whose_first_use_was_just_now() -> None:
    async def story() -> None:
        disk = memory_disk()
        node = BrokerNode(FREE_PORT, STORE, disk, reference_engine(disk, STORE))
        await node.start("127.0.0.1")
        assert node.broker.group("new") is not None
        await node.stop(1)  # cancels the save that the first use began
        assert b'"new"' in disk.contents()["config/subscriptionGroup.json"]

    run(story())


def test_whoever_shares_a_save_that_fails_is_saved_by_the_next_in_line() -> None:
    async def waits() -> None:
        await asyncio.sleep(0)

    async def story() -> None:
        disk = SimulatedDisk(clock=lambda: TimestampMs(0), on_flush=waits)
        node = BrokerNode(FREE_PORT, STORE, disk, reference_engine(disk, STORE))
        saves = [asyncio.ensure_future(node.save("table.json", lambda: b"0"))]
        await asyncio.sleep(0)  # it flushes
        saves += [asyncio.ensure_future(node.save("table.json", partial(bytes, body))) for body in (b"1", b"2")]
        await asyncio.sleep(0)  # the second takes what the third wants, and finds no room
        disk.inject(Fault.DISK_FULL)
        outcomes = await asyncio.gather(*saves, return_exceptions=True)
        assert [type(outcome) for outcome in outcomes] == [type(None), DiskFull, type(None)]
        assert disk.contents()["config/table.json"] == b"2", "who was told that it is saved can rely on it"

    run(story())


def test_what_a_timer_cannot_bear_is_said_and_its_next_turn_comes(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("refmq.net.broker_node.DELIVER_AGAIN_S", 0.01)

    async def story() -> None:
        disk = memory_disk()
        node = BrokerNode(FREE_PORT, STORE, disk, reference_engine(disk, STORE))
        host, port = await node.start("127.0.0.1")
        honest = node.broker.delay.deliver_due
        troubles = [RecursionError("deep"), AssertionError("odd"), ValueError("large")]

        async def deliver_due(now_ms: TimestampMs) -> Turn:
            if troubles:
                raise troubles.pop(0)
            return await honest(now_ms)

        monkeypatch.setattr(node.broker.delay, "deliver_due", deliver_due)
        async with asking() as client:
            sent = send_request("T", b"late", properties={"DELAY": "1"})
            assert (await client.invoke(f"{host}:{port}", sent, TIMEOUT_S)).code == ResponseCode.SUCCESS
            while not node.broker.delay.cursors[1]:
                await asyncio.sleep(0.01)
        assert not node.failure.done()
        await node.stop(1)

    run(story())
    said = [record.getMessage() for record in caplog.records if "hit a bug in refmq" in record.getMessage()]
    assert len(said) == 3
    assert "the delivery of delayed messages" in said[0]
    assert "RecursionError: deep" in said[0]


def test_who_looks_for_bugs_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    async def story() -> None:
        disk = memory_disk()
        node = BrokerNode(FREE_PORT, STORE, disk, reference_engine(disk, STORE), survives_bugs=False)
        await node.start("127.0.0.1")

        async def deliver_due(now_ms: TimestampMs) -> Turn:
            raise AssertionError("odd")

        monkeypatch.setattr(node.broker.delay, "deliver_due", deliver_due)
        node._delayed.set()
        assert isinstance(await node.failure, AssertionError)
        await node.stop(1)

    run(story())
