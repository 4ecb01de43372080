"""The applications of a history: real consumers and a real producer, and a record of what they see.

What an application sees is recorded apart from what its client records of itself:

| operation   | begins when                   | ends when                                                     |
|-------------|-------------------------------|---------------------------------------------------------------|
| `Produce`   | the first attempt goes out    | the producer says what came of it                             |
| `Subscribe` | a consumer is about to open   | it is open                                                    |
| `Listen`    | the listener is called        | it returns (`ok`), raises (`fail`), is cancelled (`unknown`)  |
"""

from __future__ import annotations

import asyncio
from collections import Counter
from dataclasses import dataclass, field, replace
from typing import Final

from conformance.group.attempts import Choice, writable
from conformance.group.history import Asked, Produce, Setting
from refmq.aio.consumer import Consumer
from refmq.aio.producer import Producer
from refmq.aio.sending import Attempt
from refmq.client.message import ReceivedMessage
from refmq.errors import BrokerError, RefmqError, SendFailed
from refmq.model.fingerprint import message_fingerprint
from refmq.model.ids import MessageQueue
from refmq.model.step import Event
from refmq.protocol.codes import RequestCode
from refmq.protocol.command import RemotingCommand
from refmq.sim.world import Node
from refmq.trace.record import Outcome

TOPIC: Final = "t"
GROUP: Final = "g"
PRODUCER_GROUP: Final = "p"
WANTED_A: Final = 0b01
WANTED_ALL: Final = 0b11
"""Classes of messages, as bits: even numbers have tag a, odd ones tag b."""

LISTENER_S: Final = (0.001, 0.005, 0.03)
"""What a listener takes without further ado."""
OPEN_AGAIN_S: Final = 1.0
NO_SUCH_REQUEST: Final = 9_999
"""No broker knows this request: it answers with an error, which is what `Refuse` is about."""

CODES: Final[dict[Asked, RequestCode]] = {
    "offset": RequestCode.QUERY_CONSUMER_OFFSET,
    "commit": RequestCode.UPDATE_CONSUMER_OFFSET,
    "members": RequestCode.GET_CONSUMER_LIST_BY_GROUP,
    "lock": RequestCode.LOCK_BATCH_MQ,
    "unlock": RequestCode.UNLOCK_BATCH_MQ,
    "heartbeat": RequestCode.HEART_BEAT,
    "pull": RequestCode.PULL_MESSAGE,
    "send back": RequestCode.CONSUMER_SEND_MSG_BACK,
    "route": RequestCode.GET_ROUTEINFO_BY_TOPIC,
    "max offset": RequestCode.GET_MAX_OFFSET,
}


class NotNow(Exception):
    """What a listener raises that cannot handle a message."""


@dataclass(frozen=True, slots=True)
class Plan:
    """What listeners will do with a message."""

    fails: int
    takes_ms: int


@dataclass(slots=True)
class Common:
    """What the applications of a history share."""

    setting: Setting
    nameservers: list[str]
    operations: int = 0
    messages: int = 0
    plans: dict[int, Plan] = field(default_factory=dict)
    failed: dict[int, int] = field(default_factory=dict)
    """Message -> how often a listener has failed."""
    listening: int = 0
    last_heard_s: float = 0.0
    """When a listener was last called, or done."""

    choices: list[Choice] = field(default_factory=list)
    """Of messages whose queue the producer chose, in their order."""
    requests: Counter[int] = field(default_factory=Counter)
    """What consumers asked, by code."""

    def begin(self) -> int:
        self.operations += 1
        return self.operations


class Member:
    """One consumer on one machine, in one of its lives."""

    def __init__(self, node: Node, common: Common) -> None:
        self.node = node
        self.common = common
        self.refusals: dict[int, int] = {}
        """Code of a request -> how many of them will be refused."""
        self._attempt = 0

    async def run(self) -> None:
        """Opens a consumer, and closes it in good order when it is cancelled."""
        while True:
            consumer = self._make()
            operation = self.common.begin()
            self._subscribed(operation, Outcome.INVOKE)
            outcome = Outcome.UNKNOWN
            try:
                await consumer.open()
                outcome = Outcome.OK
            except RefmqError:
                outcome = Outcome.FAIL
            finally:
                self._subscribed(operation, outcome)
            if outcome is Outcome.FAIL:
                await asyncio.sleep(OPEN_AGAIN_S)
                continue
            try:
                await asyncio.Event().wait()
            finally:
                await consumer.close()

    def _make(self) -> Consumer:
        self._attempt += 1
        setting = self.common.setting
        self._name = f"{self.node.life}.{self._attempt}"
        self.actor = f"{GROUP}@{self.node.address}@{self._name}"
        return Consumer(
            self.common.nameservers,
            group=GROUP,
            topics={TOPIC: "a" if setting.tag_a else "*"},
            mode="orderly" if setting.orderly else "concurrent",
            start="last" if setting.start_at_last else "first",
            listener=self._listen,
            concurrency=setting.concurrency,
            max_retries=setting.retries_max,
            prefetch=setting.prefetch,
            pull_batch=setting.pull_batch,
            client_ip=self.node.address,
            instance_name=self._name,
            seed=self.node.process.entropy.getrandbits(63),
            recorder=self.node.recorder,
            rpc_hook=self._hook,
        )

    def _hook(self, address: str, command: RemotingCommand) -> RemotingCommand:
        self.common.requests[command.code] += 1
        left = self.refusals.get(command.code, 0)
        if not left:
            return command
        self.refusals[command.code] = left - 1
        return replace(command, code=NO_SUCH_REQUEST)

    def _subscribed(self, operation: int, outcome: Outcome) -> None:
        setting = self.common.setting
        wanted = WANTED_A if setting.tag_a else WANTED_ALL
        event = Event(
            "Subscribe",
            self.actor,
            TOPIC,
            a=wanted,
            b=int(setting.orderly),
            c=setting.retries_max,
            d=int(not setting.start_at_last),
        )
        self.node.recorder.record(event, outcome, operation)

    async def _listen(self, message: ReceivedMessage) -> None:
        common = self.common
        number = int(message.body.partition(b":")[0])
        plan = common.plans[number]
        operation = common.begin()
        self._listened(operation, Outcome.INVOKE, message)
        common.listening += 1
        outcome = Outcome.UNKNOWN
        try:
            await asyncio.sleep(plan.takes_ms / 1000 or self.node.process.entropy.choice(LISTENER_S))
            if common.failed.get(number, 0) < plan.fails:
                common.failed[number] = common.failed.get(number, 0) + 1
                outcome = Outcome.FAIL
                raise NotNow
            outcome = Outcome.OK
        finally:
            common.listening -= 1
            common.last_heard_s = self.node.world.loop.time()
            self._listened(operation, outcome, message)

    def _listened(self, operation: int, outcome: Outcome, message: ReceivedMessage) -> None:
        queue = message.queue
        event = Event(
            "Listen",
            self.actor,
            f"{queue.topic}@{queue.broker}",
            queue.queue_id,
            a=message.reconsume_times,
            b=message.queue_offset,
            c=message.fingerprint if _is_whole(message) else message.fingerprint ^ 1,
        )
        self.node.recorder.record(event, outcome, operation)


