from __future__ import annotations

from collections.abc import Callable, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from refmq.client.allocate import allocate_averagely, allocate_averagely_by_circle
from refmq.errors import UsageError

Strategy = Callable[[str, Sequence[str], Sequence[str]], list[str]]

QUEUES = [f"{broker}{number}" for broker in "ab" for number in range(4)]
IDS = ["10.0.0.1@100#1", "10.0.0.2@200#2", "10.0.0.3@300#3"]


def parts(strategy: Strategy, queues: Sequence[str], ids: Sequence[str]) -> list[str]:
    return [" ".join(strategy(client_id, queues, ids)) for client_id in ids]


def test_average_gives_neighbours() -> None:
    assert parts(allocate_averagely, QUEUES, IDS) == ["a0 a1 a2", "a3 b0 b1", "b2 b3"]


def test_circle_deals_out() -> None:
    assert parts(allocate_averagely_by_circle, QUEUES, IDS) == ["a0 a3 b2", "a1 b0 b3", "a2 b1"]


def test_members_without_a_queue_get_nothing() -> None:
    ids = [f"c{number}" for number in range(10)]
    assert parts(allocate_averagely, QUEUES, ids) == [*QUEUES, "", ""]
    assert parts(allocate_averagely_by_circle, QUEUES, ids) == [*QUEUES, "", ""]


def test_an_id_that_occurs_twice_leaves_queues_to_nobody() -> None:
    assert parts(allocate_averagely, QUEUES, ["A", "A", "B"]) == ["a0 a1 a2", "a0 a1 a2", "b2 b3"]


@pytest.mark.parametrize("strategy", [allocate_averagely, allocate_averagely_by_circle])
def test_who_is_no_member_gets_nothing(strategy: Strategy) -> None:
    assert strategy("stranger", QUEUES, IDS) == []


@pytest.mark.parametrize("strategy", [allocate_averagely, allocate_averagely_by_circle])
@pytest.mark.parametrize("arguments", [("", QUEUES, IDS), ("x", [], IDS), ("x", QUEUES, [])])
def test_an_empty_argument_is_refused(strategy: Strategy, arguments: tuple[str, list[str], list[str]]) -> None:
    with pytest.raises(UsageError):
        strategy(*arguments)


@pytest.mark.parametrize("strategy", [allocate_averagely, allocate_averagely_by_circle])
@given(queue_count=st.integers(1, 200), member_count=st.integers(1, 50))
def test_the_parts_are_a_fair_partition(strategy: Strategy, queue_count: int, member_count: int) -> None:
    queues = [f"{number:04}" for number in range(queue_count)]
    ids = [f"{number:04}" for number in range(member_count)]
    shares = [strategy(client_id, queues, ids) for client_id in ids]
    assert sorted(queue for share in shares for queue in share) == queues
    assert max(map(len, shares)) - min(map(len, shares)) <= 1
