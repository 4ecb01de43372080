"""Where offsets are kept: at the brokers when a group shares its queues, in a file when everybody reads everything."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path
from typing import Protocol

from refmq.aio.instance import Instance
from refmq.client.answers import broker_error
from refmq.client.route import master_of
from refmq.errors import ConnectFailed, DecodeError, DiskFailed
from refmq.model.ids import MessageQueue
from refmq.protocol.bodies.codec import decode_body, encode_body
from refmq.protocol.bodies.offsets import ResetOffsetBody
from refmq.protocol.codes import RequestCode, ResponseCode
from refmq.protocol.headers.codec import decode_header
from refmq.protocol.headers.offsets import (
    QueryConsumerOffsetRequest,
    QueryConsumerOffsetResponse,
    UpdateConsumerOffsetRequest,
)

OFFSET_TIMEOUT_S = 5.0  # RemoteBrokerOffsetStore, 4.9.8


class OffsetStore(Protocol):
    """Keeps the offsets of one group."""

    async def read(self, queue: MessageQueue) -> int | None:
        """The committed offset, None when there surely is none. An error when nobody can tell."""
        ...

    async def write(self, queue: MessageQueue, offset: int, *, sure: bool) -> None:
        """Commits an offset. With ``sure`` it is stored when this returns, without it is on its way."""
        ...

    async def flush(self) -> None:
        """What was written is stored when this returns, as far as the store can tell."""
        ...


class RemoteOffsets:
    """Offsets at the brokers. Always at the master: a slave's copy is old, and old offsets skip or repeat messages."""

    def __init__(self, instance: Instance, group: str) -> None:
        self._instance = instance
        self._group = group

    async def read(self, queue: MessageQueue) -> int | None:
        header = QueryConsumerOffsetRequest(
            consumer_group=self._group, topic=queue.topic, queue_id=queue.queue_id, broker_name=queue.broker
        )
        command = self._instance.make(RequestCode.QUERY_CONSUMER_OFFSET, header)
        address = await self._master(queue)
        answer = await self._instance.ask(address, command, OFFSET_TIMEOUT_S)
        if answer.code == ResponseCode.SUCCESS:
            return decode_header(QueryConsumerOffsetResponse, answer).offset
        if answer.code == ResponseCode.QUERY_NOT_FOUND:
            return None
        raise broker_error(address, command.code, answer)

    async def write(self, queue: MessageQueue, offset: int, *, sure: bool) -> None:
        header = UpdateConsumerOffsetRequest(
            consumer_group=self._group,
            topic=queue.topic,
            queue_id=queue.queue_id,
            commit_offset=offset,
            broker_name=queue.broker,
        )
        command = self._instance.make(RequestCode.UPDATE_CONSUMER_OFFSET, header, is_oneway=not sure)
        address = await self._master(queue)
        if sure:
            await self._instance.call(address, command, OFFSET_TIMEOUT_S)
        else:
            await self._instance.tell(address, command, OFFSET_TIMEOUT_S)

    async def flush(self) -> None:
        return None

    async def _master(self, queue: MessageQueue) -> str:
        route = self._instance.routes.get(queue.topic)
        address = master_of(route, queue.broker) if route is not None else None
        if address is None:
            route = await self._instance.refresh_route(queue.topic)
            address = master_of(route, queue.broker) if route is not None else None
        if address is None:
            raise ConnectFailed(queue.broker, "no nameserver knows a master of this broker")
        return address


class LocalOffsets:
    """Offsets in a file, in the form that the Java client reads: ``<folder>/<client id>/<group>/offsets.json``."""

    def __init__(self, folder: Path, client_id: str, group: str) -> None:
        self.path = folder / client_id / group / "offsets.json"
        self._known: dict[MessageQueue, int] | None = None
        self._changed = False
        self._writing = asyncio.Lock()

    async def read(self, queue: MessageQueue) -> int | None:
        return (await self._offsets()).get(queue)

    async def write(self, queue: MessageQueue, offset: int, *, sure: bool) -> None:
        known = await self._offsets()
        if known.get(queue) != offset:
            known[queue] = offset
            self._changed = True
        if sure:
            await self.flush()

    async def flush(self) -> None:
        async with self._writing:
            if self._changed and self._known is not None:
                self._changed = False
                body = encode_body(ResetOffsetBody(offset_table=self._known))
                await asyncio.get_running_loop().run_in_executor(None, self._replace, body)

    async def _offsets(self) -> dict[MessageQueue, int]:
        async with self._writing:
            if self._known is None:
                self._known = await asyncio.get_running_loop().run_in_executor(None, self._load)
        return self._known

    def _load(self) -> dict[MessageQueue, int]:
        backup = self.path.with_name(self.path.name + ".bak")
        problem: DecodeError | None = None
        for path in (self.path, backup):
            try:
                content = path.read_bytes()
            except FileNotFoundError:
                content = b""
            except OSError as error:
                raise DiskFailed(str(path), "read the offsets in", error.strerror or str(error)) from None
            if content.strip():
                try:
                    return dict(decode_body(ResetOffsetBody, content).offset_table)
                except DecodeError as error:
                    problem = error
        if problem is not None:
            raise DiskFailed(str(self.path), "read the offsets in", f"neither it nor its backup can be read: {problem}")
        return {}

    def _replace(self, body: bytes) -> None:
        """Writes beside the file and renames, so that a crash leaves the old file or the new one."""
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            beside = self.path.with_name(self.path.name + ".tmp")
            with beside.open("wb") as file:
                file.write(body)
                file.flush()
                os.fsync(file.fileno())
            backup = self.path.with_name(self.path.name + ".bak")
            if self.path.exists():
                self.path.replace(backup)
            beside.replace(self.path)
        except OSError as error:
            raise DiskFailed(str(self.path), "write the offsets to", error.strerror or str(error)) from None
