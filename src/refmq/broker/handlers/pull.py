"""Pulling: 11 PULL_MESSAGE and 361 LITE_PULL_MESSAGE, with long polling.

A pull is checked, run against the store, and answered, unless it found nothing new and may wait: then it is parked
(`refmq.broker.pull_hold`) and run again when it is woken. The second run repeats every check, never parks and never
commits an offset again.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

from refmq.broker.broker import Broker
from refmq.broker.config import PERM_READ
from refmq.broker.filter import compile_expression, matches, parse_tags
from refmq.broker.filter.sql_lexer import SqlSyntaxError
from refmq.broker.filters import FilterData, is_tag_expression
from refmq.broker.handlers._registry import FAQ, Answer, handles, refuse
from refmq.broker.pull_hold import HeldPull
from refmq.broker.stats import Stat
from refmq.broker.world import Peer
from refmq.model.ids import MessageQueue, QueueOffset, TimestampMs
from refmq.protocol.bodies.codec import encode_body
from refmq.protocol.bodies.config import SubscriptionGroupConfig
from refmq.protocol.bodies.heartbeat import EXPRESSION_SQL92, MessageModel, SubscriptionData
from refmq.protocol.codes import RequestCode, ResponseCode
from refmq.protocol.command import RemotingCommand, response
from refmq.protocol.headers.codec import Int64, decode_header, encode_header
from refmq.protocol.headers.pull import PullMessageRequest, PullMessageResponse, PullSysFlag
from refmq.protocol.names import OFFSET_MOVED_EVENT_TOPIC, RETRY_PREFIX, RETRY_TOPIC
from refmq.protocol.record import decode_properties, join_properties
from refmq.store.values import ExtTest, GetResult, GetStatus, MatchAll, MessageFilter, MessageToStore, QueueId

SUSPEND_MS_MAX: Final = 5 * 60_000
"""How long a pull may wait at most; Java clients ask for 15 s, lite ones for 20 s. Upstream has no bound."""

ANSWERS: Final = {
    GetStatus.FOUND: ResponseCode.SUCCESS,
    GetStatus.MESSAGE_WAS_REMOVING: ResponseCode.PULL_RETRY_IMMEDIATELY,
    GetStatus.NO_MATCHED_MESSAGE: ResponseCode.PULL_RETRY_IMMEDIATELY,
    GetStatus.OFFSET_FOUND_NULL: ResponseCode.PULL_NOT_FOUND,
    GetStatus.OFFSET_OVERFLOW_ONE: ResponseCode.PULL_NOT_FOUND,
    GetStatus.OFFSET_OVERFLOW_BADLY: ResponseCode.PULL_OFFSET_MOVED,
    GetStatus.OFFSET_TOO_SMALL: ResponseCode.PULL_OFFSET_MOVED,
}


@dataclass(frozen=True, slots=True)
class Refusal:
    """A check failed: the answer."""

    code: ResponseCode
    remark: str


@dataclass(frozen=True, slots=True)
class Allowed:
    """A pull that may go ahead."""

    group: SubscriptionGroupConfig
    message_filter: MessageFilter


@dataclass(frozen=True, slots=True, kw_only=True)
class OffsetMovedEvent:
    """The body of a message in OFFSET_MOVED_EVENT."""

    consumer_group: str
    message_queue: MessageQueue
    offset_request: Int64
    offset_new: Int64


@handles(RequestCode.PULL_MESSAGE, RequestCode.LITE_PULL_MESSAGE)
def pull_message(broker: Broker, peer: Peer, command: RemotingCommand) -> Answer:
    """Answers a pull, or parks it."""
    header = decode_header(PullMessageRequest, command)
    allowed = check_pull(broker, peer, header)
    if isinstance(allowed, Refusal):
        return refuse(command, allowed.code, allowed.remark)
    result = _read(broker, header, allowed)
    code = _code(header, result)
    if header.sys_flag & PullSysFlag.COMMIT_OFFSET and not broker.is_slave:
        offset = QueueOffset(header.commit_offset)
        broker.commit_offset(header.consumer_group, header.topic, header.queue_id, offset)
    if code is ResponseCode.PULL_NOT_FOUND and header.sys_flag & PullSysFlag.SUSPEND:
        wait_ms = min(header.suspend_timeout_millis, SUSPEND_MS_MAX)
        if not broker.config.long_polling_enable:
            wait_ms = broker.config.short_polling_time_mills
        deadline = TimestampMs(broker.world.now_ms() + max(0, wait_ms))
        queue = QueueId(header.topic, header.queue_id)
        offset = QueueOffset(header.queue_offset)
        if broker.hold.park(peer.number, command, queue, offset, deadline, allowed.message_filter):
            return None
    return _answer(broker, command, header, allowed, result, code)


def answer_held(broker: Broker, pull: HeldPull) -> None:
    """Runs a woken pull again and answers it. A peer that is gone needs no answer."""
    peer = broker.world.connection(pull.connection)
    if peer is None or peer.closed:
        return
    header = decode_header(PullMessageRequest, pull.command)
    allowed = check_pull(broker, peer, header)
    if isinstance(allowed, Refusal):
        peer.send(refuse(pull.command, allowed.code, allowed.remark))
        return
    result = _read(broker, header, allowed)
    peer.send(_answer(broker, pull.command, header, allowed, result, _code(header, result)))


def _read(broker: Broker, header: PullMessageRequest, allowed: Allowed) -> GetResult:
    begun_ms = broker.world.now_ms()
    result = broker.engine.store.get_message(
        header.topic,
        header.queue_id,
        QueueOffset(header.queue_offset),
        max(0, header.max_msg_nums),
        allowed.message_filter,
    )
    took_ms = max(0, broker.world.now_ms() - begun_ms)
    broker.stats.get_times.add(took_ms)
    broker.stats.add(Stat.GROUP_GET_LATENCY, f"{header.queue_id}@{header.topic}@{header.consumer_group}", took_ms)
    if not result.records:
        broker.stats.missed_total += 1
    return result


def _code(header: PullMessageRequest, result: GetResult) -> ResponseCode:
    code = ANSWERS.get(result.status)
    if code is not None:
        return code
    # No queue, or nothing in it: an offset other than 0 is wrong there.
    return ResponseCode.PULL_OFFSET_MOVED if header.queue_offset != 0 else ResponseCode.PULL_NOT_FOUND


def _answer(
    broker: Broker,
    command: RemotingCommand,
    header: PullMessageRequest,
    allowed: Allowed,
    result: GetResult,
    code: ResponseCode,
) -> RemotingCommand:
    suggested = 0
    if broker.config.slave_read_enable:
        group = allowed.group
        suggested = group.which_broker_when_consume_slowly if result.suggest_slave else group.broker_id
    fields = PullMessageResponse(
        suggest_which_broker_id=suggested,
        next_begin_offset=result.next_offset,
        min_offset=result.min_offset,
        max_offset=result.max_offset,
    )
    if code is ResponseCode.SUCCESS:
        cluster = broker.config.broker_cluster_name
        broker.stats.count_get(cluster, header.consumer_group, header.topic, len(result.records), result.size_bytes)
    elif code is ResponseCode.PULL_OFFSET_MOVED:
        broker.world.spawn(_offset_moved(broker, header, result), "offset moved event")
    return response(command, code, encode_header(fields), b"".join(result.records), remark=result.status.name)


async def _offset_moved(broker: Broker, header: PullMessageRequest, result: GetResult) -> None:
    """Stores a note that a consumer was somewhere else than its queue."""
    event = OffsetMovedEvent(
        consumer_group=header.consumer_group,
        message_queue=MessageQueue(header.topic, broker.config.broker_name, header.queue_id),
        offset_request=header.queue_offset,
        offset_new=result.next_offset,
    )
    properties = {"TAGS": header.consumer_group, "KEYS": header.consumer_group, "DELAY": "0"}
    await broker.engine.put(
        MessageToStore(
            topic=OFFSET_MOVED_EVENT_TOPIC,
            queue_id=0,
            body=encode_body(event),
            properties=join_properties(properties).encode(),
            born_timestamp_ms=broker.world.now_ms(),
            born_host=broker.store_host,
            store_host=broker.store_host,
        ),
        wait_durable=False,
    )


# --- checks ----------------------------------------------------------------------------------------------------------


def check_pull(broker: Broker, peer: Peer, header: PullMessageRequest) -> Allowed | Refusal:
    """Whether a pull may go ahead, in upstream's order of checks."""
    config = broker.config
    if not config.broker_permission & PERM_READ:
        return Refusal(ResponseCode.NO_PERMISSION, f"the broker[{config.broker_ip1}] pulling message is forbidden")
    name = header.consumer_group
    group = broker.group(name)
    if group is None:
        remark = f"subscription group [{name}] does not exist, {FAQ}"
        return Refusal(ResponseCode.SUBSCRIPTION_GROUP_NOT_EXIST, remark)
    if not group.consume_enable:
        return Refusal(ResponseCode.NO_PERMISSION, f"subscription group no permission, {name}")
    topic = broker.state.topics.get(header.topic)
    if topic is None:
        remark = f"topic[{header.topic}] not exist, apply first please! {FAQ}"
        return Refusal(ResponseCode.TOPIC_NOT_EXIST, remark)
    if not topic.perm & PERM_READ:
        return Refusal(ResponseCode.NO_PERMISSION, f"the topic[{header.topic}] pulling message is forbidden")
    if not 0 <= header.queue_id < topic.read_queue_nums:
        remark = (
            f"queueId[{header.queue_id}] is illegal, topic:[{header.topic}] "
            f"topicConfig.readQueueNums:[{topic.read_queue_nums}] consumer:[/{peer.peer}]"
        )
        return Refusal(ResponseCode.SYSTEM_ERROR, remark)
    if header.sys_flag & PullSysFlag.SUBSCRIPTION:
        found = _inline_filter(broker, header)
    else:
        found = _registered_filter(broker, header, group)
    if isinstance(found, Refusal):
        return found
    if config.filter_support_retry and header.topic.startswith(RETRY_PREFIX):
        found = _with_retry_filter(broker, header.topic, found)
    return Allowed(group, found)


