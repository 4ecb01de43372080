"""What histories of a cluster are about: which steps, how often, and which scenes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

from conformance.cluster import history as h
from conformance.cluster import scenes
from conformance.cluster.scenes import Pick


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
    scene_one_in: int = 8
    """Of so many steps of a profile with scenes one is a scene."""
    scenes: tuple[Callable[[Pick], list[h.Step]], ...] = ()
    """Steps that belong together: what a mistake needs to show, and chance would hardly ever put in a row."""


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
        h.Arrange: 1,
        h.AskNameserver: 1,
        h.Forge: 1,
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
        scenes=(scenes.crowd, scenes.passed_over, scenes.one_goes),
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
        scenes=(scenes.dies_with_offsets,),
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
            h.Forge: 2,
        },
        unflushed=4,
        scenes=(
            scenes.no_room_to_end,
            scenes.late_decision,
            scenes.late_decision,
            scenes.immune,
            scenes.dies_deciding,
            scenes.dies_in_a_round,
            scenes.dies_at_a_step,
            scenes.dies_at_a_step,
            scenes.stopped_in_a_round,
        ),
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
        scenes=(scenes.kept_alive, scenes.found_soon, scenes.found_soon),
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
            h.JumpClock: 1,
        },
        delayed=5,
        waiting=1,
        filtered=0,
        scenes=(scenes.overdue, scenes.delivered_before_a_stop, scenes.no_room_to_deliver),
    ),
    Profile(  # locks
        {
            h.LockQueue: 8,
            h.UnlockQueue: 3,
            h.AdvanceClock: 6,
            h.RestartBroker: 1,
            h.ProcessCrash: 1,
            h.ProducerDeath: 1,
        },
        scenes=(scenes.dies_with_a_lock,),
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
        scenes=(scenes.plenty, scenes.dies_rolling, scenes.dies_starting, scenes.reads_slowly),
    ),
    Profile(  # operators, and programs that are broken
        {
            h.Ask: 12,
            h.AskNameserver: 6,
            h.Arrange: 8,
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
        scenes=(scenes.slow_flush, scenes.dies_rolling),
    ),
    Profile(  # damage
        {h.Send: 5, h.SendHalf: 4, h.Pull: 5, h.AdvanceClock: 6, h.Heartbeat: 2, h.FlipBit: 2},
        delayed=5,
        waiting=1,
        scenes=(scenes.damaged,),
    ),
    Profile(  # deaths right behind rare steps
        {h.Send: 4, h.SendHalf: 2, h.Pull: 4, h.AdvanceClock: 5, h.Heartbeat: 1, h.RestartBroker: 1},
        scene_one_in=4,
        scenes=(
            *(scenes.dies_at_a_step,) * 6,
            *(scenes.dies_with_a_lock,) * 2,
            scenes.dies_with_offsets,
            scenes.dies_rolling,
            scenes.dies_starting,
            scenes.stopped_in_a_round,
        ),
    ),
)
"""Three in fourteen histories are mixed, the others have one of these profiles."""


def profile_of(pick: Pick) -> Profile:
    return PROFILES[max(0, pick(0, len(PROFILES) + 1) - 2)]
