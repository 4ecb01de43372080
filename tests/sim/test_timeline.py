"""What happened in a run, and its digest."""

from __future__ import annotations

import pytest

from refmq.sim import timeline
from refmq.sim.timeline import Timeline


def told(*notes: tuple[float, str, str]) -> Timeline:
    line = Timeline()
    for at_s, node, what in notes:
        line.note(at_s, node, what)
    return line


def test_equal_runs_have_equal_digests_and_others_do_not() -> None:
    first = told((0.0, "a", "start"), (1.0, "b", "crash"))
    assert first.digest == told((0.0, "a", "start"), (1.0, "b", "crash")).digest
    assert first.digest != told((1.0, "b", "crash"), (0.0, "a", "start")).digest
    assert first.digest != told((0.0, "a", "start")).digest


def test_old_entries_are_dropped_and_stay_in_the_digest(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(timeline, "ENTRIES_KEPT_MAX", 1)
    line = told((0.0, "a", "start"), (1.0, "b", "crash"))
    assert [entry.what for entry in line.entries] == ["crash"]
    assert line.count == 2
    assert line.digest != told((1.0, "b", "crash")).digest


def test_the_lives_of_a_node_are_one_line() -> None:
    line = told((0.0, "a", "start"), (1.0, "b", "start"), (2.0, "a#2", "start"))
    assert [entry.at_s for entry in line.of("a")] == [0.0, 2.0]
    assert line.per_node().count("---") == 2
