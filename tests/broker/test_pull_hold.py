"""Long polling by itself: which waiting pull a message wakes."""

from __future__ import annotations

import pytest

from refmq.broker.pull_hold import PullHold
from refmq.model.ids import PhysicalOffset, QueueOffset, TimestampMs
from refmq.protocol.codes import RequestCode
from refmq.protocol.command import request
from refmq.store.values import Dispatched, MatchAll, MessageFilter, QueueId

QUEUE = QueueId("T", 0)


def holding(queue_offset: int, message_filter: MessageFilter = MatchAll) -> PullHold:
    hold = PullHold()
    command = request(RequestCode.PULL_MESSAGE, {})
    assert hold.park(1, command, QUEUE, QueueOffset(queue_offset), TimestampMs(1000), message_filter)
    return hold


def arriving(queue_offset: int, tags_code: int = 0, queue_id: int = 0) -> Dispatched:
    offset, place, store_ms = QueueOffset(queue_offset), PhysicalOffset(0), TimestampMs(5)
    return Dispatched("T", queue_id, offset, place, 100, tags_code, store_ms, b"")


@pytest.mark.parametrize(("queue_offset", "wakes"), [(6, False), (7, True), (8, True)])
def test_a_pull_is_woken_by_what_it_has_not_seen(queue_offset: int, wakes: bool) -> None:
    hold = holding(7)
    assert bool(hold.arrived(arriving(queue_offset))) is wakes
    assert len(hold) == (not wakes)


def test_a_message_of_another_queue_wakes_nobody() -> None:
    assert holding(0).arrived(arriving(3, queue_id=1)) == ()


@pytest.mark.parametrize(
    ("tags_code", "wakes"),
    [(-5, True), (0xFFFF_FFFB, True), (1 << 32 | 0xFFFF_FFFB, True), (5, False), (0, False)],
)
def test_tags_are_compared_by_their_lower_32_bits(tags_code: int, wakes: bool) -> None:
    hold = holding(0, MessageFilter(tag_codes=frozenset({-5})))
    assert bool(hold.arrived(arriving(0, tags_code))) is wakes
