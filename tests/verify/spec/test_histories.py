"""Counterexamples of the specifications are histories that the conformance suite replays."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from conformance.base import replay_file, replay_verdict
from conformance.cluster.history import History as ClusterHistory
from conformance.store.history import History as StoreHistory
from refmq.cli.spec import command
from refmq.errors import UsageError
from refmq.verify.oracles.base import Finding
from refmq.verify.spec.histories import SEEN_TO_BREAK, as_saved_history
from refmq.verify.spec.tlc import State
from tests.verify.spec.helpers import SPEC, configuration, needs_tlc


def counterexample(name: str, folder: Path) -> Path:
    arguments = ["check", name, "--counterexamples", str(folder), "--spec-dir", str(SPEC)]
    result = CliRunner().invoke(command, arguments)
    assert result.exception is None, result.output
    return folder / f"{name.replace('/', '.')}.json"


@pytest.mark.jdk
@needs_tlc
def test_our_store_does_not_follow_the_counterexamples_of_rocketmq(tmp_path: Path) -> None:
    path = counterexample("store_recovery/weak/unflushed_message_served", tmp_path)
    saved = json.loads(path.read_text())
    history = StoreHistory.from_json(saved["history"])
    assert saved["kind"] == "store"
    assert history.setting.sync_flush
    names = [type(step).__name__ for step in history.steps]
    wanted = ["StartStore", "AppendMessage", "DispatchMessage", "ServeMessage"]
    assert [name for name in names if name in wanted] == wanted
    assert replay_file(path) == []


BREAK = """
import sys
from pathlib import Path
from conformance.mutants.apply import change_on_import
from conformance.mutants.cluster import SEEDED_CLUSTER
from conformance.mutants.seeded import SEEDED
path, name = Path(sys.argv[1]), sys.argv[2]
(mistake,) = [one for one in (*SEEDED, *SEEDED_CLUSTER) if one.name == name]
change_on_import(mistake.module, mistake.change())
from conformance.base import replay_file, replay_verdict
from refmq.verify.oracles.base import Finding
print(*{violation.invariant for violation in replay_file(path)})
"""


@pytest.fixture(scope="module")
def saved_counterexamples(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("counterexamples")
    arguments = ["check", *SEEN_TO_BREAK, "--counterexamples", str(folder), "--spec-dir", str(SPEC)]
    result = CliRunner().invoke(command, arguments)
    assert result.exception is None, result.output
    return folder


@pytest.mark.jdk
@needs_tlc
@pytest.mark.parametrize("name", SEEN_TO_BREAK)
def test_a_replay_that_is_said_to_break_does(saved_counterexamples: Path, name: str) -> None:
    path = saved_counterexamples / f"{name.replace('/', '.')}.json"
    assert replay_file(path) == []
    mistake = SEEN_TO_BREAK[name]
    assert replay_verdict(path, []) == f"holds  {path.name} (and breaks with the mistake {mistake})"
    done = subprocess.run(
        [sys.executable, "-c", BREAK, str(path), mistake], cwd=SPEC.parent, capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, done.stderr
    assert configuration(name).expect.name in done.stdout.split()


def test_a_replay_that_nobody_has_seen_break_does_not_hold(tmp_path: Path) -> None:
    path = tmp_path / "x.json"
    path.write_text('{"breaks_with": ""}')
    assert replay_verdict(path, []).startswith("ran    x.json: no promise broke, but")
    path.write_text("{}")
    assert replay_verdict(path, []) == "holds  x.json"
    assert replay_verdict(path, [Finding("AckedSurvives", "It is gone.")]) == "broken x.json"


@pytest.mark.jdk
@needs_tlc
def test_a_transaction_that_commits_twice_in_rocketmq_is_a_history_of_a_cluster(tmp_path: Path) -> None:
    path = counterexample("transaction_check_back/weak/committed_twice", tmp_path)
    saved = json.loads(path.read_text())
    assert saved["kind"] == "cluster"
    names = [type(step).__name__ for step in ClusterHistory.from_json(saved["history"]).steps]
    assert {"SendHalf", "AdvanceClock", "Pull"} <= set(names)
    assert replay_file(path) == []


def state(action: str, **variables: str) -> State:
    down = {"mode": '"down"', "cell": "(0 :> Zero)", "unit": "(q1 :> (0 :> Zero))", "seen": "{}", "wrote": "0"}
    return State(action, {**down, "sent": "0", **variables})


def test_each_action_of_the_store_has_its_step() -> None:
    up = '"serving"'
    written = "(0 :> [m |-> 1, q |-> q1, o |-> 0])"
    states = [
        state("Initial predicate"),
        state("StartStore", mode='"started"'),
        state("ProcessCrash"),
        state("StartStore", mode='"started"'),
        state("FinishRecovery", mode=up),
        state("AppendMessage", mode=up, cell=written, wrote="1", sent="1"),
        state("RollFile", mode=up, cell=written, wrote="2", sent="1"),
        state("FlushQueue", mode=up, cell=written, wrote="2", sent="1"),
        state("PowerLoss", sent="1"),
        state("RemoveQueues", sent="1"),
    ]
    saved = as_saved_history(configuration("store_recovery/mc/async_flush"), states)
    assert saved["left_out"] == []
    assert saved["history"] == {
        "setting": {"sync_flush": False, "queue_file_units": 2},
        "steps": [
            {"step": "StartStore", "deaths": [["process", 1, []]]},
            {"step": "StartStore"},
            {"step": "AppendMessage", "topic": 0, "keys": [1], "leave": 16},
            {"step": "Maintain"},
            {"step": "PowerLoss", "harsh": True},
            {"step": "LoseDerived", "what": "queues"},
            {"step": "ReadEverything"},
        ],
    }


def test_a_counterexample_that_fits_no_history_says_so_in_one_line(tmp_path: Path) -> None:
    saved = as_saved_history(configuration("rebalance/weak/two_owners_while_views_differ"), [])
    path = tmp_path / "rebalance.json"
    path.write_text(json.dumps(saved))
    with pytest.raises(UsageError, match=r"cannot be replayed: its steps are decisions of consumers"):
        replay_file(path)
    path.write_text('{"kind": "store"}')
    with pytest.raises(UsageError, match="is not a saved history"):
        replay_file(path)
