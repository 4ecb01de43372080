"""Traces."""

from __future__ import annotations

import errno
import io
import os
import shutil
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import BinaryIO, cast

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from refmq.errors import UsageError
from refmq.model.step import Event
from refmq.trace import record as record_module
from refmq.trace import writer as writer_module
from refmq.trace.page import NewPage, PlainPage
from refmq.trace.reader import TraceFile, TraceReader, read_file, trace_files
from refmq.trace.record import Outcome
from refmq.trace.writer import TraceWriter

PAGES: dict[str, NewPage] = {"plain": PlainPage}


@pytest.fixture(params=PAGES)
def new_page(request: pytest.FixtureRequest) -> NewPage:
    return PAGES[request.param]


@pytest.fixture
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """The writer's thread never rests."""
    monkeypatch.setattr(writer_module, "RETRY_S", 0.0)
    monkeypatch.setattr(writer_module, "FLUSH_INTERVAL_S", 0.0)


def read_all(directory: Path) -> list[TraceFile]:
    return [read_file(path) for path in trace_files(directory)]


def numbers(files: list[TraceFile]) -> list[int]:
    return [recorded.event.a for file in files for recorded in file.events]


def test_what_is_recorded_is_in_the_file_after_close(tmp_path: Path, new_page: NewPage) -> None:
    with TraceWriter(tmp_path / "made", "broker-a", new_page=new_page) as trace:
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


def test_files_are_rolled_and_each_can_be_read_alone(tmp_path: Path, new_page: NewPage) -> None:
    with TraceWriter(tmp_path, "weird/name:1", file_bytes_max=4096, new_page=new_page) as trace:
        for number in range(300):
            trace.record(Event("AckPut", subject=f"topic-{number % 5}", a=number))
    files = read_all(tmp_path)
    assert len(files) > 3
    assert numbers(files) == list(range(300))
    assert {file.node for file in files} == {"weird/name:1"}
    assert [file.head.file_number for file in files] == list(range(len(files)))
    for file in files:
        assert all(recorded.event.subject == f"topic-{recorded.event.a % 5}" for recorded in file.events)


def wait_until(condition: Callable[[], bool]) -> None:
    deadline_s = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < deadline_s
        time.sleep(0)  # others may run


def has_written_all(trace: TraceWriter) -> bool:
    queued = trace._pages[0]
    return len(trace._pages) == 1 and queued.page.read(queued.written) == b""


class Disk:
    """Real files, as long as it pleases."""

    def __init__(self) -> None:
        self.refuses_files = False
        self.room_bytes: int | None = None
        """So much can still be written."""
        self.gate = threading.Event()
        self.gate.set()
        self.failed = threading.Event()
        """It has refused something."""
        self.waits = threading.Event()
        """Somebody waits at the gate."""

    def opener(self, path: Path) -> BinaryIO:
        if self.refuses_files:
            self.failed.set()
            raise OSError(errno.EACCES, "Permission denied")
        return cast("BinaryIO", DiskFile(self, path))

    def takes(self, size: int) -> int:
        if not self.gate.is_set():
            self.waits.set()
            assert self.gate.wait(60)
        if self.room_bytes is None:
            return size
        if self.room_bytes == 0:
            self.failed.set()
            raise OSError(errno.ENOSPC, "No space left on device")
        taken = min(size, self.room_bytes)
        self.room_bytes -= taken
        return taken


class DiskFile(io.RawIOBase):
    def __init__(self, disk: Disk, path: Path) -> None:
        self._disk = disk
        self._file = path.open("xb", buffering=0)

    def write(self, data: object) -> int:
        view = memoryview(cast("bytes", data))
        return self._file.write(view[: self._disk.takes(len(view))])

    def truncate(self, size: int | None = None) -> int:
        return self._file.truncate(size)

    def fileno(self) -> int:
        return self._file.fileno()

    def close(self) -> None:
        self._file.close()


def accounted(files: list[TraceFile]) -> list[int]:
    """The sequence numbers that files have, as events or as missing."""
    missing = [drop.sequence + number for file in files for drop in file.drops for number in range(drop.count)]
    return sorted([recorded.sequence for file in files for recorded in file.events] + missing)


