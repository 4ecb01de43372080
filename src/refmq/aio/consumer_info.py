"""What brokers and operators ask a consumer: how far it is, what it holds, to go elsewhere, to consume one message."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Final

from refmq.aio.member import GroupMember
from refmq.client.message import ReceivedMessage, Verdict, received_message
from refmq.client.process_queue import first_cached
from refmq.errors import RefmqError, WireError
from refmq.model.ids import MessageQueue
from refmq.net.connection import Answer, Connection
from refmq.protocol.bodies.codec import decode_body, encode_body
from refmq.protocol.bodies.connections import (
    ConsumeMessageDirectlyResult,
    ConsumeResult,
    ConsumerRunningInfo,
    ProcessQueueInfo,
)
from refmq.protocol.bodies.offsets import GetConsumerStatusBody, ResetOffsetBody
from refmq.protocol.codes import RequestCode, ResponseCode
from refmq.protocol.command import RemotingCommand, response
from refmq.protocol.headers.clients import (
    ConsumeMessageDirectlyRequest,
    GetConsumerRunningInfoRequest,
    GetConsumerStatusRequest,
    ResetOffsetRequest,
)
from refmq.protocol.headers.codec import decode_header
from refmq.protocol.record import decode_record
from refmq.protocol.versions import V4_9_8, version_name

BODY_MAX: Final = 1 << 20

log = logging.getLogger("refmq.client")


class ConsumerQuestions:
    """Answers requests 220, 221, 307 and 309."""

    def __init__(self, member: GroupMember, consume: Callable[[ReceivedMessage], Awaitable[Verdict | None]]) -> None:
        self._member = member
        self._consume = consume
        self._started_ms = 0
        handlers = member.instance.handlers
        handlers[RequestCode.RESET_CONSUMER_CLIENT_OFFSET] = self._reset
        handlers[RequestCode.GET_CONSUMER_STATUS_FROM_CLIENT] = self._status
        handlers[RequestCode.GET_CONSUMER_RUNNING_INFO] = self._running_info
        handlers[RequestCode.CONSUME_MESSAGE_DIRECTLY] = self._directly

    def _reset(self, connection: Connection, command: RemotingCommand) -> Answer:
        """Goes where an operator says, at once: what was pulled is forgotten, and late answers do not count, so there
        is no time in which an old offset could come back (W-20, W-21)."""
        header = decode_header(ResetOffsetRequest, command)
        if header.group == self._member.group:
            table = decode_body(ResetOffsetBody, command.body, bytes_max=BODY_MAX).offset_table
            self._member.instance.spawn(self._seek_all(header.topic, dict(table)), "reset of offsets")
        return None

    async def _seek_all(self, topic: str, table: dict[MessageQueue, int]) -> None:
        for queue, offset in sorted(table.items()):
            if queue.topic == topic and queue in self._member.state.held:
                try:
                    await self._member.seek(queue, offset)
                except RefmqError as error:
                    log.warning("the offset of %s was not reset: %s", queue, error)

    def _status(self, connection: Connection, command: RemotingCommand) -> Answer:
        header = decode_header(GetConsumerStatusRequest, command)
        offsets = {
            queue: held.memory
            for queue, held in self._member.state.held.items()
            if queue.topic == header.topic and held.memory is not None
        }
        return response(
            command, ResponseCode.SUCCESS, None, encode_body(GetConsumerStatusBody(message_queue_table=offsets))
        )

    def _running_info(self, connection: Connection, command: RemotingCommand) -> Answer:
        header = decode_header(GetConsumerRunningInfoRequest, command)
        member = self._member
        if header.consumer_group != member.group:
            remark = f"The Consumer Group <{header.consumer_group}> not exist in this consumer"
            return response(command, ResponseCode.SYSTEM_ERROR, remark=remark)
        table = {}
        for queue, held in member.state.held.items():
            first = first_cached(held)
            table[queue] = ProcessQueueInfo(
                commit_offset=-1 if held.memory is None else held.memory,
                cached_msg_min_offset=0 if first is None else first,
                cached_msg_max_offset=0 if first is None else held.next_offset - 1,
                cached_msg_count=len(held.cached),
                cached_msg_size_in_mib=held.size_bytes >> 20,
                transaction_msg_count=len(held.running),
                locked=queue in member.state.trust,
                droped=held.dropped,
            )
        info = ConsumerRunningInfo(
            properties={
                "PROP_NAMESERVER_ADDR": "".join(f"{address};" for address in member.instance.name_servers),
                "PROP_CONSUME_TYPE": member.settings.consume_type.name,
                "PROP_CONSUMEORDERLY": "true" if member.settings.orderly else "false",
                "PROP_THREADPOOL_CORE_SIZE": "1",
                "PROP_CONSUMER_START_TIMESTAMP": str(self._started_ms),
                "PROP_CLIENT_VERSION": version_name(V4_9_8),
            },
            subscription_set=tuple(member.subscriptions.values()),
            mq_table=table,
            jstack="" if header.jstack_enable else None,
        )
        return response(command, ResponseCode.SUCCESS, None, encode_body(info))

    async def _directly(self, connection: Connection, command: RemotingCommand) -> Answer:
        header = decode_header(ConsumeMessageDirectlyRequest, command)
        member = self._member
        record = decode_record(command.body, error=WireError)
        message = received_message(record, header.broker_name or "", namespace=member.namespace, group=member.group)
        loop = asyncio.get_running_loop()
        began = loop.time()
        verdict = await self._consume(message) if header.consumer_group == member.group else None
        if verdict is None:
            remark = f"The Consumer Group <{header.consumer_group}> has no listener in this consumer"
            return response(command, ResponseCode.SYSTEM_ERROR, remark=remark)
        result = ConsumeMessageDirectlyResult(
            order=member.settings.orderly,
            auto_commit=True,
            consume_result=ConsumeResult.CR_SUCCESS if verdict.success else ConsumeResult.CR_THROW_EXCEPTION,
            remark=verdict.reason or None,
            spent_time_mills=int((loop.time() - began) * 1000),
        )
        return response(command, ResponseCode.SUCCESS, None, encode_body(result))
