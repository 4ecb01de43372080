"""Makes histories of a cluster: from Hypothesis, which shrinks them, and from a seed, for campaigns.

Both choose from the same weights. Most steps are operations, faults are rarer, and a crash is usually followed by a
restart, so that there is somebody to find the damage.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeVar

from hypothesis import strategies as st

from conformance.cluster import history as h

T = TypeVar("T")

EFFECTS_MAX: Final = 40
"""A planned crash falls within so many effects: a send has about five."""

MAINTAIN_MS: Final = (100, 500, 700, 1_000)
"""How often brokers look whether something is due; most histories are quiet for minutes, and rarely pays."""

CALM_ONE_IN: Final = 5
"""Every so many histories nothing disturbs the cluster, and then it has to be prompt as well as right."""

WANTED: Final[tuple[h.Wanted, ...]] = ("tag a", "tags a || b", "sql n", "sql tag", "registered", "registered sql")
"""What a pull may ask for instead of everything."""

CALM: Final = (*h.OPERATIONS, h.AdvanceClock)
"""What happens in a history in which nothing disturbs."""

Pick = Callable[[int, int], int]
"""A number from a range, both ends included; the smaller, the simpler."""


@dataclass(frozen=True, slots=True)
class Profile:
    """What a history is mostly about. Mistakes hide where operations of one kind meet, and a mix of all rarely gets
    there."""

    weights: Mapping[type[h.Step], int]
    delayed: int = 2
    """Of eight sends so many are delayed."""
    waiting: int = 4
    """Of eight pulls so many wait for a message."""
    filtered: int = 2
    """Of eight pulls so many have a filter."""
    pauses_ms: tuple[int, ...] = (1, 5, 20, 100, 1_000, 10_000, 31_000)
    """How long `AdvanceClock` waits."""
    unflushed: int = 2
    """Of eight histories so many flush asynchronously."""
    looks: bool = False
    """After something happened to a broker or a client, somebody looks who is there."""
    scenes: tuple[Callable[[Pick], list[h.Step]], ...] = ()
    """Steps that belong together: what a mistake needs to show, and chance would hardly ever put in a row."""


def kinds(profile: Profile, *, calm: bool) -> list[type[h.Step]]:
    """The kinds of steps to choose from, each as often as its weight says."""
    return [kind for kind, weight in profile.weights.items() for _ in range(weight) if not calm or kind in CALM]


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
            choice = h.SendHalf(client, broker, queue, *kinds, after_ms, immunity_s)
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
            choice = h.JumpClock(broker, (-1_000, -1, 1_000, 60_000)[pick(0, 3)])
        case "ProcessCrash" | "PowerLoss":
            effects = pick(0, EFFECTS_MAX) if pick(0, 2) else 0
            choice = kind(broker, effects)  # type: ignore[call-arg,arg-type]  # the case knows the fields
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
            choice = kind(broker, pick(0, EFFECTS_MAX) if pick(0, 1) else 0)  # type: ignore[call-arg,arg-type]  # as above
        case "LockQueue" | "UnlockQueue":
            choice = kind(client, broker, queue, pick(0, 2) == 2)  # type: ignore[call-arg,arg-type]  # as above
        case "Ask":
            choice = h.Ask(client, broker, pick(0, 99), pick(0, 5))
        case "Configure":
            choice = h.Configure(client, broker, (33, 40, 77, -1)[pick(0, 3)])
        case "SlowDisk":
            choice = h.SlowDisk(broker, (100, 700, 1_500)[pick(0, 2)])
        case "FlipBit":
            choice = h.FlipBit(broker, ("delayed", "half")[pick(0, 1)])
        case "Intrude":
            choice = h.Intrude(broker, pick(0, 8), pick(0, 3) == 3)
        case "RestartBroker" | "StopBroker":
            choice = kind(broker)  # type: ignore[call-arg]  # the case knows the fields
        case (
            "Heartbeat"
            | "Leave"
            | "ViewRefresh"
            | "QueryKey"
            | "Disconnect"
            | "LoseAnswer"
            | "LoseRequest"
            | "HalfOpen"
        ):
            choice = kind(client, broker)  # type: ignore[call-arg,arg-type]  # the case knows the fields
        case _:
            choice = kind(client, broker, queue)  # type: ignore[call-arg,arg-type]  # the case knows the fields
    assert isinstance(choice, kind)
    return choice


# --- scenes ------------------------------------------------------------------------------------------------------

SCENE_ONE_IN: Final = 8
"""Of so many steps of a profile with scenes one is a scene."""


ALL: Final = 200
"""So many messages are more than a queue has."""


def crowd(pick: Pick) -> list[h.Step]:
    """Everybody reads one queue to its end and waits there, and somebody sends to it."""
    broker, queue = pick(0, 1), pick(0, 1)
    reading: list[h.Step] = [h.Pull(client, broker, queue, ALL) for client in range(3)]
    waiting: list[h.Step] = [h.Pull(client, broker, queue, 4, 20_000) for client in range(3)]
    sent = h.Send(pick(0, 2), broker, queue, pick(1, 3))
    return [*reading, h.AdvanceClock(100), *waiting, h.AdvanceClock(100), sent, h.AdvanceClock(3_000)]


def passed_over(pick: Pick) -> list[h.Step]:
    """Somebody waits for messages of one kind while others come."""
    client, broker, queue = pick(0, 2), pick(0, 1), pick(0, 1)
    wanted: h.Wanted = ("tag a", "sql tag")[pick(0, 1)]
    reads, waits = (h.Pull(client, broker, queue, ALL, wait_ms, wanted=wanted) for wait_ms in (0, 20_000))
    sent = h.Send(pick(0, 2), broker, queue)
    return [reads, h.AdvanceClock(100), waits, h.AdvanceClock(100), sent, h.AdvanceClock(10_000)]


def overdue(pick: Pick) -> list[h.Step]:
    """More delayed messages than a queue file holds become due while their broker is down."""
    broker, queue = pick(0, 1), pick(0, 1)
    sent = h.Send(pick(0, 2), broker, queue, (3, 70)[pick(0, 1)], delay_level=3)
    return [sent, h.AdvanceClock(1_000), h.StopBroker(broker), h.AdvanceClock(10_000), h.RestartBroker(broker)]


def delivered_before_a_stop(pick: Pick) -> list[h.Step]:
    """A broker is stopped in good order soon after it delivered a delayed message."""
    broker = pick(0, 1)
    sent = h.Send(pick(0, 2), broker, pick(0, 1), pick(1, 3), delay_level=1)
    return [sent, h.AdvanceClock((1_100, 1_500, 3_000)[pick(0, 2)]), h.RestartBroker(broker), h.AdvanceClock(100)]


def no_room_to_deliver(pick: Pick) -> list[h.Step]:
    """The disk is full at the moment at which a delayed message is due."""
    broker = pick(0, 1)
    sent = h.Send(pick(0, 2), broker, pick(0, 1), pick(1, 2), delay_level=1)
    return [sent, h.AdvanceClock(900), h.FullDisk(broker, pick(0, 5)), h.AdvanceClock(3_000)]


def no_room_to_end(pick: Pick) -> list[h.Step]:
    """The disk is full now and then while a transaction ends, or while its producer is asked."""
    client, broker, queue = pick(0, 2), pick(0, 1), pick(0, 1)
    answers: tuple[h.Decision, ...] = ("commit", "rollback", "unknown", "none")
    half = h.SendHalf(client, broker, queue, answers[pick(0, 3)], answers[pick(0, 3)])
    full: list[h.Step] = [h.FullDisk(broker, pick(0, EFFECTS_MAX)) for _ in range(3)]
    return [h.Heartbeat(client, broker), *full, half, h.AdvanceClock(5_000)]


def late_decision(pick: Pick) -> list[h.Step]:
    """A decision comes when its half message is gone with the power, and another one may be in its place."""
    client, broker, queue = pick(0, 2), pick(0, 1), pick(0, 1)
    late = h.SendHalf(client, broker, queue, "commit", ("commit", "rollback")[pick(0, 1)], after_ms=2_000)
    other = h.SendHalf(pick(0, 2), broker, queue, "none", ("rollback", "commit")[pick(0, 1)])
    return [late, h.AdvanceClock(20), h.PowerLoss(broker), h.RestartBroker(broker), h.AdvanceClock(100), other]


def dies_deciding(pick: Pick) -> list[h.Step]:
    """A broker dies while a transaction ends."""
    client, broker = pick(0, 2), pick(0, 1)
    half = h.SendHalf(client, broker, pick(0, 1), "commit", ("commit", "rollback")[pick(0, 1)], after_ms=50)
    crash = (h.ProcessCrash, h.PowerLoss)[pick(0, 1)](broker, pick(1, 8))
    return [half, h.AdvanceClock(49), crash, h.AdvanceClock(200), h.RestartBroker(broker), h.AdvanceClock(3_000)]


def dies_in_a_round(pick: Pick) -> list[h.Step]:
    """A broker dies while it looks through the halves that nobody has decided."""
    client, broker, queue = pick(0, 2), pick(0, 1), pick(0, 1)
    halves: list[h.Step] = [h.SendHalf(client, broker, queue, "none", "unknown") for _ in range(2)]
    wait = h.AdvanceClock((1_000, 2_000, 6_000)[pick(0, 2)])
    crash = (h.ProcessCrash, h.PowerLoss)[pick(0, 1)](broker, pick(1, 6))
    return [h.Heartbeat(client, broker), *halves, wait, crash, h.AdvanceClock(1_100), h.RestartBroker(broker)]


def immune(pick: Pick) -> list[h.Step]:
    """Nobody decides, and the broker has to wait for a while until it may ask."""
    client, broker = pick(0, 2), pick(0, 1)
    half = h.SendHalf(client, broker, pick(0, 1), "none", "commit", immunity_s=(2, 4)[pick(0, 1)])
    return [h.Heartbeat(client, broker), half, h.AdvanceClock(6_000)]


def damaged(pick: Pick) -> list[h.Step]:
    """One of several messages that a broker keeps for later can no longer be read."""
    client, broker, queue = pick(0, 2), pick(0, 1), pick(0, 1)
    if pick(0, 1):
        kept: h.Step = h.Send(client, broker, queue, pick(1, 2), delay_level=pick(1, 2))
        flip = h.FlipBit(broker, "delayed")
    else:
        kept, flip = h.SendHalf(client, broker, queue, "none", "commit"), h.FlipBit(broker, "half")
    return [h.Heartbeat(client, broker), kept, h.AdvanceClock(100), flip, kept, h.AdvanceClock(3_000)]


def plenty(pick: Pick) -> list[h.Step]:
    """Somebody wants more messages than a broker gives at once."""
    client, broker, queue = pick(0, 2), pick(0, 1), pick(0, 1)
    sent: list[h.Step] = [h.SendBatch(client, broker, queue, 20), h.SendBatch(client + 1, broker, queue, 20)]
    return [*sent, h.AdvanceClock(100), h.Pull(pick(0, 2), broker, queue, (33, ALL)[pick(0, 1)])]


def found_soon(pick: Pick) -> list[h.Step]:
    """Somebody looks for a topic soon after its first message."""
    sent = h.Send(pick(0, 2), pick(0, 1), pick(0, 1))
    return [sent, h.AdvanceClock(1_500), h.QueryRoute(pick(0, 2))]


def one_goes(pick: Pick) -> list[h.Step]:
    """Several wait for messages, and the connection of one of them ends before any come."""
    broker, queue, gone = pick(0, 1), pick(0, 1), pick(0, 2)
    reading: list[h.Step] = [h.Pull(client, broker, queue, ALL) for client in range(3)]
    waiting: list[h.Step] = [h.Pull(client, broker, queue, 4, 20_000) for client in range(3)]
    sent = h.Send(gone + 1, broker, queue)
    return [*reading, h.AdvanceClock(100), *waiting, h.AdvanceClock(100), h.Disconnect(gone, broker), *_pause(), sent]


def _pause() -> list[h.Step]:
    return [h.AdvanceClock(1_000)]


def slow_flush(pick: Pick) -> list[h.Step]:
    """The disk takes longer for a flush than a producer may be kept waiting, and then the power goes."""
    broker, queue = pick(0, 1), pick(0, 1)
    slow = h.SlowDisk(broker, (700, 1_500, 1_500)[pick(0, 2)])
    return [slow, h.Send(pick(0, 2), broker, queue, pick(1, 3), at_once=True), h.AdvanceClock(1_300)]


def kept_alive(pick: Pick) -> list[h.Step]:
    """A member sends its heartbeats for longer than one of them lasts, and another one looks who is there."""
    client, broker = pick(0, 2), pick(0, 1)
    beats: list[h.Step] = [h.Heartbeat(client, broker), h.AdvanceClock(31_000)]
    return [*beats * 5, h.ViewRefresh(client + 1, broker)]


MIXED: Final = Profile(
    {
        h.Send: 9,
        h.SendBatch: 2,
        h.Pull: 9,
        h.SendBack: 2,
        h.AdvanceClock: 8,
        h.CommitOffset: 3,
        h.QueryOffset: 2,
        h.LockQueue: 3,
        h.UnlockQueue: 1,
        h.Heartbeat: 2,
        h.Leave: 1,
        h.ViewRefresh: 1,
        h.QueryRoute: 1,
        h.QueryKey: 1,
        h.QueryBounds: 1,
        h.Ask: 3,
        h.Configure: 1,
        h.Intrude: 1,
        h.SlowDisk: 1,
        h.SendHalf: 4,
        h.RestartBroker: 3,
        h.ProcessCrash: 2,
        h.PowerLoss: 3,
        h.LoseAnswer: 2,
        h.LoseRequest: 1,
        h.Disconnect: 1,
        h.Cut: 1,
        h.HalfOpen: 1,
        h.Heal: 1,
        h.ProducerDeath: 1,
        h.ConsumerPause: 1,
        h.JumpClock: 1,
        h.FailFlush: 1,
        h.FullDisk: 1,
        h.StopBroker: 1,
        h.SlowNetwork: 1,
        h.SlowReader: 1,
    }
)
PROFILES: Final = (
    MIXED,
    Profile(  # long polling
        {h.Send: 8, h.SendBatch: 2, h.Pull: 10, h.AdvanceClock: 4, h.Disconnect: 1, h.RestartBroker: 1},
        delayed=0,
        waiting=7,
        filtered=2,
        scenes=(crowd, passed_over, one_goes),
    ),
    Profile(  # offsets
        {
            h.Pull: 8,
            h.CommitOffset: 6,
            h.QueryOffset: 4,
            h.Send: 5,
            h.AdvanceClock: 4,
            h.RestartBroker: 2,
            h.ProcessCrash: 1,
            h.LoseRequest: 1,
        },
        delayed=0,
        waiting=1,
        filtered=0,
    ),
    Profile(  # transactions
        {
            h.SendHalf: 8,
            h.Pull: 3,
            h.AdvanceClock: 5,
            h.Heartbeat: 3,
            h.RestartBroker: 2,
            h.PowerLoss: 2,
            h.ProcessCrash: 1,
            h.ProducerDeath: 1,
            h.LoseAnswer: 1,
            h.SlowNetwork: 1,
        },
        unflushed=4,
        scenes=(no_room_to_end, late_decision, late_decision, immune, dies_deciding, dies_in_a_round),
    ),
    Profile(  # members and routes
        {
            h.Heartbeat: 6,
            h.Leave: 3,
            h.ViewRefresh: 4,
            h.QueryRoute: 4,
            h.AdvanceClock: 4,
            h.Send: 4,
            h.ProducerDeath: 2,
            h.Disconnect: 1,
            h.RestartBroker: 1,
            h.StopBroker: 2,
            h.ProcessCrash: 2,
            h.PowerLoss: 2,
            h.RestartNameserver: 1,
        },
        delayed=0,
        pauses_ms=(100, 1_000, 3_000, 10_000, 31_000, 140_000),
        looks=True,
        scenes=(kept_alive, found_soon, found_soon),
    ),
    Profile(  # delays and retries
        {
            h.Send: 8,
            h.Pull: 8,
            h.SendBack: 5,
            h.AdvanceClock: 6,
            h.RestartBroker: 3,
            h.PowerLoss: 1,
            h.ProcessCrash: 1,
        },
        delayed=5,
        waiting=1,
        filtered=0,
        scenes=(overdue, delivered_before_a_stop, no_room_to_deliver),
    ),
    Profile(  # locks
        {
            h.LockQueue: 8,
            h.UnlockQueue: 3,
            h.AdvanceClock: 6,
            h.RestartBroker: 1,
            h.ProcessCrash: 1,
            h.ProducerDeath: 1,
        }
    ),
    Profile(  # filters and batches
        {
            h.Send: 6,
            h.SendBatch: 4,
            h.Pull: 8,
            h.Heartbeat: 2,
            h.QueryKey: 2,
            h.QueryBounds: 2,
            h.AdvanceClock: 3,
            h.PowerLoss: 1,
            h.RestartBroker: 1,
        },
        delayed=0,
        waiting=1,
        filtered=6,
        scenes=(plenty,),
    ),
    Profile(  # operators, and programs that are broken
        {
            h.Ask: 12,
            h.Configure: 4,
            h.Intrude: 4,
            h.Send: 5,
            h.Pull: 4,
            h.Heartbeat: 2,
            h.CommitOffset: 1,
            h.AdvanceClock: 5,
            h.RestartBroker: 1,
        },
        pauses_ms=(1, 20, 100, 1_000, 10_000),
    ),
    Profile(  # slow disks
        {
            h.Send: 10,
            h.SendBatch: 2,
            h.Pull: 6,
            h.AdvanceClock: 6,
            h.SlowDisk: 2,
            h.PowerLoss: 1,
            h.ProcessCrash: 1,
            h.RestartBroker: 1,
        },
        scenes=(slow_flush,),
    ),
    Profile(  # damage
        {h.Send: 5, h.SendHalf: 4, h.Pull: 5, h.AdvanceClock: 6, h.Heartbeat: 2, h.FlipBit: 2},
        delayed=5,
        waiting=1,
        scenes=(damaged,),
    ),
)
"""Three in thirteen histories are mixed, the others have one of these profiles."""


def profile_of(pick: Pick) -> Profile:
    return PROFILES[max(0, pick(0, len(PROFILES) + 1) - 2)]


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
    if profile.scenes and pick(1, SCENE_ONE_IN) == SCENE_ONE_IN:
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
        if isinstance(each, h.ProcessCrash | h.PowerLoss) and each.effects % 5:
            due.append((number + each.effects % 5, each.broker))
        if isinstance(each, h.StopBroker):
            due.append((number + 4, each.broker))
        found += [h.RestartBroker(broker) for at, broker in due if at == number]
    return tuple(found)


def setting(pick: Pick, profile: Profile) -> h.Setting:
    seed = pick(0, 1 << 30)
    return h.Setting(
        seed=seed,
        brokers=pick(1, 2),
        clients=pick(1, 3),
        queues=pick(1, 2),
        groups=pick(1, 2),
        force_register=pick(0, 1) == 0,
        sync_flush=pick(0, 7) < 8 - profile.unflushed,
        log_file_bytes=(64, 16)[pick(0, 1)] * 1024,
        silent_nameserver=pick(0, 5) == 5,
        write_buffer_bytes=(0, 0, 0, 300)[pick(0, 3)],
        maintain_ms=MAINTAIN_MS[seed % len(MAINTAIN_MS)],
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
