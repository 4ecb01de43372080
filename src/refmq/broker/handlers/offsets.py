"""Offsets: what groups have consumed (14, 15, 43) and where queues begin and end (29 to 32)."""

from __future__ import annotations

from refmq.broker.broker import Broker
from refmq.broker.handlers._registry import done, handles, refuse
from refmq.broker.world import Peer
from refmq.model.ids import QueueOffset, TimestampMs
from refmq.protocol.bodies.codec import JsonStyle, encode_body
from refmq.protocol.codes import RequestCode, ResponseCode
from refmq.protocol.command import RemotingCommand
from refmq.protocol.headers.codec import decode_header, encode_header
from refmq.protocol.headers.offsets import (
    GetEarliestMsgStoretimeRequest,
    GetEarliestMsgStoretimeResponse,
    GetMaxOffsetRequest,
    GetMaxOffsetResponse,
    GetMinOffsetRequest,
    GetMinOffsetResponse,
    QueryConsumerOffsetRequest,
    QueryConsumerOffsetResponse,
    SearchOffsetRequest,
    SearchOffsetResponse,
    UpdateConsumerOffsetRequest,
)
from refmq.store.values import Boundary


@handles(RequestCode.UPDATE_CONSUMER_OFFSET)
def update_consumer_offset(broker: Broker, peer: Peer, command: RemotingCommand) -> RemotingCommand:
    """Stores an offset, whatever it was before and whoever sends it."""
    header = decode_header(UpdateConsumerOffsetRequest, command)
    offset = QueueOffset(header.commit_offset)
    broker.commit_offset(header.consumer_group, header.topic, header.queue_id, offset)
    return done(command)


@handles(RequestCode.QUERY_CONSUMER_OFFSET)
def query_consumer_offset(broker: Broker, peer: Peer, command: RemotingCommand) -> RemotingCommand:
    """The stored offset; 0 for a group that is new to a queue whose first message is still at hand."""
    header = decode_header(QueryConsumerOffsetRequest, command)
    offset = broker.state.offsets.get(header.topic, header.consumer_group, header.queue_id)
    if offset is not None and offset >= 0:
        return done(command, encode_header(QueryConsumerOffsetResponse(offset=offset)))
    if header.set_zero_if_not_found is False:
        remark = "Not found, do not set to zero, maybe this group boot first"
        return refuse(command, ResponseCode.QUERY_NOT_FOUND, remark)
    store = broker.engine.store
    if store.min_offset(header.topic, header.queue_id) <= 0 and not _first_is_far(broker, header):
        return done(command, encode_header(QueryConsumerOffsetResponse(offset=0)))
    remark = "Not found, V3_0_6_SNAPSHOT maybe this group consumer boot first"
    return refuse(command, ResponseCode.QUERY_NOT_FOUND, remark)


def _first_is_far(broker: Broker, header: QueryConsumerOffsetRequest) -> bool:
    """Whether the first message of a queue is so old that it is no longer in memory, by upstream's estimate."""
    store, config = broker.engine.store, broker.store_config
    first = store.units(header.topic, header.queue_id, QueueOffset(0), 1)
    if not first:
        return False
    in_memory = config.memory_bytes * config.memory_ratio_percent // 100
    return store.log_max - first[0].physical_offset > in_memory


@handles(RequestCode.GET_ALL_CONSUMER_OFFSET)
def get_all_consumer_offset(broker: Broker, peer: Peer, command: RemotingCommand) -> RemotingCommand:
    """The whole table, for slaves."""
    return done(command, body=encode_body(broker.state.offsets.body(), JsonStyle.FASTJSON))


@handles(RequestCode.GET_ALL_DELAY_OFFSET)
def get_all_delay_offset(broker: Broker, peer: Peer, command: RemotingCommand) -> RemotingCommand:
    """How far each delay level is delivered, for slaves."""
    return done(command, body=encode_body(broker.delay.to_file(), JsonStyle.FASTJSON))


@handles(RequestCode.GET_MAX_OFFSET)
def get_max_offset(broker: Broker, peer: Peer, command: RemotingCommand) -> RemotingCommand:
    """The offset that the next message of a queue gets."""
    header = decode_header(GetMaxOffsetRequest, command)
    offset = broker.engine.store.max_offset(header.topic, header.queue_id)
    return done(command, encode_header(GetMaxOffsetResponse(offset=offset)))


@handles(RequestCode.GET_MIN_OFFSET)
def get_min_offset(broker: Broker, peer: Peer, command: RemotingCommand) -> RemotingCommand:
    """The first message of a queue that is still there."""
    header = decode_header(GetMinOffsetRequest, command)
    offset = broker.engine.store.min_offset(header.topic, header.queue_id)
    return done(command, encode_header(GetMinOffsetResponse(offset=offset)))


@handles(RequestCode.GET_EARLIEST_MSG_STORETIME)
def get_earliest_msg_storetime(broker: Broker, peer: Peer, command: RemotingCommand) -> RemotingCommand:
    """When the first message of a queue was stored."""
    header = decode_header(GetEarliestMsgStoretimeRequest, command)
    store = broker.engine.store
    first = store.min_offset(header.topic, header.queue_id)
    at_ms = store.store_time(header.topic, header.queue_id, first)
    return done(command, encode_header(GetEarliestMsgStoretimeResponse(timestamp=at_ms)))


@handles(RequestCode.SEARCH_OFFSET_BY_TIMESTAMP)
def search_offset_by_timestamp(broker: Broker, peer: Peer, command: RemotingCommand) -> RemotingCommand:
    """The message nearest to a time; a 5.x client says which side it means."""
    header = decode_header(SearchOffsetRequest, command)
    boundary = {"LOWER": Boundary.LOWER, "UPPER": Boundary.UPPER}.get(
        (header.boundary_type or "").upper(), Boundary.NEAREST
    )
    offset = broker.engine.store.offset_by_time(header.topic, header.queue_id, TimestampMs(header.timestamp), boundary)
    return done(command, encode_header(SearchOffsetResponse(offset=offset)))
