"""Reads everything that a store answers, through its interface alone.

A history reads everything about twenty times, so of the searches by time and the spans of the index each readout asks a
part. Which part depends on how many records there are: the next readout but a few asks the others, and two readouts of
equal stores ask the same.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterator
from typing import Final

from conformance.oracles.store_events import Pulled, Queue, Readout, Unit, Wanted
from conformance.store.history import Setting
from conformance.store.record import BLANK_BYTES, MESSAGE_MAGIC, Record, decode
from refmq.model.ids import PhysicalOffset, QueueOffset, TimestampMs
from refmq.store import Boundary, GetResult, GetStatus, MessageStore, QueueUnit

ALL: Final = 1000
"""More than any history stores."""
END_OF_TIME_MS: Final = TimestampMs(1 << 60)
SECOND_MS: Final = 1000
MAGIC: Final = MESSAGE_MAGIC.to_bytes(4, "big")


def read_everything(store: MessageStore, setting: Setting, *, is_full: bool, hides_unwritten: bool = False) -> Readout:
    """All records, queues, keys and times."""
    has_index = setting.index
    raw, log_end, log_fault = _log(store, setting.log_file_bytes)
    records = tuple(record for record, _ in raw)
    turn = len(records)
    by_key, by_key_between, newest_by_key = _keys(store, records, turn) if has_index else ({}, {}, {})
    index = store.query_by_key("", "", 1, TimestampMs(0), END_OF_TIME_MS)
    return Readout(
        log_min=store.log_min,
        log_max=store.log_max,
        flushed_to=store.flushed_to,
        dispatched_to=store.dispatched_to,
        records=records,
        log_end=log_end,
        log_fault=log_fault,
        queues={
            (queue.topic, queue.queue_id): _queue(store, queue.topic, queue.queue_id, setting, turn)
            for queue in store.queues()
        },
        by_key=by_key,
        by_key_between=by_key_between,
        newest_by_key=newest_by_key,
        by_offset={
            record.physical_offset: store.message_at(PhysicalOffset(record.physical_offset)) == data
            and all(store.message_at(PhysicalOffset(at)) is None for at in _inside(record, data))
            for record, data in raw
        },
        index_last=(index.index_last_update_ms, index.index_last_update_offset) if has_index else None,
        hides_unwritten=hides_unwritten,
        is_full=is_full,
        outside=tuple(_outside(store)),
    )


def _inside(record: Record, data: bytes) -> Iterator[int]:
    """Places inside a record where another one seems to start, and one where none does."""
    yield record.physical_offset + 1
    found = data.find(MAGIC, BLANK_BYTES)
    while found >= 0:
        yield record.physical_offset + found - 4
        found = data.find(MAGIC, found + 1)


def _outside(store: MessageStore) -> Iterator[str]:
    """Questions about what is not there, and wrong answers to them."""
    log_min, log_max = int(store.log_min), int(store.log_max)
    for at in (-1, log_min - 1, log_max, log_max + 1000):
        offset = PhysicalOffset(at)
        if store.message_at(offset) is not None or store.read_log(offset, 1) is not None:
            yield f"something is read at {at} of a log from {log_min} to {log_max}"
    nobody = ("nobody", 0)
    unknown = (*(store.offset_by_time(*nobody, TimestampMs(1), each) for each in Boundary),)
    if (store.min_offset(*nobody), store.max_offset(*nobody), *unknown) != (0,) * (2 + len(unknown)):
        yield "a queue that does not exist has offsets"
    if store.store_time(*nobody, QueueOffset(0)) != -1 or store.units(*nobody, QueueOffset(0), 1):
        yield "a queue that does not exist has units"
    for queue in store.queues():
        name = (queue.topic, queue.queue_id)
        first, end = store.min_offset(*name), store.max_offset(*name)
        if store.store_time(*name, end) != -1 or store.store_time(*name, QueueOffset(-1)) != -1:
            yield f"{name} has store times outside of [{first}, {end})"
        if store.units(*name, end, 1) or store.units(*name, QueueOffset(first - 1), 1):
            yield f"{name} has units outside of [{first}, {end})"


def _log(store: MessageStore, log_file_bytes: int) -> tuple[list[tuple[Record, bytes]], int, str]:
    """Every record with its bytes, where the walk ended, and why it ended before the end of the log."""
    offset, end = int(store.log_min), int(store.log_max)
    data, begin = b"", offset
    found: list[tuple[Record, bytes]] = []
    while offset < end:
        if offset >= begin + len(data):
            begin, data = offset, b""
        # A piece never crosses a file; collect the rest of this one.
        while begin + len(data) < min(end, (begin // log_file_bytes + 1) * log_file_bytes):
            piece = store.read_log(PhysicalOffset(begin + len(data)), log_file_bytes)
            if piece is None or not piece.data:
                return found, offset, "the log cannot be read"
            data += piece.data
        rest = data[offset - begin :]
        size = int.from_bytes(rest[:4], "big", signed=True)
        record = decode(rest[: max(size, BLANK_BYTES)], offset)
        if isinstance(record, str):
            return found, offset, record
        if record is None:
            offset = (offset // log_file_bytes + 1) * log_file_bytes
        else:
            found.append((record, rest[:size]))
            offset += size
    return found, offset, ""


def all_units(store: MessageStore, topic: str, queue_id: int) -> list[QueueUnit]:
    """The units of a queue; one read of them never crosses a file."""
    units: list[QueueUnit] = []
    at, end = store.min_offset(topic, queue_id), store.max_offset(topic, queue_id)
    while at < end and len(units) <= ALL:
        more = store.units(topic, queue_id, at, ALL)
        if not more:
            break
        units.extend(more)
        at = QueueOffset(more[-1].queue_offset + 1)
    return units


def pulled(
    store: MessageStore,
    setting: Setting,
    queue: tuple[str, int],
    asked: tuple[int, int],
    result: GetResult,
    found: tuple[int, ...],
    units: tuple[Wanted, ...],
) -> Pulled:
    """One read of a queue. `asked` is from which offset on, and how many messages; `found` their queue offsets."""
    return Pulled(
        *queue,
        *asked,
        result.status.name,
        result.next_offset,
        result.min_offset,
        result.max_offset,
        found,
        units,
        log_max=store.log_max,
        units_per_file=setting.queue_file_units,
        memory_bytes=setting.memory_bytes,
        suggest_slave=result.suggest_slave,
        from_memory=setting.from_memory,
        from_disk=setting.from_disk,
        units_at_once=setting.units_at_once,
    )


def _queue(store: MessageStore, topic: str, queue_id: int, setting: Setting, turn: int) -> Queue:
    first, end = store.min_offset(topic, queue_id), store.max_offset(topic, queue_id)
    units = [
        Unit(u.queue_offset, u.physical_offset, u.size_bytes, u.tags_code) for u in all_units(store, topic, queue_id)
    ]
    wanted = tuple(Wanted(unit.queue_offset, unit.physical_offset, unit.size_bytes) for unit in units)
    served: list[Record | str] = []
    reads: list[Pulled] = []
    at = first
    while at < end and len(served) <= ALL:
        result = store.get_message(topic, queue_id, QueueOffset(at), ALL)
        records = [decoded(data) for data in result.records]
        found_offsets = tuple(record.queue_offset if isinstance(record, Record) else -1 for record in records)
        served.extend(records)
        reads.append(pulled(store, setting, (topic, queue_id), (at, ALL), result, found_offsets, wanted))
        if result.next_offset <= at or result.status not in (GetStatus.FOUND, GetStatus.NO_MATCHED_MESSAGE):
            served.append(f"reading at {at} gave {result.status.name} and continues at {result.next_offset}")
            break
        at = result.next_offset
    searches = _searches(store, topic, queue_id, {r.store_ms for r in served if isinstance(r, Record)}, turn)
    stored = tuple(int(store.store_time(topic, queue_id, QueueOffset(number))) for number in range(first, end))
    return Queue(int(first), int(end), tuple(units), tuple(served), tuple(searches), stored, tuple(reads))


def _searches(
    store: MessageStore, topic: str, queue_id: int, times: set[int], turn: int
) -> Iterator[tuple[int, str, int]]:
    """What searches by time find: at both ends each boundary, and next to every message one of them in its turn."""
    for at_ms in (0, END_OF_TIME_MS):
        for boundary in Boundary:
            yield at_ms, boundary.value, int(store.offset_by_time(topic, queue_id, TimestampMs(at_ms), boundary))
    nearby = sorted({near for time in times for near in (time - 1, time, time + 1)})
    boundaries = itertools.islice(itertools.cycle(Boundary), turn % len(Boundary), None)
    for at_ms, boundary in zip(nearby, boundaries, strict=False):
        yield at_ms, boundary.value, int(store.offset_by_time(topic, queue_id, TimestampMs(at_ms), boundary))


def decoded(data: bytes) -> Record | str:
    """A record that was served; its own physical offset is believed, the oracles compare it with the unit's."""
    record = decode(data, int.from_bytes(data[28:36], "big", signed=True))
    return "a blank" if record is None else record


