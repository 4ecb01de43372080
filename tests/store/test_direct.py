from __future__ import annotations

from refmq.protocol.record import BatchedMessage, encode_batch
from refmq.sim.disk import Fault
from refmq.store import BatchToStore, PutResult, PutStatus
from refmq.store.direct import put, put_batch
from tests.store.helpers import BORN, HERE, NOW, bodies, message, new_disk, started


def batch_of(*contents: bytes) -> BatchToStore:
    encoded = encode_batch(tuple(BatchedMessage(0, content, b"") for content in contents))
    return BatchToStore("TopicA", 0, encoded, b"", NOW, BORN, HERE)


def test_a_message_and_a_batch_are_stored_at_once() -> None:
    store = started(new_disk())
    assert put(store, message(body=b"1"), NOW).queue_offset == 0
    result = put_batch(store, batch_of(b"2", b"3"), NOW)
    assert (result.status, result.queue_offset, result.count) == (PutStatus.PUT_OK, 1, 2)
    assert result.durable_at == store.log_max
    store.dispatch(10)
    assert bodies(store) == [b"1", b"2", b"3"]


def test_what_cannot_be_planned_is_not_stored() -> None:
    store = started(new_disk())
    assert put(store, message(topic="a/b"), NOW) == PutResult(PutStatus.MESSAGE_ILLEGAL)
    assert put_batch(store, batch_of(), NOW) == PutResult(PutStatus.MESSAGE_ILLEGAL)
    assert store.log_max == 0


def test_what_cannot_be_written_is_not_stored() -> None:
    disk = new_disk()
    store = started(disk)
    put(store, message(), NOW)
    disk.inject(Fault.DISK_FULL)
    assert put(store, message(), NOW) == PutResult(PutStatus.SERVICE_NOT_AVAILABLE)
