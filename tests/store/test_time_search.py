from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from refmq.model.ids import QueueOffset
from refmq.store import Boundary, ReferenceStore
from tests.store.helpers import at, message, new_disk, put, started


def store_with(times: list[int]) -> ReferenceStore:
    store = started(new_disk())
    for time in times:
        put(store, message(), at(time))
    store.dispatch(1000)
    return store


def search(store: ReferenceStore, time: int, boundary: Boundary) -> int:
    return store.offset_by_time("TopicA", 0, at(time), boundary)


@given(st.lists(st.integers(0, 50), max_size=30).map(sorted), st.integers(-2, 55))
def test_the_search_is_exact(times: list[int], time: int) -> None:
    store = store_with(times)
    count = len(times)
    assert search(store, time, Boundary.LOWER) == next((n for n in range(count) if times[n] >= time), count)
    assert search(store, time, Boundary.UPPER) == next((n for n in reversed(range(count)) if times[n] <= time), 0)
    nearest = search(store, time, Boundary.NEAREST)
    if times:
        assert abs(times[nearest] - time) == min(abs(each - time) for each in times)


@pytest.mark.parametrize(
    ("time", "lower", "upper", "nearest"),
    [
        (5, 0, 0, 0),
        (10, 0, 0, 0),
        (20, 1, 3, 1),
        (24, 4, 3, 3),
        (25, 4, 3, 3),
        (26, 4, 3, 4),
        (30, 4, 4, 4),
        (99, 5, 4, 4),
    ],
)
def test_equal_times_and_times_between(time: int, lower: int, upper: int, nearest: int) -> None:
    store = store_with([10, 20, 20, 20, 30])
    assert search(store, time, Boundary.LOWER) == lower
    assert search(store, time, Boundary.UPPER) == upper
    assert search(store, time, Boundary.NEAREST) == nearest


def test_a_queue_without_messages_answers_zero() -> None:
    assert search(store_with([]), 5, Boundary.LOWER) == 0


def test_messages_that_are_gone_are_older_than_every_time() -> None:
    store = store_with(list(range(0, 600, 10)))
    gone = store.parts.log.files
    gone.remove(0)
    queue = store.parts.queues["TopicA", 0]
    first = next(n for n in range(60) if store.store_time("TopicA", 0, QueueOffset(n)) >= 0)
    assert 0 < first < 60
    assert search(store, 0, Boundary.LOWER) == first
    assert search(store, 595, Boundary.LOWER) == 60
    queue.correct_min_offset(store.log_min)
    assert queue.min_offset == first
    assert search(store, 0, Boundary.UPPER) == first
    assert search(store, 0, Boundary.NEAREST) == first
