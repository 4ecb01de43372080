"""How a scripted client takes part in a transaction: it sends a half message, decides, and is asked."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable
from dataclasses import replace
from typing import Final

from conformance.cluster.client import (
    PRODUCER_GROUP,
    TIMEOUT_S,
    ScriptedClient,
)
from conformance.cluster.history import Decision, Forged
from conformance.cluster.known import BrokerAddress, SentHalf
from conformance.cluster.sending import message_of, send_command, sent
from refmq.errors import CorruptRecord, NetworkError
from refmq.model.fingerprint import message_fingerprint
from refmq.model.ids import MessageQueue
from refmq.net.connection import Connection
from refmq.protocol.codes import RequestCode, ResponseCode
from refmq.protocol.command import RemotingCommand, oneway, response
from refmq.protocol.headers.clients import NotifyConsumerIdsChangedRequest
from refmq.protocol.headers.codec import decode_header, encode_header
from refmq.protocol.headers.messages import (
    CheckTransactionStateRequest,
    EndTransactionRequest,
)
from refmq.protocol.record import (
    decode_properties,
    decode_record,
    parse_message_id,
)
from refmq.trace.record import Outcome
from refmq.verify.oracles.base import Finding

DECISIONS: Final[dict[Decision, int]] = {"commit": 8, "rollback": 12, "unknown": 0, "none": 0}


async def send_half(
    client: ScriptedClient,
    broker: BrokerAddress,
    queue: MessageQueue,
    decision: Decision,
    reply: Decision,
    ends: int,
    *,
    after_s: float = 0.0,
    immunity_s: int = 0,
    delay_level: int = 0,
) -> None:
    body, properties, message = message_of(client, 20, TRAN_MSG="true", PGROUP=PRODUCER_GROUP)
    properties |= {"CHECK_IMMUNITY_TIME_IN_SECONDS": str(immunity_s)} if immunity_s else {}
    properties |= {"DELAY": str(delay_level)} if delay_level else {}
    immune_until_ms = client.node.world.loop.wall_ms() + immunity_s * 1000 if immunity_s else -1
    transaction = properties["UNIQ_KEY"]
    client.decisions[transaction] = (reply, message)
    operation = client.begin()
    client.record(operation, Outcome.INVOKE, "SendHalf", queue, immune_until_ms, -1, message, int(properties["n"]))
    answer = await client.ask(broker, send_command(client, queue, body, properties, 4), TIMEOUT_S)
    header = sent(client, operation, "SendHalf", queue, message, answer)
    if header is None:
        return
    assert header.queue_offset is not None and header.msg_id is not None
    _, physical_offset = parse_message_id(header.msg_id)
    client.common.halves.append(SentHalf(queue.broker, transaction, physical_offset, header.queue_offset))
    if decision == "none":
        return
    said: Decision = decision if decision == "unknown" else reply
    if after_s:
        await asyncio.sleep(after_s)
    client.record(operation, Outcome.INVOKE, "EndTransaction", queue, DECISIONS[said], header.queue_offset, message)
    client.common.sent[transaction].ends_at.add(physical_offset)
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
            client.common.requests[command.code] += 1
            await client.client.oneway(broker.address, command, TIMEOUT_S)
    except NetworkError:
        client.record(
            operation, Outcome.UNKNOWN, "EndTransaction", queue, DECISIONS[said], header.queue_offset, message
        )


async def forge(client: ScriptedClient, broker: BrokerAddress, wrong: Forged) -> None:
    """Commits the newest half message of a broker in a way that the broker must not take: nothing is recorded, so
    whatever comes of it nobody has asked for."""
    halves = [half for half in client.common.halves if half.broker == broker.name]
    if not halves:
        return
    half, other = halves[-1], halves[0]
    end = EndTransactionRequest(
        producer_group="others" if wrong == "group" else PRODUCER_GROUP,
        tran_state_table_offset=half.queue_offset + (1 if wrong == "offset" else 0),
        commit_log_offset=half.physical_offset + (1 if wrong == "place" and half == other else 0),
        commit_or_rollback=DECISIONS["commit"],
        msg_id=f"{half.transaction}-" if wrong == "id" else half.transaction,
        transaction_id=f"{half.transaction}-" if wrong == "id" else half.transaction,
    )
    if wrong == "place" and half != other:
        end = replace(end, commit_log_offset=other.physical_offset)
    command = oneway(RequestCode.END_TRANSACTION, encode_header(end))
    client.common.requests[command.code] += 1
    with contextlib.suppress(NetworkError):
        await client.client.oneway(broker.address, command, TIMEOUT_S)


def heard(
    client: ScriptedClient, connection: Connection, command: RemotingCommand
) -> RemotingCommand | Awaitable[None] | None:
    """What brokers say on their own: the question for a transaction, and that a group changed."""
    if command.code == RequestCode.CHECK_TRANSACTION_STATE:
        check_reply(client, connection, command)
        return None
    if command.code == RequestCode.NOTIFY_CONSUMER_IDS_CHANGED:
        group = decode_header(NotifyConsumerIdsChangedRequest, command).consumer_group
        if group == client.group:
            broker = MessageQueue("", client.broker_of(connection), -1)
            client.record(client.begin(), Outcome.OK, "Notified", broker)
    if command.is_oneway:
        return None
    return response(command, ResponseCode.REQUEST_CODE_NOT_SUPPORTED)


def check_reply(client: ScriptedClient, connection: Connection, command: RemotingCommand) -> None:
    header = decode_header(CheckTransactionStateRequest, command)
    try:
        record = decode_record(command.body)
    except CorruptRecord as error:
        client.common.wrong.append(
            Finding("AskedAboutWhatWasSent", f"{client.member} is asked about a record: {error}")
        )
        return
    properties = decode_properties(record.properties)
    transaction = header.transaction_id or properties.get("UNIQ_KEY", "")
    reply, message = client.decisions.get(transaction, ("unknown", 0))
    if reply == "none" or message == 0:
        return  # a producer that knows nothing of it says nothing, as Java's does without a listener
    real = MessageQueue(
        properties.get("REAL_TOPIC", ""), client.broker_of(connection), int(properties.get("REAL_QID", "0"))
    )
    asked_about = (record.topic, record.queue_id, message_fingerprint(transaction.encode(), record.body))
    if asked_about != (real.topic, real.queue_id, message):
        sentence = f"{client.member} is asked about {asked_about} and sent {real.topic}/{real.queue_id}, {message}"
        client.common.wrong.append(Finding("AskedAboutWhatWasSent", sentence))
    client.record(
        client.begin(), Outcome.INVOKE, "CheckReply", real, DECISIONS[reply], header.tran_state_table_offset, message
    )
    client.common.sent[transaction].ends_at.add(header.commit_log_offset)
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
