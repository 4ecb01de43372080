"""A whole nameserver in the simulated world: real connections and timers of the shell, two minutes in no time."""

from __future__ import annotations

import asyncio
import contextlib
import json
import signal
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from refmq.errors import CorruptRecord, NetworkError
from refmq.model.step import Event
from refmq.nameserver.serve import Asked, decode_registration, serve_registration
from refmq.nameserver.tables import ChannelId
from refmq.net.client import Client
from refmq.net.connection import Answer, Connection
from refmq.net.nameserver import DECODED_HERE_BYTES_MAX, FileOn, Nameserver, run_nameserver
from refmq.net.process import stop_on_signals
from refmq.protocol.bodies.config import DataVersion, TopicConfig, TopicConfigSerializeWrapper
from refmq.protocol.bodies.registration import RegisterBrokerBody, encode_register_broker_body
from refmq.protocol.codes import RequestCode, ResponseCode
from refmq.protocol.command import RemotingCommand, request
from refmq.sim.disk import Fault
from refmq.sim.world import Node, World

PORT = 9876
REGISTER_PERIOD_S = 30.0
KV = "kvConfig.json"


async def nameserver(node: Node) -> None:
    stop = stop_on_signals()
    server = Nameserver(kv_file=FileOn(node.disk, KV))
    await server.start("0.0.0.0", PORT)
    await run_nameserver(server, stop, timeout_s=5)


def registration(name: str, counter: int = 1, *, more_topics: int = 0) -> RemotingCommand:
    names = ("T1", f"on-{name}", *(f"one-of-many-{number}" for number in range(more_topics)))
    topics = {topic: TopicConfig(topic_name=topic) for topic in names}
    wrapper = TopicConfigSerializeWrapper(
        data_version=DataVersion(timestamp=1, counter=counter), topic_config_table=topics
    )
    body = encode_register_broker_body(RegisterBrokerBody(topic_config_serialize_wrapper=wrapper))
    fields = {
        "brokerName": name,
        "brokerAddr": f"{name}:10911",
        "clusterName": "C",
        "haServerAddr": f"{name}:10912",
        "brokerId": "0",
    }
    return request(RequestCode.REGISTER_BROKER, fields, body)


def broker_at(*nameservers: str) -> Callable[[Node], Coroutine[Any, Any, None]]:
    """The main of a node that registers every 30 seconds with every nameserver, as a broker does."""

    async def main(node: Node) -> None:
        client = Client()
        try:
            while True:
                for address in nameservers:
                    with contextlib.suppress(NetworkError):  # the next period tries again, as upstream does
                        await client.invoke(f"{address}:{PORT}", registration(node.name), 6)
                await asyncio.sleep(REGISTER_PERIOD_S)
        finally:
            await client.close()

    return main


async def idle(node: Node) -> None:
    await asyncio.Event().wait()


class Asker:
    """A node of the world that asks nameservers."""

    def __init__(self, world: World) -> None:
        self.node = world.node("asker", idle)
        self.node.start()
        self.client: Client | None = None

    async def ask(self, code: int, fields: dict[str, str] | None = None, *, at: str = "ns") -> RemotingCommand:
        async def inside() -> RemotingCommand:
            self.client = self.client or Client()
            return await self.client.invoke(f"{at}:{PORT}", request(code, fields), 3)

        return await self.node.call(inside)

    async def brokers_of(self, topic: str, *, at: str = "ns") -> list[str]:
        answer = await self.ask(RequestCode.GET_ROUTEINFO_BY_TOPIC, {"topic": topic}, at=at)
        if answer.code == ResponseCode.TOPIC_NOT_EXIST:
            return []
        assert answer.code == 0
        return [data["brokerName"] for data in json.loads(answer.body)["brokerDatas"]]


