"""The store of a real 4.9.7 broker that was killed under load, judged by `refmq verify`."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

import refmq
from interop.rocketmq import TINY_STORE, Broker, Nameserver
from refmq.errors import RefmqError
from refmq.verify.spark.log_pieces import UNIT, decode_units
from refmq.verify.spark.stores import StoreJudgement, judge_stores
from tests.verify.spark.duck import DuckEngine

TOPIC = "Judged"
SENDS = 400


@pytest.fixture(scope="module")
def nameserver(folder: Path) -> Iterator[Nameserver]:
    with Nameserver(folder / "verify-namesrv") as started:
        yield started


async def load(nameserver: str, broker: Broker) -> int:
    """Sends with message trace on while the broker is killed and started again; how many were acknowledged."""
    acknowledged = 0
    async with refmq.Producer(nameserver, group="shop", message_trace=True) as producer:
        for number in range(SENDS):
            if number == SENDS // 2:
                await asyncio.sleep(2)  # the traces of what was sent so far are on their way
                await asyncio.to_thread(broker.kill)
                await asyncio.to_thread(broker.start)
            try:
                await producer.send(TOPIC, b"message %d" % number)
                acknowledged += 1
            except RefmqError:
                await asyncio.sleep(0.1)
    return acknowledged


def judged(store: Path) -> StoreJudgement:
    return judge_stores(DuckEngine(), [store])


def test_a_killed_broker_of_upstream_keeps_what_it_acknowledged(folder: Path, nameserver: Nameserver) -> None:
    settings = {
        **TINY_STORE,
        "traceTopicEnable": "true",
        "flushDiskType": "SYNC_FLUSH",
        "mapedFileSizeCommitLog": "1048576",
    }
    broker = Broker(folder / "verified", nameserver.address, settings=settings).start()
    acknowledged = asyncio.run(asyncio.wait_for(load(nameserver.address, broker), 180))
    assert acknowledged > SENDS // 2
    broker.stop()
    copy = folder / "verified-copy"
    shutil.copytree(broker.store, copy)
    whole = judged(copy)
    assert whole.damage == [], whole.flaws[:3]
    assert whole.records > acknowledged

    # One acknowledged message is taken out of the log by hand: another key stands in its place.
    log = min(path for path in (copy / "commitlog").iterdir() if path.stat().st_size)
    data = bytearray(log.read_bytes())
    units, _, _ = decode_units(memoryview(bytes(data)), int(log.name))
    assert units.dtype == UNIT and len(units)
    at = data.index(b"UNIQ_KEY\x01") + len(b"UNIQ_KEY\x01") + 31
    data[at] ^= 1
    log.write_bytes(data)
    found = judged(copy)
    assert any(flaw.promise == "AckedSurvives" and TOPIC in flaw.sentence for flaw in found.flaws), found.flaws[:3]
