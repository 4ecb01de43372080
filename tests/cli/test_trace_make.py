"""`refmq trace synth` and `refmq trace export`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from refmq.cli import main
from refmq.verify.recordings import find_recordings
from refmq.verify.spark import environment


def test_a_trace_is_made_and_says_what_is_wrong_with_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = str(tmp_path / "made")
    assert main(["trace", "synth", folder, "--events", "2000", "--seed", "4", "--violations", "1", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert abs(told["events"] - 2_000) < 700
    assert len(told["plants"]) > 10 and "AckedSurvives" in told["breaks"]
    assert find_recordings([tmp_path / "made"]).file_count == 6
    assert main(["trace", "synth", folder, "--events", "2000"]) == 2
    assert "not empty" in capsys.readouterr().err
    assert main(["trace", "synth", str(tmp_path / "good"), "--events", "2000"]) == 0
    assert "6 files" in capsys.readouterr().out


def test_a_trace_becomes_parquet_that_others_read(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    duckdb = pytest.importorskip("duckdb")
    main(["trace", "synth", str(tmp_path / "made"), "--events", "3000"])
    assert main(["trace", "export", str(tmp_path / "made"), str(tmp_path / "parquet")]) == 0
    events = int(capsys.readouterr().out.splitlines()[-1].split()[0])
    files = f"{tmp_path}/parquet/*/*.parquet"
    query = f"SELECT count(*), count(DISTINCT node), sum(CAST(action = 'AckPut' AS INT)) FROM '{files}'"
    ((count, nodes, acked),) = duckdb.sql(query).fetchall()
    assert (count, nodes) == (events, 6) and acked > 100
    ((first, last),) = duckdb.sql(f"SELECT min(sequence), max(b) FROM '{files}' WHERE action = 'Send'").fetchall()
    assert first == 0 and last > 0


def test_what_parquet_needs_is_said_in_a_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(environment, "missing_libraries", lambda: ["pyarrow"])
    assert main(["trace", "export", str(tmp_path), str(tmp_path / "x")]) == 1
    assert "pyarrow" in capsys.readouterr().err
