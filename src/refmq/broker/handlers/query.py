"""Looking at messages: 12 QUERY_MESSAGE by key, 33 VIEW_MESSAGE_BY_ID, 321 QUERY_CONSUME_QUEUE."""

from __future__ import annotations

from typing import Final

from refmq.acl.accounts import Permission
from refmq.broker.control_plane import Broker
from refmq.broker.handlers._registry import Answer, done, handles, refuse
from refmq.broker.named_record import named_record
from refmq.model.ids import PhysicalOffset, QueueOffset, TimestampMs
from refmq.plane.engine import Peer
from refmq.protocol.bodies.codec import encode_body
from refmq.protocol.bodies.stats import ConsumeQueueDump, ConsumeQueueEntry
from refmq.protocol.codes import RequestCode, ResponseCode
from refmq.protocol.command import RemotingCommand, response
from refmq.protocol.headers.admin import QueryConsumeQueueRequest
from refmq.protocol.headers.codec import decode_header, encode_header
from refmq.protocol.headers.messages import QueryMessageRequest, QueryMessageResponse, ViewMessageRequest
from refmq.store.values import QueueId

DUMP_COUNT_MAX: Final = 1_000
"""Units in one queue dump; upstream takes the caller's number."""


@handles(RequestCode.QUERY_MESSAGE)
def query_message(broker: Broker, peer: Peer, command: RemotingCommand) -> Answer:
    """Messages with a key. Hash collisions are included: the client compares the keys."""
    header = decode_header(QueryMessageRequest, command)
    count = broker.config.default_query_max_num if header.unique_key_query else header.max_num
    result = broker.engine.store.query_by_key(
        header.topic,
        header.key,
        max(0, min(count, broker.store_config.query_count_max)),
        TimestampMs(header.begin_timestamp),
        TimestampMs(header.end_timestamp),
    )
    if not result.records:
        nothing = QueryMessageResponse(index_last_update_timestamp=0, index_last_update_phyoffset=0)
        remark = "can not find message, maybe time range not correct"
        return response(command, ResponseCode.QUERY_NOT_FOUND, encode_header(nothing), remark=remark)
    found = QueryMessageResponse(
        index_last_update_timestamp=result.index_last_update_ms,
        index_last_update_phyoffset=result.index_last_update_offset,
    )
    return done(command, encode_header(found), b"".join(result.records))


@handles(RequestCode.VIEW_MESSAGE_BY_ID)
def view_message_by_id(broker: Broker, peer: Peer, command: RemotingCommand) -> Answer:
    """The message at the physical offset in its id."""
    offset = decode_header(ViewMessageRequest, command).offset
    found = named_record(broker.engine.store, PhysicalOffset(offset))
    if found is None:
        return refuse(command, ResponseCode.SYSTEM_ERROR, f"can not find message by the offset, {offset}")
    record, data = found
    denied = broker.refusal_of_use(command, peer, record.topic, Permission.SUB)
    if denied is not None:
        return refuse(command, ResponseCode.SYSTEM_ERROR, denied)
    return done(command, body=data)


@handles(RequestCode.QUERY_CONSUME_QUEUE)
def query_consume_queue(broker: Broker, peer: Peer, command: RemotingCommand) -> Answer:
    """Units of a queue, for people inspecting it."""
    header = decode_header(QueryConsumeQueueRequest, command)
    store = broker.engine.store
    if QueueId(header.topic, header.queue_id) not in store.queues():
        return refuse(command, ResponseCode.SYSTEM_ERROR, f"{header.queue_id}@{header.topic} is not exist!")
    count = max(0, min(header.count, DUMP_COUNT_MAX))
    units = store.units(header.topic, header.queue_id, QueueOffset(header.index), count)
    if not units:
        remark = f"Index {header.index} of {header.queue_id}@{header.topic} is not exist!"
        return response(command, ResponseCode.SUCCESS, remark=remark)
    consumer = broker.state.clients.consumers.get(header.consumer_group or "")
    subscription = None if consumer is None else consumer.subscriptions.get(header.topic)
    dump = ConsumeQueueDump(
        queue_data=tuple(
            ConsumeQueueEntry(
                physic_offset=unit.physical_offset,
                physic_size=unit.size_bytes,
                tags_code=unit.tags_code,  # `eval` stays false, as upstream's does for subscriptions by tag
            )
            for unit in units
        ),
        min_queue_index=store.min_offset(header.topic, header.queue_id),
        max_queue_index=store.max_offset(header.topic, header.queue_id),
        subscription_data=subscription,
        filter_data=_filter_text(header.consumer_group, header.topic, online=subscription is not None),
    )
    return done(command, body=encode_body(dump))


def _filter_text(group: str | None, topic: str, *, online: bool) -> str | None:
    """What upstream reports as a group's filter: its SQL92 data as JSON. Tag subscriptions have none."""
    if not group:
        return None
    return "null" if online else f"{group}@{topic} is not online!"
