"""A scripted client on the wire protocol. It does what a history tells it and records what it sees.

Every operation leaves an `invoke` event and one outcome. `ok` is what the broker answered, `fail` means that it surely
did not happen, `unknown` that nobody can know: a connection that broke, an answer that never came, an error of
which one cannot tell when it struck.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from dataclasses import dataclass, field
from ipaddress import ip_address
from typing import Final

from conformance.cluster.history import Decision, Wanted
from conformance.cluster.known import BrokerAddress, Common, Place, Sent
from refmq.broker.handlers.send_back import FIRST_RETRY_LEVEL
from refmq.errors import ConnectFailed, NetworkError, RefmqError, WireError
from refmq.model.fingerprint import message_fingerprint
from refmq.model.ids import MessageQueue
from refmq.model.step import Event
from refmq.net.address import parse_address
from refmq.net.client import Client
from refmq.net.connection import Connection
from refmq.protocol.bodies.codec import decode_body, encode_body
from refmq.protocol.bodies.offsets import LockBatchRequestBody, LockBatchResponseBody
from refmq.protocol.codes import RequestCode, ResponseCode
from refmq.protocol.command import RemotingCommand, oneway, request, response
from refmq.protocol.headers.clients import NotifyConsumerIdsChangedRequest
from refmq.protocol.headers.codec import decode_header, encode_header
from refmq.protocol.headers.messages import (
    CheckTransactionStateRequest,
    ConsumerSendMsgBackRequest,
    EndTransactionRequest,
)
from refmq.protocol.headers.offsets import (
    QueryConsumerOffsetRequest,
    QueryConsumerOffsetResponse,
    UpdateConsumerOffsetRequest,
)
from refmq.protocol.headers.pull import PullMessageRequest, PullMessageResponse, PullSysFlag
from refmq.protocol.headers.send import SendMessageRequest, SendMessageResponse, encode_send_header
from refmq.protocol.record import (
    BatchedMessage,
    Record,
    decode_properties,
    decode_record,
    encode_batch,
    encode_properties,
    join_properties,
    parse_message_id,
)
from refmq.sim.world import Node
from refmq.trace.record import Outcome

PRODUCER_GROUP: Final = "p"

TIMEOUT_S: Final = 3.0
"""Java's send and offset timeouts are of this order."""
LOOK_S: Final = 6.0
"""Brokers look every five seconds whether the time of a waiting pull is up: it may wait so much longer than asked."""

FILTER_GROUP: Final = "f"
"""The group of pulls with a filter: it has places of its own, because it passes messages that it does not want."""

DELAYS_S: Final = (1, 2, 5, 10)
"""The delay levels of the brokers: the longest is over in the quiet time."""

RETRIES_MAX: Final = 2
"""How often a message is sent back before it belongs to the dead letters."""

CLASSES: Final = 4
"""Messages are of four classes, told by their numbers; tag and property `n` follow from the class."""
REGISTERED_GROUP: Final = "r"
SQL_GROUP: Final = "q"
"""The same with a filter in SQL: n > 1."""
"""The group of pulls whose filter is the one that heartbeats registered: tag a."""
FILTERS: Final[dict[Wanted, tuple[str, str, int]]] = {
    "all": ("TAG", "*", 0b1111),
    "tag a": ("TAG", "a", 0b0101),
    "tags a || b": ("TAG", "a || b", 0b1111),
    "sql n": ("SQL92", "n > 1", 0b1100),
    "sql tag": ("SQL92", "TAGS = 'b' AND n BETWEEN 1 AND 2", 0b0010),
    "registered": ("TAG", "", 0b0101),
    "registered sql": ("SQL92", "", 0b1100),
}
"""What a pull asks for -> kind of expression, expression, and the classes that it wants as bits."""

FOREIGN: Final = ("", "\u00e9", "\u6d88\u606f", "\U0001f680")
"""What stands in the keys and properties of some messages: characters of one to four bytes."""

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


