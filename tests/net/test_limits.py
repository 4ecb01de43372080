"""The budget that all connections of a server share."""

from __future__ import annotations

from refmq.net.limits import Budget


def test_a_budget_counts_what_is_held_now() -> None:
    class Holder:
        given_up = False

        def give_up(self, reason: str) -> None:
            self.given_up = True

    budget, small, large = Budget(100), Holder(), Holder()
    budget.hold(small, 40)
    budget.hold(large, 60)
    budget.hold(small, 10)
    budget.hold(large, 90)
    assert (budget.total, small.given_up, large.given_up) == (100, False, False)
    budget.hold(small, 11)
    assert (budget.total, small.given_up, large.given_up) == (11, False, True)