@pytest.mark.parametrize("seed", range(5))
def test_a_silent_broker_expires_after_two_minutes_and_comes_back(seed: int) -> None:
    world = World(seed=seed)
    ns, a = world.node("ns", nameserver), world.node("a", broker_at("ns"))

    async def story() -> None:
        asker = Asker(world)
        ns.start()
        a.start()
        await asyncio.sleep(1)
        assert await asker.brokers_of("T1") == ["a"]
        a.pause()  # the connection stays, nothing is said
        await asyncio.sleep(118)
        assert await asker.brokers_of("T1") == ["a"], "119 seconds are not too long"
        await asyncio.sleep(15)  # the scan comes every ten seconds
        assert await asker.brokers_of("T1") == []
        a.resume()
        await asyncio.sleep(REGISTER_PERIOD_S + 5)
        assert await asker.brokers_of("T1") == ["a"]

    world.run(story())


def test_a_broker_that_talks_and_does_not_register_expires_and_is_cut_off() -> None:
    """The connection is never idle here, so it is the scan that finds the broker."""
    world = World(seed=2)
    closed: list[str | None] = []

    async def forgetful(node: Node) -> None:
        client = Client()
        await client.invoke(f"ns:{PORT}", registration(node.name), 6)
        connection = await client.connect(f"ns:{PORT}", 3)
        connection.on_close(lambda gone: closed.append(gone.close_reason))
        while True:
            await asyncio.sleep(10)
            await client.invoke(f"ns:{PORT}", request(RequestCode.GET_BROKER_CLUSTER_INFO), 3)

    ns, a = world.node("ns", nameserver), world.node("a", forgetful)

    async def story() -> None:
        asker = Asker(world)
        ns.start()
        await asyncio.sleep(0.5)
        a.start()
        await asyncio.sleep(119)
        assert await asker.brokers_of("T1") == ["a"]
        assert closed == []
        await asyncio.sleep(14)
        assert await asker.brokers_of("T1") == []
        assert closed == ["the peer closed"]

    world.run(story())


@pytest.mark.parametrize("seed", range(5))
def test_a_lost_connection_takes_its_broker_at_once_and_no_other(seed: int) -> None:
    world = World(seed=seed)
    ns = world.node("ns", nameserver)
    a, b = world.node("a", broker_at("ns")), world.node("b", broker_at("ns"))

    async def story() -> None:
        asker = Asker(world)
        for node in (ns, a, b):
            node.start()
        await asyncio.sleep(1)
        assert await asker.brokers_of("T1") == ["a", "b"]
        a.crash()
        await asyncio.sleep(1)
        assert await asker.brokers_of("T1") == ["b"]
        assert await asker.brokers_of("on-a") == []
        a.start()
        await asyncio.sleep(1)
        assert await asker.brokers_of("T1") == ["a", "b"]

    world.run(story())


def long_registration_of_one_who_dies(seed: int) -> None:
    """A broker with thousands of topics dies before, while or after its registration is read, and comes back."""
    world = World(seed=seed)
    command = registration("a", more_topics=2000)
    assert len(command.body) > DECODED_HERE_BYTES_MAX

    async def hasty(node: Node) -> None:
        await (await Client().connect(f"ns:{PORT}", 3)).request(command, 6)
        await asyncio.Event().wait()

    ns, a = world.node("ns", nameserver), world.node("a", hasty)

    async def story() -> None:
        asker = Asker(world)
        ns.start()
        await asyncio.sleep(0.5)
        a.start()
        await asyncio.sleep(0.000_25 * seed)
        a.crash()
        await asyncio.sleep(1)
        assert await asker.brokers_of("T1") == [], "a ghost"
        a.start()
        await asyncio.sleep(1)
        assert await asker.brokers_of("one-of-many-1999") == ["a"]

    world.run(story())


@pytest.mark.parametrize("seed", range(0, 80, 4))
def test_a_long_registration_is_read_apart_and_leaves_no_ghost_when_its_sender_is_gone(seed: int) -> None:
    long_registration_of_one_who_dies(seed)


