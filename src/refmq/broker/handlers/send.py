"""Sending: 10 SEND_MESSAGE, 310 SEND_MESSAGE_V2, 320 SEND_BATCH_MESSAGE.

Checks in upstream's order, the first failure answers; then the message goes to the store, and the producer is told
when the flush mode allows it. Whether a request is a batch is said by its header, not by its code.
"""

from __future__ import annotations

from typing import Any, Final

from refmq.broker.broker import Broker
from refmq.broker.config import PERM_WRITE
from refmq.broker.handlers._registry import FAQ, handles, refuse
from refmq.broker.hosts import host_of
from refmq.broker.live_properties import delay_level, waits_for_flush
from refmq.broker.put import send_half, sent_properties
from refmq.broker.topics import SendCreation, describe, dlq_topic, name_mistake
from refmq.broker.world import Peer
from refmq.model.ids import TimestampMs
from refmq.protocol import names
from refmq.protocol.bodies.config import TopicConfig, TopicFilterType
from refmq.protocol.codes import RequestCode, ResponseCode
from refmq.protocol.command import RemotingCommand, response
from refmq.protocol.headers.codec import encode_header
from refmq.protocol.headers.send import SendMessageRequest, SendMessageResponse, decode_send_header
from refmq.protocol.names import NOT_FOR_CLIENTS, RETRY_PREFIX, TOPIC_LENGTH_MAX
from refmq.protocol.record import SYS_FLAG_MULTI_TAGS, join_properties, parse_properties
from refmq.protocol.versions import V3_4_9
from refmq.store.values import BatchToStore, MessageToStore, PutResult, PutStatus

RANDOM_QUEUE_BOUND: Final = 99_999_999
"""Upstream draws below this and takes the remainder; kept, so that the distribution is the same."""

STORED_CODES: Final = {
    PutStatus.PUT_OK: ResponseCode.SUCCESS,
    PutStatus.FLUSH_DISK_TIMEOUT: ResponseCode.FLUSH_DISK_TIMEOUT,
    PutStatus.FLUSH_SLAVE_TIMEOUT: ResponseCode.FLUSH_SLAVE_TIMEOUT,
    PutStatus.SLAVE_NOT_AVAILABLE: ResponseCode.SLAVE_NOT_AVAILABLE,
}
"""The message is in the log: these answers carry its place."""


class Refused(Exception):
    """A check failed. Carries the answer."""

    def __init__(self, code: ResponseCode, remark: str) -> None:
        super().__init__(code, remark)
        self.code = code
        self.remark = remark


@handles(RequestCode.SEND_MESSAGE, RequestCode.SEND_MESSAGE_V2, RequestCode.SEND_BATCH_MESSAGE)
async def send_message(broker: Broker, peer: Peer, command: RemotingCommand) -> RemotingCommand:
    """Stores one message or a batch."""
    header = decode_send_header(command)
    try:
        topic = await check_send(broker, peer, header)
        if header.batch:
            result = await _put_batch(broker, peer, command, header, topic)
        else:
            result = await _put_single(broker, peer, command, header, topic)
    except Refused as refused:
        return refuse(command, refused.code, refused.remark, encode_header(answer_header(broker)))
    return _answer(broker, command, _queue_of(header, result), result)


def answer_header(broker: Broker, **place: Any) -> SendMessageResponse:
    """What every answer to a send says, and with `place` where the message is."""
    config = broker.config
    return SendMessageResponse(region=config.region_id, trace_on="true" if config.trace_on else "false", **place)


def _queue_of(header: SendMessageRequest, result: PutResult) -> int:
    """The queue that the answer names: the requested one, even when the message went to a delay queue."""
    return header.queue_id if header.queue_id >= 0 else result.queue_id


def _answer(broker: Broker, command: RemotingCommand, queue_id: int, result: PutResult) -> RemotingCommand:
    code = STORED_CODES.get(result.status)
    if code is None:
        broker.stats.put_failed_total += 1
        refusal = store_refusal(broker, result.status)
        return refuse(command, refusal.code, refusal.remark, encode_header(answer_header(broker)))
    broker.stats.count_put(broker.config.broker_cluster_name, result.topic, result.count, result.size_bytes)
    header = answer_header(broker, msg_id=result.message_id, queue_id=queue_id, queue_offset=result.queue_offset)
    return response(command, code, encode_header(header))


