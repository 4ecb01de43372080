"""The promises of the tables, each seen to be broken."""

from __future__ import annotations

from dataclasses import replace

import pytest
from rpds import HashTrieMap, HashTrieSet

from refmq.model.ids import TimestampMs
from refmq.nameserver.tables import ChannelId, LiveBroker, RouteTable, violations
from refmq.protocol.bodies.config import DataVersion
from refmq.protocol.bodies.route import BrokerData, QueueData

QUEUES = QueueData(broker_name="A", read_queue_nums=4, write_queue_nums=4, perm=6)
GOOD = RouteTable(
    topic_queues=HashTrieMap({"T": HashTrieMap({"A": QUEUES})}),
    brokers=HashTrieMap({"A": BrokerData(cluster="C", broker_name="A", broker_addrs={0: "a:1"})}),
    clusters=HashTrieMap({"C": HashTrieSet({"A"})}),
    live=HashTrieMap({"a:1": LiveBroker(TimestampMs(0), DataVersion(timestamp=0, counter=0), ChannelId(1), "a:2")}),
    filter_servers=HashTrieMap({"a:1": ("f:1",)}),
    channels=HashTrieMap({ChannelId(1): HashTrieSet({"a:1"})}),
)

BROKEN = {
    "broker A has no address": replace(
        GOOD, brokers=HashTrieMap({"A": BrokerData(cluster="C", broker_name="A", broker_addrs={})})
    ),
    "broker A has one address under two ids": replace(
        GOOD, brokers=HashTrieMap({"A": BrokerData(cluster="C", broker_name="A", broker_addrs={0: "a:1", 1: "a:1"})})
    ),
    "broker A belongs to no cluster": replace(GOOD, clusters=HashTrieMap()),
    "cluster D is empty": replace(GOOD, clusters=GOOD.clusters.insert("D", HashTrieSet())),
    "topic U is on no broker": replace(GOOD, topic_queues=GOOD.topic_queues.insert("U", HashTrieMap())),
    "topic U has the queues of A under A2": replace(
        GOOD,
        topic_queues=GOOD.topic_queues.insert("U", HashTrieMap({"A2": QUEUES})),
        brokers=GOOD.brokers.insert("A2", GOOD.brokers["A"]),
        clusters=GOOD.clusters.insert("C", HashTrieSet({"A", "A2"})),
    ),
    "topic T is on broker A, which is gone": replace(GOOD, brokers=HashTrieMap()),
    "filter servers of a:1, which is gone": replace(GOOD, live=HashTrieMap(), channels=HashTrieMap()),
    "the addresses by connection are not those that are alive": replace(GOOD, channels=HashTrieMap()),
}


def test_a_good_table_breaks_no_promise() -> None:
    assert list(violations(GOOD)) == []
    assert list(violations(RouteTable())) == []


@pytest.mark.parametrize("sentence", BROKEN)
def test_a_broken_promise_is_named(sentence: str) -> None:
    assert list(violations(BROKEN[sentence])) == [sentence]
