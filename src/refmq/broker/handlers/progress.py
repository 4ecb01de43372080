"""How far queues and groups have come (202, 208, 303, 317), and moving groups (222 by time, 314 clone, 308 correct)."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Final

from refmq.broker.control_plane import Broker
from refmq.broker.handlers._registry import Answer, done, handles, refuse
from refmq.broker.stats import Period, Stat
from refmq.model.ids import MessageQueue, QueueOffset, TimestampMs
from refmq.plane import offsets
from refmq.plane.engine import Peer
from refmq.protocol.bodies.codec import encode_body
from refmq.protocol.bodies.config import TopicConfig
from refmq.protocol.bodies.offsets import CorrectionOffsets, QueueWithOffset, ResetOffsetBody, ResetOffsetBodyForC
from refmq.protocol.bodies.stats import (
    ConsumeStats,
    ConsumeStatsList,
    OffsetWrapper,
    QueryConsumeTimeSpan,
    QueueTimeSpan,
    TopicOffset,
    TopicStatsTable,
)
from refmq.protocol.codes import RequestCode, ResponseCode
from refmq.protocol.command import LanguageCode, RemotingCommand, oneway
from refmq.protocol.headers.admin import (
    CloneGroupOffsetRequest,
    GetBrokerConsumeStatsRequest,
    GetConsumeStatsRequest,
    GetTopicStatsInfoRequest,
    QueryConsumeTimeSpanRequest,
    QueryCorrectionOffsetRequest,
)
from refmq.protocol.headers.clients import ResetOffsetRequest
from refmq.protocol.headers.codec import decode_header, encode_header
from refmq.protocol.versions import V3_0_7_SNAPSHOT, V5_0_0, version_name
from refmq.store.values import Boundary

TO_THE_END: Final = -1
"""A time that means the end of the queue."""

QUEUES_AT_ONCE: Final = 64
"""Of so many an answer tells before others have their turn: each may need a look at the log."""


def _queue(broker: Broker, topic: str, queue_id: int) -> MessageQueue:
    return MessageQueue(topic, broker.config.broker_name, queue_id)


# --- looking ----------------------------------------------------------------------------------------------------------


@handles(RequestCode.GET_TOPIC_STATS_INFO)
async def get_topic_stats_info(broker: Broker, peer: Peer, command: RemotingCommand) -> Answer:
    """Where each queue of a topic starts and ends, and when it last got a message."""
    name = decode_header(GetTopicStatsInfoRequest, command).topic
    topic = broker.state.topics.get(name)
    if topic is None:
        return refuse(command, ResponseCode.TOPIC_NOT_EXIST, f"topic[{name}] not exist")
    store = broker.engine.store
    table = {}
    for queue_id in range(topic.write_queue_nums):
        if queue_id % QUEUES_AT_ONCE == QUEUES_AT_ONCE - 1:
            await broker.environment.give_way()
        low, high = max(0, store.min_offset(name, queue_id)), max(0, store.max_offset(name, queue_id))
        last_ms = max(0, store.store_time(name, queue_id, QueueOffset(high - 1))) if high > 0 else 0
        table[_queue(broker, name, queue_id)] = TopicOffset(
            min_offset=low, max_offset=high, last_update_timestamp=last_ms
        )
    return done(command, body=encode_body(TopicStatsTable(offset_table=table)))


@handles(RequestCode.GET_CONSUME_STATS)
async def get_consume_stats(broker: Broker, peer: Peer, command: RemotingCommand) -> Answer:
    """How far a group has come in each of its queues."""
    header = decode_header(GetConsumeStatsRequest, command)
    group = header.consumer_group
    asked = dict.fromkeys(name for name in (header.topic_list or header.topic or "").split(";") if name.strip())
    table: dict[MessageQueue, OffsetWrapper] = {}
    rate = 0.0
    for name in asked or broker.engine.offsets.topics_of(group):
        topic = broker.state.topics.get(name)
        if topic is None or _is_not_subscribed(broker, group, name):
            continue
        table |= await _progress(broker, group, topic, topic.read_queue_nums, asked_by=command.version)
        rate += _consume_rate(broker, group, name)
    return done(command, body=encode_body(ConsumeStats(offset_table=table, consume_tps=rate)))


def _is_not_subscribed(broker: Broker, group: str, topic: str) -> bool:
    """Whether a group is online but not subscribed to this topic."""
    consumer = broker.state.clients.consumers.get(group)
    return consumer is not None and len(consumer.subscriptions) > 0 and topic not in consumer.subscriptions


def _consume_rate(broker: Broker, group: str, topic: str) -> float:
    counter = broker.counted().get(Stat.GROUP_GET_NUMS, f"{topic}@{group}")
    return 0.0 if counter is None else counter.figure(Period.MINUTE).tps


async def _progress(
    broker: Broker, group: str, topic: TopicConfig, queues: int, asked_by: int
) -> dict[MessageQueue, OffsetWrapper]:
    """Where a group is in each queue. A 5.x caller also gets a pull offset, so that it shows nothing in flight:
    we do not remember how far pulls have come, and without the field it would subtract from 0."""
    store, name = broker.engine.store, topic.topic_name
    table = {}
    for queue_id in range(queues):
        if queue_id % QUEUES_AT_ONCE == QUEUES_AT_ONCE - 1:
            await broker.environment.give_way()
        consumed = broker.engine.offsets.get(name, group, queue_id) or QueueOffset(0)
        last_ms = max(0, store.store_time(name, queue_id, QueueOffset(consumed - 1))) if consumed > 0 else 0
        table[_queue(broker, name, queue_id)] = OffsetWrapper(
            broker_offset=max(0, store.max_offset(name, queue_id)),
            consumer_offset=max(0, consumed),
            last_timestamp=last_ms,
            pull_offset=max(0, consumed) if asked_by >= V5_0_0 else None,
        )
    return table


@handles(RequestCode.GET_BROKER_CONSUME_STATS)
async def get_broker_consume_stats(broker: Broker, peer: Peer, command: RemotingCommand) -> Answer:
    """The progress of every group, in ordered topics only if asked."""
    only_ordered = decode_header(GetBrokerConsumeStatsRequest, command).is_order
    total = 0
    rows: list[dict[str, tuple[ConsumeStats, ...]]] = []
    for number, group in enumerate(sorted(broker.state.groups.groups)):
        if number % QUEUES_AT_ONCE == QUEUES_AT_ONCE - 1:
            await broker.environment.give_way()
        found = []
        for name in broker.engine.offsets.topics_of(group):
            topic = broker.state.topics.get(name)
            if topic is None or (only_ordered and not topic.order) or _is_not_subscribed(broker, group, name):
                continue
            table = await _progress(broker, group, topic, topic.write_queue_nums, asked_by=command.version)
            total += sum(row.broker_offset - row.consumer_offset for row in table.values())
            found.append(ConsumeStats(offset_table=table, consume_tps=_consume_rate(broker, group, name)))
        rows.append({group: tuple(found)})
    body = ConsumeStatsList(consume_stats_list=tuple(rows), broker_addr=broker.config.address, total_diff=total)
    return done(command, body=encode_body(body))


@handles(RequestCode.QUERY_CONSUME_TIME_SPAN)
async def query_consume_time_span(broker: Broker, peer: Peer, command: RemotingCommand) -> Answer:
    """The time span of each queue of a topic, and where a group is in it."""
    header = decode_header(QueryConsumeTimeSpanRequest, command)
    topic = broker.state.topics.get(header.topic)
    if topic is None:
        return refuse(command, ResponseCode.TOPIC_NOT_EXIST, f"topic[{header.topic}] not exist")
    spans = []
    for queue_id in range(topic.write_queue_nums):
        if queue_id % QUEUES_AT_ONCE == QUEUES_AT_ONCE - 1:
            await broker.environment.give_way()
        spans.append(_time_span(broker, header, queue_id))
    return done(command, body=encode_body(QueryConsumeTimeSpan(consume_time_span_set=tuple(spans))))


def _time_span(broker: Broker, header: QueryConsumeTimeSpanRequest, queue_id: int) -> QueueTimeSpan:
    store, name = broker.engine.store, header.topic
    low, high = store.min_offset(name, queue_id), store.max_offset(name, queue_id)
    first_ms = store.store_time(name, queue_id, low)
    last_ms = store.store_time(name, queue_id, QueueOffset(high - 1))
    consumed = broker.engine.offsets.get(name, header.group, queue_id) or QueueOffset(0)
    consumed_ms = store.store_time(name, queue_id, QueueOffset(consumed - 1)) if consumed > 0 else first_ms
    next_ms = store.store_time(name, queue_id, consumed) if high > consumed else TimestampMs(-1)

    def text(at_ms: TimestampMs) -> str:
        """`yyyy-MM-dd#HH:mm:ss:SSS`, as the admin tool reads times."""
        return broker.environment.local_time(at_ms).replace(" ", "#").replace(",", ":")

    return QueueTimeSpan(
        message_queue=_queue(broker, name, queue_id),
        min_time_stamp=first_ms,
        max_time_stamp=last_ms,
        consume_time_stamp=consumed_ms,
        delay_time=max(0, broker.environment.now_ms() - next_ms) if next_ms >= 0 else 0,
        min_time_stamp_str=text(first_ms),
        max_time_stamp_str=text(last_ms),
        consume_time_stamp_str=text(consumed_ms),
    )


# --- moving -----------------------------------------------------------------------------------------------------------


@handles(RequestCode.INVOKE_BROKER_TO_RESET_OFFSET)
def invoke_broker_to_reset_offset(broker: Broker, peer: Peer, command: RemotingCommand) -> Answer:
    """Moves an online group to a time: its members are notified and commit the new offsets themselves."""
    header = decode_header(ResetOffsetRequest, command)
    topic = broker.state.topics.get(header.topic)
    if topic is None:
        remark = f"[reset-offset] reset offset failed, no topic in this broker. topic={header.topic}"
        return refuse(command, ResponseCode.SYSTEM_ERROR, remark)
    table: dict[MessageQueue, int] = {}
    for queue_id in range(topic.write_queue_nums):
        current = broker.engine.offsets.get(header.topic, header.group, queue_id)
        if current is None:
            return refuse(command, ResponseCode.SYSTEM_ERROR, f"THe consumer group <{header.group}> not exist")
        target = _reset_target(broker, header, queue_id)
        moved = target if header.is_force or target < current else current
        table[_queue(broker, header.topic, queue_id)] = moved
    return _tell_members(broker, command, header, table)


def _reset_target(broker: Broker, header: ResetOffsetRequest, queue_id: int) -> int:
    store = broker.engine.store
    if header.timestamp == TO_THE_END:
        return store.max_offset(header.topic, queue_id)
    at_ms = TimestampMs(header.timestamp)
    return max(0, store.offset_by_time(header.topic, queue_id, at_ms, Boundary.NEAREST))


def _tell_members(
    broker: Broker, command: RemotingCommand, header: ResetOffsetRequest, table: dict[MessageQueue, int]
) -> RemotingCommand:
    consumer = broker.state.clients.consumers.get(header.group)
    if consumer is None:
        remark = (
            f"Consumer not online, so can not reset offset, Group: {header.group} Topic: {header.topic} "
            f"Timestamp: {header.timestamp}"
        )
        return refuse(command, ResponseCode.CONSUMER_NOT_ONLINE, remark)
    body = encode_body(ResetOffsetBody(offset_table=table))
    if command.language is LanguageCode.CPP:
        rows = tuple(
            QueueWithOffset(broker_name=q.broker, topic=q.topic, queue_id=q.queue_id, offset=offset)
            for q, offset in table.items()
        )
        told = encode_body(ResetOffsetBodyForC(offset_table=rows))
    else:
        told = body
    fields = encode_header(replace(header, is_force=False, queue_id=None, offset=None))
    for member in consumer.ordered_members():
        if member.version < V3_0_7_SNAPSHOT:
            remark = f"the client does not support this feature. version={version_name(member.version)}"
            return refuse(command, ResponseCode.SYSTEM_ERROR, remark)
        peer = broker.environment.connection(member.connection)
        if peer is not None:
            peer.send_oneway(oneway(RequestCode.RESET_CONSUMER_CLIENT_OFFSET, fields, told))
    return done(command, body=body)


@handles(RequestCode.CLONE_GROUP_OFFSET)
def clone_group_offset(broker: Broker, peer: Peer, command: RemotingCommand) -> Answer:
    """Copies one group's offsets in a topic to another group. Without a topic nothing happens, as upstream."""
    header = decode_header(CloneGroupOffsetRequest, command)
    name = header.topic or ""
    mistake = offsets.commit_mistake(name, header.dest_group, 0) if name else None
    if mistake is not None:
        return refuse(command, ResponseCode.SYSTEM_ERROR, mistake)
    if name in broker.state.topics.topics and (
        header.offline or not _is_not_subscribed(broker, header.src_group, name)
    ):
        table = offsets.clone_group(broker.engine.offsets, header.src_group, header.dest_group, name)
        broker.engine.set_offsets(table)
    return done(command)


@handles(RequestCode.QUERY_CORRECTION_OFFSET)
def query_correction_offset(broker: Broker, peer: Peer, command: RemotingCommand) -> Answer:
    """The lowest offset that any group has in each queue of a topic. (Upstream deletes the filtered groups' offsets
    from its live table as a side effect; here they are only left out.)"""
    header = decode_header(QueryCorrectionOffsetRequest, command)
    left_out = frozenset((header.filter_groups or "").split(","))
    groups = [g for g in broker.engine.offsets.groups_of(header.topic) if g not in left_out]
    lowest = _lowest(broker, header.topic, groups)
    return done(command, body=encode_body(CorrectionOffsets(correction_offsets=lowest)))


def _lowest(broker: Broker, topic: str, groups: Iterable[str]) -> dict[int, int]:
    lowest: dict[int, int] = {}
    for group in groups:
        queues = broker.engine.offsets.offsets[(topic, group)]
        for queue_id in sorted(queues):
            offset = queues[queue_id]
            if offset >= broker.engine.store.min_offset(topic, queue_id):
                lowest[queue_id] = min(offset, lowest.get(queue_id, offset))
    return lowest
