"""Topics and groups: create, change, delete and list them.

A change is durable, and the nameservers know it, before it is acknowledged.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from refmq.broker import groups, topics
from refmq.broker.control_plane import Broker
from refmq.broker.entry_checks import check_group
from refmq.broker.handlers._registry import BODY_BYTES_MAX, Answer, done, handles, refuse
from refmq.plane import offsets
from refmq.plane.engine import Peer
from refmq.plane.topic_rules import QUEUES_MAX, name_mistake
from refmq.protocol.bodies.codec import decode_body, encode_body
from refmq.protocol.bodies.config import (
    SubscriptionGroupConfig,
    SubscriptionGroupList,
    TopicConfig,
    TopicConfigList,
    TopicFilterType,
)
from refmq.protocol.bodies.route import TopicList
from refmq.protocol.codes import RequestCode, ResponseCode
from refmq.protocol.command import RemotingCommand
from refmq.protocol.headers.admin import (
    CreateTopicRequest,
    DeleteSubscriptionGroupRequest,
    DeleteTopicRequest,
    GetSubscriptionGroupConfigRequest,
    GetTopicConfigRequest,
)
from refmq.protocol.headers.codec import decode_header
from refmq.protocol.names import SCHEDULE_TOPIC, TRANS_CHECK_MAX_TIME_TOPIC, TRANS_HALF_TOPIC, TRANS_OP_HALF_TOPIC

ON_SLAVE: Final = "Can't modify topic or subscription group from slave broker, please execute it from master broker."

CLEANINGS_BY_HAND: Final = 20
"""How often files are removed, 10 at a time, when an operator asks for it: DefaultMessageStore, 4.9.8."""

KEPT_WITHOUT_CONFIG: Final = frozenset(
    {SCHEDULE_TOPIC, TRANS_HALF_TOPIC, TRANS_OP_HALF_TOPIC, TRANS_CHECK_MAX_TIME_TOPIC}
)
"""Topics whose queues are kept even without a topic configuration. That of halves has none before the first check
round, and 4.9.8 would delete the halves that were acknowledged until then."""


def _name_refusal(broker: Broker, command: RemotingCommand, name: str) -> RemotingCommand | None:
    if broker.is_slave:
        return refuse(command, ResponseCode.SYSTEM_ERROR, ON_SLAVE)
    mistake = name_mistake(name)
    if mistake is None and broker.state.topics.is_system(name):
        mistake = f"The topic[{name}] is conflict with system topic."
    return None if mistake is None else refuse(command, ResponseCode.SYSTEM_ERROR, mistake)


# --- topics ----------------------------------------------------------------------------------------------------------


@handles(RequestCode.UPDATE_AND_CREATE_TOPIC)
async def update_and_create_topic(broker: Broker, peer: Peer, command: RemotingCommand) -> Answer:
    """Creates a topic or replaces its configuration."""
    header = decode_header(CreateTopicRequest, command)
    kind = TopicFilterType.__members__.get(header.topic_filter_type)
    if kind is None:
        remark = f"unknown topic filter type {header.topic_filter_type!r}"
        return refuse(command, ResponseCode.SYSTEM_ERROR, remark)
    topic = TopicConfig(
        topic_name=header.topic,
        read_queue_nums=header.read_queue_nums,
        write_queue_nums=header.write_queue_nums,
        perm=header.perm,
        topic_filter_type=kind,
        topic_sys_flag=header.topic_sys_flag or 0,
    )
    return await _put_topics(broker, command, (topic,))


@handles(RequestCode.UPDATE_AND_CREATE_TOPIC_LIST)
async def update_and_create_topic_list(broker: Broker, peer: Peer, command: RemotingCommand) -> Answer:
    """Creates or replaces several topics, all or none (5.x)."""
    given = decode_body(TopicConfigList, command.body, bytes_max=BODY_BYTES_MAX).topic_config_list
    return await _put_topics(broker, command, given)


async def _put_topics(broker: Broker, command: RemotingCommand, given: tuple[TopicConfig, ...]) -> RemotingCommand:
    table = broker.state.topics
    for topic in given:
        refusal = _topic_refusal(broker, command, topic)
        if refusal is not None:
            return refusal
        table = topics.put_topic(table, replace(topic, order=False), broker.environment.now_ms())
        if len(table.topics) > topics.TOPICS_MAX:
            return refuse(command, ResponseCode.SYSTEM_ERROR, f"a broker has at most {topics.TOPICS_MAX} topics")
    if given:
        await broker.change_topics(table, is_heard=len(given) == 1)
    return done(command)


def _topic_refusal(broker: Broker, command: RemotingCommand, topic: TopicConfig) -> RemotingCommand | None:
    refusal = _name_refusal(broker, command, topic.topic_name)
    if refusal is None and not all(0 <= n <= QUEUES_MAX for n in (topic.read_queue_nums, topic.write_queue_nums)):
        return refuse(command, ResponseCode.SYSTEM_ERROR, f"a topic has 0 to {QUEUES_MAX} queues")
    return refusal


@handles(RequestCode.DELETE_TOPIC_IN_BROKER)
async def delete_topic_in_broker(broker: Broker, peer: Peer, command: RemotingCommand) -> Answer:
    """Deletes a topic and its queues. The log keeps its records, nameservers keep its route, groups their offsets."""
    name = decode_header(DeleteTopicRequest, command).topic
    refusal = _name_refusal(broker, command, name)
    if refusal is not None:
        return refusal
    table = topics.delete_topic(broker.state.topics, name, broker.environment.now_ms())
    broker.state = replace(broker.state, topics=table)
    await broker.save_topics()
    broker.engine.store.delete_topic(name)
    broker.counted().forget_topic(name)
    return done(command)


@handles(RequestCode.CLEAN_UNUSED_TOPIC)
def clean_unused_topic(broker: Broker, peer: Peer, command: RemotingCommand) -> Answer:
    """Deletes the queues of every topic that no longer has a configuration."""
    known = broker.state.topics.topics
    stored = {queue.topic for queue in broker.engine.store.queues()}
    for name in sorted(stored):
        if name not in known and name not in KEPT_WITHOUT_CONFIG:
            broker.engine.store.delete_topic(name)
    return done(command)


@handles(RequestCode.CLEAN_EXPIRED_CONSUMEQUEUE)
async def clean_expired_consumequeue(broker: Broker, peer: Peer, command: RemotingCommand) -> Answer:
    """Removes queue files whose messages are gone, except the last of each queue."""
    await broker.engine.store.clean_queues()
    return done(command)


@handles(RequestCode.DELETE_EXPIRED_COMMITLOG)
async def delete_expired_commitlog(broker: Broker, peer: Peer, command: RemotingCommand) -> Answer:
    """Removes expired files now, whatever the hour."""
    for _ in range(CLEANINGS_BY_HAND):
        if not await broker.engine.store.clean(broker.environment.now_ms(), None):
            break
    return done(command)


@handles(RequestCode.GET_ALL_TOPIC_CONFIG)
def get_all_topic_config(broker: Broker, peer: Peer, command: RemotingCommand) -> Answer:
    """Every topic with its configuration."""
    return done(command, body=encode_body(broker.state.topics.wrapper()))


@handles(RequestCode.GET_TOPIC_CONFIG)
def get_topic_config(broker: Broker, peer: Peer, command: RemotingCommand) -> Answer:
    """One topic's configuration; the 5.x admin tool asks for it first."""
    name = decode_header(GetTopicConfigRequest, command).topic
    topic = broker.state.topics.get(name)
    if topic is None:
        return refuse(command, ResponseCode.TOPIC_NOT_EXIST, f"No topic in this broker. topic: {name}")
    return done(command, body=encode_body(topic))


