"""What a killed process did not record any more: its last appends are put back as far as they show."""

from __future__ import annotations

import pytest

from refmq.model.step import Event
from refmq.verify.spec.check import RunOptions
from refmq.verify.spec.group_hints import Told
from refmq.verify.spec.recordings import Settings, judge_recording
from refmq.verify.spec.tlc import Tlc
from refmq.verify.spec.unrecorded import with_unrecorded
from tests.verify.spec.helpers import SPEC
from tests.verify.spec.recorded_store import store_events

B = "broker-a"
LIFE = [
    Event("StartStore", a=1),
    Event("AppendMessage", "", "T", 0, a=0, b=0, c=70, d=100),
    Event("Heartbeat", "c", "g"),
]
NEXT = [
    Event("StartStore"),
    Event("ScanLog", a=0, b=1100),
    Event("TruncateLog", a=1100),
    Event("DispatchMessage", "", "T", 0, a=0, b=0, d=100),
    Event("DispatchMessage", "", "T", 0, a=100, b=1, d=50),
    Event("DispatchMessage", "", "T", 1, a=1000, b=0, d=100),
    Event("FinishRecovery", a=1100),
    Event("ServeMessage", "", "T", 0, a=100, b=1, c=71, d=50),
]


def told(events: list[Event]) -> list[Told]:
    return [Told(B, event) for event in events]


def test_records_that_nobody_recorded_are_appended_behind_the_last_event_of_their_life() -> None:
    found = with_unrecorded(told([*LIFE, *NEXT]))
    added = [one.event for one in found[len(LIFE) : -len(NEXT)]]
    assert added == [
        Event("AppendMessage", "", "T", 0, a=100, b=1, c=71, d=50),
        Event("RollFile", a=150, b=1000),
        Event("AppendMessage", "", "T", 1, a=1000, b=0, c=-1001, d=100),
    ], "the message is the one that is served later, the other's is not known"
    assert [one.event for one in found if one.event not in added] == [*LIFE, *NEXT]


def test_a_life_that_was_stopped_in_good_order_is_complete() -> None:
    recording = told([*LIFE, Event("StopStore", a=100), *NEXT])
    assert with_unrecorded(recording) == recording


@pytest.mark.parametrize("crash", ["ProcessCrash", "PowerLoss"])
def test_what_a_crash_came_too_early_to_record_is_put_before_it(crash: str) -> None:
    found = with_unrecorded(told([*LIFE, Event(crash), *NEXT]))
    assert [one.event.action for one in found[3:7]] == ["AppendMessage", "RollFile", "AppendMessage", crash]


def test_a_log_that_ends_where_it_was_written_is_complete() -> None:
    again = Event("DispatchMessage", "", "T", 0, a=0, b=0, d=100)
    recording = told([*LIFE, Event("StartStore"), Event("ScanLog", a=0, b=100), again, Event("FinishRecovery", a=100)])
    assert with_unrecorded(recording) == recording


@pytest.mark.jdk
def test_a_kill_that_takes_events_is_accepted_and_what_is_wrong_after_it_is_not(tlc: Tlc) -> None:
    events = list(store_events())
    crash = next(at for at, event in enumerate(events) if event.action == "ProcessCrash")
    last = max(at for at in range(crash) if events[at].action == "AppendMessage")
    torn = [*events[:last], *events[crash + 1 :]]  # the last append, what followed, and the word that it crashed

    def accepted(trace: list[Event]) -> bool:
        settings = Settings(sync_flush=True)
        (verdict,) = judge_recording(tlc, SPEC, told(trace), RunOptions(timeout_s=120), settings)
        return verdict.answer.accepted

    assert accepted(torn)
    scan = next(at for at in range(last, len(torn)) if torn[at].action == "ScanLog")
    assert not accepted([*torn[:scan], torn[scan]._replace(b=torn[scan].b + 1), *torn[scan + 1 :]])
    lost = [event for event in torn if not (event.action == "DispatchMessage" and event.a == events[last].a)]
    assert not accepted(lost)


@pytest.mark.jdk
def test_a_kill_that_takes_a_checkpoint_is_accepted_and_one_that_says_too_much_is_not(tlc: Tlc) -> None:
    """The checkpoint was written and its event was lost: the next start goes by it."""
    events = list(store_events())
    crash = next(at for at, event in enumerate(events) if event.action == "ProcessCrash")
    start = next(at for at in range(crash, len(events)) if events[at].action == "StartStore")
    whole = events[:start]
    valid = next(event.b for event in events[start:] if event.action == "ScanLog")
    at = max(at for at in range(crash) if events[at].action == "AppendMessage")
    until = events[at].a
    late = [event for event in events[start:] if event.action == "DispatchMessage" and event.a >= until]
    assert until < valid and late

    def recovery(begin: int) -> list[Event]:
        """What the start would have done that went by a checkpoint at `begin`."""
        found = []
        for event in events[start:]:
            if event.action == "ScanLog":
                event = event._replace(a=max(e.b for e in whole if e.action == "RollFile" and e.b <= begin))
            if event.action == "TruncateQueue":
                units = [e for e in whole if e.action == "AppendMessage" and e.a < begin]
                mine = [e.b for e in units if (e.subject, e.queue_id) == (event.subject, event.queue_id)]
                event = event._replace(a=max(mine, default=-1) + 1)
            if event.action == "DispatchMessage" and event.a < begin:
                continue
            found.append(event)
            if event.action == "FinishRecovery":
                return found
        raise AssertionError("it recovers")

    def accepted(trace: list[Event]) -> bool:
        settings = Settings(sync_flush=True)
        (verdict,) = judge_recording(tlc, SPEC, told(trace), RunOptions(timeout_s=120), settings)
        return verdict.answer.accepted

    torn = [*whole[:crash], *recovery(until)]
    assert not any(event.action == "WriteCheckpoint" and event.d == until for event in torn[:crash])
    assert accepted(torn)
    beyond = [event for event in torn if not (event.action == "DispatchMessage" and event.a == late[0].a)]
    assert not accepted(beyond)
