"""Clients and their groups: heartbeats (34), leaving (35), members of a group (38), checking an expression (46)."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from refmq.broker import clients
from refmq.broker.clients import ConnectionId, Member
from refmq.broker.control_plane import Broker
from refmq.broker.entry_checks import check_client, check_group, check_topic
from refmq.broker.handlers._registry import BODY_BYTES_MAX, done, handles, refuse
from refmq.broker.registered_filters import register
from refmq.broker.topics import SYS_FLAG_UNIT_SUB
from refmq.errors import WireError
from refmq.filter import SqlSyntaxError, compile_expression
from refmq.filter.registry import is_tag_expression
from refmq.filter.tags import TAGS_MAX
from refmq.model.ids import ClientId
from refmq.plane.engine import Peer
from refmq.plane.topic_rules import retry_topic
from refmq.protocol.bodies.codec import decode_body, encode_body
from refmq.protocol.bodies.connections import ConsumerIdList
from refmq.protocol.bodies.heartbeat import EXPRESSION_SQL92, CheckClientRequestBody, ConsumerData, HeartbeatData
from refmq.protocol.codes import RequestCode, ResponseCode
from refmq.protocol.command import RemotingCommand
from refmq.protocol.headers.clients import GetConsumerListByGroupRequest, UnregisterClientRequest
from refmq.protocol.headers.codec import decode_header

GROUPS_AT_ONCE: Final = 16
"""Groups of one heartbeat before others have their turn."""

EXPRESSIONS_MAX: Final = 64 * 1024
"""Characters of SQL92 expressions in one heartbeat: compiling them takes 50 ms."""


@handles(RequestCode.HEART_BEAT)
async def heart_beat(broker: Broker, peer: Peer, command: RemotingCommand) -> RemotingCommand:
    """Registers a client in all its groups, or renews it. Members are notified before the client gets its answer."""
    data = decode_body(HeartbeatData, command.body, bytes_max=BODY_BYTES_MAX)
    _check(data)
    retries: dict[str, tuple[int, int]] = {}
    for consumer in data.consumer_data_set:
        group = broker.group(consumer.group_name)
        if group is not None:
            sys_flag = SYS_FLAG_UNIT_SUB if consumer.unit_mode else 0
            retries[retry_topic(consumer.group_name)] = (group.retry_queue_nums, sys_flag)
    await broker.ensure_topics(retries)
    if _is_gone(peer):  # it closed while we waited for the retry topics: nothing would ever remove it
        return done(command)
    broker.heard(peer, command)
    member = Member(
        connection=ConnectionId(peer.number),
        address=peer.peer,
        client_id=ClientId(data.client_id),
        language=command.language,
        version=command.version,
        last_update_ms=broker.environment.now_ms(),
    )
    for at in range(0, len(data.consumer_data_set), GROUPS_AT_ONCE):
        if at:
            await broker.environment.give_way()
            if _is_gone(peer):
                break
        with broker.one_change():
            for consumer in data.consumer_data_set[at : at + GROUPS_AT_ONCE]:
                _register_consumer(broker, consumer, member)
    if _is_gone(peer):
        return done(command)
    with broker.one_change():
        for producer in data.producer_data_set:
            table = clients.heartbeat_producer(broker.state.clients, producer.group_name, member)
            broker.state = replace(broker.state, clients=table)
    return done(command)


def _is_gone(peer: Peer) -> bool:
    return peer.closed


def _check(data: HeartbeatData) -> None:
    """Refuses what the broker would remember and nobody could use, and what would take long to understand."""
    check_client(data.client_id)
    for producer in data.producer_data_set:
        check_group(producer.group_name)
    expressions = 0
    for consumer in data.consumer_data_set:
        check_group(consumer.group_name)
        for subscription in consumer.subscription_data_set:
            check_topic(subscription.topic)
            tags = max(len(subscription.tags_set), len(subscription.code_set))
            if tags > TAGS_MAX:
                raise WireError("tagsSet", 0, f"at most {TAGS_MAX} tags", tags)
            if not is_tag_expression(subscription.expression_type):
                expressions += len(subscription.sub_string)
    if expressions > EXPRESSIONS_MAX:
        raise WireError("consumerDataSet", 0, f"at most {EXPRESSIONS_MAX} characters of expressions", expressions)


def _register_consumer(broker: Broker, consumer: ConsumerData, member: Member) -> None:
    name = consumer.group_name
    group = broker.state.groups.get(name)
    notify = group is None or group.notify_consumer_ids_changed_enable
    now_ms = broker.environment.now_ms()
    broker.apply_clients(clients.heartbeat(broker.state.clients, consumer, member, now_ms), notify=notify)
    log_end = broker.engine.store.log_max
    filters = register(broker.state.filters, name, consumer.subscription_data_set, now_ms, log_end)
    broker.state = replace(broker.state, filters=filters)


@handles(RequestCode.UNREGISTER_CLIENT)
def unregister_client(broker: Broker, peer: Peer, command: RemotingCommand) -> RemotingCommand:
    """Unregisters a client from its producer group, its consumer group, or both."""
    header = decode_header(UnregisterClientRequest, command)
    connection = ConnectionId(peer.number)
    if header.producer_group:
        table = clients.leave_producer(broker.state.clients, header.producer_group, connection)
        broker.state = replace(broker.state, clients=table)
    if header.consumer_group:
        group = broker.group(header.consumer_group)
        notify = group is None or group.notify_consumer_ids_changed_enable
        broker.apply_clients(clients.leave(broker.state.clients, header.consumer_group, connection), notify=notify)
    return done(command)


@handles(RequestCode.GET_CONSUMER_LIST_BY_GROUP)
def get_consumer_list_by_group(broker: Broker, peer: Peer, command: RemotingCommand) -> RemotingCommand:
    """The client ids of a group, from which every member computes the queue allocation."""
    header = decode_header(GetConsumerListByGroupRequest, command)
    consumer = broker.state.clients.consumers.get(header.consumer_group)
    if consumer is None:
        return refuse(command, ResponseCode.SYSTEM_ERROR, f"no consumer for this group, {header.consumer_group}")
    ids = tuple(member.client_id for member in consumer.ordered_members())
    return done(command, body=encode_body(ConsumerIdList(consumer_id_list=ids)))


@handles(RequestCode.CHECK_CLIENT_CONFIG)
def check_client_config(broker: Broker, peer: Peer, command: RemotingCommand) -> RemotingCommand:
    """Whether a subscription by expression can work here; consumers ask when they start."""
    if not command.body:
        return done(command)
    subscription = decode_body(CheckClientRequestBody, command.body, bytes_max=BODY_BYTES_MAX).subscription_data
    if is_tag_expression(subscription.expression_type):
        return done(command)
    if not broker.config.enable_property_filter:
        remark = f"The broker does not support consumer to filter message by {subscription.expression_type}"
        return refuse(command, ResponseCode.SYSTEM_ERROR, remark)
    if subscription.expression_type != EXPRESSION_SQL92:
        remark = f"unknown expression type {subscription.expression_type}"
        return refuse(command, ResponseCode.SUBSCRIPTION_PARSE_FAILED, remark)
    try:
        compile_expression(subscription.sub_string)
    except SqlSyntaxError as mistake:
        return refuse(command, ResponseCode.SUBSCRIPTION_PARSE_FAILED, str(mistake))
    return done(command)