def check_block_heads(directory: Path) -> None:
    """Blocks are numbered, and say with which sequence number they begin."""
    for path in trace_files(directory):
        with path.open("rb") as source:
            reader = TraceReader(source)
            for number, block in enumerate(reader.blocks()):
                assert block.head.number == number
                sequences = [entry.sequence for entry in reader.entries_of(block)]
                assert block.head.first_sequence == min(sequences, default=block.head.first_sequence)


def test_a_slow_disk_drops_events_records_the_drop_and_never_waits(tmp_path: Path, new_page: NewPage) -> None:
    disk = Disk()
    disk.gate.clear()
    trace = TraceWriter(tmp_path, "n", buffer_events_max=100, opener=disk.opener, new_page=new_page)
    trace.record(Event("A", a=0))
    assert disk.waits.wait(60)
    for number in range(1, 1_000):  # the thread hangs in its first write all the while
        trace.record(Event("A", a=number))
    assert trace.dropped_count > 800
    disk.gate.set()
    trace.close()
    (file,) = read_all(tmp_path)
    assert file.dropped_count == trace.dropped_count
    kept = [(recorded.event.a, recorded.sequence) for recorded in file.events]
    assert all(number == sequence for number, sequence in kept)
    assert accounted([file]) == list(range(1_000))


def test_a_full_page_is_written_at_once(tmp_path: Path, new_page: NewPage, monkeypatch: pytest.MonkeyPatch) -> None:
    """A busy node fills its memory many times before the writer would look by itself."""
    monkeypatch.setattr(writer_module, "FLUSH_INTERVAL_S", 3600.0)
    with TraceWriter(tmp_path, "n", buffer_events_max=64, new_page=new_page) as trace:
        for number in range(0, 640, 16):
            for at in range(number, number + 16):
                trace.record(Event("A", a=at))
            wait_until(lambda: len(trace._pages) <= 2)
        assert trace.dropped_count == 0
    assert numbers(read_all(tmp_path)) == list(range(640))


def test_events_after_a_gap_stand_behind_the_record_of_it(tmp_path: Path, new_page: NewPage) -> None:
    disk = Disk()
    disk.gate.clear()
    trace = TraceWriter(tmp_path, "n", buffer_events_max=40, opener=disk.opener, new_page=new_page)
    trace.record(Event("A", a=0))
    assert disk.waits.wait(60)
    for number in range(1, 6_000):  # more strings than go into a block
        trace.record(Event("A", f"new-{number}", a=number))
    disk.gate.set()
    wait_until(lambda: has_written_all(trace))
    for number in range(6_000, 6_010):
        trace.record(Event("A", "after", a=number))
    trace.close()
    files = read_all(tmp_path)
    (gap,) = [drop for file in files for drop in file.drops]
    assert gap.sequence + gap.count == 6_000
    assert numbers(files) == [*range(gap.sequence), *range(6_000, 6_010)]
    assert files[-1].events[-1].event.actor == "after"
    assert accounted(files) == list(range(6_010))


@pytest.mark.usefixtures("at_once")
def test_a_full_disk_costs_nothing_while_there_is_room_in_memory(
    tmp_path: Path, new_page: NewPage, caplog: pytest.LogCaptureFixture
) -> None:
    disk = Disk()
    disk.room_bytes = 1_000
    trace = TraceWriter(tmp_path, "n", opener=disk.opener, new_page=new_page)
    for number in range(50):
        trace.record(Event("A", "who", a=number))
    assert disk.failed.wait(60)
    for number in range(50, 100):
        trace.record(Event("A", "who", a=number))
    disk.room_bytes = None
    trace.close()
    assert trace.dropped_count == 0
    files = read_all(tmp_path)
    assert numbers(files) == list(range(100))
    assert all(recorded.event.actor == "who" for file in files for recorded in file.events)
    assert [file.damage for file in files] == [[]] * len(files)
    assert [file.head.file_number for file in files] == list(range(len(files)))
    said = [record.getMessage() for record in caplog.records]
    assert said == [
        f"the trace in {tmp_path} cannot be written, events are waiting: [Errno 28] No space left on device",
        f"the trace in {tmp_path} can be written again",
    ]