@handles(RequestCode.GET_SYSTEM_TOPIC_LIST_FROM_BROKER)
def get_system_topic_list_from_broker(broker: Broker, peer: Peer, command: RemotingCommand) -> Answer:
    """The topics that belong to the broker itself."""
    names = tuple(sorted(broker.state.topics.system))
    return done(command, body=encode_body(TopicList(topic_list=names)))


# --- groups ----------------------------------------------------------------------------------------------------------


@handles(RequestCode.UPDATE_AND_CREATE_SUBSCRIPTIONGROUP)
async def update_and_create_subscriptiongroup(broker: Broker, peer: Peer, command: RemotingCommand) -> Answer:
    """Creates a group or replaces its settings."""
    if not command.body:
        return refuse(command, ResponseCode.SYSTEM_ERROR, ON_SLAVE) if broker.is_slave else done(command)
    group = decode_body(SubscriptionGroupConfig, command.body, bytes_max=BODY_BYTES_MAX)
    return await _put_groups(broker, command, (group,))


@handles(RequestCode.UPDATE_AND_CREATE_SUBSCRIPTIONGROUP_LIST)
async def update_and_create_subscriptiongroup_list(broker: Broker, peer: Peer, command: RemotingCommand) -> Answer:
    """Creates or replaces several groups, all or none (5.x)."""
    given = decode_body(SubscriptionGroupList, command.body, bytes_max=BODY_BYTES_MAX).group_config_list
    return await _put_groups(broker, command, given)


