"""An outcome is accepted only when it is the expected one."""

from __future__ import annotations

from refmq.verify.spec.catalogue import Expectation
from refmq.verify.spec.check import judge
from refmq.verify.spec.tlc import Found, Outcome
from tests.verify.spec.helpers import expecting


def test_only_the_expected_end_is_accepted() -> None:
    safe = Outcome(Found.INVARIANT, "Safe")
    assert judge(expecting(Expectation("violation", "Safe")), safe).ok
    assert judge(expecting(Expectation("ok")), Outcome()).ok
    assert judge(expecting(Expectation("violation", "Lives", True)), Outcome(Found.TEMPORAL)).ok
    assert judge(expecting(Expectation("deadlock")), Outcome(Found.DEADLOCK)).ok
    for expect, outcome in [
        (Expectation("ok"), safe),
        (Expectation("violation", "Safe"), Outcome()),
        (Expectation("violation", "Safe"), Outcome(Found.INVARIANT, "TypeOK")),
        (Expectation("violation", "Safe"), Outcome(Found.DEADLOCK)),
        (Expectation("violation", "Lives", True), safe),
        (Expectation("ok"), Outcome(Found.TIMEOUT)),
        (Expectation("ok"), Outcome(Found.ERROR)),
        (Expectation("violation", "Safe"), Outcome(Found.ERROR)),
    ]:
        verdict = judge(expecting(expect), outcome)
        assert not verdict.ok
        assert verdict.reason


def test_an_action_that_is_never_taken_is_found() -> None:
    covering = expecting(Expectation("ok"), covers=True)
    assert judge(covering, Outcome(coverage={"InsertCoin": 1, "WalkIn": 2})).ok
    missing = judge(covering, Outcome(coverage={"InsertCoin": 1, "WalkIn": 0}))
    assert (missing.ok, missing.reason) == (False, "never taken: WalkIn")
    spared = expecting(Expectation("ok"), covers=True, covers_except=frozenset({"WalkIn"}))
    assert judge(spared, Outcome(coverage={"InsertCoin": 1})).ok
