"""Synthetic clusters: without mistakes they keep every promise, and each mistake breaks what it says."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from refmq.verify.local import judge_here
from refmq.verify.oracles import ORACLES, Promises
from refmq.verify.recordings import Recordings, find_recordings
from refmq.verify.spark.columns import StreamReader
from refmq.verify.synth.cluster import Cluster
from refmq.verify.synth.plants import KIND, KINDS, Plant, planted
from refmq.verify.synth.streams import Synthetic, SyntheticWriter, synthetic
from refmq.verify.synth.tales import BAD
from refmq.verify.verdicts import Status

TINY = Cluster(1, 3, 2, seed=5)


def written(whole: Synthetic, folder: Path) -> Recordings:
    SyntheticWriter(folder).write(whole)
    return find_recordings([folder])


def broken(whole: Synthetic, folder: Path) -> set[str]:
    return {verdict.invariant for verdict in judge_here(written(whole, folder), Promises()).broken}


def test_a_cluster_without_mistakes_keeps_every_promise(tmp_path: Path) -> None:
    whole = synthetic(3_000, seed=1)
    judgement = judge_here(written(whole, tmp_path), Promises())
    assert judgement.census.total == whole.event_count
    assert {verdict.status for verdict in judgement.verdicts} == {Status.KEPT}


@pytest.mark.parametrize("name", KIND)
def test_a_plant_breaks_what_it_says(name: str, tmp_path: Path) -> None:
    assert set(KIND[name].breaks) <= broken(Synthetic(TINY, 6, (Plant(name, 0, 2),)), tmp_path)


@pytest.mark.parametrize("name", BAD)
def test_a_bad_tale_breaks_what_it_says(name: str, tmp_path: Path) -> None:
    found = broken(Synthetic(TINY, 3, (), (name,)), tmp_path)
    assert set(BAD[name][1]) <= found <= set(ORACLES)


def test_every_promise_can_be_planted(tmp_path: Path) -> None:
    """... and all of them are found by name in one trace, each with what shows it."""
    whole = synthetic(20_000, seed=4, violations=1)
    assert whole.breaks == set(ORACLES)
    judgement = judge_here(written(whole, tmp_path), Promises())
    assert {verdict.invariant for verdict in judgement.broken} == set(ORACLES)
    assert all(verdict.shown[0].sentence and verdict.shown[0].witness for verdict in judgement.broken)


def test_the_same_seed_makes_the_same_trace_and_another_another(tmp_path: Path) -> None:
    for folder, seed in (("a", 1), ("b", 1), ("c", 2)):
        written(synthetic(1_000, seed, 1), tmp_path / folder)
    names = sorted(path.name for path in (tmp_path / "a").iterdir())
    assert all((tmp_path / "a" / name).read_bytes() == (tmp_path / "b" / name).read_bytes() for name in names)
    assert any((tmp_path / "a" / name).read_bytes() != (tmp_path / "c" / name).read_bytes() for name in names)


def test_files_hold_what_a_task_makes(tmp_path: Path) -> None:
    whole = synthetic(5_000, seed=2, violations=1)
    recordings = written(whole, tmp_path)
    made = {stream.node: whole.node(stream) for stream in whole.recordings().streams}
    for stream in recordings.streams:
        rows = np.concatenate([chunk.rows for chunk in StreamReader(stream).chunks()])
        assert np.array_equal(rows, np.concatenate([chunk.rows for chunk in made[stream.node].chunks(700)]))
        assert list(rows["sequence"][:2]) == [0, 1]


def test_plants_are_spread_and_leave_out_what_is_no_mistake() -> None:
    plants = planted(Cluster(2, 2, 1), 50, 2)
    assert {plant.kind for plant in plants} == {kind.name for kind in KINDS}
    assert len({(plant.broker, plant.round) for plant in plants}) == len(plants)
    without = planted(Cluster(2, 2, 1), 50, 1, flush_sync=False)
    assert {plant.kind for plant in without} == {kind.name for kind in KINDS if not kind.needs_sync}
