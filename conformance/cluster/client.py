"""A scripted client on the wire protocol. It does what a history tells it and records what it sees.

Every operation leaves an `invoke` event and one outcome. `ok` is what the broker answered, `fail` means that it surely
did not happen, `unknown` that nobody can know: a connection that broke, an answer that never came, an error of
which one cannot tell when it struck.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from dataclasses import dataclass, field
from typing import Final

from conformance.cluster.history import Decision
from refmq.errors import ConnectFailed, NetworkError, RefmqError
from refmq.model.fingerprint import message_fingerprint
from refmq.model.ids import MessageQueue
from refmq.model.step import Event
from refmq.net.client import Client
from refmq.net.connection import Connection
from refmq.protocol.bodies.codec import decode_body, encode_body
from refmq.protocol.bodies.heartbeat import (
    ConsumeFromWhere,
    ConsumerData,
    ConsumeType,
    HeartbeatData,
    MessageModel,
    ProducerData,
    SubscriptionData,
)
from refmq.protocol.bodies.offsets import LockBatchRequestBody, LockBatchResponseBody
from refmq.protocol.codes import RequestCode, ResponseCode
from refmq.protocol.command import RemotingCommand, oneway, request, response
from refmq.protocol.headers.codec import decode_header, encode_header
from refmq.protocol.headers.messages import CheckTransactionStateRequest, EndTransactionRequest
from refmq.protocol.headers.offsets import (
    QueryConsumerOffsetRequest,
    QueryConsumerOffsetResponse,
    UpdateConsumerOffsetRequest,
)
from refmq.protocol.headers.pull import PullMessageRequest, PullMessageResponse, PullSysFlag
from refmq.protocol.headers.send import SendMessageRequest, SendMessageResponse
from refmq.protocol.record import decode_properties, decode_records, join_properties, parse_message_id
from refmq.sim.world import Node
from refmq.trace.record import Outcome

PRODUCER_GROUP: Final = "p"
TOPIC: Final = "t"

TIMEOUT_S: Final = 3.0
"""Java's send and offset timeouts are of this order."""
PULL_TIMEOUT_S: Final = 30.0

READS_MAX: Final = 1_000
"""Pulls of an auditor before it gives up on a queue."""

DECISIONS: Final[dict[Decision, int]] = {"commit": 8, "rollback": 12, "unknown": 0, "none": 0}

STORED: Final = frozenset(
    {
        ResponseCode.SUCCESS,
        ResponseCode.FLUSH_DISK_TIMEOUT,
        ResponseCode.SLAVE_NOT_AVAILABLE,
        ResponseCode.FLUSH_SLAVE_TIMEOUT,
    }
)
REFUSED: Final = frozenset(
    {
        ResponseCode.SYSTEM_BUSY,
        ResponseCode.REQUEST_CODE_NOT_SUPPORTED,
        ResponseCode.MESSAGE_ILLEGAL,
        ResponseCode.SERVICE_NOT_AVAILABLE,
        ResponseCode.NO_PERMISSION,
        ResponseCode.TOPIC_NOT_EXIST,
    }
)
"""Answers after which the message is surely not stored. SYSTEM_ERROR is not among them: it says nothing."""


@dataclass(frozen=True, slots=True)
class BrokerAddress:
    """A broker as clients know it."""

    name: str
    address: str


@dataclass(slots=True)
class Place:
    """Where a client stands in a queue."""

    next_offset: int = 0
    consumed_to: int = 0
    committed: int = -1


