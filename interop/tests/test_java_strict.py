"""Java clients and a broker that allows little: nothing makes itself, no SQL92, one client's limits, no permission."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from interop.jvm import JavaError, Jvm
from interop.processes import wait_until
from interop.scene import Cluster, Scene, message, numbered, scene

QUIET_S = 2.0
SETTLE_S = 60.0

STRICT = {
    "autoCreateTopicEnable": "false",
    "autoCreateSubscriptionGroup": "false",
    "enablePropertyFilter": "false",
    "maxMessageSize": "65536",
    "maxTransferCountOnMessageInMemory": "4",
}


@pytest.fixture(scope="module")
def strict(folder: Path, pytestconfig: pytest.Config) -> Iterator[Cluster]:
    real = pytestconfig.getoption("--broker") == "real"
    started = Cluster(folder / "strict", ("broker-a",), STRICT, real=real, known="SELF_TEST_TOPIC")
    with started:
        yield started


@pytest.fixture
def on(request: pytest.FixtureRequest, strict: Cluster, jvms: dict[str, Jvm], version: str) -> Iterator[Scene]:
    tag = re.sub(r"\W+", "-", request.node.name.removeprefix("test_")).strip("-")
    with scene(strict, jvms[version], tag[-100:]) as current:
        yield current


def test_a_topic_that_nobody_made_is_refused(on: Scene) -> None:
    with pytest.raises(JavaError) as refused:
        on.producer(retryTimesWhenSendFailed=0).call("send", message(f"{on.tag}-none", "no"))
    assert refused.value.code == 10005, "the client finds no route"


def test_a_group_that_nobody_made_consumes_nothing_until_somebody_makes_it(on: Scene) -> None:
    topic = on.topic()
    producer = on.producer()
    for each in numbered(topic, 4):
        producer.call("send", each)
    consumer = on.push(topic)
    time.sleep(QUIET_S)
    assert consumer.bodies() == []
    on.cluster.make_group(on.group)
    consumer.wait(4)


def test_sql92_is_refused_at_the_start(on: Scene) -> None:
    topic = on.topic()
    on.cluster.make_group(on.group)
    with pytest.raises(JavaError) as refused:
        on.push(topic, {"sql": "n > 1"})
    assert refused.value.code == 1
    assert "does not support consumer to filter message by SQL92" in str(refused.value)


def test_a_message_larger_than_the_broker_takes(on: Scene) -> None:
    topic = on.topic()
    producer = on.producer(retryTimesWhenSendFailed=0, compressMsgBodyOverHowmuch=1 << 30)
    with pytest.raises(JavaError) as refused:
        producer.call("send", {"topic": topic, "size": 65_537, "random": True})
    assert refused.value.code == 13
    assert producer.call("send", {"topic": topic, "size": 65_536, "random": True})["status"] == "SEND_OK"
    # Compressed it is small enough.
    compressing = on.producer(group=f"{on.tag}-compressing")
    assert compressing.call("send", {"topic": topic, "size": 1_000_000})["status"] == "SEND_OK"


def test_a_pull_brings_as_much_as_the_broker_gives(on: Scene) -> None:
    topic = on.topic(queues=1)
    on.cluster.make_group(on.group)
    producer = on.producer()
    for each in numbered(topic, 20):
        producer.call("send", each)
    where = {"topic": topic, "broker": "broker-a", "queue": 0}
    puller = on.pull()
    found = puller.call("pull", where, "*", 0, 32)
    assert (len(found["messages"]), found["next"], found["max"]) == (4, 4, 20)
    on.close(puller)  # as long as it is a member of the group, the only queue may be its
    consumer = on.push(topic)
    consumer.wait(20)


def test_a_broker_that_may_not_be_written(on: Scene) -> None:
    topic = on.topic()
    on.cluster.make_group(on.group)
    producer = on.producer(retryTimesWhenSendFailed=0)
    producer.call("send", message(topic, "before"))
    address = on.cluster.brokers["broker-a"].address

    def permit(perm: int) -> None:
        setting = ("-k", "brokerPermission", "-v", str(perm))
        assert "success" in on.jvm.mqadmin("updateBrokerConfig", "-b", address, *setting, "-n", on.cluster.address)

    def outcome() -> str | int:
        try:
            return str(producer.call("send", message(topic, "perhaps"))["status"])
        except JavaError as error:
            return error.code

    permit(4)
    try:
        # The broker tells the nameserver, and the client sees in the route that there is no queue to write to.
        wait_until(lambda: outcome() == 10005, "a refusal", SETTLE_S)
        on.push(topic).wait(1)
    finally:
        permit(6)
    wait_until(lambda: outcome() == "SEND_OK", "a send", SETTLE_S)
