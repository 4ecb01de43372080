"""The consumer.

    async with refmq.Consumer("127.0.0.1:9876", group="billing", topics={"Orders": "Paid || Refunded"}) as consumer:
        async for message in consumer:
            async with message.processing():
                await bill(message.body)

Leaving the inner block is success; an exception means that the message comes again, later. A listener can be given
instead: then ``concurrency`` of its calls run at a time.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import Final, Literal, Self, Unpack

from refmq.aio.consumer_info import ConsumerQuestions
from refmq.aio.instance import ConnectionOptions, Instance
from refmq.aio.member import GroupMember, MemberSettings
from refmq.aio.offsets import LocalOffsets, OffsetStore
from refmq.aio.retries import DEAD, Retries
from refmq.aio.scope import Scope, Scopes
from refmq.aio.sending import Sender
from refmq.aio.traces import MessageTraces
from refmq.client import rebalance
from refmq.client.allocate import allocate_averagely
from refmq.client.allocate_rooms import Strategy
from refmq.client.message import (
    SUCCESS,
    Batch,
    Message,
    ReceivedMessage,
    SendResult,
    Verdict,
    checked_group,
    checked_topic,
)
from refmq.client.message_trace import ConsumeReturn, sub_after_entry, sub_before_entry
from refmq.client.process_queue import CacheLimits, first_cached
from refmq.client.send import SendSettings, plan_send
from refmq.client.start_offset import StartAt, checked_start
from refmq.client.subscription import Sql
from refmq.errors import RefmqError, UsageError
from refmq.model.ids import MessageQueue
from refmq.protocol import names

RETRIES_MAX: Final = 16  # maxReconsumeTimes of a concurrent consumer, 4.9.8
UNLIMITED: Final = 0x7FFF_FFFF
AGAIN_S: Final = 5.0
"""A message that could not be given back is tried again here after so long, as upstream does."""
SUSPEND_S: Final = 1.0  # suspendCurrentQueueTimeMillis, 4.9.8
CONSUME_TIMEOUT_S: Final = 15 * 60.0
CLOSE_TIMEOUT_S: Final = 10.0

Listener = Callable[[ReceivedMessage], Awaitable[object]]
Mode = Literal["concurrent", "orderly", "broadcast"]

log = logging.getLogger("refmq.client")


class Consumer:
    """Consumes topics as a member of a group.

    | mode         | who gets a message                     | order             | after a failure                     |
    |--------------|----------------------------------------|-------------------|-------------------------------------|
    | `concurrent` | one member of the group                | none              | again later, 16 times, then dead    |
    | `orderly`    | one member, which has the queue lent   | that of the queue | the queue waits a second; no limit  |
    | `broadcast`  | every member                           | none              | logged                              |

    ``start`` is where a group without offsets begins: ``"first"``, ``"last"`` or a time. ``max_retries`` bounds the
    attempts. ``prefetch`` and ``prefetch_bytes`` bound what is kept of each queue.
    """

    def __init__(
        self,
        namesrv: str | list[str] | tuple[str, ...] | None = None,
        *,
        group: str,
        topics: Mapping[str, str | Sql] | Sequence[str] | str,
        mode: Mode = "concurrent",
        start: StartAt = "last",
        strategy: Strategy = allocate_averagely,
        listener: Listener | None = None,
        concurrency: int = 20,
        max_retries: int | None = None,
        prefetch: int = 1_000,
        prefetch_bytes: int = 100 << 20,
        pull_batch: int = 32,
        consume_timeout: float = CONSUME_TIMEOUT_S,
        suspend: float = SUSPEND_S,
        offsets_folder: Path | None = None,
        message_trace: bool = False,
        before_consume: Sequence[Callable[[ReceivedMessage], None]] = (),
        after_consume: Sequence[Callable[[ReceivedMessage, Verdict], None]] = (),
        rebalance_interval: float = 20.0,
        commit_interval: float = 5.0,
        **options: Unpack[ConnectionOptions],
    ) -> None:
        if mode not in ("concurrent", "orderly", "broadcast"):
            raise UsageError(f"mode is 'concurrent', 'orderly' or 'broadcast', not {mode!r}.")
        self.group = checked_group(group, "consumer")
        self.mode = mode
        self._topics = _wanted(topics)
        for name, value, low, high in (
            ("concurrency", concurrency, 1, 10_000),
            ("prefetch", prefetch, 1, 65_535),
            ("pull_batch", pull_batch, 1, 1_024),
        ):
            if not low <= value <= high:
                raise UsageError(f"{name} is between {low} and {high}, not {value}.")
        settings = MemberSettings(
            group=group,
            orderly=mode == "orderly",
            shares=mode != "broadcast",
            start=checked_start(start),
            strategy=strategy,
            limits=CacheLimits(prefetch, prefetch_bytes),
            pull_batch=pull_batch,
            rebalance_s=rebalance_interval,
            persist_s=commit_interval,
        )
        folder = offsets_folder or Path.home() / ".rocketmq_offsets"

        def local_offsets(instance: Instance) -> OffsetStore:
            return LocalOffsets(folder, instance.client_id, self._member.group)

        self._member = GroupMember(
            namesrv,
            "consumer",
            settings,
            self,
            self,
            options=options,
            make_offsets=local_offsets if mode == "broadcast" else None,
        )
        self._listener = listener
        self._concurrency = concurrency
        self._consume_timeout = consume_timeout
        self._suspend = suspend
        default_max = UNLIMITED if mode == "orderly" else RETRIES_MAX
        self._retries_max = default_max if max_retries is None else max_retries
        self._retries = Retries(self._member.instance, self._member.group, self._retries_max)
        self._before = tuple(before_consume)
        self._after = tuple(after_consume)
        self._messages: dict[tuple[MessageQueue, int], ReceivedMessage] = {}
        """Every message that is cached."""
        self._ready: deque[tuple[MessageQueue, int]] = deque()
        """Concurrent: what can be handed out, in the order in which it came."""
        self._suspended: dict[MessageQueue, asyncio.TimerHandle] = {}
        self._came = asyncio.Event()
        self._closing = False
        self._settled = asyncio.Event()
        self._started_ms: dict[tuple[MessageQueue, int], int] = {}
        self._scopes = Scopes(self._member.trusts, self._stopped)
        self._workers: list[asyncio.Task[None]] = []
        self._traces: MessageTraces | None = None
        if message_trace:
            trace_settings = SendSettings(group=f"{self._member.group}_TRACE", namespace=self._member.namespace)
            self._trace_sender = Sender(self._member.instance, trace_settings)
            self._traces = MessageTraces(self._send_trace)
        self._questions = ConsumerQuestions(self._member, self._consume_directly)

    # Life -----------------------------------------------------------------------------------------------------------

    @property
    def client_id(self) -> str:
        """The name under which brokers know this consumer; empty before it is open."""
        return self._member.instance.client_id

    async def __aenter__(self) -> Self:
        await self.open()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self.close()

    async def open(self) -> None:
        """Joins the group. Messages come as soon as the group has shared out its queues."""
        try:
            await self._member.open(self._topics)
        except BaseException:
            await self._member.close(1.0)
            raise
        instance = self._member.instance
        if self._traces is not None:
            instance.spawn(self._traces.run(), "message traces")
        if self._listener is not None:
            for number in range(self._concurrency):
                self._workers.append(instance.spawn(self._work(self._listener), f"listener {number}"))

    async def close(self, timeout: float = CLOSE_TIMEOUT_S) -> None:
        """Hands out nothing more, waits for what is in the hands of listeners, commits, leaves the group, closes; in
        about ``timeout`` seconds at most. What is not finished by then comes again."""
        instance = self._member.instance
        if not instance.opened or instance.closed:
            return
        loop = asyncio.get_running_loop()
        deadline = loop.time() + timeout
        self._closing = True
        self._came.set()
        for timer in self._suspended.values():
            timer.cancel()
        try:
            await self._drained(timeout / 2)
            for worker in self._workers:
                worker.cancel()
            if self._workers:
                await asyncio.wait(self._workers, timeout=max(0.1, (deadline - loop.time()) / 2))
            if self._traces is not None:
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(max(0.1, (deadline - loop.time()) / 2)):
                        await self._traces.flush()
        finally:
            await self._member.close(max(0.2, deadline - loop.time()))

    async def _drained(self, timeout_s: float) -> None:
        """Waits until listeners are done with what they have. What an iteration was given counts as well."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(timeout_s):
                while self._listener is not None and self._running():
                    self._settled.clear()
                    await self._settled.wait()

    def _running(self) -> int:
        return sum(len(held.running) for held in self._member.state.held.values())

    # What the group does --------------------------------------------------------------------------------------------

    def assignment(self) -> tuple[MessageQueue, ...]:
        """The queues that this consumer has at present, those of its retry topic left out."""
        namespace = self._member.namespace
        return tuple(
            replace(queue, topic=names.without_namespace(queue.topic, namespace))
            for queue in sorted(self._member.state.held)
            if queue.topic != self._member.retry_topic
        )

    async def assigned(self, timeout: float = 30.0) -> tuple[MessageQueue, ...]:
        """Waits until this consumer has at least one queue."""
        try:
            async with asyncio.timeout(timeout):
                while not self.assignment():
                    await self._member.changed.wait()
        except TimeoutError:
            raise RefmqError(f"{self.group} was assigned no queue within {timeout:g} s.") from None
        return self.assignment()

    async def subscribe(self, topic: str, wanted: str | Sql = "*") -> None:
        """One more topic, or another filter for one."""
        self._member.instance.check_usable()
        await self._member.subscribe(checked_topic(topic), wanted)

    async def unsubscribe(self, topic: str) -> None:
        """One topic less. What is finished of it is committed."""
        self._member.instance.check_usable()
        await self._member.unsubscribe(topic)

    async def commit(self) -> None:
        """Commits what is finished now; it would happen by itself every five seconds."""
        self._member.instance.check_usable()
        await self._member.persist()

    async def seek(self, queue: MessageQueue, offset: int) -> None:
        """Goes to another place in a queue that is assigned to this consumer."""
        await self._member.seek(self._wire(queue), offset)

    async def seek_to_time(self, queue: MessageQueue, when: StartAt) -> None:
        """Goes to the first message of a queue from a time on, or to its beginning or end."""
        wire = self._wire(queue)
        place = checked_start(when)
        if place == "first":
            offset = await self._member.places.min_offset(wire)
        elif place == "last":
            offset = await self._member.places.max_offset(wire)
        else:
            offset = await self._member.places.offset_at(wire, int(place.timestamp() * 1000))
        await self._member.seek(wire, offset)

    def pause(self, *queues: MessageQueue) -> None:
        """Pulls no more from these queues, until ``resume``. What is cached is still handed out."""
        for queue in queues or self.assignment():
            self._member.pause(self._wire(queue))

    def resume(self, *queues: MessageQueue) -> None:
        for queue in queues or self.assignment():
            self._member.resume(self._wire(queue))

    async def reply(self, to: ReceivedMessage, body: bytes, *, timeout: float = 3.0) -> SendResult:
        """Answers a message that was sent by ``Producer.request``."""
        self._member.instance.check_usable()
        return await self._retries.reply(to, body, timeout)

    def _wire(self, queue: MessageQueue) -> MessageQueue:
        self._member.instance.check_usable()
        return replace(queue, topic=names.with_namespace(queue.topic, self._member.namespace))

    # Messages come and go -------------------------------------------------------------------------------------------

    def came(self, queue: MessageQueue, messages: Sequence[ReceivedMessage]) -> None:
        """Called by the member."""
        for message in messages:
            place = (queue, message.queue_offset)
            self._messages[place] = message
            if self.mode != "orderly":
                self._ready.append(place)
        self._came.set()

    def went(self, queue: MessageQueue) -> None:
        """Called by the member: a queue is not ours any more."""
        gone = [place for place in self._messages if place[0] == queue]
        running = self._member.state.held[queue].running if queue in self._member.state.held else ()
        for place in gone:
            if place[1] not in running:
                del self._messages[place]
        timer = self._suspended.pop(queue, None)
        if timer is not None:
            timer.cancel()

    def expired(self, queue: MessageQueue) -> None:
        """Called by the member: another consumer may have the queue soon, so whoever is at work on it is stopped."""
        if self._scopes.stop(queue):
            log.warning(
                "the lock on %s expired while one of its messages was being processed: the work is stopped", queue
            )

    def __aiter__(self) -> AsyncIterator[ReceivedMessage]:
        if self._listener is not None:
            raise UsageError("This consumer has a listener, which gets the messages: it cannot be iterated.")
        return self._iterate()

    async def _iterate(self) -> AsyncIterator[ReceivedMessage]:
        while True:
            message = await self._next()
            if message is None:
                return
            yield message

    async def receive(self, timeout: float) -> ReceivedMessage | None:
        """The next message, or None when none comes within ``timeout`` seconds."""
        if self._listener is not None:
            raise UsageError("This consumer has a listener, which gets the messages.")
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(timeout):
                return await self._next()
        return None

    async def batches(self, *, max_messages: int = 32, max_wait: float = 0.1) -> AsyncIterator[Batch]:
        """Several messages at a time: what has come ``max_wait`` seconds after the first, ``max_messages`` at most."""
        if self.mode == "orderly":
            raise UsageError("An orderly consumer hands out one message of a queue at a time: iterate over it.")
        loop = asyncio.get_running_loop()
        while True:
            first = await self._next()
            if first is None:
                return
            found = [first]
            deadline = loop.time() + max_wait
            while len(found) < max_messages:
                message = self._take_one()
                if message is not None:
                    found.append(message)
                    continue
                if self._closing or deadline <= loop.time():
                    break
                self._came.clear()
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout_at(deadline):
                        await self._came.wait()
            yield Batch(tuple(found))

    async def _next(self) -> ReceivedMessage | None:
        """The next message, or None when this consumer is closed."""
        self._member.instance.check_usable()
        while not self._closing:
            message = self._take_one()
            if message is not None:
                return message
            self._came.clear()
            await self._came.wait()
        self._came.set()
        return None

    def _take_one(self) -> ReceivedMessage | None:
        if self._closing:
            return None
        member = self._member
        while True:
            place = self._place_in_order() if self.mode == "orderly" else self._place_that_came()
            if place is None:
                return None
            queue, offset = place
            message = self._messages[place]
            step = rebalance.consume_start(member.state, queue, offset, member.clock_ms(), message.fingerprint)
            if step.event is not None:
                break
            if self.mode == "orderly":
                return None  # its lock has run out just now; who renews it wakes us
        member.take_now(step)
        self._started_ms[place] = self._member.instance.now_ms()
        for hook in self._before:
            hook(message)
        self._trace_before(message)
        return message

    def _place_that_came(self) -> tuple[MessageQueue, int] | None:
        while self._ready:
            place = self._ready.popleft()
            if place in self._messages:
                return place
        return None

    def _place_in_order(self) -> tuple[MessageQueue, int] | None:
        state = self._member.state
        now_ms = self._member.clock_ms()
        for queue in sorted(state.held, key=lambda queue: (self._started_ms.get((queue, -1), 0), queue)):
            if queue in self._suspended:
                continue
            first = first_cached(state.held[queue])
            if first is not None and rebalance.consume_start_enabled(state, queue, first, now_ms):
                self._started_ms[queue, -1] = self._member.instance.now_ms()
                return queue, first
        return None

    async def _work(self, listener: Listener) -> None:
        while (message := await self._next()) is not None:
            scope = Scope(self._scopes, message, self._consume_timeout)
            try:
                async with scope:
                    await listener(message)
                verdict = SUCCESS
            except Exception as error:
                if scope.too_late:
                    verdict = Verdict(False, reason=f"the listener took more than {self._consume_timeout:g} s")
                else:
                    log.warning("the listener of %s failed", self.group, exc_info=error)
                    verdict = Verdict(False, reason=f"{type(error).__name__}: {error}")
            if not scope.stopped:
                await self.settle(message, verdict)

    # Verdicts -------------------------------------------------------------------------------------------------------

    async def settle(self, message: ReceivedMessage, verdict: Verdict) -> None:
        """Called when the application is done with a message."""
        queue, offset = message.queue, message.queue_offset
        place = (queue, offset)
        began_ms = self._started_ms.pop(place, None)
        if began_ms is None or not rebalance.consume_finish_enabled(self._member.state, queue, offset):
            log.info("%s was settled twice, or after its queue was gone; it may be delivered again", message.msg_id)
            return
        for hook in self._after:
            hook(message, verdict)
        self._trace_after(message, verdict, began_ms)
        if not verdict.success:
            log.warning("%s of %s failed (%s)", message.msg_id, message.topic, verdict.reason or "no reason given")
        done = verdict.success or await self._give_back(message, verdict)
        step = rebalance.consume_finish(self._member.state, queue, offset, success=done, message=message.fingerprint)
        if step.event is None:
            return  # the queue went while the message was given back
        self._member.take_now(step)
        if done:
            self._messages.pop(place, None)
        else:
            self._try_again(message)
        self._hands_free(place)

    def _hands_free(self, place: tuple[MessageQueue, int]) -> None:
        """Nobody is at work on a message any more."""
        queue, _ = place
        self._member.nudge(queue)
        self._settled.set()
        if self.mode == "orderly":
            self._came.set()
            held = self._member.state.held.get(queue)
            if held is not None and held.dropped:
                self._messages.pop(place, None)
                self._member.wake()

    def scope(self, message: ReceivedMessage) -> Scope | None:
        """The time for the work on a message, when it may have to end early."""
        return Scope(self._scopes, message) if self._member.state.locks else None

    def _stopped(self, message: ReceivedMessage) -> None:
        """The work on a message was stopped because its lock ran out: it is no failure, and no attempt is counted."""
        queue, offset = place = (message.queue, message.queue_offset)
        self._started_ms.pop(place, None)
        step = rebalance.consume_finish(self._member.state, queue, offset, success=False, message=message.fingerprint)
        self._member.take_now(step)
        self._hands_free(place)

    async def _give_back(self, message: ReceivedMessage, verdict: Verdict) -> bool:
        """Whether somebody else has the message now."""
        if self.mode == "broadcast":
            return True  # nobody keeps failures of broadcasts: upstream logs and goes on as well
        if self.mode == "orderly" and verdict.delay_level != DEAD and message.reconsume_times < self._retries_max:
            return False
        level = DEAD if self.mode == "orderly" else verdict.delay_level
        return await self._retries.give_back(message, level)

    def _try_again(self, message: ReceivedMessage) -> None:
        """The message stays here: after a while it is handed out again."""
        queue, offset = message.queue, message.queue_offset
        self._messages[queue, offset] = replace(message, reconsume_times=message.reconsume_times + 1)
        loop = asyncio.get_running_loop()
        if self.mode == "orderly":
            if not self._closing and queue not in self._suspended:
                self._suspended[queue] = loop.call_later(self._suspend, self._resume_queue, queue)
        elif not self._closing:
            loop.call_later(AGAIN_S, self._again, (queue, offset))

    def _resume_queue(self, queue: MessageQueue) -> None:
        self._suspended.pop(queue, None)
        self._came.set()

    def _again(self, place: tuple[MessageQueue, int]) -> None:
        if not self._closing and place in self._messages:
            self._ready.append(place)
            self._came.set()

    async def _consume_directly(self, message: ReceivedMessage) -> Verdict | None:
        """An operator wants one message consumed now: by the listener, beside everything else."""
        if self._listener is None:
            return None
        try:
            await self._listener(message)
        except Exception as error:
            return Verdict(False, reason=f"{type(error).__name__}: {error}")
        return SUCCESS

    # Traces ---------------------------------------------------------------------------------------------------------

    def _trace_before(self, message: ReceivedMessage) -> None:
        if self._traces is None or message.properties.get(names.TRACE_SWITCH) == "false":
            return
        self._traces.add(
            sub_before_entry(
                at_ms=self._member.instance.now_ms(),
                region=message.properties.get(names.MSG_REGION, ""),
                group=self.group,
                request_id=self._request_id(message),
                msg_id=message.msg_id,
                retry_times=message.reconsume_times,
                keys=message.keys,
            )
        )

    def _trace_after(self, message: ReceivedMessage, verdict: Verdict, began_ms: int) -> None:
        if self._traces is None or message.properties.get(names.TRACE_SWITCH) == "false":
            return
        now_ms = self._member.instance.now_ms()
        self._traces.add(
            sub_after_entry(
                request_id=self._request_id(message),
                msg_id=message.msg_id,
                cost_ms=now_ms - began_ms,
                success=verdict.success,
                keys=message.keys,
                outcome=ConsumeReturn.SUCCESS if verdict.success else ConsumeReturn.EXCEPTION,
                at_ms=now_ms,
                group=self.group,
            )
        )

    def _request_id(self, message: ReceivedMessage) -> str:
        """The same before and after, and another one for every attempt."""
        return f"{message.offset_msg_id}{message.reconsume_times:04X}"

    async def _send_trace(self, body: bytes, keys: tuple[str, ...]) -> SendResult:
        message = Message(names.TRACE_TOPIC, body, keys=keys)
        plan = plan_send(self._trace_sender.settings, message, self._member.instance.next_id())
        return await self._trace_sender.send(plan, 5.0)


def _wanted(topics: Mapping[str, str | Sql] | Sequence[str] | str) -> dict[str, str | Sql]:
    """Topics and what is wanted of each."""
    if isinstance(topics, str):
        found: dict[str, str | Sql] = {topics: "*"}
    elif isinstance(topics, Mapping):
        found = dict(topics)
    else:
        found = dict.fromkeys(topics, "*")
    if not found:
        raise UsageError("A consumer needs a topic: topics={'Orders': '*'}.")
    for topic in found:
        checked_topic(topic)
    return found
