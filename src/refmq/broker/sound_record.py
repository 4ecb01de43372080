"""Stored records that a broker reads for its own work: a damaged one is set aside, and the work goes on behind it.

Nothing repairs a record, and whoever stops at one stops for ever: every later message would wait behind it.
"""

from __future__ import annotations

from refmq.broker.environment import Environment
from refmq.errors import CorruptRecord
from refmq.model.ids import PhysicalOffset
from refmq.protocol.record import Record, decode_record
from refmq.store.api import StoreReader


def sound_record(store: StoreReader, environment: Environment, position: PhysicalOffset, what: str) -> Record | None:
    """The record at a position of the log. None if it is gone, or damaged: then the operator is told."""
    data = store.message_at(position)
    if data is None:
        return None
    try:
        return decode_record(data, base=position)
    except CorruptRecord as damage:
        environment.warn(f"{what} at physical offset {position} is damaged and is set aside: {damage}")
        return None
