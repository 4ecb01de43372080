"""Pulling: 11 PULL_MESSAGE and 361 LITE_PULL_MESSAGE, with long polling.

A pull is checked, run against the store, and answered, unless it found nothing new and may wait: then it is parked
(`refmq.plane.hold`) and run again when it is woken. The second run repeats every check, never parks and never commits
an offset again.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final, TypeAlias

from refmq.filter import compile_expression, parse_tags
from refmq.filter.message_filter import BitmapTest, MatchAll, MessageFilter, OriginFilter
from refmq.filter.registry import FilterData, is_tag_expression
from refmq.filter.sql_lexer import SqlSyntaxError
from refmq.filter.work import terms_and_depth
from refmq.model.broker_config import PERM_READ
from refmq.model.ids import MessageQueue, QueueOffset
from refmq.model.step import EventFields
from refmq.plane.effects import CountPull, Effect, HandOver, Park, PutNote, Reply, WakeMore
from refmq.plane.hold import HeldPull, in_order
from refmq.plane.inputs import Arrived, Frame, Moment
from refmq.plane.needs import NeedsGroup, Refusal
from refmq.plane.offsets import commit_offset
from refmq.plane.snapshot import Snapshot
from refmq.plane.state import PlaneState, PlaneStep
from refmq.protocol.bodies.codec import encode_body
from refmq.protocol.bodies.config import SubscriptionGroupConfig
from refmq.protocol.bodies.heartbeat import EXPRESSION_SQL92, MessageModel, SubscriptionData
from refmq.protocol.codes import ResponseCode
from refmq.protocol.command import response
from refmq.protocol.headers.codec import Int64, decode_header, encode_header
from refmq.protocol.headers.pull import PullMessageRequest, PullMessageResponse, PullSysFlag
from refmq.protocol.names import FAQ, OFFSET_MOVED_EVENT_TOPIC, RETRY_PREFIX
from refmq.protocol.record import join_properties
from refmq.store.api import StoreReader
from refmq.store.values import GetResult, GetStatus, MessageToStore

SUSPEND_MS_MAX: Final = 5 * 60_000
"""How long a pull may wait at most; Java clients ask for 15 s, lite ones for 20 s. Upstream has no bound."""

COUNT_MAX: Final = 1024
"""Messages that one pull may ask for: the most that Java's clients can be told to."""

WOKEN_AT_ONCE: Final = 128
"""So many pulls are answered by one step: a message may wake thousands."""

LOOK_MS: Final = 5_000
"""How often the waiting pulls are looked through with long polling; without, every `SHORT_LOOK_MS`."""

SHORT_LOOK_MS: Final = 1_000

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
class PullAllowed:
    """A pull that may go ahead."""

    group: SubscriptionGroupConfig
    message_filter: MessageFilter


PullCheck: TypeAlias = PullAllowed | Refusal | NeedsGroup


@dataclass(frozen=True, slots=True, kw_only=True)
class OffsetMovedEvent:
    """The body of a message in OFFSET_MOVED_EVENT."""

    consumer_group: str
    message_queue: MessageQueue
    offset_request: Int64
    offset_new: Int64


