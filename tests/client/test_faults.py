"""Queue choice: round robin, other brokers after a failure, and slow brokers left alone."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from refmq.client.faults import Chooser, choose_queue, left_alone_ms, note_attempt
from refmq.model.ids import MessageQueue

QUEUES = [MessageQueue("T", broker, number) for broker in "ab" for number in range(2)]


@given(st.integers(0, 2**31))
def test_every_queue_has_its_turn(begin: int) -> None:
    chooser = Chooser(begin)
    chosen = []
    for _ in QUEUES:
        chooser, queue = choose_queue(chooser, QUEUES, None, 0)
        chosen.append(queue)
    assert sorted(chosen) == sorted(QUEUES)


@given(st.integers(0, 2**31), st.sampled_from("ab"))
def test_an_attempt_after_a_failure_goes_to_another_broker(begin: int, failed: str) -> None:
    _, queue = choose_queue(Chooser(begin), QUEUES, failed, 0)
    assert queue.broker != failed


def test_the_only_broker_is_tried_again() -> None:
    _, queue = choose_queue(Chooser(0), QUEUES[:2], "a", 0)
    assert queue.broker == "a"


@pytest.mark.parametrize(
    ("latency_ms", "expected"),
    [(0, 0), (100, 0), (549, 0), (550, 30_000), (1_000, 60_000), (2_999, 120_000), (3_000, 180_000), (30_000, 600_000)],
)
def test_a_broker_is_left_alone_the_longer_the_slower_it_was(latency_ms: int, expected: int) -> None:
    assert left_alone_ms(latency_ms) == expected


@given(st.integers(0, 1_000))
def test_a_broker_that_failed_is_not_used_until_its_time_is_over(begin: int) -> None:
    chooser = note_attempt(Chooser(begin, avoids_slow=True), "a", 5, 0, failed=True)
    for _ in range(4):
        chooser, queue = choose_queue(chooser, QUEUES, None, 599_999)
        assert queue.broker == "b"
    found = set()
    for _ in range(4):
        chooser, queue = choose_queue(chooser, QUEUES, None, 600_000)
        found.add(queue.broker)
    assert found == {"a", "b"}


def test_when_all_are_slow_the_better_ones_are_used() -> None:
    chooser = Chooser(0, avoids_slow=True)
    chooser = note_attempt(chooser, "a", 600, 0, failed=False)
    chooser = note_attempt(chooser, "b", 5, 0, failed=True)
    chooser, queue = choose_queue(chooser, QUEUES, None, 1)
    assert queue.broker == "a"
    assert note_attempt(Chooser(0), "a", 5_000, 0, failed=True) == Chooser(0), "nothing is noted when it is off"
