"""The same history told to the real nameserver and to ours: every answer must be the same.

Brokers here are connections of refmq's own client. Histories are values that Hypothesis makes and shrinks. What is done
otherwise on purpose is not generated: the first registration of a master has at least two topics, and one connection
registers one address. Where upstream's order is that of a hash map, answers are compared without it.
"""

from __future__ import annotations

import asyncio
import itertools
import json
import zlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from interop.ours import OurNameserver
from interop.rocketmq import Nameserver
from refmq.net.client import Client
from refmq.protocol import fastjson
from refmq.protocol.bodies.codec import encode_body
from refmq.protocol.bodies.config import DataVersion, TopicConfig, TopicConfigSerializeWrapper
from refmq.protocol.bodies.registration import RegisterBrokerBody, encode_register_broker_body
from refmq.protocol.codes import RequestCode
from refmq.protocol.command import RemotingCommand, SerializeType, request

TIMEOUT_S = 10.0
SETTLE_S = 10.0

TOPICS = ("T1", "T2", "T3", "Unit", "Sub", "Both")
FLAGS = {"Unit": 1, "Sub": 2, "Both": 3}
PERMS = {"T3": 7}


@dataclass(frozen=True)
class Identity:
    """A broker as it registers."""

    address: str
    name: str
    id_: int
    cluster: str = "C1"


IDENTITIES = (
    Identity("10.0.0.1:10911", "A", 0),
    Identity("10.0.0.2:10911", "A", 1),
    Identity("10.0.0.2:10911", "A", 0),  # the slave took over, at the same address
    Identity("10.0.0.3:10911", "A", 0),  # another machine under the same name and id
    Identity("10.0.0.4:10911", "B", 0, "C2"),
)

NUMBERS = itertools.count(1)

identities = st.integers(0, len(IDENTITIES) - 1)
topic_sets = st.sets(st.sampled_from(TOPICS), min_size=2).map(sorted).map(tuple)
topics = st.sampled_from([*TOPICS, "None"])
REGISTER = st.tuples(st.just("register"), identities, st.integers(1, 3), topic_sets, st.booleans())
HISTORIES = st.lists(
    st.one_of(
        REGISTER,
        REGISTER,
        st.tuples(st.just("unregister"), identities),
        st.tuples(st.just("version"), identities, st.integers(1, 3)),
        st.tuples(st.just("reconnect"), identities, st.integers(1, 3), topic_sets),
        st.tuples(st.just("close"), identities),
        st.tuples(st.just("route"), topics, st.sampled_from([317, 400, 401, 409, 479])),
        st.tuples(st.just("ask"), st.sampled_from([106, 206, 304, 311, 312, 313])),
        st.tuples(st.just("cluster"), st.sampled_from(["C1", "C2", "C3"])),
        st.tuples(st.just("perm"), st.sampled_from([205, 327]), st.sampled_from(["A", "B", "X"])),
        st.tuples(st.just("delete"), topics, st.sampled_from(["C1", "C2", "C3", ""])),
        st.tuples(st.just("put"), st.sampled_from(["k1", "k2"]), st.sampled_from(["v", "é\u0001", ""])),
        st.tuples(st.just("get"), st.sampled_from([101, 102]), st.sampled_from(["k1", "k2"])),
        st.tuples(st.just("list")),
    ),
    max_size=20,
)


def comparable(command: RemotingCommand, code: int) -> tuple[object, ...]:
    """An answer without what no client can rely on: the order of a hash map, and which broker a list names."""
    fields = {name: value for name, value in command.fields.items() if value}
    body: object = None
    if command.body:
        body = unordered(fastjson.parse(command.body))
        if code == RequestCode.GET_SYSTEM_TOPIC_LIST_FROM_NS and isinstance(body, dict):
            body.pop("brokerAddr", None)
    return command.code, command.remark if command.code else None, fields, body


def unordered(value: Any) -> Any:
    if isinstance(value, fastjson.JsonObject):
        return {str(key): unordered(item) for key, item in value.members}
    if isinstance(value, fastjson.JsonArray):
        return sorted((unordered(item) for item in value.items), key=lambda item: json.dumps(item, sort_keys=True))
    return value


@dataclass
class Side:
    """One nameserver in a history, with a connection for each broker and one for everything else."""

    address: str
    asker: Client = field(default_factory=Client)
    brokers: dict[str, Client] = field(default_factory=dict)

    async def ask(self, command: RemotingCommand, broker: str | None = None) -> tuple[object, ...]:
        client = self.asker if broker is None else self.brokers.setdefault(broker, Client())
        return comparable(await client.invoke(self.address, command, TIMEOUT_S), command.code)

    async def close(self, broker: str) -> None:
        client = self.brokers.pop(broker, None)
        if client is not None:
            await client.close()

    async def end(self) -> None:
        for broker in list(self.brokers):
            await self.close(broker)


