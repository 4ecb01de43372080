"""Servers of 5.3.3 beside ours: their broker at our nameserver, and our broker at theirs."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from interop.ours import OurBroker, OurNameserver, ask, has_route
from interop.processes import wait_until
from interop.rocketmq import NEW, Broker, Clients, Nameserver
from interop.tests.conftest import EAGER, VERSIONS
from interop.tests.test_nameserver import REGISTER_TIMEOUT_S, comparable, got_keys, run_admin, sent_keys
from refmq.protocol.codes import RequestCode
from refmq.protocol.command import request

KINDS = ("plain:20", "big:2", "batch:4", "delay:2", "commit:3")
COUNT = 20 + 2 + 4 + 2 + 3

# What a broker of 5.x keeps beside the log of 4.9 is made small: it is as large as its default on a disk of loopback.
SMALL = {**EAGER, "timerWheelEnable": "false", "enableSlaveActingMaster": "false"}


@pytest.fixture(scope="module")
def theirs(folder: Path) -> Iterator[Nameserver]:
    with Nameserver(folder / "names-of-5", version=NEW) as nameserver:
        yield nameserver


@pytest.fixture(scope="module")
def broker(folder: Path, ours: OurNameserver, theirs: Nameserver) -> Iterator[Broker]:
    """A broker of 5.3.3 that is registered at our nameserver and at its own."""
    both = f"{ours.address};{theirs.address}"
    with Broker(folder / "broker-of-5", both, settings=SMALL, version=NEW) as started:
        for address in (ours.address, theirs.address):
            wait_until(lambda address=address: has_route(address, "TBW102"), "registration", REGISTER_TIMEOUT_S)  # type: ignore[misc]
        yield started


@pytest.mark.parametrize("kind", ["concurrent", "orderly", "lite"])
@pytest.mark.parametrize("version", VERSIONS)
def test_clients_find_the_broker_of_5_and_exchange_messages(
    version: str, kind: str, clients: dict[str, Clients], ours: OurNameserver, broker: Broker
) -> None:
    topic = f"Exchange-{kind}-{version.replace('.', '_')}"
    sent = clients[version].run("Produce", ours.address, topic, *KINDS)
    got = clients[version].run("Consume", ours.address, topic, f"group-{topic}", kind, str(COUNT))
    assert len(sent_keys(sent)) == COUNT - 4, "a batch is one line"
    assert set(got_keys(got)) == {f"{kind.split(':')[0]}-{n}" for kind in KINDS for n in range(int(kind.split(":")[1]))}


FAQ_OF_4 = "http://rocketmq.apache.org/docs/faq/"  # where an error says that more is to be read

COMMANDS: list[list[str]] = [
    ["clusterList"],
    ["topicRoute", "-t", "TBW102"],
    ["topicRoute", "-t", "NoSuchTopic"],
    ["topicList"],
    ["topicClusterList", "-t", "TBW102"],
    ["updateKvConfig", "-s", "ORDER_TOPIC_CONFIG", "-k", "TBW102", "-v", "broker-a:8"],
    ["updateOrderConf", "-t", "TBW102", "-m", "get"],
    ["deleteKvConfig", "-s", "ORDER_TOPIC_CONFIG", "-k", "TBW102"],
    ["wipeWritePerm", "-b", "broker-a"],
    ["topicRoute", "-t", "SELF_TEST_TOPIC"],
    ["addWritePerm", "-b", "broker-a"],
    ["topicRoute", "-t", "SELF_TEST_TOPIC"],
]


ATTEMPTS = 5


def data_version(broker: Broker) -> object:
    """Of the topics of a broker: it changes with each topic that is made or changed."""
    table = json.loads(ask(broker.address, request(RequestCode.GET_ALL_TOPIC_CONFIG)).body)
    return table["dataVersion"]


def permissions(nameserver: OurNameserver | Nameserver) -> list[object]:
    """What may be done with the topics that are looked at."""
    answers = [
        ask(nameserver.address, request(RequestCode.GET_ROUTEINFO_BY_TOPIC, {"topic": topic}))
        for topic in ("TBW102", "SELF_TEST_TOPIC")
    ]
    return [re.findall(rb'"perm":(\d+)', answer.body) for answer in answers]


@pytest.mark.parametrize("version", VERSIONS)
def test_mqadmin_hears_the_same_from_both_nameservers(
    version: str, clients: dict[str, Clients], ours: OurNameserver, theirs: Nameserver, broker: Broker
) -> None:
    for _ in range(ATTEMPTS):
        # Who gets its write permission back has the plain one until its broker registers something new: the two can be
        # compared if nothing new was registered meanwhile.
        before = data_version(broker)
        from_ours = run_admin(clients[version], ours.address, COMMANDS)
        from_theirs = run_admin(clients[version], theirs.address, COMMANDS)
        if data_version(broker) == before and permissions(ours) == permissions(theirs):
            break
    for command, our_text, their_text in zip(COMMANDS, from_ours, from_theirs, strict=True):
        their_text = their_text.replace("https://rocketmq.apache.org/docs/bestPractice/06FAQ", FAQ_OF_4)
        assert comparable(our_text, ours.address) == comparable(their_text, theirs.address), command


def test_a_broker_of_5_goes_and_returns_and_so_does_the_nameserver(folder: Path) -> None:
    nameserver = OurNameserver(folder / "names-for-5").start()
    settings = {**SMALL, "brokerClusterName": "Mortals"}
    broker = Broker(folder / "mortal-of-5", nameserver.address, "mortal", settings, version=NEW)
    for end in (broker.stop, broker.kill):
        broker.start()
        wait_until(lambda: has_route(nameserver.address, "Mortals"), "the route", REGISTER_TIMEOUT_S)
        end()
        assert not has_route(nameserver.address, "Mortals")
    broker.start()
    wait_until(lambda: has_route(nameserver.address, "Mortals"), "the route", REGISTER_TIMEOUT_S)
    nameserver.kill()
    nameserver.start()
    wait_until(lambda: has_route(nameserver.address, "Mortals"), "the route", REGISTER_TIMEOUT_S)
    broker.stop()
    nameserver.stop()


@pytest.mark.parametrize("version", VERSIONS)
def test_our_broker_at_a_nameserver_of_5(
    version: str, folder: Path, clients: dict[str, Clients], theirs: Nameserver
) -> None:
    cluster = f"Ours{version.replace('.', '')}"
    settings = {**EAGER, "brokerClusterName": cluster}
    with OurBroker(folder / cluster, theirs.address, cluster, settings):
        wait_until(lambda: has_route(theirs.address, cluster), "the route", REGISTER_TIMEOUT_S)
        made = clients[version].mqadmin("updateTopic", "-c", cluster, "-t", cluster + "Topic", "-n", theirs.address)
        assert "success" in made
        sent = clients[version].run("Produce", theirs.address, cluster + "Topic", *KINDS)
        got = clients[version].run("Consume", theirs.address, cluster + "Topic", f"g-{cluster}", "lite", str(COUNT))
        assert set(got_keys(got)) >= set(sent_keys(sent)) != set()
    assert not has_route(theirs.address, cluster)
