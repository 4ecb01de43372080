"""What whoever waits for messages is told when records are dispatched: each one, in order, as it stands in the log."""

from __future__ import annotations

from collections.abc import Iterator

from conformance.store.history import Setting
from conformance.store.messages import tags_code
from conformance.store.readout import decoded
from conformance.store.record import Record
from refmq.model.ids import PhysicalOffset
from refmq.store import Dispatched, MessageStore


def faults(
    store: MessageStore, setting: Setting, begin: int, told: tuple[Dispatched, ...], count_max: int
) -> Iterator[str]:
    """A sentence if the records from `begin` on are not those that were reported."""
    expected = [record for record in _dispatched(store, setting, begin) if record.has_queue_unit]
    if len(told) > count_max or [_told(each) for each in told] != [_to_tell(record) for record in expected]:
        yield f"from {begin} on {told} were dispatched instead of {expected}"


def told_before(told: tuple[Dispatched, ...], newest: dict[tuple[str, int], int]) -> Iterator[str]:
    """A sentence if an offset is told again: a consumer that has read it will never see the second message."""
    for each in told:
        key = (each.topic, each.queue_id)
        if each.queue_offset <= newest.get(key, -1):
            yield f"{each} has an offset that another message of its queue had"
        newest[key] = int(each.queue_offset)


def _dispatched(store: MessageStore, setting: Setting, begin: int) -> Iterator[Record]:
    at = begin
    while at < store.dispatched_to:
        data = store.message_at(PhysicalOffset(at))
        record = decoded(data) if data is not None else None
        if isinstance(record, Record):
            yield record
            at += record.size_bytes
        else:
            at = (at // setting.log_file_bytes + 1) * setting.log_file_bytes


def _told(each: Dispatched) -> tuple[object, ...]:
    pairs = tuple(sorted(piece.split("\x01", 1) for piece in each.properties.decode().split("\x02") if piece))
    where = (each.topic, each.queue_id, each.queue_offset, each.physical_offset, each.size_bytes)
    return (*where, each.tags_code, each.store_timestamp_ms, pairs)


def _to_tell(record: Record) -> tuple[object, ...]:
    """What somebody who waits for a message is told about it."""
    pairs = tuple(sorted([name, value] for name, value in record.properties))
    where = (record.topic, record.queue_id, record.queue_offset, record.physical_offset, record.size_bytes)
    return (*where, tags_code(record), record.store_ms, pairs)
