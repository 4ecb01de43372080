"""No two clients consume a queue at the same time, over restarts too."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal, TypeAlias

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from refmq.broker import queue_locks as locks
from refmq.model.ids import ClientId, MessageQueue, TimestampMs
from refmq.model.step import Event

GROUP = "g"
QUEUES = [MessageQueue("t", "b0", n) for n in range(2)]
Operation: TypeAlias = tuple[Literal["lock", "unlock", "restart", "wait"], str, int]

HISTORIES = st.lists(
    st.one_of(
        st.tuples(st.sampled_from(["lock", "unlock"]), st.sampled_from("abc"), st.integers(0, 1)),
        st.tuples(st.just("restart"), st.just(""), st.just(0)),
        st.tuples(st.just("wait"), st.just(""), st.sampled_from([1, 29_999, 30_000, 30_001, 60_000, 60_001])),
    ),
    max_size=40,
)


def run(history: list[Operation]) -> list[tuple[int, Event]]:
    """Plays a history; the broker that restarts knows when its predecessor ended."""
    now = TimestampMs(1_000)
    state = locks.restart_broker(None)
    events: list[tuple[int, Event]] = []
    for what, client, number in history:
        match what:
            case "lock":
                answer = locks.lock_queue(state, GROUP, [QUEUES[number]], ClientId(client), now)
            case "unlock":
                answer = locks.unlock_queue(state, GROUP, [QUEUES[number]], ClientId(client), now)
            case "restart":
                state = locks.restart_broker(now)
                continue
            case "wait":
                now = TimestampMs(now + number)
                continue
        state = answer.state
        events.extend((now, event) for event in answer.events)
    return events


def one_owner_per_queue(events: Iterable[tuple[int, Event]]) -> Event | None:
    """OneOwnerPerQueue: the first event that lends a queue while another client may still trust its lock."""
    trusted: dict[int, tuple[str, int]] = {}
    for at_ms, event in events:
        holder, since = trusted.get(event.queue_id, (event.actor, at_ms))
        if event.action == "LockQueue":
            if holder != event.actor and at_ms - since <= locks.TRUST_MS:
                return event
            trusted[event.queue_id] = (event.actor, at_ms)
        elif event.action == "UnlockQueue" and holder == event.actor:
            trusted.pop(event.queue_id, None)
    return None


@given(HISTORIES)
def test_no_two_clients_trust_a_queue_at_the_same_time(history: list[Operation]) -> None:
    assert one_owner_per_queue(run(history)) is None


@pytest.mark.parametrize("mutant", ["no grace after a restart", "a loan shorter than the trust", "anybody may unlock"])
def test_the_property_catches_its_mutants(mutant: str, monkeypatch: pytest.MonkeyPatch) -> None:
    match mutant:
        case "no grace after a restart":
            monkeypatch.setattr(locks, "restart_broker", lambda last_alive_ms: locks.QueueLocks(TimestampMs(0)))
        case "a loan shorter than the trust":
            monkeypatch.setattr(locks, "LOAN_MS", 0)
        case _:
            monkeypatch.setattr(locks, "unlock_queue_enabled", lambda state, group, queue, client: True)

    @settings(database=None, max_examples=3_000, phases=[Phase.generate])
    @given(HISTORIES)
    def property_(history: list[Operation]) -> None:
        assert one_owner_per_queue(run(history)) is None

    with pytest.raises(AssertionError):
        property_()


def test_a_holder_prolongs_its_own_loan_and_others_wait_for_its_end() -> None:
    state = locks.restart_broker(None)
    first = locks.lock_queue(state, GROUP, QUEUES, ClientId("a"), TimestampMs(0))
    assert first.held == tuple(QUEUES)
    assert locks.lock_queue(first.state, GROUP, QUEUES, ClientId("b"), TimestampMs(60_000)).held == ()
    again = locks.lock_queue(first.state, GROUP, QUEUES[:1], ClientId("a"), TimestampMs(60_000))
    late = locks.lock_queue(again.state, GROUP, QUEUES, ClientId("b"), TimestampMs(60_001))
    assert late.held == (QUEUES[1],)
    assert [e.action for e in late.events] == ["LoanExpire", "LockQueue"]


def test_groups_do_not_disturb_each_other() -> None:
    state = locks.lock_queue(locks.restart_broker(None), "g", QUEUES, ClientId("a"), TimestampMs(0)).state
    assert locks.lock_queue(state, "h", QUEUES, ClientId("b"), TimestampMs(0)).held == tuple(QUEUES)


def test_a_fresh_broker_lends_at_once_and_a_restarted_one_after_the_last_trust() -> None:
    assert locks.lock_queue(locks.restart_broker(None), GROUP, QUEUES, ClientId("a"), TimestampMs(0)).held
    restarted = locks.restart_broker(TimestampMs(1_000))
    assert not locks.lock_queue(restarted, GROUP, QUEUES, ClientId("a"), TimestampMs(31_000)).held
    assert locks.lock_queue(restarted, GROUP, QUEUES, ClientId("a"), TimestampMs(31_001)).held


def test_loans_that_have_run_out_are_forgotten() -> None:
    queue, other = MessageQueue("T", "b", 0), MessageQueue("T", "b", 1)
    state = locks.restart_broker(None)
    state = locks.lock_queue(state, "g", (queue,), ClientId("c"), TimestampMs(0)).state
    state = locks.lock_queue(state, "g", (other,), ClientId("c"), TimestampMs(1)).state
    early = locks.expire_loans(state, TimestampMs(locks.LOAN_MS))
    assert (early.state, early.events) == (state, ())
    late = locks.expire_loans(state, TimestampMs(locks.LOAN_MS + 1))
    assert set(late.state.loans) == {("g", other)}
    assert [(event.action, event.actor, event.queue_id) for event in late.events] == [("LoanExpire", "g@c", 0)]
