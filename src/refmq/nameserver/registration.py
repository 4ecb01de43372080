"""A broker comes and goes: registration, the question for its version, leaving, silence, a lost connection.

Read from RouteInfoManager of 4.9.8. Two things differ on purpose:

- A registration with a single topic from a master that is not live is refused, as in 5.3.3. It is an incremental one
  that overtook the first full registration (after a restart of the nameserver); taking it would record the broker's
  newest version with one topic, and the full registration of the same version would then change nothing.
- A lost connection takes with it every broker that registered over it, not only the first one found, and
  never one that merely has the same address as the peer.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Set
from dataclasses import dataclass, field, replace
from typing import Final

from rpds import HashTrieMap, HashTrieSet

from refmq.model.ids import BrokerId, TimestampMs
from refmq.model.step import Event, Step
from refmq.nameserver.tables import MASTER_ID, ChannelId, LiveBroker, RouteTable
from refmq.protocol.bodies.config import DataVersion, TopicConfig
from refmq.protocol.bodies.route import BrokerData, QueueData

EXPIRY_MS: Final = 120_000  # RouteInfoManager.BROKER_CHANNEL_EXPIRED_TIME
SCAN_PERIOD_MS: Final = 10_000  # NamesrvController's scheduled task
SCAN_DELAY_MS: Final = 5_000

BROKERS_MAX: Final = 10_000  # live addresses; upstream has no bound, and anybody who reaches the port may register
BROKERS_PER_CHANNEL_MAX: Final = 256  # a broker has a connection of its own; one peer must not lock all others out
TOPICS_MAX: Final = 200_000
NAME_LENGTH_MAX: Final = 255  # of a cluster, a broker name, an address or a topic
FILTER_SERVERS_MAX: Final = 16


@dataclass(frozen=True, slots=True)
class CloseChannel:
    """Effect: close a connection."""

    channel: ChannelId


@dataclass(frozen=True, slots=True)
class Registration:
    """What a broker says about itself."""

    cluster: str
    broker_name: str
    broker_id: BrokerId
    address: str
    ha_server_addr: str
    data_version: DataVersion
    topics: Mapping[str, TopicConfig] = field(default_factory=dict)
    filter_servers: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Master:
    """Where the master of a slave is."""

    address: str
    ha_server_addr: str


TOPICS_AT_ONCE: Final = 1_000
"""Topics of a long registration that are taken before others have their turn: some milliseconds."""


# RegisterBroker ----------------------------------------------------------------------------------------------------


def register_broker_enabled(table: RouteTable, broker: Registration) -> bool:
    unknown = broker.address not in table.live
    overtook_the_first = broker.broker_id == MASTER_ID and unknown and len(broker.topics) == 1
    full = unknown and len(table.live) >= BROKERS_MAX
    return not overtook_the_first and not full and has_room_for(table, broker.topics) and has_sound_names(broker)


def has_room_for(table: RouteTable, topics: Iterable[str]) -> bool:
    """Whether there is room for those of some topics that are new."""
    return len(table.topic_queues) + sum(topic not in table.topic_queues for topic in topics) <= TOPICS_MAX


def has_sound_names(broker: Registration) -> bool:
    """Whether everything that a registration names can be told to others."""
    names = (broker.cluster, broker.broker_name, broker.address)
    if not all(0 < len(name) <= NAME_LENGTH_MAX for name in names) or len(broker.ha_server_addr) > NAME_LENGTH_MAX:
        return False
    servers = broker.filter_servers
    if len(servers) > FILTER_SERVERS_MAX or any(len(server) > NAME_LENGTH_MAX for server in servers):
        return False
    return all(len(name) <= NAME_LENGTH_MAX for name in broker.topics)


def has_room_on(table: RouteTable, broker: Registration, channel: ChannelId) -> bool:
    """Whether one more broker may register over a connection."""
    there = table.addresses_of(channel)
    return broker.address in there or len(there) < BROKERS_PER_CHANNEL_MAX


def register_broker(
    table: RouteTable, broker: Registration, channel: ChannelId, now_ms: TimestampMs
) -> Step[RouteTable, CloseChannel]:
    # Enabled
    if not register_broker_enabled(table, broker) or not has_room_on(table, broker, channel):
        return Step(table)
    # Next
    before = table.brokers.get(broker.broker_name)
    topic_queues = table.topic_queues
    if takes_topics(table, broker):
        topic_queues = with_topics(topic_queues, broker.broker_name, broker.topics.values())
    members = table.clusters.get(broker.cluster) or HashTrieSet()
    after = replace(
        table,
        topic_queues=topic_queues,
        brokers=table.brokers.insert(broker.broker_name, with_address(before, broker)),
        clusters=table.clusters.insert(broker.cluster, members.insert(broker.broker_name)),
        live=table.live.insert(broker.address, LiveBroker(now_ms, broker.data_version, channel, broker.ha_server_addr)),
        channels=moved(table, broker.address, channel),
        filter_servers=(
            table.filter_servers.insert(broker.address, broker.filter_servers)
            if broker.filter_servers
            else table.filter_servers.discard(broker.address)
        ),
    )
    assert len(after.live) <= BROKERS_MAX or broker.address in table.live
    assert after.brokers[broker.broker_name].broker_addrs[broker.broker_id] == broker.address, "the newest owns its id"
    assert after.live[broker.address].channel == channel
    # Effects, trace
    return Step(after, (), Event("RegisterBroker", broker.address, broker.broker_name, a=broker.broker_id, b=channel))


def takes_topics(table: RouteTable, broker: Registration) -> bool:
    """Whether the topics of a registration count: a master's, when its version is another one or it is new."""
    before = table.brokers.get(broker.broker_name)
    first = before is None or broker.broker_id not in before.broker_addrs
    known = table.live.get(broker.address)
    changed = known is None or known.data_version != broker.data_version
    return broker.broker_id == MASTER_ID and (changed or first)