def _span(number: int, at_ms: int) -> tuple[int, int]:
    """A span of time with an end at, or next to, the time of a message."""
    return (
        (at_ms - SECOND_MS, at_ms + SECOND_MS),
        (at_ms, at_ms),
        (at_ms + 1, END_OF_TIME_MS),
        (0, at_ms - 1),
        (at_ms, END_OF_TIME_MS),
        (0, at_ms),
        (at_ms - 1, at_ms - 1),
    )[number % 7]


_ByKey = dict[tuple[str, str], tuple[int, ...]]


def _keys(
    store: MessageStore, records: tuple[Record, ...], turn: int
) -> tuple[_ByKey, dict[tuple[str, str, int, int], tuple[int, ...]], _ByKey]:
    """What queries find: without limits, in a span of time, and for one message only."""

    def query(topic: str, key: str, begin_ms: int, end_ms: int, count_max: int = 64) -> tuple[int, ...]:
        result = store.query_by_key(topic, key, count_max, TimestampMs(begin_ms), TimestampMs(end_ms))
        return tuple(int.from_bytes(data[28:36], "big") for data in result.records)

    having = Counter((record.topic, key) for record in records for key in set(record.keys))
    pairs = sorted(having)
    moments = sorted({(record.topic, key, record.store_ms) for record in records for key in record.keys})
    spans = [(topic, key, *_span(number, at_ms)) for number, (topic, key, at_ms) in enumerate(moments)][turn % 2 :: 2]
    return (
        {(topic, key): query(topic, key, 0, END_OF_TIME_MS) for topic, key in pairs},
        {span: query(*span) for span in spans},
        {(topic, key): query(topic, key, 0, END_OF_TIME_MS, 1) for topic, key in pairs if having[topic, key] > 1},
    )
