"""`refmq verify` from the command line: exit codes, reports, and what it says when it cannot judge."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from refmq.cli import main
from refmq.cli import verify as command
from refmq.tools import jdk
from refmq.verify.oracles import ORACLES
from refmq.verify.recordings import Recordings, find_recordings
from refmq.verify.spark import environment
from refmq.verify.synth.streams import SyntheticWriter, synthetic


@pytest.fixture
def good(tmp_path: Path) -> Path:
    SyntheticWriter(tmp_path / "good").write(synthetic(1_000))
    return tmp_path / "good"


@pytest.fixture
def bad(tmp_path: Path) -> Path:
    SyntheticWriter(tmp_path / "bad").write(synthetic(1_000, violations=1))
    return tmp_path / "bad"


def test_a_good_trace_is_judged_at_once(good: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["verify", str(good), "--flush", "sync", "--settled"]) == 0
    out = capsys.readouterr().out
    assert f"{len(ORACLES)} kept" in out and "judged by local" in out


def test_a_broken_promise_is_exit_code_3_and_in_every_report(
    bad: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    page, data = tmp_path / "page.html", tmp_path / "report.json"
    assert main(["verify", str(bad), "--engine", "local", "--json", str(data), "--html", str(page)]) == 3
    captured = capsys.readouterr()
    assert "BROKEN  AckedSurvives" in captured.out
    assert "promises (" in captured.err and "AckedSurvives" in captured.err
    broken = [each["promise"] for each in json.loads(data.read_text())["verdicts"] if each["status"] == "broken"]
    assert "AckedSurvives" in broken and len(broken) > 10
    assert "<svg" in page.read_text()


def test_a_torn_file_is_named_and_the_rest_is_judged(good: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (good / "x.trace").write_bytes(b"not a trace at all, but as long as the head of one would have to be, or so")
    path = next(path for path in sorted(good.iterdir()) if path.name.startswith("broker-0"))
    path.write_bytes(path.read_bytes()[:-70])
    assert main(["verify", str(good), "--engine", "local"]) == 0
    captured = capsys.readouterr()
    assert "x.trace" in captured.err and "torn tail" in captured.out
    assert "UNKNOWN  NodeCoherent" in captured.out


def test_auto_takes_spark_for_what_is_large_where_there_is_spark(
    good: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    recordings = find_recordings([good])
    assert command.chosen_engine(recordings, needs_spark=False) is command.EngineChoice.LOCAL
    monkeypatch.setattr(command, "LOCAL_BYTES_MAX", 1)
    monkeypatch.setattr(environment, "why_missing", lambda: "")
    assert command.chosen_engine(recordings, needs_spark=False) is command.EngineChoice.SPARK
    monkeypatch.setattr(environment, "why_missing", lambda: "There is no Java.")
    assert command.chosen_engine(recordings, needs_spark=False) is command.EngineChoice.LOCAL
    assert "There is no Java." in capsys.readouterr().err
    assert command.chosen_engine(Recordings(()), needs_spark=True) is command.EngineChoice.SPARK


def test_what_spark_lacks_is_said_in_a_line(
    good: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(environment, "missing_libraries", lambda: ["pyspark", "pyarrow"])
    assert main(["verify", str(good), "--engine", "spark"]) == 1
    (line,) = capsys.readouterr().err.splitlines()
    assert "pyspark and pyarrow" in line and "pip install" in line
    monkeypatch.setattr(environment, "missing_libraries", list)
    monkeypatch.setenv("PATH", "")
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setattr(jdk, "find_java", lambda: None)
    assert main(["verify", str(good), "--master", "local[1]"]) == 1
    assert "Java runtime of version 17" in capsys.readouterr().err


def test_settings_of_spark_are_names_and_values(good: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert command.settings_of(["spark.driver.memory=4g", "a=b=c"]) == {"spark.driver.memory": "4g", "a": "b=c"}
    assert main(["verify", str(good), "--conf", "nothing"]) == 2
    assert "NAME=VALUE" in capsys.readouterr().err
    assert main(["verify", str(good), str(good), "--follow"]) == 2


def test_ways_of_spark_are_not_for_the_oracles(good: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["verify", str(good), "--engine", "local", "--exact"]) == 2
    assert "--exact" in capsys.readouterr().err
    assert main(["verify", str(good / "nothing")]) == 2