@pytest.mark.usefixtures("at_once")
def test_a_disk_that_stays_full_costs_events_and_is_not_littered(
    tmp_path: Path, new_page: NewPage, caplog: pytest.LogCaptureFixture
) -> None:
    disk = Disk()
    disk.room_bytes = 0
    trace = TraceWriter(tmp_path, "n", buffer_events_max=40, opener=disk.opener, new_page=new_page)
    trace.record(Event("A", a=0))
    assert disk.failed.wait(60)
    for number in range(1, 100):
        trace.record(Event("A", a=number))
    assert trace.dropped_count > 50
    for _ in range(20):
        disk.failed.clear()
        assert disk.failed.wait(60)
    trace.close()
    assert trace.dropped_count == 100
    assert list(tmp_path.iterdir()) == []
    first, *others, last = [record.getMessage() for record in caplog.records]
    assert "cannot be written" in first
    assert len(others) in (1, 2)  # the writer may have seen the first of them before the last was dropped
    assert all(line.endswith("events dropped so far") for line in others)
    assert last.endswith("events lost")


@pytest.mark.usefixtures("at_once")
def test_a_block_that_finds_no_room_is_cut_off_and_stands_in_the_next_file(tmp_path: Path, new_page: NewPage) -> None:
    disk = Disk()
    trace = TraceWriter(tmp_path, "n", opener=disk.opener, new_page=new_page)
    trace.record(Event("A", a=0))
    wait_until(lambda: has_written_all(trace))
    disk.room_bytes = 100  # a head of a block and half an event
    trace.record(Event("A", a=1))
    assert disk.failed.wait(60)
    disk.room_bytes = None
    trace.close()
    first, second = read_all(tmp_path)
    assert (numbers([first]), numbers([second])) == ([0], [1])
    assert first.damage == second.damage == []
    assert second.events[0].event.action == "A"


@pytest.mark.usefixtures("at_once")
@pytest.mark.parametrize("by", ["file", "directory"])
def test_a_file_or_directory_that_is_removed_is_made_again(
    by: str, tmp_path: Path, new_page: NewPage, caplog: pytest.LogCaptureFixture
) -> None:
    directory = tmp_path / "trace"
    trace = TraceWriter(directory, "n", new_page=new_page)
    trace.record(Event("A", "who", a=0))
    wait_until(lambda: has_written_all(trace))
    (path,) = trace_files(directory)
    if by == "file":
        path.unlink()
    else:
        shutil.rmtree(directory)
    trace.record(Event("A", "who", a=1))
    trace.close()
    assert numbers(read_all(directory)) == [1]
    assert read_all(directory)[0].events[0].event.actor == "who"
    assert [record.getMessage() for record in caplog.records] == [
        f"the trace file {path} was removed, starting another"
    ]


@pytest.mark.usefixtures("at_once")
def test_a_file_opens_with_more_strings_than_a_block_holds(tmp_path: Path, new_page: NewPage) -> None:
    trace = TraceWriter(tmp_path, "n", new_page=new_page)
    names = [f"{number:0130}" for number in range(2_000)]  # three records each
    for name in names:
        trace.record(Event("A", name))
        wait_until(lambda: len(trace._pages) < 10)
    wait_until(lambda: has_written_all(trace))
    (path,) = trace_files(tmp_path)
    path.unlink()
    for name in names:
        trace.record(Event("A", name))
    trace.close()
    (file,) = read_all(tmp_path)
    assert file.damage == []
    assert [recorded.event.actor for recorded in file.events] == names


@pytest.mark.usefixtures("at_once")
def test_a_directory_that_became_a_file_is_waited_for(tmp_path: Path, new_page: NewPage) -> None:
    failed = threading.Event()

    class Trace(TraceWriter):
        def _failed(self, error: OSError) -> None:
            super()._failed(error)
            failed.set()

    directory = tmp_path / "trace"
    trace = Trace(directory, "n", new_page=new_page)
    directory.rmdir()
    directory.write_text("in the way")
    trace.record(Event("A", a=0))
    assert failed.wait(60)
    directory.unlink()
    trace.close()
    assert numbers(read_all(directory)) == [0]


@pytest.mark.usefixtures("at_once")
def test_a_file_that_cannot_be_begun_loses_nothing_while_there_is_room(tmp_path: Path, new_page: NewPage) -> None:
    disk = Disk()
    disk.refuses_files = True
    trace = TraceWriter(tmp_path, "n", opener=disk.opener, new_page=new_page)
    for number in range(50):
        trace.record(Event("A", a=number))
    assert disk.failed.wait(60)
    disk.refuses_files = False
    trace.close()
    assert numbers(read_all(tmp_path)) == list(range(50))
    assert trace.dropped_count == 0


