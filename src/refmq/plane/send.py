"""Sending: 10 SEND_MESSAGE, 310 SEND_MESSAGE_V2, 320 SEND_BATCH_MESSAGE.

A send is checked in upstream's order, and the first failure answers. Then the message is planned into the log and put
(`refmq.plane.puts`). Whether a request is a batch is said by its header, not by its code.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, TypeAlias

from refmq.model.broker_config import PERM_WRITE
from refmq.model.ids import TimestampMs
from refmq.model.step import Event, EventFields
from refmq.plane import answers
from refmq.plane.ack import Put
from refmq.plane.effects import CountRefusedSend, HandOver, Reply
from refmq.plane.inputs import Frame, Moment
from refmq.plane.needs import NeedsGroup, NeedsOwnTopic, NeedsTopic, Refusal, SendCreation
from refmq.plane.property_rules import delay_level, is_half, stored_properties, waits_for_flush
from refmq.plane.puts import append_message
from refmq.plane.snapshot import Snapshot
from refmq.plane.state import PlaneState, PlaneStep
from refmq.plane.topic_rules import describe, dlq_topic, name_mistake
from refmq.protocol import names
from refmq.protocol.bodies.config import SubscriptionGroupConfig, TopicConfig, TopicFilterType
from refmq.protocol.codes import ResponseCode
from refmq.protocol.headers.send import SendMessageRequest, decode_send_header
from refmq.protocol.host_address import host_of
from refmq.protocol.names import FAQ, NOT_FOR_CLIENTS, RETRY_PREFIX, TOPIC_LENGTH_MAX, TRANS_HALF_TOPIC
from refmq.protocol.record import SYS_FLAG_MULTI_TAGS, SYS_FLAG_TRANSACTION, join_properties, parse_properties
from refmq.protocol.versions import V3_4_9
from refmq.store.api import StoreReader
from refmq.store.values import AppendPlan, BatchToStore, MessageToStore, PutStatus

RANDOM_QUEUE_BOUND: Final = 99_999_999
"""Upstream draws below this and takes the remainder; kept, so that the distribution is the same."""


@dataclass(frozen=True, slots=True)
class SendAllowed:
    """A send that may go ahead, and where to."""

    topic: TopicConfig
    """The topic that was asked for."""
    target: str
    """Where the message goes: that topic, or the dead letters of a group that has retried it often enough."""
    queue_id: int


SendCheck: TypeAlias = SendAllowed | Refusal | NeedsTopic | NeedsOwnTopic | NeedsGroup


def serve_send(state: PlaneState, store: StoreReader, frame: Frame, now: Moment) -> PlaneStep:
    """Checks a send, plans its message and puts it."""
    header = decode_send_header(frame.command)
    # Enabled
    checked = check_send(state.snapshot, frame, header, now.wall_ms)
    if isinstance(checked, NeedsTopic | NeedsOwnTopic | NeedsGroup):
        return PlaneStep(state, (HandOver(frame, checked),))
    if isinstance(checked, Refusal):
        return PlaneStep(state, (Reply(frame, answers.not_sent(state.snapshot, frame.command, checked)),))
    # Next
    properties = parse_properties(header.properties or "")
    properties[names.CLUSTER] = state.snapshot.config.broker_cluster_name
    waits = waits_for_flush(properties)
    plan: AppendPlan | PutStatus
    also: tuple[EventFields, ...] = ()
    if header.batch:
        plan = store.plan_batch(sent_batch(state.snapshot, frame, header, checked, properties), now.wall_ms)
    else:
        message = sent_message(state.snapshot, frame, header, checked, properties)
        if is_half(properties):
            message = half_message(message, properties)
        plan = store.plan_message(message, now.wall_ms)
        if is_half(properties) and not isinstance(plan, PutStatus):
            also = (send_half_event(plan, checked, properties),)
    if isinstance(plan, PutStatus):
        refusal = answers.store_refusal(state.snapshot, store, plan)
        reply = Reply(frame, answers.not_sent(state.snapshot, frame.command, refusal))
        return PlaneStep(state, (CountRefusedSend(), reply))
    assert header.batch or plan.count == 1, "a message has one record"
    # Effects
    queue_id = header.queue_id if header.queue_id >= 0 else plan.queue_id
    return append_message(state, Put(plan, frame, queue_id, now.uptime_ms, also), now, waits=waits)


# Checks --------------------------------------------------------------------------------------------------------------


def check_send(snapshot: Snapshot, frame: Frame, header: SendMessageRequest, now_ms: TimestampMs) -> SendCheck:
    """Whether a send may go ahead, and where to; in upstream's order of checks."""
    topic = check_topic(snapshot, frame, header, now_ms)
    if not isinstance(topic, TopicConfig):
        return topic
    queue_id = choose_queue(frame, header, topic)
    if header.batch:
        if len(header.topic) > TOPIC_LENGTH_MAX:
            return Refusal(ResponseCode.MESSAGE_ILLEGAL, f"message topic length too long {len(header.topic)}")
        return SendAllowed(topic, header.topic, queue_id)
    if header.topic.startswith(RETRY_PREFIX):
        return check_retry(snapshot, frame, header, topic, queue_id)
    return check_half(snapshot, header, SendAllowed(topic, header.topic, queue_id))


