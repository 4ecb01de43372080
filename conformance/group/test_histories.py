"""Real clients in histories of a group: generated ones, fixed seeds, the strict fence, replays."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings

from conformance.base import Broken, replay_line, save
from conformance.group import generate
from conformance.group import history as h
from conformance.group.replay import explain, replay
from conformance.group.runner import run_history

ROOT = Path(__file__).parent.parent.parent
FAILURES = ROOT / "build" / "conformance"
SEEDS = 25
EXAMPLES = 10
"""Half a second each: the whole file takes about half a minute of the processor."""


def live(history: h.History) -> None:
    """Runs a history; a broken promise prints the history, the time line of every node and the line that replays it."""
    run = run_history(history)
    if run.violations:
        path = save("group", history.to_json(), run.violations, FAILURES)
        print(explain(history, run))
        raise Broken(run.violations, replay_line(path))


@settings(max_examples=EXAMPLES, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
@given(generate.histories())
def test_no_history_breaks_a_promise(history: h.History) -> None:
    live(history)


@pytest.mark.parametrize("seed", range(SEEDS))
def test_no_seed_breaks_a_promise(seed: int) -> None:
    live(generate.history(seed, 30))


@pytest.mark.parametrize("orderly", [False, True])
def test_nothing_in_a_client_reaches_for_the_real_world(orderly: bool) -> None:
    """The strict fence looks at every C function that is called."""
    setting = h.Setting(seed=1, orderly=orderly)
    steps = (h.Produce(count=3, fails=1, body_bytes=6_000), h.Join(0), h.AdvanceClock(2_000), h.Join(1), h.Leave(0))
    assert run_history(h.History(setting, steps), strict=True).violations == []


@given(generate.histories())
def test_a_history_that_was_saved_is_the_same(history: h.History) -> None:
    assert h.History.from_json(history.to_json()) == history


def test_a_replay_says_what_happened(capsys: pytest.CaptureFixture[str]) -> None:
    history = h.History(h.Setting(seed=3), (h.Produce(count=2), h.Join(0)))
    assert replay(history.to_json(), engine="reference", verbose=True) == []
    shown = capsys.readouterr().out
    assert "Produce(broker=0" in shown
    assert "--- member-0" in shown
    assert "ConsumeFinish" in shown


def test_a_history_has_what_its_promises_are_about() -> None:
    """Retries, dead letters, hand-overs: what does not happen cannot break."""
    steps = (
        *(h.Join(0), h.Produce(count=4, fails=9), h.Produce(queue=1, count=4), h.AdvanceClock(3_000)),
        *(h.Join(1), h.AdvanceClock(1_000), h.ConsumerDeath(0), h.AdvanceClock(1_000)),
    )
    run = run_history(h.History(h.Setting(seed=2), steps))
    assert run.violations == []
    told = {(line.action, line.topic.partition("%g")[0]) for line in run.lines}
    assert {("AppendMessage", "%DLQ"), ("Listen", "%RETRY"), ("Listen", "t"), ("ReleaseQueue", "t")} <= told


DIGESTS = """
import hashlib
from conformance.group import generate
from conformance.group.runner import run_history
for seed in range(4):
    run = run_history(generate.history(seed, 30))
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
    here = run_history(generate.history(0, 30))
    assert hashlib.sha256(here.world.trace_bytes()).hexdigest() in outputs[0]
