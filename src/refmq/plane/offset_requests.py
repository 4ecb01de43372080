"""Committed offsets on the hot path: 15 UPDATE_CONSUMER_OFFSET and 14 QUERY_CONSUMER_OFFSET."""

from __future__ import annotations

from dataclasses import replace

from refmq.model.ids import QueueOffset
from refmq.plane.effects import Reply
from refmq.plane.inputs import Commit, Frame, Moment
from refmq.plane.offsets import ENTRIES_MAX, commit_mistake, commit_offset, commit_offset_enabled
from refmq.plane.state import PlaneState, PlaneStep
from refmq.protocol.codes import ResponseCode
from refmq.protocol.command import response
from refmq.protocol.headers.codec import decode_header, encode_header
from refmq.protocol.headers.offsets import (
    QueryConsumerOffsetRequest,
    QueryConsumerOffsetResponse,
    UpdateConsumerOffsetRequest,
)
from refmq.store.api import StoreReader


def serve_update_offset(state: PlaneState, store: StoreReader, frame: Frame, now: Moment) -> PlaneStep:
    """Stores an offset, whatever it was before and whoever sends it, if there can be such a queue and such a group."""
    header = decode_header(UpdateConsumerOffsetRequest, frame.command)
    # Enabled
    topic, group, queue_id = header.topic, header.consumer_group, header.queue_id
    mistake = commit_mistake(topic, group, queue_id)
    if mistake is None and not commit_offset_enabled(state.offsets, topic, group, queue_id):
        mistake = f"the broker keeps at most {ENTRIES_MAX} offsets"
    if mistake is not None:
        refusal = response(frame.command, ResponseCode.SYSTEM_ERROR, remark=mistake)
        return PlaneStep(state, (Reply(frame, refusal),))
    # Next
    offset = QueueOffset(header.commit_offset)
    step = commit(state, Commit(group, topic, queue_id, offset))
    return step._replace(effects=(Reply(frame, response(frame.command, ResponseCode.SUCCESS)),))


def commit(state: PlaneState, asked: Commit) -> PlaneStep:
    """CommitOffset, for whoever asks."""
    step = commit_offset(state.offsets, asked.topic, asked.group, asked.queue_id, asked.offset)
    return PlaneStep(replace(state, offsets=step.state), (), () if step.event is None else (step.event,))


def serve_query_offset(state: PlaneState, store: StoreReader, frame: Frame, now: Moment) -> PlaneStep:
    """The stored offset; 0 for a group that is new to a queue whose first message is still at hand."""
    header = decode_header(QueryConsumerOffsetRequest, frame.command)
    offset = state.offsets.get(header.topic, header.consumer_group, header.queue_id)
    if offset is None or offset < 0:
        offset = None
    remark = "Not found, V3_0_6_SNAPSHOT maybe this group consumer boot first"
    if offset is None and header.set_zero_if_not_found is False:
        remark = "Not found, do not set to zero, maybe this group boot first"
    elif offset is None and store.min_offset(header.topic, header.queue_id) <= 0:
        offset = None if first_is_far(state, store, header) else QueueOffset(0)
    if offset is None:
        return PlaneStep(state, (Reply(frame, response(frame.command, ResponseCode.QUERY_NOT_FOUND, remark=remark)),))
    fields = encode_header(QueryConsumerOffsetResponse(offset=offset))
    return PlaneStep(state, (Reply(frame, response(frame.command, ResponseCode.SUCCESS, fields)),))


def first_is_far(state: PlaneState, store: StoreReader, header: QueryConsumerOffsetRequest) -> bool:
    """Whether the first message of a queue is so old that it is no longer in memory, by upstream's estimate."""
    config = state.snapshot.store_config
    first = store.units(header.topic, header.queue_id, QueueOffset(0), 1)
    if not first:
        return False
    in_memory = config.memory_bytes * config.memory_ratio_percent // 100
    return store.log_max - first[0].physical_offset > in_memory
