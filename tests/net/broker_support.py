"""A broker on a real socket, inside the test's own process."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from refmq.model.broker_config import BrokerConfig
from refmq.model.disk import Disk
from refmq.net.acl_files import AclFiles
from refmq.net.broker_node import BrokerNode
from refmq.net.broker_registration import UNSIGNED, Signing
from refmq.net.clock import wall_ms
from refmq.net.engines import EngineSurroundings
from refmq.net.limits import Limits
from refmq.net.tls import ServerTls
from refmq.sim.disk import SimulatedDisk
from refmq.store import StoreConfig
from tests.engines import disk_for_engine, engine_for

SMALL_STORE = StoreConfig(log_file_bytes=16 << 20, queue_file_bytes=20_000, index_slots=1_000, index_entries=4_000)
FREE_PORT = BrokerConfig(listen_port=0)


def memory_disk(capacity_bytes: int | None = None) -> SimulatedDisk:
    if capacity_bytes is None:
        return SimulatedDisk(clock=wall_ms)
    return SimulatedDisk(clock=wall_ms, capacity_bytes=capacity_bytes)


@asynccontextmanager
async def serving_broker(
    config: BrokerConfig = FREE_PORT,
    store_config: StoreConfig = SMALL_STORE,
    disk: Disk | None = None,
    *,
    limits: Limits | None = None,
    tls: ServerTls | None = None,
    accounts: AclFiles | None = None,
    signing: Signing = UNSIGNED,
    stop_timeout_s: float = 5.0,
) -> AsyncIterator[tuple[BrokerNode, str]]:
    """A broker on a free port and its address, stopped in the end."""
    disk = disk or disk_for_engine()
    engine = engine_for(disk, store_config, EngineSurroundings(limits=limits, tls=tls))
    node = BrokerNode(config, store_config, disk, engine, accounts=accounts, signing=signing)
    host, port = await node.start("127.0.0.1")
    try:
        yield node, f"{host}:{port}"
    finally:
        await node.stop(stop_timeout_s)
