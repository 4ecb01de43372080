"""A stored message that is stored once more: under another topic, with other properties, with its count raised."""

from __future__ import annotations

from refmq.protocol.record import Record
from refmq.store.values import MessageToStore


def copy_of(record: Record) -> MessageToStore:
    """Everything that the sender said, ready for `dataclasses.replace`; the store gives it a new place and time."""
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
