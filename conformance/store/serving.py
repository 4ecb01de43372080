"""A consumer reads a queue: what it asks for, what it should get, and what it got."""

from __future__ import annotations

from collections.abc import Iterator

from conformance.oracles import store_events as seen
from conformance.store import history as h
from conformance.store import messages, raw
from conformance.store.readout import ALL, all_units, decoded, pulled
from conformance.store.record import Record, java_hash
from refmq.filter.message_filter import BitmapTest, MessageFilter
from refmq.model.ids import PhysicalOffset, QueueOffset
from refmq.sim.disk import SimulatedDisk
from refmq.store import MessageStore, QueueUnit


def serve(
    step: h.ServeMessage, store: MessageStore, disk: SimulatedDisk, setting: h.Setting
) -> Iterator[seen.Observation]:
    """Reads from an offset on until nothing is left."""
    topic = messages.TOPICS[step.topic % len(messages.TOPICS)]
    queue_id = messages.QUEUES[step.queue % len(messages.QUEUES)]
    first, end = store.min_offset(topic, queue_id), store.max_offset(topic, queue_id)
    units = tuple(
        seen.Wanted(unit.queue_offset, unit.physical_offset, unit.size_bytes, _is_wanted(step, store, unit, setting))
        for unit in all_units(store, topic, queue_id)
    )
    offset = QueueOffset(max(0, end - step.behind))
    worst = raw.worst_case(disk)
    message_filter = _filter(step, topic, store.log_max)
    for _ in range(ALL):
        result = store.get_message(topic, queue_id, offset, step.count, message_filter)
        found = []
        for data in result.records:
            record = decoded(data)
            found.append(record.queue_offset if isinstance(record, Record) else -1)
            yield seen.ServeMessage(
                record,
                topic,
                queue_id,
                found[-1],
                is_durable=isinstance(record, Record)
                and raw.holds(worst, record.physical_offset, data, setting.log_file_bytes),
                must_be_durable=setting.sync_flush,
            )
        yield pulled(store, setting, (topic, queue_id), (offset, step.count), result, tuple(found), units)
        if (result.min_offset, result.max_offset) != (first, end):
            yield seen.Failed("get_message", f"bounds {result.min_offset}, {result.max_offset}")
        if result.next_offset == offset or result.next_offset >= end:
            return
        offset = result.next_offset


def _filter(step: h.ServeMessage, topic: str, log_max: int) -> MessageFilter:
    tag_codes = None
    if step.tag is not None:
        tag_codes = frozenset({java_hash(messages.TAGS[step.tag % len(messages.TAGS)])})
    if step.expression is None:
        return MessageFilter(tag_codes)
    expression = step.expression % len(messages.TAGS)
    test = BitmapTest(
        messages.bit_positions(expression), messages.bit_count(topic) or 8, PhysicalOffset(log_max - step.since)
    )
    return MessageFilter(tag_codes, test, None if step.bits_only else messages.expression(expression))


def _is_wanted(step: h.ServeMessage, store: MessageStore, unit: QueueUnit, setting: h.Setting) -> bool:
    """Whether the filter lets a message through, by what is in its record."""
    data = store.message_at(PhysicalOffset(unit.physical_offset))
    record = decoded(data) if data is not None else None
    if not isinstance(record, Record):
        return True  # whoever reads it will say so
    tags = dict(record.properties).get("TAGS", "")
    if step.tag is not None and java_hash(tags) != java_hash(messages.TAGS[step.tag % len(messages.TAGS)]):
        return False
    if step.expression is None:
        return True
    expression = step.expression % len(messages.TAGS)
    if not step.bits_only:
        return messages.TAGS.index(tags) == expression
    bitmap = messages.bitmap_of(record.topic, f"TAGS\x01{tags}".encode())
    has_bits = setting.ext and bitmap and messages.has_ext_unit(record, setting.ext_file_bytes)
    if not has_bits or record.physical_offset < store.log_max - step.since:
        return True
    return all(bitmap[bit // 8] & 1 << bit % 8 for bit in messages.bit_positions(expression))
