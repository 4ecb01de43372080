"""Who is connected (203, 204, 300, 328), and requests relayed to them (221, 307, 309)."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from refmq.broker.clients import ConsumerGroup, Member
from refmq.broker.control_plane import Broker
from refmq.broker.handlers._registry import Answer, done, handles, refuse
from refmq.broker.named_record import named_record
from refmq.errors import RefmqError, RequestTimedOut
from refmq.model.ids import MessageQueue
from refmq.plane.engine import Peer
from refmq.protocol.bodies.codec import decode_body, encode_body
from refmq.protocol.bodies.connections import (
    Connection,
    ConsumerConnection,
    GroupList,
    ProducerConnection,
    ProducerInfo,
    ProducerTableInfo,
)
from refmq.protocol.bodies.offsets import GetConsumerStatusBody
from refmq.protocol.codes import RequestCode, ResponseCode
from refmq.protocol.command import RemotingCommand, request, response
from refmq.protocol.headers.admin import (
    GetConsumerConnectionListRequest,
    GetProducerConnectionListRequest,
    QueryTopicConsumeByWhoRequest,
)
from refmq.protocol.headers.clients import (
    ConsumeMessageDirectlyRequest,
    GetConsumerRunningInfoRequest,
    GetConsumerStatusRequest,
)
from refmq.protocol.headers.codec import decode_header, encode_header
from refmq.protocol.record import parse_message_id
from refmq.protocol.versions import V3_0_7_SNAPSHOT, V3_1_8_SNAPSHOT, version_name

FORWARD_TIMEOUT_S: Final = 10.0
STATUS_TIMEOUT_S: Final = 5.0


def _connection(member: Member) -> Connection:
    return Connection(
        client_id=member.client_id, client_addr=member.address, language=member.language, version=member.version
    )


@handles(RequestCode.GET_CONSUMER_CONNECTION_LIST)
def get_consumer_connection_list(broker: Broker, peer: Peer, command: RemotingCommand) -> Answer:
    """The members of a consumer group and their subscriptions."""
    name = decode_header(GetConsumerConnectionListRequest, command).consumer_group
    group = broker.state.clients.consumers.get(name)
    if group is None:
        return refuse(command, ResponseCode.CONSUMER_NOT_ONLINE, f"the consumer group[{name}] not online")
    body = ConsumerConnection(
        connection_set=tuple(map(_connection, group.ordered_members())),
        subscription_table={topic: group.subscriptions[topic] for topic in sorted(group.subscriptions)},
        consume_type=group.consume_type,
        message_model=group.message_model,
        consume_from_where=group.consume_from_where,
    )
    return done(command, body=encode_body(body))


@handles(RequestCode.GET_PRODUCER_CONNECTION_LIST)
def get_producer_connection_list(broker: Broker, peer: Peer, command: RemotingCommand) -> Answer:
    """The members of a producer group."""
    name = decode_header(GetProducerConnectionListRequest, command).producer_group
    if name not in broker.state.clients.producers:
        return refuse(command, ResponseCode.SYSTEM_ERROR, f"the producer group[{name}] not exist")
    members = tuple(map(_connection, broker.state.clients.ordered_producers(name)))
    return done(command, body=encode_body(ProducerConnection(connection_set=members)))


@handles(RequestCode.GET_ALL_PRODUCER_INFO)
def get_all_producer_info(broker: Broker, peer: Peer, command: RemotingCommand) -> Answer:
    """Every producer of every group."""
    table = broker.state.clients
    data = {
        group: tuple(
            ProducerInfo(
                client_id=member.client_id,
                remote_ip=f"/{member.address}",
                language=member.language,
                version=member.version,
                last_update_timestamp=member.last_update_ms,
            )
            for member in table.ordered_producers(group)
        )
        for group in sorted(table.producers)
    }
    return done(command, body=encode_body(ProducerTableInfo(data=data)))


@handles(RequestCode.QUERY_TOPIC_CONSUME_BY_WHO)
def query_topic_consume_by_who(broker: Broker, peer: Peer, command: RemotingCommand) -> Answer:
    """The groups that subscribe to a topic or have offsets in it."""
    topic = decode_header(QueryTopicConsumeByWhoRequest, command).topic
    online = {name for name, group in broker.state.clients.consumers.items() if topic in group.subscriptions}
    names = tuple(sorted(online.union(broker.engine.offsets.groups_of(topic))))
    return done(command, body=encode_body(GroupList(group_list=names)))


# --- asked through the broker -----------------------------------------------------------------------------------------


@handles(RequestCode.GET_CONSUMER_RUNNING_INFO)
async def get_consumer_running_info(broker: Broker, peer: Peer, command: RemotingCommand) -> Answer:
    """What a consumer says about itself."""
    header = decode_header(GetConsumerRunningInfoRequest, command)
    return await _forward(broker, command, command, header.consumer_group, header.client_id)


@handles(RequestCode.CONSUME_MESSAGE_DIRECTLY)
async def consume_message_directly(broker: Broker, peer: Peer, command: RemotingCommand) -> Answer:
    """Delivers one stored message directly to one consumer."""
    header = decode_header(ConsumeMessageDirectlyRequest, command)
    _, offset = parse_message_id(header.msg_id or "")
    found = named_record(broker.engine.store, offset)
    if found is None:
        return refuse(command, ResponseCode.SYSTEM_ERROR, f"can not find message by the offset, {offset}")
    _, data = found
    fields = {**command.fields, "brokerName": broker.config.broker_name}
    forwarded = replace(command, ext_fields=fields, body=data)
    return await _forward(broker, command, forwarded, header.consumer_group, header.client_id or "")


async def _forward(
    broker: Broker, command: RemotingCommand, forwarded: RemotingCommand, group: str, client_id: str
) -> RemotingCommand:
    member = _member(broker, group, client_id)
    peer = None if member is None else broker.environment.connection(member.connection)
    if member is None or peer is None:
        remark = f"The Consumer <{group}> <{client_id}> not online"
        return refuse(command, ResponseCode.SYSTEM_ERROR, remark)
    if member.version < V3_1_8_SNAPSHOT:
        remark = (
            f"The Consumer <{client_id}> Version <{version_name(member.version)}> too low to finish, "
            "please upgrade it to V3_1_8_SNAPSHOT"
        )
        return refuse(command, ResponseCode.SYSTEM_ERROR, remark)
    try:
        answer = await peer.request(replace(forwarded, flag=0), FORWARD_TIMEOUT_S)
    except RequestTimedOut as error:
        remark = f"consumer <{group}> <{client_id}> Timeout: {error}"
        return refuse(command, ResponseCode.CONSUME_MSG_TIMEOUT, remark)
    except RefmqError as error:
        remark = f"invoke consumer <{group}> <{client_id}> Exception: {error}"
        return refuse(command, ResponseCode.SYSTEM_ERROR, remark)
    return response(command, answer.code, answer.ext_fields, answer.body, remark=answer.remark)


def _member(broker: Broker, group: str, client_id: str) -> Member | None:
    consumer = broker.state.clients.consumers.get(group)
    members = () if consumer is None else consumer.ordered_members()
    return next((member for member in members if member.client_id == client_id), None)


@handles(RequestCode.INVOKE_BROKER_TO_GET_CONSUMER_STATUS)
async def invoke_broker_to_get_consumer_status(broker: Broker, peer: Peer, command: RemotingCommand) -> Answer:
    """The offsets that the members of a group hold in memory."""
    header = decode_header(GetConsumerStatusRequest, command)
    consumer = broker.state.clients.consumers.get(header.group)
    if consumer is None:
        return refuse(
            command, ResponseCode.SYSTEM_ERROR, f"No Any Consumer online in the consumer group: [{header.group}]"
        )
    old = next((m for m in consumer.ordered_members() if m.version < V3_0_7_SNAPSHOT), None)
    if old is not None:
        remark = f"the client does not support this feature. version={version_name(old.version)}"
        return refuse(command, ResponseCode.SYSTEM_ERROR, remark)
    table = await _statuses(broker, consumer, header)
    return done(command, body=encode_body(GetConsumerStatusBody(consumer_table=table)))


async def _statuses(
    broker: Broker, consumer: ConsumerGroup, header: GetConsumerStatusRequest
) -> dict[str, dict[MessageQueue, int]]:
    table: dict[str, dict[MessageQueue, int]] = {}
    question = request(RequestCode.GET_CONSUMER_STATUS_FROM_CLIENT, encode_header(header))
    for member in consumer.ordered_members():
        peer = broker.environment.connection(member.connection)
        if peer is None or (header.client_addr and header.client_addr != member.client_id):
            continue
        try:
            answer = await peer.request(question, STATUS_TIMEOUT_S)
        except RefmqError:
            continue  # the caller sees that this member is missing from the table
        if answer.code == ResponseCode.SUCCESS and answer.body:
            status = decode_body(GetConsumerStatusBody, answer.body)
            table[member.client_id] = dict(status.message_queue_table)
    return table
