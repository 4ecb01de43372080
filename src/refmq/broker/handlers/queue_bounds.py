"""Offsets: what all groups have consumed (43), and where queues start and end (29 to 32).

Requests for one offset of one group (14, 15) belong to the hot path: `refmq.plane.offset_requests`.
"""

from __future__ import annotations

from refmq.broker.control_plane import Broker
from refmq.broker.handlers._registry import done, handles
from refmq.model.ids import TimestampMs
from refmq.plane.engine import Peer
from refmq.protocol.bodies.codec import JsonStyle, encode_body
from refmq.protocol.codes import RequestCode
from refmq.protocol.command import RemotingCommand
from refmq.protocol.headers.codec import decode_header, encode_header
from refmq.protocol.headers.offsets import (
    GetEarliestMsgStoretimeRequest,
    GetEarliestMsgStoretimeResponse,
    GetMaxOffsetRequest,
    GetMaxOffsetResponse,
    GetMinOffsetRequest,
    GetMinOffsetResponse,
    SearchOffsetRequest,
    SearchOffsetResponse,
)
from refmq.store.values import Boundary


@handles(RequestCode.GET_ALL_CONSUMER_OFFSET)
def get_all_consumer_offset(broker: Broker, peer: Peer, command: RemotingCommand) -> RemotingCommand:
    """The whole table, for slaves."""
    return done(command, body=encode_body(broker.engine.offsets.body(), JsonStyle.FASTJSON))


@handles(RequestCode.GET_ALL_DELAY_OFFSET)
def get_all_delay_offset(broker: Broker, peer: Peer, command: RemotingCommand) -> RemotingCommand:
    """How far each delay level is delivered, for slaves."""
    return done(command, body=encode_body(broker.delay.to_file(), JsonStyle.FASTJSON))


@handles(RequestCode.GET_MAX_OFFSET)
def get_max_offset(broker: Broker, peer: Peer, command: RemotingCommand) -> RemotingCommand:
    """The offset the next message of a queue will get."""
    header = decode_header(GetMaxOffsetRequest, command)
    offset = broker.engine.store.max_offset(header.topic, header.queue_id)
    return done(command, encode_header(GetMaxOffsetResponse(offset=offset)))


@handles(RequestCode.GET_MIN_OFFSET)
def get_min_offset(broker: Broker, peer: Peer, command: RemotingCommand) -> RemotingCommand:
    """The first message still in a queue."""
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
    """The message nearest to a time; a 5.x client says from which side."""
    header = decode_header(SearchOffsetRequest, command)
    boundary = {"LOWER": Boundary.LOWER, "UPPER": Boundary.UPPER}.get(
        (header.boundary_type or "").upper(), Boundary.NEAREST
    )
    offset = broker.engine.store.offset_by_time(header.topic, header.queue_id, TimestampMs(header.timestamp), boundary)
    return done(command, encode_header(SearchOffsetResponse(offset=offset)))
