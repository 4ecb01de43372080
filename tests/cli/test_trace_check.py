"""`refmq trace check`: a recording is accepted, or the first event that does not fit is named."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from refmq.cli import main
from refmq.model.step import Event
from refmq.trace.memory import encode_trace
from refmq.trace.record import Outcome, Recorded
from tests.verify.spec.helpers import needs_tlc
from tests.verify.spec.recorded_store import store_events

pytestmark = [pytest.mark.jdk, needs_tlc]


def write(folder: Path, events: list[Event]) -> Path:
    recorded = [Recorded(event, number, number, Outcome.STEP, 0) for number, event in enumerate(events)]
    path = folder / "broker-a-1-00000.trace"
    path.write_bytes(encode_trace("broker-a", 1, recorded))
    return path


def test_a_recording_is_accepted(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write(tmp_path, list(store_events()))
    assert main(["trace", "check", str(tmp_path), "--flush", "sync"]) == 0
    shown = capsys.readouterr().out
    assert "StoreRecovery" in shown
    assert "accepted" in shown


def test_the_event_that_does_not_fit_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    events = list(store_events())
    at = next(at for at, event in enumerate(events) if event.action == "AppendMessage")
    events[at] = events[at]._replace(b=5)
    write(tmp_path, events)
    assert main(["trace", "check", str(tmp_path), "--json"]) == 3
    said = capsys.readouterr()
    (verdict,) = json.loads(said.out)
    assert (verdict["accepted"], verdict["failed_at"], verdict["protocol"]) == (False, at + 1, "StoreRecovery")
    assert "queue_offset=5" in said.err


def test_a_place_without_traces_is_a_usage_error(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["trace", "check", str(tmp_path)]) == 2
    assert "no trace files" in capsys.readouterr().err
