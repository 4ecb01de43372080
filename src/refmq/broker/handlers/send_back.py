"""Sending back: 36 CONSUMER_SEND_MSG_BACK. A consumer that could not handle a message gets it again later.

The message goes to the group's retry topic after a delay that grows with each retry, and to its dead letters after
too many of them.
"""

from __future__ import annotations

from typing import Final

from refmq.acl.accounts import Permission
from refmq.broker.control_plane import Broker
from refmq.broker.handlers._registry import done, handles, refuse
from refmq.broker.message_copy import copy_of, put_copy
from refmq.broker.named_record import named_record
from refmq.broker.stats import Stat
from refmq.broker.topics import SYS_FLAG_UNIT_SUB
from refmq.model.broker_config import PERM_WRITE
from refmq.model.ids import PhysicalOffset
from refmq.plane.engine import Peer
from refmq.plane.topic_rules import dlq_topic, retry_topic
from refmq.protocol import names
from refmq.protocol.codes import RequestCode, ResponseCode
from refmq.protocol.command import RemotingCommand
from refmq.protocol.headers.codec import decode_header
from refmq.protocol.headers.messages import ConsumerSendMsgBackRequest
from refmq.protocol.names import FAQ
from refmq.protocol.record import Record, decode_properties
from refmq.protocol.versions import V3_4_9
from refmq.store.values import PutStatus

FIRST_RETRY_LEVEL: Final = 3
"""The delay level of the first retry (10 s by default); each further one takes the next level."""

RANDOM_QUEUE_BOUND: Final = 99_999_999


@handles(RequestCode.CONSUMER_SEND_MSG_BACK)
async def consumer_send_msg_back(broker: Broker, peer: Peer, command: RemotingCommand) -> RemotingCommand:
    """Stores a message again for its group, or among the dead letters."""
    header = decode_header(ConsumerSendMsgBackRequest, command)
    group = broker.group(header.group)
    if group is None:
        remark = f"subscription group not exist, {header.group} {FAQ}"
        return refuse(command, ResponseCode.SUBSCRIPTION_GROUP_NOT_EXIST, remark)
    if not broker.config.broker_permission & PERM_WRITE:
        remark = f"the broker[{broker.config.broker_ip1}] sending message is forbidden"
        return refuse(command, ResponseCode.NO_PERMISSION, remark)
    if group.retry_queue_nums <= 0:
        return done(command)  # the group wants no retries: the message is dropped, as upstream does
    topic = retry_topic(header.group)
    sys_flag = SYS_FLAG_UNIT_SUB if header.unit_mode else 0
    if not await broker.ensure_topic(topic, group.retry_queue_nums, sys_flag):
        return refuse(command, ResponseCode.SYSTEM_ERROR, f"topic[{topic}] not exist")
    if not broker.state.topics.topics[topic].perm & PERM_WRITE:
        return refuse(command, ResponseCode.NO_PERMISSION, f"the topic[{topic}] sending message is forbidden")
    found = named_record(broker.engine.store, PhysicalOffset(header.offset))
    if found is None:
        return refuse(command, ResponseCode.SYSTEM_ERROR, f"look message by offset failed, {header.offset}")
    record, _ = found
    denied = broker.refusal_of_use(command, peer, record.topic, Permission.SUB)
    if denied is not None:
        return refuse(command, ResponseCode.SYSTEM_ERROR, denied)
    retries_max = group.retry_max_times
    if command.version >= V3_4_9 and header.max_reconsume_times is not None:
        retries_max = header.max_reconsume_times
    queue_id = broker.environment.random_below(RANDOM_QUEUE_BOUND) % group.retry_queue_nums
    level = header.delay_level or FIRST_RETRY_LEVEL + record.reconsume_times
    if record.reconsume_times >= retries_max or header.delay_level < 0:
        topic, queue_id, level = dlq_topic(header.group), 0, 0
        if not await broker.ensure_topic(topic, 1):
            return refuse(command, ResponseCode.SYSTEM_ERROR, f"topic[{topic}] not exist")
    return await _store(broker, command, header.group, record, topic, queue_id, level)


async def _store(
    broker: Broker,
    command: RemotingCommand,
    group: str,
    record: Record,
    topic: str,
    queue_id: int,
    level: int,
) -> RemotingCommand:
    properties = decode_properties(record.properties)
    properties.setdefault(names.RETRY_TOPIC, record.topic)
    if not properties.get(names.ORIGIN_MESSAGE_ID, "").strip():
        properties[names.ORIGIN_MESSAGE_ID] = record.message_id
    properties[names.WAIT_STORE_MSG_OK] = "false"
    properties[names.DELAY_TIME_LEVEL] = str(level)
    message = copy_of(record)._replace(topic=topic, queue_id=queue_id, reconsume_times=record.reconsume_times + 1)
    result = await put_copy(broker.engine, message, properties)
    if result.status is not PutStatus.PUT_OK:
        return refuse(command, ResponseCode.SYSTEM_ERROR, result.status.name)
    broker.stats.add(Stat.SNDBCK_PUT_NUMS, f"{properties[names.RETRY_TOPIC]}@{group}")
    return done(command)
