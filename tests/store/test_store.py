"""The store as a whole: what its calls promise together."""

from __future__ import annotations

from dataclasses import replace

import pytest

from refmq.errors import StoreInUse, UsageError
from refmq.model.ids import QueueOffset, TimestampMs
from refmq.sim.choice import harshest
from refmq.store import FlushMode, GetStatus, PutStatus, direct
from tests.store.helpers import NOW, SMALL, ack, at, bodies, message, new_disk, put, put_many, read_all, run, started


def test_what_is_put_is_read_back_after_a_clean_stop_and_start() -> None:
    disk = new_disk()
    store = started(disk)
    put_many(store, 100)
    assert bodies(store) == [b"%d" % number for number in range(100)]
    run(store.stop(NOW))
    assert not disk.exists("abort")
    again = started(disk)
    assert bodies(again) == [b"%d" % number for number in range(100)]
    assert again.max_offset("TopicA", 0) == 100
    assert [record.queue_offset for record in read_all(again)] == list(range(100))
    for number in range(100):
        found = again.query_by_key("TopicA", f"k{number}", 10, TimestampMs(0), TimestampMs(2**62))
        assert len(found.records) == 1
    put_many(again, 5)
    assert again.max_offset("TopicA", 0) == 105


def test_a_process_crash_loses_nothing_that_was_put() -> None:
    disk = new_disk()
    store = started(disk)
    put_many(store, 60)
    put(store, message(body=b"last"))
    disk = disk.after_process_crash()
    assert disk.exists("abort")
    store = started(disk)
    assert bodies(store) == [b"%d" % number for number in range(60)] + [b"last"]


def test_a_power_loss_keeps_what_was_flushed() -> None:
    disk = new_disk()
    store = started(disk)
    put_many(store, 60)
    put(store, message(body=b"gone"))
    store.dispatch(10)
    disk = disk.after_power_loss(harshest)
    store = started(disk)
    assert bodies(store) == [b"%d" % number for number in range(60)]
    found = store.query_by_key("TopicA", "k59", 10, TimestampMs(0), TimestampMs(2**62))
    assert len(found.records) == 1


def test_with_sync_flush_nothing_is_dispatched_or_acknowledged_before_it_is_durable() -> None:
    disk = new_disk()
    store = started(disk, replace(SMALL, flush_mode=FlushMode.SYNC))
    result = put(store, message())
    assert store.dispatch(10) == ()
    assert ack(store, result) is PutStatus.FLUSH_DISK_TIMEOUT
    assert run(store.flush()) >= result.durable_at
    assert ack(store, result) is PutStatus.PUT_OK
    assert len(store.dispatch(10)) == 1
    assert store.get_message("TopicA", 0, QueueOffset(0), 10).status is GetStatus.FOUND


def test_a_store_in_use_is_refused_and_not_touched() -> None:
    disk = new_disk()
    store = started(disk)
    put_many(store, 3)
    before = disk.contents()
    with pytest.raises(StoreInUse):
        started(disk.another_process())
    assert disk.contents() == before
    assert bodies(store) == [b"0", b"1", b"2"]


def test_calls_on_a_store_that_is_not_started_are_refused() -> None:
    disk = new_disk()
    store = started(disk)
    run(store.stop(NOW))
    with pytest.raises(UsageError):
        store.dispatch(1)
    assert direct.put(store, message(), NOW).status is PutStatus.SERVICE_NOT_AVAILABLE
    assert not store.accepts_puts
    run(store.start(at(1)))
    assert store.accepts_puts