def serve_pull(state: PlaneState, store: StoreReader, frame: Frame, now: Moment) -> PlaneStep:
    """Answers a pull, or parks it."""
    header = decode_header(PullMessageRequest, frame.command)
    # Enabled
    allowed = check_pull(state.snapshot, frame, header)
    if isinstance(allowed, NeedsGroup):
        return PlaneStep(state, (HandOver(frame, allowed),))
    if isinstance(allowed, Refusal):
        return PlaneStep(state, (refused(frame, allowed),))
    result = read(store, header, allowed)
    code = code_of(header, result)
    # Next
    events: tuple[EventFields, ...] = ()
    if header.sys_flag & PullSysFlag.COMMIT_OFFSET and not state.snapshot.store_config.is_slave:
        offset = QueueOffset(header.commit_offset)
        step = commit_offset(state.offsets, header.topic, header.consumer_group, header.queue_id, offset)
        state = replace(state, offsets=step.state)
        events = () if step.event is None else (step.event,)
    wants_to_wait = code is ResponseCode.PULL_NOT_FOUND and header.sys_flag & PullSysFlag.SUSPEND
    if wants_to_wait:
        assert not result.records, "a pull that found something is answered"
        pull = HeldPull(
            frame._replace(command=replace(frame.command, header=b"")),  # what it asks is in its fields
            header.topic,
            header.queue_id,
            QueueOffset(header.queue_offset),
            now.uptime_ms + suspend_ms(state.snapshot, header),
            allowed.message_filter,
        )
        if state.hold.has_room(pull):
            state = replace(state, hold=state.hold.park(pull))
            return PlaneStep(state, (counted(header, result), Park(frame, header.topic)), events)
    # Effects
    return PlaneStep(state, answered(state.snapshot, frame, header, allowed, result, now), events)


def suspend_ms(snapshot: Snapshot, header: PullMessageRequest) -> int:
    """How long a pull may wait for a message."""
    if not snapshot.config.long_polling_enable:
        return max(0, snapshot.config.short_polling_time_mills)
    return max(0, min(header.suspend_timeout_millis, SUSPEND_MS_MAX))


# Waking --------------------------------------------------------------------------------------------------------------


def wake_arrived(state: PlaneState, store: StoreReader, arrived: Arrived, now: Moment) -> PlaneStep:
    """Messages can be read: the pulls that wait for one of them are answered."""
    woken: dict[int, HeldPull] = {}
    if len(state.hold):
        for message in arrived.messages:
            woken |= {pull.frame.number: pull for pull in state.hold.arrived(message)}
    return wake(state, store, in_order(woken.values()), now)


def wake_due(state: PlaneState, store: StoreReader, now: Moment) -> PlaneStep:
    """Answers the pulls whose time is up or whose queue has moved on, every few seconds."""
    period_ms = LOOK_MS if state.snapshot.config.long_polling_enable else SHORT_LOOK_MS
    assert now.uptime_ms >= state.looked_ms, "the uptime never goes back"
    if now.uptime_ms - state.looked_ms < period_ms:
        return PlaneStep(state)
    return wake(replace(state, looked_ms=now.uptime_ms), store, state.hold.due(store, now.uptime_ms), now)


def wake(
    state: PlaneState,
    store: StoreReader,
    pulls: tuple[HeldPull, ...],
    now: Moment,
    *,
    at_once_max: int = WOKEN_AT_ONCE,
) -> PlaneStep:
    """Runs pulls again and answers them: a few now, the others in steps to come."""
    if not pulls:
        return PlaneStep(state)
    begun = len(state.woken) > 0 and at_once_max == WOKEN_AT_ONCE
    state = replace(state, hold=state.hold.without(pulls), woken=state.woken + pulls)
    return PlaneStep(state) if begun else answer_woken(state, store, now, at_once_max)


def answer_woken(state: PlaneState, store: StoreReader, now: Moment, at_once_max: int) -> PlaneStep:
    """Answers the next of the pulls that were woken."""
    pulls, left = state.woken[:at_once_max], state.woken[at_once_max:]
    assert len({pull.frame.number for pull in pulls}) == len(pulls), "a pull is answered once"
    effects: list[Effect] = []
    for pull in pulls:
        effects += run_again(state.snapshot, store, pull.frame, now)
    if left:
        effects.append(WakeMore())
    return PlaneStep(replace(state, woken=left), tuple(effects))


def run_again(snapshot: Snapshot, store: StoreReader, frame: Frame, now: Moment) -> tuple[Effect, ...]:
    """The answer to a pull that was woken. A group that is gone meanwhile is refused, not created."""
    header = decode_header(PullMessageRequest, frame.command)
    denied = snapshot.refusal(frame.command, frame.peer)
    if denied is not None:  # what was allowed when it was parked
        return (refused(frame, Refusal(ResponseCode.SYSTEM_ERROR, denied)),)
    allowed = check_pull(snapshot, frame, header)
    if isinstance(allowed, NeedsGroup):
        return (refused(frame, allowed.refusal),)
    if isinstance(allowed, Refusal):
        return (refused(frame, allowed),)
    return answered(snapshot, frame, header, allowed, read(store, header, allowed), now)


