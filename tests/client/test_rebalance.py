"""The steps of consumers keep the promises of Rebalance; and each promise catches a client that does not."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from refmq.client import process_queue, rebalance
from refmq.client.process_queue import ProcessQueue
from refmq.client.rebalance import GiveBack, Member, SendCommit, StartPulling, StopPulling
from refmq.model.ids import MessageQueue
from refmq.model.step import Step
from tests.client.rebalance_world import Broken, GroupWorld

Q = MessageQueue("t", "b", 0)
RUNS = st.lists(st.integers(0, 1_000), min_size=30, max_size=100)


@settings(max_examples=300)
@given(RUNS, st.booleans(), st.booleans())
def test_nothing_is_skipped_committed_ahead_or_out_of_order(
    choices: list[int], orderly: bool, start_at_last: bool
) -> None:
    GroupWorld(rebalance, orderly, start_at_last=start_at_last).run(choices)


def test_a_group_left_alone_consumes_everything_and_commits_it() -> None:
    """A driver that always takes the first useful step comes to the end."""
    for orderly in (False, True):
        world = GroupWorld(rebalance, orderly)
        world.join()
        useful = ("heartbeat", "route", "view", "lock", "acquire", "pull", "start", "finish", "commit", "answered")
        for _ in range(400):
            possible = [
                (what, act)
                for what, act in world.choices()
                if any(word in what for word in useful) and "False" not in what and "renew" not in what
            ]
            settled = [entry for entry in possible if "view" not in entry[0] and ": commit" not in entry[0]]
            _, act = (settled or possible)[0]
            act()
            world.judge()
            if all(world.done[queue] == {0, 1} for queue in world.all) and not settled:
                for name in list(world.members):
                    world.leave(name)
                while world.net:
                    world.arrive(0)
                break
        assert world.committed == dict.fromkeys(world.all, 2)


# Mutants ------------------------------------------------------------------------------------------------------------


ORIGINAL_ACQUIRE = rebalance.acquire_queue
ORIGINAL_TRUSTS = rebalance.trusts


def finish_and_commit_all(queue: ProcessQueue, offset: int, *, success: bool) -> ProcessQueue:
    after = process_queue.finish(queue, offset, success=success)
    return replace(after, memory=after.next_offset) if success and not after.dropped else after


def finish_though_dropped(queue: ProcessQueue, offset: int, *, success: bool) -> ProcessQueue:
    after = process_queue.finish(replace(queue, dropped=False), offset, success=success)
    return replace(after, dropped=queue.dropped)


def any_answer_counts(member: Member, queue: MessageQueue, from_offset: int) -> bool:
    return queue in member.held and not member.held[queue].dropped


def put_anywhere(queue: ProcessQueue, messages: list[tuple[int, int]], next_offset: int) -> ProcessQueue:
    fitting = [entry for entry in messages if entry[0] >= queue.next_offset]
    return process_queue.put_pulled(queue, fitting, max(next_offset, queue.next_offset))


def put_behind_a_hole(queue: ProcessQueue, messages: list[tuple[int, int]], next_offset: int) -> ProcessQueue:
    return process_queue.put_pulled(queue, messages[1:], next_offset)


def start_without_trust(member: Member, queue: MessageQueue, offset: int, now_ms: int) -> bool:
    held = member.held.get(queue)
    return held is not None and not held.dropped and not held.running and offset == process_queue.first_cached(held)


def start_in_any_order(member: Member, queue: MessageQueue, offset: int, now_ms: int) -> bool:
    held = member.held.get(queue)
    if held is None or held.dropped or offset in held.running or offset not in held.cached:
        return False
    return ORIGINAL_TRUSTS(member, queue, now_ms) and not held.running


def acquire_without_commit(
    member: Member, queue: MessageQueue, begin: int, *, committed: bool, now_ms: int
) -> rebalance.MemberStep:
    step = ORIGINAL_ACQUIRE(member, queue, begin, committed=committed, now_ms=now_ms)
    return Step(step.state, tuple(e for e in step.effects if not isinstance(e, SendCommit)), step.event)


def release_at_once(member: Member, queue: MessageQueue) -> rebalance.MemberStep:
    if not rebalance.release_queue_enabled(member, queue):
        return Step(member)
    after = replace(member, held=member.held.remove(queue), trust=member.trust.discard(queue))
    return Step(after, (StopPulling(queue), GiveBack(queue)))


def leave_at_once(member: Member) -> bool:
    return not member.left


MUTANTS: dict[str, tuple[dict[str, Callable[..., Any]], str, bool, bool]] = {
    "the offset of the last pull is committed": ({"finish": finish_and_commit_all}, "ahead", False, False),
    "the result of a dropped queue counts": ({"finish": finish_though_dropped}, "dropped", True, False),
    "a message of a pull is lost": ({"put_pulled": put_behind_a_hole}, "skipped", False, False),
    "a lock is not looked at": (
        {"consume_start_enabled": start_without_trust, "trusts": lambda *_: True},
        "two listeners",
        True,
        False,
    ),
    "any message of the cache is next": ({"consume_start_enabled": start_in_any_order}, "order", True, False),
    "the first offset is not committed": ({"acquire_queue": acquire_without_commit}, "skipped", False, True),
    "a loan is given back while a listener runs": ({"release_queue": release_at_once}, "two listeners", True, False),
    "a consumer leaves with a listener at work": ({"leave_enabled": leave_at_once}, "two listeners", True, False),
}


@pytest.mark.parametrize(("changed", "promise", "orderly", "last"), MUTANTS.values(), ids=list(MUTANTS))
def test_a_client_that_breaks_a_promise_is_caught(
    changed: dict[str, Callable[..., Any]], promise: str, orderly: bool, last: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    chance = Random(2)  # which comes to all of them soon
    for name, changed_to in changed.items():
        monkeypatch.setattr(rebalance, name, changed_to)
    for _ in range(20_000):  # texts hash differently in each process, and with them the order of choices
        try:
            GroupWorld(rebalance, orderly, start_at_last=last).run([chance.randrange(1_000) for _ in range(80)])
        except Broken as error:
            if promise in str(error):
                return
    pytest.fail(f"nothing broke the promise: {promise}")


# Single steps -------------------------------------------------------------------------------------------------------


def alone(*, orderly: bool = False, queues: int = 1) -> Member:
    member = Member("g", "c", orderly=orderly)
    member = rebalance.route_refresh(member, "t", [MessageQueue("t", "b", n) for n in range(queues)]).state
    return rebalance.view_refresh(member, "t", ["c"]).state


def test_a_new_queue_commits_where_it_begins_before_it_is_pulled() -> None:
    step = rebalance.acquire_queue(alone(), Q, 17, committed=False, now_ms=0)
    assert step.effects == (SendCommit(Q, 17, first=True), StartPulling(Q))
    step = rebalance.acquire_queue(alone(), Q, 17, committed=True, now_ms=0)
    assert step.effects == (StartPulling(Q),)


def test_a_share_that_nobody_knows_changes_nothing() -> None:
    member = rebalance.acquire_queue(alone(), Q, 0, committed=True, now_ms=0).state
    assert rebalance.view_refresh(member, "t", []).state == member
    other = rebalance.view_refresh(member, "t", ["someone"]).state
    assert rebalance.to_release(other) == (Q,)

    def fails(*_: object) -> list[MessageQueue]:
        from refmq.errors import UsageError

        raise UsageError("no room")

    assert rebalance.to_release(replace(other, strategy=fails)) == ()


def test_an_unsubscribed_queue_is_given_up_with_its_offset() -> None:
    member = rebalance.acquire_queue(alone(), Q, 5, committed=True, now_ms=0).state
    member = rebalance.unsubscribe(member, "t")
    step = rebalance.release_queue(member, Q)
    assert step.effects == (SendCommit(Q, 5), StopPulling(Q))


def test_a_broker_that_moves_the_offset_is_followed() -> None:
    member = rebalance.acquire_queue(alone(), Q, 5, committed=True, now_ms=0).state
    forward = rebalance.correct_offset(member, Q, 5, 9).state.held[Q]
    assert (forward.next_offset, forward.memory) == (9, 9)
    back = rebalance.correct_offset(member, Q, 5, 3).state.held[Q]
    assert (back.next_offset, back.memory) == (3, 3)
    assert rebalance.correct_offset(member, Q, 4, 9).state == member


def late_answer() -> ProcessQueue:
    """A pull from 2 is under way when the queue is given up and taken again at 0; then its answer comes."""
    member = rebalance.acquire_queue(alone(), Q, 2, committed=True, now_ms=0).state
    member = rebalance.release_queue(rebalance.view_refresh(member, "t", ["d"]).state, Q).state
    member = rebalance.acquire_queue(
        rebalance.view_refresh(member, "t", ["c"]).state, Q, 0, committed=True, now_ms=0
    ).state
    return rebalance.pull_messages(member, Q, 2, 4, [(2, 1), (3, 1)]).state.held[Q]


def test_an_answer_from_an_earlier_life_of_the_queue_is_ignored(monkeypatch: pytest.MonkeyPatch) -> None:
    assert late_answer() == ProcessQueue(0, memory=0)
    monkeypatch.setattr(rebalance, "pull_messages_enabled", any_answer_counts)
    monkeypatch.setattr(rebalance, "put_pulled", put_anywhere)
    assert late_answer().next_offset == 4, "the mutant skips what lies before the answer"


def test_trust_is_counted_from_the_question() -> None:
    member = rebalance.lock_queue(alone(orderly=True), Q, granted=True, asked_at_ms=1_000)
    assert rebalance.trusts(member, Q, 30_999)
    assert not rebalance.trusts(member, Q, 31_000)
    assert rebalance.trust_expire(member, Q, 30_999).event is None
    assert rebalance.trust_expire(member, Q, 31_000).event is not None
