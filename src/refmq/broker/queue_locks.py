"""Queue locks: a broker lends each queue to one client at a time, so that it is consumed in order.

The steps are the actions `LockQueue`, `UnlockQueue` and `LoanExpire` of spec/rebalance. A loan lasts
`LOAN_MS` after it was last renewed; a client trusts an answer for only `TRUST_MS`, so that a loan never
ends while its holder still trusts it. Loans live in memory: a restarted broker has forgotten them.

RocketMQ lends again right after a restart, while the old holder may still trust its lock: two clients then
consume one queue (`OneOwnerPerQueue` is violated). Here a restarted broker lends no queue before
`lend_from_ms`, the moment when the last trust that its predecessor can have given has run out.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Final

from rpds import HashTrieMap

from refmq.model.ids import ClientId, MessageQueue, TimestampMs
from refmq.model.step import Event

LOAN_MS: Final = 60_000
"""How long the broker lends without hearing from the holder: RebalanceLockManager, 4.9.8."""

TRUST_MS: Final = 30_000
"""How long a client trusts an answer: ProcessQueue, 4.9.8."""


@dataclass(frozen=True, slots=True)
class Loan:
    holder: ClientId
    since_ms: TimestampMs


@dataclass(frozen=True, slots=True)
class QueueLocks:
    """Who holds which queue, for every consumer group. Memory only."""

    lend_from_ms: TimestampMs
    loans: HashTrieMap[tuple[str, MessageQueue], Loan] = field(default_factory=HashTrieMap)


@dataclass(frozen=True, slots=True)
class LockAnswer:
    """The new state, the queues of the batch that the client now holds, and one event for each change."""

    state: QueueLocks
    held: tuple[MessageQueue, ...]
    events: tuple[Event, ...]


def restart_broker(last_alive_ms: TimestampMs | None) -> QueueLocks:
    """The locks at startup. `last_alive_ms` is the last moment the predecessor can have lent a queue."""
    assert TRUST_MS < LOAN_MS, "a loan outlives the trust in it"
    return QueueLocks(TimestampMs(0) if last_alive_ms is None else TimestampMs(last_alive_ms + TRUST_MS + 1))


def loan_expire_enabled(loan: Loan, now_ms: TimestampMs) -> bool:
    return now_ms - loan.since_ms > LOAN_MS


def held_by(state: QueueLocks, group: str, queue: MessageQueue, client: ClientId) -> bool:
    loan = state.loans.get((group, queue))
    return loan is not None and loan.holder == client


# LockQueue ---------------------------------------------------------------------------------------


def lock_queue_enabled(
    state: QueueLocks, group: str, queue: MessageQueue, client: ClientId, now_ms: TimestampMs
) -> bool:
    loan = state.loans.get((group, queue))
    if loan is None:
        return now_ms >= state.lend_from_ms
    return loan.holder == client or loan_expire_enabled(loan, now_ms)


def lock_queue(
    state: QueueLocks, group: str, queues: Iterable[MessageQueue], client: ClientId, now_ms: TimestampMs
) -> LockAnswer:
    """Lends the client each free queue, and renews the loans it already has.

    An expired loan that passes to another client ends with an event of its own, `LoanExpire`: the
    specification takes two actions where the answer to the client is one.
    """
    held: list[MessageQueue] = []
    events: list[Event] = []
    loans = state.loans
    for queue in queues:
        # Enabled
        if not lock_queue_enabled(state, group, queue, client, now_ms):
            continue
        # Next
        before = loans.get((group, queue))
        loans = loans.insert((group, queue), Loan(client, now_ms))
        held.append(queue)
        # Trace
        if before is not None and before.holder != client:
            events.append(Event("LoanExpire", f"{group}@{before.holder}", queue.topic, queue.queue_id))
        events.append(Event("LockQueue", f"{group}@{client}", queue.topic, queue.queue_id, a=1, b=now_ms))
    after = replace(state, loans=loans)
    assert all(held_by(after, group, queue, client) for queue in held)
    return LockAnswer(after, tuple(held), tuple(events))


# LoanExpire --------------------------------------------------------------------------------------


def expire_loans(state: QueueLocks, now_ms: TimestampMs) -> LockAnswer:
    """Forgets the loans that have run out: nobody may ever ask for those queues again."""
    ended = [(key, loan) for key, loan in state.loans.items() if loan_expire_enabled(loan, now_ms)]
    loans = state.loans
    events: list[Event] = []
    for (group, queue), loan in sorted(ended, key=lambda each: each[0]):
        loans = loans.discard((group, queue))
        events.append(Event("LoanExpire", f"{group}@{loan.holder}", queue.topic, queue.queue_id))
    assert len(loans) == len(state.loans) - len(ended)
    return LockAnswer(replace(state, loans=loans) if ended else state, (), tuple(events))


# UnlockQueue -------------------------------------------------------------------------------------


def unlock_queue_enabled(state: QueueLocks, group: str, queue: MessageQueue, client: ClientId) -> bool:
    return held_by(state, group, queue, client)


def unlock_queue(
    state: QueueLocks, group: str, queues: Iterable[MessageQueue], client: ClientId, now_ms: TimestampMs
) -> LockAnswer:
    """Takes back the queues the client holds; others are left alone, as upstream does."""
    events: list[Event] = []
    loans = state.loans
    for queue in queues:
        # Enabled
        if not unlock_queue_enabled(state, group, queue, client):
            continue
        # Next, trace
        loans = loans.discard((group, queue))
        events.append(Event("UnlockQueue", f"{group}@{client}", queue.topic, queue.queue_id, a=now_ms))
    assert len(loans) >= len(state.loans) - len(events), "each loan that ends has its event"
    return LockAnswer(replace(state, loans=loans), (), tuple(events))
