"""How a scripted client reads: pulls with and without a filter, offsets, locks, and what it gives back."""

from __future__ import annotations

import asyncio
from typing import Final

from conformance.cluster.client import (
    FILTER_GROUP,
    REGISTERED_GROUP,
    SQL_GROUP,
    TIMEOUT_S,
    ScriptedClient,
    simple,
)
from conformance.cluster.history import Wanted
from conformance.cluster.known import BrokerAddress, Place
from refmq.broker.handlers.send_back import FIRST_RETRY_LEVEL
from refmq.errors import RefmqError
from refmq.model.ids import MessageQueue
from refmq.model.step import Event
from refmq.protocol.bodies.codec import decode_body, encode_body
from refmq.protocol.bodies.offsets import LockBatchRequestBody, LockBatchResponseBody
from refmq.protocol.codes import RequestCode, ResponseCode
from refmq.protocol.command import RemotingCommand, request
from refmq.protocol.headers.codec import decode_header, encode_header
from refmq.protocol.headers.messages import (
    ConsumerSendMsgBackRequest,
)
from refmq.protocol.headers.offsets import (
    QueryConsumerOffsetRequest,
    QueryConsumerOffsetResponse,
    UpdateConsumerOffsetRequest,
)
from refmq.protocol.headers.pull import PullMessageRequest, PullMessageResponse, PullSysFlag
from refmq.protocol.record import (
    Record,
)
from refmq.trace.record import Outcome

LOOK_S: Final = 6.0
"""Brokers look every five seconds whether the time of a waiting pull is up: it may wait so much longer than asked."""
DELAYS_S: Final = (1, 2, 5, 10)
"""The delay levels of the brokers: the longest is over in the quiet time."""
RETRIES_MAX: Final = 2
"""How often a message is sent back before it belongs to the dead letters."""
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
READS_MAX: Final = 1_000
"""Pulls of an auditor before it gives up on a queue."""


async def pull(
    client: ScriptedClient,
    broker: BrokerAddress,
    queue: MessageQueue,
    count: int,
    suspend_ms: int,
    *,
    commit: bool = False,
) -> int | None:
    """Reads on from where the client stands; the number of messages, or None without an answer."""
    place = client.place(queue)
    from_offset = place.next_offset
    operation, committed = client.begin(), place.committed
    if commit:
        client.record(operation, Outcome.INVOKE, "CommitOffset", queue, committed, place.consumed_to)
    client.record(operation, Outcome.INVOKE, "Pull", queue, from_offset, count, -1, suspend_ms)
    command = _pull_command(client, client.group, queue, place, count, suspend_ms, "all", commit=commit)
    offset = place.consumed_to
    answer = await client.ask(broker, command, _pull_timeout_s(suspend_ms))
    if commit:
        # A pull that broke may have committed, and so may one whose answer says anything.
        outcome = answer if isinstance(answer, Outcome) else _committed(answer)
        code = 0 if isinstance(answer, Outcome) or outcome is Outcome.OK else answer.code
        client.record(operation, outcome, "CommitOffset", queue, committed, offset, d=code)
        place.committed = offset if outcome is Outcome.OK else place.committed
    found = _arrivals(client, operation, "Pull", client.member, queue, from_offset, answer)
    if found is None:
        return None
    state, records = found
    if client.last_code == ResponseCode.SUCCESS and place.next_offset == from_offset:
        place.next_offset = state.next_begin_offset
        if records:
            client.last[queue.broker, queue.topic] = records[-1]
        if place.consumed_to == from_offset:
            place.consumed_to = state.next_begin_offset
    return len(records)


async def pull_filtered(
    client: ScriptedClient, broker: BrokerAddress, queue: MessageQueue, count: int, suspend_ms: int, wanted: Wanted
) -> None:
    """Reads on with a filter, for a group that does nothing else."""
    group = {"registered": REGISTERED_GROUP, "registered sql": SQL_GROUP}.get(wanted, FILTER_GROUP)
    place = client.filtered.setdefault((queue, wanted), Place())
    from_offset = place.next_offset
    operation, actor = client.begin(), f"{group}@{client.name}"
    subject, mask = f"{queue.topic}@{queue.broker}", FILTERS[wanted][2]
    invoke = Event("PullFiltered", actor, subject, queue.queue_id, from_offset, count, mask, suspend_ms)
    client.node.recorder.record(invoke, Outcome.INVOKE, operation)
    command = _pull_command(client, group, queue, place, count, suspend_ms, wanted)
    answer = await client.ask(broker, command, _pull_timeout_s(suspend_ms))
    found = _arrivals(client, operation, "PullFiltered", actor, queue, from_offset, answer, mask)
    moves = (ResponseCode.SUCCESS, ResponseCode.PULL_RETRY_IMMEDIATELY)
    if found is not None and client.last_code in moves and place.next_offset == from_offset:
        place.next_offset = found[0].next_begin_offset


