"""The test cluster: what the fixture `refmq` can do, used as a test would use it."""

from __future__ import annotations

import threading
import time

import pytest

from refmq import sync
from refmq.errors import ConnectFailed, UsageError
from refmq.testing import TestCluster


def test_it_starts_in_a_moment_and_leaves_nothing_behind() -> None:
    before = threading.active_count()
    with TestCluster():  # whatever is imported is imported now
        pass
    began = time.monotonic()
    for _ in range(5):
        with TestCluster() as cluster:
            assert cluster.messages("Nothing").bodies() == []
    assert (time.monotonic() - began) / 5 < 2.0
    assert threading.active_count() == before


def test_two_of_them_know_nothing_of_each_other(cluster: TestCluster) -> None:
    with TestCluster() as other:
        cluster.send("Orders", b"here")
        assert cluster.namesrv != other.namesrv
        assert other.messages("Orders").bodies() == []
        assert cluster.messages("Orders").bodies() == [b"here"]


def test_messages_come_in_the_order_in_which_they_were_stored(cluster: TestCluster) -> None:
    cluster.add_broker("broker-b")
    cluster.topic("Orders", queues=4)
    with sync.Producer(cluster.namesrv, group="p") as producer:
        queues = producer.queues("Orders")
        assert {queue.broker for queue in queues} == {"broker-a", "broker-b"}
        for number in range(20):
            producer.send("Orders", b"%d" % number, queue=queues[(7 * number) % len(queues)])
            time.sleep(0.002)  # of one millisecond only a broker knows the order
    assert cluster.messages("Orders").bodies() == [b"%d" % number for number in range(20)]


def test_messages_offsets_and_lag_can_be_asked_for(cluster: TestCluster) -> None:
    cluster.topic("Orders", queues=2)
    for number in range(4):
        cluster.send("Orders", b"%d" % number, tag="even" if number % 2 == 0 else "odd", keys=[f"k{number}"])
    stored = cluster.messages("Orders")
    assert sorted(stored.bodies()) == [b"0", b"1", b"2", b"3"]
    assert sorted(stored.tags()) == ["even", "even", "odd", "odd"]
    assert stored.with_key("k3").bodies() == [b"3"]
    assert len(stored) == 4
    assert "4 messages in Orders" in repr(stored)
    with sync.Consumer(cluster.namesrv, group="g", topics="Orders", start="first") as consumer:
        for _ in range(3):
            message = consumer.receive(10)
            assert message is not None
            consumer.ack(message)
        assert cluster.members("g") == [consumer.asynchronous.client_id]
    assert cluster.lag("g") == 1
    assert sum(cluster.offsets("g", "Orders").values()) == 3
    assert cluster.requests("PULL_MESSAGE")
    assert any("PULL_MESSAGE Orders (g)" in line for line in cluster.events())


def test_there_can_be_more_than_one_broker(cluster: TestCluster) -> None:
    second = cluster.add_broker("broker-b")
    cluster.topic("Orders", queues=1)
    for _ in range(4):
        cluster.send("Orders", b"x")
    assert {message.queue.broker for message in cluster.messages("Orders")} == {"broker-a", "broker-b"}
    second.stop()
    assert {message.queue.broker for message in cluster.messages("Orders")} == {"broker-a"}
    with pytest.raises(UsageError, match="already"):
        cluster.add_broker("broker-b")


def test_after_its_end_it_says_so() -> None:
    with TestCluster() as cluster:
        pass
    with pytest.raises(UsageError, match="not running"):
        cluster.topic("Orders")
    with pytest.raises(ConnectFailed), sync.Admin(cluster.namesrv) as admin:
        admin.topics()
