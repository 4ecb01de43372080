"""The watchdog: growing files are read once, and a range is an alarm when it is wrong for good."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from refmq.trace.record import RECORD_BYTES
from refmq.verify.recordings import find_recordings
from refmq.verify.spark.columns import StreamReader
from refmq.verify.spark.digest import added, digest_cells, keys_of
from refmq.verify.spark.facts import as_signed
from refmq.verify.spark.tail import Slice, Tail, cells_of, read_slice
from refmq.verify.spark.watch import Alarm, Watch
from refmq.verify.synth.cluster import Cluster
from refmq.verify.synth.plants import Plant
from refmq.verify.synth.streams import Synthetic, SyntheticWriter, synthetic


def grown(source: Path, target: Path, share: float) -> None:
    """The files as they were when a part of each was written."""
    target.mkdir(exist_ok=True)
    for path in source.iterdir():
        data = path.read_bytes()
        (target / path.name).write_bytes(data[: int(len(data) * share)])


def test_growing_files_are_read_once_and_whole(tmp_path: Path) -> None:
    SyntheticWriter(tmp_path / "whole").write(synthetic(60_000, cluster=Cluster(1, 4, 4)))
    tail, slices = Tail(tmp_path / "live"), list[Slice]()
    for share in (0.0, 0.3, 0.31, 0.7, 1.0, 1.0):
        grown(tmp_path / "whole", tmp_path / "live", share)
        slices += tail.poll()
    assert len(slices) > 4 and tail.poll() == [] and tail.bad == []
    for stream in find_recordings([tmp_path / "whole"]).streams:
        own = [part for part in slices if Path(part.path).name == Path(stream.pieces[0].path).name]
        assert [part.end for part in own[:-1]] == [part.begin for part in own[1:]]
        assert all((part.end - part.begin) % RECORD_BYTES == 0 and part.node == stream.name for part in own)
        live = np.concatenate([chunk.rows for part in own for chunk in read_slice(part)])
        whole = list(StreamReader(stream).chunks())
        assert np.array_equal(live, np.concatenate([chunk.rows for chunk in whole]))
        cells = added(np.concatenate([cells_of(part, 5) for part in own]))
        expected = added(np.concatenate([digest_cells(chunk, keys_of(5)) for chunk in whole]))
        assert set(cells.tolist()) == set(expected.tolist())


def test_what_is_no_trace_is_said_once(tmp_path: Path) -> None:
    (tmp_path / "x.trace").write_bytes(b"x" * 200)
    tail = Tail(tmp_path)
    assert tail.poll() == tail.poll() == []
    assert len(tail.bad) == 1 and "x.trace" in tail.bad[0]


def watched(whole: Synthetic, folder: Path) -> tuple[Watch, list[Alarm]]:
    SyntheticWriter(folder).write(whole)
    watch = Watch(patience_s=10)
    for part in Tail(folder).poll():
        for cell in cells_of(part, 1).tolist():
            queue, group, place, role, *sums = cell[:9]
            watch.feed(as_signed(queue), place, role, group, (sums[0], sums[1], sums[2], sums[3], sums[4]), 100.0)
    assert watch.alarms(105.0) == [], "not yet"
    return watch, watch.alarms(111.0)


def test_a_good_cluster_raises_no_alarm(tmp_path: Path) -> None:
    watch, alarms = watched(Synthetic(Cluster(1, 3, 2), 20), tmp_path)
    assert alarms == [] and watch.events > 500


def test_each_kind_of_difference_is_an_alarm_and_one_only(tmp_path: Path) -> None:
    cluster = Cluster(1, 3, 2)
    for number, (kind, sentence) in enumerate(
        (
            ("hole in a queue", "dispatched"),
            ("wrong unit", "dispatched"),
            ("untrue answer", "producers were told"),
            ("another broker's message", "consumers got"),
            ("invented message", "consumed other messages"),
        )
    ):
        watch, alarms = watched(Synthetic(cluster, 20, (Plant(kind, 0, 4),)), tmp_path / str(number))
        assert any(sentence in alarm.sentence for alarm in alarms), kind
        assert watch.alarms(200.0) == []
        assert "orders/1 at b, offsets " in alarms[0].in_words({alarms[0].queue: "orders/1 at b"})
