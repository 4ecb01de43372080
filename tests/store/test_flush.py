from __future__ import annotations

from dataclasses import replace

import pytest

from refmq.errors import DiskFailed, UsageError
from refmq.model.step import Event
from refmq.sim.choice import harshest
from refmq.sim.disk import Fault
from refmq.store import FlushMode, PutResult, PutStatus, StoreConfig, direct
from refmq.store.checkpoint import read_checkpoint
from refmq.store.flush import (
    FlushClock,
    commit_pages_due,
    flush_queues,
    log_flush_pages_due,
    queue_flush_pages_due,
)
from tests.store.helpers import NOW, SMALL, ack, at, into, message, new_disk, put, put_many, run, started

CONFIG = StoreConfig()


@pytest.mark.parametrize(
    ("passed_ms", "log", "queue", "commit"),
    [
        (0, None, None, None),
        (199, None, None, None),
        (200, None, None, 0),
        (500, 4, None, 0),
        (1000, 4, 2, 0),
        (9999, 4, 2, 0),
        (10_000, 0, 2, 0),
        (60_000, 0, 0, 0),
    ],
)
def test_what_is_due_follows_the_rules_of_time_and_pages(
    passed_ms: int, log: int | None, queue: int | None, commit: int | None
) -> None:
    clock = FlushClock()
    clock.start(NOW)
    assert log_flush_pages_due(CONFIG, clock, NOW + passed_ms) == log
    assert queue_flush_pages_due(CONFIG, clock, NOW + passed_ms) == queue
    assert commit_pages_due(CONFIG, clock, NOW + passed_ms) == commit


BIG = replace(SMALL, log_file_bytes=1 << 20, page_bytes=4096)


def test_the_log_is_flushed_when_four_pages_are_full_or_ten_seconds_have_passed() -> None:
    store = started(new_disk(), BIG)
    put(store, message(body=bytes(4000)))
    run(store.maintain(at(600)))
    assert store.flushed_to == 0
    put(store, message(body=bytes(13_000)))
    run(store.maintain(at(700)))
    assert store.flushed_to == 0, "500 ms have not passed since the last look"
    run(store.maintain(at(1100)))
    assert store.flushed_to == store.log_max
    put(store, message())
    run(store.maintain(at(9_000)))
    assert store.flushed_to < store.log_max
    run(store.maintain(at(10_000)))
    assert store.flushed_to == store.log_max


def test_with_sync_flush_what_nobody_waits_for_is_made_durable_by_the_next_round() -> None:
    store = started(new_disk(), replace(SMALL, flush_mode=FlushMode.SYNC))
    put(store, message())
    run(store.maintain(at(1)))
    assert store.flushed_to == store.log_max


def test_the_checkpoint_says_what_was_durable_before_its_flushes_began() -> None:
    disk = new_disk()
    store = started(disk)
    put_many(store, 20)
    events: list[Event] = []
    store.parts.emit = into(events)
    late: list[PutResult] = []

    async def put_meanwhile() -> None:
        if not late:
            late.append(put(store, message(keys="late"), at(500)))
            store.dispatch(10)

    disk._on_flush = put_meanwhile
    run(store.maintain(at(60_000)))
    durable = read_checkpoint(disk).durable
    assert durable is not None
    assert durable.queues_to == durable.index_to == late[0].physical_offset
    assert durable.log_to >= durable.queues_to
    assert durable.queue_sum == 20
    assert store.parts.queue_sum == 21
    actions = [event.action for event in events]
    assert actions.index("WriteCheckpoint") > max(
        index for index, action in enumerate(actions) if action in ("FlushLog", "FlushQueue", "FlushIndex")
    )


@pytest.mark.parametrize("deleted_at", range(1, 12))
def test_a_topic_that_is_deleted_during_any_flush_does_not_stop_the_store(deleted_at: int) -> None:
    disk = new_disk()
    store = started(disk)
    put_many(store, 3)
    for number in range(3):
        put(store, message("TopicB", number))
    store.dispatch(10)
    flushes = 0

    async def delete_meanwhile() -> None:
        nonlocal flushes
        flushes += 1
        if flushes == deleted_at:
            assert store.delete_topic("TopicB") == 3

    disk._on_flush = delete_meanwhile
    run(store.maintain(at(60_000)))
    assert flushes >= deleted_at
    run(store.maintain(at(120_000)))
    assert store.max_offset("TopicB", 0) == 0
    assert store.max_offset("TopicA", 0) > 0