@dataclass(slots=True)
class ScriptedClient:
    """One client: a member of the producer group and of the consumer group."""

    node: Node
    name: str
    group: str
    numbers: list[int]
    """The next number of a message and of an operation; shared by all clients of a history."""
    places: dict[MessageQueue, Place] = field(default_factory=dict)
    decisions: dict[str, tuple[Decision, int]] = field(default_factory=dict)
    """Transaction -> what to answer when asked, and the message."""
    client: Client = field(init=False)
    last_code: int = 0
    """Of the last answer to a pull."""

    def __post_init__(self) -> None:
        self.client = Client(self._asked)

    @property
    def member(self) -> str:
        return f"{self.group}@{self.name}"

    # --- recording --------------------------------------------------------------------------------------------

    def _begin(self) -> int:
        self.numbers[1] += 1
        return self.numbers[1]

    def _record(
        self,
        operation: int,
        outcome: Outcome,
        action: str,
        queue: MessageQueue,
        a: int = 0,
        b: int = 0,
        c: int = 0,
        d: int = 0,
    ) -> None:
        subject = f"{queue.topic}@{queue.broker}"
        self.node.recorder.record(Event(action, self.member, subject, queue.queue_id, a, b, c, d), outcome, operation)

    async def _ask(
        self, broker: BrokerAddress, command: RemotingCommand, timeout_s: float
    ) -> RemotingCommand | Outcome:
        """The answer, or how it ended without one."""
        try:
            return await self.client.invoke(broker.address, command, timeout_s)
        except ConnectFailed:
            return Outcome.FAIL
        except NetworkError:
            return Outcome.UNKNOWN

    # --- sending ----------------------------------------------------------------------------------------------

    def _message(self, body_bytes: int, **properties: str) -> tuple[bytes, dict[str, str], int]:
        self.numbers[0] += 1
        key = f"{self.name}-{self.numbers[0]}"
        body = f"{self.numbers[0]}:".encode().ljust(body_bytes, b".")
        return body, {"UNIQ_KEY": key, "WAIT": "true", **properties}, message_fingerprint(key.encode(), body)

    def _send_command(
        self, queue: MessageQueue, body: bytes, properties: dict[str, str], sys_flag: int
    ) -> RemotingCommand:
        header = SendMessageRequest(
            producer_group=PRODUCER_GROUP,
            topic=queue.topic,
            default_topic="TBW102",
            default_topic_queue_nums=4,
            queue_id=queue.queue_id,
            sys_flag=sys_flag,
            born_timestamp=self.node.world.loop.wall_ms(),
            flag=0,
            properties=join_properties(properties),
        )
        return request(RequestCode.SEND_MESSAGE, encode_header(header), body)

    async def send(self, broker: BrokerAddress, queue: MessageQueue, body_bytes: int) -> None:
        body, properties, message = self._message(body_bytes)
        operation = self._begin()
        self._record(operation, Outcome.INVOKE, "Send", queue, -1, -1, message)
        answer = await self._ask(broker, self._send_command(queue, body, properties, 0), TIMEOUT_S)
        self._sent(operation, "Send", queue, message, answer)

    def _sent(
        self, operation: int, action: str, queue: MessageQueue, message: int, answer: RemotingCommand | Outcome
    ) -> SendMessageResponse | None:
        if isinstance(answer, Outcome):
            self._record(operation, answer, action, queue, -1, -1, message)
        elif answer.code in STORED:
            header = decode_header(SendMessageResponse, answer)
            assert header.queue_offset is not None and header.msg_id is not None, "a stored message has a place"
            _, physical_offset = parse_message_id(header.msg_id)
            self._record(
                operation, Outcome.OK, action, queue, physical_offset, header.queue_offset, message, answer.code
            )
            return header
        else:
            outcome = Outcome.FAIL if answer.code in REFUSED else Outcome.UNKNOWN
            self._record(operation, outcome, action, queue, -1, -1, message, answer.code)
        return None

    async def send_half(
        self, broker: BrokerAddress, queue: MessageQueue, decision: Decision, reply: Decision, ends: int
    ) -> None:
        body, properties, message = self._message(20, TRAN_MSG="true", PGROUP=PRODUCER_GROUP)
        transaction = properties["UNIQ_KEY"]
        self.decisions[transaction] = (reply, message)
        operation = self._begin()
        self._record(operation, Outcome.INVOKE, "SendHalf", queue, -1, -1, message)
        answer = await self._ask(broker, self._send_command(queue, body, properties, 4), TIMEOUT_S)
        header = self._sent(operation, "SendHalf", queue, message, answer)
        if header is None or decision == "none":
            return
        assert header.queue_offset is not None and header.msg_id is not None
        _, physical_offset = parse_message_id(header.msg_id)
        said: Decision = decision if decision == "unknown" else reply
        self._record(operation, Outcome.INVOKE, "EndTransaction", queue, DECISIONS[said], header.queue_offset, message)
        end = EndTransactionRequest(
            producer_group=PRODUCER_GROUP,
            tran_state_table_offset=header.queue_offset,
            commit_log_offset=physical_offset,
            commit_or_rollback=DECISIONS[said],
            msg_id=transaction,
            transaction_id=transaction,
        )
        try:
            for _ in range(ends):
                command = oneway(RequestCode.END_TRANSACTION, encode_header(end))
                await self.client.oneway(broker.address, command, TIMEOUT_S)
        except NetworkError:
            self._record(
                operation, Outcome.UNKNOWN, "EndTransaction", queue, DECISIONS[said], header.queue_offset, message
            )

    def _asked(self, connection: Connection, command: RemotingCommand) -> RemotingCommand | Awaitable[None] | None:
        """What brokers ask on their own: the state of a transaction."""
        if command.code == RequestCode.CHECK_TRANSACTION_STATE:
            self._check_reply(connection, command)
            return None
        if command.is_oneway:
            return None
        return response(command, ResponseCode.REQUEST_CODE_NOT_SUPPORTED)

    def _check_reply(self, connection: Connection, command: RemotingCommand) -> None:
        header = decode_header(CheckTransactionStateRequest, command)
        record = next(decode_records(command.body))
        properties = decode_properties(record.properties)
        transaction = header.transaction_id or properties.get("UNIQ_KEY", "")
        reply, message = self.decisions.get(transaction, ("unknown", 0))
        if reply == "none" or message == 0:
            return  # a producer that knows nothing of it says nothing, as Java's does without a listener
        real = MessageQueue(
            properties.get("REAL_TOPIC", ""), self._broker_of(connection), int(properties.get("REAL_QID", "0"))
        )
        self._record(
            self._begin(), Outcome.INVOKE, "CheckReply", real, DECISIONS[reply], header.tran_state_table_offset, message
        )
        end = EndTransactionRequest(
            producer_group=PRODUCER_GROUP,
            tran_state_table_offset=header.tran_state_table_offset,
            commit_log_offset=header.commit_log_offset,
            commit_or_rollback=DECISIONS[reply],
            from_transaction_check=True,
            msg_id=transaction,
            transaction_id=transaction,
        )
        connection.send_oneway(oneway(RequestCode.END_TRANSACTION, encode_header(end)))

    def _broker_of(self, connection: Connection) -> str:
        return self.node.world.network.name_of(connection.peer.partition(":")[0])

    # --- consuming --------------------------------------------------------------------------------------------

    def place(self, queue: MessageQueue) -> Place:
        return self.places.setdefault(queue, Place())

    async def pull(self, broker: BrokerAddress, queue: MessageQueue, count: int, suspend_ms: int) -> int | None:
        """Reads on from where the client stands; the number of messages, or None without an answer."""
        place = self.place(queue)
        from_offset = place.next_offset
        header = PullMessageRequest(
            consumer_group=self.group,
            topic=queue.topic,
            queue_id=queue.queue_id,
            queue_offset=from_offset,
            max_msg_nums=count,
            sys_flag=PullSysFlag.SUBSCRIPTION | (PullSysFlag.SUSPEND if suspend_ms else 0),
            commit_offset=0,
            suspend_timeout_millis=suspend_ms,
            subscription="*",
            sub_version=0,
        )
        operation = self._begin()
        self._record(operation, Outcome.INVOKE, "Pull", queue, from_offset, -1, -1)
        answer = await self._ask(
            broker, request(RequestCode.PULL_MESSAGE, encode_header(header)), TIMEOUT_S + suspend_ms / 1000
        )
        if isinstance(answer, Outcome):
            self._record(operation, answer, "Pull", queue, from_offset, -1, -1)
            return None
        self.last_code = answer.code
        try:
            state = decode_header(PullMessageResponse, answer)
        except RefmqError:  # an error has no such header
            self._record(operation, Outcome.FAIL, "Pull", queue, from_offset, -1, -1, answer.code)
            return None
        records = list(decode_records(answer.body)) if answer.code == ResponseCode.SUCCESS else []
        for record in records:
            key = decode_properties(record.properties).get("UNIQ_KEY", "")
            real = MessageQueue(record.topic, queue.broker, record.queue_id)
            message = message_fingerprint(key.encode(), record.body)
            self._record(
                operation,
                Outcome.CONSUMED,
                "Pull",
                real,
                record.physical_offset,
                record.queue_offset,
                message,
                record.size_bytes,
            )
        self._record(
            operation, Outcome.OK, "Pull", queue, from_offset, state.next_begin_offset, state.max_offset, answer.code
        )
        if answer.code == ResponseCode.SUCCESS and place.next_offset == from_offset:
            place.next_offset = state.next_begin_offset
            if place.consumed_to == from_offset:
                place.consumed_to = state.next_begin_offset
        return len(records)

    async def commit_offset(self, broker: BrokerAddress, queue: MessageQueue) -> None:
        place = self.place(queue)
        offset = place.consumed_to
        header = UpdateConsumerOffsetRequest(
            consumer_group=self.group, topic=queue.topic, queue_id=queue.queue_id, commit_offset=offset
        )
        operation = self._begin()
        self._record(operation, Outcome.INVOKE, "CommitOffset", queue, place.committed, offset)
        answer = await self._ask(broker, request(RequestCode.UPDATE_CONSUMER_OFFSET, encode_header(header)), TIMEOUT_S)
        outcome = answer if isinstance(answer, Outcome) else _simple(answer)
        self._record(operation, outcome, "CommitOffset", queue, place.committed, offset)
        if outcome is Outcome.OK:
            place.committed = offset

    async def query_offset(self, broker: BrokerAddress, queue: MessageQueue) -> None:
        header = QueryConsumerOffsetRequest(consumer_group=self.group, topic=queue.topic, queue_id=queue.queue_id)
        operation = self._begin()
        self._record(operation, Outcome.INVOKE, "QueryOffset", queue, -1)
        answer = await self._ask(broker, request(RequestCode.QUERY_CONSUMER_OFFSET, encode_header(header)), TIMEOUT_S)
        if isinstance(answer, Outcome) or answer.code != ResponseCode.SUCCESS:
            outcome = answer if isinstance(answer, Outcome) else _simple(answer)
            self._record(operation, outcome, "QueryOffset", queue, -1)
            return
        offset = decode_header(QueryConsumerOffsetResponse, answer).offset
        self._record(operation, Outcome.OK, "QueryOffset", queue, offset)
        self.places[queue] = Place(offset, offset, offset)

    async def lock_queue(self, broker: BrokerAddress, queue: MessageQueue, *, unlock: bool = False) -> None:
        action = "UnlockQueue" if unlock else "LockQueue"
        code = RequestCode.UNLOCK_BATCH_MQ if unlock else RequestCode.LOCK_BATCH_MQ
        body = LockBatchRequestBody(consumer_group=self.group, client_id=self.name, mq_set=(queue,))
        operation = self._begin()
        self._record(operation, Outcome.INVOKE, action, queue)
        answer = await self._ask(broker, request(code, body=encode_body(body)), TIMEOUT_S)
        granted = 0
        if not isinstance(answer, Outcome) and not unlock and answer.code == ResponseCode.SUCCESS:
            granted = int(queue in decode_body(LockBatchResponseBody, answer.body).lock_ok_mq_set)
        outcome = answer if isinstance(answer, Outcome) else _simple(answer)
        self._record(operation, outcome, action, queue, granted, self.node.world.loop.wall_ms())

    async def heartbeat(self, broker: BrokerAddress) -> None:
        body = HeartbeatData(
            client_id=self.name,
            producer_data_set=(ProducerData(group_name=PRODUCER_GROUP),),
            consumer_data_set=(
                ConsumerData(
                    group_name=self.group,
                    consume_type=ConsumeType.CONSUME_PASSIVELY,
                    message_model=MessageModel.CLUSTERING,
                    consume_from_where=ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET,
                    subscription_data_set=(SubscriptionData(topic=TOPIC, sub_string="*"),),
                ),
            ),
        )
        await self._ask(broker, request(RequestCode.HEART_BEAT, body=encode_body(body)), TIMEOUT_S)

    async def read_to_end(self, broker: BrokerAddress, queue: MessageQueue) -> None:
        """Reads a queue from its beginning until nothing is left, as an auditor does."""
        self.places[queue] = Place()
        for _ in range(READS_MAX):
            found = await self.pull(broker, queue, 32, 0)
            if found == 0 or self.last_code == ResponseCode.TOPIC_NOT_EXIST:
                return
            if found is None:
                await asyncio.sleep(1)


def _simple(answer: RemotingCommand) -> Outcome:
    return Outcome.OK if answer.code == ResponseCode.SUCCESS else Outcome.UNKNOWN
