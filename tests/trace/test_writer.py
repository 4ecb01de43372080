from __future__ import annotations

import errno
import io
import threading
from collections.abc import Callable
from pathlib import Path
from typing import BinaryIO

import pytest

from refmq.errors import UsageError
from refmq.model.step import Event
from refmq.trace import record as record_module
from refmq.trace import writer as writer_module
from refmq.trace.columns import load
from refmq.trace.reader import TraceFile, read_file, trace_files
from refmq.trace.record import Outcome
from refmq.trace.writer import TraceWriter


def read_all(directory: Path) -> list[TraceFile]:
    return [read_file(path) for path in trace_files(directory)]


def numbers(files: list[TraceFile]) -> list[int]:
    return [recorded.event.a for file in files for recorded in file.events]


def test_what_is_recorded_is_in_the_file_after_close(tmp_path: Path) -> None:
    with TraceWriter(tmp_path / "made", "broker-a") as trace:
        for number in range(10_000):
            trace.record(Event("AckPut", "producer", "topic", 3, a=number), Outcome.STEP)
        trace.record(Event("Send", a=10_000), Outcome.OK, 77)
    (file,) = read_all(tmp_path / "made")
    assert file.node == "broker-a"
    assert numbers([file]) == list(range(10_001))
    assert [recorded.sequence for recorded in file.events] == list(range(10_001))
    assert (file.events[-1].outcome, file.events[-1].operation) == (Outcome.OK, 77)
    assert file.drops == []
    assert file.damage == []


def test_files_are_rolled_and_each_can_be_read_alone(tmp_path: Path) -> None:
    with TraceWriter(tmp_path, "weird/name:1", file_bytes_max=4096) as trace:
        for number in range(300):
            trace.record(Event("AckPut", subject=f"topic-{number % 5}", a=number))
    files = read_all(tmp_path)
    assert len(files) > 3
    assert numbers(files) == list(range(300))
    assert {file.node for file in files} == {"weird/name:1"}
    assert [file.head.file_number for file in files] == list(range(len(files)))
    for file in files:
        assert all(recorded.event.subject == f"topic-{recorded.event.a % 5}" for recorded in file.events)


class Stalling(io.RawIOBase):
    """A disk that takes nothing until it is released."""

    def __init__(self, path: Path, gate: threading.Event, waiting: threading.Event) -> None:
        self._file = path.open("wb", buffering=0)
        self._gate = gate
        self._waiting = waiting

    def write(self, data: object) -> int:
        self._waiting.set()
        assert self._gate.wait(60)
        return self._file.write(data)  # type: ignore[arg-type]

    def close(self) -> None:
        self._file.close()


def test_a_slow_disk_drops_events_records_the_drop_and_never_waits(tmp_path: Path) -> None:
    gate, waiting = threading.Event(), threading.Event()
    opener: Callable[[Path], BinaryIO] = lambda path: Stalling(path, gate, waiting)  # type: ignore[assignment,return-value]  # noqa: E731
    trace = TraceWriter(tmp_path, "n", buffer_events_max=100, opener=opener)
    trace.record(Event("A", a=0))
    assert waiting.wait(60)
    for number in range(1, 1_000):  # the thread hangs in its first write all the while
        trace.record(Event("A", a=number))
    assert trace.dropped_count > 800
    gate.set()
    trace.close()
    (file,) = read_all(tmp_path)
    assert file.dropped_count == trace.dropped_count
    assert len(file.events) + file.dropped_count == 1_000
    kept = numbers([file])
    assert kept == sorted(kept)
    missing = {number for drop in file.drops for number in range(drop.sequence, drop.sequence + drop.count)}
    assert missing == set(range(1_000)) - set(kept)


class Failing(io.RawIOBase):
    """A disk with room for the head of a file and no more, as long as it is full."""

    def __init__(self, path: Path, writes: list[int], full: list[bool]) -> None:
        self._file = path.open("wb", buffering=0)
        self._writes = writes
        self._full = full

    def write(self, data: object) -> int:
        if self._full[0] and len(data) > 64:  # type: ignore[arg-type]
            raise OSError(errno.ENOSPC, "No space left on device")
        self._writes.append(1)
        return self._file.write(data)  # type: ignore[arg-type]

    def close(self) -> None:
        self._file.close()


