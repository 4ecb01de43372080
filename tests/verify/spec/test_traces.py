"""Traces: how their events become a module, and hand-made ones that TLC accepts or refuses."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from refmq.errors import UsageError
from refmq.verify.spec.check import RunOptions
from refmq.verify.spec.tlc import Tlc
from refmq.verify.spec.traces import (
    read_event,
    read_events,
    shrink_numbers,
    trace_module,
    validate_events,
    validate_trace,
)
from tests.verify.spec.helpers import SPEC
from tests.verify.spec.recorded_store import store_events

TRACES = {"HaReplication": SPEC / "ha_replication" / "traces", "Rebalance": SPEC / "rebalance" / "traces"}
OPTIONS = RunOptions(timeout_s=120)


def test_a_trace_becomes_a_module_with_small_numbers(tmp_path: Path) -> None:
    path = tmp_path / "t.jsonl"
    path.write_text(
        '{"action": "AppendMessage", "subject": "T", "queue_id": 0, "a": 0, "b": 0, "c": 9000000000000, "d": 91}\n\n'
        '{"step": "WriteCheckpoint", "log_ms": 1700000000005, "queue_ms": 1700000000001, "index_ms": 0}\n'
        '{"action": "AckPut", "subject": "T", "queue_id": 0, "message": 9000000000000}\n'
    )
    events = read_events(path, "StoreRecovery")
    small = shrink_numbers(events)
    assert (small[0]["message"], small[0]["size_bytes"], small[2]["message"]) == (1, 91, 1)
    assert (small[1]["log_ms"], small[1]["queue_ms"], small[1]["index_ms"]) == (2, 1, 0)
    text = trace_module("StoreRecovery", events)
    assert '[action |-> "AppendMessage", actor |-> "", subject |-> "T", queue_id |-> 0, physical_offset |-> 0' in text
    assert "EXTENDS TraceStoreRecovery" in text


@pytest.mark.parametrize(
    ("line", "complaint"),
    [
        ("{", "t.jsonl:1: not JSON"),
        ("[]", "an event is a JSON object"),
        ('{"action": "Dance"}', "StoreRecovery has no action 'Dance'"),
        ('{"action": "FlushLog", "a": "x"}', "flushed_to is 'x', not a whole number"),
    ],
)
def test_a_line_that_is_not_an_event_is_named(tmp_path: Path, line: str, complaint: str) -> None:
    path = tmp_path / "t.jsonl"
    path.write_text(line + "\n")
    with pytest.raises(UsageError, match=complaint):
        read_events(path, "StoreRecovery")


def test_what_a_node_recorded_is_not_the_trace_of_one_group(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="refmq trace check"):
        read_events(tmp_path / "broker-a-1-00000.trace", "Rebalance")


def test_numbers_beyond_32_bits_are_refused() -> None:
    with pytest.raises(UsageError, match="more than TLC's 32 bits"):
        shrink_numbers([{"action": "FlushLog", "flushed_to": 2**40}])


@pytest.mark.jdk
@pytest.mark.parametrize("name", TRACES)
def test_a_good_trace_is_accepted_in_one_line_of_states(tlc: Tlc, name: str) -> None:
    path = TRACES[name] / "good.jsonl"
    answer = validate_trace(tlc, SPEC, name, path, OPTIONS)
    assert answer.accepted, answer.reason
    # Rebalance tries both orders of its two clients; one of them ends early.
    assert answer.states <= (answer.events + 1) * (2 if name == "Rebalance" else 1)


@pytest.mark.jdk
@pytest.mark.parametrize(
    ("name", "what", "failed_at"),
    [
        ("HaReplication", "ack-before-slave", 11),
        ("HaReplication", "wrong-length", 7),
        ("Rebalance", "two-holders", 16),
        ("Rebalance", "commit-ahead", 12),
    ],
)
def test_a_bad_trace_is_refused_at_the_event_that_is_wrong(tlc: Tlc, name: str, what: str, failed_at: int) -> None:
    path = TRACES[name] / f"{what}.jsonl"
    answer = validate_trace(tlc, SPEC, name, path, OPTIONS)
    assert not answer.accepted
    assert answer.failed_at == failed_at
    assert json.loads(path.read_text().splitlines()[failed_at - 1])["action"] in answer.reason


@pytest.mark.jdk
@pytest.mark.parametrize("dropped", [1, 4, 30])
def test_a_trace_with_a_missing_event_is_refused(tlc: Tlc, dropped: int) -> None:
    events = read_events(TRACES["HaReplication"] / "good.jsonl", "HaReplication")
    assert not validate_events(tlc, SPEC, "HaReplication", events[:dropped] + events[dropped + 1 :], OPTIONS).accepted


CHEATS = {
    "StoreRecovery": (
        "StopStore /\\ UNCHANGED places",
        """mode' = "down" /\\ UNCHANGED <<logVars, wrote, flushed, queueVars, ends, dispatched, indexVars, ckpt, abort,
           clean, valid, cut, clientVars, waiting, goal, faults>> /\\ UNCHANGED places""",
        "StepsOfTheStore",
    ),
    "Rebalance": (
        "(Heartbeat(p, 1) \\/ (p \\in members[1] /\\ UNCHANGED vars))",
        """(members' = [members EXCEPT ![1] = Process]
           /\\ UNCHANGED <<clientVars, lockVars, offsetVars, histVars>>)""",
        "StepsOfNext",
    ),
}
"""Protocol -> what is replaced in its trace module by a step that the specification does not have, and who notices."""


@pytest.mark.jdk
@pytest.mark.parametrize("name", CHEATS)
def test_a_step_of_the_trace_module_that_next_does_not_have_is_noticed(tlc: Tlc, name: str, tmp_path: Path) -> None:
    spec = tmp_path / "spec"
    shutil.copytree(SPEC, spec)
    honest, cheat, property_name = CHEATS[name]
    (module,) = spec.glob(f"*/Trace{name}.tla")
    text = module.read_text()
    assert text.count(honest) == 1
    module.write_text(text.replace(honest, cheat))
    events = (
        [read_event(event._asdict(), name) for event in list(store_events())[:27]]
        if name == "StoreRecovery"
        else read_events(TRACES[name] / "good.jsonl", name)
    )
    assert validate_events(tlc, SPEC, name, events, OPTIONS).accepted
    answer = validate_events(tlc, spec, name, events, OPTIONS)
    assert not answer.accepted
    assert property_name in answer.reason or "Action property" in answer.reason, answer.reason
