from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from refmq.cli import main
from refmq.cli.trace import count_entries
from refmq.model.step import Event
from refmq.trace.reader import TraceReader, read_file, trace_files
from refmq.trace.record import Dropped, Encoder, Outcome, seal_block
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


def damage_middle(traces: Path) -> Path:
    """A file of three blocks, of which the second is damaged."""
    encoder = Encoder("broker-c", 0)
    parts = [encoder.begin_file(0)]
    for number in range(3):
        records = encoder.node_name() if number == 0 else b""
        parts.append(seal_block(records + encoder.event(Event("AckPut", "", "orders", 0, number), number), number, 0))
    parts[2] = parts[2][:-1] + b"x"
    parts.append(seal_block(encoder.drop(Dropped(5, 3, 3)), 3, 3))
    path = traces / "broker-c-0-00000.trace"
    path.write_bytes(b"".join(parts))
    return path


def test_what_surrounds_a_damaged_block_is_shown_and_the_damage_said(
    traces: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = damage_middle(traces)
    assert main(["trace", "ls", str(path), "--json"]) == 0
    (row,) = json.loads(capsys.readouterr().out)
    assert (row["events"], row["dropped"], len(row["damage"])) == (2, 5, 1)
    assert main(["trace", "cat", str(path)]) == 0
    output = capsys.readouterr()
    assert len(output.out.splitlines()) == 3
    assert output.out.endswith("broker-c -- 5 events are missing from number 3 on\n")
    assert output.err.startswith(f"refmq: {path}: damaged: bytes ")
    assert main(["trace", "stats", str(path)]) == 0
    assert "2 events in 0.000 s, 5 dropped, 1 damaged stretches" in capsys.readouterr().out
    assert main(["trace", "cat", str(traces), "--node", "broker-a"]) == 0
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize("verb", ["ls", "cat", "stats"])
def test_bad_places_get_one_line(verb: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["trace", verb, str(tmp_path / "missing")]) == 2
    assert main(["trace", verb, str(tmp_path)]) == 2
    (tmp_path / "x.trace").write_bytes(b"not a trace" * 10)
    assert main(["trace", verb, str(tmp_path)]) == 1
    errors = capsys.readouterr().err.splitlines()
    assert len(errors) == 3
    assert "is not a trace file: magic" in errors[2]


@pytest.mark.parametrize("verb", ["ls", "cat", "stats"])
def test_a_file_that_is_no_trace_does_not_hide_the_others(
    verb: str, traces: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (traces / "a.trace").write_bytes(b"not a trace" * 10)
    assert main(["trace", verb, str(traces)]) == 1
    output = capsys.readouterr()
    assert "broker-b" in output.out
    assert len(output.err.splitlines()) == 1


def test_a_file_that_was_only_begun_is_no_failure(traces: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (traces / "a.trace").touch()
    assert main(["trace", "stats", str(traces)]) == 0
    output = capsys.readouterr()
    assert "4 events" in output.out
    assert "a.trace is empty: its node ended before it wrote anything" in output.err


def test_counting_columns_and_counting_events_give_the_same(tmp_path: Path) -> None:
    with TraceWriter(tmp_path, "n", file_bytes_max=1 << 20) as trace:
        for number in range(9_000):
            trace.record(Event(f"Action-{number % 700}", "client", a=number), Outcome(number % 6), number)
    (path,) = trace_files(tmp_path)
    with path.open("rb") as source:
        reader = TraceReader(source)
        counted: Counter[tuple[str, Outcome]] = Counter()
        quick = 0
        for block in reader.blocks():
            quick += reader.has_only_events(block)
            counted += count_entries(reader, block)[0]
    assert quick > 0
    expected = Counter((recorded.event.action, recorded.outcome) for recorded in read_file(path).events)
    assert counted == expected
    assert expected.total() == 9_000


@pytest.mark.parametrize("arguments", [["cat"], ["cat", "--json"]])
def test_a_reader_that_goes_away_and_an_interrupt_end_it_without_a_traceback(
    arguments: list[str], tmp_path: Path
) -> None:
    with TraceWriter(tmp_path, "n") as trace:
        for number in range(20_000):
            trace.record(Event("AckPut", "", "orders", 0, number))
    command = [sys.executable, "-m", "refmq", "trace", *arguments, str(tmp_path)]
    for end in ("close", "interrupt"):
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
            assert process.stdout is not None and process.stderr is not None
            assert b"AckPut" in process.stdout.readline()
            if end == "interrupt":
                process.send_signal(signal.SIGINT)
            process.stdout.close()
            errors = process.stderr.read().decode()
            process.wait(60)
        assert errors.strip() in ("", "refmq: interrupted")
        assert process.returncode in (1, 130)
