"""Two masters under load: brokers die and return, consumers come, go and die. Nothing that was acknowledged is lost."""

from __future__ import annotations

import contextlib
import re
import threading
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from interop.jvm import JavaError, Jvm, Remote
from interop.processes import wait_until
from interop.rocketmq import Clients
from interop.scene import Cluster, Scene, message, queue, scene
from interop.tests.conftest import VERSIONS

SETTLE_S = 90.0
FLOW = 100  # messages between two events


class Load(threading.Thread):
    """Sends numbered messages one after the other until it is told to stop, and remembers which were acknowledged."""

    def __init__(self, producer: Remote, topic: str) -> None:
        super().__init__(daemon=True)
        self._producer = producer
        self._topic = topic
        self._ending = threading.Event()
        self.acknowledged: dict[str, str] = {}
        """Body -> broker."""
        self.refused = 0

    def run(self) -> None:
        number = 0
        while not self._ending.is_set():
            body = str(number)
            number += 1
            try:
                sent = self._producer.call("send", message(self._topic, body))
            except JavaError:
                self.refused += 1
                continue
            if sent["status"] == "SEND_OK":
                self.acknowledged[body] = queue(sent)[0]

    def more(self, count: int = FLOW) -> None:
        """Wait until so many more were acknowledged."""
        wanted = len(self.acknowledged) + count
        wait_until(lambda: len(self.acknowledged) >= wanted, f"{count} more acknowledgements", SETTLE_S)

    def reaches(self, broker: str) -> None:
        """Wait until something new was acknowledged by the broker."""
        before = self.count(broker)
        wait_until(lambda: self.count(broker) > before, f"an acknowledgement of {broker}", SETTLE_S)

    def count(self, broker: str) -> int:
        return Counter(list(self.acknowledged.values()))[broker]

    def end(self) -> dict[str, str]:
        self._ending.set()
        self.join(SETTLE_S)
        return self.acknowledged


@contextlib.contextmanager
def load(on: Scene, topic: str) -> Iterator[Load]:
    # A dead master costs one time-out of the connection at most, then the producer tries the other one.
    producer = on.producer(sendMsgTimeout=3000, retryTimesWhenSendFailed=3, retryAnotherBrokerWhenNotStoreOK=True)
    running = Load(producer, topic)
    running.start()
    try:
        yield running
    finally:
        running.end()


def consumed(*consumers: Remote) -> Counter[str]:
    return sum((Counter(each.bodies()) for each in consumers), Counter())


def everything_came(acknowledged: dict[str, str], *consumers: Remote) -> None:
    def missing() -> set[str]:
        return set(acknowledged) - set(consumed(*consumers))

    wait_until(lambda: not missing(), "every acknowledged message", SETTLE_S)


def one_owner_each(queues: int, *consumers: Remote) -> None:
    def settled() -> bool:
        owned = [each.owned() for each in consumers]
        return sum(map(len, owned)) == queues == len(set().union(*owned))

    wait_until(settled, "one owner of each queue", SETTLE_S)


@pytest.fixture
def mortals(
    request: pytest.FixtureRequest, tmp_path: Path, jvms: dict[str, Jvm], version: str, pytestconfig: pytest.Config
) -> Iterator[Scene]:
    """Clients of one version on a cluster of two masters of their own."""
    real = pytestconfig.getoption("--broker") == "real"
    settings = {"flushConsumerOffsetInterval": "1000", "registerNameServerPeriod": "10000"}
    tag = re.sub(r"\W+", "-", request.node.name.removeprefix("test_")).strip("-")[-100:]
    with Cluster(tmp_path, settings=settings, real=real) as cluster, scene(cluster, jvms[version], tag) as on:
        yield on


@pytest.mark.parametrize("end", ["stop", "kill"])
def test_a_master_goes_and_returns_under_load(mortals: Scene, end: str) -> None:
    on = mortals
    topic = on.topic()
    consumer = on.push(topic)
    broker = on.cluster.brokers["broker-a"]
    with load(on, topic) as flow:
        flow.more()
        assert flow.count("broker-a") and flow.count("broker-b"), "both masters take part"
        getattr(broker, end)()
        flow.more()
        broker.start()
        flow.reaches("broker-a")
        flow.more()
        acknowledged = flow.end()
    everything_came(acknowledged, consumer)
    one_owner_each(8, consumer)
    # Offsets are committed at last: a consumer of the same group finds nothing to do.
    on.close(consumer)
    wait_until(lambda: on.cluster.committed(topic, on.group) == on.cluster.stored(topic), "the commit", SETTLE_S)


@pytest.mark.parametrize("end", ["stop", "kill"])
def test_the_only_master_of_a_topic_restarts_under_load(mortals: Scene, end: str) -> None:
    on = mortals
    topic = on.topic(only=("broker-a",))
    consumer = on.push(topic)
    broker = on.cluster.brokers["broker-a"]
    with load(on, topic) as flow:
        for _ in range(2):
            flow.more()
            getattr(broker, end)()
            broker.start()
        flow.more()
        acknowledged = flow.end()
    everything_came(acknowledged, consumer)


