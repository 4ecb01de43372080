"""The specifications HaReplication and Rebalance: their names, and traces that they accept or refuse.

The configurations themselves are checked by `nox -s spec`; here are the hand-made traces of spec/traces/, good and bad.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from refmq.errors import MissingTool
from refmq.model import vocabulary
from refmq.verify.spec.actions import actions_of_next
from refmq.verify.spec.check import RunOptions
from refmq.verify.spec.tlc import Tlc, find_tlc
from refmq.verify.spec.traces import read_events, validate_events, validate_trace

SPEC = Path(__file__).resolve().parents[2] / "spec"
PROTOCOLS = {protocol.module: protocol for protocol in (vocabulary.HA_REPLICATION, vocabulary.REBALANCE)}
OPTIONS = RunOptions(heap="512m", timeout_s=120)


@pytest.fixture(scope="module")
def tlc() -> Tlc:
    try:
        return find_tlc()
    except MissingTool as error:
        pytest.skip(str(error))


@pytest.mark.parametrize("name", PROTOCOLS)
def test_the_actions_of_next_are_the_actions_of_the_vocabulary(name: str) -> None:
    in_next = actions_of_next((SPEC / f"{name}.tla").read_text())
    assert sorted(in_next) == sorted(action.name for action in PROTOCOLS[name].actions)


@pytest.mark.parametrize("name", PROTOCOLS)
def test_every_promise_of_the_vocabulary_is_defined(name: str) -> None:
    places = (SPEC / f"{name}.tla", SPEC / f"{name}Promises.tla")
    text = "".join(path.read_text() for path in places if path.is_file())
    missing = [
        one.name
        for one in PROTOCOLS[name].invariants
        if f"\n{one.name} ==" not in text and f"\n{one.name}  ==" not in text
    ]
    assert missing == []


@pytest.mark.parametrize("name", PROTOCOLS)
def test_every_promise_of_the_vocabulary_is_checked_somewhere(name: str) -> None:
    checked = set()
    for path in SPEC.glob(f"MC{name}*.cfg"):
        for line in path.read_text().splitlines():
            if line.startswith(("INVARIANT", "PROPERT")):
                checked.update(line.split()[1:])
    assert {one.name for one in PROTOCOLS[name].invariants} <= checked


@pytest.mark.jdk
@pytest.mark.parametrize("name", PROTOCOLS)
def test_a_good_trace_is_accepted_in_one_line_of_states(tlc: Tlc, name: str) -> None:
    path = SPEC / "traces" / f"{name}.good.jsonl"
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
    answer = validate_trace(tlc, SPEC, name, SPEC / "traces" / f"{name}.{what}.jsonl", OPTIONS)
    assert not answer.accepted
    assert answer.failed_at == failed_at
    assert (
        json.loads((SPEC / "traces" / f"{name}.{what}.jsonl").read_text().splitlines()[failed_at - 1])["action"]
        in answer.reason
    )


@pytest.mark.jdk
@pytest.mark.parametrize("dropped", [1, 4, 30])
def test_a_trace_with_a_missing_event_is_refused(tlc: Tlc, dropped: int) -> None:
    events = read_events(SPEC / "traces" / "HaReplication.good.jsonl", "HaReplication")
    assert not validate_events(tlc, SPEC, "HaReplication", events[:dropped] + events[dropped + 1 :], OPTIONS).accepted
