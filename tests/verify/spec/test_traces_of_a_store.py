"""Traces of the reference store are behaviours of the specification StoreRecovery, and doctored ones are not."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

import pytest

from refmq.model.step import Event
from refmq.plane.ack import ack_put_enabled, ack_put_events
from refmq.sim.choice import harshest
from refmq.sim.disk import SimulatedDisk
from refmq.store import AppendPlan, FlushMode, PutStatus, ReferenceStore, StoreConfig
from refmq.verify.spec.check import RunOptions
from refmq.verify.spec.long_trace import judge_store
from refmq.verify.spec.store_hints import FIELDS
from refmq.verify.spec.tlc import Tlc
from refmq.verify.spec.traces import TraceAnswer, read_event, validate_events
from tests.store.helpers import SMALL, at, into, message, new_disk, run
from tests.verify.spec.helpers import SPEC

CONFIG = replace(SMALL, log_file_bytes=1024, flush_mode=FlushMode.SYNC, page_bytes=128)

OPTIONS = RunOptions(timeout_s=120)

pytestmark = pytest.mark.jdk


def life(disk: SimulatedDisk, events: list[Event], begin: int, config: StoreConfig = CONFIG) -> ReferenceStore:
    """Some puts into two queues, some of them flushed and acknowledged, some dispatched."""
    store = ReferenceStore(disk, config, emit=into(events))
    run(store.start(at(begin)))
    for number in range(begin, begin + 4):
        body = b"m%d" % number * (1 + number % 3 * 30)
        to_store = message(f"T{number % 2}", 0, body, keys=f"k{number}", unique=f"U{number}")
        plan = store.plan_message(to_store, at(number))
        assert isinstance(plan, AppendPlan)
        assert store.append(plan) is PutStatus.PUT_OK
        if number % 4 != 3:
            run(store.flush())
            assert ack_put_enabled(plan, store.flushed_to, None)
            events += map(Event._make, ack_put_events(plan, PutStatus.PUT_OK))
        store.dispatch(2)
    return store


def history() -> list[Event]:
    """A clean stop, a process crash that leaves an unflushed record, a power loss, and a start after each."""
    events: list[Event] = []
    disk = new_disk(page_bytes=128)
    run(life(disk, events, 0).stop(at(50)))
    disk = disk.another_process()
    life(disk, events, 100)
    events.append(Event("ProcessCrash"))
    disk = disk.after_process_crash()
    life(disk, events, 200)
    events.append(Event("PowerLoss"))
    disk = disk.after_power_loss(harshest)
    run(life(disk, events, 300).stop(at(350)))
    return events


def judge(tlc: Tlc, events: list[Event]) -> TraceAnswer:
    trace = [read_event(event._asdict(), "StoreRecovery") for event in events]
    return validate_events(tlc, SPEC, "StoreRecovery", trace, RunOptions(timeout_s=280))


def test_a_trace_of_the_reference_store_is_a_behaviour_of_the_specification(tlc: Tlc) -> None:
    events = history()
    actions = {event.action for event in events}
    assert {"AppendMessage", "AckPut", "DispatchMessage", "RollFile", "TruncateLog", "StopStore"} <= actions
    answer = judge(tlc, events)
    assert answer.accepted, answer.reason
    # One state for each event, and a few for steps that have none: the search does not branch.
    assert answer.states < 2 * len(events)


def first(events: list[Event], action: str) -> int:
    return next(number for number, event in enumerate(events) if event.action == action)


def ack_before_flush(events: list[Event]) -> int:
    number = first(events, "FlushLog")
    del events[number]
    return first(events, "AckPut") + 1


def wrong_queue_offset(events: list[Event]) -> int:
    number = first(events, "AppendMessage")
    events[number] = events[number]._replace(b=5)
    return number + 1


def wrong_end_of_scan(events: list[Event]) -> int:
    number = len(events) - 1 - first(events[::-1], "ScanLog")
    events[number] = events[number]._replace(b=0)  # durable records would be cut
    return number + 1


@pytest.mark.parametrize("doctor", [ack_before_flush, wrong_queue_offset, wrong_end_of_scan])
def test_a_doctored_trace_is_rejected_at_the_event_that_does_not_fit(
    tlc: Tlc, doctor: Callable[[list[Event]], int]
) -> None:
    events = history() if doctor is wrong_end_of_scan else history()[:20]
    expected = doctor(events)
    answer = judge(tlc, events)
    assert not answer.accepted
    assert answer.failed_at == expected, answer.reason


STRICTER = {
    ("FlushLog", "log_ms"): "a record's time is its position in StoreRecovery",
    ("TruncateLog", "log_ms"): "a record's time is its position in StoreRecovery",
    ("WriteCheckpoint", "log_ms"): "a record's time is its position in StoreRecovery",
    ("WriteCheckpoint", "dropped"): "StopStore writes a checkpoint itself in StoreRecovery",
}
"""Where the long trace module is stricter than the actions of the specification, and why."""

LOOSER = {("StopStore", "dropped"): "a process that is killed when all is done, and could not tell, leaves the same"}
"""Where it is less strict: the short module knows no crash that has no event."""


def alterations(events: list[Event], place: int) -> Iterator[tuple[str, list[Event]]]:
    event, before, after = events[place], events[:place], events[place + 1 :]
    yield "dropped", before + after
    yield "doubled", [*before, event, event, *after]
    if after:
        yield "swapped", [*before, after[0], event, *after[1:]]
    for letter, name in zip("abcd", FIELDS[event.action], strict=False):
        yield name, [*before, event._replace(**{letter: getattr(event, letter) + 1}), *after]
    if event.queue_id >= 0:
        yield "queue_id", [*before, event._replace(queue_id=event.queue_id + 5), *after]


@pytest.mark.slow
def test_the_long_trace_module_refuses_what_the_actions_of_the_specification_refuse(tlc: Tlc) -> None:
    life = history()[:27]
    last = {event.action: place for place, event in enumerate(life)}
    different = {}
    for action, place in last.items():
        for what, altered in alterations(life, place):
            by_actions = judge(tlc, altered).accepted
            if judge_store(tlc, SPEC, altered, OPTIONS, sync_flush=True).accepted is not by_actions:
                different[action, what] = by_actions
    assert different == dict.fromkeys(STRICTER, True) | dict.fromkeys(LOOSER, False)
