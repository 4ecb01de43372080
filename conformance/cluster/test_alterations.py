"""A recorded run of a whole cluster with one event dropped, swapped, doubled or changed: somebody notices.

Every kind of event is altered in every way. What goes unnoticed must be among `INVISIBLE`, with the reason why the
altered trace could be that of a cluster that does everything right.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from functools import cache

import pytest

from conformance.cluster import history as h
from conformance.cluster.runner import run_history
from refmq.trace.record import Outcome
from refmq.verify.oracles import Line, judge

OF_EACH_KIND = 1
"""How many events of a kind are altered: each costs a tenth of a second."""

HISTORY = h.History(
    h.Setting(seed=5, brokers=1, clients=2, queues=2),
    (
        *(h.Heartbeat(0), h.Heartbeat(1), h.AdvanceClock(100)),
        *(h.Send(count=3), h.SendBatch(queue=1, count=2), h.AdvanceClock(100)),
        *(h.LockQueue(0), h.AdvanceClock(20), h.LockQueue(1), h.AdvanceClock(20)),
        *(h.UnlockQueue(0), h.AdvanceClock(20), h.LockQueue(1)),
        *(h.Pull(0, count=2), h.AdvanceClock(50), h.Pull(0, count=2), h.AdvanceClock(50)),
        *(h.CommitOffset(0), h.AdvanceClock(50), h.QueryOffset(0)),
        *(h.Pull(1, queue=1, wanted="tag a"), h.Pull(1, queue=1, wanted="sql n"), h.AdvanceClock(50)),
        *(h.SendBack(0), h.Send(1, delay_level=1, queue=1)),
        *(h.SendHalf(0), h.SendHalf(1, reply="rollback"), h.SendHalf(1, decision="none", reply="none")),
        *(h.Pull(0, queue=1, suspend_ms=5_000), h.AdvanceClock(6_100)),
        *(h.QueryKey(0), h.QueryBounds(0), h.QueryRoute(0), h.ViewRefresh(0), h.AdvanceClock(100)),
        *(
            h.Ask(0),
            h.AdvanceClock(20),
            h.Configure(0),
            h.AdvanceClock(20),
            h.Configure(1, value=-1),
            h.AdvanceClock(20),
        ),
        *(h.RestartBroker(), h.AdvanceClock(5_000), h.Send(0), h.Leave(1), h.AdvanceClock(100)),
    ),
)

A_WISH = "what was asked for, which no answer repeats"
A_LABEL = "a label that only a filter looks at"
THE_WORLD = "a note of the world about itself: it excuses operations, and none needs the excuse here"
ANOTHER_NODE = "two events of one moment on different nodes have no order"
ANY_NUMBER = "any number would do: nothing else tells it"
FOR_TLC = "no oracle reads it; conformance/judged says what TLC makes of it"

INVISIBLE = {
    ("Pull", "INVOKE", "b"): A_WISH,
    ("Pull", "INVOKE", "d"): A_WISH,
    ("PullFiltered", "INVOKE", "b"): A_WISH,
    ("SendHalf", "INVOKE", "a"): A_WISH,
    ("PullFiltered", "INVOKE", "d"): A_WISH,
    ("Send", "INVOKE", "d"): A_LABEL,
    ("SendHalf", "INVOKE", "d"): A_LABEL,
    ("SendDelayed", "INVOKE", "d"): A_LABEL,
    ("DispatchMessage", "STEP", "c"): A_LABEL,
    ("FlushLog", "STEP", "b"): FOR_TLC,
    ("TruncateLog", "STEP", "b"): FOR_TLC,
    ("FlushIndex", "STEP", "b"): FOR_TLC,
    ("WriteCheckpoint", "STEP", "d"): FOR_TLC,
    ("RestartBroker", "STEP", "swap"): THE_WORLD,
    ("RestartBroker", "STEP", "double"): THE_WORLD,
    ("Settled", "STEP", "drop"): THE_WORLD,
    ("Settled", "STEP", "swap"): THE_WORLD,
    ("Pull", "FAIL", "swap"): ANOTHER_NODE,
    ("CommitOffset", "STEP", "a"): "after a restart nothing tells what was in the file",
    ("HalfRemoved", "STEP", "b"): "an op message of another life",
    ("QueryRoute", "OK", "a"): ANY_NUMBER,
    ("Ask", "OK", "d"): ANY_NUMBER,
    ("Configure", "OK", "d"): "before the first one nobody knows how the setting is",
    ("RegisterBroker", "STEP", "a"): ANY_NUMBER,
    ("RegisterBroker", "STEP", "b"): ANY_NUMBER,
    ("RegisterBroker", "STEP", "double"): "a broker may register as often as it likes; the first event has number 0",
    ("UnregisterBroker", "STEP", "a"): ANY_NUMBER,
}
"""Action, outcome and alteration -> why nobody can notice."""


@cache
def recorded() -> tuple[Line, ...]:
    run = run_history(HISTORY)
    assert run.violations == []
    return tuple(run.lines)


def alterations(lines: list[Line], at: int) -> Iterator[tuple[str, list[Line]]]:
    line, before, after = lines[at], lines[:at], lines[at + 1 :]
    yield "drop", before + after
    yield "double", [*before, line, line, *after]
    if after:
        yield "swap", [*before, after[0], line, *after[1:]]
    for letter in "abcd":
        yield letter, [*before, line._replace(**{letter: getattr(line, letter) + 1}), *after]
    yield "queue", [*before, line._replace(queue_id=line.queue_id + 1), *after]


def unnoticed() -> tuple[set[tuple[str, str, str]], int, int]:
    """The alterations that no oracle notices, by kind; how many those were, and of how many."""
    lines, seen = list(recorded()), Counter[tuple[str, int]]()
    missed: set[tuple[str, str, str]] = set()
    count, total = 0, 0
    for at, line in enumerate(lines):
        seen[line.action, line.outcome] += 1
        if seen[line.action, line.outcome] > OF_EACH_KIND:
            continue
        for what, altered in alterations(lines, at):
            total += 1
            if not judge(altered):
                count += 1
                missed.add((line.action, Outcome(line.outcome).name, what))
    return missed, count, total


@pytest.mark.slow
def test_one_altered_event_is_noticed_or_nobody_can(capsys: pytest.CaptureFixture[str]) -> None:
    missed, count, total = unnoticed()
    with capsys.disabled():
        print(f"\n{total - count} of {total} altered traces are noticed")
    assert missed - set(INVISIBLE) == set()
    assert count / total < 0.05


def test_the_run_has_every_operation_of_clients() -> None:
    told = {line.action for line in recorded()}
    assert {kind.__name__ for kind in h.OPERATIONS} <= told