def _with_retry_filter(broker: Broker, topic: str, found: MessageFilter) -> MessageFilter:
    """A retried message must satisfy the group's expression on the topic that it came from, if there is one."""
    group = topic[len(RETRY_PREFIX) :]

    def matches_properties(wire: bytes) -> bool:
        properties = decode_properties(wire)
        data = broker.state.filters.get(properties.get(RETRY_TOPIC, ""), group)
        return data is None or matches(data.compiled, properties)

    return replace(found, matches_properties=matches_properties)


def _no_property_filter(broker: Broker, expression_type: str) -> Refusal | None:
    if broker.config.enable_property_filter:
        return None
    remark = f"The broker does not support consumer to filter message by {expression_type}"
    return Refusal(ResponseCode.SYSTEM_ERROR, remark)


def _inline_filter(broker: Broker, header: PullMessageRequest) -> MessageFilter | Refusal:
    """The filter that the request itself carries.

    An expression that does not compile, or in a language that nobody knows, is refused; 4.9.8 lets every message pass.
    """
    failed = Refusal(ResponseCode.SUBSCRIPTION_PARSE_FAILED, "parse the consumer's subscription failed")
    if is_tag_expression(header.expression_type):
        tags = parse_tags(header.subscription)
        if tags is None:
            return failed
        return MatchAll if tags.wants_all else MessageFilter(tag_codes=tags.codes)
    assert header.expression_type is not None
    if not header.subscription:
        return failed
    refusal = _no_property_filter(broker, header.expression_type)
    if refusal is not None:
        return refusal
    if header.expression_type != EXPRESSION_SQL92:
        return failed
    try:
        expression = compile_expression(header.subscription)
    except SqlSyntaxError:
        return failed
    return MessageFilter(matches_properties=lambda wire: matches(expression, decode_properties(wire)))