def _pull_command(
    client: ScriptedClient,
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
    code = RequestCode.PULL_MESSAGE if suspend_ms or client.common.operations % 4 else RequestCode.LITE_PULL_MESSAGE
    return request(code, encode_header(header))


def _arrivals(
    client: ScriptedClient,
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
        client.node.recorder.record(event, outcome, operation)

    unknown = -1 if mask is None else mask
    if isinstance(answer, Outcome):
        line(answer, queue, from_offset, -1, unknown)
        return None
    client.last_code = answer.code
    try:
        state = decode_header(PullMessageResponse, answer)
    except RefmqError:  # an error has no such header
        line(Outcome.FAIL, queue, from_offset, -1, unknown, answer.code)
        return None
    records = client.arrived(answer.body) if answer.code == ResponseCode.SUCCESS else []
    for record in records:
        real = MessageQueue(record.topic, queue.broker, record.queue_id)
        message = client.fingerprint(record)
        line(Outcome.CONSUMED, real, record.physical_offset, record.queue_offset, message, record.size_bytes)
    third = state.max_offset if mask is None else mask
    line(Outcome.OK, queue, from_offset, state.next_begin_offset, third, answer.code)
    return state, records


async def send_back(client: ScriptedClient, broker: BrokerAddress, queue: MessageQueue, delay_level: int) -> None:
    """Sends the last message of a topic back, as one that could not be handled."""
    record = client.last.get((queue.broker, queue.topic))
    if record is None:
        return
    message = client.fingerprint(record)
    header = ConsumerSendMsgBackRequest(
        offset=record.physical_offset,
        group=client.group,
        delay_level=delay_level,
        origin_msg_id=record.message_id,
        origin_topic=record.topic,
        max_reconsume_times=RETRIES_MAX,
    )
    operation, times = client.begin(), record.reconsume_times
    due_ms = client.node.world.loop.wall_ms() + _retry_delay_ms(delay_level, times)
    client.record(operation, Outcome.INVOKE, "SendBack", queue, due_ms, times, message, RETRIES_MAX)
    answer = await client.ask(broker, request(RequestCode.CONSUMER_SEND_MSG_BACK, encode_header(header)), TIMEOUT_S)
    outcome = answer if isinstance(answer, Outcome) else simple(answer)
    client.record(operation, outcome, "SendBack", queue, due_ms, times, message, RETRIES_MAX)


async def commit_offset(client: ScriptedClient, broker: BrokerAddress, queue: MessageQueue, back: int = 0) -> None:
    place = client.place(queue)
    offset = max(0, place.consumed_to - back)
    header = UpdateConsumerOffsetRequest(
        consumer_group=client.group, topic=queue.topic, queue_id=queue.queue_id, commit_offset=offset
    )
    operation, committed = client.begin(), place.committed
    client.record(operation, Outcome.INVOKE, "CommitOffset", queue, committed, offset)
    answer = await client.ask(broker, request(RequestCode.UPDATE_CONSUMER_OFFSET, encode_header(header)), TIMEOUT_S)
    outcome = answer if isinstance(answer, Outcome) else simple(answer)
    client.record(operation, outcome, "CommitOffset", queue, committed, offset)
    if outcome is Outcome.OK:
        place.committed = offset


async def query_offset(client: ScriptedClient, broker: BrokerAddress, queue: MessageQueue) -> None:
    header = QueryConsumerOffsetRequest(consumer_group=client.group, topic=queue.topic, queue_id=queue.queue_id)
    operation = client.begin()
    client.record(operation, Outcome.INVOKE, "QueryOffset", queue, -1)
    answer = await client.ask(broker, request(RequestCode.QUERY_CONSUMER_OFFSET, encode_header(header)), TIMEOUT_S)
    if isinstance(answer, Outcome) or answer.code != ResponseCode.SUCCESS:
        outcome = answer if isinstance(answer, Outcome) else simple(answer)
        client.record(operation, outcome, "QueryOffset", queue, -1, d=0 if isinstance(answer, Outcome) else answer.code)
        return
    offset = decode_header(QueryConsumerOffsetResponse, answer).offset
    client.record(operation, Outcome.OK, "QueryOffset", queue, offset)
    client.places[queue] = Place(offset, offset, offset)


async def lock_queues(
    client: ScriptedClient, broker: BrokerAddress, queues: tuple[MessageQueue, ...], *, unlock: bool = False
) -> None:
    action = "UnlockQueue" if unlock else "LockQueue"
    code = RequestCode.UNLOCK_BATCH_MQ if unlock else RequestCode.LOCK_BATCH_MQ
    body = LockBatchRequestBody(consumer_group=client.group, client_id=client.name, mq_set=queues)
    operation = client.begin()
    for queue in queues:
        client.record(operation, Outcome.INVOKE, action, queue)
    answer = await client.ask(broker, request(code, body=encode_body(body)), TIMEOUT_S)
    granted: tuple[MessageQueue, ...] = ()
    if not isinstance(answer, Outcome) and not unlock and answer.code == ResponseCode.SUCCESS:
        granted = decode_body(LockBatchResponseBody, answer.body).lock_ok_mq_set
    outcome = answer if isinstance(answer, Outcome) else simple(answer)
    for queue in queues:
        client.record(operation, outcome, action, queue, int(queue in granted), client.node.world.loop.wall_ms())


async def read_to_end(client: ScriptedClient, broker: BrokerAddress, queue: MessageQueue) -> None:
    """Reads a queue from its beginning until nothing is left, as an auditor does."""
    client.places[queue] = Place()
    for _ in range(READS_MAX):
        found = await pull(client, broker, queue, 32, 0)
        if found == 0 or client.last_code == ResponseCode.TOPIC_NOT_EXIST:
            return
        if found is None:
            await asyncio.sleep(1)


def _committed(answer: RemotingCommand) -> Outcome:
    """What an answer to a pull says of the offset that came with it: one that was refused did not commit."""
    return Outcome.OK if "nextBeginOffset" in (answer.ext_fields or ()) else Outcome.FAIL


def _retry_delay_ms(delay_level: int, times: int) -> int:
    """How long a message that is sent back waits: the level asked for, or one that rises with every time."""
    return DELAYS_S[min(delay_level or FIRST_RETRY_LEVEL + times, len(DELAYS_S)) - 1] * 1000


def _pull_timeout_s(suspend_ms: int) -> float:
    return TIMEOUT_S + (suspend_ms / 1000 + LOOK_S if suspend_ms else 0.0)
