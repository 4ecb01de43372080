"""The five tables of routes, as persistent maps: a step costs what it touches, and the state before it stays whole.

| table            | upstream's name     | key to value                                                           |
|------------------|---------------------|------------------------------------------------------------------------|
| `topic_queues`   | topicQueueTable     | topic to (broker name to QueueData)                                    |
| `brokers`        | brokerAddrTable     | broker name to BrokerData: cluster and (broker id to address)          |
| `clusters`       | clusterAddrTable    | cluster to the names of its brokers                                    |
| `live`           | brokerLiveTable     | broker address to when it was heard, its version, channel, HA address  |
| `filter_servers` | filterServerTable   | broker address to the addresses of its filter servers                  |

Nothing here is persisted: brokers register again within 30 seconds. Nameservers never talk to each other.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final, NewType

from rpds import HashTrieMap, HashTrieSet

from refmq.model.ids import BrokerId, TimestampMs
from refmq.protocol.bodies.config import DataVersion
from refmq.protocol.bodies.route import BrokerData, QueueData

ChannelId = NewType("ChannelId", int)
"""A connection of the nameserver: a number that is never reused."""

MASTER_ID: Final = BrokerId(0)

PERM_INHERIT: Final = 1
PERM_WRITE: Final = 2
PERM_READ: Final = 4

UNIT_FLAG: Final = 1
UNIT_SUBSCRIPTION_FLAG: Final = 2


@dataclass(frozen=True, slots=True)
class LiveBroker:
    """A broker address that registered, and by which connection."""

    last_update_ms: TimestampMs
    data_version: DataVersion
    channel: ChannelId
    ha_server_addr: str


@dataclass(frozen=True, slots=True)
class RouteTable:
    """What a nameserver knows about brokers and topics."""

    topic_queues: HashTrieMap[str, HashTrieMap[str, QueueData]] = field(default_factory=HashTrieMap)
    brokers: HashTrieMap[str, BrokerData] = field(default_factory=HashTrieMap)
    clusters: HashTrieMap[str, HashTrieSet[str]] = field(default_factory=HashTrieMap)
    live: HashTrieMap[str, LiveBroker] = field(default_factory=HashTrieMap)
    filter_servers: HashTrieMap[str, tuple[str, ...]] = field(default_factory=HashTrieMap)
    channels: HashTrieMap[ChannelId, HashTrieSet[str]] = field(default_factory=HashTrieMap)
    """The live addresses by the connection over which each was heard last."""

    def addresses_of(self, channel: ChannelId) -> HashTrieSet[str]:
        return self.channels.get(channel) or HashTrieSet()


def violations(table: RouteTable) -> Iterator[str]:
    """Every promise that the table breaks, as a sentence. Slow; for tests.

    A live address that no broker name lists is not a violation: another broker may have registered its name and id, and
    then the loser stays in `live` until it is silent for long enough.
    """
    for name, broker in table.brokers.items():
        if not broker.broker_addrs:
            yield f"broker {name} has no address"
        if len(set(broker.broker_addrs.values())) != len(broker.broker_addrs):
            yield f"broker {name} has one address under two ids"
        if name not in table.clusters.get(broker.cluster, ()) and not any(name in c for c in table.clusters.values()):
            yield f"broker {name} belongs to no cluster"
    for cluster, names in table.clusters.items():
        if not names:
            yield f"cluster {cluster} is empty"
    for topic, queues in table.topic_queues.items():
        if not queues:
            yield f"topic {topic} is on no broker"
        for name, data in queues.items():
            if name != data.broker_name:
                yield f"topic {topic} has the queues of {data.broker_name} under {name}"
            if name not in table.brokers:
                yield f"topic {topic} is on broker {name}, which is gone"
    by_channel = {(live.channel, address) for address, live in table.live.items()}
    if by_channel != {(channel, address) for channel, addresses in table.channels.items() for address in addresses}:
        yield "the addresses by connection are not those that are alive"
    for address in table.filter_servers:
        if address not in table.live:
            yield f"filter servers of {address}, which is gone"