class Comparison:
    """Tells both sides the same and compares what they say."""

    def __init__(self, real: str, ours: str) -> None:
        self.sides = (Side(real), Side(ours))
        self.namespace = f"n{next(NUMBERS)}"

    async def both(self, command: RemotingCommand, broker: str | None = None) -> None:
        real, ours = [await side.ask(command, broker) for side in self.sides]
        assert ours == real, f"request {command.code} {dict(command.fields)}"

    async def settle(self) -> None:
        """A close is seen a moment later, and not at the same moment on both sides."""
        command = request(RequestCode.GET_BROKER_CLUSTER_INFO)
        until = asyncio.get_running_loop().time() + SETTLE_S
        while True:
            real, ours = [await side.ask(command) for side in self.sides]
            if real == ours:
                return
            assert asyncio.get_running_loop().time() < until, (real, ours)
            await asyncio.sleep(0.02)

    async def tell(self, action: str, *arguments: Any) -> None:
        match action, arguments:
            case "register", (index, counter, names, compressed):
                await self.both(registration(IDENTITIES[index], counter, names, compressed), IDENTITIES[index].address)
            case "unregister", (index,):
                command = request(RequestCode.UNREGISTER_BROKER, who(IDENTITIES[index]))
                await self.both(command, IDENTITIES[index].address)
            case "version", (index, counter):
                body = encode_body(DataVersion(timestamp=1, counter=counter))
                await self.both(request(RequestCode.QUERY_DATA_VERSION, who(IDENTITIES[index]), body))
            case "reconnect", (index, counter, names):
                await self.reconnect(IDENTITIES[index], counter, names)
            case "close", (index,):
                for side in self.sides:
                    await side.close(IDENTITIES[index].address)
                await self.settle()
            case "route", (topic, version):
                await self.both(request(RequestCode.GET_ROUTEINFO_BY_TOPIC, {"topic": topic}, version=version))
            case "ask", (code,):
                await self.both(request(code, serialize_type=SerializeType.ROCKETMQ))
            case "cluster", (cluster,):
                await self.both(request(RequestCode.GET_TOPICS_BY_CLUSTER, {"cluster": cluster}))
            case "perm", (code, name):
                await self.both(request(code, {"brokerName": name}))
            case "delete", (topic, cluster):
                fields = {"topic": topic, **({"clusterName": cluster} if cluster else {})}
                await self.both(request(RequestCode.DELETE_TOPIC_IN_NAMESRV, fields))
            case "put", (key, value):
                fields = {"namespace": self.namespace, "key": key, "value": value}
                await self.both(request(RequestCode.PUT_KV_CONFIG, fields))
            case "get", (code, key):
                await self.both(request(code, {"namespace": self.namespace, "key": key}))
            case "list", ():
                await self.both(request(RequestCode.GET_KVLIST_BY_NAMESPACE, {"namespace": self.namespace}))
            case _:
                raise AssertionError(action)

    async def reconnect(self, identity: Identity, counter: int, names: tuple[str, ...]) -> None:
        """The broker registers over a new connection, and only then the old one closes: it must not be hurt."""
        old = [side.brokers.pop(identity.address, None) for side in self.sides]
        await self.both(registration(identity, counter, names, compressed=False), identity.address)
        for client in old:
            if client is not None:
                await client.close()
        await asyncio.sleep(0.05)
        await self.settle()


def who(identity: Identity) -> dict[str, str]:
    return {
        "brokerAddr": identity.address,
        "brokerName": identity.name,
        "clusterName": identity.cluster,
        "brokerId": str(identity.id_),
    }


def registration(identity: Identity, counter: int, names: tuple[str, ...], compressed: bool) -> RemotingCommand:
    # The number of queues tells versions apart. A compressed topic does not carry its flag, and of a topic that has two
    # flags on two brokers upstream takes any, so topics with flags are not registered in that form.
    names = tuple(sorted({"T1", "T2", *names} - set(FLAGS))) if compressed else names
    table = {
        name: TopicConfig(
            topic_name=name,
            read_queue_nums=counter,
            write_queue_nums=counter + 1,
            perm=PERMS.get(name, 6),
            topic_sys_flag=FLAGS.get(name, 0),
        )
        for name in names
    }
    wrapper = TopicConfigSerializeWrapper(
        data_version=DataVersion(timestamp=1, counter=counter), topic_config_table=table
    )
    body = encode_register_broker_body(
        RegisterBrokerBody(topic_config_serialize_wrapper=wrapper), compressed=compressed
    )
    fields = {
        **who(identity),
        "haServerAddr": f"ha-{identity.address}",
        "compressed": str(compressed).lower(),
        "bodyCrc32": str(zlib.crc32(body) & 0x7FFF_FFFF),
    }
    return request(RequestCode.REGISTER_BROKER, fields, body)


async def replay(real: str, ours: str, history: list[Any]) -> None:
    comparison = Comparison(real, ours)
    try:
        for action, *arguments in history:
            await comparison.tell(action, *arguments)
        for topic in TOPICS:
            await comparison.tell("route", topic, 409)
        for code in (106, 206):
            await comparison.tell("ask", code)
    finally:
        await forget(comparison)


async def forget(comparison: Comparison) -> None:
    """Leave both nameservers empty for the next history: every broker leaves by its name, then closes."""
    for side in comparison.sides:
        for identity in IDENTITIES:
            await side.ask(request(RequestCode.UNREGISTER_BROKER, who(identity)))
        await side.end()
        for topic in TOPICS:
            await side.ask(request(RequestCode.DELETE_TOPIC_IN_NAMESRV, {"topic": topic}))
    await comparison.settle()
    for side in comparison.sides:
        await side.asker.close()


@pytest.fixture(scope="module")
def nameservers(folder: Path) -> Iterator[tuple[str, str]]:
    with Nameserver(folder / "differential-real") as real, OurNameserver(folder / "differential-ours") as ours:
        yield real.address, ours.address


@settings(deadline=None, suppress_health_check=list(HealthCheck))
@given(history=HISTORIES)
def test_both_nameservers_answer_every_history_alike(nameservers: tuple[str, str], history: list[Any]) -> None:
    asyncio.run(replay(*nameservers, history))


def test_a_difference_is_seen(nameservers: tuple[str, str]) -> None:
    """One topic of an unknown broker is refused by us alone: the comparison must not overlook that."""
    history = [("register", 0, 1, ("T1",), False)]
    with pytest.raises(AssertionError, match="request 103"):
        asyncio.run(replay(*nameservers, history))