def sliced(broker: Registration) -> list[Registration]:
    """A registration as several, with `TOPICS_AT_ONCE` topics each: the first registers, `register_more` takes the
    others. A query in between sees only the first topics, as if the broker had registered a moment later."""
    topics = list(broker.topics.items())
    pieces = [dict(topics[at : at + TOPICS_AT_ONCE]) for at in range(0, len(topics), TOPICS_AT_ONCE)]
    assert sum(map(len, pieces)) == len(broker.topics), "every topic is in one piece"
    return [replace(broker, topics=piece) for piece in pieces] or [broker]


def register_more(table: RouteTable, broker: Registration, channel: ChannelId) -> RouteTable:
    """The table with further topics of a broker that has just registered; unless it has left or spoken meanwhile."""
    live = table.live.get(broker.address)
    if live is None or live.channel != channel or live.data_version != broker.data_version:
        return table
    assert len(broker.topics) <= TOPICS_AT_ONCE, "the others wait for their turn"
    if not has_room_for(table, broker.topics):
        return table  # somebody else was quicker
    topic_queues = with_topics(table.topic_queues, broker.broker_name, broker.topics.values())
    return replace(table, topic_queues=topic_queues)


def with_address(before: BrokerData | None, broker: Registration) -> BrokerData:
    """The addresses of a broker name after a registration: an address has one id, the one it had before goes."""
    others = before.broker_addrs.items() if before is not None else ()
    addresses = {id_: address for id_, address in others if address != broker.address}
    addresses[broker.broker_id] = broker.address
    assert list(addresses.values()).count(broker.address) == 1, "an address has one id"
    cluster = before.cluster if before is not None else broker.cluster  # of the first registration, for good
    return BrokerData(cluster=cluster, broker_name=broker.broker_name, broker_addrs=dict(sorted(addresses.items())))


def with_topics(
    topic_queues: HashTrieMap[str, HashTrieMap[str, QueueData]], broker_name: str, topics: Iterable[TopicConfig]
) -> HashTrieMap[str, HashTrieMap[str, QueueData]]:
    """The queues after a broker sent its topics. What it did not send stays: the registration may be of one topic."""
    for topic in topics:
        queues = topic_queues.get(topic.topic_name) or HashTrieMap()
        data = QueueData(
            broker_name=broker_name,
            read_queue_nums=topic.read_queue_nums,
            write_queue_nums=topic.write_queue_nums,
            perm=topic.perm,
            topic_sys_flag=topic.topic_sys_flag,
        )
        if queues.get(broker_name) != data:
            topic_queues = topic_queues.insert(topic.topic_name, queues.insert(broker_name, data))
    return topic_queues


def master_of(table: RouteTable, broker_name: str, broker_id: BrokerId) -> Master | None:
    """What a slave learns: its master, if that is live. A master learns nothing."""
    broker = table.brokers.get(broker_name)
    if broker is None or broker_id == MASTER_ID:
        return None
    address = broker.broker_addrs.get(MASTER_ID)
    live = table.live.get(address) if address is not None else None
    return Master(address, live.ha_server_addr) if address is not None and live is not None else None


# QueryDataVersion --------------------------------------------------------------------------------------------------


def query_data_version_enabled(table: RouteTable, address: str, version: DataVersion) -> bool:
    """Whether the version is the known one. A broker that gets "changed" registers in full."""
    live = table.live.get(address)
    return live is not None and live.data_version == version


def query_data_version(
    table: RouteTable, address: str, version: DataVersion, now_ms: TimestampMs
) -> Step[RouteTable, CloseChannel]:
    # Enabled
    if not query_data_version_enabled(table, address, version):
        return Step(table)
    # Next: the question is a sign of life
    live = table.live[address]
    after = replace(table, live=table.live.insert(address, replace(live, last_update_ms=now_ms)))
    # Effects, trace
    return Step(after, (), Event("QueryDataVersion", address))


# UnregisterBroker --------------------------------------------------------------------------------------------------


