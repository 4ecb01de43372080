"""How a scripted client sends: single messages, delayed ones, batches, and the halves of transactions.

A send leaves an `invoke` event for each message, and an outcome for each.
"""

from __future__ import annotations

from ipaddress import ip_address
from typing import Final

from conformance.cluster.client import (
    PRODUCER_GROUP,
    TIMEOUT_S,
    ScriptedClient,
)
from conformance.cluster.known import PACKED, BrokerAddress, Sent
from refmq.model.fingerprint import message_fingerprint
from refmq.model.ids import MessageQueue
from refmq.protocol.codes import RequestCode, ResponseCode
from refmq.protocol.command import RemotingCommand, request
from refmq.protocol.headers.codec import decode_header, encode_header
from refmq.protocol.headers.send import SendMessageRequest, SendMessageResponse, encode_send_header
from refmq.protocol.record import (
    BatchedMessage,
    encode_batch,
    encode_properties,
    join_properties,
    parse_message_id,
)
from refmq.trace.record import Outcome

CLASSES: Final = 4
"""Messages are of four classes, told by their numbers; tag and property `n` follow from the class."""
PACKED_ONE_IN: Final = 5
FOREIGN: Final = ("", "\u00e9", "\u6d88\u606f", "\U0001f680")
"""What stands in the keys and properties of some messages: characters of one to four bytes."""
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


def message_of(
    client: ScriptedClient, body_bytes: int, *, batch: bool = False, **properties: str
) -> tuple[bytes, dict[str, str], int]:
    client.common.messages += 1
    number = client.common.messages
    foreign = FOREIGN[number % len(FOREIGN)]
    key = f"{client.name}-{number}{foreign}"
    body = f"{number}:".encode().ljust(body_bytes, b".") if body_bytes else b""
    kind = number % CLASSES
    kept = {"UNIQ_KEY": key, "KEYS": f"k{number}", "TAGS": "ab"[kind % 2], "n": str(kind)}
    if foreign:
        kept[f"x{foreign}"] = foreign
    flag, is_packed = 0 if batch else number % 3, not batch and number % PACKED_ONE_IN == 0
    born_ip, born_ms = ip_address(client.node.address).packed, client.node.world.loop.wall_ms()
    client.common.sent[key] = Sent(kept, flag, born_ms, born_ip, client.common.stores, is_packed)
    return body, {**kept, "WAIT": "true", **properties}, message_fingerprint(key.encode(), body)


def send_command(
    client: ScriptedClient,
    queue: MessageQueue,
    body: bytes,
    properties: dict[str, str],
    sys_flag: int,
    *,
    batch: bool = False,
) -> RemotingCommand:
    header = SendMessageRequest(
        producer_group=PRODUCER_GROUP,
        topic=queue.topic,
        default_topic="TBW102",
        default_topic_queue_nums=4,
        queue_id=queue.queue_id,
        sys_flag=sys_flag | (PACKED if not batch and client.common.sent[properties["UNIQ_KEY"]].is_packed else 0),
        born_timestamp=client.node.world.loop.wall_ms(),
        flag=0 if batch else client.common.sent[properties["UNIQ_KEY"]].flag,
        properties=join_properties(properties),
        batch=batch,
    )
    if client.common.messages % 3:
        return request(RequestCode.SEND_MESSAGE, encode_header(header), body)
    code = RequestCode.SEND_BATCH_MESSAGE if batch else RequestCode.SEND_MESSAGE_V2
    return request(code, encode_send_header(header), body)


async def send(client: ScriptedClient, broker: BrokerAddress, queue: MessageQueue, body_bytes: int) -> None:
    body, properties, message = message_of(client, body_bytes)
    operation = client.begin()
    client.record(operation, Outcome.INVOKE, "Send", queue, -1, -1, message, int(properties["n"]))
    answer = await client.ask(broker, send_command(client, queue, body, properties, 0), TIMEOUT_S)
    if sent(client, operation, "Send", queue, message, answer) is not None:
        client.last_key[queue.broker] = (properties["UNIQ_KEY"], message)


async def send_delayed(
    client: ScriptedClient, broker: BrokerAddress, queue: MessageQueue, body_bytes: int, level: int, delay_ms: int
) -> None:
    """The answer names a place in the delay queue, which is nobody's business."""
    body, properties, message = message_of(client, body_bytes, DELAY=str(level))
    operation = client.begin()
    due_ms = client.node.world.loop.wall_ms() + delay_ms
    client.record(operation, Outcome.INVOKE, "SendDelayed", queue, due_ms, level, message, int(properties["n"]))
    answer = await client.ask(broker, send_command(client, queue, body, properties, 0), TIMEOUT_S)
    outcome = answer if isinstance(answer, Outcome) else _stored(answer)
    code = 0 if isinstance(answer, Outcome) else answer.code
    client.record(operation, outcome, "SendDelayed", queue, due_ms, level, message, code)


async def send_batch(client: ScriptedClient, broker: BrokerAddress, queue: MessageQueue, count: int) -> None:
    """One request, and for each message the same events as for one that is sent alone."""
    messages = [message_of(client, 20, batch=True) for _ in range(count)]
    operation = client.begin()
    for _, properties, message in messages:
        client.record(operation, Outcome.INVOKE, "SendBatch", queue, -1, -1, message, int(properties["n"]))
    batch = encode_batch(tuple(BatchedMessage(0, body, encode_properties(p)) for body, p, _ in messages))
    command = send_command(client, queue, batch, {"WAIT": "true"}, 0, batch=True)
    answer = await client.ask(broker, command, TIMEOUT_S)
    if isinstance(answer, Outcome) or answer.code not in STORED:
        outcome = answer if isinstance(answer, Outcome) else _stored(answer)
        for _, _, message in messages:
            client.record(operation, outcome, "SendBatch", queue, -1, -1, message)
        return
    header = decode_header(SendMessageResponse, answer)
    assert header.queue_offset is not None and header.msg_id is not None, "a stored batch has a place"
    ids = header.msg_id.split(",")
    assert len(ids) == count, f"{count} messages have {len(ids)} ids"
    for number, (_, _, message) in enumerate(messages):
        where = (parse_message_id(ids[number])[1], header.queue_offset + number)
        client.record(operation, Outcome.OK, "SendBatch", queue, *where, message, answer.code)


def sent(
    client: ScriptedClient,
    operation: int,
    action: str,
    queue: MessageQueue,
    message: int,
    answer: RemotingCommand | Outcome,
) -> SendMessageResponse | None:
    if isinstance(answer, Outcome):
        client.record(operation, answer, action, queue, -1, -1, message)
    elif answer.code in STORED:
        header = decode_header(SendMessageResponse, answer)
        assert header.queue_offset is not None and header.msg_id is not None, "a stored message has a place"
        _, physical_offset = parse_message_id(header.msg_id)
        client.record(operation, Outcome.OK, action, queue, physical_offset, header.queue_offset, message, answer.code)
        return header
    else:
        client.record(operation, _stored(answer), action, queue, -1, -1, message, answer.code)
    return None


def _stored(answer: RemotingCommand) -> Outcome:
    """What an answer to a send says of the message."""
    return Outcome.OK if answer.code in STORED else Outcome.FAIL if answer.code in REFUSED else Outcome.UNKNOWN
