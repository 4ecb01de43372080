"""Bodies about where things are: routes (105), the cluster (106), and lists of topics.

    body           JSON members
    -------------  ---------------------------------------------------------------------------------------------------
    TopicRouteData ``brokerDatas`` [BrokerData], ``filterServerTable`` {address: [address]}, ``orderTopicConf`` (rare),
                   ``queueDatas`` [QueueData]
    BrokerData     ``brokerAddrs`` {broker id: "ip:port"}, ``brokerName``, ``cluster``; 5.3.3: ``enableActingMaster``,
                   ``zoneName``
    QueueData      ``brokerName``, ``perm``, ``readQueueNums``, ``topicSysFlag``, ``writeQueueNums``
    ClusterInfo    ``brokerAddrTable`` {broker name: BrokerData}, ``clusterAddrTable`` {cluster: [broker name]}
    TopicList      ``brokerAddr`` (304 only), ``topicList`` [topic]

The Go client cuts ``brokerAddrs`` out of the text and splits it: no white space may ever be written there.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from refmq.protocol.bodies.codec import JsonStyle
from refmq.protocol.headers.codec import Int32, Int64
from refmq.protocol.versions import V4_9_4


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerData:
    """The addresses of one broker name; id 0 is the master."""

    cluster: str
    broker_name: str
    broker_addrs: Mapping[Int64, str] = field(default_factory=dict)
    zone_name: str | None = None  # 5.3.3
    enable_acting_master: bool | None = None  # 5.3.3


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueData:
    """The queues that one broker has of one topic."""

    broker_name: str
    read_queue_nums: Int32
    write_queue_nums: Int32
    perm: Int32
    topic_sys_flag: Int32 = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicRouteData:
    """Answer to 105."""

    broker_datas: tuple[BrokerData, ...] = ()
    queue_datas: tuple[QueueData, ...] = ()
    filter_server_table: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    order_topic_conf: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterInfo:
    """Answer to 106."""

    broker_addr_table: Mapping[str, BrokerData] = field(default_factory=dict)
    cluster_addr_table: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicList:
    """Answer to 206, 224, 304, 305, 311 to 313 and 343."""

    topic_list: tuple[str, ...] = ()
    broker_addr: str | None = None


def route_style(client_version: int, *, accept_standard_json_only: bool = False) -> JsonStyle:
    """The form in which a 4.9.8 nameserver writes a route for a client.

    Every client examined reads all three forms, so this is for those who want the same bytes.
    """
    if accept_standard_json_only or client_version >= V4_9_4:
        return JsonStyle.ASCII
    return JsonStyle.FASTJSON