def test_a_ghost_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    async def without_a_look(self: Nameserver, connection: Connection, command: RemotingCommand) -> Answer:
        broker = await asyncio.get_running_loop().run_in_executor(None, decode_registration, command)
        asked = Asked(command, ChannelId(connection.number), self._now_ms())
        step = serve_registration(self.state, asked, broker)
        self._take(step)
        return await self._perform(step.effects, command)

    monkeypatch.setattr(Nameserver, "_serve_long_registration", without_a_look)

    def any_of_them() -> None:
        for seed in range(80):
            long_registration_of_one_who_dies(seed)

    with pytest.raises(AssertionError, match="a ghost"):
        any_of_them()


def test_a_power_loss_is_silence_and_expires() -> None:
    world = World(seed=3)
    ns, a = world.node("ns", nameserver), world.node("a", broker_at("ns"))

    async def story() -> None:
        asker = Asker(world)
        ns.start()
        a.start()
        await asyncio.sleep(1)
        a.crash(power=True)
        await asyncio.sleep(60)
        assert await asker.brokers_of("T1") == ["a"]
        await asyncio.sleep(75)
        assert await asker.brokers_of("T1") == []

    world.run(story())


def test_brokers_register_again_after_a_restart_of_the_nameserver() -> None:
    world = World(seed=4)
    ns, a = world.node("ns", nameserver), world.node("a", broker_at("ns"))

    async def story() -> None:
        asker = Asker(world)
        ns.start()
        a.start()
        await asyncio.sleep(1)
        ns.crash()
        await asyncio.sleep(1)
        ns.start()
        await asyncio.sleep(1)
        assert await asker.brokers_of("T1") == [], "routes are not persisted"
        await asyncio.sleep(REGISTER_PERIOD_S)
        assert await asker.brokers_of("T1") == ["a"]

    world.run(story())


def test_two_nameservers_know_the_same_without_talking_to_each_other() -> None:
    world = World(seed=5)
    one, two = world.node("one", nameserver), world.node("two", nameserver)
    a = world.node("a", broker_at("one", "two"))

    async def story() -> None:
        asker = Asker(world)
        for node in (one, two, a):
            node.start()
        await asyncio.sleep(1)
        for at in ("one", "two"):
            assert await asker.brokers_of("T1", at=at) == ["a"]
        world.network.cut("a", "two")
        await asyncio.sleep(140)
        assert await asker.brokers_of("T1", at="one") == ["a"]
        assert await asker.brokers_of("T1", at="two") == []
        world.network.heal()
        await asyncio.sleep(REGISTER_PERIOD_S + 10)
        for at in ("one", "two"):
            assert await asker.brokers_of("T1", at=at) == ["a"]

    world.run(story())


def test_a_jump_of_the_wall_clock_expires_nobody() -> None:
    world = World(seed=6, strict=True)  # strict: nothing of the shell may reach out of the simulated world
    ns, a = world.node("ns", nameserver), world.node("a", broker_at("ns"))

    async def story() -> None:
        asker = Asker(world)
        ns.start()
        a.start()
        await asyncio.sleep(1)
        ns.jump_clock(3_600_000)
        await asyncio.sleep(20)
        assert await asker.brokers_of("T1") == ["a"]

    world.run(story())


@pytest.mark.parametrize("power", [False, True])
@pytest.mark.parametrize("effects", range(0, 24, 3))
def test_an_acknowledged_value_survives_a_crash_at_any_moment(power: bool, effects: int) -> None:
    world = World(seed=effects)
    ns = world.node("ns", nameserver)

    async def story() -> None:
        asker = Asker(world)
        ns.start()
        await asyncio.sleep(1)
        acknowledged: list[str] = []
        ns.crash_after(effects, power=power)
        for number in range(6):
            fields = {"namespace": "n", "key": f"k{number}", "value": "v"}
            try:
                answer = await asker.ask(RequestCode.PUT_KV_CONFIG, fields)
            except NetworkError:
                break
            assert answer.code == 0
            acknowledged.append(f"k{number}")
        if ns.is_up:
            ns.crash(power=power)
        await asyncio.sleep(1)
        ns.start()
        await asyncio.sleep(1)
        asker.client = None  # its connection may be to the life before, without knowing
        for key in acknowledged:
            answer = await asker.ask(RequestCode.GET_KV_CONFIG, {"namespace": "n", "key": key})
            assert (answer.code, dict(answer.fields)) == (0, {"value": "v"})

    world.run(story())


