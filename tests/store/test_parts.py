from __future__ import annotations

from dataclasses import replace

from refmq.store import FlushMode
from refmq.store.parts import Parts
from tests.store.helpers import NOW, SMALL, message, new_disk, put, put_many, run, started


def test_a_queue_is_made_once() -> None:
    parts = Parts.over(new_disk(), SMALL)
    assert parts.queue_for("T", 1) is parts.queue_for("T", 1)
    assert set(parts.queues) == {("T", 1)}


def test_without_an_index_there_is_none() -> None:
    assert Parts.over(new_disk(), replace(SMALL, index_enabled=False)).index is None


def test_a_forgotten_queue_leaves_nothing_and_starts_at_zero_again() -> None:
    disk = new_disk()
    store = started(disk)
    put_many(store, 3)
    store.parts.forget_queue(("TopicA", 0))
    assert not disk.is_directory("consumequeue/TopicA/0")
    assert ("TopicA", 0) not in store.parts.dirty_queues
    assert put(store, message()).queue_offset == 0


def test_the_sum_of_the_queues_counts_every_unit() -> None:
    store = started(new_disk())
    put_many(store, 3)
    put_many(store, 2, queue_id=1)
    assert store.parts.queue_sum == 5


def test_what_may_be_dispatched_ends_where_the_log_is_safe_to_serve() -> None:
    for flush_mode, unflushed, waits in (
        (FlushMode.SYNC, False, True),
        (FlushMode.SYNC, True, False),
        (FlushMode.ASYNC, False, False),
    ):
        config = replace(SMALL, flush_mode=flush_mode, dispatch_unflushed=unflushed)
        store = started(new_disk(), config)
        put(store, message(), NOW)
        assert (store.parts.dispatch_bound == 0) == waits
        run(store.flush())
        assert store.parts.dispatch_bound == store.log_max
