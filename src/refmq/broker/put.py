"""Storing a message whose properties are at hand: what they say about delay, transaction and durability."""

from __future__ import annotations

from dataclasses import replace

from refmq.broker.broker import Broker
from refmq.broker.live_properties import delay_level, waits_for_flush
from refmq.model.step import Event
from refmq.protocol import names
from refmq.protocol.names import TRANS_HALF_TOPIC
from refmq.protocol.record import (
    SYS_FLAG_TRANSACTION,
    join_properties,
)
from refmq.store.values import MessageToStore, PutResult


def sent_properties(properties: dict[str, str], level: int) -> bytes:
    """The properties of a message as a producer sent it: WAIT is for the broker and is left out of what is stored.

    A delayed message keeps it, because the store writes the properties anew: as upstream does.
    """
    if level == 0 and names.WAIT_STORE_MSG_OK in properties:
        properties = {name: value for name, value in properties.items() if name != names.WAIT_STORE_MSG_OK}
    return join_properties(properties).encode()


async def put_with_live_properties(broker: Broker, message: MessageToStore, properties: dict[str, str]) -> PutResult:
    """Stores a message that the broker makes from another one, with all properties as they are."""
    level = delay_level(message.sys_flag, properties)
    message = replace(message, properties=join_properties(properties).encode(), delay_level=level)
    return await broker.engine.put(message, wait_durable=waits_for_flush(properties))


async def send_half(broker: Broker, message: MessageToStore, properties: dict[str, str]) -> PutResult:
    """Stores a half message: out of sight in the half topic, with its real topic and queue in its properties.

    A delay level on it is dropped: upstream would move it to the delay topic and lose it there.
    """
    real = {names.REAL_TOPIC: message.topic, names.REAL_QUEUE_ID: str(message.queue_id)}
    kept = {name: value for name, value in properties.items() if name != names.DELAY_TIME_LEVEL}
    half = replace(
        message,
        topic=TRANS_HALF_TOPIC,
        queue_id=0,
        sys_flag=message.sys_flag & ~SYS_FLAG_TRANSACTION,
        properties=join_properties({**kept, **real}).encode(),
        delay_level=0,
    )
    result = await broker.engine.put(half, wait_durable=waits_for_flush(properties))
    if result.status.is_stored:
        group = properties.get(names.PRODUCER_GROUP, "")
        where = (result.physical_offset, result.queue_offset, result.fingerprint)
        broker.world.emit(Event("SendHalf", group, message.topic, message.queue_id, *where))
    return result