# Answers -------------------------------------------------------------------------------------------------------------


def refused(frame: Frame, refusal: Refusal) -> Reply:
    assert refusal.code is not ResponseCode.SUCCESS
    return Reply(frame, response(frame.command, refusal.code, remark=refusal.remark))


def read(store: StoreReader, header: PullMessageRequest, allowed: PullAllowed) -> GetResult:
    return store.get_message(
        header.topic,
        header.queue_id,
        QueueOffset(header.queue_offset),
        max(0, min(header.max_msg_nums, COUNT_MAX)),
        allowed.message_filter,
    )


def code_of(header: PullMessageRequest, result: GetResult) -> ResponseCode:
    code = ANSWERS.get(result.status)
    if code is not None:
        return code
    # No queue, or nothing in it: an offset other than 0 is wrong there.
    return ResponseCode.PULL_OFFSET_MOVED if header.queue_offset != 0 else ResponseCode.PULL_NOT_FOUND


def counted(header: PullMessageRequest, result: GetResult) -> CountPull:
    return CountPull(header.consumer_group, header.topic, header.queue_id, len(result.records), result.size_bytes)


def answered(
    snapshot: Snapshot,
    frame: Frame,
    header: PullMessageRequest,
    allowed: PullAllowed,
    result: GetResult,
    now: Moment,
) -> tuple[Effect, ...]:
    """The effects of an answer with what was found."""
    code = code_of(header, result)
    assert bool(result.records) == (code is ResponseCode.SUCCESS), "messages come with success, and only then"
    assert len(result.records) <= max(1, header.max_msg_nums), "nobody gets more than was asked for, or the first one"
    suggested = 0
    if snapshot.config.slave_read_enable:
        group = allowed.group
        suggested = group.which_broker_when_consume_slowly if result.suggest_slave else group.broker_id
    fields = PullMessageResponse(
        suggest_which_broker_id=suggested,
        next_begin_offset=result.next_offset,
        min_offset=result.min_offset,
        max_offset=result.max_offset,
    )
    body = b"".join(result.records)
    reply = Reply(frame, response(frame.command, code, encode_header(fields), body, remark=result.status.name))
    if code is not ResponseCode.PULL_OFFSET_MOVED:
        return counted(header, result), reply
    return counted(header, result), PutNote(offset_moved_note(snapshot, header, result, now)), reply


def offset_moved_note(snapshot: Snapshot, header: PullMessageRequest, result: GetResult, now: Moment) -> MessageToStore:
    """A note that a consumer was somewhere else than its queue."""
    event = OffsetMovedEvent(
        consumer_group=header.consumer_group,
        message_queue=MessageQueue(header.topic, snapshot.config.broker_name, header.queue_id),
        offset_request=header.queue_offset,
        offset_new=result.next_offset,
    )
    properties = {"TAGS": header.consumer_group, "KEYS": header.consumer_group, "DELAY": "0"}
    return MessageToStore(
        topic=OFFSET_MOVED_EVENT_TOPIC,
        queue_id=0,
        body=encode_body(event),
        properties=join_properties(properties).encode(),
        born_timestamp_ms=now.wall_ms,
        born_host=snapshot.store_host,
        store_host=snapshot.store_host,
    )


# Checks --------------------------------------------------------------------------------------------------------------