@dataclass(slots=True)
class ScriptedClient:
    """One client: a member of the producer group and of the consumer group."""

    node: Node
    name: str
    group: str
    common: Common
    places: dict[MessageQueue, Place] = field(default_factory=dict)
    filtered: dict[tuple[MessageQueue, Wanted], Place] = field(default_factory=dict)
    last: dict[tuple[str, str], Record] = field(default_factory=dict)
    """Broker and topic -> the last message that came from there."""
    decisions: dict[str, tuple[Decision, int]] = field(default_factory=dict)
    """Transaction -> what to answer when asked, and the message."""
    last_key: dict[str, tuple[str, int]] = field(default_factory=dict)
    """Broker -> key and fingerprint of the last message that it acknowledged."""
    client: Client = field(init=False)
    last_code: int = 0
    """Of the last answer to a pull."""

    def __post_init__(self) -> None:
        self.client = Client(self._asked)
        self.common.members.append(self.member)

    @property
    def member(self) -> str:
        return f"{self.group}@{self.name}"

    # --- recording --------------------------------------------------------------------------------------------

    def begin(self) -> int:
        self.common.operations += 1
        return self.common.operations

    def record(
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

    async def ask(self, broker: BrokerAddress, command: RemotingCommand, timeout_s: float) -> RemotingCommand | Outcome:
        """The answer, or how it ended without one."""
        self.common.requests[command.code] += 1
        try:
            return await self.client.invoke(broker.address, command, timeout_s)
        except ConnectFailed:
            return Outcome.FAIL
        except NetworkError:
            return Outcome.UNKNOWN

    # --- sending ----------------------------------------------------------------------------------------------

    def _message(self, body_bytes: int, *, batch: bool = False, **properties: str) -> tuple[bytes, dict[str, str], int]:
        self.common.messages += 1
        number = self.common.messages
        foreign = FOREIGN[number % len(FOREIGN)]
        key = f"{self.name}-{number}{foreign}"
        body = f"{number}:".encode().ljust(body_bytes, b".") if body_bytes else b""
        kind = number % CLASSES
        kept = {"UNIQ_KEY": key, "KEYS": f"k{number}", "TAGS": "ab"[kind % 2], "n": str(kind)}
        if foreign:
            kept[f"x{foreign}"] = foreign
        flag = 0 if batch else number % 3
        born_ip, born_ms = ip_address(self.node.address).packed, self.node.world.loop.wall_ms()
        self.common.sent[key] = Sent(kept, flag, born_ms, born_ip, self.common.stores)
        return body, {**kept, "WAIT": "true", **properties}, message_fingerprint(key.encode(), body)

    def _send_command(
        self, queue: MessageQueue, body: bytes, properties: dict[str, str], sys_flag: int, *, batch: bool = False
    ) -> RemotingCommand:
        header = SendMessageRequest(
            producer_group=PRODUCER_GROUP,
            topic=queue.topic,
            default_topic="TBW102",
            default_topic_queue_nums=4,
            queue_id=queue.queue_id,
            sys_flag=sys_flag,
            born_timestamp=self.node.world.loop.wall_ms(),
            flag=0 if batch else self.common.sent[properties["UNIQ_KEY"]].flag,
            properties=join_properties(properties),
            batch=batch,
        )
        if self.common.messages % 3:
            return request(RequestCode.SEND_MESSAGE, encode_header(header), body)
        code = RequestCode.SEND_BATCH_MESSAGE if batch else RequestCode.SEND_MESSAGE_V2
        return request(code, encode_send_header(header), body)

    async def send(self, broker: BrokerAddress, queue: MessageQueue, body_bytes: int) -> None:
        body, properties, message = self._message(body_bytes)
        operation = self.begin()
        self.record(operation, Outcome.INVOKE, "Send", queue, -1, -1, message, int(properties["n"]))
        answer = await self.ask(broker, self._send_command(queue, body, properties, 0), TIMEOUT_S)
        if self._sent(operation, "Send", queue, message, answer) is not None:
            self.last_key[queue.broker] = (properties["UNIQ_KEY"], message)

    async def send_delayed(
        self, broker: BrokerAddress, queue: MessageQueue, body_bytes: int, level: int, delay_ms: int
    ) -> None:
        """The answer names a place in the delay queue, which is nobody's business."""
        body, properties, message = self._message(body_bytes, DELAY=str(level))
        operation = self.begin()
        due_ms = self.node.world.loop.wall_ms() + delay_ms
        self.record(operation, Outcome.INVOKE, "SendDelayed", queue, due_ms, level, message, int(properties["n"]))
        answer = await self.ask(broker, self._send_command(queue, body, properties, 0), TIMEOUT_S)
        outcome = answer if isinstance(answer, Outcome) else _stored(answer)
        code = 0 if isinstance(answer, Outcome) else answer.code
        self.record(operation, outcome, "SendDelayed", queue, due_ms, level, message, code)

    async def send_batch(self, broker: BrokerAddress, queue: MessageQueue, count: int) -> None:
        """One request, and for each message the same events as for one that is sent alone."""
        messages = [self._message(20, batch=True) for _ in range(count)]
        operation = self.begin()
        for _, properties, message in messages:
            self.record(operation, Outcome.INVOKE, "SendBatch", queue, -1, -1, message, int(properties["n"]))
        batch = encode_batch(tuple(BatchedMessage(0, body, encode_properties(p)) for body, p, _ in messages))
        command = self._send_command(queue, batch, {"WAIT": "true"}, 0, batch=True)
        answer = await self.ask(broker, command, TIMEOUT_S)
        if isinstance(answer, Outcome) or answer.code not in STORED:
            outcome = answer if isinstance(answer, Outcome) else _stored(answer)
            for _, _, message in messages:
                self.record(operation, outcome, "SendBatch", queue, -1, -1, message)
            return
        header = decode_header(SendMessageResponse, answer)
        assert header.queue_offset is not None and header.msg_id is not None, "a stored batch has a place"
        ids = header.msg_id.split(",")
        assert len(ids) == count, f"{count} messages have {len(ids)} ids"
        for number, (_, _, message) in enumerate(messages):
            where = (parse_message_id(ids[number])[1], header.queue_offset + number)
            self.record(operation, Outcome.OK, "SendBatch", queue, *where, message, answer.code)

    def _sent(
        self, operation: int, action: str, queue: MessageQueue, message: int, answer: RemotingCommand | Outcome
    ) -> SendMessageResponse | None:
        if isinstance(answer, Outcome):
            self.record(operation, answer, action, queue, -1, -1, message)
        elif answer.code in STORED:
            header = decode_header(SendMessageResponse, answer)
            assert header.queue_offset is not None and header.msg_id is not None, "a stored message has a place"
            _, physical_offset = parse_message_id(header.msg_id)
            self.record(
                operation, Outcome.OK, action, queue, physical_offset, header.queue_offset, message, answer.code
            )
            return header
        else:
            self.record(operation, _stored(answer), action, queue, -1, -1, message, answer.code)
        return None

    async def send_half(
        self,
        broker: BrokerAddress,
        queue: MessageQueue,
        decision: Decision,
        reply: Decision,
        ends: int,
        *,
        after_s: float = 0.0,
        immunity_s: int = 0,
    ) -> None:
        body, properties, message = self._message(20, TRAN_MSG="true", PGROUP=PRODUCER_GROUP)
        properties |= {"CHECK_IMMUNITY_TIME_IN_SECONDS": str(immunity_s)} if immunity_s else {}
        immune_until_ms = self.node.world.loop.wall_ms() + immunity_s * 1000 if immunity_s else -1
        transaction = properties["UNIQ_KEY"]
        self.decisions[transaction] = (reply, message)
        operation = self.begin()
        self.record(operation, Outcome.INVOKE, "SendHalf", queue, immune_until_ms, -1, message, int(properties["n"]))
        answer = await self.ask(broker, self._send_command(queue, body, properties, 4), TIMEOUT_S)
        header = self._sent(operation, "SendHalf", queue, message, answer)
        if header is None or decision == "none":
            return
        assert header.queue_offset is not None and header.msg_id is not None
        _, physical_offset = parse_message_id(header.msg_id)
        said: Decision = decision if decision == "unknown" else reply
        if after_s:
            await asyncio.sleep(after_s)
        self.record(operation, Outcome.INVOKE, "EndTransaction", queue, DECISIONS[said], header.queue_offset, message)
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
                self.common.requests[command.code] += 1
                await self.client.oneway(broker.address, command, TIMEOUT_S)
        except NetworkError:
            self.record(
                operation, Outcome.UNKNOWN, "EndTransaction", queue, DECISIONS[said], header.queue_offset, message
            )

    def _asked(self, connection: Connection, command: RemotingCommand) -> RemotingCommand | Awaitable[None] | None:
        """What brokers say on their own: the question for a transaction, and that a group changed."""
        if command.code == RequestCode.CHECK_TRANSACTION_STATE:
            self._check_reply(connection, command)
            return None
        if command.code == RequestCode.NOTIFY_CONSUMER_IDS_CHANGED:
            group = decode_header(NotifyConsumerIdsChangedRequest, command).consumer_group
            if group == self.group:
                broker = MessageQueue("", self._broker_of(connection), -1)
                self.record(self.begin(), Outcome.OK, "Notified", broker)
        if command.is_oneway:
            return None
        return response(command, ResponseCode.REQUEST_CODE_NOT_SUPPORTED)

    def _check_reply(self, connection: Connection, command: RemotingCommand) -> None:
        header = decode_header(CheckTransactionStateRequest, command)
        record = decode_record(command.body)
        properties = decode_properties(record.properties)
        transaction = header.transaction_id or properties.get("UNIQ_KEY", "")
        reply, message = self.decisions.get(transaction, ("unknown", 0))
        if reply == "none" or message == 0:
            return  # a producer that knows nothing of it says nothing, as Java's does without a listener
        real = MessageQueue(
            properties.get("REAL_TOPIC", ""), self._broker_of(connection), int(properties.get("REAL_QID", "0"))
        )
        self.record(
            self.begin(), Outcome.INVOKE, "CheckReply", real, DECISIONS[reply], header.tran_state_table_offset, message
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
        return self.node.world.network.name_of(parse_address(connection.peer)[0])

    # --- consuming --------------------------------------------------------------------------------------------

    def place(self, queue: MessageQueue) -> Place:
        return self.places.setdefault(queue, Place())

    async def pull(
        self, broker: BrokerAddress, queue: MessageQueue, count: int, suspend_ms: int, *, commit: bool = False
    ) -> int | None:
        """Reads on from where the client stands; the number of messages, or None without an answer."""
        place = self.place(queue)
        from_offset = place.next_offset
        operation, committed = self.begin(), place.committed
        if commit:
            self.record(operation, Outcome.INVOKE, "CommitOffset", queue, committed, place.consumed_to)
        self.record(operation, Outcome.INVOKE, "Pull", queue, from_offset, count, -1, suspend_ms)
        command = self._pull_command(self.group, queue, place, count, suspend_ms, "all", commit=commit)
        offset = place.consumed_to
        answer = await self.ask(broker, command, _pull_timeout_s(suspend_ms))
        if commit:
            # A pull that broke may have committed, and so may one whose answer says anything.
            outcome = answer if isinstance(answer, Outcome) else _pulled(answer)
            code = 0 if isinstance(answer, Outcome) or outcome is Outcome.OK else answer.code
            self.record(operation, outcome, "CommitOffset", queue, committed, offset, d=code)
            place.committed = offset if outcome is Outcome.OK else place.committed
        found = self._pulled(operation, "Pull", self.member, queue, from_offset, answer)
        if found is None:
            return None
        state, records = found
        if self.last_code == ResponseCode.SUCCESS and place.next_offset == from_offset:
            place.next_offset = state.next_begin_offset
            if records:
                self.last[queue.broker, queue.topic] = records[-1]
            if place.consumed_to == from_offset:
                place.consumed_to = state.next_begin_offset
        return len(records)

    async def pull_filtered(
        self, broker: BrokerAddress, queue: MessageQueue, count: int, suspend_ms: int, wanted: Wanted
    ) -> None:
        """Reads on with a filter, for a group that does nothing else."""
        group = {"registered": REGISTERED_GROUP, "registered sql": SQL_GROUP}.get(wanted, FILTER_GROUP)
        place = self.filtered.setdefault((queue, wanted), Place())
        from_offset = place.next_offset
        operation, actor = self.begin(), f"{group}@{self.name}"
        subject, mask = f"{queue.topic}@{queue.broker}", FILTERS[wanted][2]
        invoke = Event("PullFiltered", actor, subject, queue.queue_id, from_offset, count, mask, suspend_ms)
        self.node.recorder.record(invoke, Outcome.INVOKE, operation)
        command = self._pull_command(group, queue, place, count, suspend_ms, wanted)
        answer = await self.ask(broker, command, _pull_timeout_s(suspend_ms))
        found = self._pulled(operation, "PullFiltered", actor, queue, from_offset, answer, mask)
        moves = (ResponseCode.SUCCESS, ResponseCode.PULL_RETRY_IMMEDIATELY)
        if found is not None and self.last_code in moves and place.next_offset == from_offset:
            place.next_offset = found[0].next_begin_offset

    def _pull_command(
        self,
        group: str,
        queue: MessageQueue,
        place: Place,
        count: int,
        suspend_ms: int,
        wanted: Wanted,
        *,
        commit: bool = False,
    ) -> RemotingCommand:
        kind, expression, _ = FILTERS[wanted]
        flags = PullSysFlag.SUBSCRIPTION if expression else 0
        flags |= PullSysFlag.SUSPEND if suspend_ms else 0
        header = PullMessageRequest(
            consumer_group=group,
            topic=queue.topic,
            queue_id=queue.queue_id,
            queue_offset=place.next_offset,
            max_msg_nums=count,
            sys_flag=flags | (PullSysFlag.COMMIT_OFFSET if commit else 0),
            commit_offset=place.consumed_to if commit else 0,
            suspend_timeout_millis=suspend_ms,
            subscription=expression,
            expression_type=kind,
            sub_version=0,
        )
        code = RequestCode.PULL_MESSAGE if suspend_ms or self.common.operations % 4 else RequestCode.LITE_PULL_MESSAGE
        return request(code, encode_header(header))

    def _pulled(
        self,
        operation: int,
        action: str,
        actor: str,
        queue: MessageQueue,
        from_offset: int,
        answer: RemotingCommand | Outcome,
        mask: int | None = None,
    ) -> tuple[PullMessageResponse, list[Record]] | None:
        """Records what an answer to a pull brought: a line for each message, and one for the answer."""

        def line(outcome: Outcome, q: MessageQueue, a: int, b: int, c: int, d: int = 0) -> None:
            event = Event(action, actor, f"{q.topic}@{q.broker}", q.queue_id, a, b, c, d)
            self.node.recorder.record(event, outcome, operation)

        unknown = -1 if mask is None else mask
        if isinstance(answer, Outcome):
            line(answer, queue, from_offset, -1, unknown)
            return None
        self.last_code = answer.code
        try:
            state = decode_header(PullMessageResponse, answer)
        except RefmqError:  # an error has no such header
            line(Outcome.FAIL, queue, from_offset, -1, unknown, answer.code)
            return None
        records = self.arrived(answer.body) if answer.code == ResponseCode.SUCCESS else []
        for record in records:
            real = MessageQueue(record.topic, queue.broker, record.queue_id)
            message = self.fingerprint(record)
            line(Outcome.CONSUMED, real, record.physical_offset, record.queue_offset, message, record.size_bytes)
        third = state.max_offset if mask is None else mask
        line(Outcome.OK, queue, from_offset, state.next_begin_offset, third, answer.code)
        return state, records

    def arrived(self, body: bytes) -> list[Record]:
        """The records of an answer. One of which a bit has flipped must show it by its checksum; it has its key still,
        and is given back whole."""
        found, at = [], 0
        while at < len(body):
            try:
                record = decode_record(body, at, error=WireError)
            except WireError:
                record = decode_record(body, at, check_crc=False, error=WireError)
                whole = self.common.whole_bodies.get(decode_properties(record.properties).get("UNIQ_KEY", ""))
                if whole is None:
                    raise
                record = record._replace(body=whole)
            found.append(record)
            at += record.size_bytes
        return found

    def fingerprint(self, record: Record) -> int:
        """The name of a message that arrived. One that differs from what was sent is another message."""
        key = decode_properties(record.properties).get("UNIQ_KEY", "")
        sent = self.common.sent.get(key)
        difference = "" if sent is None else sent.difference(record)
        if difference:
            self.node.world.note(self.node.name, "altered", f"{key}: {difference}")
        return message_fingerprint(f"{key}{difference}".encode(), record.body)

    async def send_back(self, broker: BrokerAddress, queue: MessageQueue, delay_level: int) -> None:
        """Sends the last message of a topic back, as one that could not be handled."""
        record = self.last.get((queue.broker, queue.topic))
        if record is None:
            return
        message = self.fingerprint(record)
        header = ConsumerSendMsgBackRequest(
            offset=record.physical_offset,
            group=self.group,
            delay_level=delay_level,
            origin_msg_id=record.message_id,
            origin_topic=record.topic,
            max_reconsume_times=RETRIES_MAX,
        )
        operation, times = self.begin(), record.reconsume_times
        due_ms = self.node.world.loop.wall_ms() + _retry_delay_ms(delay_level, times)
        self.record(operation, Outcome.INVOKE, "SendBack", queue, due_ms, times, message, RETRIES_MAX)
        answer = await self.ask(broker, request(RequestCode.CONSUMER_SEND_MSG_BACK, encode_header(header)), TIMEOUT_S)
        outcome = answer if isinstance(answer, Outcome) else simple(answer)
        self.record(operation, outcome, "SendBack", queue, due_ms, times, message, RETRIES_MAX)

    async def commit_offset(self, broker: BrokerAddress, queue: MessageQueue, back: int = 0) -> None:
        place = self.place(queue)
        offset = max(0, place.consumed_to - back)
        header = UpdateConsumerOffsetRequest(
            consumer_group=self.group, topic=queue.topic, queue_id=queue.queue_id, commit_offset=offset
        )
        operation, committed = self.begin(), place.committed
        self.record(operation, Outcome.INVOKE, "CommitOffset", queue, committed, offset)
        answer = await self.ask(broker, request(RequestCode.UPDATE_CONSUMER_OFFSET, encode_header(header)), TIMEOUT_S)
        outcome = answer if isinstance(answer, Outcome) else simple(answer)
        self.record(operation, outcome, "CommitOffset", queue, committed, offset)
        if outcome is Outcome.OK:
            place.committed = offset

    async def query_offset(self, broker: BrokerAddress, queue: MessageQueue) -> None:
        header = QueryConsumerOffsetRequest(consumer_group=self.group, topic=queue.topic, queue_id=queue.queue_id)
        operation = self.begin()
        self.record(operation, Outcome.INVOKE, "QueryOffset", queue, -1)
        answer = await self.ask(broker, request(RequestCode.QUERY_CONSUMER_OFFSET, encode_header(header)), TIMEOUT_S)
        if isinstance(answer, Outcome) or answer.code != ResponseCode.SUCCESS:
            outcome = answer if isinstance(answer, Outcome) else simple(answer)
            self.record(
                operation, outcome, "QueryOffset", queue, -1, d=0 if isinstance(answer, Outcome) else answer.code
            )
            return
        offset = decode_header(QueryConsumerOffsetResponse, answer).offset
        self.record(operation, Outcome.OK, "QueryOffset", queue, offset)
        self.places[queue] = Place(offset, offset, offset)

    async def lock_queues(
        self, broker: BrokerAddress, queues: tuple[MessageQueue, ...], *, unlock: bool = False
    ) -> None:
        action = "UnlockQueue" if unlock else "LockQueue"
        code = RequestCode.UNLOCK_BATCH_MQ if unlock else RequestCode.LOCK_BATCH_MQ
        body = LockBatchRequestBody(consumer_group=self.group, client_id=self.name, mq_set=queues)
        operation = self.begin()
        for queue in queues:
            self.record(operation, Outcome.INVOKE, action, queue)
        answer = await self.ask(broker, request(code, body=encode_body(body)), TIMEOUT_S)
        granted: tuple[MessageQueue, ...] = ()
        if not isinstance(answer, Outcome) and not unlock and answer.code == ResponseCode.SUCCESS:
            granted = decode_body(LockBatchResponseBody, answer.body).lock_ok_mq_set
        outcome = answer if isinstance(answer, Outcome) else simple(answer)
        for queue in queues:
            self.record(operation, outcome, action, queue, int(queue in granted), self.node.world.loop.wall_ms())

    async def read_to_end(self, broker: BrokerAddress, queue: MessageQueue) -> None:
        """Reads a queue from its beginning until nothing is left, as an auditor does."""
        self.places[queue] = Place()
        for _ in range(READS_MAX):
            found = await self.pull(broker, queue, 32, 0)
            if found == 0 or self.last_code == ResponseCode.TOPIC_NOT_EXIST:
                return
            if found is None:
                await asyncio.sleep(1)


def simple(answer: RemotingCommand) -> Outcome:
    if answer.code == ResponseCode.QUERY_NOT_FOUND:
        return Outcome.FAIL
    return Outcome.OK if answer.code == ResponseCode.SUCCESS else Outcome.UNKNOWN


def _stored(answer: RemotingCommand) -> Outcome:
    """What an answer to a send says of the message."""
    return Outcome.OK if answer.code in STORED else Outcome.FAIL if answer.code in REFUSED else Outcome.UNKNOWN


def _pulled(answer: RemotingCommand) -> Outcome:
    """What an answer to a pull says of the offset that came with it: one that was refused did not commit."""
    return Outcome.OK if "nextBeginOffset" in (answer.ext_fields or ()) else Outcome.FAIL


def _retry_delay_ms(delay_level: int, times: int) -> int:
    """How long a message that is sent back waits: the level asked for, or one that rises with every time."""
    return DELAYS_S[min(delay_level or FIRST_RETRY_LEVEL + times, len(DELAYS_S)) - 1] * 1000


def _pull_timeout_s(suspend_ms: int) -> float:
    return TIMEOUT_S + (suspend_ms / 1000 + LOOK_S if suspend_ms else 0.0)
