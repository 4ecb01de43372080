"""Producers that do not spread what they send are found."""

from __future__ import annotations

import pytest

from conformance.group.attempts import Choice, attempts_spread
from refmq.model.ids import MessageQueue

A0, A1, B0 = (MessageQueue("t", broker, number) for broker, number in (("a", 0), ("a", 1), ("b", 0)))
ALL = (A0, A1, B0)


def tries(*queues: MessageQueue, known: tuple[MessageQueue, ...] = ALL) -> Choice:
    return Choice(known, [frozenset(queue.broker for queue in known)] * len(queues), list(queues))


GOOD = {
    "in turn": [tries(queue) for queue in (A1, B0, A0, A1, B0)],
    "a second try elsewhere": [tries(A0, B0), tries(A1)],
    "a second try where there is nobody else": [tries(A0, A1, known=(A0, A1))],
    "somebody came too late": [Choice((A0,), [frozenset("a"), frozenset("ab")], [A0, A0])],
    "another route": [tries(A0), tries(A0, known=(A0, A1)), tries(A1, known=(A0, A1))],
    "one is passed over": [tries(queue) for queue in (A0, A1, B0, A0, B0, A0)],
    "a try in between": [tries(A0), tries(A1, B0), tries(A0)],
    "none was made": [tries(known=()), tries(known=())],
}
BAD = {
    "one queue never": [tries(queue) for queue in (A0, A1) * 3],
    "always the same": [tries(A0)] * 6,
    "the same broker again": [tries(A0, A1)],
    "the same broker at the third try": [tries(A0, B0, B0)],
}


@pytest.mark.parametrize("name", GOOD)
def test_what_is_spread_breaks_nothing(name: str) -> None:
    assert list(attempts_spread(GOOD[name])) == []


@pytest.mark.parametrize("name", BAD)
def test_what_is_not_spread_is_found(name: str) -> None:
    assert {finding.invariant for finding in attempts_spread(BAD[name])} == {"AttemptsSpread"}
