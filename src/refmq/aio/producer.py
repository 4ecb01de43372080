"""The producer.

    async with refmq.Producer("127.0.0.1:9876", group="orders-svc") as producer:
        result = await producer.send("Orders", b"...", tag="Paid", keys=["o-17"])

Everything it decides is in `refmq.client`; here are waits, time-outs and connections.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from types import TracebackType
from typing import Final, Self, Unpack

from refmq.aio.instance import CLOSE_TIMEOUT_S, ConnectionOptions, Instance
from refmq.aio.sending import Attempt, AttemptHook, QueueChoice, Sender
from refmq.aio.traces import MessageTraces
from refmq.client.faults import queue_by_hash
from refmq.client.message import (
    BODY_BYTES_MAX,
    Message,
    ReceivedMessage,
    SendResult,
    SendStatus,
    checked_group,
    checked_message,
    received_message,
)
from refmq.client.message_trace import end_transaction_entry, pub_entry
from refmq.client.route import master_of
from refmq.client.send import MESSAGE_TYPE_REPLY, SendSettings, plan_batch, plan_send
from refmq.client.transaction import TransactionState, end_of_check, end_of_send
from refmq.errors import (
    ConnectFailed,
    InvalidMessage,
    NoReply,
    RefmqError,
    SendNotDurable,
    UsageError,
    WireError,
)
from refmq.model.ids import MessageQueue
from refmq.net.connection import Answer, Connection
from refmq.net.making import new_message
from refmq.protocol import names
from refmq.protocol.bodies.heartbeat import HeartbeatData, ProducerData
from refmq.protocol.codes import RequestCode, ResponseCode
from refmq.protocol.command import RemotingCommand, response
from refmq.protocol.compression import COMPRESS_OVER_BYTES, CompressionType, decompress
from refmq.protocol.headers.codec import decode_header
from refmq.protocol.headers.messages import CheckTransactionStateRequest
from refmq.protocol.headers.send import ReplyMessageRequest
from refmq.protocol.record import decode_record, parse_properties

SEND_TIMEOUT_S: Final = 3.0  # sendMsgTimeout, 4.9.8
CHECKS_MAX: Final = 2_000  # checkRequestHoldMax, 4.9.8: questions beyond it get no answer, and are asked again
REQUESTS_MAX: Final = 10_000
"""Requests that may wait for their replies at a time."""

log = logging.getLogger("refmq.client")

TransactionCheck = Callable[[ReceivedMessage], Awaitable[TransactionState]]
"""Answers the broker's question how a transaction came out."""


