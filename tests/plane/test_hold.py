"""Long polling by itself: which waiting pull a message wakes, and that none waits for what is there."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import cast

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from refmq.filter import compile_expression
from refmq.filter.message_filter import MatchAll, MessageFilter
from refmq.filter.work import WORK_MAX
from refmq.model.ids import PhysicalOffset, QueueOffset, TimestampMs
from refmq.plane.hold import HELD_BYTES_MAX, HELD_PER_QUEUE_MAX, HeldPull, Hold
from refmq.plane.inputs import Frame
from refmq.protocol.codes import RequestCode
from refmq.protocol.command import request
from refmq.store.api import StoreReader
from refmq.store.values import Dispatched


def held(
    number: int = 1,
    queue_offset: int = 0,
    message_filter: MessageFilter = MatchAll,
    *,
    queue_id: int = 0,
    connection: int = 1,
    deadline_ms: int = 1_000,
) -> HeldPull:
    frame = Frame(number, connection, "127.0.0.1:1", request(RequestCode.PULL_MESSAGE, {}))
    return HeldPull(frame, "T", queue_id, QueueOffset(queue_offset), deadline_ms, message_filter)


def arriving(queue_offset: int, tags_code: int = 0, queue_id: int = 0) -> Dispatched:
    offset, place, store_ms = QueueOffset(queue_offset), PhysicalOffset(0), TimestampMs(5)
    return Dispatched("T", queue_id, offset, place, 100, tags_code, store_ms, b"")


@dataclass
class Ends:
    """A store of which only the ends of its queues are asked."""

    ends: list[int]

    def max_offset(self, topic: str, queue_id: int) -> QueueOffset:
        return QueueOffset(self.ends[queue_id])


def store(*ends: int) -> StoreReader:
    return cast("StoreReader", Ends(list(ends)))


@pytest.mark.parametrize(("queue_offset", "wakes"), [(6, False), (7, True), (8, True)])
def test_a_pull_is_woken_by_what_it_has_not_seen(queue_offset: int, wakes: bool) -> None:
    hold = Hold().park(held(queue_offset=7))
    woken = hold.arrived(arriving(queue_offset))
    assert bool(woken) is wakes
    assert len(hold.without(woken)) == (not wakes)


def test_a_message_of_another_queue_wakes_nobody() -> None:
    assert Hold().park(held()).arrived(arriving(3, queue_id=1)) == ()


@pytest.mark.parametrize(
    ("tags_code", "wakes"),
    [(-5, True), (0xFFFF_FFFB, True), (1 << 32 | 0xFFFF_FFFB, True), (5, False), (0, False)],
)
def test_tags_are_compared_by_their_lower_32_bits(tags_code: int, wakes: bool) -> None:
    hold = Hold().park(held(message_filter=MessageFilter(tag_codes=frozenset({-5}))))
    assert bool(hold.arrived(arriving(0, tags_code))) is wakes


@pytest.mark.parametrize(("uptime_ms", "end", "wakes"), [(999, 0, False), (1_000, 0, True), (0, 1, True)])
def test_a_look_wakes_whose_time_is_up_or_whose_queue_moved_on(uptime_ms: int, end: int, wakes: bool) -> None:
    assert bool(Hold().park(held()).due(store(end), uptime_ms)) is wakes


def test_pulls_are_answered_in_the_order_of_their_requests() -> None:
    hold = Hold()
    for number in (9, 3, 7, 1):
        hold = hold.park(held(number, connection=number))
    assert [pull.frame.number for pull in hold.arrived(arriving(0))] == [1, 3, 7, 9]


# --- no wake-up is lost -----------------------------------------------------------------------------------------------

STEPS = st.lists(
    st.tuples(st.sampled_from(["park", "arrive", "look", "close", "wait"]), st.integers(0, 1), st.integers(0, 3)),
    max_size=30,
)


def lost_wake_up(steps: list[tuple[str, int, int]]) -> bool:
    """Plays a history over two queues: True when a pull still waits although its message is there."""
    hold, ends, now = Hold(), [0, 0], 0
    for frame, (what, queue_id, number) in enumerate(steps):
        match what:
            case "park":
                wanted = MessageFilter(tag_codes=frozenset({number}))
                pull = held(frame, ends[queue_id], wanted, queue_id=queue_id, connection=number, deadline_ms=now + 10)
                hold = hold.park(pull)
            case "arrive":
                message = arriving(ends[queue_id], number, queue_id)
                ends[queue_id] += 1
                hold = hold.without(hold.arrived(message))
                here = [pull for pull in hold.every() if pull.queue_id == queue_id]
                if any(pull.message_filter.tag_codes == frozenset({number}) for pull in here):
                    return True
            case "look":
                hold = hold.without(hold.due(store(*ends), now))
                if any(now >= p.deadline_ms or ends[p.queue_id] > p.queue_offset for p in hold.every()):
                    return True
            case "close":
                hold = hold.without(hold.of_connection(number))
                if any(pull.frame.connection == number for pull in hold.every()):
                    return True
            case _:
                now += 5
    by_connection = sum(len(pulls) for pulls in hold.by_connection.values())
    return not len(hold) == len(hold.every()) == by_connection


@given(STEPS)
def test_no_pull_waits_for_a_message_that_is_there(steps: list[tuple[str, int, int]]) -> None:
    assert not lost_wake_up(steps)


@pytest.mark.parametrize("mutant", ["an arrival wakes nobody at the offset itself", "a look forgets the time"])
def test_the_property_catches_lost_wake_ups(mutant: str, monkeypatch: pytest.MonkeyPatch) -> None:
    if mutant.startswith("an arrival"):
        honest = HeldPull.may_want
        monkeypatch.setattr(
            HeldPull, "may_want", lambda self, m: honest(replace(self, queue_offset=self.queue_offset + 1), m)
        )
    else:
        honest_due = Hold.due
        monkeypatch.setattr(Hold, "due", lambda self, reader, uptime_ms: honest_due(self, reader, -1))

    @settings(database=None, max_examples=2_000, phases=[Phase.generate])
    @given(STEPS)
    def property_(steps: list[tuple[str, int, int]]) -> None:
        assert not lost_wake_up(steps)

    with pytest.raises(AssertionError):
        property_()


def test_a_queue_and_the_memory_hold_only_so_many() -> None:
    full = Hold()
    for number in range(HELD_PER_QUEUE_MAX):
        full = full.park(held(number))
    assert not full.has_room(held(HELD_PER_QUEUE_MAX))
    assert full.has_room(held(HELD_PER_QUEUE_MAX, queue_id=1))
    assert full.size_bytes == sum(pull.size_bytes for pull in full.every())
    assert not replace(full, size_bytes=HELD_BYTES_MAX).has_room(held(HELD_PER_QUEUE_MAX, queue_id=1))
    assert full.without(full.every()) == Hold()


def test_expressions_are_asked_until_that_has_cost_enough() -> None:
    never = MessageFilter(expression=compile_expression("a = 1"), terms=WORK_MAX)
    hold = Hold()
    for number in range(3):
        hold = hold.park(held(number, message_filter=never))
    assert [pull.frame.number for pull in hold.arrived(arriving(0))] == [1, 2], "one was asked"
