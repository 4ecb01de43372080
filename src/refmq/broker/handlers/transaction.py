"""Transactions over the wire: decisions (37), outgoing check-backs (39), restarting the checks of a message (323)."""

from __future__ import annotations

from refmq.acl.accounts import Permission
from refmq.broker.control_plane import Broker
from refmq.broker.handlers._registry import Answer, done, handles, refuse
from refmq.broker.message_copy import copy_of
from refmq.broker.named_record import named_record
from refmq.broker.transactions import Decision, HalfMessage, WrongHalf
from refmq.plane.engine import Peer
from refmq.protocol import names
from refmq.protocol.codes import RequestCode, ResponseCode
from refmq.protocol.command import RemotingCommand, oneway
from refmq.protocol.headers.codec import decode_header, encode_header
from refmq.protocol.headers.messages import (
    CheckTransactionStateRequest,
    EndTransactionRequest,
    ResumeCheckHalfMessageRequest,
)
from refmq.protocol.names import TRANS_CHECK_MAX_TIME_TOPIC, TRANS_HALF_TOPIC
from refmq.protocol.record import encode_properties, encode_record, parse_message_id


@handles(RequestCode.END_TRANSACTION)
async def end_transaction(broker: Broker, peer: Peer, command: RemotingCommand) -> Answer:
    """A producer's decision about a half message, mostly one-way."""
    header = decode_header(EndTransactionRequest, command)
    if broker.is_slave:
        remark = "Message store is slave mode, so end transaction is forbidden. "
        return refuse(command, ResponseCode.SLAVE_NOT_AVAILABLE, remark)
    if header.commit_or_rollback == Decision.UNKNOWN:
        return None  # nothing is decided: the next round asks again
    if header.commit_or_rollback not in (Decision.COMMIT, Decision.ROLLBACK):
        remark = f"commitOrRollback should be 0, 8 or 12, not {header.commit_or_rollback}"
        return refuse(command, ResponseCode.SYSTEM_ERROR, remark)
    try:
        half = broker.transactions.matching_half(header)
    except WrongHalf as wrong:
        return refuse(command, ResponseCode.SYSTEM_ERROR, str(wrong))
    denied = broker.refusal_of_use(command, peer, half.real_topic, Permission.PUB)
    if denied is not None:
        return refuse(command, ResponseCode.SYSTEM_ERROR, denied)
    status = await broker.transactions.end_transaction(header, half)
    if not status.is_stored:
        return refuse(command, ResponseCode.SYSTEM_ERROR, status.name)
    return done(command)


def ask_producer(broker: Broker, half: HalfMessage) -> None:
    """Sends 39 CHECK_TRANSACTION_STATE to the group's producers in turn. If none is online, the next round asks."""
    peer = _producer(broker, half.group, half.real_topic)
    if peer is None:
        return
    record = half.record
    header = CheckTransactionStateRequest(
        tran_state_table_offset=record.queue_offset,
        commit_log_offset=record.physical_offset,
        msg_id=half.unique_key,
        transaction_id=half.unique_key,
        offset_msg_id=record.message_id,
    )
    body = encode_record(record._replace(topic=half.real_topic, queue_id=half.real_queue))
    peer.send_oneway(oneway(RequestCode.CHECK_TRANSACTION_STATE, encode_header(header), body))


def _producer(broker: Broker, group: str, topic: str) -> Peer | None:
    """The next producer of a group that may see messages of this topic: anybody may say that he is in a group."""
    members = broker.state.clients.ordered_producers(group)
    broker.check_turn += 1
    for step in range(len(members)):
        member = members[(broker.check_turn + step) % len(members)]
        peer = broker.environment.connection(member.connection)
        if peer is not None and not peer.closed and broker.may_be_told(peer, topic):
            return peer
    return None


@handles(RequestCode.RESUME_CHECK_HALF_MESSAGE)
async def resume_check_half_message(broker: Broker, peer: Peer, command: RemotingCommand) -> Answer:
    """Returns a message that was set aside to the half messages, as if it had never been checked."""
    header = decode_header(ResumeCheckHalfMessageRequest, command)
    _, offset = parse_message_id(header.msg_id or "")
    found = named_record(broker.engine.store, offset)
    half = None if found is None else HalfMessage(found[0])
    if half is None or half.record.topic not in (TRANS_CHECK_MAX_TIME_TOPIC, TRANS_HALF_TOPIC) or half.place is None:
        return refuse(command, ResponseCode.SYSTEM_ERROR, "Put message back to RMQ_SYS_TRANS_HALF_TOPIC failed.")
    properties = {**half.properties, names.TRANSACTION_CHECK_TIMES: "0"}
    result = await broker.engine.put(
        copy_of(half.record)._replace(topic=TRANS_HALF_TOPIC, queue_id=0, properties=encode_properties(properties))
    )
    if not result.status.is_stored:
        return refuse(command, ResponseCode.SYSTEM_ERROR, "Put message back to RMQ_SYS_TRANS_HALF_TOPIC failed.")
    return done(command)