class Producer:
    """Sends messages to any topic.

    ``namesrv`` is the address of the nameservers, ``host:port;host:port``; without one, ``NAMESRV_ADDR`` is read.
    ``timeout`` (seconds) is for a send with all its attempts; ``retries`` is how many attempts follow a failed one.
    ``check`` answers the broker when it asks how a transaction came out. ``message_trace`` records what becomes of each
    message in ``RMQ_SYS_TRACE_TOPIC``. A send that is cancelled may or may not have happened, as one that timed out.
    """

    def __init__(
        self,
        namesrv: str | list[str] | tuple[str, ...] | None = None,
        *,
        group: str,
        timeout: float = SEND_TIMEOUT_S,
        retries: int = 2,
        check: TransactionCheck | None = None,
        avoid_slow_brokers: bool = False,
        retry_not_durable: bool = False,
        raise_not_durable: bool = True,
        max_body_bytes: int = BODY_BYTES_MAX,
        compress_over: int = COMPRESS_OVER_BYTES,
        compression: CompressionType = CompressionType.ZLIB,
        default_topic_queues: int = 4,
        message_trace: bool = False,
        trace_topic: str = names.TRACE_TOPIC,
        before_send: Sequence[AttemptHook] = (),
        after_send: Sequence[AttemptHook] = (),
        **options: Unpack[ConnectionOptions],
    ) -> None:
        self.group = checked_group(group, "producer")
        if timeout <= 0 or retries < 0:
            raise UsageError("A producer needs a timeout above 0, and 0 or more retries.")
        self._timeout = timeout
        self._check = check
        self._raise_not_durable = raise_not_durable
        self._instance = Instance(namesrv, "producer", heartbeat_data=self._heartbeat_data, options=options)
        namespace = self._instance.namespace
        self._wire_group = names.with_namespace(group, namespace)
        settings = SendSettings(
            group=self._wire_group,
            namespace=namespace,
            body_bytes_max=max_body_bytes,
            compress_over_bytes=compress_over,
            compression=compression,
            default_topic_queues=default_topic_queues,
        )
        self._trace_topic = trace_topic
        self._traces = MessageTraces(self._send_trace) if message_trace else None
        hooks = (*after_send, self._trace_attempt) if message_trace else tuple(after_send)
        self._sender = Sender(
            self._instance,
            settings,
            retries=retries,
            avoids_slow=avoid_slow_brokers,
            retry_not_durable=retry_not_durable,
            before=before_send,
            after=hooks,
        )
        self._trace_sender = Sender(self._instance, replace(settings, group=f"{self._wire_group}_TRACE"))
        self._replies: dict[str, asyncio.Future[ReceivedMessage]] = {}
        self._checking = 0
        self._instance.handlers[RequestCode.CHECK_TRANSACTION_STATE] = self._asked_to_check
        self._instance.handlers[RequestCode.PUSH_REPLY_MESSAGE_TO_CLIENT] = self._reply_came

    # Life -----------------------------------------------------------------------------------------------------------

    @property
    def client_id(self) -> str:
        """The name under which brokers know this producer; empty before it is open."""
        return self._instance.client_id

    async def __aenter__(self) -> Self:
        await self.open()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self.close()

    async def open(self) -> None:
        """Becomes usable. Nothing is connected yet: routes and connections come with the first message."""
        await self._instance.open()
        self._instance.start_timers()
        if self._traces is not None:
            self._instance.spawn(self._traces.run(), "message traces")

    async def close(self, timeout: float = CLOSE_TIMEOUT_S) -> None:
        """Takes leave of the brokers and closes, in about ``timeout`` seconds at most."""
        if not self._instance.opened or self._instance.closed:
            return
        try:
            async with asyncio.timeout(timeout):
                if self._traces is not None:
                    await self._traces.flush()
                await self._instance.unregister(producer_group=self._wire_group, timeout_s=min(1.0, timeout))
        except TimeoutError:
            log.info("%s left without unregistering: the brokers did not answer in time", self.client_id)
        finally:
            for waiting in self._replies.values():
                waiting.cancel()
            await self._instance.close(timeout)

    # Sending --------------------------------------------------------------------------------------------------------

    async def send(
        self,
        topic: str | Message,
        body: bytes = b"",
        *,
        tag: str = "",
        keys: Iterable[str] = (),
        properties: Mapping[str, str] | None = None,
        delay_level: int = 0,
        sharding_key: str | int | None = None,
        queue: MessageQueue | QueueChoice | None = None,
        timeout: float | None = None,
    ) -> SendResult:
        """Sends a message and waits until a broker has stored it.

        ``sharding_key`` sends all messages of one key to one queue, the queue that Java's hash selector chooses.
        ``queue`` names a queue, or is a function that chooses from the list of queues. With either there is one attempt
        only: another queue would break the order. ``SendFailed`` tells every attempt.
        """
        message = self._message(topic, body, tag, keys, properties, delay_level)
        plan = plan_send(self._sender.settings, message, self._next_id())
        return self._durable(await self._sender.send(plan, self._left(timeout), _choice(sharding_key, queue)))

    async def send_oneway(
        self,
        topic: str | Message,
        body: bytes = b"",
        *,
        tag: str = "",
        keys: Iterable[str] = (),
        properties: Mapping[str, str] | None = None,
        sharding_key: str | int | None = None,
        queue: MessageQueue | QueueChoice | None = None,
        timeout: float | None = None,
    ) -> None:
        """Sends a message and does not wait for anything. It can be lost, and nobody would know."""
        message = self._message(topic, body, tag, keys, properties, 0)
        plan = plan_send(self._sender.settings, message, self._next_id())
        await self._sender.send_oneway(plan, self._left(timeout), _choice(sharding_key, queue))

    async def send_batch(
        self,
        topic: str | Sequence[Message],
        bodies: Sequence[bytes] = (),
        *,
        tag: str = "",
        sharding_key: str | int | None = None,
        queue: MessageQueue | QueueChoice | None = None,
        timeout: float | None = None,
    ) -> SendResult:
        """Sends several messages as one request: they go to one queue, all of them or none."""
        if isinstance(topic, str):
            messages: Sequence[Message] = [Message(topic, body, tag) for body in bodies]
        else:
            messages = topic
        self._instance.check_usable()
        for message in messages:
            checked_message(message, body_bytes_max=self._sender.settings.body_bytes_max)
        plan = plan_batch(self._sender.settings, messages, [self._next_id() for _ in messages])
        return self._durable(await self._sender.send(plan, self._left(timeout), _choice(sharding_key, queue)))

    async def queues(self, topic: str) -> tuple[MessageQueue, ...]:
        """The queues of a topic that can be sent to."""
        self._instance.check_usable()
        return await self._sender.queues(topic)

    def _message(
        self,
        topic: str | Message,
        body: bytes,
        tag: str,
        keys: Iterable[str],
        properties: Mapping[str, str] | None,
        delay_level: int,
    ) -> Message:
        if isinstance(keys, str):
            raise InvalidMessage("keys is a list of texts: write keys=['...'].")
        if isinstance(topic, Message):
            message = topic
        else:
            own = dict(properties) if properties else {}
            message = new_message(topic, body, tag, tuple(keys), own, delay_level, 0, True)
        self._instance.check_usable()
        return checked_message(message, body_bytes_max=self._sender.settings.body_bytes_max)

    def _left(self, timeout: float | None) -> float:
        if timeout is not None and timeout <= 0:
            raise UsageError(f"A timeout is above 0 seconds, not {timeout}.")
        return self._timeout if timeout is None else timeout

    def _next_id(self) -> str:
        return self._instance.next_id()

    def _durable(self, result: SendResult) -> SendResult:
        if self._raise_not_durable and result.status is not SendStatus.SEND_OK:
            raise SendNotDurable(result.status.value, result)
        return result

    # Transactions ---------------------------------------------------------------------------------------------------

    def transaction(
        self,
        topic: str | Message,
        body: bytes = b"",
        *,
        tag: str = "",
        keys: Iterable[str] = (),
        properties: Mapping[str, str] | None = None,
        timeout: float | None = None,
    ) -> Transaction:
        """``async with producer.transaction("Orders", b"...") as tx:`` sends a half message, which nobody can consume
        yet. Leaving the block commits it, an exception rolls it back."""
        if self._check is None:
            raise UsageError(
                "A producer of transactions answers check-backs: give Producer(check=...), a function that says "
                "whether the local transaction was committed."
            )
        return Transaction(self, self._message(topic, body, tag, keys, properties, 0), self._left(timeout))

    async def send_in_transaction(
        self,
        message: Message,
        execute: Callable[[Message, SendResult], Awaitable[TransactionState]],
        *,
        timeout: float | None = None,
    ) -> tuple[SendResult, TransactionState]:
        """Sends a half message, runs ``execute`` and tells the broker what it returned; an exception is UNKNOWN."""
        transaction = self.transaction(message, timeout=timeout)
        result = await transaction.begin()
        remark: str | None = None
        state = TransactionState.ROLLBACK
        if result.status is SendStatus.SEND_OK:
            try:
                state = await execute(message, result)
            except Exception as error:  # the broker will ask how it came out
                log.exception("the local transaction of %s failed", result.msg_id)
                state, remark = TransactionState.UNKNOWN, repr(error)
        await transaction.end(state, remark)
        return result, state

    async def begin_half(self, message: Message, timeout_s: float) -> SendResult:
        """Sends a half message. Used by ``Transaction``."""
        extra = {names.TRANSACTION_PREPARED: "true", names.PRODUCER_GROUP: self._wire_group}
        plan = plan_send(self._sender.settings, message, self._next_id(), extra)
        result = await self._sender.send(plan, timeout_s)
        await self._be_known(plan.topic, result.queue.broker)  # the broker has to know whom to ask
        return result

    async def _be_known(self, topic: str, broker: str) -> None:
        """Lets a broker know of this producer, when it may not: it asks and replies only whom it has heard of."""
        route = self._instance.routes.get(topic) or await self._instance.refresh_route(topic)
        address = master_of(route, broker) if route is not None else None
        if address is not None and address not in self._instance.heard:
            await self._instance.heartbeat()

    async def end_half(self, message: Message, result: SendResult, state: TransactionState, remark: str | None) -> None:
        """Tells the broker how a transaction came out. Used by ``Transaction``."""
        topic = names.with_namespace(message.topic, self._instance.namespace)
        route = self._instance.routes.get(topic) or await self._instance.route_to_send(topic, 1)
        address = master_of(route, result.queue.broker)
        if address is None:
            raise ConnectFailed(result.queue.broker, "no nameserver knows a master of this broker")
        header = end_of_send(self._wire_group, result, state)
        command = self._instance.make(RequestCode.END_TRANSACTION, header, remark=remark, is_oneway=True)
        self._trace_end(message, result, address, state, from_check=False)
        await self._instance.tell(address, command, self._timeout)

    def _asked_to_check(self, connection: Connection, command: RemotingCommand) -> Answer:
        if self._check is None or self._checking >= CHECKS_MAX:
            return None
        self._checking += 1
        task = self._instance.spawn(self._answer_check(connection, command), "transaction check")
        task.add_done_callback(self._checked)
        return None

    def _checked(self, task: asyncio.Task[None]) -> None:
        self._checking -= 1

    async def _answer_check(self, connection: Connection, command: RemotingCommand) -> None:
        assert self._check is not None
        header = decode_header(CheckTransactionStateRequest, command)
        record = decode_record(command.body, error=WireError)
        message = received_message(record, header.broker_name or "", namespace=self._instance.namespace)
        if message.properties.get(names.PRODUCER_GROUP) != self._wire_group:
            return  # the question is for another producer
        remark: str | None = None
        try:
            state = await self._check(message)
        except Exception as error:
            log.exception("the check of transaction %s failed", message.msg_id)
            state, remark = TransactionState.UNKNOWN, repr(error)
        answer = end_of_check(self._wire_group, header, message.msg_id, state)
        request = self._instance.make(RequestCode.END_TRANSACTION, answer, remark=remark, is_oneway=True)
        await self._instance.tell(connection.peer, request, 3.0)

    # Request and reply ----------------------------------------------------------------------------------------------

    async def request(
        self,
        topic: str | Message,
        body: bytes = b"",
        *,
        tag: str = "",
        keys: Iterable[str] = (),
        properties: Mapping[str, str] | None = None,
        sharding_key: str | int | None = None,
        timeout: float = SEND_TIMEOUT_S,
    ) -> ReceivedMessage:
        """Sends a message and waits for the reply of whoever consumes it. ``NoReply`` when none comes in time."""
        message = self._message(topic, body, tag, keys, properties, 0)
        if len(self._replies) >= REQUESTS_MAX:
            raise UsageError(f"{REQUESTS_MAX} requests are already waiting for replies.")
        loop = asyncio.get_running_loop()
        began = loop.time()
        correlation_id = f"{self._instance.random.getrandbits(128):032x}"
        extra = {
            names.CORRELATION_ID: correlation_id,
            names.MESSAGE_REPLY_TO_CLIENT: self.client_id,
            names.MESSAGE_TTL: str(max(1, int(timeout * 1000))),
        }
        plan = plan_send(self._sender.settings, message, self._next_id(), extra)
        reply: asyncio.Future[ReceivedMessage] = loop.create_future()
        self._replies[correlation_id] = reply
        sent = False
        try:
            async with asyncio.timeout(timeout):
                if plan.topic not in self._instance.routes or not self._instance.heard:
                    await self._sender.queues(message.topic)
                    await self._instance.heartbeat()  # brokers send replies to producers they know
                await self._sender.send(plan, timeout - (loop.time() - began), _choice(sharding_key, None))
                sent = True
                return await reply
        except TimeoutError:
            raise NoReply(message.topic, timeout, sent) from None
        finally:
            del self._replies[correlation_id]

    async def reply(self, to: ReceivedMessage, body: bytes, *, timeout: float | None = None) -> SendResult:
        """Answers a message that was sent by ``request``."""
        cluster = to.properties.get(names.CLUSTER)
        if cluster is None or names.CORRELATION_ID not in to.properties:
            raise InvalidMessage("This message was not sent as a request: it does not say where a reply would go.")
        copied = (names.CORRELATION_ID, names.MESSAGE_REPLY_TO_CLIENT, names.MESSAGE_TTL)
        extra = {name: to.properties[name] for name in copied if name in to.properties}
        extra[names.MESSAGE_TYPE] = MESSAGE_TYPE_REPLY
        message = self._message(names.reply_topic(cluster), body, "", (), None, 0)
        plan = plan_send(self._sender.settings, message, self._next_id(), extra)
        return self._durable(await self._sender.send(plan, self._left(timeout)))

    def _reply_came(self, connection: Connection, command: RemotingCommand) -> Answer:
        header = decode_header(ReplyMessageRequest, command)
        properties = parse_properties(header.properties or "")
        properties[names.REPLY_MESSAGE_ARRIVE_TIME] = str(self._instance.now_ms())
        waiting = self._replies.get(properties.get(names.CORRELATION_ID, ""))
        if waiting is None or waiting.done():
            log.info("dropped a reply that nobody is waiting for")
            return response(command, ResponseCode.SUCCESS)
        waiting.set_result(
            ReceivedMessage(
                topic=header.topic,
                body=decompress(command.body, header.sys_flag),
                msg_id=properties.get(names.UNIQ_KEY, ""),
                queue=MessageQueue(header.topic, "", header.queue_id),
                queue_offset=-1,
                physical_offset=-1,
                properties=properties,
                flag=header.flag,
                sys_flag=header.sys_flag,
                born_timestamp_ms=header.born_timestamp,
                born_host=header.born_host,
                store_timestamp_ms=header.store_timestamp,
                store_host=header.store_host,
                reconsume_times=header.reconsume_times or 0,
            )
        )
        return response(command, ResponseCode.SUCCESS)

    # Traces and heartbeats ------------------------------------------------------------------------------------------

    def _heartbeat_data(self) -> HeartbeatData:
        return HeartbeatData(
            client_id=self._instance.client_id, producer_data_set=(ProducerData(group_name=self._wire_group),)
        )

    def _trace_attempt(self, attempt: Attempt) -> None:
        if self._traces is None or attempt.result is None or not attempt.result.trace_on:
            return
        properties = parse_properties(attempt.plan.properties)
        result = attempt.result
        self._traces.add(
            pub_entry(
                at_ms=self._instance.now_ms() - attempt.took_ms,
                region=result.region,
                group=self.group,
                topic=result.queue.topic,
                msg_id=result.msg_id,
                tag=properties.get(names.TAGS, ""),
                keys=tuple(properties.get(names.KEYS, "").split()),
                broker_address=attempt.address,
                body_length=len(attempt.plan.body),
                cost_ms=attempt.took_ms,
                message_type=attempt.plan.message_type,
                offset_msg_id=result.offset_msg_id,
                success=result.status is SendStatus.SEND_OK,
            )
        )

    def _trace_end(
        self, message: Message, result: SendResult, address: str, state: TransactionState, *, from_check: bool
    ) -> None:
        if self._traces is not None and result.trace_on:
            self._traces.add(
                end_transaction_entry(
                    at_ms=self._instance.now_ms(),
                    region=result.region,
                    group=self.group,
                    topic=message.topic,
                    msg_id=result.msg_id,
                    tag=message.tag,
                    keys=message.keys,
                    broker_address=address,
                    transaction_id=result.transaction_id or result.msg_id,
                    state=state.upstream_name,
                    from_check=from_check,
                )
            )

    async def _send_trace(self, body: bytes, keys: tuple[str, ...]) -> SendResult:
        message = Message(self._trace_topic, body, keys=keys)
        plan = plan_send(self._trace_sender.settings, message, self._instance.next_id())
        return await self._trace_sender.send(plan, 5.0)


