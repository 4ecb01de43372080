"""Queues are ordered, equal and hashed by what they say; addresses have four or sixteen bytes."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from refmq.model.ids import HostAddress, MessageQueue

few = st.sampled_from(["a", "ab", "%RETRY%g"])
queues = st.builds(MessageQueue, few, few, st.sampled_from([-1, 0, 9, 10]))


@settings(max_examples=300)
@given(queues, queues)
def test_queues_are_compared_by_topic_broker_and_number(one: MessageQueue, other: MessageQueue) -> None:
    """The order of allocation, which all clients of a group must agree on; the number is one: 9 stands before 10."""
    keys = [(queue.topic, queue.broker, queue.queue_id) for queue in (one, other)]
    assert (one < other) == (keys[0] < keys[1])
    assert (one == other) == (keys[0] == keys[1])
    if one == other:
        assert hash(one) == hash(other)
        assert len({one, other}) == 1


def test_a_queue_equals_nothing_else() -> None:
    queue = MessageQueue("t", "b", 0)
    assert queue != ("t", "b", 0)
    assert queue.__eq__("t") is NotImplemented


@pytest.mark.parametrize("size", range(20))
def test_an_address_is_of_one_of_two_kinds(size: int) -> None:
    if size in (4, 16):
        assert HostAddress(bytes(size), 1).is_ipv6 == (size == 16)
    else:
        with pytest.raises(AssertionError, match="4 or 16 bytes"):
            HostAddress(bytes(size), 1)
