"""The consumer that is asked: it hands out messages when the application polls, which also says when to commit.

    async with refmq.PullConsumer("127.0.0.1:9876", group="audit", topics="Orders") as consumer:
        for message in await consumer.poll(timeout=1.0):
            ...
        await consumer.commit()

Either ``topics`` are shared with the other members of the group, or ``assign`` chooses queues. Messages that a poll
returned count as consumed at the next poll (``auto_commit``) or when ``commit`` is called. There are no retries:
whoever cannot deal with a message seeks back, or sends it elsewhere.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import replace
from types import TracebackType
from typing import Self, Unpack

from refmq.aio.consumer import _wanted
from refmq.aio.instance import CLOSE_TIMEOUT_S, ConnectionOptions
from refmq.aio.member import GroupMember, MemberSettings
from refmq.client import rebalance
from refmq.client.allocate import allocate_averagely
from refmq.client.allocate_rooms import Strategy
from refmq.client.message import ReceivedMessage, Verdict, checked_group
from refmq.client.process_queue import CacheLimits
from refmq.client.start_offset import StartAt, checked_start
from refmq.client.subscription import Sql, subscription
from refmq.errors import UsageError
from refmq.model.ids import MessageQueue
from refmq.protocol import names
from refmq.protocol.bodies.heartbeat import ConsumeType
from refmq.protocol.codes import ResponseCode

POLL_MAX = 1_024


class PullConsumer:
    """Reads queues at the application's pace."""

    def __init__(
        self,
        namesrv: str | list[str] | tuple[str, ...] | None = None,
        *,
        group: str,
        topics: Mapping[str, str | Sql] | Sequence[str] | str = (),
        start: StartAt = "last",
        strategy: Strategy = allocate_averagely,
        auto_commit: bool = True,
        prefetch: int = 1_000,
        prefetch_bytes: int = 100 << 20,
        pull_batch: int = 32,
        commit_interval: float = 5.0,
        **options: Unpack[ConnectionOptions],
    ) -> None:
        self.group = checked_group(group, "consumer")
        self._topics = _wanted(topics) if topics else {}
        self._auto_commit = auto_commit
        settings = MemberSettings(
            group=group,
            start=checked_start(start),
            strategy=strategy,
            limits=CacheLimits(prefetch, prefetch_bytes),
            pull_batch=pull_batch,
            consume_type=ConsumeType.CONSUME_ACTIVELY,
            lite=True,
            persist_s=commit_interval,
        )
        self._member = GroupMember(namesrv, "pull consumer", settings, self, self, options=options)
        self._ready: deque[tuple[MessageQueue, ReceivedMessage]] = deque()
        self._polled: list[tuple[MessageQueue, int]] = []
        """What the last polls returned and nobody has committed yet."""
        self._came = asyncio.Event()

    # Life -----------------------------------------------------------------------------------------------------------

    @property
    def client_id(self) -> str:
        return self._member.instance.client_id

    async def __aenter__(self) -> Self:
        await self.open()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self.close()

    async def open(self) -> None:
        """Joins the group, when there are topics."""
        try:
            await self._member.open(self._topics)
        except BaseException:
            await self._member.close(1.0)
            raise

    async def close(self, timeout: float = CLOSE_TIMEOUT_S) -> None:
        """Leaves. With ``auto_commit`` what was polled is committed; without, only what ``commit`` was called for."""
        if self._auto_commit:
            self._finish_polled()
        else:
            self._member.state = rebalance.abandon(self._member.state)
        await self._member.close(timeout)

    # Queues ---------------------------------------------------------------------------------------------------------

    async def assign(self, *queues: MessageQueue) -> None:
        """Reads exactly these queues, shared with nobody. Not together with ``topics``."""
        self._member.instance.check_usable()
        if self._topics:
            raise UsageError("A consumer either shares topics with its group or is assigned queues, not both.")
        await self._member.assign(queues)

    async def queues(self, topic: str) -> tuple[MessageQueue, ...]:
        """All queues of a topic that can be read."""
        from refmq.client.route import subscribe_queues

        instance = self._member.instance
        instance.check_usable()
        wire = names.with_namespace(topic, self._member.namespace)
        route = await instance.refresh_route(wire)
        if route is None:
            raise await instance.no_route(topic)
        return tuple(replace(queue, topic=topic) for queue in subscribe_queues(wire, route))

    def assignment(self) -> tuple[MessageQueue, ...]:
        """The queues that are read at present."""
        return tuple(self._shown(queue) for queue in sorted(self._member.state.held))

    async def assigned(self, timeout: float = 30.0) -> tuple[MessageQueue, ...]:
        """Waits until there is at least one queue."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(timeout):
                while not self._member.state.held:
                    await self._member.changed.wait()
        return self.assignment()

    def pause(self, *queues: MessageQueue) -> None:
        for queue in queues:
            self._member.pause(self._wire(queue))

    def resume(self, *queues: MessageQueue) -> None:
        for queue in queues:
            self._member.resume(self._wire(queue))

    async def seek(self, queue: MessageQueue, offset: int) -> None:
        """Goes on at ``offset``. It has to lie within the queue."""
        wire = self._wire(queue)
        first, end = await self._member.places.min_offset(wire), await self._member.places.max_offset(wire)
        if not first <= offset <= end:
            raise UsageError(f"{queue} has offsets {first} to {end}; {offset} is not one of them.")
        await self._member.seek(wire, offset)

    async def seek_to_begin(self, queue: MessageQueue) -> None:
        await self._member.seek(self._wire(queue), await self._member.places.min_offset(self._wire(queue)))

    async def seek_to_end(self, queue: MessageQueue) -> None:
        await self._member.seek(self._wire(queue), await self._member.places.max_offset(self._wire(queue)))

    async def offset_at(self, queue: MessageQueue, when: StartAt) -> int:
        """The first offset from a time on; the first or the next one of the queue."""
        wire, place = self._wire(queue), checked_start(when)
        if place == "first":
            return await self._member.places.min_offset(wire)
        if place == "last":
            return await self._member.places.max_offset(wire)
        return await self._member.places.offset_at(wire, int(place.timestamp() * 1000))

    async def committed(self, queue: MessageQueue) -> int | None:
        """The committed offset at the broker, None when there is none."""
        return await self._member.offsets.read(self._wire(queue))

    # Messages -------------------------------------------------------------------------------------------------------

    async def poll(self, timeout: float = 5.0, *, max_messages: int = 32) -> list[ReceivedMessage]:
        """What has come, or comes within ``timeout`` seconds; an empty list when nothing does."""
        self._member.instance.check_usable()
        if not 1 <= max_messages <= POLL_MAX:
            raise UsageError(f"max_messages is between 1 and {POLL_MAX}, not {max_messages}.")
        if self._auto_commit:
            self._finish_polled()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(timeout):
                while not (found := self._take(max_messages)):
                    self._came.clear()
                    await self._came.wait()
                return found
        return []

    async def pull(
        self, queue: MessageQueue, offset: int, *, max_messages: int = 32, wanted: str | Sql = "*", timeout: float = 5.0
    ) -> tuple[list[ReceivedMessage], int]:
        """One plain pull, without any state: the messages from ``offset`` on, and where to go on."""
        wire = self._wire(queue)
        data = subscription(wire.topic, wanted, 0)
        suspend_ms = int(timeout * 1000)
        answer, said = await self._member.ask_pull(wire, offset, max_messages, data, suspend_ms)
        found = self._member.decoded(wire, answer, data) if answer.code == ResponseCode.SUCCESS else []
        return found, said.next_begin_offset

    async def commit(self) -> None:
        """What was polled so far is done with: its offsets are stored at the brokers when this returns."""
        self._member.instance.check_usable()
        self._finish_polled()
        for queue in sorted(self._member.state.held):
            await self._member.take(rebalance.commit_send(self._member.state, queue), sure=True)

    def came(self, queue: MessageQueue, messages: Sequence[ReceivedMessage]) -> None:
        """Called by the member."""
        self._ready.extend((queue, message) for message in messages)
        self._came.set()

    def went(self, queue: MessageQueue) -> None:
        """Called by the member: a queue is not ours any more, or is read from another place."""
        self._ready = deque(entry for entry in self._ready if entry[0] != queue)
        self._polled = [entry for entry in self._polled if entry[0] != queue]

    def expired(self, queue: MessageQueue) -> None:
        """Called by the member: never, there are no locks."""

    def scope(self, message: ReceivedMessage) -> None:
        return None

    async def settle(self, message: ReceivedMessage, verdict: Verdict) -> None:
        raise UsageError("A pull consumer has no verdicts: commit, or seek back.")

    def _take(self, count: int) -> list[ReceivedMessage]:
        found: list[ReceivedMessage] = []
        while self._ready and len(found) < count:
            queue, message = self._ready.popleft()
            step = rebalance.consume_start(self._member.state, queue, message.queue_offset, 0, message.fingerprint)
            if step.event is not None:
                self._member.take_now(step)
                self._polled.append((queue, message.queue_offset))
                found.append(message)
        return found

    def _finish_polled(self) -> None:
        for queue, offset in self._polled:
            self._member.take_now(rebalance.consume_finish(self._member.state, queue, offset, success=True))
            self._member.nudge(queue)
        self._polled.clear()

    def _wire(self, queue: MessageQueue) -> MessageQueue:
        self._member.instance.check_usable()
        return replace(queue, topic=names.with_namespace(queue.topic, self._member.namespace))

    def _shown(self, queue: MessageQueue) -> MessageQueue:
        return replace(queue, topic=names.without_namespace(queue.topic, self._member.namespace))
