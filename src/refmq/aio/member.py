"""A member of a consumer group on the wire: it learns its share, pulls from its queues and commits their offsets.

The decisions are the steps of `refmq.client.rebalance`; here is the loop that asks, waits and performs their effects.
`Consumer` and `PullConsumer` are built on it: they are told of messages that came and of queues that went.

| task            | how often                                                                             |
|-----------------|---------------------------------------------------------------------------------------|
| rebalance       | when a broker says that the group changed, after a new route, and every 20 s;         |
|                 | again after 0.5 s as long as something of the share could not be taken                |
| pull, per queue | one request at a time; a broker without messages keeps it for up to 15 s              |
| commit          | every 5 s                                                                             |
| lock renewal    | every 10 s, orderly only (upstream: 20 s; trust lasts 30 s)                           |
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final, Protocol

from refmq.aio.instance import ASK_TIMEOUT_S, ConnectionOptions, Instance
from refmq.aio.offsets import OffsetStore, RemoteOffsets
from refmq.aio.places import Places
from refmq.client import rebalance
from refmq.client.allocate import allocate_averagely
from refmq.client.allocate_rooms import Strategy
from refmq.client.answers import broker_error
from refmq.client.message import ReceivedMessage, Settler
from refmq.client.process_queue import CacheLimits, check_pulled, is_full
from refmq.client.rebalance import GiveBack, Member, MemberStep, SendCommit, StartPulling, StopPulling
from refmq.client.route import all_addresses, master_of, reader_of, subscribe_queues
from refmq.client.start_offset import Ask, StartAt, beginning, from_where
from refmq.client.subscription import Sql, subscription, wants
from refmq.errors import (
    BrokerError,
    ConnectFailed,
    NetworkError,
    RefmqError,
    SubscriptionNotLatest,
    UsageError,
    WireError,
)
from refmq.model.ids import MessageQueue
from refmq.net.connection import Answer, Connection
from refmq.net.message_list import read_messages
from refmq.protocol import names
from refmq.protocol.bodies.codec import decode_body
from refmq.protocol.bodies.connections import ConsumerIdList
from refmq.protocol.bodies.heartbeat import (
    EXPRESSION_TAG,
    CheckClientRequestBody,
    ConsumerData,
    ConsumeType,
    HeartbeatData,
    MessageModel,
    SubscriptionData,
)
from refmq.protocol.bodies.offsets import LockBatchRequestBody, LockBatchResponseBody
from refmq.protocol.bodies.route import TopicRouteData
from refmq.protocol.codes import RequestCode, ResponseCode
from refmq.protocol.command import RemotingCommand
from refmq.protocol.headers.clients import GetConsumerListByGroupRequest
from refmq.protocol.headers.codec import decode_header
from refmq.protocol.headers.pull import PullMessageRequest, PullMessageResponse, PullSysFlag
from refmq.trace.record import NoRecorder

REBALANCE_S: Final = 20.0  # rebalance.waitInterval, 4.9.8
REBALANCE_AGAIN_S: Final = 0.5
UNKNOWN_TOPIC_S: Final = (0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0)
"""How soon a topic that nobody knows yet is asked for again; upstream waits 30 s each time."""
PERSIST_S: Final = 5.0  # persistConsumerOffsetInterval, 4.9.8
RENEW_S: Final = 10.0
SUSPEND_MS: Final = 15_000  # brokerSuspendMaxTimeMillis, 4.9.8
PULL_TIMEOUT_S: Final = 30.0
LOOK_S: Final = 0.05
"""How soon a full cache is looked at again."""
ERROR_S: Final = 1.0
FLOW_CONTROL_S: Final = 0.02

log = logging.getLogger("refmq.client")


class Receiver(Protocol):
    """Who deals with messages. Called on the loop, and must not wait."""

    def came(self, queue: MessageQueue, messages: Sequence[ReceivedMessage]) -> None: ...

    def went(self, queue: MessageQueue) -> None: ...

    def expired(self, queue: MessageQueue) -> None:
        """The lock of a queue can be relied on no longer: nobody may be at work on it."""
        ...


@dataclass(frozen=True, slots=True)
class MemberSettings:
    """How a member behaves."""

    group: str
    """With its namespace."""
    orderly: bool = False
    shares: bool = True
    start: StartAt = "last"
    strategy: Strategy = allocate_averagely
    limits: CacheLimits = field(default_factory=CacheLimits)
    pull_batch: int = 32
    consume_type: ConsumeType = ConsumeType.CONSUME_PASSIVELY
    lite: bool = False
    rebalance_s: float = REBALANCE_S
    persist_s: float = PERSIST_S
    suspend_ms: int = SUSPEND_MS


class GroupMember:
    """One consumer of a group, without the listener."""

    def __init__(
        self,
        namesrv: str | list[str] | tuple[str, ...] | None,
        what: str,
        settings: MemberSettings,
        receiver: Receiver,
        settler: Settler,
        *,
        options: ConnectionOptions,
        make_offsets: Callable[[Instance], OffsetStore] | None = None,
    ) -> None:
        self.settings = settings
        self.instance = Instance(
            namesrv,
            what,
            stream=settings.lite,
            stable_name=not settings.shares,
            heartbeat_data=self._heartbeat_data,
            on_route=self._route_came,
            options=options,
        )
        self.places = Places(self.instance)
        self.namespace = self.instance.namespace
        self.group = names.with_namespace(settings.group, self.namespace)
        self.retry_topic = names.retry_topic(self.group)
        self.state = Member(self.group, "", settings.orderly, settings.shares, settings.strategy)
        self.subscriptions: dict[str, SubscriptionData] = {}
        self.changed = asyncio.Event()
        """Set, and replaced, whenever the queues of this member change."""
        self._receiver = receiver
        self._settler = settler
        self._make_offsets = make_offsets
        self._wake = asyncio.Event()
        self._pulling: dict[MessageQueue, asyncio.Task[None]] = {}
        self._room: dict[MessageQueue, asyncio.Event] = {}
        self._suggested: dict[MessageQueue, int] = {}
        self._paused: set[MessageQueue] = set()
        self._trust_timers: dict[MessageQueue, asyncio.TimerHandle] = {}
        """One for each lock that is relied on."""
        self._turn = asyncio.Lock()
        self.assigned = False
        """The application chooses the queues; nothing is shared."""
        self.instance.handlers[RequestCode.NOTIFY_CONSUMER_IDS_CHANGED] = self._notified

    # Life -----------------------------------------------------------------------------------------------------------

    async def open(self, topics: Mapping[str, str | Sql]) -> None:
        await self.instance.open()
        self.state = replace(self.state, client_id=self.instance.client_id)
        make = self._make_offsets or (lambda instance: RemoteOffsets(instance, self.group))
        self.offsets: OffsetStore = make(self.instance)
        for topic, wanted in topics.items():
            self._subscribe(topic, wanted)
        if self.settings.shares and not self.settings.lite:
            self._subscribe(self.retry_topic, "*")
        for topic in list(self.subscriptions):
            await self.instance.refresh_route(topic)
        await self._check_filters()
        await self.instance.heartbeat()
        if self.retry_topic in self.subscriptions and self.retry_topic not in self.instance.routes:
            await self.instance.refresh_route(self.retry_topic)  # brokers make it when they hear of the group
        self.instance.start_timers()
        self.instance.spawn(self._rebalance_loop(), "rebalance")
        self.instance.every(self.settings.persist_s, self.persist, "commit")
        if self.state.locks:
            self.instance.every(RENEW_S, self._renew_locks, "lock renewal")

    def _subscribe(self, topic: str, wanted: str | Sql) -> None:
        wire = names.with_namespace(topic, self.namespace)
        self.subscriptions[wire] = subscription(wire, wanted, self.instance.now_ms())
        self.instance.topics.add(wire)

    async def subscribe(self, topic: str, wanted: str | Sql) -> None:
        """One more topic, or another filter of one."""
        self._subscribe(topic, wanted)
        await self.instance.refresh_route(names.with_namespace(topic, self.namespace))
        await self._check_filters()
        await self.instance.heartbeat()
        self.wake()

    async def unsubscribe(self, topic: str) -> None:
        """One topic less. Its queues are given up with their offsets."""
        wire = names.with_namespace(topic, self.namespace)
        self.subscriptions.pop(wire, None)
        self.instance.topics.discard(wire)
        self.state = rebalance.unsubscribe(self.state, wire)
        await self.instance.heartbeat()
        await self.rebalance()

    async def close(self, timeout_s: float) -> None:
        """Commits, gives loans back, unregisters, and closes; what cannot be told in time stays untold."""
        if not self.instance.opened or self.instance.closed:
            return
        deadline = asyncio.get_running_loop().time() + timeout_s
        try:
            async with asyncio.timeout(timeout_s):
                async with self._turn:
                    if not rebalance.leave_enabled(self.state):
                        log.warning(
                            "%s leaves while listeners are still at work: their messages will be delivered again",
                            self.group,
                        )
                        self.state = rebalance.abandon(self.state)
                    await self.take(rebalance.leave(self.state), sure=True)
                await self.offsets.flush()
                await self.instance.unregister(consumer_group=self.group, timeout_s=min(1.0, timeout_s))
        except TimeoutError:
            log.warning("%s left without unregistering: time ran out", self.instance.client_id)
        except RefmqError as error:
            log.warning("%s: the last offsets were not stored: %s", self.instance.client_id, error)
        finally:
            left = max(0.1, deadline - asyncio.get_running_loop().time())
            await self.instance.close(left)

    # Steps and their effects ----------------------------------------------------------------------------------------

    async def take(self, step: MemberStep, *, sure: bool = False) -> None:
        """Takes a step and performs its effects in their order. ``sure`` waits for the answers to commits."""
        changed = step.state.held.keys() != self.state.held.keys() if step.state is not self.state else False
        self.state = step.state
        if step.event is not None:
            self.instance.recorder.record(step.event)
        for effect in step.effects:
            match effect:
                case SendCommit(queue, offset, first):
                    # Before a loan is given back the offset has to be there, or the next owner begins too early.
                    await self._write(queue, offset, sure=first or sure or self.state.locks)
                case StartPulling(queue):
                    self._start_pulling(queue)
                case StopPulling(queue):
                    self._stop_pulling(queue)
                case GiveBack(queue):
                    await self._give_back(queue)
        if changed:
            self.changed.set()
            self.changed = asyncio.Event()

    def take_now(self, step: MemberStep) -> None:
        """Takes a step that has no effects."""
        assert not step.effects, "effects have to be waited for"
        self.state = step.state
        if step.event is not None:
            self.instance.recorder.record(step.event)

    async def _write(self, queue: MessageQueue, offset: int, *, sure: bool) -> None:
        try:
            await self.offsets.write(queue, offset, sure=sure)
        except RefmqError as error:
            # Safe: an offset that is too low only repeats messages, and the next turn sends it again.
            log.warning("the offset %d of %s was not stored: %s", offset, queue, error)

    async def _give_back(self, queue: MessageQueue) -> None:
        route = self.instance.routes.get(queue.topic)
        address = master_of(route, queue.broker) if route is not None else None
        if address is None:
            return
        body = LockBatchRequestBody(consumer_group=self.group, client_id=self.instance.client_id, mq_set=(queue,))
        try:
            await self.instance.call(address, self.instance.make(RequestCode.UNLOCK_BATCH_MQ, None, body), 1.0)
        except RefmqError as error:
            log.info("%s was not unlocked, its lock expires in a minute: %s", queue, error)

    # Rebalance ------------------------------------------------------------------------------------------------------

    def wake(self) -> None:
        """Rebalance soon."""
        self._wake.set()

    def _notified(self, connection: Connection, command: RemotingCommand) -> Answer:
        self.wake()
        return None

    def _route_came(self, topic: str, route: TopicRouteData) -> None:
        if topic in self.subscriptions:
            self.wake()

    async def _rebalance_loop(self) -> None:
        quick = 0
        while True:
            self._wake.clear()
            balanced = False
            try:
                balanced = await self.rebalance()
            except RefmqError as error:
                log.warning("rebalance of %s: %s", self.group, error)
            unknown = [topic for topic in self.subscriptions if topic not in self.instance.routes]
            if unknown:
                wait_s = UNKNOWN_TOPIC_S[min(quick, len(UNKNOWN_TOPIC_S) - 1)]
                quick += 1
            else:
                wait_s = self.settings.rebalance_s if balanced else REBALANCE_AGAIN_S
                quick = 0
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(min(wait_s, self.settings.rebalance_s)):
                    await self._wake.wait()
            for topic in unknown:
                if await self.instance.refresh_route(topic) is not None:
                    await self.instance.heartbeat()

    async def rebalance(self) -> bool:
        """One round: read, give up, take. True when everything that is ours is in our hands."""
        if self.assigned:
            return True
        async with self._turn:
            for topic in sorted(self.subscriptions):
                await self._learn(topic)
            before = self.state.held.keys()
            for queue in rebalance.to_release(self.state):
                await self.take(rebalance.release_queue(self.state, queue))
            wanted = rebalance.to_acquire(self.state, sorted(self.subscriptions))
            if self.state.locks:
                await self._lock([queue for queue in wanted if not self.trusts(queue)])
            for queue in wanted:
                await self._acquire(queue)
            left = rebalance.to_acquire(self.state, sorted(self.subscriptions))
            if before != self.state.held.keys():
                await self._tell_versions()
            known = all(rebalance.share(self.state, topic) is not None for topic in self.subscriptions)
            return not left and known and not rebalance.to_release(self.state)

    async def _learn(self, topic: str) -> None:
        route = self.instance.routes.get(topic)
        if route is None:
            return
        self.take_now(rebalance.route_refresh(self.state, topic, subscribe_queues(topic, route)))
        if not self.settings.shares:
            return
        ids = await self._members(route)
        if ids:
            self.take_now(rebalance.view_refresh(self.state, topic, ids))

    async def _members(self, route: TopicRouteData) -> tuple[str, ...]:
        """The member list of one broker; of the first that knows it, beginning anywhere."""
        addresses = list(all_addresses(route))
        self.instance.random.shuffle(addresses)
        command = self.instance.make(
            RequestCode.GET_CONSUMER_LIST_BY_GROUP, GetConsumerListByGroupRequest(consumer_group=self.group)
        )
        for address in addresses:
            try:
                answer = await self.instance.ask(address, command, ASK_TIMEOUT_S)
            except NetworkError as error:
                log.info("no member list: %s", error)
                continue
            if answer.code != ResponseCode.SUCCESS:
                continue
            ids = decode_body(ConsumerIdList, answer.body).consumer_id_list
            if self.instance.client_id in ids:
                return ids
            # A broker that has not heard of us (it was restarted) would make us drop everything: tell it first.
            await self.instance.heartbeat()
            answer = await self.instance.ask(address, command, ASK_TIMEOUT_S)
            if answer.code == ResponseCode.SUCCESS:
                return decode_body(ConsumerIdList, answer.body).consumer_id_list
        return ()

    async def _tell_versions(self) -> None:
        """After a change brokers hear of newer subscriptions, as upstream's clients tell them."""
        now_ms = self.instance.now_ms()
        for topic, data in self.subscriptions.items():
            self.subscriptions[topic] = replace(data, sub_version=max(now_ms, data.sub_version + 1))
        await self.instance.heartbeat()

    async def _acquire(self, queue: MessageQueue) -> None:
        if not rebalance.acquire_queue_enabled(self.state, queue, self.clock_ms()):
            return
        try:
            known = await self.offsets.read(queue)
            begin = known if known is not None else await self._beginning(queue)
            if begin < 0:
                raise WireError("offset", 0, "0 or more", begin)
        except RefmqError as error:
            # Not "no offset": the queue waits until somebody can tell.
            log.warning("%s is not taken yet, its offset is unknown: %s", queue, error)
            return
        step = rebalance.acquire_queue(self.state, queue, begin, committed=known is not None, now_ms=self.clock_ms())
        if known is None and step.effects:
            try:
                await self.offsets.write(queue, begin, sure=True)
            except RefmqError as error:
                log.warning("%s is not taken yet, its first offset was not stored: %s", queue, error)
                return
            # Other queues went on while the write waited: the step is taken from the state as it is now, and the first
            # offset is committed already.
            now_ms = self.clock_ms()
            if not rebalance.acquire_queue_enabled(self.state, queue, now_ms):
                return
            step = rebalance.acquire_queue(self.state, queue, begin, committed=True, now_ms=now_ms)
        await self.take(step)

    async def _beginning(self, queue: MessageQueue) -> int:
        place = beginning(self.settings.start, queue.topic)
        if place.ask is Ask.END:
            return await self.places.max_offset(queue)
        if place.ask is Ask.TIME:
            return await self.places.offset_at(queue, place.at_ms)
        return place.offset

    # Locks ----------------------------------------------------------------------------------------------------------

    def clock_ms(self) -> int:
        return int(self.instance.loop.time() * 1000)

    def trusts(self, queue: MessageQueue) -> bool:
        return rebalance.trusts(self.state, queue, self.clock_ms())

    async def _lock(self, queues: Sequence[MessageQueue]) -> None:
        by_broker: dict[str, list[MessageQueue]] = {}
        for queue in queues:
            route = self.instance.routes.get(queue.topic)
            address = master_of(route, queue.broker) if route is not None else None
            if address is not None:
                by_broker.setdefault(address, []).append(queue)
        for address, wanted in by_broker.items():
            body = LockBatchRequestBody(
                consumer_group=self.group, client_id=self.instance.client_id, mq_set=tuple(wanted)
            )
            asked_at_ms = self.clock_ms()
            try:
                answer = await self.instance.call(
                    address, self.instance.make(RequestCode.LOCK_BATCH_MQ, None, body), 1.0
                )
            except RefmqError as error:
                log.info("no answer to a lock: %s", error)  # trust ages by itself
                continue
            granted = set(decode_body(LockBatchResponseBody, answer.body).lock_ok_mq_set)
            for queue in wanted:
                self.state = rebalance.lock_queue(self.state, queue, granted=queue in granted, asked_at_ms=asked_at_ms)
                self._watch_trust(queue)
                if queue not in granted:
                    self._receiver.expired(queue)

    def _watch_trust(self, queue: MessageQueue) -> None:
        """Looks when the trust in a lock is over, so that no listener outlives it (W-16)."""
        timer = self._trust_timers.pop(queue, None)
        if timer is not None:
            timer.cancel()
        until_ms = self.state.trust.get(queue)
        if until_ms is not None and not self.instance.closed:
            loop = asyncio.get_running_loop()
            self._trust_timers[queue] = loop.call_at(until_ms / 1000, self._trust_over, queue)

    def _trust_over(self, queue: MessageQueue) -> None:
        now_ms = max(self.clock_ms(), self.state.trust.get(queue, 0))  # a timer may be early by the clock's resolution
        self.take_now(rebalance.trust_expire(self.state, queue, now_ms))
        self._trust_timers.pop(queue, None)
        self._receiver.expired(queue)

    async def _renew_locks(self) -> None:
        held = sorted(self.state.held)
        await self._lock(held)
        for queue in sorted(self.state.trust):
            self.take_now(rebalance.trust_expire(self.state, queue, self.clock_ms()))
        for queue in held:
            self.nudge(queue)
            self._receiver.came(queue, ())  # a lock that was lost and is back: what waited for it can go on

    # Pulling --------------------------------------------------------------------------------------------------------

    def _start_pulling(self, queue: MessageQueue) -> None:
        self._stop_task(queue)
        self._room[queue] = asyncio.Event()
        self._pulling[queue] = self.instance.spawn(self._pull_loop(queue), f"pull {queue}")

    def _stop_task(self, queue: MessageQueue) -> None:
        task = self._pulling.pop(queue, None)
        if task is not None:
            task.cancel()

    def _stop_pulling(self, queue: MessageQueue) -> None:
        self._stop_task(queue)
        if queue not in self.state.held:
            self._watch_trust(queue)
        self._room.pop(queue, None)
        self._suggested.pop(queue, None)
        self._receiver.went(queue)

    def nudge(self, queue: MessageQueue) -> None:
        """There may be room in the cache of a queue again, or its lock is there."""
        if (event := self._room.get(queue)) is not None:
            event.set()

    def pause(self, queue: MessageQueue) -> None:
        self._paused.add(queue)

    def resume(self, queue: MessageQueue) -> None:
        self._paused.discard(queue)
        self.nudge(queue)

    async def _pull_loop(self, queue: MessageQueue) -> None:
        while True:
            held = self.state.held.get(queue)
            if held is None or held.dropped:
                return
            full = is_full(held, self.settings.limits) or queue in self._paused or not self.trusts(queue)
            if full:
                await self._wait_for_room(queue)
                continue
            pause_s = 0.0
            try:
                await self._pull(queue, held.next_offset)
            except SubscriptionNotLatest:
                await self.instance.heartbeat()
                pause_s = FLOW_CONTROL_S
            except BrokerError as error:
                pause_s = FLOW_CONTROL_S if error.code == ResponseCode.FLOW_CONTROL else ERROR_S
                if error.code in (ResponseCode.SUBSCRIPTION_NOT_EXIST, ResponseCode.SUBSCRIPTION_GROUP_NOT_EXIST):
                    await self.instance.heartbeat()
                    pause_s = 0.1
                log.info("pull from %s: %s", queue, error)
            except RefmqError as error:
                log.info("pull from %s: %s", queue, error)
                await self.instance.refresh_route(queue.topic)
                pause_s = ERROR_S
            if pause_s:
                await asyncio.sleep(pause_s)

    async def _wait_for_room(self, queue: MessageQueue) -> None:
        event = self._room.get(queue)
        if event is None:
            return
        event.clear()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(1.0):
                await event.wait()

    async def _pull(self, queue: MessageQueue, offset: int) -> None:
        data = self.subscriptions.get(queue.topic) or SubscriptionData(topic=queue.topic, sub_string="*")
        count, wait_ms = self.settings.pull_batch, self.settings.suspend_ms
        requests = self.instance.requests_of(self.group, queue.topic) if data.sub_string == "*" else None
        if requests is None:
            answer, header = await self.ask_pull(queue, offset, count, data, wait_ms)
        else:
            with requests.pulling(queue, offset, count, wait_ms) as told:
                answer, header = await self.ask_pull(queue, offset, count, data, wait_ms)
                told.answer, told.code, told.body = header, answer.code, answer.body
        if answer.code == ResponseCode.PULL_OFFSET_MOVED:
            log.warning("%s has no offset %d; it goes on at %d", queue, offset, header.next_begin_offset)
            self.take_now(rebalance.correct_offset(self.state, queue, offset, header.next_begin_offset))
            return
        messages = self.decoded(queue, answer, data) if answer.code == ResponseCode.SUCCESS else []
        if not rebalance.pull_messages_enabled(self.state, queue, offset):
            return
        next_offset = max(offset, header.next_begin_offset)
        check_pulled(offset, next_offset, (message.queue_offset for message in messages))
        sizes = [(message.queue_offset, message.stored_bytes) for message in messages]
        self.take_now(rebalance.pull_messages(self.state, queue, offset, next_offset, sizes))
        if messages:
            self._receiver.came(queue, messages)

    def decoded(self, queue: MessageQueue, answer: RemotingCommand, data: SubscriptionData) -> list[ReceivedMessage]:
        """The messages of an answer that are wanted."""
        retried = queue.topic == self.retry_topic
        messages = read_messages(
            answer.body,
            queue,
            namespace=self.namespace,
            group=self.group,
            renamed=retried or self.namespace is not None,
            settler=self._settler,
            recorded=not isinstance(self.instance.recorder, NoRecorder),
        )
        return [message for message in messages if retried or wants(data, message)]

    async def ask_pull(
        self, queue: MessageQueue, offset: int, count: int, data: SubscriptionData, suspend_ms: int
    ) -> tuple[RemotingCommand, PullMessageResponse]:
        """One pull request and its answer: 0, 19, 20 or 21. Anything else is a ``BrokerError``."""
        route = self.instance.routes.get(queue.topic) or await self.instance.refresh_route(queue.topic)
        reader = reader_of(route, queue.broker, self._suggested.get(queue, 0)) if route is not None else None
        if reader is None:
            raise ConnectFailed(queue.broker, "no nameserver knows this broker")
        flags = PullSysFlag.SUSPEND if suspend_ms else PullSysFlag(0)
        held = self.state.held.get(queue)
        commit = held.memory if held is not None and self.settings.shares else None
        if commit and not reader.is_slave and not self.settings.lite:
            flags |= PullSysFlag.COMMIT_OFFSET
            if (event := rebalance.commit_send(self.state, queue).event) is not None:
                self.instance.recorder.record(event)
        posts = self.settings.lite or queue.topic not in self.subscriptions
        if posts:
            flags |= PullSysFlag.SUBSCRIPTION
        if self.settings.lite:
            flags |= PullSysFlag.LITE_PULL
        header = PullMessageRequest(
            consumer_group=self.group,
            topic=queue.topic,
            queue_id=queue.queue_id,
            queue_offset=offset,
            max_msg_nums=count,
            sys_flag=int(flags),
            commit_offset=commit or 0,
            suspend_timeout_millis=suspend_ms,
            subscription=data.sub_string if posts else None,
            sub_version=0 if posts else data.sub_version,
            expression_type=data.expression_type,
            broker_name=queue.broker,
        )
        command = self.instance.make(RequestCode.PULL_MESSAGE, header)
        answer = await self.instance.ask(reader.address, command, suspend_ms / 1000 + PULL_TIMEOUT_S / 2)
        if answer.code not in (
            ResponseCode.SUCCESS,
            ResponseCode.PULL_NOT_FOUND,
            ResponseCode.PULL_RETRY_IMMEDIATELY,
            ResponseCode.PULL_OFFSET_MOVED,
        ):
            raise broker_error(reader.address, command.code, answer)
        said = decode_header(PullMessageResponse, answer)
        self._suggested[queue] = said.suggest_which_broker_id
        return answer, said

    # Offsets --------------------------------------------------------------------------------------------------------

    async def persist(self) -> None:
        """Commits the offset of every queue."""
        for queue in sorted(self.state.held):
            await self.take(rebalance.commit_send(self.state, queue))
        await self.offsets.flush()

    async def seek(self, queue: MessageQueue, offset: int) -> None:
        """Goes to another place in a queue of ours."""
        if queue not in self.state.held:
            raise UsageError(f"{queue} is not assigned to this consumer.")
        async with self._turn:
            await self.take(rebalance.seek_queue(self.state, queue, offset), sure=True)

    async def assign(self, queues: Sequence[MessageQueue]) -> None:
        """Takes exactly these queues, whoever else reads them."""
        self.assigned = True
        wire = [replace(queue, topic=names.with_namespace(queue.topic, self.namespace)) for queue in queues]
        for topic in {queue.topic for queue in wire}:
            self.instance.topics.add(topic)
            if await self.instance.refresh_route(topic) is None:
                raise await self.instance.no_route(topic)
        async with self._turn:
            state = self.state
            for topic in {queue.topic for queue in (*wire, *state.held)}:
                mine = tuple(sorted(queue for queue in wire if queue.topic == topic))
                state = replace(state, shares=False, routes=state.routes.insert(topic, mine))
            self.state = state
            for queue in rebalance.to_release(self.state):
                await self.take(rebalance.release_queue(self.state, queue))
            for queue in rebalance.to_acquire(self.state, sorted({queue.topic for queue in wire})):
                await self._acquire(queue)
                if queue not in self.state.held:
                    raise ConnectFailed(queue.broker, f"the offset of {queue} could not be read")

    # What brokers are told ------------------------------------------------------------------------------------------

    def _heartbeat_data(self) -> HeartbeatData:
        model = MessageModel.CLUSTERING if self.settings.shares else MessageModel.BROADCASTING
        consumer = ConsumerData(
            group_name=self.group,
            consume_type=self.settings.consume_type,
            message_model=model,
            consume_from_where=from_where(self.settings.start),
            subscription_data_set=tuple(self.subscriptions.values()),
        )
        return HeartbeatData(client_id=self.instance.client_id, consumer_data_set=(consumer,))

    async def _check_filters(self) -> None:
        """Lets a broker read every expression that is more than tags, so that a mistake shows at once."""
        for topic, data in self.subscriptions.items():
            route = self.instance.routes.get(topic)
            if data.expression_type == EXPRESSION_TAG or route is None:
                continue
            body = CheckClientRequestBody(client_id=self.instance.client_id, group=self.group, subscription_data=data)
            command = self.instance.make(RequestCode.CHECK_CLIENT_CONFIG, None, body)
            for address in all_addresses(route)[:1]:
                await self.instance.call(address, command, ASK_TIMEOUT_S)