def check_topic(
    snapshot: Snapshot, frame: Frame, header: SendMessageRequest, now_ms: TimestampMs
) -> TopicConfig | Refusal | NeedsTopic | NeedsGroup:
    """The topic of a send, if it may be sent to."""
    config = snapshot.config
    if now_ms < config.start_accept_send_request_time_stamp:
        return Refusal(ResponseCode.SYSTEM_ERROR, f"broker unable to service, until {snapshot.opens_at}")
    topic = snapshot.topics.get(header.topic)
    if not config.broker_permission & PERM_WRITE and topic is not None and topic.order:
        return Refusal(ResponseCode.NO_PERMISSION, f"the broker[{config.broker_ip1}] sending message is forbidden")
    mistake = name_mistake(header.topic)
    if mistake is not None:
        return Refusal(ResponseCode.SYSTEM_ERROR, mistake)
    if header.topic in NOT_FOR_CLIENTS:
        return Refusal(ResponseCode.NO_PERMISSION, f"Sending message to topic[{header.topic}] is forbidden.")
    if topic is None and header.topic.startswith(RETRY_PREFIX):
        needed = check_retry_group(snapshot, header.topic)
        if isinstance(needed, NeedsGroup):  # first, or the topic of a group that there cannot be would be made and stay
            return needed
    if topic is None:
        creation = SendCreation(
            header.topic, header.default_topic, header.default_topic_queue_nums, unit_mode=bool(header.unit_mode)
        )
        remark = f"topic[{header.topic}] not exist, apply first please!{FAQ}"
        return NeedsTopic(creation, Refusal(ResponseCode.TOPIC_NOT_EXIST, remark))
    if header.queue_id >= max(topic.write_queue_nums, topic.read_queue_nums):
        remark = f"request queueId[{header.queue_id}] is illegal, {describe(topic)} Producer: {frame.peer}"
        return Refusal(ResponseCode.SYSTEM_ERROR, remark)
    if header.queue_id < 0 and topic.write_queue_nums == 0:
        return Refusal(ResponseCode.SYSTEM_ERROR, f"topic[{header.topic}] has no queue to write to")
    return topic


def choose_queue(frame: Frame, header: SendMessageRequest, topic: TopicConfig) -> int:
    """The queue of a send: the one it names, or any."""
    if header.queue_id >= 0:
        return header.queue_id
    assert topic.write_queue_nums > 0, "a topic without queues was refused"
    return frame.draw % RANDOM_QUEUE_BOUND % topic.write_queue_nums


def check_retry(
    snapshot: Snapshot, frame: Frame, header: SendMessageRequest, topic: TopicConfig, queue_id: int
) -> SendCheck:
    """Where a message to a retry topic goes: there, or to the dead letters when it was retried often enough."""
    group = check_retry_group(snapshot, header.topic)
    if isinstance(group, NeedsGroup):
        return group
    retries_max = group.retry_max_times
    if frame.command.version >= V3_4_9 and header.max_reconsume_times is not None:
        retries_max = header.max_reconsume_times
    if (header.reconsume_times or 0) < retries_max:
        return check_half(snapshot, header, SendAllowed(topic, header.topic, queue_id))
    target = dlq_topic(header.topic[len(RETRY_PREFIX) :])
    if target not in snapshot.topics:
        return NeedsOwnTopic(target, 1, Refusal(ResponseCode.SYSTEM_ERROR, f"topic[{target}] not exist"))
    return check_half(snapshot, header, SendAllowed(topic, target, 0))