def store_refusal(broker: Broker, status: PutStatus) -> Refused:
    """What a producer is told when the store did not take its message."""
    match status:
        case PutStatus.CREATE_MAPEDFILE_FAILED:
            return Refused(ResponseCode.SYSTEM_ERROR, "create mapped file failed, server is busy or broken.")
        case PutStatus.MESSAGE_ILLEGAL | PutStatus.PROPERTIES_SIZE_EXCEEDED:
            limit = broker.store_config.message_bytes_max
            return Refused(
                ResponseCode.MESSAGE_ILLEGAL,
                "the message is illegal, maybe msg body or properties length not matched. "
                f"msg body length limit {limit}B, msg properties length limit 32KB.",
            )
        case PutStatus.SERVICE_NOT_AVAILABLE:
            ratio = broker.world.disk_used_ratio()
            return Refused(
                ResponseCode.SERVICE_NOT_AVAILABLE,
                "service not available now. It may be caused by one of the following reasons: the broker's disk is "
                f"full [CL: {ratio:5.2f} CQ: {ratio:5.2f} INDEX: {ratio:5.2f}], messages are put to the slave, "
                "message store has been shut down, etc.",
            )
        case PutStatus.OS_PAGECACHE_BUSY:
            return Refused(ResponseCode.SYSTEM_ERROR, "[PC_SYNCHRONIZED]broker busy, start flow control for a while")
        case _:
            return Refused(ResponseCode.SYSTEM_ERROR, "UNKNOWN_ERROR")


async def check_send(broker: Broker, peer: Peer, header: SendMessageRequest) -> TopicConfig:
    """The topic of a send that may go ahead; `Refused` otherwise."""
    config = broker.config
    now_ms = broker.world.now_ms()
    if now_ms < config.start_accept_send_request_time_stamp:
        until = broker.world.local_time(TimestampMs(config.start_accept_send_request_time_stamp))
        raise Refused(ResponseCode.SYSTEM_ERROR, f"broker unable to service, until {until}")
    known = broker.state.topics.get(header.topic)
    if not config.broker_permission & PERM_WRITE and known is not None and known.order:
        raise Refused(ResponseCode.NO_PERMISSION, f"the broker[{config.broker_ip1}] sending message is forbidden")
    mistake = name_mistake(header.topic)
    if mistake is not None:
        raise Refused(ResponseCode.SYSTEM_ERROR, mistake)
    if header.topic in NOT_FOR_CLIENTS:
        raise Refused(ResponseCode.NO_PERMISSION, f"Sending message to topic[{header.topic}] is forbidden.")
    topic = known or await _create(broker, header)
    await broker.topics_saved()
    if header.queue_id >= max(topic.write_queue_nums, topic.read_queue_nums):
        raise Refused(
            ResponseCode.SYSTEM_ERROR,
            f"request queueId[{header.queue_id}] is illegal, {describe(topic)} Producer: {peer.peer}",
        )
    if header.queue_id < 0 and topic.write_queue_nums == 0:
        raise Refused(ResponseCode.SYSTEM_ERROR, f"topic[{header.topic}] has no queue to write to")
    return topic


async def _create(broker: Broker, header: SendMessageRequest) -> TopicConfig:
    creation = SendCreation(
        header.topic, header.default_topic, header.default_topic_queue_nums, unit_mode=bool(header.unit_mode)
    )
    created = await broker.create_topic_on_send(creation)
    topic = broker.state.topics.get(header.topic) if created else None
    if topic is None:
        raise Refused(ResponseCode.TOPIC_NOT_EXIST, f"topic[{header.topic}] not exist, apply first please!{FAQ}")
    return topic


def choose_queue(broker: Broker, header: SendMessageRequest, topic: TopicConfig) -> int:
    if header.queue_id >= 0:
        return header.queue_id
    return broker.world.random_below(RANDOM_QUEUE_BOUND) % topic.write_queue_nums


