"""One attempt to send: the request that carries a message, and what its answer means.

`plan_send` decides what does not change between attempts (properties, compression), `send_request` makes the request
for one queue, `sent` reads the answer. Nothing here touches the message that the application gave.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

from refmq.client.message import BODY_BYTES_MAX, Message, SendResult, SendStatus, message_properties
from refmq.errors import InvalidMessage, WireError
from refmq.model.ids import MessageQueue
from refmq.protocol import names
from refmq.protocol.codes import RequestCode, ResponseCode
from refmq.protocol.command import ONEWAY_FLAG, LanguageCode, RemotingCommand, SerializeType
from refmq.protocol.compression import COMPRESS_OVER_BYTES, COMPRESSION_LEVEL, CompressionType, compress
from refmq.protocol.record import (
    TRANSACTION_PREPARED,
    BatchedMessage,
    encode_batch,
    encode_properties,
    join_properties,
)
from refmq.protocol.versions import V4_9_8

STATUSES: Final[dict[int, SendStatus]] = {
    ResponseCode.SUCCESS: SendStatus.SEND_OK,
    ResponseCode.FLUSH_DISK_TIMEOUT: SendStatus.FLUSH_DISK_TIMEOUT,
    ResponseCode.FLUSH_SLAVE_TIMEOUT: SendStatus.FLUSH_SLAVE_TIMEOUT,
    ResponseCode.SLAVE_NOT_AVAILABLE: SendStatus.SLAVE_NOT_AVAILABLE,
}
"""The answers after which the message is stored."""

MESSAGE_TYPE_REPLY: Final = "reply"


@dataclass(frozen=True, slots=True)
class SendSettings:
    """What a producer decides for all its messages."""

    group: str
    namespace: str | None = None
    body_bytes_max: int = BODY_BYTES_MAX
    compress_over_bytes: int = COMPRESS_OVER_BYTES
    compression: CompressionType = CompressionType.ZLIB
    compression_level: int = COMPRESSION_LEVEL
    default_topic: str = names.AUTO_CREATE_TOPIC
    default_topic_queues: int = 4
    unit_mode: bool = False


class SendPlan(NamedTuple):
    """A message made ready: the same for every attempt. (A tuple, because every message that is sent makes one.)"""

    code: RequestCode
    topic: str
    """With its namespace."""
    body: bytes
    properties: str
    sys_flag: int
    flag: int
    msg_id: str
    batch: bool = False
    reconsume_times: int = 0
    max_reconsume_times: int | None = None
    message_type: int = 0
    """For traces: 0 normal, 1 half, 3 delayed."""


def plan_send(settings: SendSettings, message: Message, msg_id: str, extra: dict[str, str] | None = None) -> SendPlan:
    """``message`` made ready. ``extra`` are properties that applications may not set: those of requests, replies,
    retries and transactions."""
    properties = message_properties(message)
    if extra:
        properties.update(extra)
    properties.setdefault(names.UNIQ_KEY, msg_id)
    if settings.namespace:
        properties[names.INSTANCE_ID] = settings.namespace
    is_half = properties.get(names.TRANSACTION_PREPARED) == "true"
    if is_half:
        properties.pop(names.DELAY_TIME_LEVEL, None)  # a half message is not delayed, its commit is
    sys_flag = TRANSACTION_PREPARED if is_half else 0
    body = message.body
    if len(body) >= settings.compress_over_bytes:
        body, sys_flag = compress(body, sys_flag, settings.compression, level=settings.compression_level)
    is_reply = properties.get(names.MESSAGE_TYPE) == MESSAGE_TYPE_REPLY
    topic = names.with_namespace(message.topic, settings.namespace)
    times, times_max = None, None
    if topic.startswith(names.RETRY_PREFIX):
        times, times_max = properties.get(names.RECONSUME_TIME), properties.get(names.MAX_RECONSUME_TIMES)
    is_delayed = names.DELAY_TIME_LEVEL in properties
    return SendPlan(
        code=RequestCode.SEND_REPLY_MESSAGE_V2 if is_reply else RequestCode.SEND_MESSAGE_V2,
        topic=topic,
        body=body,
        properties=join_properties(properties),
        sys_flag=sys_flag,
        flag=message.flag,
        msg_id=properties[names.UNIQ_KEY],
        reconsume_times=int(times) if times else 0,
        max_reconsume_times=int(times_max) if times_max else None,
        message_type=1 if is_half else 3 if is_delayed else 0,
    )


def plan_batch(settings: SendSettings, messages: Sequence[Message], msg_ids: Sequence[str]) -> SendPlan:
    """Several messages as one request to one queue. ``InvalidMessage`` when they do not go together."""
    if not messages:
        raise InvalidMessage("A batch has at least one message.")
    first = messages[0]
    parts = []
    for message, msg_id in zip(messages, msg_ids, strict=True):
        if message.topic != first.topic or message.wait_stored != first.wait_stored:
            raise InvalidMessage("All messages of a batch must have one topic and the same wait_stored.")
        if message.delay_level or message.topic.startswith(names.RETRY_PREFIX):
            raise InvalidMessage("Delayed messages and retries cannot be sent in a batch.")
        properties = {**message_properties(message), names.UNIQ_KEY: msg_id}
        if settings.namespace:
            properties[names.INSTANCE_ID] = settings.namespace
        parts.append(BatchedMessage(message.flag, message.body, encode_properties(properties)))
    body = encode_batch(tuple(parts))
    if len(body) > settings.body_bytes_max:
        raise InvalidMessage(f"The batch has {len(body)} bytes; at most {settings.body_bytes_max} are allowed.")
    shared = {names.WAIT_STORE_MSG_OK: "true" if first.wait_stored else "false"}
    if settings.namespace:
        shared[names.INSTANCE_ID] = settings.namespace
    return SendPlan(
        code=RequestCode.SEND_BATCH_MESSAGE,
        topic=names.with_namespace(first.topic, settings.namespace),
        body=body,
        properties=join_properties(shared),
        sys_flag=0,
        flag=0,
        msg_id=",".join(msg_ids),
        batch=True,
    )


def send_request(
    settings: SendSettings,
    plan: SendPlan,
    queue: MessageQueue,
    now_ms: int,
    *,
    is_oneway: bool = False,
    new: Callable[..., RemotingCommand] = RemotingCommand,
) -> RemotingCommand:
    """The request that sends a plan to one queue. ``new`` makes it: the class, or what does so more quickly."""
    # The letters of `refmq.protocol.headers.send`, written out: every message takes this way.
    fields = {
        "a": settings.group,
        "b": plan.topic,
        "c": settings.default_topic,
        "d": f"{settings.default_topic_queues}",
        "e": f"{queue.queue_id}",  # quicker than `str`
        "f": f"{plan.sys_flag}",
        "g": f"{now_ms}",
        "h": f"{plan.flag}",
        "i": plan.properties,
        "j": f"{plan.reconsume_times}",
        "k": "true" if settings.unit_mode else "false",
    }
    if plan.max_reconsume_times is not None:
        fields["l"] = str(plan.max_reconsume_times)
    fields["m"] = "true" if plan.batch else "false"
    fields["n"] = queue.broker
    flag = ONEWAY_FLAG if is_oneway else 0
    return new(plan.code, 0, flag, LanguageCode.PYTHON, V4_9_8, None, fields, plan.body, SerializeType.JSON, b"")


def sent(
    answer: RemotingCommand,
    plan: SendPlan,
    queue: MessageQueue,
    namespace: str | None,
    *,
    new: Callable[..., SendResult] = SendResult,
) -> SendResult | None:
    """What an answer says when the message is stored, else None. ``WireError`` when the answer makes no sense. ``new``
    makes the result: the class, or what does so more quickly."""
    status = STATUSES.get(answer.code)
    if status is None:
        return None
    # The fields of `SendMessageResponse`, read by hand: every message takes this way.
    fields = answer.ext_fields or {}
    try:
        offset_msg_id, queue_id, queue_offset = fields["msgId"], int(fields["queueId"]), int(fields["queueOffset"])
    except (KeyError, ValueError):
        expected = "msgId, and queueId and queueOffset as numbers"
        raise WireError("extFields", 0, expected, repr(dict(fields))[:80]) from None
    topic = plan.topic if namespace is None else names.without_namespace(plan.topic, namespace)
    if queue_id != queue.queue_id or topic != queue.topic:
        queue = MessageQueue(topic, queue.broker, queue_id)
    return new(
        status,
        plan.msg_id,
        offset_msg_id,
        queue,
        queue_offset,
        fields.get("transactionId", ""),
        fields.get(names.MSG_REGION, "DefaultRegion"),
        fields.get(names.TRACE_SWITCH) != "false",
    )
