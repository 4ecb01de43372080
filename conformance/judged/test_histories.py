"""A sample of the histories of clusters and of groups: what their brokers recorded is judged by TLC as well."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from conformance.cluster import generate as clusters
from conformance.cluster.runner import run_history as run_cluster
from conformance.engines import BUILT_ENGINES
from conformance.group import generate as groups
from conformance.group.runner import run_history as run_group
from conformance.judged.agreement import of_tlc
from refmq.verify.oracles import Line
from refmq.verify.spec.check import RunOptions
from refmq.verify.spec.recordings import Settings, judge_recording
from refmq.verify.spec.tlc import Tlc

SPEC = Path(__file__).parents[2] / "spec"
CHECKS_MAX = 5
"""How often the brokers of a history ask about a half message (`conformance.cluster.runner`)."""
DAMAGED_HALF = 2008
"""The seed of a history in which a bit of a half message flips."""
pytestmark = pytest.mark.jdk


def refusals(tlc: Tlc, lines: Sequence[Line], *, sync_flush: bool) -> list[str]:
    """What TLC refuses."""
    told = list(of_tlc(lines))
    if not any(one.event.action == "StartStore" for one in told):
        return []
    settings = Settings(sync_flush=sync_flush, check_max=CHECKS_MAX)
    verdicts = judge_recording(tlc, SPEC, told, RunOptions(timeout_s=120), settings)
    return [f"{verdict.node}: {verdict.answer.reason}" for verdict in verdicts if not verdict.answer.accepted]


@pytest.mark.parametrize("engine", BUILT_ENGINES)
@pytest.mark.parametrize("seed", range(100, 110))
def test_histories_of_clusters_are_accepted(tlc: Tlc, seed: int, engine: str) -> None:
    history = clusters.history(seed, 40)
    run = run_cluster(history, engine)  # the oracles judge histories elsewhere
    assert refusals(tlc, run.lines, sync_flush=history.setting.sync_flush) == []


@pytest.mark.parametrize("engine", BUILT_ENGINES)
@pytest.mark.parametrize("seed", range(100, 105))
def test_histories_of_groups_are_accepted(tlc: Tlc, seed: int, engine: str) -> None:
    run = run_group(groups.history(seed, 30), engine)
    assert refusals(tlc, run.lines, sync_flush=True) == []


def test_a_round_passes_over_a_half_message_only_when_it_is_damaged(tlc: Tlc) -> None:
    history = clusters.history(DAMAGED_HALF, 40)
    lines = run_cluster(history).lines
    assert refusals(tlc, lines, sync_flush=history.setting.sync_flush) == []
    whole = [line for line in lines if line.action != "FlipBit"]
    assert any("Half" in refusal for refusal in refusals(tlc, whole, sync_flush=history.setting.sync_flush))