def check_retry_group(snapshot: Snapshot, topic: str) -> SubscriptionGroupConfig | NeedsGroup:
    """The group whose retry topic this is."""
    name = topic[len(RETRY_PREFIX) :]
    assert topic == RETRY_PREFIX + name
    remark = f"subscription group not exist, {name} {FAQ}"
    refusal = Refusal(ResponseCode.SUBSCRIPTION_GROUP_NOT_EXIST, remark)
    return snapshot.groups.get(name) or NeedsGroup(name, refusal)


def check_half(snapshot: Snapshot, header: SendMessageRequest, allowed: SendAllowed) -> SendAllowed | Refusal:
    """Whether a half message is welcome."""
    if snapshot.config.reject_transaction_message and is_half(parse_properties(header.properties or "")):
        ip = snapshot.config.broker_ip1
        return Refusal(ResponseCode.NO_PERMISSION, f"the broker[{ip}] sending transaction message is forbidden")
    return allowed


# Messages ------------------------------------------------------------------------------------------------------------


def with_tag_flag(sys_flag: int, topic: TopicConfig) -> int:
    return sys_flag | SYS_FLAG_MULTI_TAGS if topic.topic_filter_type is TopicFilterType.MULTI_TAG else sys_flag


def sent_message(
    snapshot: Snapshot, frame: Frame, header: SendMessageRequest, allowed: SendAllowed, properties: dict[str, str]
) -> MessageToStore:
    """The message of a send as it goes to the store."""
    assert allowed.queue_id >= 0, "the queue was chosen"
    if allowed.target != header.topic:
        properties.pop(names.DELAY_TIME_LEVEL, None)  # a dead letter is there at once; upstream delays it once more
    sys_flag = with_tag_flag(header.sys_flag, allowed.topic)
    level = delay_level(sys_flag, properties)
    return MessageToStore(
        topic=allowed.target,
        queue_id=allowed.queue_id,
        body=frame.command.body,
        properties=stored_properties(properties, level),
        born_timestamp_ms=TimestampMs(header.born_timestamp),
        born_host=host_of(frame.peer),
        store_host=snapshot.store_host,
        flag=header.flag,
        sys_flag=sys_flag,
        reconsume_times=header.reconsume_times or 0,
        delay_level=level,
    )


def sent_batch(
    snapshot: Snapshot, frame: Frame, header: SendMessageRequest, allowed: SendAllowed, properties: dict[str, str]
) -> BatchToStore:
    """The messages of a batch as they go to the store."""
    assert allowed.queue_id >= 0, "the queue was chosen"
    return BatchToStore(
        topic=allowed.target,
        queue_id=allowed.queue_id,
        messages=frame.command.body,
        properties=join_properties(properties).encode(),
        born_timestamp_ms=TimestampMs(header.born_timestamp),
        born_host=host_of(frame.peer),
        store_host=snapshot.store_host,
        sys_flag=with_tag_flag(header.sys_flag, allowed.topic),
        reconsume_times=header.reconsume_times or 0,
        delay_level=delay_level(header.sys_flag, properties),
    )


def half_message(message: MessageToStore, properties: dict[str, str]) -> MessageToStore:
    """SendHalf: the message out of sight in the half topic, with its real topic and queue in its properties.

    A delay level on it is dropped: upstream would move it to the delay topic and lose it there.
    """
    real = {names.REAL_TOPIC: message.topic, names.REAL_QUEUE_ID: str(message.queue_id)}
    assert is_half(properties), "no other message goes out of sight"
    assert message.topic != TRANS_HALF_TOPIC, "a send to the half topic itself was refused"
    kept = {name: value for name, value in properties.items() if name != names.DELAY_TIME_LEVEL}
    return message._replace(
        topic=TRANS_HALF_TOPIC,
        queue_id=0,
        sys_flag=message.sys_flag & ~SYS_FLAG_TRANSACTION,
        properties=join_properties({**kept, **real}).encode(),
        delay_level=0,
    )


def send_half_event(plan: AppendPlan, allowed: SendAllowed, properties: dict[str, str]) -> EventFields:
    assert plan.topic == TRANS_HALF_TOPIC, "a half message is out of sight"
    group = properties.get(names.PRODUCER_GROUP, "")
    (place,) = plan.places
    where = (place.physical_offset, place.queue_offset, place.fingerprint)
    return Event("SendHalf", group, allowed.target, allowed.queue_id, *where)
