"""Traces as numpy arrays hold what the plain reader reads."""

from __future__ import annotations

from pathlib import Path

from refmq.model.step import Event
from refmq.trace.columns import load
from refmq.trace.reader import read_file, trace_files
from refmq.trace.record import Outcome
from refmq.trace.writer import TraceWriter


def test_numpy_reads_the_same_as_the_plain_reader(tmp_path: Path) -> None:
    with TraceWriter(tmp_path, "broker-a") as trace:
        for number in range(5_000):
            event = Event("AckPut", f"client-{number % 3}", "topic" * 30, number % 8, number, -number, 1 << 62, 7)
            trace.record(event, Outcome(number % 6), number)
    (path,) = trace_files(tmp_path)
    plain, columns = read_file(path), load(path)
    assert columns.head == plain.head
    assert columns.damage == []
    rows = columns.events
    assert rows.dtype.itemsize == 64
    assert len(rows) == 5_000
    for row, recorded in zip(rows, plain.events, strict=True):
        event = recorded.event
        assert columns.strings[row["action"]] == event.action
        assert columns.strings[row["actor"]] == event.actor
        assert columns.strings[row["subject"]] == event.subject
        assert (row["a"], row["b"], row["c"], row["d"], row["queue_id"]) == (
            event.a,
            event.b,
            event.c,
            event.d,
            event.queue_id,
        )
        assert (row["outcome"], row["operation"], row["at_ns"]) == (
            recorded.outcome,
            recorded.operation,
            recorded.at_ns,
        )
    assert rows["a"].sum() == sum(range(5_000))
