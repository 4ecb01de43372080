"""What a scripted client says and asks besides messages: who is there, where a topic is, where a queue ends.

Each function records an `invoke` event and an outcome, as the operations in `conformance.cluster.client` do. An answer
that is a list leaves one event for each name that could be on it: whether it is.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from conformance.cluster.client import PRODUCER_GROUP, REGISTERED_GROUP, SQL_GROUP, TIMEOUT_S, ScriptedClient, simple
from conformance.cluster.known import TOPIC, BrokerAddress
from refmq.model.ids import MessageQueue
from refmq.protocol.bodies.codec import decode_body, encode_body
from refmq.protocol.bodies.connections import ConsumerIdList
from refmq.protocol.bodies.heartbeat import (
    ConsumeFromWhere,
    ConsumerData,
    ConsumeType,
    HeartbeatData,
    MessageModel,
    ProducerData,
    SubscriptionData,
)
from refmq.protocol.bodies.route import TopicRouteData
from refmq.protocol.codes import RequestCode, ResponseCode
from refmq.protocol.command import RemotingCommand, request
from refmq.protocol.headers.clients import GetConsumerListByGroupRequest, UnregisterClientRequest
from refmq.protocol.headers.codec import decode_header, encode_header
from refmq.protocol.headers.messages import QueryMessageRequest
from refmq.protocol.headers.nameserver import GetRouteInfoRequest
from refmq.protocol.headers.offsets import (
    GetMaxOffsetRequest,
    GetMaxOffsetResponse,
    GetMinOffsetRequest,
    GetMinOffsetResponse,
)
from refmq.trace.record import Outcome

TAG_A: Final = SubscriptionData(topic=TOPIC, sub_string="a", tags_set=("a",), code_set=(ord("a"),), sub_version=1)
"""What the group of registered filters wants. The code of a tag of one letter is the letter's."""

SQL_N: Final = SubscriptionData(topic=TOPIC, sub_string="n > 1", expression_type="SQL92", sub_version=1)

FOREVER_MS: Final = 2**62


async def heartbeat(client: ScriptedClient, broker: BrokerAddress, *, alone: bool = False) -> None:
    """The client is a producer, a member of its group, and one of the group whose filter is registered."""
    wanted = {client.group: SubscriptionData(topic=TOPIC, sub_string="*")}
    if not alone:
        wanted |= {REGISTERED_GROUP: TAG_A, SQL_GROUP: SQL_N}
    body = HeartbeatData(
        client_id=client.name,
        producer_data_set=() if alone else (ProducerData(group_name=PRODUCER_GROUP),),
        consumer_data_set=tuple(_consumer(group, subscription) for group, subscription in wanted.items()),
    )
    command = request(RequestCode.HEART_BEAT, body=encode_body(body))
    await _tell(client, "Heartbeat", broker, (command,))


def _consumer(group: str, subscription: SubscriptionData) -> ConsumerData:
    return ConsumerData(
        group_name=group,
        consume_type=ConsumeType.CONSUME_PASSIVELY,
        message_model=MessageModel.CLUSTERING,
        consume_from_where=ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET,
        subscription_data_set=(subscription,),
    )


async def leave(client: ScriptedClient, broker: BrokerAddress) -> None:
    """The client says good-bye, group by group."""
    pairs = ((PRODUCER_GROUP, client.group), ("", REGISTERED_GROUP), ("", SQL_GROUP))
    headers = [
        UnregisterClientRequest(client_id=client.name, producer_group=producer, consumer_group=consumer)
        for producer, consumer in pairs
    ]
    await _tell(
        client, "Leave", broker, [request(RequestCode.UNREGISTER_CLIENT, encode_header(header)) for header in headers]
    )


async def _tell(
    client: ScriptedClient,
    action: str,
    broker: BrokerAddress,
    commands: Sequence[RemotingCommand],
) -> None:
    operation, queue = client.begin(), MessageQueue("", broker.name, -1)
    client.record(operation, Outcome.INVOKE, action, queue)
    outcome = Outcome.OK
    for command in commands:
        answer = await client.ask(broker, command, TIMEOUT_S)
        outcome = answer if isinstance(answer, Outcome) else simple(answer)
        if outcome is not Outcome.OK:
            break
    client.record(operation, outcome, action, queue)


