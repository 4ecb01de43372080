"""Streams are put together from files, and their events into one order that does not depend on who looks."""

from __future__ import annotations

from pathlib import Path

import pytest

from refmq.errors import UsageError
from refmq.model.step import Event
from refmq.trace.record import Dropped, Encoder, seal_block
from refmq.trace.writer import TraceWriter
from refmq.verify.oracles import Line
from refmq.verify.recordings import Placed, Reading, find_recordings, look_at, merged


def trace(folder: Path, node: str, times: list[int], *, file_bytes_max: int = 1 << 20) -> None:
    clock = iter([1_000, *times, *[times[-1]] * 100]).__next__
    with TraceWriter(folder, node, clock_ns=clock, file_bytes_max=file_bytes_max) as writer:
        for number, _ in enumerate(times):
            writer.record(Event("FlushLog", a=number))


def test_lives_and_nodes_are_streams_of_their_own(tmp_path: Path) -> None:
    trace(tmp_path, "b", [1, 2])
    trace(tmp_path / "deeper", "a#2", [3])
    (first, second) = find_recordings([tmp_path, tmp_path]).streams
    assert (first.node, first.name, second.node) == ("a#2", "a", "b")
    assert find_recordings([tmp_path]).file_count == 2
    assert find_recordings([tmp_path]).size_bytes == first.size_bytes + second.size_bytes > 0


def test_events_are_in_the_order_of_times_and_within_a_stream_in_that_of_the_file(tmp_path: Path) -> None:
    trace(tmp_path, "a", [10, 5, 20])
    trace(tmp_path, "b", [7, 15])
    reading = Reading()
    lines = list(reading.of_all(find_recordings([tmp_path]).streams))
    assert [(line.node, line.a) for line in lines] == [("b", 0), ("a", 0), ("a", 1), ("b", 1), ("a", 2)]
    assert reading.bytes_read > 0


def test_the_order_of_two_events_does_not_depend_on_a_third() -> None:
    lines = [Line("a", "FlushLog", 0, 0, at, "", "", -1, at, 0, 0, 0) for at in (10, 5, 20, 7)]
    one = [Placed(10, lines[0]), Placed(10, lines[1]), Placed(20, lines[2])]
    whole = [line.a for line in merged([iter(one), iter([Placed(7, lines[3])])])]
    without = [line.a for line in merged([iter(one[1:]), iter([Placed(7, lines[3])])])]
    assert [at for at in whole if at != 10] == without


def test_what_is_no_trace_is_named_and_the_rest_is_read(tmp_path: Path) -> None:
    trace(tmp_path, "a", [1])
    (tmp_path / "x.trace").write_bytes(b"nothing of ours, and longer than the head of a file would be, is it not?")
    (tmp_path / "empty.trace").write_bytes(b"")
    recordings = find_recordings([tmp_path])
    assert [stream.node for stream in recordings.streams] == ["a"]
    assert ["x.trace" in str(gap) for gap in recordings.gaps] == [True]
    assert look_at(tmp_path / "empty.trace") is None


def test_a_torn_tail_and_drops_are_gaps(tmp_path: Path) -> None:
    encoder = Encoder("a", 1)
    head = encoder.begin_file(1)
    records = encoder.node_name() + encoder.event(Event("FlushLog"), 5) + encoder.drop(Dropped(7, 1, 5))
    path = tmp_path / "a.trace"
    path.write_bytes(head + seal_block(records, 0, 0) + b"\x04torn")
    reading = Reading()
    assert len(list(reading.of_all(find_recordings([path]).streams))) == 1
    assert [(gap.count, gap.node) for gap in reading.gaps] == [(7, "a"), (0, "a")]
    assert "torn" in reading.gaps[1].reason


def test_a_life_without_its_beginning_is_a_gap(tmp_path: Path) -> None:
    trace(tmp_path, "a", [1, 2, 3], file_bytes_max=64)
    files = sorted(tmp_path.iterdir())
    if len(files) > 1:
        files[0].unlink()
        assert "are not there" in str(find_recordings([tmp_path]).gaps[0])


def test_a_place_without_traces_is_said_so(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no trace files"):
        find_recordings([tmp_path])
