"""The C store does what the reference does: same answers, same trace, same effects in the same order. And the
comparison can fail."""

from __future__ import annotations

import pytest

import refmq_fast
from conformance.store import generate
from conformance.store import history as h
from conformance.store.differential import compare_seeds, difference, record
from conformance.store.history import History

pytestmark = [
    pytest.mark.skipif(not refmq_fast.AVAILABLE, reason=f"extension is off: {refmq_fast.REASON}"),
    pytest.mark.extension,
]

SEEDS = 300
SEEDS_AT_ONCE = 25
FIRST_SEED = 5_000  # others than those of test_machine


@pytest.mark.parametrize("first", range(FIRST_SEED, FIRST_SEED + SEEDS, SEEDS_AT_ONCE))
def test_the_c_store_does_what_the_reference_does(first: int) -> None:
    count, found = compare_seeds(first, SEEDS_AT_ONCE)
    assert found is None, found
    assert count.compared + count.refused == SEEDS_AT_ONCE
    assert count.compared >= SEEDS_AT_ONCE // 3, f"{count.refused} histories need what the C store does not have"


def test_a_recording_holds_effects_events_and_answers() -> None:
    steps = (h.AppendMessage(keys=(1,)), h.FlushLog(), h.DispatchMessage(), h.ServeMessage())
    recording = record(History(h.Setting(), steps), "fast")
    operations = {effect[0] for effects in recording.effects for effect in effects}
    assert {"create", "write", "flush", "rename", "flush directory", "make directory", "remove"} <= operations
    actions = {event[0] for events in recording.events for event in events}
    assert {"AppendMessage", "FlushLog", "DispatchMessage", "ServeMessage", "WriteCheckpoint", "StopStore"} <= actions


@pytest.mark.parametrize("seed", [2, 4, 5])
def test_another_order_of_effects_is_noticed(seed: int) -> None:
    """With tails in memory the same store writes its queue units later."""
    found = difference(generate.history(seed), second="fast-tails")
    assert found is not None
    assert "consumequeue" in found
