"""Makes histories of a cluster: from Hypothesis, which shrinks them, and from a seed, for campaigns.

Both choose from the same weights. Most steps are operations, faults are rarer, and a crash is usually followed by a
restart, so that there is somebody to find the damage.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any, Final, TypeVar

from hypothesis import strategies as st

from conformance.cluster import history as h

T = TypeVar("T")

EFFECTS_MAX: Final = 40
"""A planned crash falls within so many effects: a send has about five."""

CALM_ONE_IN: Final = 5
"""Every so many histories nothing disturbs the cluster, and then it has to be prompt as well as right."""

Pick = Callable[[int, int], int]
"""A number from a range, both ends included; the smaller, the simpler."""


def kinds(*, transactions: bool, calm: bool) -> list[type[h.Step]]:
    """The kinds of steps to choose from, each as often as its weight says."""
    return [
        kind
        for kind, weight in WEIGHTS
        for _ in range(weight)
        if (transactions or kind is not h.SendHalf) and (not calm or kind in (*h.OPERATIONS, h.AdvanceClock))
    ]


def step(pick: Pick, choices: list[type[h.Step]]) -> h.Step:
    """One step."""
    kind = choices[pick(0, len(choices) - 1)]
    client, broker, queue = pick(0, 2), pick(0, 1), pick(0, 1)
    choice: Any
    match kind.__name__:
        case "Send":
            choice = h.Send(client, broker, queue, pick(1, 4), (20, 20, 300, 3000)[pick(0, 3)])
        case "SendHalf":
            decisions: tuple[h.Decision, ...] = ("commit", "rollback", "unknown", "none")
            choice = h.SendHalf(client, broker, queue, decisions[pick(0, 3)], decisions[pick(0, 3)], pick(1, 2))
        case "Pull":
            choice = h.Pull(client, broker, queue, pick(1, 8), (0, 0, 200, 5_000)[pick(0, 3)])
        case "AdvanceClock":
            choice = h.AdvanceClock((1, 5, 20, 100, 1_000, 10_000, 31_000)[pick(0, 6)])
        case "JumpClock":
            choice = h.JumpClock(broker, (-1_000, -1, 1_000, 60_000)[pick(0, 3)])
        case "ProcessCrash" | "PowerLoss":
            choice = kind(broker, pick(0, EFFECTS_MAX))  # type: ignore[call-arg]  # the case knows the fields
        case "ConsumerPause":
            choice = h.ConsumerPause(client, (1_000, 10_000, 40_000)[pick(0, 2)])
        case "Cut":
            choice = h.Cut(client, broker, bool(pick(0, 1)))
        case "ProducerDeath":
            choice = h.ProducerDeath(client)
        case "Heal":
            choice = h.Heal()
        case "RestartBroker" | "FailFlush":
            choice = kind(broker)  # type: ignore[call-arg]  # the case knows the fields
        case "Heartbeat" | "Disconnect" | "LoseAnswer" | "LoseRequest" | "HalfOpen":
            choice = kind(client, broker)  # type: ignore[call-arg]  # the case knows the fields
        case _:
            choice = kind(client, broker, queue)  # type: ignore[call-arg,arg-type]  # the case knows the fields
    assert isinstance(choice, kind)
    return choice


WEIGHTS: Final[tuple[tuple[type[h.Step], int], ...]] = (
    (h.Send, 10),
    (h.Pull, 7),
    (h.AdvanceClock, 8),
    (h.CommitOffset, 3),
    (h.QueryOffset, 1),
    (h.LockQueue, 3),
    (h.UnlockQueue, 1),
    (h.Heartbeat, 2),
    (h.SendHalf, 4),
    (h.RestartBroker, 3),
    (h.ProcessCrash, 2),
    (h.PowerLoss, 3),
    (h.LoseAnswer, 2),
    (h.LoseRequest, 1),
    (h.Disconnect, 1),
    (h.Cut, 1),
    (h.HalfOpen, 1),
    (h.Heal, 1),
    (h.ProducerDeath, 1),
    (h.ConsumerPause, 1),
    (h.JumpClock, 1),
    (h.FailFlush, 1),
)


def setting(pick: Pick) -> h.Setting:
    return h.Setting(
        seed=pick(0, 1 << 30),
        brokers=pick(1, 2),
        clients=pick(1, 3),
        queues=pick(1, 2),
        sync_flush=pick(0, 3) < 3,
        log_file_bytes=(64, 16)[pick(0, 1)] * 1024,
    )


def history(seed: int, steps: int, *, transactions: bool = True) -> h.History:
    """The history of a seed."""
    source = random.Random(seed)

    def pick(low: int, high: int) -> int:
        return low + int(source.random() * (high - low + 1))

    chosen = setting(pick)
    choices = kinds(transactions=transactions, calm=pick(1, CALM_ONE_IN) == CALM_ONE_IN)
    return h.History(chosen, tuple(step(pick, choices) for _ in range(steps)))


def histories(steps_max: int = 25, *, transactions: bool = True) -> st.SearchStrategy[h.History]:
    """Histories for Hypothesis: numbers shrink towards the simplest choice, lists towards fewer steps."""

    def picker(draw: st.DrawFn) -> Pick:
        return lambda low, high: draw(st.integers(low, high))

    @st.composite
    def whole(draw: st.DrawFn) -> h.History:
        chosen = setting(picker(draw))
        choices = kinds(transactions=transactions, calm=draw(st.integers(1, CALM_ONE_IN)) == CALM_ONE_IN)
        steps = draw(st.lists(st.builds(lambda pick: step(pick, choices), st.just(picker(draw))), max_size=steps_max))
        return h.History(chosen, tuple(steps))

    return whole()
