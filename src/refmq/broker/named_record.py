"""A record that a peer names by its place in the log: 33, 36, 37, 309 and 323.

The place is a number, and anybody can ask for any. A record may well lie in the body of another one, made up by whoever
sent that. So we ask who knows: the queue of the record, which has a unit for it, or, if it is so new that it has none
yet, the log itself, record by record from the last one that has.
"""

from __future__ import annotations

from typing import Final

from refmq.model.ids import PhysicalOffset
from refmq.protocol.record import (
    BLANK_HEADER_BYTES,
    BLANK_MAGIC,
    Record,
    decode_record,
    is_record_magic,
    read_size_and_magic,
)
from refmq.store.api import StoreReader

WALK_RECORDS_MAX: Final = 4096
"""So far behind a place may be that has no unit yet. A broker that is further behind says that there is no record."""


def named_record(store: StoreReader, position: PhysicalOffset) -> tuple[Record, bytes] | None:
    """The record that begins at a place, and its bytes. None if none does. Raises `CorruptRecord` for a damaged one."""
    data = store.message_at(position)
    if data is None:
        return None
    record = decode_record(data, base=position)
    return (record, data) if _begins(store, record, position) else None


def _begins(store: StoreReader, record: Record, position: PhysicalOffset) -> bool:
    """Whether a record begins there, and not in the middle of another one."""
    if record.physical_offset != position:
        return False
    if position >= store.dispatched_to:
        return _is_walked_to(store, position)
    units = store.units(record.topic, record.queue_id, record.queue_offset, 1)
    return any(unit.physical_offset == position and unit.queue_offset == record.queue_offset for unit in units)


def _is_walked_to(store: StoreReader, position: PhysicalOffset) -> bool:
    """Whether the records from the last one with a unit on lead to this place."""
    at = store.dispatched_to
    for _ in range(WALK_RECORDS_MAX):
        if at >= position:
            break
        piece = store.read_log(at, BLANK_HEADER_BYTES)
        if piece is None or len(piece.data) < BLANK_HEADER_BYTES:
            return False
        size_bytes, magic = read_size_and_magic(piece.data)
        if size_bytes <= 0 or not (is_record_magic(magic) or magic == BLANK_MAGIC):
            return False
        at = PhysicalOffset(at + size_bytes)
    return at == position
