"""Makes histories of a cluster: from Hypothesis, which shrinks them, and from a seed, for campaigns.

Both choose from the same weights. Most steps are operations, faults are rarer, and a crash is usually followed by a
restart, so that there is somebody to find the damage.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any, Final, TypeVar, get_args

from hypothesis import strategies as st

from conformance.cluster import history as h
from conformance.cluster.administration import OF_NAMESERVERS, REQUESTS
from conformance.cluster.profiles import Profile, profile_of
from conformance.cluster.scenes import EFFECTS_MAX, Pick
from conformance.coverage import NODE_STEPS

T = TypeVar("T")

MAINTAIN_MS: Final = (100, 500, 700, 1_000)
"""How often brokers look whether something is due; most histories are quiet for minutes, and rarely pays."""

IPV6_ONE_IN: Final = 5

CALM_ONE_IN: Final = 5
"""Every so many histories nothing disturbs the cluster, and then it has to be prompt as well as right."""

DIES_AT: Final = tuple(name for name in NODE_STEPS if name not in ("ExpireFile", "StartStore"))
"""Steps right behind which a broker may die. What it does at a start comes in a life in which nothing was planned."""

AFTER_A_STEP: Final = 8
"""So many steps of the history later such a broker is started again, whether it has died or not."""

WANTED: Final[tuple[h.Wanted, ...]] = ("tag a", "tags a || b", "sql n", "sql tag", "registered", "registered sql")
"""What a pull may ask for instead of everything."""

DAMAGED: Final = (0, 0, 0, 1, 2, 3, 4, 5)
ARRANGED: Final[tuple[h.Arranged, ...]] = get_args(h.Arranged)
FORGED: Final[tuple[h.Forged, ...]] = get_args(h.Forged)

CALM: Final = (*h.OPERATIONS, h.Arrange, h.AskNameserver, h.Forge, h.AdvanceClock)
"""What happens in a history in which nothing disturbs."""


def kinds(profile: Profile, *, calm: bool) -> list[type[h.Step]]:
    """The kinds of steps to choose from, each as often as its weight says."""
    return [kind for kind, weight in profile.weights.items() for _ in range(weight) if not calm or kind in CALM]


def crash(pick: Pick, kind: Any, broker: int) -> h.ProcessCrash | h.PowerLoss:
    """A crash now, before some effect, or right behind some step."""
    match pick(0, 3):
        case 0:
            found: h.ProcessCrash | h.PowerLoss = kind(broker)
        case 1 | 2:
            found = kind(broker, pick(0, EFFECTS_MAX))
        case _:
            found = kind(broker, pick(0, 2), DIES_AT[pick(0, len(DIES_AT) - 1)])
    return found


def step(pick: Pick, profile: Profile, choices: list[type[h.Step]]) -> h.Step:
    """One step."""
    kind = choices[pick(0, len(choices) - 1)]
    client, broker, queue = pick(0, 2), pick(0, 1), pick(0, 1)
    choice: Any
    match kind.__name__:
        case "Send":
            level = pick(1, 3) if pick(0, 7) >= 8 - profile.delayed else 0
            size, at_once = (20, 20, 300, 3000, 0)[pick(0, 4)], pick(0, 3) == 3
            choice = h.Send(client, broker, queue, pick(1, 4), size, level, at_once)
        case "SendBatch":
            choice = h.SendBatch(client, broker, queue, pick(1, 5))
        case "SendHalf":
            decisions: tuple[h.Decision, ...] = ("commit", "rollback", "unknown", "none")
            kinds = (decisions[pick(0, 3)], decisions[pick(0, 3)], pick(1, 2))
            after_ms, immunity_s = (0, 0, 0, 500, 3_000)[pick(0, 4)], (0, 0, 0, 2)[pick(0, 3)]
            delay_level = pick(1, 3) if pick(0, 5) == 5 else 0
            choice = h.SendHalf(client, broker, queue, *kinds, after_ms, immunity_s, delay_level)
        case "Pull":
            wanted = WANTED[pick(0, len(WANTED) - 1)] if pick(0, 7) >= 8 - profile.filtered else "all"
            waits_ms = (200, 5_000)[pick(0, 1)] if pick(0, 7) >= 8 - profile.waiting else 0
            commit, retry = pick(0, 3) == 3, pick(0, 5) == 5
            choice = h.Pull(client, broker, queue, pick(1, 8), waits_ms, commit, wanted, retry)
        case "SendBack":
            choice = h.SendBack(client, broker, queue, pick(0, 2) == 2, (1, 1, 0, 2)[pick(0, 3)])
        case "CommitOffset":
            choice = h.CommitOffset(client, broker, queue, (0, 0, 0, 1)[pick(0, 3)])
        case "AdvanceClock":
            choice = h.AdvanceClock(profile.pauses_ms[pick(0, len(profile.pauses_ms) - 1)])
        case "JumpClock":
            choice = h.JumpClock(broker, (-1_000, -1, 1_000, 60_000, -600_000)[pick(0, 4)])
        case "ProcessCrash" | "PowerLoss":
            choice = crash(pick, kind, broker)
        case "ConsumerPause":
            choice = h.ConsumerPause(client, (1_000, 10_000, 40_000)[pick(0, 2)])
        case "Cut":
            choice = h.Cut(client, broker, bool(pick(0, 1)))
        case "ProducerDeath":
            choice = h.ProducerDeath(client)
        case "SlowNetwork":
            choice = h.SlowNetwork(client, broker, (50, 500, 2_000)[pick(0, 2)])
        case "SlowReader":
            choice = h.SlowReader(client, (5_000, 500)[pick(0, 1)])
        case "QueryRoute":
            choice = h.QueryRoute(client)
        case "Heal" | "RestartNameserver":
            choice = kind()
        case "FailFlush" | "FullDisk":
            choice = kind(broker, pick(0, EFFECTS_MAX) if pick(0, 1) else 0)  # type: ignore[call-arg,arg-type]  # it knows the fields
        case "LockQueue" | "UnlockQueue":
            choice = kind(client, broker, queue, pick(0, 2) == 2)  # type: ignore[call-arg,arg-type]  # as above
        case "Ask":
            choice = h.Ask(client, broker, pick(0, len(REQUESTS) - 1), DAMAGED[pick(0, len(DAMAGED) - 1)])
        case "AskNameserver":
            choice = h.AskNameserver(client, pick(0, len(OF_NAMESERVERS) - 1), DAMAGED[pick(0, len(DAMAGED) - 1)])
        case "Arrange":
            choice = h.Arrange(client, broker, ARRANGED[pick(0, len(ARRANGED) - 1)], pick(1, 60))
        case "Forge":
            choice = h.Forge(client, broker, FORGED[pick(0, len(FORGED) - 1)])
        case "Configure":
            choice = h.Configure(client, broker, (33, 40, 77, -1)[pick(0, 3)])
        case "SlowDisk":
            choice = h.SlowDisk(broker, (100, 700, 1_500)[pick(0, 2)])
        case "FlipBit":
            choice = h.FlipBit(broker, ("delayed", "half", "plain")[pick(0, 2)])
        case "Intrude":
            choice = h.Intrude(broker, pick(0, 8), pick(0, 1) == 1)
        case "RestartBroker" | "StopBroker":
            choice = kind(broker)  # type: ignore[call-arg]  # the case knows the fields
        case "Heartbeat":
            choice = h.Heartbeat(client, broker, pick(0, 3) == 3)
        case "Leave" | "ViewRefresh" | "QueryKey" | "Disconnect" | "LoseAnswer" | "LoseRequest" | "HalfOpen":
            choice = kind(client, broker)  # type: ignore[call-arg,arg-type]  # the case knows the fields
        case _:
            choice = kind(client, broker, queue)  # type: ignore[call-arg,arg-type]  # the case knows the fields
    assert isinstance(choice, kind)
    return choice


def looked_after(pick: Pick, each: h.Step) -> list[h.Step]:
    """A while after something happened to a broker or to a client, somebody looks who is there."""
    match each:
        case h.ProcessCrash() | h.PowerLoss() | h.StopBroker() | h.RestartBroker() | h.RestartNameserver():
            long_ms = 150_000 if isinstance(each, h.PowerLoss) else 10_000
            return [h.AdvanceClock((3_000, long_ms)[pick(0, 1)]), h.QueryRoute()]
        case h.ProducerDeath() | h.Leave() | h.Disconnect():
            client, broker = each.client + 1, each.broker if not isinstance(each, h.ProducerDeath) else pick(0, 1)
            return [h.AdvanceClock((3_000, 150_000)[pick(0, 1)]), h.ViewRefresh(client, broker)]
        case _:
            return []


def some_steps(pick: Pick, profile: Profile, choices: list[type[h.Step]], *, calm: bool) -> list[h.Step]:
    """A step and what belongs to it, or a scene; nothing that disturbs where all is to be calm."""
    if profile.scenes and pick(1, profile.scene_one_in) == profile.scene_one_in:
        scene = profile.scenes[pick(0, len(profile.scenes) - 1)](pick)
        return [each for each in scene if not calm or isinstance(each, CALM)]
    taken = step(pick, profile, choices)
    return [taken, *(looked_after(pick, taken) if profile.looks else [])]


def revived(steps: Sequence[T]) -> tuple[T | h.RestartBroker, ...]:
    """The steps with a restart after most crashes: a history in which all brokers are down finds nothing."""
    found: list[T | h.RestartBroker] = []
    due: list[tuple[int, int]] = []  # when, and which broker
    for number, each in enumerate(steps):
        found.append(each)
        if isinstance(each, h.ProcessCrash | h.PowerLoss) and (each.at or each.effects % 5):
            due.append((number + (AFTER_A_STEP if each.at else each.effects % 5), each.broker))
        if isinstance(each, h.StopBroker):
            due.append((number + 4, each.broker))
        found += [h.RestartBroker(broker) for at, broker in due if at == number]
    return tuple(found)


def setting(pick: Pick, profile: Profile) -> h.Setting:
    seed, is_silent = pick(0, 1 << 30), pick(0, 5) == 5
    return h.Setting(
        seed=seed,
        brokers=pick(1, 2),
        clients=pick(1, 3),
        queues=pick(1, 2),
        groups=pick(1, 2),
        force_register=pick(0, 1) == 0,
        sync_flush=pick(0, 7) < 8 - profile.unflushed,
        log_file_bytes=(64, 16)[pick(0, 1)] * 1024,
        silent_nameserver=is_silent,
        write_buffer_bytes=(0, 0, 0, 300)[pick(0, 3)],
        # Who changes a topic waits for a silent nameserver, and all would wait behind two of those.
        in_flight_max=(0, 0, 0, 2)[pick(0, 3)] if not is_silent else 0,
        maintain_ms=MAINTAIN_MS[seed % len(MAINTAIN_MS)],
        ipv6=seed % IPV6_ONE_IN == 0,
    )


def history(seed: int, steps: int) -> h.History:
    """The history of a seed."""
    source = random.Random(seed)

    def pick(low: int, high: int) -> int:
        return low + int(source.random() * (high - low + 1))

    profile = profile_of(pick)
    chosen, calm = setting(pick, profile), pick(1, CALM_ONE_IN) == CALM_ONE_IN
    choices = kinds(profile, calm=calm)
    taken: list[h.Step] = []
    while len(taken) < steps:
        taken += some_steps(pick, profile, choices, calm=calm)
    return h.History(chosen, revived(taken))


def histories(steps_max: int = 25) -> st.SearchStrategy[h.History]:
    """Histories for Hypothesis: numbers shrink towards the simplest choice, lists towards fewer steps."""

    def picker(draw: st.DrawFn) -> Pick:
        return lambda low, high: draw(st.integers(low, high))

    @st.composite
    def whole(draw: st.DrawFn) -> h.History:
        pick = picker(draw)
        profile = profile_of(pick)
        chosen, calm = setting(pick, profile), pick(1, CALM_ONE_IN) == CALM_ONE_IN
        choices = kinds(profile, calm=calm)
        some = st.builds(lambda p: some_steps(p, profile, choices, calm=calm), st.just(pick))
        drawn = draw(st.lists(some, max_size=steps_max))
        return h.History(chosen, revived([each for steps in drawn for each in steps]))

    return whole()