def unregister_broker(
    table: RouteTable, cluster: str, broker_name: str, broker_id: BrokerId, address: str
) -> Step[RouteTable, CloseChannel]:
    # Enabled: always; leaving twice changes nothing the second time
    # Next: the id goes whatever its address is, and the cluster is the one the broker names
    after = without_live(table, address)
    broker = after.brokers.get(broker_name)
    if broker is not None and broker_id in broker.broker_addrs:
        after = without_broker_id(after, broker, broker_id, (cluster,))
    # Effects, trace
    assert address not in after.live
    return Step(after, (), Event("UnregisterBroker", address, broker_name, a=broker_id))


# ExpireBrokers -----------------------------------------------------------------------------------------------------


def expired(table: RouteTable, now_ms: TimestampMs) -> list[str]:
    """The addresses that were not heard for more than ``EXPIRY_MS``, sorted."""
    return sorted(address for address, live in table.live.items() if live.last_update_ms + EXPIRY_MS < now_ms)


def expire_brokers(table: RouteTable, now_ms: TimestampMs) -> Step[RouteTable, CloseChannel]:
    # Enabled
    addresses = expired(table, now_ms)
    if not addresses:
        return Step(table)
    # Next
    channels = sorted({table.live[address].channel for address in addresses})
    after = without_addresses(table, addresses)
    # Effects, trace: closing gives a broker that is alive after all a reason to connect and register again
    assert not expired(after, now_ms)
    effects = tuple(CloseChannel(channel) for channel in channels)
    return Step(after, effects, Event("ExpireBrokers", a=len(addresses)))


# CloseBrokerChannel ------------------------------------------------------------------------------------------------


def close_broker_channel(table: RouteTable, channel: ChannelId) -> Step[RouteTable, CloseChannel]:
    # Enabled: only for a channel that some broker registered over last; who came back on another is not hurt
    addresses = sorted(table.addresses_of(channel))
    if not addresses:
        return Step(table)
    # Next
    after = without_addresses(table, addresses)
    # Effects, trace
    return Step(after, (), Event("CloseBrokerChannel", a=channel, b=len(addresses)))


# Removal -----------------------------------------------------------------------------------------------------------


def without_addresses(table: RouteTable, addresses: Iterable[str]) -> RouteTable:
    """The tables without these broker addresses and without what only they held up. One look through each table,
    however many addresses there are."""
    gone: set[str] = set(addresses)
    for address in gone:
        table = without_live(table, address)
    brokers, emptied = table.brokers, set[str]()
    for name in sorted(table.brokers):
        broker = table.brokers[name]
        left = dict(broker.broker_addrs)
        for id_, address in broker.broker_addrs.items():
            if address in gone:
                gone.discard(address)  # an address belongs to the first broker name that lists it
                del left[id_]
        if not left:
            emptied.add(name)
        elif len(left) < len(broker.broker_addrs):
            brokers = brokers.insert(name, replace(broker, broker_addrs=left))
    return without_names(replace(table, brokers=brokers), emptied, table.clusters.keys())


def without_live(table: RouteTable, address: str) -> RouteTable:
    """The tables without an address that is alive, if it was."""
    return replace(
        table,
        live=table.live.discard(address),
        channels=moved(table, address, None),
        filter_servers=table.filter_servers.discard(address),
    )


def moved(table: RouteTable, address: str, channel: ChannelId | None) -> HashTrieMap[ChannelId, HashTrieSet[str]]:
    """The addresses by connection after one of them has come to another connection, or to none."""
    channels, known = table.channels, table.live.get(address)
    if known is not None:
        rest = channels[known.channel].discard(address)
        channels = channels.insert(known.channel, rest) if rest else channels.discard(known.channel)
    if channel is None:
        return channels
    return channels.insert(channel, (channels.get(channel) or HashTrieSet()).insert(address))


def without_broker_id(
    table: RouteTable, broker: BrokerData, broker_id: BrokerId, clusters: Iterable[str]
) -> RouteTable:
    """The tables without one id of a broker name. The last id takes the name, its queues and empty topics along."""
    name = broker.broker_name
    assert broker_id in broker.broker_addrs, f"{name} has no id {broker_id} to lose"
    addresses = {id_: address for id_, address in broker.broker_addrs.items() if id_ != broker_id}
    if addresses:
        return replace(table, brokers=table.brokers.insert(name, replace(broker, broker_addrs=addresses)))
    return without_names(table, {name}, clusters)


def without_names(table: RouteTable, names: Set[str], clusters: Iterable[str]) -> RouteTable:
    """The tables without some broker names, in these clusters and in all topics."""
    if not names:
        return table
    members, brokers, topic_queues = table.clusters, table.brokers, table.topic_queues
    for cluster in sorted(clusters):
        left = members.get(cluster) or HashTrieSet()
        for name in sorted(names):
            left = left.discard(name)
        members = members.insert(cluster, left) if left else members.discard(cluster)
    for name in names:
        brokers = brokers.discard(name)
    for topic, queues in table.topic_queues.items():
        rest = queues
        for name in names if len(names) < len(queues) else [name for name in queues if name in names]:
            rest = rest.discard(name)
        if len(rest) < len(queues):
            topic_queues = topic_queues.insert(topic, rest) if rest else topic_queues.discard(topic)
    return replace(table, topic_queues=topic_queues, brokers=brokers, clusters=members)
