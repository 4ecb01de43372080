"""Storing a stored message again: under another topic, with other properties, with a higher retry count."""

from __future__ import annotations

from refmq.plane.engine import HotPath
from refmq.plane.property_rules import delay_level, waits_for_flush
from refmq.protocol.record import Record, join_properties
from refmq.store.values import MessageToStore, PutResult


def copy_of(record: Record) -> MessageToStore:
    """Everything the sender set, ready for `dataclasses.replace`; the store assigns a new position and time."""
    return MessageToStore(
        topic=record.topic,
        queue_id=record.queue_id,
        body=record.body,
        properties=record.properties,
        born_timestamp_ms=record.born_timestamp_ms,
        born_host=record.born_host,
        store_host=record.store_host,
        flag=record.flag,
        sys_flag=record.sys_flag,
        reconsume_times=record.reconsume_times,
    )


async def put_copy(engine: HotPath, copy: MessageToStore, properties: dict[str, str]) -> PutResult:
    """Stores a copy with these properties, and acts on them: delays it, waits for the flush."""
    level = delay_level(copy.sys_flag, properties)
    message = copy._replace(properties=join_properties(properties).encode(), delay_level=level)
    return await engine.put(message, wait_durable=waits_for_flush(properties))
