"""Queue locks for orderly consumption: 41 LOCK_BATCH_MQ and 42 UNLOCK_BATCH_MQ."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from refmq.broker import queue_locks
from refmq.broker.control_plane import Broker
from refmq.broker.entry_checks import check_client, check_group, check_queue
from refmq.broker.handlers._registry import BODY_BYTES_MAX, done, handles, refuse
from refmq.broker.queue_locks import LockAnswer
from refmq.errors import WireError
from refmq.model.ids import ClientId
from refmq.plane.engine import Peer
from refmq.protocol.bodies.codec import decode_body, encode_body
from refmq.protocol.bodies.offsets import LockBatchRequestBody, LockBatchResponseBody
from refmq.protocol.codes import RequestCode, ResponseCode
from refmq.protocol.command import RemotingCommand

LOANS_MAX: Final = 200_000
"""The most loans kept at a time; more are refused, so that clients cannot fill the memory."""

QUEUES_PER_REQUEST_MAX: Final = 4_096
"""Queues of one request. A client asks for those that it was allocated at this broker."""


@handles(RequestCode.LOCK_BATCH_MQ)
def lock_batch_mq(broker: Broker, peer: Peer, command: RemotingCommand) -> RemotingCommand:
    """Lends queues. The answer lists those the client now holds; an empty list is not an error."""
    body = _read(command)
    if len(broker.state.locks.loans) + len(body.mq_set) > LOANS_MAX:
        broker.expire_loans()
    if len(broker.state.locks.loans) + len(body.mq_set) > LOANS_MAX:
        return refuse(command, ResponseCode.SYSTEM_BUSY, "too many queues are locked at this broker")
    answer = queue_locks.lock_queue(
        broker.state.locks, body.consumer_group, body.mq_set, ClientId(body.client_id), broker.environment.now_ms()
    )
    _apply(broker, answer)
    return done(command, body=encode_body(LockBatchResponseBody(lock_ok_mq_set=answer.held)))


@handles(RequestCode.UNLOCK_BATCH_MQ)
def unlock_batch_mq(broker: Broker, peer: Peer, command: RemotingCommand) -> RemotingCommand:
    """Takes queues back from their holder."""
    body = _read(command)
    answer = queue_locks.unlock_queue(
        broker.state.locks, body.consumer_group, body.mq_set, ClientId(body.client_id), broker.environment.now_ms()
    )
    _apply(broker, answer)
    return done(command)


def _read(command: RemotingCommand) -> LockBatchRequestBody:
    body = decode_body(LockBatchRequestBody, command.body, bytes_max=BODY_BYTES_MAX)
    check_group(body.consumer_group)
    check_client(body.client_id)
    if len(body.mq_set) > QUEUES_PER_REQUEST_MAX:
        raise WireError("mqSet", 0, f"at most {QUEUES_PER_REQUEST_MAX} queues", len(body.mq_set))
    for queue in body.mq_set:
        check_queue(queue)
    return body


def _apply(broker: Broker, answer: LockAnswer) -> None:
    broker.state = replace(broker.state, locks=answer.state)
    for event in answer.events:
        broker.environment.emit(event)
