"""Clients of other languages in situations that are allowed but not usual; `--broker real` runs them with 4.9.7."""

from __future__ import annotations

import base64
import random
import re
import time
from collections import Counter
from pathlib import Path

import pytest

from interop.drivers import Driver
from interop.ours import OurServe, ask
from interop.processes import wait_until
from interop.tests.other_clients import PROGRAMS, Cluster, Fixtures, committed, create_topic, driver, languages
from refmq.errors import MissingTool, RefmqError
from refmq.protocol.codes import RequestCode, ResponseCode
from refmq.protocol.command import request

ALL = ("go", "node", "cpp")
GO_CPP = ("go", "cpp")
GO_NODE = ("go", "node")
LEVELS = 18
SETTLE_S = 60.0
REBALANCE_S = 240.0  # some look for other members every 20 s only, need several looks, and share a busy machine

# The C++ client stops for ever when it gets a queue back while its pull from before still waits, whoever the broker.
# Pulls of the retry topic wait to their end: 15 s at the broker, and a little for the way.
CPP_PULL_S = 25.0

# What the client takes itself, unless it is told otherwise.
LARGE = {"go": 3_900_000, "node": 120_000, "cpp": 120_000}


fixtures = Fixtures("unusual", masters=2)
cluster, drivers, client = fixtures.cluster, fixtures.drivers, fixtures.client


def seen(*members: tuple[Driver, str]) -> Counter[str]:
    return Counter(message["body"] for one, name in members for message in one.messages(name))


def numbered(count: int, prefix: str = "m") -> list[str]:
    return [f"{prefix}{number:03}" for number in range(count)]


# What is sent ---------------------------------------------------------------------------------------------------------


@languages("go")
def test_the_first_message_makes_its_topic(cluster: Cluster, client: Driver, language: str) -> None:
    topic, group = f"{language}-auto-{time.monotonic_ns()}", cluster.group(f"{language}-auto")
    client.call("producer", name=f"p-{topic}", group=f"pg-{topic}")
    for body in numbered(8):
        client.call("send", name=f"p-{topic}", topic=topic, body=body)
    client.call("consumer", name=f"c-{topic}", group=group, topic=topic)
    assert sorted(client.bodies(f"c-{topic}", 8)) == numbered(8)
    client.call("stop", name=f"c-{topic}")


@languages(*GO_NODE)
def test_a_namespace_is_a_world_of_its_own(cluster: Cluster, client: Driver, language: str) -> None:
    topic = cluster.topic(f"{language}-space")
    cluster.create(f"INST%{topic}", 4)
    group = cluster.group(f"{language}-space")
    cluster.create(f"%RETRY%INST%{group}", 1)
    for space, body in (("INST", "inside"), ("", "outside")):
        client.call("producer", name=f"p{space}-{topic}", group=f"pg-{topic}", namespace=space)
        client.call("send", name=f"p{space}-{topic}", topic=topic, body=body)
    client.call("consumer", name=f"c-{topic}", group=group, topic=topic, namespace="INST", fail=1)
    client.wait(lambda: len(client.messages(f"c-{topic}")) >= 2, "the message and its retry")
    assert {message["body"] for message in client.messages(f"c-{topic}")} == {"inside"}
    client.call("stop", name=f"c-{topic}")


@languages(*ALL)
def test_signed_requests_are_served(cluster: Cluster, client: Driver, language: str) -> None:
    """The Node client signs whatever it is told."""
    topic, group = cluster.topic(f"{language}-signed"), cluster.group(f"{language}-signed")
    client.call("producer", name=f"p-{topic}", group=f"pg-{topic}", signed=True)
    for body in numbered(6):
        client.call("send", name=f"p-{topic}", topic=topic, body=body)
    client.call("consumer", name=f"c-{topic}", group=group, topic=topic, signed=True)
    assert sorted(client.bodies(f"c-{topic}", 6)) == numbered(6)
    client.call("stop", name=f"c-{topic}")