def test_a_full_disk_costs_events_and_nothing_else(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(writer_module, "RETRY_S", 0.0)
    full = [True]
    failed = threading.Event()

    class Trace(TraceWriter):
        def _failed(self, error: OSError) -> None:
            super()._failed(error)
            if self.lost_count == 50:
                failed.set()

    opener: Callable[[Path], BinaryIO] = lambda path: Failing(path, [], full)  # type: ignore[assignment,return-value]  # noqa: E731
    trace = Trace(tmp_path, "n", opener=opener)
    for number in range(50):
        trace.record(Event("A", "who", a=number))
    assert failed.wait(60)
    assert trace.dropped_count == 50
    full[0] = False
    for number in range(50, 60):
        trace.record(Event("A", "who", a=number))
    trace.close()
    files = [read_file(path) for path in trace_files(tmp_path) if path.stat().st_size]
    assert numbers(files) == list(range(50, 60))
    assert sum(file.dropped_count for file in files) == 50
    assert all(recorded.event.actor == "who" for file in files for recorded in file.events)


def test_a_number_that_does_not_fit_is_dropped_and_the_next_event_is_whole(tmp_path: Path) -> None:
    with TraceWriter(tmp_path, "n") as trace:
        trace.record(Event("New", "strings", a=1 << 70))
        trace.record(Event("New", "strings", a=1))
    files = read_all(tmp_path)
    assert numbers(files) == [1]
    assert files[-1].events[0].event.actor == "strings"
    assert sum(file.dropped_count for file in files) == 1


def test_events_after_the_close_are_ignored_and_a_second_close_is_harmless(tmp_path: Path) -> None:
    trace = TraceWriter(tmp_path, "n")
    trace.close()
    trace.record(Event("A"))
    trace.close()
    assert numbers(read_all(tmp_path)) == []


def test_a_directory_that_cannot_be_made_is_refused_at_once(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(UsageError, match="cannot be made"):
        TraceWriter(tmp_path / "file" / "below", "n")


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


def test_a_file_that_cannot_be_begun_loses_nothing_while_there_is_room(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(writer_module, "RETRY_S", 0.0)
    tried = threading.Event()
    broken = [True]

    def opener(path: Path) -> BinaryIO:
        if broken[0]:
            tried.set()
            raise OSError(errno.EACCES, "Permission denied")
        return path.open("xb", buffering=0)

    trace = TraceWriter(tmp_path, "n", opener=opener)
    for number in range(50):
        trace.record(Event("A", a=number))
    assert tried.wait(60)
    broken[0] = False
    trace.close()
    assert numbers(read_all(tmp_path)) == list(range(50))
    assert trace.dropped_count == 0


def test_events_that_nobody_packs_are_dropped_beyond_the_bound_and_the_drop_is_recorded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(writer_module, "QUEUE_EVENTS_MAX", 40)
    with TraceWriter(tmp_path, "n") as trace:
        with trace._packing:  # the writer's thread is at work and does not come to an end
            for number in range(100):
                trace.record(Event("A", a=number))
            assert trace.dropped_count == 60
        trace.record(Event("A", a=100))
    files = read_all(tmp_path)
    assert len(numbers(files)) + sum(file.dropped_count for file in files) == 101
    assert set(range(40)) < set(numbers(files))


def test_a_full_table_of_strings_begins_a_new_file_with_a_new_table(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(record_module, "STRINGS_MAX", 40)
    with TraceWriter(tmp_path, "n") as trace:
        for number in range(200):
            trace.record(Event("A", f"client-{number}", "topic" * 40, a=number))
    files = read_all(tmp_path)
    assert len(files) > 4
    assert numbers(files) == list(range(200))
    assert all(recorded.event.actor == f"client-{recorded.event.a}" for file in files for recorded in file.events)
