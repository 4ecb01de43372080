from __future__ import annotations

import json
from pathlib import Path

import pytest

from refmq.cli import main
from refmq.model.step import Event
from refmq.trace.reader import trace_files
from refmq.trace.record import Outcome
from refmq.trace.writer import TraceWriter


@pytest.fixture
def traces(tmp_path: Path) -> Path:
    for node in ("broker-a", "broker-b"):
        with TraceWriter(tmp_path, node, clock_ns=lambda: 1_700_000_000_123_456_789) as trace:
            trace.record(Event("AppendMessage", "", "orders", 3, 4096, 17, 99, 250))
            trace.record(Event("Send", "client@1", "orders", 3, 4096, 17, 99, 0), Outcome.OK, 5)
    return tmp_path


def test_ls_shows_every_file(traces: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["trace", "ls", str(traces), "--json"]) == 0
    rows = json.loads(capsys.readouterr().out)
    assert [(row["node"], row["events"], row["dropped"], row["damage"]) for row in rows] == [
        ("broker-a", 2, 0, []),
        ("broker-b", 2, 0, []),
    ]
    assert main(["trace", "ls", str(traces)]) == 0
    assert "broker-b" in capsys.readouterr().out


def test_cat_names_the_numbers_as_the_vocabulary_does(traces: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["trace", "cat", str(traces), "--node", "broker-a"]) == 0
    time = "2023-11-14T22:13:20.123456Z"
    lines = capsys.readouterr().out.splitlines()
    assert lines == [
        f"{time} broker-a AppendMessage on orders/3 physical_offset=4096 queue_offset=17 message=99 size_bytes=250",
        f"{time} broker-a Send ok#5 by client@1 on orders/3 physical_offset=4096 queue_offset=17 message=99 status=0",
    ]


def test_cat_filters_limits_and_speaks_json(traces: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["trace", "cat", str(traces), "--action", "Send", "--json"]) == 0
    objects = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [(o["node"], o["outcome"], o["fields"]["queue_offset"]) for o in objects] == [
        ("broker-a", "ok", 17),
        ("broker-b", "ok", 17),
    ]
    assert main(["trace", "cat", str(traces), "--limit", "3"]) == 0
    assert len(capsys.readouterr().out.splitlines()) == 3


def test_stats_counts(traces: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["trace", "stats", str(traces), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["events"] == 4
    assert {"node": "broker-b", "action": "Send", "outcome": "ok", "count": 1} in found["counts"]
    assert main(["trace", "stats", str(traces)]) == 0
    assert "4 events" in capsys.readouterr().out


def test_a_torn_tail_is_shown_and_what_precedes_it_is_read(traces: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = trace_files(traces)[0]
    path.write_bytes(path.read_bytes() + b"\x04" + bytes(20))
    assert main(["trace", "ls", str(path), "--json"]) == 0
    (row,) = json.loads(capsys.readouterr().out)
    assert row["events"] == 2
    assert row["damage"][0].startswith("torn tail")


@pytest.mark.parametrize("verb", ["ls", "cat", "stats"])
def test_bad_places_get_one_line(verb: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["trace", verb, str(tmp_path / "missing")]) == 2
    assert main(["trace", verb, str(tmp_path)]) == 2
    (tmp_path / "x.trace").write_bytes(b"not a trace" * 10)
    assert main(["trace", verb, str(tmp_path)]) == 1
    errors = capsys.readouterr().err.splitlines()
    assert len(errors) == 3
    assert "is not a trace file: magic" in errors[2]