def check_pull(snapshot: Snapshot, frame: Frame, header: PullMessageRequest) -> PullCheck:
    """Whether a pull may go ahead, in upstream's order of checks."""
    config = snapshot.config
    if not config.broker_permission & PERM_READ:
        return Refusal(ResponseCode.NO_PERMISSION, f"the broker[{config.broker_ip1}] pulling message is forbidden")
    name = header.consumer_group
    group = snapshot.groups.get(name)
    if group is None:
        remark = f"subscription group [{name}] does not exist, {FAQ}"
        return NeedsGroup(name, Refusal(ResponseCode.SUBSCRIPTION_GROUP_NOT_EXIST, remark))
    if not group.consume_enable:
        return Refusal(ResponseCode.NO_PERMISSION, f"subscription group no permission, {name}")
    topic = snapshot.topics.get(header.topic)
    if topic is None:
        remark = f"topic[{header.topic}] not exist, apply first please! {FAQ}"
        return Refusal(ResponseCode.TOPIC_NOT_EXIST, remark)
    if not topic.perm & PERM_READ:
        return Refusal(ResponseCode.NO_PERMISSION, f"the topic[{header.topic}] pulling message is forbidden")
    if not 0 <= header.queue_id < topic.read_queue_nums:
        remark = (
            f"queueId[{header.queue_id}] is illegal, topic:[{header.topic}] "
            f"topicConfig.readQueueNums:[{topic.read_queue_nums}] consumer:[/{frame.peer}]"
        )
        return Refusal(ResponseCode.SYSTEM_ERROR, remark)
    if header.sys_flag & PullSysFlag.SUBSCRIPTION:
        found = inline_filter(snapshot, header)
    else:
        found = registered_filter(snapshot, header, group)
    if isinstance(found, Refusal):
        return found
    if config.filter_support_retry and header.topic.startswith(RETRY_PREFIX):
        origin = OriginFilter(snapshot.filters, header.topic[len(RETRY_PREFIX) :])
        found = replace(found, expression=None, origin=origin, terms=snapshot.filters.terms_of_group(origin.group))
    return PullAllowed(group, found)


def no_property_filter(snapshot: Snapshot, expression_type: str) -> Refusal | None:
    if snapshot.config.enable_property_filter:
        return None
    remark = f"The broker does not support consumer to filter message by {expression_type}"
    return Refusal(ResponseCode.SYSTEM_ERROR, remark)


def inline_filter(snapshot: Snapshot, header: PullMessageRequest) -> MessageFilter | Refusal:
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
    refusal = no_property_filter(snapshot, header.expression_type)
    if refusal is not None:
        return refusal
    if header.expression_type != EXPRESSION_SQL92:
        return failed
    try:
        expression = compile_expression(header.subscription)
    except SqlSyntaxError:
        return failed
    return MessageFilter(expression=expression, terms=terms_and_depth(expression)[0])


def registered_filter(
    snapshot: Snapshot, header: PullMessageRequest, group: SubscriptionGroupConfig
) -> MessageFilter | Refusal:
    """The filter that the group's heartbeats registered."""
    consumer = snapshot.consumers.get(header.consumer_group)
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
    data = snapshot.filters.get(header.topic, header.consumer_group)
    if data is None:
        return Refusal(
            ResponseCode.FILTER_DATA_NOT_EXIST,
            "The broker's consumer filter data is not exist!Your expression may be wrong!",
        )
    if data.client_version < header.sub_version:
        return Refusal(ResponseCode.FILTER_DATA_NOT_LATEST, "the consumer's consumer filter data not latest")
    refusal = no_property_filter(snapshot, subscription.expression_type)
    return refusal if refusal is not None else sql_filter(snapshot, data)


def tag_filter(subscription: SubscriptionData) -> MessageFilter:
    """The codes are taken as the client sent them: rebuilding them is its business."""
    if subscription.class_filter_mode or subscription.sub_string == "*":
        return MatchAll
    return MessageFilter(tag_codes=frozenset(subscription.code_set))


def sql_filter(snapshot: Snapshot, data: FilterData) -> MessageFilter:
    test = None
    if snapshot.config.enable_calc_filter_bit_map:
        test = BitmapTest(data.bit_positions, snapshot.filters.bloom.bit_count, data.since)
    return MessageFilter(bitmap_test=test, expression=data.compiled, terms=data.terms)