async def _put_groups(
    broker: Broker, command: RemotingCommand, given: tuple[SubscriptionGroupConfig, ...]
) -> RemotingCommand:
    if broker.is_slave:
        return refuse(command, ResponseCode.SYSTEM_ERROR, ON_SLAVE)
    table = broker.state.groups
    for group in given:
        check_group(group.group_name)
        if group.retry_queue_nums > QUEUES_MAX:
            return refuse(command, ResponseCode.SYSTEM_ERROR, f"a retry topic has at most {QUEUES_MAX} queues")
        table = groups.put_group(table, group, broker.environment.now_ms())
        if len(table.groups) > groups.GROUPS_MAX:
            return refuse(command, ResponseCode.SYSTEM_ERROR, f"a broker has at most {groups.GROUPS_MAX} groups")
    if given:
        broker.state = replace(broker.state, groups=table)
        await broker.save_groups()
    return done(command)


@handles(RequestCode.DELETE_SUBSCRIPTIONGROUP)
async def delete_subscriptiongroup(broker: Broker, peer: Peer, command: RemotingCommand) -> Answer:
    """Deletes a group, and its offsets when asked to."""
    if broker.is_slave:
        return refuse(command, ResponseCode.SYSTEM_ERROR, ON_SLAVE)
    header = decode_header(DeleteSubscriptionGroupRequest, command)
    table = groups.delete_group(broker.state.groups, header.group_name, broker.environment.now_ms())
    broker.state = replace(broker.state, groups=table)
    await broker.save_groups()
    if header.deletes_offsets:
        kept = offsets.forget_group(broker.engine.offsets, header.group_name)
        broker.engine.set_offsets(kept)
        await broker.save_offsets()
    broker.counted().forget_group(header.group_name)
    return done(command)


@handles(RequestCode.GET_ALL_SUBSCRIPTIONGROUP_CONFIG)
def get_all_subscriptiongroup_config(broker: Broker, peer: Peer, command: RemotingCommand) -> Answer:
    """Every group with its settings."""
    return done(command, body=encode_body(broker.state.groups.wrapper()))


@handles(RequestCode.GET_SUBSCRIPTIONGROUP_CONFIG)
def get_subscriptiongroup_config(broker: Broker, peer: Peer, command: RemotingCommand) -> Answer:
    """One group's settings."""
    group = broker.state.groups.get(decode_header(GetSubscriptionGroupConfigRequest, command).group)
    if group is None:
        return refuse(command, ResponseCode.SUBSCRIPTION_GROUP_NOT_EXIST, "No group in this broker")
    return done(command, body=encode_body(group))
