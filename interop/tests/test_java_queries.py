"""What clients ask about messages and queues: by id, key, unique key and time; traces; TLS; binary headers."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from interop.jvm import JavaError, Jvm
from interop.processes import wait_until
from interop.rocketmq import Clients
from interop.scene import Cluster, Scene, message, numbered, scene
from interop.tests.conftest import VERSIONS

SETTLE_S = 60.0
FOREVER_MS = 2**61


def test_query_by_id_key_and_time(on: Scene) -> None:
    topic = on.topic()
    producer = on.producer()
    began = int(time.time() * 1000)
    sent = [producer.call("send", message(topic, f"b{n}", keys=f"common own-{n}")) for n in range(6)]
    by_id = producer.call("viewMessage", topic, sent[2]["offsetId"])
    assert (by_id["body"], by_id["offset"]) == ("b2", sent[2]["offset"])
    assert producer.call("viewMessage", topic, sent[3]["id"])["body"] == "b3"
    since = began - 1000
    everything = ("common", 32, since, FOREVER_MS)
    wait_until(lambda: len(producer.call("queryMessage", topic, *everything)) == 6, "six by key", SETTLE_S)
    (by_key,) = producer.call("queryMessage", topic, "own-4", 32, since, FOREVER_MS)
    assert by_key["body"] == "b4"
    # At most so many of each broker.
    assert len(producer.call("queryMessage", topic, "common", 1, since, FOREVER_MS)) <= 2
    with pytest.raises(JavaError) as nothing:
        producer.call("queryMessage", topic, "common", 32, 0, began - 3_600_000)
    assert nothing.value.code in (208, 22)
    with pytest.raises(JavaError):
        producer.call("viewMessage", topic, sent[0]["offsetId"][:-4] + "FFFF")


def test_offsets_of_a_queue(on: Scene) -> None:
    topic = on.topic(queues=1, only=("broker-a",))
    producer = on.producer()
    where = {"topic": topic, "broker": "broker-a", "queue": 0}
    assert producer.call("maxOffset", where) == 0
    for each in numbered(topic, 5):
        producer.call("send", each)
    wait_until(lambda: producer.call("maxOffset", where) == 5, "dispatch", SETTLE_S)
    assert producer.call("minOffset", where) == 0
    earliest = producer.call("earliestMsgStoreTime", where)
    assert abs(earliest - time.time() * 1000) < SETTLE_S * 1000
    assert producer.call("searchOffset", where, earliest) == 0
    assert producer.call("searchOffset", where, earliest + 3_600_000) in (4, 5)
    assert producer.call("searchOffset", where, 0) == 0
    queues = producer.call("fetchPublishMessageQueues", topic)
    assert queues == [where]


# Traces --------------------------------------------------------------------------------------------------------------


def test_traces_tell_who_sent_and_who_consumed(on: Scene) -> None:
    topic = on.topic()
    traces = on.push("RMQ_SYS_TRACE_TOPIC", group=f"{on.group}-reader")
    producer = on.producer(more=(True, None))
    sent = producer.call("send", message(topic, "traced", tags="t", keys="k"))
    consumer = on.push(topic, more=(True, None))
    consumer.wait(1)

    def lines() -> list[list[str]]:
        bodies = [each["body"] or "" for each in traces.events() if sent["id"] in (each["keys"] or "").split()]
        return [re.split("\x01", line) for body in bodies for line in body.split("\x02") if sent["id"] in line]

    # Consumers of 5.3.3 trace only messages with a region, which brokers of 4.9 do not write into them.
    wanted = {"Pub", "SubBefore", "SubAfter"} if on.jvm.version == "4.9.8" else {"Pub"}
    wait_until(lambda: {line[0] for line in lines()} >= wanted, "the traces", SETTLE_S)
    (pub,) = (line for line in lines() if line[0] == "Pub")
    assert (pub[3], pub[4], pub[5]) == (f"sender-{on.tag}", topic, sent["id"])


# TLS and binary headers -----------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def guarded(folder: Path, pytestconfig: pytest.Config) -> Iterator[Cluster]:
    """One master that takes TLS connections only, with the certificate that it made itself."""
    if pytestconfig.getoption("--broker") == "real":
        pytest.skip("a real server takes its TLS mode from the environment")
    with Cluster(folder / "guarded", ("broker-a",), {"tls.server.mode": "enforcing"}) as started:
        yield started


@pytest.mark.parametrize("version", VERSIONS)
def test_tls(guarded: Cluster, jvms: dict[str, Jvm], version: str) -> None:
    with scene(guarded, jvms[version], f"tls-{version.replace('.', '-')}") as on:
        topic = f"Tls-{on.tag}"
        producer = on.producer(useTLS=True)
        for n in range(10):
            assert producer.call("send", message(topic, str(n)))["status"] == "SEND_OK"
        assert len(on.push(topic, useTLS=True).wait(10)) == 10
        plain = on.producer(group="plain", useTLS=False, retryTimesWhenSendFailed=0)
        with pytest.raises(JavaError):
            plain.call("send", message(topic, "in the clear"))


@pytest.mark.parametrize("version", VERSIONS)
def test_binary_headers(cluster: Cluster, clients: dict[str, Clients], version: str) -> None:
    binary = Jvm(clients[version], ("-Drocketmq.serialize.type=ROCKETMQ",))
    with binary as jvm, scene(cluster, jvm, f"binary-{version.replace('.', '-')}") as on:
        topic = on.topic()
        producer = on.producer()
        sent = [producer.call("send", each) for each in numbered(topic, 10)]
        producer.call("send", numbered(topic, 5))
        assert len(on.push(topic, kind="orderly").wait(15)) == 15
        assert producer.call("viewMessage", topic, sent[0]["offsetId"])["body"] == "0"
        replier = on.producer(group=f"{on.tag}-replier")
        on.push(on.topic("-ask"), group=f"{on.group}-ask", policy={"reply": replier.name})
        producer.call("request", message(f"{topic}-ask", "q"), {"callback": producer.name}, 20_000)
        producer.wait(lambda replies: any(each and each["body"] == "answer to q" for each in replies), "reply")
