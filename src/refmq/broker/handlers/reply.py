"""Request-reply: 324 and 325 SEND_REPLY_MESSAGE bring an answer, 326 pushes it to the producer that asked.

The answer names the client waiting for it. It is pushed over the connection that carries that client's heartbeats, and
also stored, so that it can be inspected later.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from refmq.broker.control_plane import Broker
from refmq.broker.handlers._registry import Answer, handles, refuse
from refmq.errors import RefmqError
from refmq.model.ids import ClientId
from refmq.plane import answers
from refmq.plane.engine import Peer
from refmq.plane.inputs import Frame
from refmq.plane.needs import NeedsGroup, NeedsTopic, Refusal
from refmq.plane.property_rules import waits_for_flush
from refmq.plane.send import RANDOM_QUEUE_BOUND, SendAllowed, check_topic, choose_queue, sent_message
from refmq.protocol import names
from refmq.protocol.codes import RequestCode, ResponseCode
from refmq.protocol.command import RemotingCommand, request, response
from refmq.protocol.headers.codec import encode_header
from refmq.protocol.headers.send import (
    SendMessageRequest,
    SendMessageResponse,
    decode_send_header,
    reply_header,
)
from refmq.protocol.host_address import host_text
from refmq.protocol.record import join_properties, parse_properties

PUSH_TIMEOUT_S: Final = 10.0


@handles(RequestCode.SEND_REPLY_MESSAGE, RequestCode.SEND_REPLY_MESSAGE_V2)
async def send_reply_message(broker: Broker, peer: Peer, command: RemotingCommand) -> Answer:
    """Pushes an answer to the requester, and stores it."""
    header = decode_send_header(command)
    draw = broker.environment.random_below(RANDOM_QUEUE_BOUND)
    frame = Frame(0, peer.number, peer.peer, command, draw=draw)
    allowed = await _check(broker, frame, header)
    if isinstance(allowed, Refusal):
        return answers.not_sent(broker.snapshot(), command, allowed)
    properties = parse_properties(header.properties or "")
    properties[names.PUSH_REPLY_TIME] = str(broker.environment.now_ms())
    refusal = await _push(broker, peer, command, header, properties)
    common = answers.send_header(broker.snapshot())
    if refusal is None:
        common = replace(common, msg_id="0", queue_id=header.queue_id, queue_offset=0)
    if broker.config.store_reply_message_enable:
        common = await _store(broker, frame, header, allowed, properties, common)
    if refusal is not None:
        return refuse(command, ResponseCode.SYSTEM_ERROR, refusal, encode_header(common))
    return response(command, ResponseCode.SUCCESS, encode_header(common))


async def _check(broker: Broker, frame: Frame, header: SendMessageRequest) -> SendAllowed | Refusal:
    """Where an answer is stored. Its topic is created as for a send."""
    topic = check_topic(broker.snapshot(), frame, header, broker.environment.now_ms())
    if isinstance(topic, NeedsGroup):
        return topic.refusal
    if isinstance(topic, NeedsTopic):
        if not await broker.create_topic_on_send(topic.creation):
            return topic.refusal
        need, topic = topic, check_topic(broker.snapshot(), frame, header, broker.environment.now_ms())
        if isinstance(topic, NeedsTopic | NeedsGroup):  # deleted meanwhile
            return need.refusal
    if isinstance(topic, Refusal):
        return topic
    return SendAllowed(topic, header.topic, choose_queue(frame, header, topic))


async def _push(
    broker: Broker,
    peer: Peer,
    command: RemotingCommand,
    header: SendMessageRequest,
    properties: dict[str, str],
) -> str | None:
    """Why the answer could not be pushed, or None."""
    client = properties.get(names.MESSAGE_REPLY_TO_CLIENT)
    if client is None:
        return f"reply message properties[{names.MESSAGE_REPLY_TO_CLIENT}] is null"
    number = broker.state.clients.producer_connections.get(ClientId(client))
    target = None if number is None else broker.environment.connection(number)
    if target is None or target.closed:
        return f"push reply message fail, channel of <{client}> not found."
    pushed = reply_header(
        replace(header, properties=join_properties(properties), reconsume_times=header.reconsume_times or 0),
        born_host=peer.peer,
        store_host=host_text(broker.store_host),
        store_timestamp=broker.environment.now_ms(),
    )
    question = request(RequestCode.PUSH_REPLY_MESSAGE_TO_CLIENT, encode_header(pushed), command.body)
    try:
        answer = await target.request(question, PUSH_TIMEOUT_S)
    except RefmqError:
        return f"push reply message to {client}fail."
    return None if answer.code == ResponseCode.SUCCESS else f"push reply message to {client}fail."


async def _store(
    broker: Broker,
    frame: Frame,
    header: SendMessageRequest,
    allowed: SendAllowed,
    properties: dict[str, str],
    common: SendMessageResponse,
) -> SendMessageResponse:
    message = sent_message(broker.snapshot(), frame, header, allowed, properties)
    result = await broker.engine.put(message, wait_durable=waits_for_flush(properties))
    if not result.status.is_stored:
        return common
    return replace(common, msg_id=result.message_id, queue_id=result.queue_id, queue_offset=result.queue_offset)