class Transaction:
    """A half message and its decision. Made by ``Producer.transaction``."""

    def __init__(self, producer: Producer, message: Message, timeout_s: float) -> None:
        self._producer = producer
        self._timeout_s = timeout_s
        self._decided = False
        self.message = message
        self.result: SendResult | None = None

    async def begin(self) -> SendResult:
        """Sends the half message."""
        self.result = await self._producer.begin_half(self.message, self._timeout_s)
        return self.result

    async def commit(self) -> None:
        """Lets consumers see the message."""
        await self.end(TransactionState.COMMIT)

    async def rollback(self) -> None:
        """Takes the message back."""
        await self.end(TransactionState.ROLLBACK)

    async def end(self, state: TransactionState, remark: str | None = None) -> None:
        """Tells the broker. If that fails, the broker asks later: nothing is lost."""
        if self.result is None:
            raise UsageError("The half message was not sent yet.")
        if self._decided:
            raise UsageError("This transaction has already been decided.")
        self._decided = True
        try:
            await self._producer.end_half(self.message, self.result, state, remark)
        except RefmqError as error:
            log.warning("the decision on %s was not sent, the broker will ask for it: %s", self.result.msg_id, error)

    async def __aenter__(self) -> Self:
        result = await self.begin()
        if result.status is not SendStatus.SEND_OK:
            await self.rollback()
            raise SendNotDurable(result.status.value, result)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if self._decided or (error is not None and not isinstance(error, Exception)):
            return  # cancelled: whether the local transaction came through, the check will tell
        await self.end(TransactionState.COMMIT if error is None else TransactionState.ROLLBACK)


def _choice(sharding_key: str | int | None, queue: MessageQueue | QueueChoice | None) -> QueueChoice | None:
    if sharding_key is not None and queue is not None:
        raise UsageError("Give a sharding_key or a queue, not both.")
    if sharding_key is not None:
        key = sharding_key
        return lambda queues: queue_by_hash(queues, key)
    if isinstance(queue, MessageQueue):
        chosen = queue
        return lambda queues: chosen
    return queue
