"""Mistakes put into broker and store on purpose, one of each kind: a few seconds of histories must find them.

`python -m conformance.mutants seeded --kind cluster` tries all of them, which takes half an hour.
"""

from __future__ import annotations

import pytest

from conformance.cluster import history as h
from conformance.cluster.runner import run_history
from conformance.mutants.__main__ import SEEDED_OF, run_trial, try_seeded

SECONDS = 40.0
"""Of the processor. On an idle machine each is found within five."""

QUICKLY_FOUND = {
    "ack-before-flush": {"DurableAck", "AckedSurvives", "NodeCoherent"},
    "never-released": {"HeldPullWakes", "AnsweredWhenCalm", "DelayedDelivered"},
    "flush-timeout-is-ok": {"DurableAck", "NodeCoherent"},
    "wake-off-by-one": {"HeldPullWakes", "AnsweredWhenCalm"},
    "commit-other-queue": {"SidesAgree", "CommittedOffsetKept", "CommittedOffsetNeverAhead"},
    "commit-told-twice": {"SidesAgree"},
    "rollback-commits": {"RolledBackNeverVisible", "NodeCoherent", "SidesAgree", "NoHalfVisible"},
    "immunity-ignored": {"NeverAskedEarly"},
    "op-progress-stays": {"NodeCoherent"},
    "lock-no-grace": {"OneOwnerPerQueue"},
    "copy-counts-twice": {"NoInvention"},
    "damage-ends-the-work": {"EveryHalfDecided", "DelayedDelivered"},
    "damaged-fields-unanswered": {"AnsweredWhenCalm"},
    "answered-twice": {"OneAnswerPerRequest"},
    "oneway-answered": {"OneAnswerPerRequest"},
    "setting-not-applied": {"SettingsFollow"},
    "groups-not-saved": {"TablesSaved"},
    "only-one-topic-registered": {"RouteKnown"},
    "properties-in-ascii": {"NoInvention"},
    "any-group-decides": {"SidesAgree", "NoHalfVisible", "RolledBackNeverVisible", "NodeCoherent"},
    "final-points-elsewhere": {"NoInvention"},
    "delete-leaves-route": {"ArrangedIsSo"},
    "pump-forgotten": {"AnsweredWhenCalm", "HeldPullWakes"},
}
"""Mistake -> the promises of which one is found broken."""


@pytest.mark.slow
@pytest.mark.parametrize("name", QUICKLY_FOUND)
def test_a_mistake_is_found(name: str) -> None:
    (mutant,) = (each for each in SEEDED_OF["cluster"] if each.name == name)
    outcome = try_seeded(mutant, SECONDS, "cluster")
    assert outcome["caught"], outcome
    assert str(outcome["by"]).partition(":")[0] in QUICKLY_FOUND[name], outcome


def test_a_change_that_means_nothing_is_not_found() -> None:
    change = {"module": "refmq.plane.puts", "old": "effects += more", "new": "effects += (more)"}
    outcome = run_trial({**change, "function": "give_up"}, 2.0, 0, [], "cluster")
    assert not outcome["caught"], outcome


def test_without_a_mistake_nothing_is_found() -> None:
    history = h.History(h.Setting(seed=1), (h.Send(count=3), h.AdvanceClock(100), h.Pull(), h.PowerLoss()))
    assert run_history(history).violations == []
