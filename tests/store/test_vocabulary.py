"""The names of spec/store_recovery are the names of the steps and of the events."""

from __future__ import annotations

import importlib
import pkgutil

import refmq.store
from refmq.model.ids import TimestampMs
from refmq.model.step import Event
from refmq.model.vocabulary import STORE_RECOVERY, By
from refmq.store import ReferenceStore
from tests.store.helpers import NOW, SMALL, at, into, message, new_disk, put, put_many, read_all, run

STEPS = {action.name: action for action in STORE_RECOVERY.actions if action.by is By.NODE}


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
    for result in put_many(store, 100):
        store.ack_put(result)
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
