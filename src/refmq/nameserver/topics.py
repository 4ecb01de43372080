"""Routes and lists of topics, and the steps by which operators change them. Read from RouteInfoManager of 4.9.8.

Lists are sorted where upstream's stand in the order of a hash map, so that the same table gives the same answer.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from rpds import HashTrieMap

from refmq.model.step import Event, Step
from refmq.nameserver.registration import CloseChannel
from refmq.nameserver.tables import (
    PERM_READ,
    PERM_WRITE,
    UNIT_FLAG,
    UNIT_SUBSCRIPTION_FLAG,
    RouteTable,
)
from refmq.protocol.bodies.route import BrokerData, ClusterInfo, QueueData, TopicList, TopicRouteData

# Questions ---------------------------------------------------------------------------------------------------------


def topic_route(table: RouteTable, topic: str, order_topic_conf: str | None = None) -> TopicRouteData | None:
    """Where a topic is, or None if no known broker has it.

    A broker that has queues but no address is in ``queue_datas`` only, as upstream sends it.
    """
    queues = table.topic_queues.get(topic)
    if queues is None:
        return None
    assert queues, "a topic that is on no broker is gone"
    brokers = [broker for name in sorted(queues) if (broker := table.brokers.get(name)) is not None]
    if not brokers:
        return None
    addresses = [address for broker in brokers for address in broker.broker_addrs.values()]
    return TopicRouteData(
        broker_datas=tuple(brokers),
        queue_datas=tuple(queues[name] for name in sorted(queues)),
        filter_server_table={
            address: table.filter_servers[address] for address in addresses if address in table.filter_servers
        },
        order_topic_conf=order_topic_conf,
    )


def cluster_info(table: RouteTable) -> ClusterInfo:
    """Every broker and every cluster."""
    brokers: dict[str, BrokerData] = {name: table.brokers[name] for name in sorted(table.brokers)}
    return ClusterInfo(
        broker_addr_table=brokers,
        cluster_addr_table={cluster: tuple(sorted(table.clusters[cluster])) for cluster in sorted(table.clusters)},
    )


def all_topics(table: RouteTable) -> TopicList:
    return TopicList(topic_list=tuple(sorted(table.topic_queues)))


def topics_of_cluster(table: RouteTable, cluster: str) -> TopicList:
    """The topics that have queues on a broker of the cluster; none for an unknown cluster."""
    names = table.clusters.get(cluster, ())
    found = [topic for topic, queues in table.topic_queues.items() if any(name in queues for name in names)]
    return TopicList(topic_list=tuple(sorted(found)))


def system_topics(table: RouteTable) -> TopicList:
    """The names of clusters and brokers, which are topics too, and a broker that knows the other system topics."""
    names = {*table.clusters, *table.brokers}
    addresses = sorted(address for broker in table.brokers.values() for address in broker.broker_addrs.values())
    return TopicList(topic_list=tuple(sorted(names)), broker_addr=addresses[0] if addresses else None)


def unit_topics(table: RouteTable) -> TopicList:
    return topics_by_flag(table, lambda flag: bool(flag & UNIT_FLAG))


def unit_subscription_topics(table: RouteTable) -> TopicList:
    return topics_by_flag(table, lambda flag: bool(flag & UNIT_SUBSCRIPTION_FLAG))


def unit_subscription_without_unit_topics(table: RouteTable) -> TopicList:
    return topics_by_flag(table, lambda flag: bool(flag & UNIT_SUBSCRIPTION_FLAG) and not flag & UNIT_FLAG)


def topics_by_flag(table: RouteTable, chosen: Callable[[int], bool]) -> TopicList:
    """Topics by the flag of one of their brokers: upstream takes any, we take the first by name."""
    found = [
        topic for topic, queues in table.topic_queues.items() if queues and chosen(queues[min(queues)].topic_sys_flag)
    ]
    return TopicList(topic_list=tuple(sorted(found)))


def topics_of_broker(table: RouteTable, broker_name: str) -> list[str]:
    return sorted(topic for topic, queues in table.topic_queues.items() if broker_name in queues)


# WipeWritePerm, AddWritePerm ---------------------------------------------------------------------------------------


def wipe_write_perm(table: RouteTable, broker_name: str) -> Step[RouteTable, CloseChannel]:
    """Producers go elsewhere. The broker's next registration with another version brings the permission back."""
    return change_perm(table, broker_name, "WipeWritePerm", lambda perm: perm & ~PERM_WRITE)


def add_write_perm(table: RouteTable, broker_name: str) -> Step[RouteTable, CloseChannel]:
    """Read and write and nothing else: upstream sets 6 whatever was there before."""
    return change_perm(table, broker_name, "AddWritePerm", lambda perm: PERM_READ | PERM_WRITE)


def change_perm(
    table: RouteTable, broker_name: str, action: str, new_perm: Callable[[int], int]
) -> Step[RouteTable, CloseChannel]:
    # Enabled
    topics = topics_of_broker(table, broker_name)
    if not topics:
        return Step(table)
    # Next
    topic_queues = table.topic_queues
    for topic in topics:
        queues: HashTrieMap[str, QueueData] = topic_queues[topic]
        data = queues[broker_name]
        assert data.broker_name == broker_name
        topic_queues = topic_queues.insert(topic, queues.insert(broker_name, replace(data, perm=new_perm(data.perm))))
    # Effects, trace
    event = Event(action, subject=broker_name, a=len(topics))
    return Step(replace(table, topic_queues=topic_queues), (), event)


# DeleteTopic -------------------------------------------------------------------------------------------------------


def delete_topic(table: RouteTable, topic: str, cluster: str | None) -> Step[RouteTable, CloseChannel]:
    # Enabled: an unknown topic, or a topic of other clusters, stays as it is
    queues = table.topic_queues.get(topic)
    if queues is None:
        return Step(table)
    # Next
    gone = tuple(queues) if cluster is None else tuple(table.clusters.get(cluster, ()))
    for name in sorted(gone):
        queues = queues.discard(name)
    topic_queues = table.topic_queues.insert(topic, queues) if queues else table.topic_queues.discard(topic)
    # Effects, trace
    return Step(replace(table, topic_queues=topic_queues), (), Event("DeleteTopic", actor=cluster or "", subject=topic))
