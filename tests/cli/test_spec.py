"""The runner with TLC itself, on a toy that checks in a second."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path

import pytest
from click.testing import CliRunner

from refmq.cli.spec import command
from refmq.errors import CheckFound, MissingTool, UsageError
from refmq.tools.jdk import find_java
from refmq.tools.tlc import find_tlc_jar
from refmq.verify.spec.tlc import Outcome, find_tlc, run_tlc
from tests.verify.spec.helpers import TOY

needs_java = pytest.mark.skipif(find_java() is None or find_tlc_jar() is None, reason="needs Java and TLC")


def spec(*arguments: str, folder: Path = TOY) -> tuple[str, BaseException | None]:
    result = CliRunner().invoke(command, [*arguments, "--spec-dir", str(folder)])
    return result.output, result.exception


@pytest.mark.jdk
@needs_java
def test_each_configuration_of_the_toy_ends_as_it_expects(tmp_path: Path) -> None:
    output, error = spec("check", "--json", "--counterexamples", str(tmp_path))
    assert error is None
    by_name = {row["configuration"]: row for row in json.loads(output)}
    assert by_name["turnstile/mc/every_promise"]["distinct_states"] == 8
    assert by_name["turnstile/mc/every_promise"]["coverage"]["WalkIn"] > 0
    saved = json.loads((tmp_path / "turnstile.mc.free_entry.json").read_text())
    assert [step["step"] for step in saved["steps"]] == ["Init", "WalkIn"]
    assert saved["steps"][1]["changes"] == {"inside": 1, "log": ["in"]}
    lazy = json.loads((tmp_path / "turnstile.mc.needs_fairness.json").read_text())
    assert lazy["loop_to"] == len(lazy["steps"])
    assert not list(TOY.rglob("states")), "TLC left something in the source tree"


@pytest.mark.jdk
@needs_java
def test_an_expectation_that_is_not_met_is_a_finding(tmp_path: Path) -> None:
    shutil.copytree(TOY, tmp_path, dirs_exist_ok=True)
    table = tmp_path / "turnstile" / "mc" / "configurations.toml"
    table.write_text(table.read_text().replace("Strict = FALSE", "Strict = TRUE"))
    output, error = spec("check", "free_entry", folder=tmp_path)
    assert isinstance(error, CheckFound)
    assert "expected violation NobodyForFree, found ok" in str(error)
    assert "FAILED" in output


@pytest.mark.jdk
@needs_java
def test_a_module_that_does_not_parse_is_reported(tmp_path: Path) -> None:
    shutil.copytree(TOY, tmp_path, dirs_exist_ok=True)
    spec_file = tmp_path / "turnstile" / "Turnstile.tla"
    spec_file.write_text(spec_file.read_text().replace("inside <= paid", "inside <= "))
    _, error = spec("check", "free_entry", folder=tmp_path)
    assert isinstance(error, CheckFound)
    assert "TLC could not check it" in str(error)


@pytest.mark.jdk
@needs_java
def test_mutants_are_killed_or_need_a_reason(tmp_path: Path) -> None:
    shutil.copytree(TOY, tmp_path, dirs_exist_ok=True)
    output, error = spec("mutate", "Turnstile", "--only", "WalkIn", "--kind", "drop", folder=tmp_path)
    assert isinstance(error, CheckFound)
    assert "1 survivors have no reason" in str(error)
    assert "survived  WalkIn: drop `inside < Coins`" in output
    assert "1 of 2 mutants killed" in output
    survivors = tmp_path / "turnstile" / "judges" / "Turnstile.survivors.toml"
    survivors.parent.mkdir()
    survivors.write_text(
        '[[survivor]]\naction = "WalkIn"\nkind = "drop"\ntext = "inside < Coins"\nreason = "paid <= Coins implies it"\n'
    )
    output, error = spec("mutate", "Turnstile", "--only", "WalkIn", "--kind", "drop", folder=tmp_path)
    assert error is None
    assert "paid <= Coins implies it" in output


@pytest.mark.jdk
@needs_java
def test_verdicts_are_kept_until_what_they_depend_on_changes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "spec"
    shutil.copytree(TOY, folder)
    mutate = ("mutate", "Turnstile", "--only", "InsertCoin", "--kind", "swap")
    first, _ = spec(*mutate, folder=folder)
    kept = tmp_path / "build" / "mutants" / "Turnstile.jsonl"
    count = len(kept.read_text().splitlines())
    assert count >= 2
    with kept.open("a") as file:
        file.write('{"key": "cut off')  # what a run leaves that was killed while it wrote
    started: list[str] = []

    def count_run(tlc: object, module: Path, cfg: str, **options: object) -> Outcome:
        started.append(cfg)
        return run_tlc(tlc, module, cfg, **options)  # type: ignore[arg-type]  # handed on as they came

    monkeypatch.setattr("refmq.verify.spec.judging.run_tlc", count_run)
    again, _ = spec(*mutate, folder=folder)
    assert (again, started) == (first, [])
    table = folder / "turnstile" / "mc" / "configurations.toml"
    table.write_text(table.read_text().replace("Nobody gets in", "No one gets in"))
    assert (spec(*mutate, folder=folder)[0], started) == (first, []), "no verdict depends on prose"
    base = folder / "turnstile" / "base.cfg"
    base.write_text(base.read_text().replace("Coins = 2", "Coins = 3"))
    third, _ = spec(*mutate, folder=folder)
    assert third == first
    assert started
    assert all("turnstile/mc/every_promise" in cfg for cfg in started)


@pytest.mark.jdk
@needs_java
def test_a_trace_is_followed_to_its_end_or_to_the_event_that_does_not_fit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        "refmq.verify.spec.traces.fields_of", lambda protocol: {"InsertCoin": ("paid_after",), "WalkIn": ()}
    )
    trace = tmp_path / "t.jsonl"
    coin, walk = '{"action": "InsertCoin", "a": %d}\n', '{"action": "WalkIn"}\n'
    trace.write_text(coin % 1 + walk + coin % 2 + walk)
    output, error = spec("trace", "Turnstile", str(trace), "--json")
    assert error is None
    assert json.loads(output) == {"accepted": True, "events": 4, "states": 5, "reason": "", "failed_at": None}
    trace.write_text(coin % 1 + walk + walk + coin % 2)
    output, error = spec("trace", "Turnstile", str(trace))
    assert isinstance(error, CheckFound)
    assert "event 3 of 4 is not possible in Turnstile: WalkIn" in str(error)
    trace.write_text(coin % 1 + walk + coin % 7)  # the state after the event is compared as well
    _, error = spec("trace", "Turnstile", str(trace))
    assert isinstance(error, CheckFound)
    assert "event 3 of 3" in str(error)


@pytest.mark.jdk
@needs_java
def test_a_walk_is_taken() -> None:
    output, error = spec("simulate", "--json")
    assert error is None
    assert json.loads(output)[0]["generated_states"] > 20


def test_missing_tools_and_wrong_settings_are_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TLA2TOOLS_JAR", str(tmp_path / "nothing.jar"))
    with pytest.raises(UsageError, match=r"TLA2TOOLS_JAR names .*nothing.jar, which is not a file"):
        find_tlc()
    monkeypatch.delenv("TLA2TOOLS_JAR")
    monkeypatch.setattr("refmq.verify.spec.tlc.find_tlc_jar", lambda: None)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(MissingTool):
        find_tlc()
    program = tmp_path / "tlc"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    assert find_tlc().main == (str(program),)
    assert os.environ["PATH"] == str(tmp_path)


def test_a_configuration_is_listed_shown_and_printed() -> None:
    listed, error = spec("list", "turnstile/mc", "--json")
    assert error is None
    data = json.loads(listed)
    assert data["protocols"] == {"Turnstile": ["InsertCoin", "WalkIn"]}
    names = ["turnstile/mc/every_promise", "turnstile/mc/free_entry", "turnstile/mc/needs_fairness"]
    assert [one["name"] for one in data["configurations"]] == names
    shown, _ = spec("show", "free_entry")
    assert "A turnstile that is not strict lets people in without a coin." in shown
    assert "violation NobodyForFree" in shown
    printed, _ = spec("cfg", "mc/free_entry")
    assert printed.startswith("\\* expect: violation NobodyForFree\n")
    assert "Strict = FALSE" in printed


@pytest.mark.jdk
@needs_java
def test_what_cfg_writes_is_enough_for_tlc(tmp_path: Path) -> None:
    _, error = spec("cfg", "free_entry", "--into", str(tmp_path))
    assert error is None
    assert sorted(path.name for path in tmp_path.iterdir()) == ["MCTurnstile.cfg", "MCTurnstile.tla", "Turnstile.tla"]
    text = (tmp_path / "MCTurnstile.cfg").read_text()
    outcome = run_tlc(find_tlc(), tmp_path / "MCTurnstile.tla", text, timeout_s=60)
    assert outcome.name == "NobodyForFree"


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (("show", "nothing"), "no configuration called nothing"),
        (("check", "nothing"), "no protocol, folder or configuration called nothing"),
        (("mutate", "Nothing"), "no protocol Nothing"),
    ],
)
def test_a_name_that_is_not_there_is_one_line(arguments: tuple[str, ...], complaint: str) -> None:
    _, error = spec(*arguments)
    assert isinstance(error, UsageError)
    assert complaint in str(error)


def test_the_end_of_a_name_must_say_which_one_is_meant(tmp_path: Path) -> None:
    shutil.copytree(TOY, tmp_path, dirs_exist_ok=True)
    table = tmp_path / "turnstile" / "mc" / "configurations.toml"
    (tmp_path / "turnstile" / "weak").mkdir()
    shutil.copy(table, tmp_path / "turnstile" / "weak")
    _, error = spec("show", "free_entry", folder=tmp_path)
    assert isinstance(error, UsageError)
    assert str(error) == "free_entry may be turnstile/mc/free_entry or turnstile/weak/free_entry"
    output, error = spec("show", "weak/free_entry", folder=tmp_path)
    assert error is None
    assert "turnstile/weak/free_entry" in output
