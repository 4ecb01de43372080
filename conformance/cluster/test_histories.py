"""Histories of whole clusters: Hypothesis chooses, the simulated world lives through them, the oracles judge."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings

from conformance.base import Broken, replay_line, save
from conformance.cluster import generate
from conformance.cluster import history as h
from conformance.cluster.replay import explain, replay
from conformance.cluster.runner import run_history
from conformance.engines import BUILT_ENGINES

ROOT = Path(__file__).parent.parent.parent
FAILURES = ROOT / "build" / "conformance"
"""Where a failing history is saved. Hypothesis runs the shrunken one last, so its line is the last one printed."""


def live(history: h.History, engine: str = "reference") -> None:
    """Runs a history; a broken promise prints the history, the time line of every node and the line that replays it."""
    run = run_history(history, engine)
    if run.violations:
        path = save("cluster", history.to_json(), run.violations, FAILURES)
        print(explain(history, run))
        raise Broken(run.violations, f"{replay_line(path)} --engine {engine}")


@settings(suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
@given(generate.histories())
def test_no_history_breaks_a_promise(history: h.History) -> None:
    live(history)


@pytest.mark.parametrize("engine", BUILT_ENGINES)
@pytest.mark.parametrize("seed", range(20))
def test_no_seed_breaks_a_promise(seed: int, engine: str) -> None:
    live(generate.history(seed, 40), engine)


@pytest.mark.parametrize("engine", BUILT_ENGINES)
@pytest.mark.parametrize("seed", range(5))
def test_nothing_in_a_cluster_reaches_for_the_real_world(seed: int, engine: str) -> None:
    """The strict fence looks at every C function that is called."""
    assert run_history(generate.history(seed, 20), engine, strict=True).violations == []


@given(generate.histories())
def test_a_history_that_was_saved_is_the_same(history: h.History) -> None:
    assert h.History.from_json(history.to_json()) == history


def test_a_replay_says_what_happened(capsys: pytest.CaptureFixture[str]) -> None:
    history = h.History(h.Setting(seed=3), (h.Send(count=2), h.AdvanceClock(100), h.Pull()))
    assert replay(history.to_json(), engine="reference", verbose=True) == []
    shown = capsys.readouterr().out
    assert "Send(client=0" in shown
    assert "--- broker-a" in shown
    assert "AppendMessage" in shown


DIGESTS = """
import hashlib
from conformance.cluster import generate
from conformance.cluster.runner import run_history
for seed in range(4):
    run = run_history(generate.history(seed, 40))
    print(len(run.lines), run.world.timeline.digest, hashlib.sha256(run.world.trace_bytes()).hexdigest())
"""


def test_a_seed_gives_the_same_trace_bytes_in_another_process_with_another_hash_seed() -> None:
    outputs = []
    for hash_seed in ("0", "4242"):
        environment = {
            "PYTHONHASHSEED": hash_seed,
            "PYTHONPATH": f"{ROOT / 'src'}:{ROOT}",
            "PATH": os.environ["PATH"],
            "TZ": f"UTC-{hash_seed[:1]}",
        }
        done = subprocess.run(
            [sys.executable, "-c", DIGESTS], env=environment, capture_output=True, text=True, check=True, timeout=300
        )
        outputs.append(done.stdout)
    assert outputs[0] == outputs[1]
    assert outputs[0].count("\n") == 4
    here = run_history(generate.history(0, 40))
    assert hashlib.sha256(here.world.trace_bytes()).hexdigest() in outputs[0]
