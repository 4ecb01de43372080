"""Who is connected: consumer groups with their members and subscriptions, producer groups with their members.

Members are connections, not client ids: RocketMQ lists a client that is connected twice as two members, and clients
that allocate queues count on seeing every member. The steps mirror `Heartbeat`, `Leave` and `RemoveMember` of
spec/rebalance. They say which groups changed; telling the members (`NOTIFY_CONSUMER_IDS_CHANGED`) and closing
connections are effects.

One difference from 4.9.8: a member whose heartbeats stop and that the scan removes is announced to the others.
Upstream stays silent there and the others find out by their own timer, 20 s later.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Final, NewType

from rpds import HashTrieMap

from refmq.model.ids import ClientId, TimestampMs
from refmq.model.step import Event
from refmq.protocol.bodies.heartbeat import (
    ConsumeFromWhere,
    ConsumerData,
    ConsumeType,
    MessageModel,
    SubscriptionData,
)
from refmq.protocol.command import LanguageCode

ConnectionId = NewType("ConnectionId", int)

CLIENT_EXPIRY_MS: Final = 120_000
"""A member that has not sent a heartbeat for longer is removed: ClientHousekeepingService, 4.9.8."""

GROUPS_PER_CONNECTION_MAX: Final = 4_096
"""What one connection may register; upstream has no bound."""


@dataclass(frozen=True, slots=True)
class Member:
    """One connection in a group."""

    connection: ConnectionId
    address: str
    client_id: ClientId
    language: LanguageCode
    version: int
    last_update_ms: TimestampMs


_NO_MEMBERS: Final[HashTrieMap[ConnectionId, Member]] = HashTrieMap()
_NO_SUBSCRIPTIONS: Final[HashTrieMap[str, SubscriptionData]] = HashTrieMap()


@dataclass(frozen=True, slots=True)
class ConsumerGroup:
    """The consumers of a group, as their heartbeats describe it. The last heartbeat wins where they differ."""

    name: str
    consume_type: ConsumeType
    message_model: MessageModel
    consume_from_where: ConsumeFromWhere
    last_update_ms: TimestampMs
    subscriptions: HashTrieMap[str, SubscriptionData] = field(default_factory=HashTrieMap)
    members: HashTrieMap[ConnectionId, Member] = field(default_factory=HashTrieMap)

    def ordered_members(self) -> tuple[Member, ...]:
        return tuple(self.members[number] for number in sorted(self.members))


@dataclass(frozen=True, slots=True)
class ClientTable:
    """Every client that sends heartbeats. Memory only: a restarted broker learns them again."""

    consumers: HashTrieMap[str, ConsumerGroup] = field(default_factory=HashTrieMap)
    producers: HashTrieMap[str, HashTrieMap[ConnectionId, Member]] = field(default_factory=HashTrieMap)
    producer_connections: HashTrieMap[ClientId, ConnectionId] = field(default_factory=HashTrieMap)
    """Where the producer with a client id is reached: request-reply needs it."""
    consumer_groups_of: HashTrieMap[ConnectionId, frozenset[str]] = field(default_factory=HashTrieMap)
    producer_groups_of: HashTrieMap[ConnectionId, frozenset[str]] = field(default_factory=HashTrieMap)

    def ordered_producers(self, group: str) -> tuple[Member, ...]:
        members = self.producers.get(group)
        return () if members is None else tuple(members[number] for number in sorted(members))


@dataclass(frozen=True, slots=True)
class Changed:
    """A consumer group whose members or topics changed, or may have; `emptied` when no member is left."""

    group: str
    emptied: bool = False


@dataclass(frozen=True, slots=True)
class ClientStep:
    """The table after a step, the consumer groups that changed, and what to record."""

    table: ClientTable
    changed: tuple[Changed, ...] = ()
    events: tuple[Event, ...] = ()
    expired: tuple[ConnectionId, ...] = ()
    """Connections to close, because their heartbeats stopped."""


# Heartbeat ---------------------------------------------------------------------------------------


def heartbeat_enabled(table: ClientTable, group: str, connection: ConnectionId) -> bool:
    groups = table.consumer_groups_of.get(connection) or frozenset()
    return group in groups or len(groups) < GROUPS_PER_CONNECTION_MAX


def heartbeat(table: ClientTable, data: ConsumerData, member: Member, now_ms: TimestampMs) -> ClientStep:
    """A consumer registers in a group, or keeps its place and brings its subscriptions up to date."""
    # Enabled
    name = data.group_name
    if not heartbeat_enabled(table, name, member.connection):
        return ClientStep(table)
    # Next
    before = table.consumers.get(name)
    members = before.members if before is not None else _NO_MEMBERS
    old = before.subscriptions if before is not None else _NO_SUBSCRIPTIONS
    subscriptions, topics_changed = _update_subscriptions(old, data)
    changed = topics_changed or member.connection not in members
    group = ConsumerGroup(
        name,
        data.consume_type,
        data.message_model,
        data.consume_from_where,
        now_ms,
        subscriptions,
        members.insert(member.connection, member),
    )
    groups = (table.consumer_groups_of.get(member.connection) or frozenset()) | {name}
    after = replace(
        table,
        consumers=table.consumers.insert(name, group),
        consumer_groups_of=table.consumer_groups_of.insert(member.connection, groups),
    )
    assert len(groups) <= GROUPS_PER_CONNECTION_MAX
    # Trace
    event = Event("Heartbeat", member.client_id, name)
    return ClientStep(after, (Changed(name),) if changed else (), (event,))


def _update_subscriptions(
    before: HashTrieMap[str, SubscriptionData], data: ConsumerData
) -> tuple[HashTrieMap[str, SubscriptionData], bool]:
    """The heartbeat's topics, and whether one was added or removed. A newer version alone is not a change."""
    changed = False
    after = before
    for subscription in data.subscription_data_set:
        known = before.get(subscription.topic)
        if known is None:
            after, changed = after.insert(subscription.topic, subscription), True
        elif subscription.sub_version > known.sub_version:
            after = after.insert(subscription.topic, subscription)
    wanted = {subscription.topic for subscription in data.subscription_data_set}
    for topic in sorted(before):
        if topic not in wanted:
            after, changed = after.discard(topic), True
    assert len(after) == len(wanted), "a group wants what its last heartbeat said"
    return after, changed