def test_every_unit_below_the_checkpoint_survives_a_power_loss() -> None:
    disk = new_disk()
    store = started(disk)
    put_many(store, 45)
    run(store.maintain(at(60_000)))
    put_many(store, 10)
    after = disk.after_power_loss(harshest)
    durable = read_checkpoint(after).durable
    assert durable is not None
    again = started(after)
    assert again.max_offset("TopicA", 0) == 55  # flushed by put_many; the units are built again
    assert durable.queue_sum == 45


def test_only_queues_with_full_pages_are_flushed_between_the_thorough_rounds() -> None:
    config = replace(SMALL, queue_file_bytes=20_000)
    store = started(new_disk(), config)
    for _ in range(500):
        put(store, message(body=b""))
    put(store, message("Few", 0))
    store.dispatch(1000)
    run(flush_queues(store.parts, 2))
    assert store.parts.dirty_queues == {("Few", 0)}
    run(flush_queues(store.parts, 0))
    assert store.parts.dirty_queues == set()


def test_stamps_for_java_never_let_it_forget_a_key() -> None:
    disk = new_disk()
    store = started(disk)
    for number in range(6):
        put(store, message(keys="a b"), at(number * 10_000))
    store.dispatch(100)
    run(store.maintain(at(60_000)))
    checkpoint = read_checkpoint(disk)
    assert store.parts.index is not None
    first, last = store.parts.index.files
    assert first.is_full
    assert not last.is_full
    assert checkpoint.index_ms == first.header.end_ms
    assert checkpoint.queue_ms == last.header.begin_ms < checkpoint.log_ms


def test_a_flush_that_fails_in_maintenance_stops_acknowledging() -> None:
    disk = new_disk()
    store = started(disk)
    result = put(store, message())
    disk.inject(Fault.FLUSH_FAILS)
    with pytest.raises(DiskFailed):
        run(store.maintain(at(60_000)))
    assert ack(store, result) is PutStatus.FLUSH_DISK_TIMEOUT
    assert direct.put(store, message(), NOW).status is PutStatus.SERVICE_NOT_AVAILABLE


def test_the_switch_ignores_a_failed_flush_as_java_does() -> None:
    disk = new_disk()
    store = started(disk, replace(SMALL, flush_mode=FlushMode.SYNC, ignore_flush_failure=True))
    result = put(store, message())
    disk.inject(Fault.FLUSH_FAILS)
    assert run(store.flush()) == store.log_max
    assert ack(store, result) is PutStatus.PUT_OK


def test_a_store_is_not_stopped_under_maintenance() -> None:
    disk = new_disk()
    store = started(disk)
    put(store, message())
    refused = []

    async def stop_meanwhile() -> None:
        disk._on_flush = None
        with pytest.raises(UsageError):
            await store.stop(NOW)
        await store.maintain(at(120_000))  # a second round at the same time does nothing
        refused.append(True)

    disk._on_flush = stop_meanwhile
    run(store.maintain(at(60_000)))
    assert refused == [True]
    run(store.stop(NOW))


def test_without_room_for_the_checkpoint_the_next_round_tries_again() -> None:
    disk = new_disk()
    store = started(disk)
    put_many(store, 3)
    disk.inject(Fault.DISK_FULL)
    run(store.maintain(at(60_000)))
    assert direct.put(store, message(), at(60_000)).status is PutStatus.SERVICE_NOT_AVAILABLE
    durable = read_checkpoint(disk).durable
    assert durable is not None
    assert durable.queue_sum == 0
    run(store.maintain(at(60_001)))
    store.dispatch(1)
    put(store, message(), at(60_001))
    durable = read_checkpoint(disk).durable
    assert durable is not None
    assert durable.queue_sum == 3
