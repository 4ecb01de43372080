"""Routes and lists of topics, and the steps by which operators change them."""

from __future__ import annotations

from refmq.model.ids import BrokerId, TimestampMs
from refmq.nameserver import topics
from refmq.nameserver.registration import Registration, register_broker
from refmq.nameserver.tables import ChannelId, RouteTable, violations
from refmq.protocol.bodies.config import DataVersion, TopicConfig


def with_broker(table: RouteTable, name: str, cluster: str, **flags: int) -> RouteTable:
    """The table with a broker that has a topic for each flag."""
    configs = {
        topic: TopicConfig(topic_name=topic, read_queue_nums=4, write_queue_nums=4, perm=7, topic_sys_flag=flag)
        for topic, flag in flags.items()
    }
    version = DataVersion(timestamp=1, counter=1)
    broker = Registration(cluster, name, BrokerId(0), f"{name}:1", f"{name}:2", version, configs)
    return register_broker(table, broker, ChannelId(1), TimestampMs(0)).state


TABLE = with_broker(with_broker(RouteTable(), "b", "C2", T=0, U=1), "a", "C1", T=0, S=2, Both=3)


def perms(table: RouteTable, topic: str) -> dict[str, int]:
    route = topics.topic_route(table, topic)
    assert route is not None
    return {data.broker_name: data.perm for data in route.queue_datas}


def test_a_route_has_every_broker_of_the_topic_in_order() -> None:
    route = topics.topic_route(TABLE, "T", "a:4")
    assert route is not None
    assert [broker.broker_name for broker in route.broker_datas] == ["a", "b"]
    assert route.order_topic_conf == "a:4"
    assert topics.topic_route(TABLE, "Unknown") is None


def test_lists_are_sorted_and_of_their_cluster_or_flag() -> None:
    assert topics.all_topics(TABLE).topic_list == ("Both", "S", "T", "U")
    assert topics.topics_of_cluster(TABLE, "C2").topic_list == ("T", "U")
    assert topics.topics_of_cluster(TABLE, "C3").topic_list == ()
    assert topics.unit_topics(TABLE).topic_list == ("Both", "U")
    assert topics.unit_subscription_topics(TABLE).topic_list == ("Both", "S")
    assert topics.unit_subscription_without_unit_topics(TABLE).topic_list == ("S",)
    system = topics.system_topics(TABLE)
    assert (system.topic_list, system.broker_addr) == (("C1", "C2", "a", "b"), "a:1")


def test_the_cluster_lists_every_broker() -> None:
    info = topics.cluster_info(TABLE)
    assert info.cluster_addr_table == {"C1": ("a",), "C2": ("b",)}
    assert list(info.broker_addr_table) == ["a", "b"]


def test_write_permission_is_wiped_at_one_broker_and_added_as_read_and_write() -> None:
    wiped = topics.wipe_write_perm(TABLE, "a")
    assert perms(wiped.state, "T") == {"a": 5, "b": 7}
    assert wiped.event is not None
    assert (wiped.event.action, wiped.event.subject, wiped.event.a) == ("WipeWritePerm", "a", 3)
    assert perms(topics.add_write_perm(wiped.state, "a").state, "T") == {"a": 6, "b": 7}
    assert topics.wipe_write_perm(TABLE, "unknown").state is TABLE


def test_a_topic_is_deleted_in_one_cluster_or_in_all() -> None:
    assert perms(topics.delete_topic(TABLE, "T", "C1").state, "T") == {"b": 7}
    everywhere = topics.delete_topic(TABLE, "T", None).state
    assert topics.topic_route(everywhere, "T") is None
    assert list(violations(everywhere)) == []
    assert topics.delete_topic(TABLE, "Unknown", None).state is TABLE
    assert topics.delete_topic(TABLE, "T", "C3").state == TABLE