def test_a_disk_that_hangs_does_not_keep_a_node_from_ending(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    disk = Disk()
    disk.gate.clear()
    trace = TraceWriter(tmp_path, "n", opener=disk.opener)
    trace.record(Event("A"))
    assert disk.waits.wait(60)
    trace.close(timeout_s=0.01)
    assert "is incomplete: it could not be finished" in caplog.text
    disk.gate.set()
    trace.close()
    assert numbers(read_all(tmp_path)) == [0]


STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("record"), st.integers(1, 60)),
        st.tuples(st.just("new strings"), st.integers(1, 8)),
        st.just(("does not fit", 1)),
        st.tuples(st.just("room"), st.integers(0, 5_000)),
        st.just(("no files", 1)),
        st.just(("all is well", 1)),
        st.just(("catch up", 1)),
    ),
    max_size=20,
)


@pytest.mark.usefixtures("at_once")
@pytest.mark.parametrize("page", PAGES)
@settings(max_examples=60, deadline=None)
@given(steps=STEPS, buffer_events_max=st.integers(1, 1_000), file_bytes_max=st.integers(64, 4_000))
def test_whatever_the_disk_does_every_event_is_in_the_files_or_said_to_be_missing(
    tmp_path_factory: pytest.TempPathFactory,
    page: str,
    steps: list[tuple[str, int]],
    buffer_events_max: int,
    file_bytes_max: int,
) -> None:
    folder = tmp_path_factory.mktemp("trace")
    disk = Disk()
    trace = TraceWriter(
        folder,
        "n",
        buffer_events_max=buffer_events_max,
        file_bytes_max=file_bytes_max,
        opener=disk.opener,
        new_page=PAGES[page],
    )
    count = unfit = 0
    for what, number in steps:
        match what:
            case "record" | "new strings":
                for _ in range(number):
                    trace.record(Event("A", f"who-{count}" if what == "new strings" else "", a=count))
                    count += 1
            case "does not fit":
                trace.record(Event("A", f"who-{count}", a=1 << 63))
                count, unfit = count + 1, unfit + 1
            case "room":
                disk.room_bytes = number
            case "no files":
                disk.refuses_files = True
            case "all is well":
                disk.room_bytes, disk.refuses_files = None, False
            case "catch up":
                wait_until(lambda: trace._failure != "" or has_written_all(trace))
    disk.room_bytes, disk.refuses_files = None, False
    trace.close()
    files = read_all(folder)
    assert [file.damage for file in files] == [[]] * len(files)
    assert accounted(files) == list(range(count))
    assert sum(file.dropped_count for file in files) == trace.dropped_count >= unfit
    for recorded in [recorded for file in files for recorded in file.events]:
        assert recorded.event.a == recorded.sequence
        assert recorded.event.actor in ("", f"who-{recorded.sequence}")
    check_block_heads(folder)
    if buffer_events_max >= 8 * (2 * count + 4):  # strings need room too, and a page may stay half empty
        assert trace.dropped_count == unfit


def test_a_number_that_does_not_fit_is_dropped_and_the_next_event_is_whole(tmp_path: Path, new_page: NewPage) -> None:
    with TraceWriter(tmp_path, "n", new_page=new_page) as trace:
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
    with pytest.raises(UsageError, match="cannot be created"):
        TraceWriter(tmp_path / "file" / "below", "n")


def test_a_directory_that_cannot_be_written_to_is_refused_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "access", lambda path, mode: path != tmp_path)  # the rights of root say nothing
    with pytest.raises(UsageError, match="cannot be written to"):
        TraceWriter(tmp_path, "n")


def test_a_full_table_of_strings_begins_a_new_file_with_a_new_table(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, new_page: NewPage
) -> None:
    monkeypatch.setattr(record_module, "STRINGS_MAX", 40)
    with TraceWriter(tmp_path, "n", new_page=new_page) as trace:
        for number in range(200):
            trace.record(Event("A", f"client-{number}", "topic" * 40, a=number))
    files = read_all(tmp_path)
    assert len(files) > 4
    assert numbers(files) == list(range(200))
    assert all(recorded.event.actor == f"client-{recorded.event.a}" for file in files for recorded in file.events)
