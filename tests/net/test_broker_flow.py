"""Flow control over a socket: what is refused is answered with SYSTEM_BUSY and is not stored, the rest is."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest

from refmq.net.clock import wall_ms
from refmq.plane.flow import Kind
from refmq.protocol.bodies.codec import decode_body
from refmq.protocol.bodies.config import KVTable
from refmq.protocol.codes import RequestCode, ResponseCode
from refmq.protocol.command import request
from refmq.sim.disk import SimulatedDisk
from refmq.store.config import FlushMode
from tests.net.broker_requests import TIMEOUT_S, max_offset, pull_request, send_request
from tests.net.broker_support import FREE_PORT, SMALL_STORE, serving_broker
from tests.net.support import asking, run, until


def test_sends_beyond_the_capacity_are_refused_while_a_flush_takes_its_time() -> None:
    async def story() -> None:
        may_flush = asyncio.Event()
        may_flush.set()

        async def on_flush() -> None:
            await may_flush.wait()

        disk = SimulatedDisk(clock=wall_ms, on_flush=on_flush)
        store = replace(SMALL_STORE, flush_mode=FlushMode.SYNC)
        config = replace(FREE_PORT, send_thread_pool_queue_capacity=3, broker_fast_failure_enable=False)
        async with serving_broker(config, store, disk) as (node, address), asking() as client:
            await client.invoke(address, send_request("T", b"first"), TIMEOUT_S)
            may_flush.clear()
            waiting = [
                asyncio.create_task(client.invoke(address, send_request("T", b"slow"), TIMEOUT_S)) for _ in range(3)
            ]
            await until(lambda: node.engine.flow.size(Kind.SEND) == 3)
            answer = await client.invoke(address, send_request("T", b"too many"), TIMEOUT_S)
            assert (answer.code, answer.remark) == (
                ResponseCode.SYSTEM_BUSY,
                "[OVERLOAD]system busy, start flow control for a while",
            )
            assert (await client.invoke(address, pull_request("T"), TIMEOUT_S)).code == ResponseCode.SUCCESS
            info = await client.invoke(address, request(RequestCode.GET_BROKER_RUNTIME_INFO), TIMEOUT_S)
            assert decode_body(KVTable, info.body).table["sendThreadPoolQueueSize"] == "3"
            may_flush.set()
            assert [(await task).code for task in waiting] == [ResponseCode.SUCCESS] * 3
            assert node.engine.flow.size(Kind.SEND) == 0
            assert (await client.invoke(address, send_request("T", b"again"), TIMEOUT_S)).code == ResponseCode.SUCCESS
            assert await max_offset(client, address, "T", 0) == 5

    run(story())


@pytest.mark.parametrize("enabled", [True, False])
def test_sends_that_waited_too_long_for_their_turn_are_refused_and_not_stored(enabled: bool) -> None:
    async def story() -> None:
        config = replace(FREE_PORT, wait_time_mills_in_send_queue=1, broker_fast_failure_enable=enabled)
        async with serving_broker(config) as (_, address), asking() as client:
            count = 1_000  # far more than one turn of the connection
            answers = await asyncio.gather(
                *(client.invoke(address, send_request("T", b"x"), TIMEOUT_S) for _ in range(count))
            )
            stored = sum(answer.code == ResponseCode.SUCCESS for answer in answers)
            refused = [answer for answer in answers if answer.code == ResponseCode.SYSTEM_BUSY]
            assert stored + len(refused) == count
            assert await max_offset(client, address, "T", 0) == stored
            assert bool(refused) == enabled
            for answer in refused:
                assert (answer.remark or "").startswith("[TIMEOUT_CLEAN_QUEUE]broker busy, start flow control")

    run(story())
