"""Steps of the world, as histories of clusters and of groups have them: what they do to a simulated cluster."""

from __future__ import annotations

from typing import TypeAlias

from conformance.cluster import history as h
from refmq.sim.cluster import Cluster
from refmq.sim.network import Delay, Network
from refmq.sim.world import Node

OnLink: TypeAlias = h.Disconnect | h.LoseAnswer | h.LoseRequest | h.Cut | h.HalfOpen | h.SlowNetwork
OnBroker: TypeAlias = (
    h.JumpClock | h.ProcessCrash | h.PowerLoss | h.RestartBroker | h.StopBroker | h.FailFlush | h.FullDisk
)


def disturb(network: Network, step: OnLink, client: str, broker: str) -> None:
    """Breaks something between a client and a broker."""
    match step:
        case h.Disconnect():
            network.reset_between(client, broker)
        case h.LoseAnswer():
            network.lose_next(broker, client)
        case h.LoseRequest():
            network.lose_next(client, broker)
        case h.Cut():
            network.cut(broker, client, both=not step.answers_only)
        case h.HalfOpen():
            network.half_open(broker, client)
        case h.SlowNetwork():
            network.set_delay(Delay(step.by_ms / 2000, step.by_ms / 1000, hiccup_chance=0.1), client, broker)


async def strike(cluster: Cluster, step: OnBroker, broker: Node) -> None:
    """Does something to a broker."""
    match step:
        case h.JumpClock():
            broker.jump_clock(step.by_ms)
        case h.ProcessCrash() | h.PowerLoss() if broker.is_up:
            power = isinstance(step, h.PowerLoss)
            if step.effects:
                broker.crash_after(step.effects, power=power)
            else:
                broker.crash(power=power)
        case h.RestartBroker():
            await cluster.stop(broker)
            broker.start()
        case h.StopBroker():
            await cluster.stop(broker)
        case h.FailFlush() if broker.is_up:
            cluster.fail_flush(broker, step.effects)
        case h.FullDisk() if broker.is_up:
            cluster.fill_disk(broker, step.effects)
        case _:
            pass