@pytest.mark.parametrize("seed", range(4))
def test_values_that_are_put_at_the_same_time_are_all_kept(seed: int) -> None:
    world = World(seed=seed)
    ns = world.node("ns", nameserver)

    async def story() -> None:
        asker = Asker(world)
        ns.start()
        await asyncio.sleep(1)
        puts = [{"namespace": "n", "key": f"k{number}", "value": "v"} for number in range(6)]
        await asker.ask(RequestCode.PUT_KV_CONFIG, puts[0])  # the connection is there
        answers = await asyncio.gather(*(asker.ask(RequestCode.PUT_KV_CONFIG, fields) for fields in puts))
        assert [answer.code for answer in answers] == [0] * 6
        ns.crash(power=True)
        await asyncio.sleep(1)
        ns.start()
        await asyncio.sleep(1)
        asker.client = None
        for fields in puts:
            answer = await asker.ask(RequestCode.GET_KV_CONFIG, fields)
            assert (answer.code, dict(answer.fields)) == (0, {"value": "v"})

    world.run(story())


def test_a_value_that_cannot_be_kept_is_not_acknowledged() -> None:
    world = World(seed=8)
    ns = world.node("ns", nameserver)

    async def story() -> None:
        asker = Asker(world)
        ns.start()
        await asyncio.sleep(1)
        ns.simulated_disk.inject(Fault.DISK_FULL)
        fields = {"namespace": "n", "key": "k", "value": "v"}
        answer = await asker.ask(RequestCode.PUT_KV_CONFIG, fields)
        assert answer.code == 1
        assert answer.remark is not None
        assert answer.remark.startswith("changed only until the next start: cannot")
        assert (await asker.ask(RequestCode.PUT_KV_CONFIG, fields)).code == 0

    world.run(story())


def test_a_signal_stops_the_nameserver() -> None:
    world = World(seed=9)
    ns = world.node("ns", nameserver)

    async def story() -> None:
        asker = Asker(world)
        ns.start()
        await asyncio.sleep(1)
        assert (await asker.ask(RequestCode.GET_BROKER_CLUSTER_INFO)).code == 0
        ns.signal(signal.SIGTERM)
        await asyncio.wait_for(ns.ended(), 10)
        assert ns.failure is None

    world.run(story())


def test_a_damaged_file_keeps_the_nameserver_from_starting() -> None:
    world = World(seed=10, fail_on_exit=False)
    ns = world.node("ns", nameserver)

    async def story() -> None:
        ns.simulated_disk.put_contents({KV: b"{ damaged"})
        ns.start()
        await ns.ended()
        assert isinstance(ns.failure, CorruptRecord)

    world.run(story())


def test_every_step_is_recorded() -> None:
    world = World(seed=11)
    events: list[Event] = []

    async def recorded(node: Node) -> None:
        server = Nameserver(record=events.append)
        await server.start("0.0.0.0", PORT)
        await asyncio.Event().wait()

    ns, a = world.node("ns", recorded), world.node("a", broker_at("ns"))

    async def story() -> None:
        ns.start()
        a.start()
        await asyncio.sleep(1)
        a.crash()
        await asyncio.sleep(1)

    world.run(story())
    assert [(event.action, event.actor) for event in events] == [
        ("RegisterBroker", "a:10911"),
        ("CloseBrokerChannel", ""),
    ]
