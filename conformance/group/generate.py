"""Makes histories of a group: from Hypothesis, which shrinks them, and from a seed, for campaigns.

Both choose from the same weights. Most steps send messages or let time pass; members come and go; faults are rarer.
What a mistake needs to show and chance would hardly ever put in a row is a scene.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final, get_args

from hypothesis import strategies as st

from conformance.cluster.generate import MAINTAIN_MS, crash, revived
from conformance.cluster.scenes import Pick
from conformance.coverage import CLIENT_STEPS
from conformance.group import history as h

CALM_ONE_IN: Final = 6
"""Every so many histories nothing disturbs the group, and then it has to be prompt, and consume everything once."""
SCENE_ONE_IN: Final = 6
ASKED: Final[tuple[h.Asked, ...]] = get_args(h.Asked)
LONG_MS: Final = 40_000
"""Longer than the trust in a lock (30 s)."""


@dataclass(frozen=True, slots=True)
class Profile:
    """What a history is mostly about."""

    weights: Mapping[type[h.Step], int]
    fails: int = 1
    """Of eight sends so many are of messages that fail."""
    slow: int = 1
    """Of eight sends so many are of messages that take long."""
    pauses_ms: tuple[int, ...] = (5, 100, 1_000, 5_000, 21_000)
    scenes: tuple[Callable[[Pick], list[h.Step]], ...] = ()


def step(pick: Pick, profile: Profile, choices: list[type[h.Step]]) -> h.Step:
    """One step."""
    kind: Any = choices[pick(0, len(choices) - 1)]  # the cases know the fields
    member, broker, queue = pick(0, 2), pick(0, 1), pick(0, 2)
    choice: h.Step
    match kind.__name__:
        case "Produce":
            fails = pick(1, 4) if pick(0, 7) >= 8 - profile.fails else 0
            takes_ms = (500, 3_000, LONG_MS)[pick(0, 2)] if pick(0, 7) >= 8 - profile.slow else 0
            count = pick(1, 12) if not takes_ms else pick(1, 3)
            body_bytes = (20, 20, 20, 6_000)[pick(0, 3)]
            choice = h.Produce(broker, queue, count, fails, takes_ms, pick(0, 3) == 3, body_bytes)
        case "AdvanceClock":
            choice = h.AdvanceClock(profile.pauses_ms[pick(0, len(profile.pauses_ms) - 1)])
        case "Join" | "Leave":
            choice = kind(member)
        case "ConsumerDeath":
            at = CLIENT_STEPS[pick(0, len(CLIENT_STEPS) - 1)] if pick(0, 1) else ""
            choice = h.ConsumerDeath(member, pick(0, 2) == 2, at)
        case "Refuse":
            choice = h.Refuse(member, ASKED[pick(0, len(ASKED) - 1)], pick(1, 4))
        case "ProcessCrash" | "PowerLoss":
            choice = crash(pick, kind, broker)
        case "RestartBroker" | "StopBroker":
            choice = kind(broker)
        case "RestartNameserver" | "Heal":
            choice = kind()
        case "ConsumerPause":
            choice = h.ConsumerPause(member, (1_000, 10_000, 40_000, 100_000)[pick(0, 3)])
        case "Cut":
            choice = h.Cut(member, broker, bool(pick(0, 1)))
        case "SlowNetwork":
            choice = h.SlowNetwork(member, broker, (50, 500, 4_000)[pick(0, 2)])
        case _:
            choice = kind(member, broker)
    return choice


# --- scenes ------------------------------------------------------------------------------------------------------


def handed_over(pick: Pick) -> list[h.Step]:
    """Somebody joins, or leaves, while everybody has messages in hand."""
    broker, queue, member = pick(0, 1), pick(0, 2), pick(0, 2)
    comes: h.Step = (h.Join(member), h.Leave(member), h.ConsumerDeath(member))[pick(0, 2)]
    busy = [h.Produce(broker, queue + more, 4, takes_ms=3_000) for more in range(2)]
    return [*busy, h.AdvanceClock((100, 1_000)[pick(0, 1)]), comes, h.AdvanceClock(25_000)]


def cut_off_with_work(pick: Pick) -> list[h.Step]:
    """A member has every queue, and listeners that take long; it is cut off for longer than its locks last, or they are
    not renewed; and somebody comes who is to have some of the queues."""
    member, broker = pick(0, 2), pick(0, 1)
    alone: list[h.Step] = [h.Join(member), *[h.ConsumerDeath(member + other) for other in (1, 2)]]
    busy = [h.Produce(broker, queue, 2, takes_ms=(2 * LONG_MS, LONG_MS)[pick(0, 1)]) for queue in range(3)]
    cut = (h.Cut(member, broker), h.Cut(member, broker), h.Refuse(member, "lock", 20))[pick(0, 2)]
    comes = [h.AdvanceClock(2_000), cut, h.Join(member + 1), h.AdvanceClock(90_000), h.Heal()]
    return [*alone, h.Produce(broker), h.AdvanceClock(70_000), *busy, *comes]


def forgotten_offset(pick: Pick) -> list[h.Step]:
    """A member takes queues over and is not told their offsets at first."""
    broker, member = pick(0, 1), pick(0, 2)
    asked: h.Asked = ("offset", "commit", "max offset")[pick(0, 2)]
    return [
        h.Produce(broker, pick(0, 2), 6),
        h.AdvanceClock(6_000),
        h.ConsumerDeath(member),
        h.Produce(broker, pick(0, 2), 3),
        h.Refuse(member + 1, asked, pick(1, 6)),
        h.AdvanceClock(3_000),
        h.Join(member),
        h.AdvanceClock(10),
        h.Refuse(member, asked, pick(1, 6)),
        h.AdvanceClock(25_000),
    ]


def not_taken_back(pick: Pick) -> list[h.Step]:
    """Messages fail, and the broker does not take them back: it refuses, or it is down."""
    broker, queue = pick(0, 1), pick(0, 2)
    if pick(0, 1):
        failing = h.Produce(broker, queue, 4, fails=pick(1, 4), takes_ms=3_000)
        down: list[h.Step] = [h.StopBroker(each) for each in range(2)]
        up: list[h.Step] = [h.RestartBroker(each) for each in range(2)]
        return [failing, h.AdvanceClock(1_000), *down, h.AdvanceClock(12_000), *up, h.AdvanceClock(20_000)]
    refused: list[h.Step] = [h.Refuse(member, "send back", pick(1, 8)) for member in range(3)]
    return [*refused, h.Produce(broker, queue, 4, fails=pick(1, 4)), h.AdvanceClock(20_000)]


def a_stale_view(pick: Pick) -> list[h.Step]:
    """A broker forgets a member whose connection broke, and others read the list there."""
    member, broker = pick(0, 2), pick(0, 1)
    sent = h.Produce(broker, pick(0, 2), 4)
    return [h.Disconnect(member, broker), sent, h.AdvanceClock(21_000), h.Produce(broker, pick(0, 2), 4)]


def crowded_out(pick: Pick) -> list[h.Step]:
    """More messages than a member keeps, the first of which takes long."""
    broker, queue = pick(0, 1), pick(0, 2)
    return [
        h.Produce(broker, queue, 1, takes_ms=(3_000, LONG_MS)[pick(0, 1)]),
        h.Produce(broker, queue, 30),
        h.AdvanceClock((1_000, 10_000)[pick(0, 1)]),
        (h.Leave(pick(0, 2)), h.ConsumerDeath(pick(0, 2)), h.Join(pick(0, 2)))[pick(0, 2)],
        h.AdvanceClock(5_000),
    ]


def fails_in_order(pick: Pick) -> list[h.Step]:
    """A message fails, and others of its queue come after it."""
    broker, queue = pick(0, 1), pick(0, 2)
    return [
        h.Produce(broker, queue, 1, fails=pick(1, 4)),
        h.Produce(broker, queue, 5),
        h.AdvanceClock((300, 1_100, 2_500)[pick(0, 2)]),
        (h.Join(pick(0, 2)), h.Leave(pick(0, 2)), h.AdvanceClock(5_000))[pick(0, 2)],
    ]


def dies_at_a_step(pick: Pick) -> list[h.Step]:
    """A member dies right behind a step that comes when queues change hands, or when it consumes."""
    member, broker = pick(0, 2), pick(0, 1)
    dies = h.ConsumerDeath(member, pick(0, 1) == 1, CLIENT_STEPS[pick(0, len(CLIENT_STEPS) - 1)])
    sent = h.Produce(broker, pick(0, 2), pick(1, 4))
    comes: list[h.Step] = [h.Join(member + 1), h.AdvanceClock(25_000), sent, h.AdvanceClock(6_000), h.Join(member)]
    return [h.ConsumerDeath(member + 1), h.Join(member), h.AdvanceClock(25_000), dies, sent, *comes]


SCENES: Final = (
    handed_over,
    cut_off_with_work,
    forgotten_offset,
    not_taken_back,
    a_stale_view,
    crowded_out,
    fails_in_order,
    dies_at_a_step,
)

MIXED: Final = Profile(
    {
        h.Produce: 10,
        h.AdvanceClock: 10,
        h.Join: 4,
        h.Leave: 2,
        h.ConsumerDeath: 2,
        h.Refuse: 2,
        h.ProcessCrash: 1,
        h.PowerLoss: 1,
        h.RestartBroker: 1,
        h.StopBroker: 1,
        h.RestartNameserver: 1,
        h.ConsumerPause: 2,
        h.Disconnect: 2,
        h.LoseAnswer: 2,
        h.LoseRequest: 2,
        h.Cut: 1,
        h.HalfOpen: 1,
        h.SlowNetwork: 1,
        h.Heal: 2,
    },
    scenes=SCENES,
)
PROFILES: Final = (
    MIXED,
    Profile(  # members come and go
        {h.Produce: 8, h.AdvanceClock: 8, h.Join: 5, h.Leave: 3, h.ConsumerDeath: 3, h.ConsumerPause: 2},
        scenes=(handed_over, crowded_out, dies_at_a_step, dies_at_a_step),
    ),
    Profile(  # retries and dead letters
        {h.Produce: 8, h.AdvanceClock: 8, h.Join: 1, h.Leave: 1, h.Refuse: 1, h.Disconnect: 1, h.LoseAnswer: 1},
        fails=6,
        pauses_ms=(100, 1_000, 6_000, 11_000),
        scenes=(not_taken_back, fails_in_order),
    ),
    Profile(  # broken connections and refused requests
        {
            h.Produce: 8,
            h.AdvanceClock: 6,
            h.Join: 2,
            h.Refuse: 4,
            h.Disconnect: 3,
            h.LoseAnswer: 4,
            h.LoseRequest: 4,
            h.Cut: 2,
            h.HalfOpen: 1,
            h.Heal: 2,
            h.SlowNetwork: 1,
        },
        scenes=(forgotten_offset, a_stale_view, cut_off_with_work),
    ),
    Profile(  # brokers and the nameserver fail
        {
            h.Produce: 8,
            h.AdvanceClock: 8,
            h.Join: 2,
            h.ProcessCrash: 2,
            h.PowerLoss: 2,
            h.RestartBroker: 2,
            h.StopBroker: 1,
            h.RestartNameserver: 2,
        },
        scenes=(forgotten_offset,),
    ),
)
"""Two in six histories are mixed, the others have one of these profiles."""


def opening(pick: Pick) -> list[h.Step]:
    """Messages, and members that join before or after them."""
    joined: list[h.Step] = [h.Join(member) for member in range(pick(1, 3))]
    sent: list[h.Step] = [h.Produce(broker, pick(0, 2), pick(1, 6)) for broker in range(2)]
    waits: list[h.Step] = [h.AdvanceClock((100, 3_000, 25_000)[pick(0, 2)])]
    return [*joined, *waits, *sent] if pick(0, 1) else [*sent, *waits, *joined]


def some_steps(pick: Pick, profile: Profile, *, calm: bool) -> list[h.Step]:
    """A step, or a scene; nothing that disturbs where all is to be calm."""
    if profile.scenes and not calm and pick(1, SCENE_ONE_IN) == SCENE_ONE_IN:
        return profile.scenes[pick(0, len(profile.scenes) - 1)](pick)
    choices = [kind for kind, weight in profile.weights.items() for _ in range(weight) if not calm or kind in h.CALM]
    return [step(pick, profile, choices)]


def setting(pick: Pick) -> h.Setting:
    seed = pick(0, 1 << 30)
    return h.Setting(
        seed=seed,
        brokers=pick(1, 2),
        members=pick(1, 3),
        queues=pick(1, 3),
        orderly=pick(0, 1) == 1,
        start_at_last=pick(0, 3) == 3,
        tag_a=pick(0, 3) == 3,
        concurrency=(4, 1)[pick(0, 1)],
        retries_max=pick(1, 2),
        prefetch=(8, 2, 64)[pick(0, 2)],
        pull_batch=(4, 1, 32)[pick(0, 2)],
        maintain_ms=MAINTAIN_MS[seed % len(MAINTAIN_MS)],
    )


def history(seed: int, steps: int) -> h.History:
    """The history of a seed."""
    source = random.Random(seed)

    def pick(low: int, high: int) -> int:
        return low + int(source.random() * (high - low + 1))

    chosen, profile = setting(pick), PROFILES[max(0, pick(0, len(PROFILES)) - 1)]
    calm = pick(1, CALM_ONE_IN) == CALM_ONE_IN
    taken = opening(pick)
    while len(taken) < steps:
        taken += some_steps(pick, profile, calm=calm)
    return h.History(chosen, revived(taken))


def histories(steps_max: int = 15) -> st.SearchStrategy[h.History]:
    """Histories for Hypothesis: numbers shrink towards the simplest choice, lists towards fewer steps."""

    @st.composite
    def whole(draw: st.DrawFn) -> h.History:
        def pick(low: int, high: int) -> int:
            return draw(st.integers(low, high))

        chosen, profile = setting(pick), PROFILES[max(0, pick(0, len(PROFILES)) - 1)]
        calm = pick(1, CALM_ONE_IN) == CALM_ONE_IN
        some = st.builds(lambda: some_steps(pick, profile, calm=calm))
        drawn = draw(st.lists(some, max_size=steps_max))
        return h.History(chosen, revived([*opening(pick), *[each for steps in drawn for each in steps]]))

    return whole()
