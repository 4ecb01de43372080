"""Sending one planned message: routes, attempts at other brokers, time. Producers and consumers' retries share it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Final

from refmq.aio.instance import Instance
from refmq.client.answers import broker_error
from refmq.client.faults import Chooser, choose_queue, note_attempt
from refmq.client.message import SendResult, SendStatus
from refmq.client.route import master_of, publish_queues
from refmq.client.send import SendPlan, SendSettings, send_request, sent
from refmq.errors import (
    BrokerError,
    ConnectFailed,
    NetworkError,
    RouteNotFound,
    SendFailed,
    UsageError,
)
from refmq.model.ids import MessageQueue
from refmq.net.making import new_command, new_result
from refmq.protocol import names
from refmq.protocol.bodies.route import TopicRouteData
from refmq.protocol.codes import PRODUCER_RETRIES, ResponseCode

RETRIED: Final = PRODUCER_RETRIES | {ResponseCode.SYSTEM_BUSY, ResponseCode.GO_AWAY}
"""Answers after which another broker is tried. The last two are those of 5.3.3: they say that nothing was stored."""

QueueChoice = Callable[[Sequence[MessageQueue]], MessageQueue]


@dataclass(frozen=True, slots=True)
class Attempt:
    """One attempt as a hook sees it: ``result`` or ``error`` is set when it is over."""

    plan: SendPlan
    queue: MessageQueue
    address: str
    result: SendResult | None = None
    error: Exception | None = None
    took_ms: int = 0


AttemptHook = Callable[[Attempt], None]


class Sender:
    """Sends plans for one producer group."""

    def __init__(
        self,
        instance: Instance,
        settings: SendSettings,
        *,
        retries: int = 2,
        avoids_slow: bool = False,
        retry_not_durable: bool = False,
        before: Sequence[AttemptHook] = (),
        after: Sequence[AttemptHook] = (),
    ) -> None:
        self.instance = instance
        self.settings = settings
        self.chooser = Chooser(instance.random.randrange(1 << 20), avoids_slow)
        self._retries = retries
        self._retry_not_durable = retry_not_durable
        self._before = tuple(before)
        self._after = tuple(after)
        self._known: dict[str, tuple[TopicRouteData, tuple[MessageQueue, ...]]] = {}
        """Topic -> its route and the queues that follow from it, as long as the route is the same."""

    async def send(self, plan: SendPlan, timeout_s: float, choice: QueueChoice | None = None) -> SendResult:
        """The result of the first attempt that stored the message.

        With ``choice`` the queue is the caller's: then there is one attempt only, because another queue would break the
        order that the choice is there for.
        """
        loop = self.instance.loop
        began = loop.time()
        known = self._known.get(plan.topic)
        if known is not None and known[0] is self.instance.routes.get(plan.topic):
            queues = known[1]
        else:
            queues = await self._queues(plan.topic)
        attempts: list[str] = []
        maybe_stored = False
        stored: SendResult | None = None
        last_broker: str | None = None
        requests = self.instance.requests_of(self.settings.group, plan.topic)
        for number in range(1 if choice is not None else 1 + self._retries):
            left = timeout_s - (loop.time() - began)
            if left <= 0:
                break
            queue = self._choose(queues, choice, last_broker)
            last_broker = queue.broker
            try:
                if requests is None:
                    result = await self._attempt(plan, queue, left)
                else:
                    with requests.sending(plan, queue, is_final=number == 0) as told:
                        result = told.result = await self._attempt(plan, queue, left)
            except BrokerError as error:
                attempts.append(str(error))
                if error.code not in RETRIED:
                    if stored is not None:
                        return stored
                    raise
                # What the broker says it did not store, it did not store; only an unknown mishap leaves it open.
                maybe_stored |= error.code == ResponseCode.SYSTEM_ERROR
            except NetworkError as error:
                attempts.append(str(error))
                maybe_stored |= not isinstance(error, ConnectFailed)
                if isinstance(error, ConnectFailed):
                    await self.instance.refresh_route(plan.topic)
                    queues = await self._queues(plan.topic)
            else:
                if result.status is SendStatus.SEND_OK or not self._retry_not_durable:
                    return result
                stored = result
        if stored is not None:
            return stored
        topic = names.without_namespace(plan.topic, self.settings.namespace)
        raise SendFailed(topic, tuple(attempts), loop.time() - began, maybe_stored)

    async def send_oneway(self, plan: SendPlan, timeout_s: float, choice: QueueChoice | None = None) -> None:
        """Hands the message to a connection, once. What becomes of it nobody hears."""
        queues = await self._queues(plan.topic)
        queue = self._choose(queues, choice, None)
        address = await self._address(plan.topic, queue.broker)
        command = send_request(self.settings, plan, queue, self.instance.now_ms(), is_oneway=True)
        requests = self.instance.requests_of(self.settings.group, plan.topic)
        with requests.sending(plan, queue) if requests is not None else nullcontext():
            await self.instance.tell(address, command, timeout_s)

    async def queues(self, topic: str) -> tuple[MessageQueue, ...]:
        """The queues that may be sent to, with the names that the application knows."""
        found = await self._queues(names.with_namespace(topic, self.settings.namespace))
        return tuple(MessageQueue(topic, queue.broker, queue.queue_id) for queue in found)

    async def _queues(self, topic: str) -> tuple[MessageQueue, ...]:
        route = self.instance.routes.get(topic) or await self._route(topic)
        known = self._known.get(topic)
        if known is not None and known[0] is route:
            return known[1]
        queues = publish_queues(topic, route)
        self._known[topic] = (route, queues)
        if not queues:
            del self._known[topic]
            shown = names.without_namespace(topic, self.settings.namespace)
            raise RouteNotFound(
                shown,
                self.instance.name_servers,
                "the topic is known, but none of its queues may be written to",
                "Is a master up, and has the topic the permission to be written (perm 2 or 6)?",
            )
        return queues

    async def _route(self, topic: str) -> TopicRouteData:
        return await self.instance.route_to_send(topic, self.settings.default_topic_queues)

    def _choose(
        self, queues: tuple[MessageQueue, ...], choice: QueueChoice | None, last_broker: str | None
    ) -> MessageQueue:
        if choice is None:
            now_ms = self.instance.now_ms() if self.chooser.avoids_slow else 0  # nobody else looks at it
            self.chooser, queue = choose_queue(self.chooser, queues, last_broker, now_ms)
            return queue
        namespace = self.settings.namespace
        shown = [
            MessageQueue(names.without_namespace(queue.topic, namespace), queue.broker, queue.queue_id)
            for queue in queues
        ]
        chosen = choice(shown)
        for real, seen in zip(queues, shown, strict=True):
            if seen == chosen:
                return real
        raise UsageError(f"{chosen} is not one of the queues that can be sent to.")

    async def _address(self, topic: str, broker: str) -> str:
        route = self.instance.routes.get(topic) or await self._route(topic)
        address = master_of(route, broker)
        if address is None:
            refreshed = await self.instance.refresh_route(topic)
            address = master_of(refreshed, broker) if refreshed is not None else None
        if address is None:
            raise ConnectFailed(broker, "no nameserver knows a master of this broker")
        return address

    async def _attempt(self, plan: SendPlan, queue: MessageQueue, left_s: float) -> SendResult:
        instance = self.instance
        route = instance.routes.get(plan.topic)
        address = None if route is None else master_of(route, queue.broker)
        if address is None:
            address = await self._address(plan.topic, queue.broker)
        for hook in self._before:
            hook(Attempt(plan, queue, address))
        began_ms = instance.now_ms()
        command = send_request(self.settings, plan, queue, began_ms, new=new_command)
        result: SendResult | None = None
        problem: Exception | None = None
        try:
            answer = await instance.ask_further(address, command, left_s)
            result = sent(answer, plan, queue, self.settings.namespace, new=new_result)
            if result is None:
                raise broker_error(address, command.code, answer)
            return result
        except (NetworkError, BrokerError) as error:
            problem = error
            raise
        finally:
            if self._after or self.chooser.avoids_slow:
                self._note(plan, queue, address, result, problem, began_ms)

    def _note(
        self,
        plan: SendPlan,
        queue: MessageQueue,
        address: str,
        result: SendResult | None,
        problem: Exception | None,
        began_ms: int,
    ) -> None:
        """After an attempt, for whoever wants to know."""
        now_ms = self.instance.now_ms()
        took_ms = now_ms - began_ms
        self.chooser = note_attempt(self.chooser, queue.broker, took_ms, now_ms, failed=problem is not None)
        for hook in self._after:
            hook(Attempt(plan, queue, address, result, problem, took_ms))
