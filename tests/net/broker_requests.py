"""Requests as clients send them, for tests that talk to a broker over a socket."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from refmq.net.client import Client
from refmq.protocol.bodies.codec import encode_body
from refmq.protocol.bodies.config import SubscriptionGroupConfig
from refmq.protocol.bodies.heartbeat import HeartbeatData, ProducerData
from refmq.protocol.codes import RequestCode
from refmq.protocol.command import RemotingCommand, request
from refmq.protocol.headers.admin import CreateTopicRequest
from refmq.protocol.headers.codec import encode_header
from refmq.protocol.headers.offsets import (
    GetMaxOffsetRequest,
    QueryConsumerOffsetRequest,
    UpdateConsumerOffsetRequest,
)
from refmq.protocol.headers.pull import PullMessageRequest, PullSysFlag
from refmq.protocol.headers.send import SendMessageRequest, encode_send_header
from refmq.protocol.record import Record, decode_records, join_properties

TIMEOUT_S = 30.0
"""A busy machine is slow; a request that takes longer is lost."""


def send_request(
    topic: str, body: bytes, *, queue: int = 0, properties: Mapping[str, str] | None = None, **changes: Any
) -> RemotingCommand:
    """310 SEND_MESSAGE_V2."""
    fields: dict[str, Any] = {
        "producer_group": "producers", "topic": topic, "default_topic": "TBW102", "default_topic_queue_nums": 4,
        "queue_id": queue, "sys_flag": 0, "born_timestamp": 0, "flag": 0,
        "properties": join_properties(properties or {}),
    }  # fmt: skip
    return request(RequestCode.SEND_MESSAGE_V2, encode_send_header(SendMessageRequest(**(fields | changes))), body)


def pull_request(topic: str, *, queue: int = 0, offset: int = 0, **changes: Any) -> RemotingCommand:
    """11 PULL_MESSAGE of everything, with the subscription inside."""
    fields: dict[str, Any] = {
        "consumer_group": "g", "topic": topic, "queue_id": queue, "queue_offset": offset, "max_msg_nums": 32,
        "sys_flag": PullSysFlag.SUBSCRIPTION, "commit_offset": 0, "suspend_timeout_millis": 0, "subscription": "*",
        "sub_version": 0, "expression_type": "TAG",
    }  # fmt: skip
    return request(RequestCode.PULL_MESSAGE, encode_header(PullMessageRequest(**(fields | changes))))


def commit_request(topic: str, queue: int, offset: int) -> RemotingCommand:
    header = UpdateConsumerOffsetRequest(consumer_group="g", topic=topic, queue_id=queue, commit_offset=offset)
    return request(RequestCode.UPDATE_CONSUMER_OFFSET, encode_header(header))


def create_topic_request(topic: str, queues: int) -> RemotingCommand:
    header = CreateTopicRequest(
        topic=topic, default_topic="TBW102", read_queue_nums=queues, write_queue_nums=queues, perm=6,
        topic_filter_type="SINGLE_TAG",
    )  # fmt: skip
    return request(RequestCode.UPDATE_AND_CREATE_TOPIC, encode_header(header))


def create_group_request(group: str, retries: int) -> RemotingCommand:
    body = encode_body(SubscriptionGroupConfig(group_name=group, retry_max_times=retries))
    return request(RequestCode.UPDATE_AND_CREATE_SUBSCRIPTIONGROUP, body=body)


def producer_heartbeat(group: str) -> RemotingCommand:
    data = HeartbeatData(client_id="producer", producer_data_set=(ProducerData(group_name=group),))
    return request(RequestCode.HEART_BEAT, body=encode_body(data))


async def stored_offset(client: Client, address: str, topic: str, queue: int) -> int:
    header = QueryConsumerOffsetRequest(consumer_group="g", topic=topic, queue_id=queue)
    answer = await client.invoke(address, request(RequestCode.QUERY_CONSUMER_OFFSET, encode_header(header)), TIMEOUT_S)
    return int(answer.fields["offset"])


async def max_offset(client: Client, address: str, topic: str, queue: int) -> int:
    header = GetMaxOffsetRequest(topic=topic, queue_id=queue)
    answer = await client.invoke(address, request(RequestCode.GET_MAX_OFFSET, encode_header(header)), TIMEOUT_S)
    return int(answer.fields["offset"])


async def read_queue(client: Client, address: str, topic: str, queue: int = 0, start: int = 0) -> list[Record]:
    """Everything in a queue from an offset on."""
    found: list[Record] = []
    while True:
        command = pull_request(topic, queue=queue, offset=start + len(found))
        records = list(decode_records((await client.invoke(address, command, TIMEOUT_S)).body))
        if not records:
            return found
        found.extend(records)
