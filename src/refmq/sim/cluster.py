"""A simulated RocketMQ cluster: nameservers and brokers as nodes of a world, running the shells that also run for real.

    world = World(seed=7)
    cluster = Cluster(world, brokers=2)
    async def story() -> None:
        await cluster.start()
        cluster.brokers[0].crash(power=True)
        ...
    world.run(story())

Node names are broker names, so events of clients and brokers speak of the same queues.
"""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Final, TypeAlias

from refmq.errors import DiskError
from refmq.model.broker_config import BrokerConfig
from refmq.model.disk import Disk
from refmq.net.address import format_address
from refmq.net.broker_node import BrokerNode
from refmq.net.engines import EngineChoice, EngineSurroundings, open_engine
from refmq.net.limits import Limits
from refmq.net.nameserver import FileOn, Nameserver, run_nameserver
from refmq.net.process import stop_on_signals
from refmq.plane.engine import Engine
from refmq.sim.disk import Fault
from refmq.sim.world import Node, World
from refmq.store.config import StoreConfig

OpenEngine: TypeAlias = Callable[[Disk, StoreConfig, EngineSurroundings], Engine]

NAMESERVER_PORT: Final = 9876
BROKER_PORT: Final = 10911
STOP_TIMEOUT_S: Final = 10.0
START_TIMEOUT_S: Final = 60.0


class Cluster:
    """Nameservers `namesrv-1`... and masters `broker-a`, `broker-b`..., all down until started."""

    def __init__(
        self,
        world: World,
        *,
        nameservers: int = 1,
        brokers: int = 1,
        config: BrokerConfig | None = None,
        store_config: StoreConfig | None = None,
        limits: Limits | None = None,
        engine: OpenEngine = partial(open_engine, EngineChoice.REFERENCE),  # noqa: B008 - it is a constant
    ) -> None:
        """`engine` opens the engine of every broker, `limits` are those of its connections."""
        self.world = world
        self._open_engine = engine
        self._limits = limits
        self.config = config or BrokerConfig()
        self.store_config = store_config or StoreConfig()
        self.serving: dict[str, BrokerNode] = {}
        """The broker shells that serve at present, for stories that look inside."""
        self.failing_disks: set[str] = set()
        """Brokers whose disks were made to fail: that they end with a `DiskError` is then no surprise."""
        self.nameservers = [world.node(f"namesrv-{number + 1}", self._run_nameserver) for number in range(nameservers)]
        self.brokers = [world.node(f"broker-{chr(ord('a') + number)}", self._run_broker) for number in range(brokers)]

    @property
    def nameserver_addresses(self) -> list[str]:
        return [format_address(node.address, NAMESERVER_PORT) for node in self.nameservers]

    def broker_address(self, broker: Node) -> str:
        return format_address(broker.address, BROKER_PORT)

    async def start(self) -> None:
        """Starts everything and waits until every broker serves."""
        for node in (*self.nameservers, *self.brokers):
            node.start()
        for broker in self.brokers:
            await self.serves(broker)

    async def serves(self, broker: Node) -> None:
        """Waits until a broker serves."""
        async with asyncio.timeout(START_TIMEOUT_S):
            while broker.name not in self.serving or not broker.is_up:
                await asyncio.sleep(0.01)

    async def stop(self, node: Node) -> None:
        """A stop in good order, as by SIGTERM."""
        if node.is_up:
            node.signal(signal.SIGTERM)
            await node.ended()

    async def _run_nameserver(self, node: Node) -> None:
        nameserver = Nameserver(kv_file=FileOn(node.disk, "kvConfig.json"), record=node.recorder.record)
        stop = stop_on_signals()
        await nameserver.start("0.0.0.0", NAMESERVER_PORT)
        await run_nameserver(nameserver, stop, STOP_TIMEOUT_S)

    def _gone(self, name: str) -> None:
        self.serving.pop(name, None)

    async def _run_broker(self, node: Node) -> None:
        config = replace(
            self.config,
            broker_name=node.name,
            broker_ip1=node.address,
            listen_port=BROKER_PORT,
            namesrv_addr=";".join(self.nameserver_addresses),
        )
        seed = node.process.entropy.getrandbits(63)
        given = EngineSurroundings(limits=self._limits, recorder=node.recorder, seed=seed)
        engine = self._open_engine(node.disk, self.store_config, given)
        broker = BrokerNode(
            config, self.store_config, node.disk, engine, recorder=node.recorder, seed=seed, survives_bugs=False
        )
        node.process.on_death.append(lambda: self._gone(node.name))
        try:
            await self._serve(node, broker)
        except DiskError as error:
            if node.name not in self.failing_disks:
                raise
            self.world.note(node.name, "disk failed", error)

    async def _serve(self, node: Node, broker: BrokerNode) -> None:
        stop = stop_on_signals()
        await broker.start("0.0.0.0")
        self.serving[node.name] = broker
        broker.failure.add_done_callback(lambda _: stop.set())
        await stop.wait()
        failure = broker.failure.result() if broker.failure.done() else None
        await broker.stop(STOP_TIMEOUT_S)
        if failure is not None:
            raise failure

    def fill_disk(self, broker: Node, effects: int = 0) -> None:
        """A write of a broker that needs room finds none, the first after so many effects of its disk; the broker may
        end because of it."""
        self._inject(broker, Fault.DISK_FULL, effects)

    def fail_flush(self, broker: Node, effects: int = 0) -> None:
        """The first flush of a broker's disk after this many effects fails; the broker may end because of it."""
        self._inject(broker, Fault.FLUSH_FAILS, effects)

    def _inject(self, broker: Node, fault: Fault, effects: int) -> None:
        self.failing_disks.add(broker.name)
        disk = broker.simulated_disk
        disk.inject(fault, disk.operations + effects)
