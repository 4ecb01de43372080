"""The budget that all connections of a server share."""

from __future__ import annotations

import pytest

from refmq.net.limits import Admission, Budget, Limits, within_descriptors


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


def test_servers_share_what_they_may_admit() -> None:
    admission = Admission(2)
    assert admission.enter()
    assert admission.enter()
    assert not admission.enter()
    admission.leave()
    assert admission.enter()


@pytest.mark.parametrize("descriptors", [1, 2, 10, 100, 1_000, 39_999, 40_000, 1_000_000])
def test_connections_never_need_more_descriptors_than_there_are(descriptors: int) -> None:
    given = within_descriptors(Limits(), descriptors)
    assert given.connections_max > 0
    assert given.python_connections_max > 0
    assert given.connections_max + given.python_connections_max <= max(2, descriptors)
    if descriptors >= 40_000:
        assert given == Limits()
