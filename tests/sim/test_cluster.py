"""A first cluster: a nameserver, two brokers and a client on the wire, through registration, expiry, crash, restart."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

from refmq.net.client import Client
from refmq.protocol.bodies.codec import decode_body
from refmq.protocol.bodies.route import ClusterInfo
from refmq.protocol.codes import RequestCode, ResponseCode
from refmq.protocol.command import request
from refmq.sim.cluster import Cluster
from refmq.sim.world import Node, World
from tests.sim.echo import idle

Story = Callable[[World, Cluster, Callable[[], Awaitable[list[str]]]], Awaitable[Any]]


def run(story: Story, *, brokers: int = 2, seed: int = 1) -> Any:
    world = World(seed)
    cluster = Cluster(world, brokers=brokers)
    observer = world.node("observer", idle)

    async def known() -> list[str]:
        """The brokers that the nameserver knows, sorted."""

        async def ask() -> list[str]:
            client = Client()
            try:
                answer = await client.invoke(
                    cluster.nameserver_addresses[0], request(RequestCode.GET_BROKER_CLUSTER_INFO), 3
                )
                assert answer.code == ResponseCode.SUCCESS
                return sorted(decode_body(ClusterInfo, answer.body).broker_addr_table)
            finally:
                await client.close()

        return await observer.call(ask)

    async def whole() -> Any:
        await cluster.start()
        observer.start()
        await asyncio.sleep(0.1)
        return await story(world, cluster, known)

    return world.run(whole())


def test_brokers_register_when_they_start_and_say_good_bye_when_they_stop() -> None:
    async def story(world: World, cluster: Cluster, known: Callable[[], Awaitable[list[str]]]) -> list[list[str]]:
        seen = [await known()]
        await cluster.stop(cluster.brokers[0])
        seen.append(await known())
        cluster.brokers[0].start()
        await cluster.serves(cluster.brokers[0])
        seen.append(await known())
        return seen

    assert run(story) == [["broker-a", "broker-b"], ["broker-b"], ["broker-a", "broker-b"]]


def test_a_crashed_broker_is_forgotten_when_its_connection_breaks() -> None:
    async def story(world: World, cluster: Cluster, known: Callable[[], Awaitable[list[str]]]) -> list[str]:
        cluster.brokers[1].crash()
        await asyncio.sleep(1)
        return await known()

    assert run(story) == ["broker-a"]


def test_a_broker_that_lost_its_power_is_forgotten_after_two_minutes() -> None:
    async def story(world: World, cluster: Cluster, known: Callable[[], Awaitable[list[str]]]) -> list[list[str]]:
        await asyncio.sleep(30)
        cluster.brokers[1].crash(power=True)
        await asyncio.sleep(60)
        seen = [await known()]
        await asyncio.sleep(90)
        seen.append(await known())
        cluster.brokers[1].start()
        await cluster.serves(cluster.brokers[1])
        seen.append(await known())
        return seen

    assert run(story) == [["broker-a", "broker-b"], ["broker-a"], ["broker-a", "broker-b"]]


def test_a_restarted_nameserver_learns_of_the_brokers_again() -> None:
    async def story(world: World, cluster: Cluster, known: Callable[[], Awaitable[list[str]]]) -> list[list[str]]:
        nameserver = cluster.nameservers[0]
        nameserver.crash()
        nameserver.start()
        await asyncio.sleep(1)
        seen = [await known()]
        await asyncio.sleep(60)
        seen.append(await known())
        return seen

    assert run(story) == [[], ["broker-a", "broker-b"]]


def test_a_broker_behind_a_cut_is_forgotten_and_comes_back_when_it_is_healed() -> None:
    async def story(world: World, cluster: Cluster, known: Callable[[], Awaitable[list[str]]]) -> list[list[str]]:
        world.network.cut("broker-a", "namesrv-1")
        await asyncio.sleep(150)
        seen = [await known()]
        world.network.heal()
        await asyncio.sleep(60)
        seen.append(await known())
        return seen

    assert run(story) == [["broker-b"], ["broker-a", "broker-b"]]


def test_a_minute_of_an_idle_cluster_is_cheap_in_callbacks() -> None:
    """Speed is measured in bench/; what can be counted is that a minute is some thousands of callbacks and no more."""

    async def story(world: World, cluster: Cluster, known: Callable[[], Awaitable[list[str]]]) -> int:
        before = world.loop.callbacks_run
        await asyncio.sleep(60)
        return world.loop.callbacks_run - before

    assert run(story) < 20_000


def test_every_node_records_its_own_trace() -> None:
    async def story(world: World, cluster: Cluster, known: Callable[[], Awaitable[list[str]]]) -> dict[str, set[str]]:
        return {node.name: _actions(node) for node in (*cluster.nameservers, *cluster.brokers)}

    actions = run(story)
    assert "RegisterBroker" in actions["namesrv-1"]
    assert {"StartStore", "FinishRecovery"} <= actions["broker-a"]


def _actions(node: Node) -> set[str]:
    return {recorded.event.action for recorder in node.recorders for recorded in recorder.events}
