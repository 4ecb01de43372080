"""A small store on a simulated disk, and messages for it."""

from __future__ import annotations

from collections.abc import Coroutine
from typing import Any, TypeVar

from refmq.model.ids import HostAddress, QueueOffset, TimestampMs
from refmq.model.step import Event
from refmq.plane.ack import ack_put_enabled
from refmq.protocol.record import Record, decode_record
from refmq.sim.disk import SimulatedDisk
from refmq.store import FlushMode, GetStatus, MessageToStore, PutResult, PutStatus, StoreConfig, direct
from refmq.store.parts import Emit
from refmq.store.store import ReferenceStore

T = TypeVar("T")

BORN = HostAddress(bytes((10, 1, 2, 3)), 40001)
HERE = HostAddress(bytes((10, 9, 8, 7)), 10911)
NOW = TimestampMs(1_700_000_000_000)

SMALL = StoreConfig(
    log_file_bytes=4096, queue_file_bytes=200, index_slots=10, index_entries=8, ext_file_bytes=256, page_bytes=512
)
"""Files so small that a few messages reach every boundary."""


def run(coroutine: Coroutine[Any, Any, T]) -> T:
    """Runs to the end what never really waits: flushes of a simulated disk are done at once."""
    try:
        coroutine.send(None)
    except StopIteration as result:
        value: T = result.value
        return value
    raise AssertionError("it waits for something")


def at(milliseconds: int) -> TimestampMs:
    """A time after the start of the test."""
    return TimestampMs(NOW + milliseconds)


def new_disk(*, page_bytes: int = 512) -> SimulatedDisk:
    return SimulatedDisk(clock=lambda: NOW, page_bytes=page_bytes)


def into(events: list[Event]) -> Emit:
    """Keeps what a store emits, with names for the fields."""
    return lambda fields: events.append(Event._make(fields))


def message(
    topic: str = "TopicA",
    queue_id: int = 0,
    body: bytes = b"body",
    *,
    tags: str = "",
    keys: str = "",
    unique: str = "",
    **others: Any,
) -> MessageToStore:
    properties = "\x02".join(
        f"{name}\x01{value}" for name, value in (("TAGS", tags), ("KEYS", keys), ("UNIQ_KEY", unique)) if value
    )
    plain = MessageToStore(topic, queue_id, body, properties.encode(), TimestampMs(NOW - 5), BORN, HERE)
    return plain._replace(**others)


def started(disk: SimulatedDisk, config: StoreConfig = SMALL, events: list[Event] | None = None) -> ReferenceStore:
    store = ReferenceStore(disk, config, emit=into(events) if events is not None else None)
    run(store.start(NOW))
    return store


def put(store: ReferenceStore, to_store: MessageToStore, now: TimestampMs = NOW) -> PutResult:
    result = direct.put(store, to_store, now)
    assert result.status is PutStatus.PUT_OK
    return result


def ack(store: ReferenceStore, result: PutResult) -> PutStatus:
    """What the producer of a stored message may be told now."""
    flushed_to = store.flushed_to if store.config.flush_mode is FlushMode.SYNC else None
    is_enabled = store.failure is None and ack_put_enabled(result, flushed_to, None)
    return PutStatus.PUT_OK if is_enabled else PutStatus.FLUSH_DISK_TIMEOUT


def put_many(store: ReferenceStore, count: int, **fields: Any) -> list[PutResult]:
    """Messages b"0", b"1" ... with keys and unique keys, dispatched and flushed."""
    results = [
        put(store, message(body=b"%d" % number, keys=f"k{number}", unique=f"U{number}", **fields), at(number))
        for number in range(count)
    ]
    run(store.flush())
    store.dispatch(count)
    return results


def read_all(store: ReferenceStore, topic: str = "TopicA", queue_id: int = 0) -> list[Record]:
    """Every message of a queue, pulled as a consumer does."""
    found: list[Record] = []
    offset = store.min_offset(topic, queue_id)
    while offset < store.max_offset(topic, queue_id):
        result = store.get_message(topic, queue_id, QueueOffset(offset), 32)
        assert result.next_offset > offset, result
        assert result.status in (GetStatus.FOUND, GetStatus.NO_MATCHED_MESSAGE, GetStatus.MESSAGE_WAS_REMOVING)
        found += [decode_record(record) for record in result.records]
        offset = result.next_offset
    return found


def bodies(store: ReferenceStore, topic: str = "TopicA", queue_id: int = 0) -> list[bytes]:
    return [record.body for record in read_all(store, topic, queue_id)]
