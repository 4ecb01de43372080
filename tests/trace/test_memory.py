"""Traces in memory."""

from __future__ import annotations

import itertools

from hypothesis import given
from hypothesis import strategies as st

from refmq.model.step import Event
from refmq.trace.memory import MemoryRecorder
from refmq.trace.reader import decode_file
from refmq.trace.record import BLOCK_RECORDS_MAX, Outcome, Recorded


@given(st.lists(st.tuples(st.text(max_size=80), st.integers(-(2**63), 2**63 - 1)), max_size=20))
def test_the_file_holds_what_was_recorded(steps: list[tuple[str, int]]) -> None:
    recorder = MemoryRecorder("n", itertools.count(1).__next__)
    for subject, number in steps:
        recorder.record(Event("AppendMessage", subject=subject, a=number), Outcome.OK, 7)
    file = decode_file(recorder.to_bytes())
    assert file.events == recorder.events
    assert [recorded.event.a for recorded in recorder.events] == [number for _, number in steps]
    assert file.damage == []


def test_a_long_trace_is_several_blocks() -> None:
    recorder = MemoryRecorder("n", lambda: 1)
    for number in range(BLOCK_RECORDS_MAX + 10):
        recorder.record(Event("AppendMessage", a=number))
    assert len(decode_file(recorder.to_bytes()).events) == BLOCK_RECORDS_MAX + 10


def test_every_event_is_seen_as_it_happens() -> None:
    seen: list[Recorded] = []
    recorder = MemoryRecorder("n", lambda: 5, seen.append)
    recorder.record(Event("FlushLog", a=1))
    assert seen == recorder.events
    assert (seen[0].at_ns, seen[0].sequence, seen[0].event.action) == (5, 0, "FlushLog")
