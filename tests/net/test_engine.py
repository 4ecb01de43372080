"""An engine on a disk that becomes full or fails: the right answers, and nothing acknowledged is lost."""

from __future__ import annotations

from dataclasses import replace

import pytest

from refmq.errors import DiskError, DiskFailed
from refmq.net.broker_node import BrokerNode
from refmq.net.client import Client
from refmq.net.engine import reference_engine
from refmq.protocol.codes import RequestCode, ResponseCode
from refmq.protocol.command import request
from refmq.sim.disk import Fault
from refmq.store.config import FlushMode
from tests.net.broker_requests import TIMEOUT_S, commit_request, create_topic_request, read_queue, send_request
from tests.net.broker_support import FREE_PORT, SMALL_STORE, memory_disk, serving_broker
from tests.net.support import asking, run

STORE = replace(SMALL_STORE, log_file_bytes=64 << 10, queue_file_bytes=2_000, index_slots=100, index_entries=400)


async def fill(client: Client, address: str) -> list[bytes]:
    """Sends until the broker refuses for want of room; says what was acknowledged."""
    acknowledged = []
    for number in range(5_000):
        body = b"%d" % number + bytes(1_000)
        answer = await client.invoke(address, send_request("T", body), TIMEOUT_S)
        if answer.code == ResponseCode.SUCCESS:
            acknowledged.append(body)
            continue
        remark = (answer.remark or "")[:40]
        assert (answer.code, remark) in (
            (ResponseCode.SERVICE_NOT_AVAILABLE, "service not available now. It may be cau"),
            (ResponseCode.SYSTEM_ERROR, "create mapped file failed, server is bus"),
        )
        return acknowledged
    raise AssertionError("the disk did not become full")


@pytest.mark.parametrize("mode", FlushMode)
def test_sends_to_a_full_disk_are_refused_and_nothing_acknowledged_is_lost(mode: FlushMode) -> None:
    async def story() -> None:
        disk = memory_disk(1 << 20)
        store = replace(STORE, flush_mode=mode, disk_full_percent=100, clean_forcibly=False)
        async with serving_broker(FREE_PORT, store, disk) as (node, address), asking() as client:
            acknowledged = await fill(client, address)
            assert acknowledged
            # Everything else is still served.
            assert [record.body for record in await read_queue(client, address, "T")] == acknowledged
            assert (await client.invoke(address, commit_request("T", 0, 7), TIMEOUT_S)).code == ResponseCode.SUCCESS
            info = await client.invoke(address, request(RequestCode.GET_BROKER_RUNTIME_INFO), TIMEOUT_S)
            assert info.code == ResponseCode.SUCCESS
            # A topic that cannot be written down is not created, and a send to it is refused.
            answer = await client.invoke(address, create_topic_request("New", 4), TIMEOUT_S)
            new = await client.invoke(address, send_request("New", b"x"), TIMEOUT_S)
            assert new.code != ResponseCode.SUCCESS or answer.code == ResponseCode.SUCCESS
            assert not node.failure.done()
            disk.capacity_bytes = 8 << 20
            sent = send_request("T", b"again")
            while (await client.invoke(address, sent, TIMEOUT_S)).code != ResponseCode.SUCCESS:
                pass  # until the store has noticed
            bodies = [record.body for record in await read_queue(client, address, "T")]
            assert bodies == [*acknowledged, b"again"]
        async with serving_broker(FREE_PORT, store, disk) as (_, address), asking() as client:
            bodies = [record.body for record in await read_queue(client, address, "T")]
            assert bodies == [*acknowledged, b"again"]

    run(story())


def test_a_flush_that_fails_acknowledges_nothing_and_ends_the_broker() -> None:
    async def story() -> None:
        disk, store = memory_disk(), replace(STORE, flush_mode=FlushMode.SYNC)
        node = BrokerNode(FREE_PORT, store, disk, reference_engine(disk, store))
        host, port = await node.start("127.0.0.1")
        async with asking() as client:
            address = f"{host}:{port}"
            assert (await client.invoke(address, send_request("T", b"kept"), TIMEOUT_S)).code == ResponseCode.SUCCESS
            disk.inject(Fault.FLUSH_FAILS)
            answer = await client.invoke(address, send_request("T", b"in doubt"), TIMEOUT_S)
            assert answer.code == ResponseCode.FLUSH_DISK_TIMEOUT  # stored, and nobody promises more
            after = await client.invoke(address, send_request("T", b"refused"), TIMEOUT_S)
            assert after.code == ResponseCode.SERVICE_NOT_AVAILABLE
            assert isinstance(await node.failure, DiskFailed)
            with pytest.raises(DiskError):
                await node.stop(1)
        disk = disk.after_process_crash()
        async with serving_broker(FREE_PORT, store, disk) as (_, address), asking() as client:
            bodies = [record.body for record in await read_queue(client, address, "T")]
            assert bodies[0] == b"kept" and b"refused" not in bodies

    run(story())
