"""Noted events reach the recorder as they were, in their order, and at the time at which they happened."""

from __future__ import annotations

import asyncio
import threading
import time
from pathlib import Path
from typing import BinaryIO, cast

import pytest

import refmq_fast
from refmq.model.step import EventFields
from refmq.net.note_recorder import NoteRecorder
from refmq.trace.memory import MemoryRecorder
from refmq.trace.reader import read_file, trace_files
from refmq.trace.writer import TraceWriter

pytestmark = [
    pytest.mark.extension,
    pytest.mark.skipif(not refmq_fast.AVAILABLE, reason=f"extension is off: {refmq_fast.REASON}"),
]

NOTES_MAX = 262_144


def event(number: int) -> EventFields:
    return ("AckPut", f"actor{number % 3}", "Größe", number % 5, number, -number, 1 << 62, number)


def test_events_are_handed_on_as_they_were() -> None:
    memory = MemoryRecorder("node", time.time_ns)

    async def story() -> None:
        recorder = NoteRecorder(memory, 1)
        for number in range(1000):
            recorder.record(event(number))
            if number % 100 == 0:
                await asyncio.sleep(0)
        recorder.close()

    asyncio.run(story())
    assert [tuple(each.event) for each in memory.events] == [event(number) for number in range(1000)]


def test_a_timer_hands_them_on_while_nobody_asks() -> None:
    memory = MemoryRecorder("node", time.time_ns)

    async def story() -> None:
        recorder = NoteRecorder(memory, 1)
        recorder.record(event(1))
        while not memory.events:
            await asyncio.sleep(0.01)
        recorder.close()

    asyncio.run(asyncio.wait_for(story(), 30))


def test_a_trace_has_every_event_whatever_is_new_or_does_not_fit(tmp_path: Path) -> None:
    """New texts all along, more than a page, and numbers that no record has room for: those alone are missing."""
    events = [event(number) for number in range(5000)]
    for number in range(0, 5000, 37):
        events[number] = (f"Action{number}", f"actor{number}", f"subject{number}", 1, number, 0, 0, 0)
    too_large = dict.fromkeys(range(50, 5000, 501))
    given = [("AckPut", "", "T", 1 << 40, 0, 0, 0, -1) if n in too_large else one for n, one in enumerate(events)]

    async def story() -> None:
        with TraceWriter(tmp_path, "node") as trace:
            recorder = NoteRecorder(trace, 1)
            for number, one in enumerate(given):
                recorder.record(one)
                if number % 700 == 0:
                    recorder.hand_on()
            recorder.close()
            assert trace.dropped_count == len(too_large)

    asyncio.run(story())
    found = [tuple(each.event) for path in trace_files(tmp_path) for each in read_file(path).events]
    assert found == [one for n, one in enumerate(events) if n not in too_large]


def test_a_trace_has_the_times_and_says_what_is_missing(tmp_path: Path) -> None:
    before_ns = time.time_ns()

    async def story() -> int:
        with TraceWriter(tmp_path, "node", buffer_events_max=2 * NOTES_MAX) as trace:
            recorder = NoteRecorder(trace, 1)
            recorder.record(event(7))
            noted_ns = time.time_ns()
            for number in range(NOTES_MAX + 5):  # six more than there is room for
                recorder.notes.note(event(number))
            time.sleep(0.01)
            recorder.close()
            assert trace.dropped_count == 6
        return noted_ns

    noted_ns = asyncio.run(story())
    (path,) = trace_files(tmp_path)
    first = read_file(path).events[0]
    assert tuple(first.event) == event(7)
    assert before_ns <= first.at_ns <= noted_ns


def test_new_texts_behind_a_gap_find_their_numbers(tmp_path: Path) -> None:
    """While something is missing C packs nothing, and what is noted then may have texts that it has never packed."""
    fresh = ("CommitOffset", "an actor", "a new subject", 0, 1, 2, 3, 4)

    async def story() -> None:
        with TraceWriter(tmp_path, "node") as trace:
            recorder = NoteRecorder(trace, 1)
            recorder.record(event(1))
            recorder.hand_on()
            trace.drop(3)
            for one in (fresh, event(2), fresh):
                recorder.record(one)
            recorder.close()
            assert trace.dropped_count == 3

    asyncio.run(story())
    (path,) = trace_files(tmp_path)
    trace = read_file(path)
    assert [tuple(each.event) for each in trace.events] == [event(1), fresh, event(2), fresh]


def test_noted_events_that_find_no_room_are_counted(tmp_path: Path) -> None:
    gate = threading.Event()

    def slow(path: Path) -> BinaryIO:
        assert gate.wait(60)
        return cast("BinaryIO", path.open("xb", buffering=0))

    notes = refmq_fast.Notes(1)
    for number in range(5_000):
        notes.note(event(number))
    names, events, _ = notes.take()
    with TraceWriter(tmp_path, "node", buffer_events_max=400, opener=slow) as trace:
        trace.record_noted(events, names)
        dropped = trace.dropped_count
        gate.set()
    assert dropped > 4_000
    (path,) = trace_files(tmp_path)
    file = read_file(path)
    assert [each.event.a for each in file.events] == list(range(5_000 - dropped))
    assert [(drop.sequence, drop.count) for drop in file.drops] == [(5_000 - dropped, dropped)]