def test_the_nameserver_restarts_under_load(mortals: Scene) -> None:
    on = mortals
    topic = on.topic()
    consumer = on.push(topic)
    with load(on, topic) as flow:
        flow.more()
        on.cluster.nameserver.kill()
        flow.more()
        on.cluster.nameserver.start()
        wait_until(lambda: on.cluster.masters(topic) == set(on.cluster.brokers), "both registered again", SETTLE_S)
        late = on.push(topic)
        one_owner_each(8, consumer, late)
        flow.more()
        acknowledged = flow.end()
    assert flow.refused == 0, "routes that are known are used without a nameserver"
    everything_came(acknowledged, consumer, late)


def test_orderly_consumers_go_on_after_a_restart_of_both_masters(mortals: Scene) -> None:
    on = mortals
    topic = on.topic(queues=2)
    both = on.push(topic, kind="orderly"), on.push(topic, kind="orderly")
    one_owner_each(4, *both)
    with load(on, topic) as flow:
        flow.more()
        for broker in on.cluster.brokers.values():
            broker.kill()
            broker.start()
        flow.more()
        acknowledged = flow.end()
    everything_came(acknowledged, *both)
    one_owner_each(4, *both)
    for each in both:
        in_order(each)


@pytest.mark.parametrize("kind", ["concurrent", "orderly"])
def test_consumers_come_and_go_and_die(mortals: Scene, clients: dict[str, Clients], kind: str) -> None:
    on = mortals
    topic = on.topic()
    first = on.push(topic, kind=kind)
    with load(on, topic) as flow, Jvm(clients[on.jvm.version]) as other:
        flow.more()
        second = on.push(topic, kind=kind)
        flow.more()
        doomed = on.push(topic, kind=kind, jvm=other)
        one_owner_each(8, first, second, doomed)
        flow.more()
        on.close(second)
        flow.more()
        one_owner_each(8, first, doomed)
        other.kill()
        flow.more()
        late = on.push(topic, kind=kind)
        one_owner_each(8, first, late)
        flow.more()
        acknowledged = flow.end()
        everything_came(acknowledged, first, second, doomed, late)
    if kind == "orderly":
        for each in (first, second, doomed, late):
            in_order(each)


def in_order(consumer: Remote) -> None:
    """Within a stay of a queue at a consumer offsets grow one by one; only a new stay may begin elsewhere."""
    last: dict[tuple[str, int], int] = {}
    jumps = 0
    for each in consumer.events():
        if queue(each) in last and each["offset"] != last[queue(each)] + 1:
            jumps += 1
        last[queue(each)] = each["offset"]
    assert jumps <= 8, "more jumps than queues could move"


def test_clients_of_both_versions_share_a_group(tmp_path: Path, jvms: dict[str, Jvm]) -> None:
    old, new = VERSIONS
    with Cluster(tmp_path) as cluster, scene(cluster, jvms[old], "old") as on, scene(cluster, jvms[new], "new") as also:
        topic = on.topic()
        both = (on.push(topic, group="mixed"), also.push(topic, group="mixed"))
        one_owner_each(8, *both)
        with load(also, topic) as flow:
            flow.more()
            acknowledged = flow.end()
        everything_came(acknowledged, *both)
        assert all(each.bodies() for each in both)


@pytest.mark.parametrize("faults", [False, True], ids=["retry", "latency"])
def test_a_producer_tries_another_broker_when_one_refuses(mortals: Scene, faults: bool) -> None:
    on = mortals
    topic = on.topic()
    refusing = on.cluster.brokers["broker-a"]
    tomorrow = str(int(time.time() + 86_400) * 1000)
    setting = ("-k", "startAcceptSendRequestTimeStamp", "-v", tomorrow)
    said = on.jvm.mqadmin("updateBrokerConfig", "-b", refusing.address, *setting, "-n", on.cluster.address)
    assert "success" in said
    producer = on.producer(retryTimesWhenSendFailed=2, sendLatencyFaultEnable=faults)
    sent = [producer.call("send", message(topic, str(n))) for n in range(12)]
    assert {queue(each)[0] for each in sent} == {"broker-b"}
    assert len(on.push(topic).wait(12)) == 12


@pytest.mark.parametrize("end", ["stop", "kill"])
def test_a_restart_keeps_delays_half_messages_and_offsets(mortals: Scene, end: str) -> None:
    on = mortals
    topic = on.topic(queues=1, only=("broker-a",))
    broker = on.cluster.brokers["broker-a"]
    producer = on.producer()
    for n in range(5):
        producer.call("send", message(topic, f"before {n}"))
    consumer = on.push(topic)
    consumer.wait(5)
    on.close(consumer)
    wait_until(lambda: on.cluster.committed(topic, on.group) == 5, "the commit", SETTLE_S)
    doubtful = on.producer(f"doubtful-{on.tag}", kind="TransactionMQProducer")
    properties = {"decide": "UNKNOW", "check": "COMMIT_MESSAGE"}
    offsets = broker.store / "config" / "consumerOffset.json"
    told = f"{topic}@{on.group}"
    wait_until(lambda: offsets.exists() and told in offsets.read_text(), "the offsets in their file", SETTLE_S)
    producer.call("send", message(topic, "delayed", delay=2))
    doubtful.call("sendMessageInTransaction", message(topic, "half", properties=properties), None)
    getattr(broker, end)()
    broker.start()
    again = on.push(topic)
    again.wait(lambda got: {"delayed", "half"} <= {each["body"] for each in got})
    assert Counter(again.bodies()) == Counter(["delayed", "half"])