def heartbeat_producer(table: ClientTable, group: str, member: Member) -> ClientTable:
    """A producer registers in a group, or keeps its place."""
    groups = table.producer_groups_of.get(member.connection) or frozenset()
    if group not in groups and len(groups) >= GROUPS_PER_CONNECTION_MAX:
        return table
    members = table.producers.get(group) or _NO_MEMBERS
    return replace(
        table,
        producers=table.producers.insert(group, members.insert(member.connection, member)),
        producer_connections=table.producer_connections.insert(member.client_id, member.connection),
        producer_groups_of=table.producer_groups_of.insert(member.connection, groups | {group}),
    )


# Leave -------------------------------------------------------------------------------------------


def leave_enabled(table: ClientTable, group: str, connection: ConnectionId) -> bool:
    return group in (table.consumer_groups_of.get(connection) or frozenset())


def leave(table: ClientTable, group: str, connection: ConnectionId) -> ClientStep:
    """A consumer unregisters from a group. Members are notified even if it was not one of them: it may have been.

    A client whose connection broke unregisters on a new one, and 4.9.8 notifies the members then too.
    """
    # Enabled
    if not leave_enabled(table, group, connection):
        return ClientStep(table, (Changed(group),) if group in table.consumers else ())
    # Next, trace
    client = table.consumers[group].members[connection].client_id
    after, change = _without_consumer(table, group, connection)
    return ClientStep(after, (change,), (Event("Leave", client, group),))


def leave_producer(table: ClientTable, group: str, connection: ConnectionId) -> ClientTable:
    """A producer unregisters from a group; the last one takes the group with it."""
    groups = table.producer_groups_of.get(connection) or frozenset()
    if group not in groups:
        return table
    members = table.producers[group]
    assert connection in members, "the groups of a connection are those that list it"
    client = members[connection].client_id
    members = members.discard(connection)
    rest = groups - {group}
    producers = table.producers.insert(group, members) if len(members) else table.producers.discard(group)
    reached = table.producer_connections
    if not rest and reached.get(client) == connection:
        reached = reached.discard(client)
    of = table.producer_groups_of
    return replace(
        table,
        producers=producers,
        producer_connections=reached,
        producer_groups_of=of.insert(connection, rest) if rest else of.discard(connection),
    )


# RemoveMember ------------------------------------------------------------------------------------


def remove_member(table: ClientTable, connection: ConnectionId) -> ClientStep:
    """A connection closed: it leaves every group it was in."""
    changed: list[Changed] = []
    events: list[Event] = []
    for group in sorted(table.consumer_groups_of.get(connection) or ()):
        client = table.consumers[group].members[connection].client_id
        table, change = _without_consumer(table, group, connection)
        changed.append(change)
        events.append(Event("RemoveMember", client, group))
    for group in sorted(table.producer_groups_of.get(connection) or ()):
        table = leave_producer(table, group, connection)
    assert connection not in table.consumer_groups_of, "a closed connection is a member of nothing"
    assert connection not in table.producer_groups_of, "a closed connection is a member of nothing"
    return ClientStep(table, tuple(changed), tuple(events))


def scan_members(table: ClientTable, now_ms: TimestampMs) -> ClientStep:
    """Removes connections whose last heartbeat is too old, and lists them for closing."""
    last_seen: dict[ConnectionId, TimestampMs] = {}
    every = [g.members for g in table.consumers.values()] + list(table.producers.values())
    for members in every:
        for connection, member in members.items():
            last_seen[connection] = max(last_seen.get(connection, member.last_update_ms), member.last_update_ms)
    expired = tuple(sorted(c for c, seen_ms in last_seen.items() if now_ms - seen_ms > CLIENT_EXPIRY_MS))
    changed: list[Changed] = []
    events: list[Event] = []
    for connection in expired:
        step = remove_member(table, connection)
        table = step.table
        changed.extend(step.changed)
        events.extend(step.events)
    return ClientStep(table, tuple(changed), tuple(events), expired)


def _without_consumer(table: ClientTable, group: str, connection: ConnectionId) -> tuple[ClientTable, Changed]:
    consumer = table.consumers[group]
    assert connection in consumer.members, "the groups of a connection are those that list it"
    members = consumer.members.discard(connection)
    rest = (table.consumer_groups_of.get(connection) or frozenset()) - {group}
    of = table.consumer_groups_of
    after = replace(
        table,
        consumers=table.consumers.insert(group, replace(consumer, members=members))
        if len(members)
        else table.consumers.discard(group),
        consumer_groups_of=of.insert(connection, rest) if rest else of.discard(connection),
    )
    return after, Changed(group, emptied=len(members) == 0)