@languages(*ALL)
def test_other_letters_in_keys_tags_and_bodies(cluster: Cluster, client: Driver, language: str) -> None:
    topic, group = cluster.topic(f"{language}-letters"), cluster.group(f"{language}-letters")
    client.call("producer", name=f"p-{topic}", group=f"pg-{topic}")
    sent = {"body": "тело 体 🐘", "tag": "étiquette-标签", "key": "ключ-鍵"}
    client.call("send", name=f"p-{topic}", topic=topic, properties={"colour": "🐇 = \"';"}, **sent)
    client.call("consumer", name=f"c-{topic}", group=group, topic=topic)
    client.bodies(f"c-{topic}", 1)
    (got,) = client.messages(f"c-{topic}")
    assert (got["body"], got["tag"], got["keys"].strip()) == (sent["body"], sent["tag"], sent["key"])
    assert got["properties"]["colour"] == "🐇 = \"';"
    client.call("stop", name=f"c-{topic}")


@languages(*ALL)
def test_a_body_as_large_as_the_client_takes(cluster: Cluster, client: Driver, language: str) -> None:
    topic, group = cluster.topic(f"{language}-huge"), cluster.group(f"{language}-huge")
    client.call("producer", name=f"p-{topic}", group=f"pg-{topic}")
    body = base64.b64encode(random.Random(7).randbytes(LARGE[language] * 3 // 4)).decode()
    client.call("send", name=f"p-{topic}", topic=topic, body=body)
    client.call("consumer", name=f"c-{topic}", group=group, topic=topic)
    assert client.bodies(f"c-{topic}", 1) == [body]
    client.call("stop", name=f"c-{topic}")


@languages(*ALL)
def test_every_delay_level(cluster: Cluster, client: Driver, language: str) -> None:
    topic, group = cluster.topic(f"{language}-levels"), cluster.group(f"{language}-levels")
    client.call("producer", name=f"p-{topic}", group=f"pg-{topic}")
    client.call("consumer", name=f"c-{topic}", group=group, topic=topic)
    wanted = [f"level {level:02}" for level in range(1, LEVELS + 1)]
    for level, body in enumerate(wanted, 1):
        client.call("send", name=f"p-{topic}", topic=topic, body=body, delay=level)
    assert sorted(client.bodies(f"c-{topic}", LEVELS)) == wanted
    client.call("stop", name=f"c-{topic}")


@languages("go")
def test_traces_tell_who_sent_and_who_consumed(cluster: Cluster, client: Driver, language: str) -> None:
    topic, group = cluster.topic("go-traced"), cluster.group("go-traced")
    client.call("consumer", name=f"t-{topic}", group=cluster.group("go-tracer"), topic="RMQ_SYS_TRACE_TOPIC")
    client.call("producer", name=f"p-{topic}", group=f"pg-{topic}", trace=True)
    sent = client.call("send", name=f"p-{topic}", topic=topic, body="traced", key="k")
    client.call("consumer", name=f"c-{topic}", group=group, topic=topic, trace=True)
    client.bodies(f"c-{topic}", 1)

    def kinds() -> set[str]:
        lines = [line for m in client.messages(f"t-{topic}") for line in re.split("\x02", m["body"])]
        return {line.split("\x01")[0] for line in lines if sent["id"] in line}

    client.wait(lambda: kinds() >= {"Pub", "SubBefore", "SubAfter"}, "the traces")
    client.call("stop", name=f"c-{topic}")
    client.call("stop", name=f"t-{topic}")


# Who consumes ---------------------------------------------------------------------------------------------------------


@languages(*ALL)
def test_a_group_changes_its_tags(cluster: Cluster, client: Driver, language: str) -> None:
    topic, group = cluster.topic(f"{language}-mind"), cluster.group(f"{language}-mind")
    client.call("producer", name=f"p-{topic}", group=f"pg-{topic}")
    for body in numbered(4, "a"):
        client.call("send", name=f"p-{topic}", topic=topic, body=body, tag="A")
    client.call("consumer", name=f"first-{topic}", group=group, topic=topic, expression="A")
    client.bodies(f"first-{topic}", 4)
    wait_until(lambda: cluster.committed(group, topic) == 4, "the commit", SETTLE_S)
    client.call("stop", name=f"first-{topic}")
    client.call("consumer", name=f"second-{topic}", group=group, topic=topic, expression="B || C")
    for tag in "ABC":
        for body in numbered(3, tag):
            client.call("send", name=f"p-{topic}", topic=topic, body=body, tag=tag)
    assert sorted(set(client.bodies(f"second-{topic}", 6))) == numbered(3, "B") + numbered(3, "C")
    client.call("stop", name=f"second-{topic}")


@languages("go")
def test_an_offset_is_reset_under_its_consumer(cluster: Cluster, client: Driver, language: str) -> None:
    topic, group = cluster.topic(f"{language}-reset", 2), cluster.group(f"{language}-reset")
    client.call("producer", name=f"p-{topic}", group=f"pg-{topic}")
    for body in numbered(12):
        client.call("send", name=f"p-{topic}", topic=topic, body=body)
    consumer = f"c-{topic}"
    client.call("consumer", name=consumer, group=group, topic=topic)
    client.bodies(consumer, 12)
    wait_until(lambda: cluster.committed(group, topic, 2) == 12, "the commit", SETTLE_S)
    fields = {"topic": topic, "group": group, "timestamp": "0", "isForce": "true"}
    for broker in cluster.brokers:
        answer = ask(broker.address, request(RequestCode.INVOKE_BROKER_TO_RESET_OFFSET, fields))
        assert answer.code == ResponseCode.SUCCESS, answer.remark
    twice = Counter(dict.fromkeys(numbered(12), 2))
    client.wait(lambda: seen((client, consumer)) >= twice, "everything a second time", REBALANCE_S)
    wait_until(lambda: cluster.committed(group, topic, 2) == 12, "the commit", SETTLE_S)
    client.call("stop", name=consumer)


@languages(*GO_NODE)
def test_an_expression_that_does_not_compile_gives_nothing(
    cluster: Cluster, client: Driver, language: str, pytestconfig: pytest.Config
) -> None:
    if pytestconfig.getoption("--broker") == "real":
        pytest.skip("a broker of 4.9 lets everything pass")
    topic, group = cluster.topic(f"{language}-broken"), cluster.group(f"{language}-broken")
    client.call("producer", name=f"p-{topic}", group=f"pg-{topic}")
    client.call("send", name=f"p-{topic}", topic=topic, body="unwanted")
    try:
        client.call("consumer", name=f"c-{topic}", group=group, topic=topic, sql=True, expression="size > > 3")
    except RefmqError:
        return  # refused at the start
    time.sleep(3)
    assert client.messages(f"c-{topic}") == []
    client.call("stop", name=f"c-{topic}")


@languages(*GO_CPP)
def test_two_orderly_members_keep_the_order_of_each_queue(
    cluster: Cluster, client: Driver, language: str, folder: Path
) -> None:
    topic, group = cluster.topic(f"{language}-ordered", 2), cluster.group(f"{language}-ordered")
    client.call("producer", name=f"p-{topic}", group=f"pg-{topic}")
    sent: list[str] = []
    with driver(language, folder / "ordered", cluster) as other:
        members = ((client, f"one-{topic}"), (other, f"two-{topic}"))
        for one, name in members:
            one.call("consumer", name=name, group=group, topic=topic, orderly=True)

        def both_have_some() -> bool:
            sent.append(f"s{len(sent):04}")
            client.call("send", name=f"p-{topic}", topic=topic, body=sent[-1])
            time.sleep(0.1)
            return all(one.messages(name) for one, name in members)

        wait_until(both_have_some, "a share for each", REBALANCE_S)
        client.wait(lambda: set(seen(*members)) >= set(sent), "all messages", REBALANCE_S)
        for one, name in members:
            last: dict[tuple[str, int], str] = {}
            jumps = 0
            for message in one.messages(name):
                where = message["queue"]
                jumps += message["body"] < last.get(where, "")
                last[where] = message["body"]
            assert jumps <= 2, "more steps back than queues could move"
        client.call("stop", name=f"one-{topic}")


@languages(*ALL)
def test_members_join_leave_and_die_under_load(cluster: Cluster, client: Driver, language: str, folder: Path) -> None:
    topic, group = cluster.topic(f"{language}-crowd", 3), cluster.group(f"{language}-crowd")
    client.call("producer", name=f"p-{topic}", group=f"pg-{topic}")
    acknowledged: list[str] = []

    def more(count: int) -> None:
        for _ in range(count):
            body = f"l{len(acknowledged):04}"
            client.call("send", name=f"p-{topic}", topic=topic, body=body)
            acknowledged.append(body)

    def serves(one: Driver, name: str) -> None:
        """Messages are sent until the member has got something new: it owns a queue."""
        before = len(one.messages(name))

        def got_some() -> bool:
            more(4)
            time.sleep(0.1)
            return len(one.messages(name)) > before

        wait_until(got_some, f"a share for {name}", REBALANCE_S)

    with (
        driver(language, folder / "leaver", cluster) as leaver,
        driver(language, folder / "doomed", cluster) as doomed,
    ):
        first, second, third = f"one-{topic}", f"two-{topic}", f"three-{topic}"
        client.call("consumer", name=first, group=group, topic=topic)
        serves(client, first)
        leaver.call("consumer", name=second, group=group, topic=topic)
        serves(leaver, second)
        doomed.call("consumer", name=third, group=group, topic=topic)
        serves(doomed, third)
        if language == "cpp":
            time.sleep(CPP_PULL_S)
        leaver.call("stop", name=second)
        more(10)
        doomed.kill()
        more(10)
        serves(client, first)
        members = ((client, first), (leaver, second), (doomed, third))
        client.wait(lambda: set(seen(*members)) >= set(acknowledged), "every acknowledged message", REBALANCE_S)
        client.call("stop", name=first)


@pytest.mark.parametrize("language", ALL)
def test_serve_with_a_restart(tmp_path: Path, language: str) -> None:
    try:
        command = PROGRAMS[language]()
    except MissingTool as missing:
        pytest.skip(f"the {language} client was not tried: {missing}")
    served = OurServe(tmp_path)
    try:
        for part in ("first", "second"):
            served.start()
            create_topic(served.address, [served.broker], "Served")
            with Driver(command, tmp_path / part, served.address) as client:
                client.call("producer", name="p", group="pg")
                for body in numbered(6, part):
                    client.call("send", name="p", topic="Served", body=body)
                client.call("consumer", name="c", group="g", topic="Served")
                assert sorted(set(client.bodies("c", 6))) == numbered(6, part), "what was consumed comes no more"
                wanted = 6 if part == "first" else 12
                wait_until(lambda n=wanted: committed([served.broker], "g", "Served") == n, "the commit", SETTLE_S)  # type: ignore[misc]
                client.call("stop", name="c")
            assert served.stop() == 0
    finally:
        served.kill()


@languages(*ALL)
def test_a_nameserver_that_restarts_is_not_missed(cluster: Cluster, client: Driver, language: str) -> None:
    topic, group = cluster.topic(f"{language}-names"), cluster.group(f"{language}-names")
    client.call("producer", name=f"p-{topic}", group=f"pg-{topic}")
    client.call("consumer", name=f"c-{topic}", group=group, topic=topic)
    client.call("send", name=f"p-{topic}", topic=topic, body="before")
    client.bodies(f"c-{topic}", 1)
    cluster.nameserver.kill()
    for body in numbered(4, "without"):  # routes are known
        client.call("send", name=f"p-{topic}", topic=topic, body=body)
    cluster.nameserver.start()
    client.bodies(f"c-{topic}", 5)
    other = f"p2-{topic}"
    client.call("producer", name=other, group=f"pg2-{topic}")

    def sent() -> bool:
        try:
            client.call("send", name=other, topic=topic, body="after")
        except RefmqError:
            return False  # the brokers have not registered again yet
        return True

    wait_until(sent, "a send of a new producer", REBALANCE_S)
    client.bodies(f"c-{topic}", 6)
    client.call("stop", name=f"c-{topic}")
