"""Steps of the world, as histories of clusters and of groups have them: what they do to a simulated cluster."""

from __future__ import annotations

from typing import TypeAlias

from conformance.cluster import history as h
from refmq.errors import CorruptRecord
from refmq.protocol.record import (
    BLANK_HEADER_BYTES,
    Record,
    decode_properties,
    decode_record,
    is_record_magic,
    read_size_and_magic,
)
from refmq.sim.cluster import Cluster
from refmq.sim.disk import SimulatedDisk
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


def damage_newest(disk: SimulatedDisk, topic: str) -> tuple[str, bytes] | None:
    """Flips a bit in the body of the newest record of a topic; its key and the body that it had. None without one, and
    for one that is damaged already: the same bit again would mend it."""
    found: tuple[str, int, Record] | None = None
    for path, data in disk.contents().items():
        if not path.startswith("commitlog/"):
            continue
        at = 0
        while at + BLANK_HEADER_BYTES <= len(data):
            size, magic = read_size_and_magic(data, at)
            if not is_record_magic(magic) or at + size > len(data):
                break
            record = decode_record(data, at, base=int(path.rpartition("/")[2]), check_crc=False)
            if record.topic == topic and record.body:
                found = (path, at, record)
            at += size
    if found is None:
        return None
    path, at, record = found
    data = disk.contents()[path]
    try:
        decode_record(data, at, base=int(path.rpartition("/")[2]))
    except CorruptRecord:
        return None
    disk.flip_bit(path, data.index(record.body, at))
    return decode_properties(record.properties).get("UNIQ_KEY", ""), record.body


async def strike(cluster: Cluster, step: OnBroker, broker: Node) -> None:
    """Does something to a broker."""
    match step:
        case h.JumpClock():
            broker.jump_clock(step.by_ms)
        case h.ProcessCrash() | h.PowerLoss() if broker.is_up or step.at:
            power = isinstance(step, h.PowerLoss)
            if step.at:
                broker.crash_at_step(step.at, step.effects, power=power)
            elif step.effects:
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
