"""What a consumer holds of one queue."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from refmq.client import process_queue
from refmq.client.process_queue import CacheLimits, ProcessQueue, is_full
from refmq.errors import WireError


def test_the_offset_to_commit_is_the_first_that_is_not_finished() -> None:
    queue = process_queue.put_pulled(ProcessQueue(1), [(n, 10) for n in range(1, 6)], 6)
    for offset in range(1, 6):
        queue = process_queue.start(queue, offset)
    reached = []
    for offset in (1, 3, 2, 4, 5):
        queue = process_queue.finish(queue, offset, success=True)
        reached.append(queue.memory)
    assert reached == [2, 2, 4, 5, 6]
    assert queue.size_bytes == 0


def test_what_filters_leave_out_counts_as_finished() -> None:
    queue = process_queue.put_pulled(ProcessQueue(0, memory=0), [], 7)
    assert queue.memory == 7
    queue = process_queue.put_pulled(queue, [(9, 1)], 12)
    assert queue.memory == 7
    queue = process_queue.finish(process_queue.start(queue, 9), 9, success=True)
    assert queue.memory == 12


def test_a_full_cache_stops_the_pulls() -> None:
    limits = CacheLimits(messages_max=3, bytes_max=100, span_max=10)
    queue = process_queue.put_pulled(ProcessQueue(0), [(0, 1), (1, 1)], 2)
    assert not is_full(queue, limits)
    assert is_full(process_queue.put_pulled(queue, [(2, 1)], 3), limits)
    assert is_full(process_queue.put_pulled(queue, [(2, 98)], 3), limits)
    assert is_full(process_queue.put_pulled(queue, [], 10), limits)


@given(st.integers(0, 5), st.integers(0, 12), st.lists(st.integers(-1, 12), max_size=5))
def test_an_answer_is_refused_or_can_be_put(begin: int, end: int, offsets: list[int]) -> None:
    """What a broker says never reaches an assertion, and what could be put is not refused."""
    fits = offsets == sorted(set(offsets)) and all(begin <= offset < end for offset in offsets)
    if not fits:
        with pytest.raises(WireError, match="queue offset"):
            process_queue.check_pulled(begin, end, offsets)
        return
    process_queue.check_pulled(begin, end, offsets)
    if end >= begin:
        queue = process_queue.put_pulled(ProcessQueue(begin), [(offset, 1) for offset in offsets], end)
        assert sorted(queue.cached) == offsets
