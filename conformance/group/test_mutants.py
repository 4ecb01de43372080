"""Mistakes put into the client on purpose, one of each kind: the first history or two must find them.

`python -m conformance.mutants seeded --kind group` tries all of them, which takes minutes.
"""

from __future__ import annotations

import pytest

from conformance.mutants.__main__ import run_trial, try_seeded
from conformance.mutants.group import SEEDED_GROUP

SECONDS = 40.0
QUICKLY_FOUND = ("pulled-is-committed", "pull-ends-on-error", "lock-not-asked", "retry-not-sent")


@pytest.mark.parametrize("name", QUICKLY_FOUND)
def test_a_mistake_is_found(name: str) -> None:
    (mutant,) = (each for each in SEEDED_GROUP if each.name == name)
    outcome = try_seeded(mutant, SECONDS, "group")
    assert outcome["caught"], outcome


def test_a_change_that_means_nothing_is_not_found() -> None:
    change = {"module": "refmq.client.rebalance", "old": "not member.locks or", "new": "(not member.locks) or"}
    outcome = run_trial({**change, "function": "trusts"}, 2.0, 0, [], "group")
    assert not outcome["caught"]
    assert outcome["tried"] > 0