async def view_refresh(client: ScriptedClient, broker: BrokerAddress) -> None:
    """Asks who is in the group. A broker that knows nobody of it refuses."""
    known = [member for member in client.common.members if member.startswith(f"{client.group}@")]
    operation = client.begin()
    for member in known:
        client.record(operation, Outcome.INVOKE, "ViewRefresh", MessageQueue(member, broker.name, -1))
    header = GetConsumerListByGroupRequest(consumer_group=client.group)
    command = request(RequestCode.GET_CONSUMER_LIST_BY_GROUP, encode_header(header))
    answer = await client.ask(broker, command, TIMEOUT_S)
    listed: tuple[str, ...] = ()
    if not isinstance(answer, Outcome) and answer.code == ResponseCode.SUCCESS:
        listed = decode_body(ConsumerIdList, answer.body).consumer_id_list
    for member in known:
        outcome = answer if isinstance(answer, Outcome) else Outcome.OK
        found = int(member.partition("@")[2] in listed)
        client.record(operation, outcome, "ViewRefresh", MessageQueue(member, broker.name, -1), found)


async def query_route(client: ScriptedClient, nameserver: str, topic: str, brokers: list[BrokerAddress]) -> None:
    """Asks a nameserver where a topic is; an event for each broker says whether it is there."""
    operation = client.begin()
    for broker in brokers:
        client.record(operation, Outcome.INVOKE, "QueryRoute", MessageQueue(topic, broker.name, -1))
    command = request(RequestCode.GET_ROUTEINFO_BY_TOPIC, encode_header(GetRouteInfoRequest(topic=topic)))
    answer = await client.ask(BrokerAddress("", nameserver), command, TIMEOUT_S)
    known: dict[tuple[str, str], int] = {}
    homeless: dict[str, int] = {}  # queues of brokers that have no address: nobody can ask them
    if not isinstance(answer, Outcome) and answer.code == ResponseCode.SUCCESS:
        route = decode_body(TopicRouteData, answer.body)
        queues = {data.broker_name: min(data.read_queue_nums, data.write_queue_nums) for data in route.queue_datas}
        for data in route.broker_datas:
            for address in data.broker_addrs.values():
                known[data.broker_name, address] = queues.get(data.broker_name, 0)
        housed = {name for name, _ in known}
        homeless = {name: count for name, count in queues.items() if name not in housed}
    for broker in brokers:
        outcome = answer if isinstance(answer, Outcome) else Outcome.OK
        found = known.get((broker.name, broker.address), homeless.get(broker.name, 0))
        client.record(operation, outcome, "QueryRoute", MessageQueue(topic, broker.name, -1), found)


async def query_key(client: ScriptedClient, broker: BrokerAddress) -> None:
    """Asks for the last message that the broker acknowledged to this client, by its key."""
    key, message = client.last_key.get(broker.name, ("", 0))
    if not key:
        return
    operation, queue = client.begin(), MessageQueue(TOPIC, broker.name, -1)
    client.record(operation, Outcome.INVOKE, "QueryKey", queue, -1, c=message)
    header = QueryMessageRequest(topic=TOPIC, key=key, max_num=32, begin_timestamp=0, end_timestamp=FOREVER_MS)
    answer = await client.ask(broker, request(RequestCode.QUERY_MESSAGE, encode_header(header)), TIMEOUT_S)
    if isinstance(answer, Outcome):
        client.record(operation, answer, "QueryKey", queue, -1, c=message)
        return
    found = client.arrived(answer.body) if answer.code == ResponseCode.SUCCESS else []
    same = [record for record in found if client.fingerprint(record) == message]
    client.record(operation, Outcome.OK, "QueryKey", queue, len(same), len(found) - len(same), message)


async def query_bounds(client: ScriptedClient, broker: BrokerAddress, queue: MessageQueue) -> None:
    """Asks where a queue begins and where it ends."""
    operation = client.begin()
    client.record(operation, Outcome.INVOKE, "QueryBounds", queue, -1, -1)
    first = GetMinOffsetRequest(topic=queue.topic, queue_id=queue.queue_id)
    low = await client.ask(broker, request(RequestCode.GET_MIN_OFFSET, encode_header(first)), TIMEOUT_S)
    last = GetMaxOffsetRequest(topic=queue.topic, queue_id=queue.queue_id)
    high = await client.ask(broker, request(RequestCode.GET_MAX_OFFSET, encode_header(last)), TIMEOUT_S)
    for answer in (low, high):
        if isinstance(answer, Outcome) or answer.code != ResponseCode.SUCCESS:
            outcome = answer if isinstance(answer, Outcome) else Outcome.UNKNOWN
            client.record(operation, outcome, "QueryBounds", queue, -1, -1)
            return
    assert isinstance(low, RemotingCommand) and isinstance(high, RemotingCommand)
    bounds = (decode_header(GetMinOffsetResponse, low).offset, decode_header(GetMaxOffsetResponse, high).offset)
    client.record(operation, Outcome.OK, "QueryBounds", queue, *bounds)
