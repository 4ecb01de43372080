"""Long traces: what a store recorded is accepted, and every field of every event counts."""

from __future__ import annotations

import pytest

from refmq.errors import UsageError
from refmq.model.step import Event
from refmq.verify.spec.check import RunOptions
from refmq.verify.spec.long_trace import encoded, judge_groups, judge_store, judge_transactions, shown, spelled_out
from refmq.verify.spec.store_hints import FIELDS, hinted
from refmq.verify.spec.tlc import Tlc, find_tlc
from tests.verify.spec.helpers import SPEC, needs_tlc
from tests.verify.spec.recorded_store import store_events

OPTIONS = RunOptions(timeout_s=120)

NOT_TOLD_TWICE = {
    ("AppendMessage", "message"): "the last record is neither acknowledged nor served",
    ("DispatchMessage", "tags_code"): "told by the dispatch alone, until recovery dispatches the record again",
    ("FlushLog", "log_ms"): "no checkpoint speaks of the first flush: a later one covers it",
    ("WriteCheckpoint", "queue_ms"): "only its order with the others is compared",
    ("WriteCheckpoint", "index_ms"): "only its order with the others is compared",
}
"""Field -> why a change of it can be unnoticed."""


def judge(tlc: Tlc, events: list[Event]) -> bool:
    return judge_store(tlc, SPEC, events, OPTIONS, sync_flush=True).accepted


def changed(event: Event, name: str, by: int) -> Event:
    if name == "subject":
        return event._replace(subject=event.subject + "x")
    if name == "queue_id":
        return event._replace(queue_id=event.queue_id + 5)
    letter = "abcd"[FIELDS[event.action].index(name)]
    return event._replace(**{letter: getattr(event, letter) + by})


def fields_of(action: str) -> tuple[str, ...]:
    event = next(event for event in store_events() if event.action == action)
    return (*FIELDS[action], *(("subject", "queue_id") if event.queue_id >= 0 else ()))


def unnoticed(tlc: Tlc, action: str, name: str) -> bool:
    """Whether some change of a field of the first, or the last, event of a kind is not noticed."""
    events = list(store_events())
    places = [at for at, event in enumerate(events) if event.action == action]
    for at in {places[0], places[-1]}:
        for by in (1, -1):
            altered = changed(events[at], name, by)
            if altered.d >= 0 and judge(tlc, [*events[:at], altered, *events[at + 1 :]]):
                return True
    return False


@pytest.mark.jdk
def test_what_the_store_recorded_is_accepted_in_one_line_of_states(tlc: Tlc) -> None:
    answer = judge_store(tlc, SPEC, store_events(), OPTIONS, sync_flush=True)
    assert answer.accepted, answer.reason
    assert answer.events == len(store_events())
    assert answer.events_per_second > 0


@pytest.mark.jdk
@pytest.mark.parametrize("action", dict.fromkeys(event.action for event in store_events()))
def test_every_field_of_every_event_is_compared(tlc: Tlc, action: str) -> None:
    missed = {name for name in fields_of(action) if unnoticed(tlc, action, name)}
    assert missed == {name for of, name in NOT_TOLD_TWICE if of == action}


@pytest.mark.jdk
@pytest.mark.parametrize(
    ("action", "number", "notices"),
    [
        ("WriteCheckpoint", -1, "StopStore"),
        ("WriteCheckpoint", 3, "FinishRecovery"),
        ("FlushQueue", -1, "WriteCheckpoint"),
        ("FlushLog", 0, "AckPut"),
        ("FlushIndex", -1, "WriteCheckpoint"),
        ("RollFile", 0, "AppendMessage"),
        ("ScanLog", 0, "TruncateLog"),
        ("TruncateLog", 0, "FlushIndex"),
        ("DispatchMessage", 0, "DispatchMessage"),
    ],
)
def test_a_missing_event_is_noticed_at_the_first_that_relied_on_it(
    tlc: Tlc, action: str, number: int, notices: str
) -> None:
    events = list(store_events())
    places = [at for at, event in enumerate(events) if event.action == action]
    del events[places[number]]
    answer = judge_store(tlc, SPEC, events, OPTIONS, sync_flush=True)
    assert not answer.accepted
    assert answer.failed_at is not None
    assert events[answer.failed_at - 1].action == notices, answer.reason


