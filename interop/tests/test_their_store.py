"""The reference serves every message of a store that a real 4.9.7 broker wrote, stopped cleanly or killed."""

from __future__ import annotations

import asyncio
import shutil
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from interop.ask import asking
from interop.rocketmq import TINY_STORE, Broker, Clients, Nameserver
from refmq.inspect.files import look_at_store
from refmq.inspect.log import Found, read_records
from refmq.inspect.verify import verify_store
from refmq.model.ids import PhysicalOffset, QueueOffset, TimestampMs
from refmq.net.files import RealDisk
from refmq.protocol.record import decode_properties, encode_record
from refmq.store import ReferenceStore, StoreConfig

CONFIG = StoreConfig(log_file_bytes=65536, queue_file_bytes=800, index_slots=100, index_entries=400)


@pytest.fixture(scope="module")
def nameserver(folder: Path) -> Iterator[Nameserver]:
    with Nameserver(folder / "store-namesrv") as started:
        yield started


def log_of(store: Path) -> list[Found]:
    """Every record of a stopped store."""
    disk = RealDisk(store)
    try:
        return [item for item in read_records(disk, look_at_store(disk).log) if isinstance(item, Found)]
    finally:
        disk.close()


def queues_of(records: list[Found]) -> dict[tuple[str, int], list[bytes]]:
    queues: dict[tuple[str, int], list[bytes]] = {}
    for item in records:
        queues.setdefault((item.record.topic, item.record.queue_id), []).append(item.data)
    return queues


@pytest.mark.parametrize("end", ["clean", "kill"])
def test_we_serve_a_store_that_the_real_broker_wrote(
    folder: Path, nameserver: Nameserver, clients: dict[str, Clients], end: str
) -> None:
    broker = Broker(folder / f"writes-{end}", nameserver.address, settings=TINY_STORE).start()
    topic = f"Theirs{end.capitalize()}"
    kinds = ("plain:120", "big:2", "batch:5", "delay:2", "commit:2", "rollback:1")
    sent = clients["4.9.8"].run("Produce", nameserver.address, topic, *kinds)
    assert len(sent) > 120
    with asking(broker.port) as broker_says:
        served = {queue_id: broker_says.queue(topic, queue_id) for queue_id in range(4)}
    if end == "clean":
        broker.stop()
    else:
        broker.kill()
    copy = folder / f"copy-{end}"
    shutil.copytree(broker.store, copy)
    written = log_of(copy)
    assert all(encode_record(item.record) == item.data for item in written)
    asyncio.run(_serve_all(copy, topic, written, served))
    verified = verify_store(RealDisk(copy))
    assert verified.is_sound, verified.findings
    assert log_of(copy) == written


async def _serve_all(copy: Path, topic: str, written: list[Found], served: dict[int, list[bytes]]) -> None:
    store = ReferenceStore(RealDisk(copy), CONFIG)
    now_ms = TimestampMs(int(time.time() * 1000))
    await store.start(now_ms)
    try:
        for (name, queue_id), records in queues_of(written).items():
            found: list[bytes] = []
            offset = store.min_offset(name, queue_id)
            while offset < store.max_offset(name, queue_id):
                result = store.get_message(name, queue_id, QueueOffset(offset), 32)
                assert result.next_offset > offset
                found += result.records
                offset = result.next_offset
            assert found == records
            if name == topic:  # what the real broker had served before it ended is all there
                assert found[: len(served[queue_id])] == served[queue_id]
        for item in written:
            assert store.message_at(PhysicalOffset(item.record.physical_offset)) == item.data
            properties = decode_properties(item.record.properties)
            if "UNIQ_KEY" in properties:
                found_by_key = store.query_by_key(
                    item.record.topic, properties["UNIQ_KEY"], 64, TimestampMs(0), TimestampMs(1 << 60)
                )
                assert item.data in found_by_key.records
    finally:
        await store.stop(now_ms)