async def _put_single(
    broker: Broker, peer: Peer, command: RemotingCommand, header: SendMessageRequest, topic: TopicConfig
) -> PutResult:
    name, queue_id = header.topic, choose_queue(broker, header, topic)
    if name.startswith(RETRY_PREFIX):
        name, queue_id = await _or_dead_letter(broker, command, header, queue_id)
    properties = parse_properties(header.properties or "")
    if name != header.topic:
        properties.pop(names.DELAY_TIME_LEVEL, None)  # a dead letter is there at once; upstream delays it once more
    properties[names.CLUSTER] = broker.config.broker_cluster_name
    is_transactional = properties.get(names.TRANSACTION_PREPARED, "").lower() == "true"
    if is_transactional and broker.config.reject_transaction_message:
        ip = broker.config.broker_ip1
        raise Refused(ResponseCode.NO_PERMISSION, f"the broker[{ip}] sending transaction message is forbidden")
    place = (name, queue_id)
    message = sent_message(broker, peer, command, header, place, with_tag_flag(header.sys_flag, topic), properties)
    if is_transactional:
        return await send_half(broker, message, properties)
    return await broker.engine.put(message, wait_durable=waits_for_flush(properties))


def sent_message(
    broker: Broker,
    peer: Peer,
    command: RemotingCommand,
    header: SendMessageRequest,
    place: tuple[str, int],
    sys_flag: int,
    properties: dict[str, str],
) -> MessageToStore:
    """The message of a send as it goes to the store, for a topic and a queue."""
    topic, queue_id = place
    level = delay_level(sys_flag, properties)
    return MessageToStore(
        topic=topic,
        queue_id=queue_id,
        body=command.body,
        properties=sent_properties(properties, level),
        born_timestamp_ms=TimestampMs(header.born_timestamp),
        born_host=host_of(peer.peer),
        store_host=broker.store_host,
        flag=header.flag,
        sys_flag=sys_flag,
        reconsume_times=header.reconsume_times or 0,
        delay_level=level,
    )


async def _or_dead_letter(
    broker: Broker, command: RemotingCommand, header: SendMessageRequest, queue_id: int
) -> tuple[str, int]:
    """Where a message to a retry topic goes: there, or to the dead letters when it was retried often enough."""
    group_name = header.topic[len(RETRY_PREFIX) :]
    group = broker.group(group_name)
    if group is None:
        raise Refused(ResponseCode.SUBSCRIPTION_GROUP_NOT_EXIST, f"subscription group not exist, {group_name} {FAQ}")
    retries_max = group.retry_max_times
    if command.version >= V3_4_9 and header.max_reconsume_times is not None:
        retries_max = header.max_reconsume_times
    if (header.reconsume_times or 0) < retries_max:
        return header.topic, queue_id
    target = dlq_topic(group_name)
    if not await broker.ensure_topic(target, 1):
        raise Refused(ResponseCode.SYSTEM_ERROR, f"topic[{target}] not exist")
    return target, 0


def with_tag_flag(sys_flag: int, topic: TopicConfig) -> int:
    return sys_flag | SYS_FLAG_MULTI_TAGS if topic.topic_filter_type is TopicFilterType.MULTI_TAG else sys_flag


async def _put_batch(
    broker: Broker, peer: Peer, command: RemotingCommand, header: SendMessageRequest, topic: TopicConfig
) -> PutResult:
    if len(header.topic) > TOPIC_LENGTH_MAX:
        raise Refused(ResponseCode.MESSAGE_ILLEGAL, f"message topic length too long {len(header.topic)}")
    properties = parse_properties(header.properties or "")
    properties[names.CLUSTER] = broker.config.broker_cluster_name
    batch = BatchToStore(
        topic=header.topic,
        queue_id=choose_queue(broker, header, topic),
        messages=command.body,
        properties=join_properties(properties).encode(),
        born_timestamp_ms=TimestampMs(header.born_timestamp),
        born_host=host_of(peer.peer),
        store_host=broker.store_host,
        sys_flag=with_tag_flag(header.sys_flag, topic),
        reconsume_times=header.reconsume_times or 0,
        delay_level=delay_level(header.sys_flag, properties),
    )
    return await broker.engine.put_batch(batch, wait_durable=waits_for_flush(properties))
