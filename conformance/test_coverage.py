"""What happened is counted in words, and what never happened is named."""

from __future__ import annotations

from collections import Counter

import pytest

from conformance.base import KINDS
from conformance.coverage import CANNOT, cells_of, empty_cells, wanted
from conformance.store import history as h
from conformance.store.runner import run_history
from refmq.protocol.codes import RequestCode
from refmq.trace.record import Outcome
from refmq.verify.oracles import Line


def step(action: str, node: str = "b") -> Line:
    return Line(node, action, Outcome.STEP, 0, 0, "", "", -1, 0, 0, 0, 0)


def fault(action: str, node: str = "b") -> Line:
    return step(action, node)._replace(actor=node)


def test_a_fault_is_counted_by_the_steps_of_its_node_before_and_after_it() -> None:
    lines = [step("AppendMessage"), step("FlushLog", "other"), fault("PowerLoss"), step("StartStore")]
    assert cells_of(lines, {RequestCode.SEND_MESSAGE: 2}) == {
        "request SEND_MESSAGE": 2,
        "step AppendMessage": 1,
        "step FlushLog": 1,
        "step StartStore": 1,
        "fault PowerLoss": 1,
        "fault PowerLoss by AppendMessage": 1,
        "fault PowerLoss by StartStore": 1,
    }


def test_an_operation_is_counted_by_its_outcome() -> None:
    lines = [step("Send")._replace(outcome=Outcome.UNKNOWN, actor="g@c")]
    assert cells_of(lines, {}) == {"operation Send unknown": 1}


@pytest.mark.parametrize("kind", KINDS)
def test_what_never_happened_is_named_unless_nothing_can_make_it_happen(kind: str) -> None:
    every = list(wanted(kind))
    assert len(every) == len(set(every))
    assert set(CANNOT[kind]) <= set(every), "a reason for what nobody asks for"
    assert set(empty_cells(kind, Counter())) == set(every) - set(CANNOT[kind])
    assert empty_cells(kind, Counter(every)) == []


def test_a_history_of_a_store_is_counted_when_somebody_asks_for_it() -> None:
    history = h.History(steps=(h.AppendMessage(), h.FlushLog(), h.PowerLoss(), h.StartStore()))
    assert run_history(history).cells() == {}
    cells = run_history(history, counted=True).cells()
    assert cells["take AppendMessage"] == cells["step AppendMessage"] == cells["fault PowerLoss"] == 1
    assert cells["fault PowerLoss by StartStore"] == 1
