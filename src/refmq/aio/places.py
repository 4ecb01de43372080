"""Where a queue begins and ends, and where it was at a time: what a consumer asks the master of a queue."""

from __future__ import annotations

from typing import Final

from refmq.aio.instance import Instance
from refmq.client.route import master_of
from refmq.errors import ConnectFailed
from refmq.model.ids import MessageQueue
from refmq.protocol.codes import RequestCode
from refmq.protocol.command import RemotingCommand
from refmq.protocol.headers.codec import decode_header
from refmq.protocol.headers.offsets import (
    GetMaxOffsetRequest,
    GetMaxOffsetResponse,
    GetMinOffsetRequest,
    GetMinOffsetResponse,
    SearchOffsetRequest,
    SearchOffsetResponse,
)

ADMIN_TIMEOUT_S: Final = 6.0


class Places:
    """Questions of one consumer."""

    def __init__(self, instance: Instance) -> None:
        self._instance = instance

    async def max_offset(self, queue: MessageQueue) -> int:
        header = GetMaxOffsetRequest(topic=queue.topic, queue_id=queue.queue_id, broker_name=queue.broker)
        answer = await self._ask_master(queue, self._instance.make(RequestCode.GET_MAX_OFFSET, header))
        return decode_header(GetMaxOffsetResponse, answer).offset

    async def min_offset(self, queue: MessageQueue) -> int:
        header = GetMinOffsetRequest(topic=queue.topic, queue_id=queue.queue_id, broker_name=queue.broker)
        answer = await self._ask_master(queue, self._instance.make(RequestCode.GET_MIN_OFFSET, header))
        return decode_header(GetMinOffsetResponse, answer).offset

    async def offset_at(self, queue: MessageQueue, at_ms: int) -> int:
        header = SearchOffsetRequest(
            topic=queue.topic, queue_id=queue.queue_id, timestamp=at_ms, broker_name=queue.broker
        )
        answer = await self._ask_master(queue, self._instance.make(RequestCode.SEARCH_OFFSET_BY_TIMESTAMP, header))
        return decode_header(SearchOffsetResponse, answer).offset

    async def _ask_master(self, queue: MessageQueue, command: RemotingCommand) -> RemotingCommand:
        route = self._instance.routes.get(queue.topic) or await self._instance.refresh_route(queue.topic)
        address = master_of(route, queue.broker) if route is not None else None
        if address is None:
            raise ConnectFailed(queue.broker, "no nameserver knows a master of this broker")
        return await self._instance.call(address, command, ADMIN_TIMEOUT_S)