def _keys(number: int) -> tuple[str, str]:
    return f"k{number}", f"l{number}"


def _is_whole(message: ReceivedMessage) -> bool:
    """Whether a message has what its sender gave it, however often it was sent back. Otherwise it is another one."""
    number = int(message.body.partition(b":")[0])
    said = (message.topic, message.properties.get("number"), tuple(message.keys), message.tag)
    return said == (TOPIC, str(number), _keys(number), "ab"[number % 2])


class Sending:
    """The producer of a history."""

    def __init__(self, node: Node, common: Common) -> None:
        self.node = node
        self.common = common
        self._opened = asyncio.Event()
        self._begun: dict[asyncio.Task[object] | None, tuple[int, int, int]] = {}
        """Task that sends -> operation, class of the message, its fingerprint when it has gone out."""
        self._choosing: dict[asyncio.Task[object] | None, Choice] = {}

    async def run(self) -> None:
        producer = Producer(
            self.common.nameservers,
            group=PRODUCER_GROUP,
            client_ip=self.node.address,
            instance_name="producer",
            seed=self.node.process.entropy.getrandbits(63),
            default_topic_queues=self.common.setting.queues,
            before_send=[self._goes_out],
        )
        async with producer:
            self._producer = producer
            self._opened.set()
            await asyncio.Event().wait()

    async def produce(self, step: Produce, broker: str) -> None:
        await self._opened.wait()
        for _ in range(step.count):
            self.common.messages += 1
            await self._send(step, self.common.messages, None if step.anywhere else broker)

    async def _send(self, step: Produce, number: int, broker: str | None) -> None:
        self.common.plans[number] = Plan(step.fails, step.takes_ms)
        body = f"{number}:".encode().ljust(step.body_bytes, b".")
        task, operation = asyncio.current_task(), self.common.begin()
        self._begun[task] = (operation, number % 2, 0)
        if broker is None:
            self.common.choices.append(Choice())
            self._choosing[task] = self.common.choices[-1]

        def chosen(queues: object) -> MessageQueue:
            assert isinstance(queues, list)
            there = [queue for queue in queues if queue.broker == broker] or queues
            queue: MessageQueue = there[step.queue % len(there)]
            return queue

        outcome = Outcome.OK
        try:
            queue = chosen if broker is not None else None
            said = {"number": str(number)}
            await self._producer.send(
                TOPIC, body, tag="ab"[number % 2], keys=_keys(number), properties=said, queue=queue
            )
        except SendFailed as error:
            outcome = Outcome.UNKNOWN if error.maybe_stored else Outcome.FAIL
        except BrokerError:
            outcome = Outcome.UNKNOWN
        except RefmqError:  # nothing has gone out
            outcome = Outcome.FAIL
        finally:
            _, kind, message = self._begun.pop(task)
            self._choosing.pop(task, None)
        if message:
            self._record(outcome, operation, kind, message)

    def _goes_out(self, attempt: Attempt) -> None:
        task = asyncio.current_task()
        operation, kind, known = self._begun[task]
        if task in self._choosing:
            self._note(self._choosing[task], attempt.queue)
        if known:
            return
        message = message_fingerprint(attempt.plan.msg_id.encode(), attempt.plan.body)
        self._begun[task] = (operation, kind, message)
        self._record(Outcome.INVOKE, operation, kind, message)

    def _note(self, choice: Choice, queue: MessageQueue) -> None:
        """An attempt, and what there was to choose from."""
        route = self._producer._instance.routes.get(TOPIC)
        queues = writable(route) if route is not None else ()
        if not choice.tried:
            choice.queues = queues
        choice.tried.append(queue)
        choice.brokers.append(frozenset(each.broker for each in queues))

    def _record(self, outcome: Outcome, operation: int, kind: int, message: int) -> None:
        event = Event("Produce", PRODUCER_GROUP, TOPIC, a=kind, c=message)
        self.node.recorder.record(event, outcome, operation)
