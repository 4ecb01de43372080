"""An oracle that is shown its suspects finds what it finds in the whole, whether its lines are kept or read again."""

from __future__ import annotations

import tracemalloc
from collections.abc import Iterator
from pathlib import Path

import pytest

from refmq.verify.local import judge_here
from refmq.verify.oracles import Promises, base, consumers, groups, messages
from refmq.verify.recordings import Recordings, Stream, find_recordings
from refmq.verify.spark import examine as examined
from refmq.verify.spark.checks import AFTER_BROKER, CHECKS
from refmq.verify.spark.columns import Chunk, StreamReader, text_hash
from refmq.verify.spark.examine import Job, Selection, examine, read_plainly
from refmq.verify.spark.judge import Accused, tasks_of
from refmq.verify.spark.suspects import EVERYTHING
from refmq.verify.synth.streams import SyntheticWriter, synthetic

THIN = [name for name, check in CHECKS.items() if check.thin]


@pytest.fixture(scope="module")
def recordings(tmp_path_factory: pytest.TempPathFactory) -> Recordings:
    folder = tmp_path_factory.mktemp("made")
    SyntheticWriter(folder).write(synthetic(6_000, seed=3, violations=1))
    return find_recordings([folder])


@pytest.mark.parametrize("kept", [0, 10**6])
def test_it_finds_what_the_oracles_find_in_the_whole(
    kept: int, recordings: Recordings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(examined, "KEPT_LINES_MAX", kept)
    names = ["AckedSurvives", "NodeCoherent", "MembersTold", "EveryMessageConsumed", *THIN]
    jobs = [Job(name, (EVERYTHING,)) for name in names]
    found = {
        name: sorted(each.sentence for each in told.shown)
        for name, told in examine(jobs, recordings.streams, Promises())
    }
    whole = judge_here(recordings, Promises())
    assert found == {
        verdict.invariant: sorted(each.sentence for each in verdict.shown)
        for verdict in whole.verdicts
        if verdict.invariant in names
    }
    assert all(found.values())


def test_an_oracle_is_shown_few_of_the_events_that_it_asks_nothing_of(recordings: Recordings) -> None:
    assert set(THIN) == {"DecidedIsMarked", "ConsumedWhenCalm"}
    for name in THIN:
        selection = Selection(Job(name, (EVERYTHING,)))
        chunks = [chunk for stream in recordings.streams for chunk in read_plainly(stream)]
        assert 0 < sum(len(selection.of(chunk)) for chunk in chunks) < sum(map(len, chunks)) / 10


def test_only_streams_that_have_something_to_say_are_read_again(
    recordings: Recordings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(examined, "KEPT_LINES_MAX", 0)
    opened: list[str] = []

    def reading(stream: Stream) -> object:
        opened.append(stream.node)
        return read_plainly(stream)

    key = text_hash("broker-1") | 1
    ((_, found),) = examine([Job("QueueMatchesLog", (key,))], recordings.streams, Promises(), reading)  # type: ignore[arg-type]  # it is an iterator
    assert found.count
    nodes = [stream.node for stream in recordings.streams]
    # Everybody is told what the world did, and one consumer has notes about that.
    assert opened[: len(nodes)] == nodes and set(opened[len(nodes) :]) == {"broker-1", "consumer-0"}


def test_nodes_are_dealt_out_to_tasks() -> None:
    accused = Accused({"NodeCoherent": {3, 5, 7}, "AckedSurvives": {9, 11}, "MembersTold": {13}}, {})
    tasks = tasks_of(accused, CHECKS, 2)
    assert sorted((job.invariant, job.bucket, job.buckets) for jobs in tasks for job in jobs) == [
        ("AckedSurvives", 0, 1),
        ("MembersTold", 0, 1),
        ("NodeCoherent", 0, 2),
        ("NodeCoherent", 1, 2),
    ]


@pytest.mark.slow
def test_what_is_kept_of_a_crashed_broker_does_not_grow_with_its_trace(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The six promises whose oracles look at all that such a broker did, with small bounds: three times the trace."""
    monkeypatch.setattr(examined, "KEPT_LINES_MAX", 1_000)
    for module in (base, consumers, groups, messages):
        monkeypatch.setattr(module, "REMEMBERED_MAX", 500)
    jobs = [Job(name, (text_hash("broker-0") | 1,)) for name in AFTER_BROKER]
    peaks = []
    for events in (60_000, 180_000):
        folder = tmp_path / str(events)
        SyntheticWriter(folder).write(synthetic(events, seed=3))
        streams = find_recordings([folder]).streams
        tracemalloc.start()
        try:
            assert [found.count for _, found in examine(jobs, streams, Promises(), in_small_chunks)] == [0] * len(jobs)
            peaks.append(tracemalloc.get_traced_memory()[1])
        finally:
            tracemalloc.stop()
    assert peaks[1] < 1.4 * peaks[0], peaks


def in_small_chunks(stream: Stream) -> Iterator[Chunk]:
    return StreamReader(stream, chunk_records=1_000).chunks()