@pytest.mark.jdk
def test_an_unflushed_acknowledgement_is_refused_with_sync_flush_only(tlc: Tlc) -> None:
    events = list(store_events())
    del events[next(at for at, event in enumerate(events) if event.action == "FlushLog")]
    first = events[: next(at for at, event in enumerate(events) if event.action == "DispatchMessage")]
    assert not judge_store(tlc, SPEC, first, OPTIONS, sync_flush=True).accepted
    assert judge_store(tlc, SPEC, first, OPTIONS, sync_flush=False).accepted


@needs_tlc
@pytest.mark.jdk
def test_without_a_compiler_for_our_operators_the_verdict_is_the_same() -> None:
    tlc = find_tlc()  # lends no host: each run is a process of its own, with the events in a module
    assert not tlc.runs_operators()
    events = list(store_events())[:20]
    assert judge(tlc, events)
    appended = next(at for at, event in enumerate(events) if event.action == "AppendMessage")
    assert not judge(tlc, [*events[:appended], *events[appended + 1 :]])


def test_an_event_is_shown_with_the_names_of_the_vocabulary() -> None:
    event = Event("AckPut", "", "T", 3, a=1, b=2, c=4, d=0)
    assert shown(event) == "AckPut T/3 (physical_offset=1, queue_offset=2, message=4, status=0)"
    assert shown(Event("FlushLog", a=7, b=9)) == "FlushLog (flushed_to=7, log_ms=9)"


def test_events_are_spelled_out_and_encoded_alike() -> None:
    made = hinted(store_events()[:8])
    text, data = spelled_out(made), encoded(made)
    assert text.count("[action |->") == len(made.rows)
    assert "by_checkpoint |-> TRUE" in text
    assert data[:4] == len({row.action for row in made.rows}).to_bytes(4, "big")


def test_a_trace_without_what_is_judged_is_an_error() -> None:
    tlc = Tlc((), (), "none")
    with pytest.raises(UsageError, match="no events of a store"):
        judge_store(tlc, SPEC, [Event("Heartbeat")], OPTIONS, sync_flush=True)
    with pytest.raises(UsageError, match="no transactions"):
        judge_transactions(tlc, SPEC, [Event("Heartbeat")], OPTIONS, sync_flush=True)
    with pytest.raises(UsageError, match="no consumers"):
        judge_groups(tlc, SPEC, [], "broker-a", OPTIONS)


def beginning() -> list[Event]:
    """The store up to its first dispatched record, which is durable and acknowledged; a second one is only written."""
    events = list(store_events())
    dispatched = next(at for at, event in enumerate(events) if event.action == "DispatchMessage")
    appended = next(event for event in events[dispatched:] if event.action == "AppendMessage")
    return [*(event for event in events[: dispatched + 1]), appended]


@pytest.mark.jdk
def test_another_message_than_was_appended_is_served_only_when_a_bit_has_flipped(tlc: Tlc) -> None:
    events = beginning()[:-1]
    put = next(event for event in events if event.action == "AppendMessage")
    served = Event("ServeMessage", "", put.subject, put.queue_id, put.a, put.b, put.c, put.d)
    assert judge(tlc, [*events, served])
    damaged = served._replace(c=put.c + 1)
    assert not judge(tlc, [*events, damaged])
    assert judge(tlc, [*events, Event("FlipBit", "broker-a", c=put.c), damaged])
    assert not judge(tlc, [*events, Event("FlipBit", "broker-a", c=put.c + 7), damaged])


@pytest.mark.jdk
def test_what_was_not_flushed_is_lost_by_a_crash_only_when_the_disk_has_refused(tlc: Tlc) -> None:
    events = beginning()
    flushed = max(event.a for event in events if event.action == "FlushLog")
    start = [Event("ProcessCrash"), Event("StartStore"), Event("ScanLog", a=0, b=flushed)]
    assert flushed < events[-1].a + events[-1].d
    assert not judge(tlc, [*events, *start])
    assert judge(tlc, [*events, Event("FailFlush"), *start])
    start[-1] = start[-1]._replace(b=0)  # what was promised is not lost for that
    assert not judge(tlc, [*events, Event("FailFlush"), *start])


@pytest.mark.jdk
def test_a_scan_ends_early_only_at_a_damaged_record(tlc: Tlc) -> None:
    events = beginning()
    put = next(event for event in events if event.action == "AppendMessage")
    start = [Event("ProcessCrash"), Event("StartStore"), Event("ScanLog", a=0, b=put.a)]
    assert not judge(tlc, [*events, *start])
    assert judge(tlc, [*events, Event("FlipBit", "broker-a", c=put.c), *start])