def _registered_filter(
    broker: Broker, header: PullMessageRequest, group: SubscriptionGroupConfig
) -> MessageFilter | Refusal:
    """The filter that the group's heartbeats registered."""
    consumer = broker.state.clients.consumers.get(header.consumer_group)
    if consumer is None:
        return Refusal(ResponseCode.SUBSCRIPTION_NOT_EXIST, f"the consumer's group info not exist{FAQ}")
    if not group.consume_broadcast_enable and consumer.message_model is MessageModel.BROADCASTING:
        remark = f"the consumer group[{header.consumer_group}] can not consume by broadcast way"
        return Refusal(ResponseCode.NO_PERMISSION, remark)
    subscription = consumer.subscriptions.get(header.topic)
    if subscription is None:
        return Refusal(ResponseCode.SUBSCRIPTION_NOT_EXIST, f"the consumer's subscription not exist{FAQ}")
    if subscription.sub_version < header.sub_version:
        return Refusal(ResponseCode.SUBSCRIPTION_NOT_LATEST, "the consumer's subscription not latest")
    if is_tag_expression(subscription.expression_type):
        return tag_filter(subscription)
    data = broker.state.filters.get(header.topic, header.consumer_group)
    if data is None:
        return Refusal(
            ResponseCode.FILTER_DATA_NOT_EXIST,
            "The broker's consumer filter data is not exist!Your expression may be wrong!",
        )
    if data.client_version < header.sub_version:
        return Refusal(ResponseCode.FILTER_DATA_NOT_LATEST, "the consumer's consumer filter data not latest")
    refusal = _no_property_filter(broker, subscription.expression_type)
    return refusal if refusal is not None else _sql_filter(broker, data)


def tag_filter(subscription: SubscriptionData) -> MessageFilter:
    """The codes are taken as the client sent them: rebuilding them is its business."""
    if subscription.class_filter_mode or subscription.sub_string == "*":
        return MatchAll
    return MessageFilter(tag_codes=frozenset(subscription.code_set))


def _sql_filter(broker: Broker, data: FilterData) -> MessageFilter:
    test = None
    if broker.config.enable_calc_filter_bit_map:
        test = ExtTest(data.bit_positions, broker.state.filters.bloom.bit_count, data.since)
    return MessageFilter(ext_test=test, matches_properties=lambda wire: matches(data.compiled, decode_properties(wire)))
