"""The store as a whole: what its calls promise together."""

from __future__ import annotations

import asyncio
import importlib
import pkgutil
from dataclasses import replace
from pathlib import Path

import pytest

import refmq.store
from refmq.errors import StoreInUse, UsageError
from refmq.model.ids import QueueOffset, TimestampMs
from refmq.model.step import Event
from refmq.model.vocabulary import STORE_RECOVERY, By
from refmq.net.files import OPEN_FILES_MAX, RealDisk
from refmq.sim.choice import harshest
from refmq.sim.disk import SimulatedDisk
from refmq.store import FlushMode, GetStatus, PutStatus, ReferenceStore, StoreConfig, direct
from refmq.store.values import AppendPlan, LogPiece
from tests.store.helpers import (
    NOW,
    SMALL,
    ack,
    at,
    bodies,
    into,
    message,
    new_disk,
    put,
    put_many,
    read_all,
    run,
    started,
)

STEPS = {action.name: action for action in STORE_RECOVERY.actions if action.by is By.NODE and action.name != "AckPut"}
"""Every step but the acknowledgement, which is the data plane's: see tests/plane/test_ack.py."""

QUEUES = 10_000
FOR_MANY_QUEUES = StoreConfig(log_file_bytes=1 << 24, index_slots=1000, index_entries=50_000)


@pytest.mark.parametrize("is_slave", [False, True])
def test_nothing_is_accepted_once_a_stop_has_begun(is_slave: bool) -> None:
    """What came in between would stand behind the end that the clean checkpoint names."""

    async def story() -> None:
        gate = asyncio.Event()
        gate.set()

        async def flush() -> None:
            await gate.wait()

        disk = SimulatedDisk(clock=lambda: NOW, page_bytes=512, on_flush=flush)
        store = ReferenceStore(disk, SMALL)
        await store.start(NOW)
        put(store, message(body=b"kept"))
        late = store.plan_message(message(body=b"late"), NOW)
        assert isinstance(late, AppendPlan)
        if is_slave:
            store.set_slave(True)
        end = store.log_max
        gate.clear()
        stopping = asyncio.ensure_future(store.stop(NOW))
        await asyncio.sleep(0)  # it has begun, and waits for the disk
        assert not stopping.done()
        assert not store.accepts_puts
        assert store.plan_message(message(body=b"late"), NOW) is PutStatus.SERVICE_NOT_AVAILABLE
        assert store.append(late) is PutStatus.SERVICE_NOT_AVAILABLE
        with pytest.raises(UsageError, match="the store is stopping"):
            store.append_log(LogPiece(end, bytes(8)))
        assert store.log_max == end
        gate.set()
        await stopping
        report = await store.start(NOW)
        assert (report.was_clean, report.valid_to, bodies(store)) == (True, end, [b"kept"])
        assert store.accepts_puts, "a store that starts again accepts again"

    asyncio.run(story())


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


def test_every_step_of_the_store_is_a_function_with_its_name() -> None:
    modules = [
        importlib.import_module(f"refmq.store.{found.name}") for found in pkgutil.iter_modules(refmq.store.__path__)
    ]
    assert len(STEPS) > 10
    for action in STEPS.values():
        homes = [holder for holder in (*modules, ReferenceStore) if callable(getattr(holder, action.step, None))]
        assert homes, action.name


def test_a_life_of_a_store_is_told_in_the_words_of_the_vocabulary_and_uses_all_of_them() -> None:
    events: list[Event] = []
    disk = new_disk()
    store = ReferenceStore(disk, SMALL, emit=into(events))
    run(store.start(NOW))
    put_many(store, 100)
    run(store.maintain(at(60_000)))
    put(store, message(body=b"lost"), at(60_001))
    store.dispatch(10)
    read_all(store)
    store = ReferenceStore(disk.after_process_crash(), SMALL, emit=into(events))
    run(store.start(at(70_000)))
    run(store.clean(TimestampMs(NOW + 80 * 3_600_000), 4))
    run(store.stop(at(80_000)))
    assert {event.action for event in events} == set(STEPS)
    for event in events:
        values = (event.a, event.b, event.c, event.d)
        named = len(STEPS[event.action].fields)
        assert not any(values[named:]), event
        assert all(-(2**63) <= value < 2**63 for value in values)
        assert 0 <= event.d < 2**32


@pytest.mark.slow
def test_ten_thousand_queues_work_in_one_store(tmp_path: Path) -> None:
    async def live() -> None:
        disk = RealDisk(tmp_path)
        store = ReferenceStore(disk, FOR_MANY_QUEUES)
        await store.start(NOW)
        for number in range(QUEUES + 100):
            put(
                store, message(f"T{number % 100}", number // 100 % 100, b"%d" % number, unique=f"U{number}"), at(number)
            )
        while store.dispatch(1000):
            assert len(disk._descriptors) <= OPEN_FILES_MAX
        assert len(store.queues()) == QUEUES
        await store.stop(NOW)
        again = ReferenceStore(disk, FOR_MANY_QUEUES)
        report = await again.start(NOW)
        assert (report.queues, report.notes) == (QUEUES, ())
        assert bodies(again, "T7", 0) == [b"7", b"10007"]
        assert bodies(again, "T99", 99) == [b"9999"]
        again.parts.close()
        disk.close()

    asyncio.run(live())
