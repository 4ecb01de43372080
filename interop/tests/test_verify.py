"""A real 4.9.7 broker that is killed under load, judged by `refmq verify`: its store, and what our clients recorded."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

import refmq
from interop.rocketmq import TINY_STORE, Broker, Nameserver
from refmq.errors import RefmqError
from refmq.verify.local import judge_here
from refmq.verify.oracles import Promises
from refmq.verify.recordings import find_recordings
from refmq.verify.spark.log_pieces import UNIT, decode_units
from refmq.verify.spark.stores import StoreJudgement, judge_stores
from refmq.verify.verdicts import Status, Verdict
from tests.verify.spark.duck import DuckEngine

TOPIC = "Judged"
TRACED = "Traced"
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


# --- what clients recorded beside it ----------------------------------------------------------------------------------

KILLS = 2
TRACED_SENDS = 300
QUIET_S = 25.0
UNIT_BYTES = 20
ABOUT_PLACES = ("AckedSurvives", "NoInvention", "InconsistentOffset", "SkippedPoll", "NonmonotonicPoll", "AbortedRead")


async def produce(nameserver: str, broker: Broker, traces: Path) -> set[bytes]:
    """Sends with a trace while the broker is killed and started again; the bodies that were acknowledged."""
    acknowledged = set()
    async with refmq.Producer(nameserver, group="shop", trace=traces) as producer:
        for number in range(TRACED_SENDS):
            if number and number % (TRACED_SENDS // (KILLS + 1)) == 0:
                broker.kill()
                broker.start()
            body = b"traced %d" % number
            try:
                await producer.send(TRACED, body)
                acknowledged.add(body)
            except RefmqError:
                await asyncio.sleep(0.1)
    return acknowledged


async def consume(nameserver: str, group: str, traces: Path, wanted: set[bytes]) -> set[bytes]:
    """Reads until everything wanted was there, or nothing comes any more."""
    got: set[bytes] = set()
    async with refmq.Consumer(nameserver, group=group, topics=TRACED, start="first", trace=traces) as consumer:
        messages = aiter(consumer)
        while not wanted <= got:
            try:
                message = await asyncio.wait_for(anext(messages), QUIET_S)
            except TimeoutError:
                break
            async with message.processing():
                got.add(message.body)
    return got


def statuses_of(traces: Path) -> dict[str, Verdict]:
    judgement = judge_here(find_recordings([traces]), Promises(flush_sync=True, settled=True))
    return {verdict.invariant: verdict for verdict in judgement.verdicts}


def test_what_clients_saw_of_a_killed_broker_is_judged(folder: Path, nameserver: Nameserver) -> None:
    settings = {**TINY_STORE, "flushDiskType": "SYNC_FLUSH", "mappedFileSizeCommitLog": "1048576"}
    broker = Broker(folder / "recorded", nameserver.address, name="broker-traced", settings=settings).start()
    traces = folder / "recorded-traces"
    acknowledged = asyncio.run(asyncio.wait_for(produce(nameserver.address, broker, traces), 240))
    assert len(acknowledged) > TRACED_SENDS // 2
    assert acknowledged <= asyncio.run(
        asyncio.wait_for(consume(nameserver.address, "billing", traces, acknowledged), 120)
    )
    kept = statuses_of(traces)
    assert [verdict.invariant for verdict in kept.values() if verdict.status is Status.BROKEN] == []
    assert {kept[name].status for name in ABOUT_PLACES} == {Status.KEPT}

    # An acknowledged message is taken out of its queue by hand: the unit of the next one stands in its place.
    broker.stop()
    queue = max((broker.store / "consumequeue" / TRACED).iterdir(), key=lambda path: len(list(path.iterdir())))
    first = min(queue.iterdir())
    units = bytearray(first.read_bytes())
    units[3 * UNIT_BYTES : 4 * UNIT_BYTES] = units[4 * UNIT_BYTES : 5 * UNIT_BYTES]
    first.write_bytes(units)
    broker.start()
    asyncio.run(asyncio.wait_for(consume(nameserver.address, "auditors", traces, acknowledged), 180))
    broker.stop()
    broken = statuses_of(traces)["AckedSurvives"]
    assert broken.status is Status.BROKEN
    assert any(f"offset 3 of {TRACED}/{queue.name}" in shown.sentence for shown in broken.shown), broken.shown[:2]
