"""One history, crashed at every single effect of the disk, recovered, and crashed again at effects of the recovery.

The campaigns of conformance/ generate histories; this is the short list that runs with every change of the store.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace

import pytest

from refmq.model.ids import PhysicalOffset, QueueOffset, TimestampMs
from refmq.protocol.record import BatchedMessage, decode_properties, decode_record, encode_batch
from refmq.sim.choice import Choose, harshest, mildest, seeded
from refmq.sim.disk import SimulatedCrash, SimulatedDisk
from refmq.store import BatchToStore, FlushMode, PutStatus, ReferenceStore, StoreConfig, direct
from refmq.store.consume_queue import BLANK_SIZE
from tests.store.helpers import BORN, HERE, NOW, SMALL, ack, at, message, new_disk, run

CONFIG = replace(
    SMALL, flush_mode=FlushMode.SYNC, page_bytes=128, queue_flush_interval_ms=5, queue_flush_thorough_ms=11
)


@dataclass
class Seen:
    """What the producers know."""

    sent: dict[bytes, bytes] = field(default_factory=dict)
    """Body -> properties as they must be stored."""
    acknowledged: dict[tuple[str, int, int], bytes] = field(default_factory=dict)


def history(store: ReferenceStore, seen: Seen) -> None:
    """Puts of several kinds into several queues; small files, so that everything rolls."""
    run(store.start(NOW))
    for number in range(14):
        body = b"m%d" % number * (1 + number % 5 * 20)
        one = message(f"T{number % 2}", number % 3, body, keys=f"k{number} all", unique=f"U{number}")
        seen.sent[body] = one.properties
        result = direct.put(store, one, at(number))
        waiting = [(result, [body])]
        if number % 5 == 2:
            batch = [b"b%d-%d" % (number, member) for member in range(3)]
            seen.sent.update(dict.fromkeys(batch, b"KEYS\x01all\x02CLUSTER\x01c"))
            encoded = encode_batch(tuple(BatchedMessage(0, one, b"KEYS\x01all") for one in batch))
            to_store = BatchToStore("T0", 0, encoded, b"CLUSTER\x01c", NOW, BORN, HERE)
            result = direct.put_batch(store, to_store, at(number))
            waiting.append((result, batch))
        if number % 3 != 1:
            run(store.flush())
            for result, contents in waiting:
                assert ack(store, result) is PutStatus.PUT_OK
                for index, body in enumerate(contents):
                    seen.acknowledged[result.topic, result.queue_id, result.queue_offset + index] = body
        store.dispatch(2 if number % 4 else 20)
        run(store.maintain(at(number * 3)))
    run(store.stop(at(100)))


def check(store: ReferenceStore, seen: Seen) -> None:
    """AckedSurvives, NoInvention, QueueMatchesLog, IndexFindsEveryKey.

    What was served counts as acknowledged from here on: NeverServeUnflushed.
    """
    store.dispatch(1000)
    served: dict[tuple[str, int, int], bytes] = {}
    in_queues: set[int] = set()
    for queue in store.queues():
        for queue_offset in range(
            store.min_offset(queue.topic, queue.queue_id), store.max_offset(queue.topic, queue.queue_id)
        ):
            (unit,) = store.units(queue.topic, queue.queue_id, QueueOffset(queue_offset), 1)
            assert unit.size_bytes != BLANK_SIZE
            data = store.message_at(unit.physical_offset)
            assert data is not None
            record = decode_record(data)
            assert (record.topic, record.queue_id, record.queue_offset) == (queue.topic, queue.queue_id, queue_offset)
            assert len(data) == unit.size_bytes
            served[queue.topic, queue.queue_id, queue_offset] = record.body
            in_queues.add(unit.physical_offset)
            assert seen.sent[record.body] == record.properties
            properties = decode_properties(record.properties)
            keys = [*properties.get("KEYS", "").split(), *properties.get("UNIQ_KEY", "").split()]
            for key in keys:
                found = store.query_by_key(record.topic, key, 64, TimestampMs(0), TimestampMs(2**62))
                assert found.records.count(data) == 1, (key, record.physical_offset)
    for place, body in seen.acknowledged.items():
        assert served.get(place) == body, f"{place} was acknowledged"
    assert all_records(store) == in_queues
    seen.acknowledged = served


def go_on(store: ReferenceStore, seen: Seen) -> None:
    """Some more messages after a recovery, of many sizes and not flushed: they may meet what the crash left behind."""
    for number in range(6):
        body = b"after%d" % number * (number + 1)
        one = message(f"T{number % 2}", 0, body, keys="all", unique=f"A{number}")
        seen.sent[body] = one.properties
        direct.put(store, one, at(300 + number))


def all_records(store: ReferenceStore) -> set[int]:
    """The physical offsets of all records, read from the log itself."""
    found = set()
    position = store.log_min
    while position < store.log_max:
        data = store.message_at(PhysicalOffset(position))
        if data is None:
            position = PhysicalOffset(store.parts.log.next_file(position))
            continue
        found.add(int(position))
        position = PhysicalOffset(position + len(data))
    return found


def effects_of(work: Callable[[SimulatedDisk], None]) -> int:
    disk = new_disk(page_bytes=128)
    work(disk)
    return disk.operations


def crashed(disk: SimulatedDisk, choose: Choose | None) -> SimulatedDisk:
    return disk.after_process_crash() if choose is None else disk.after_power_loss(choose)


FAULTS: dict[str, Callable[[int], Choose | None]] = {
    "process crash": lambda seed: None,
    "power loss, nothing kept": lambda seed: harshest,
    "power loss, everything kept": lambda seed: mildest,
    "power loss": seeded,
    "another power loss": lambda seed: seeded(seed + 10_000),
}


@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize("config", [CONFIG, replace(CONFIG, ext_enabled=True)], ids=["plain", "ext"])
def test_a_crash_between_any_two_effects_is_recovered(fault: str, config: StoreConfig) -> None:
    total = effects_of(lambda disk: history(ReferenceStore(disk, config), Seen()))
    assert total > 200
    crashes = 0
    for number in range(list(FAULTS).index(fault), total, 5 if config is CONFIG else 31):
        disk = new_disk(page_bytes=128)
        disk._choose = seeded(number)
        disk.crash_at(number)
        seen = Seen()
        with pytest.raises(SimulatedCrash):
            history(ReferenceStore(disk, config), seen)
        crashes += 1
        disk = crashed(disk, FAULTS[fault](number))
        store = ReferenceStore(disk, config)
        run(store.start(at(200)))
        check(store, seen)
        go_on(store, seen)
        disk = disk.after_power_loss(FAULTS[fault](number + 1) or seeded(number))
        store = ReferenceStore(disk, config)
        run(store.start(at(400)))
        check(store, seen)
    assert crashes


@pytest.mark.parametrize("fault", ["process crash", "power loss", "power loss, nothing kept"])
def test_a_crash_inside_recovery_is_recovered_as_well(fault: str) -> None:
    total = effects_of(lambda disk: history(ReferenceStore(disk, CONFIG), Seen()))
    for number in range(5, total, 127):
        first = new_disk(page_bytes=128)
        first.crash_at(number)
        seen = Seen()
        with pytest.raises(SimulatedCrash):
            history(ReferenceStore(first, CONFIG), seen)
        first = crashed(first, FAULTS[fault](number))
        undisturbed = first.copy()
        reference = ReferenceStore(undisturbed, CONFIG)
        run(reference.start(at(200)))
        check(reference, seen)
        wanted = {name: data for name, data in undisturbed.contents().items() if not name.startswith("index/")}
        for step in range(undisturbed.operations):
            disk = first.copy()
            disk.crash_at(step)
            with pytest.raises(SimulatedCrash):
                run(ReferenceStore(disk, CONFIG).start(at(200)))
            disk = crashed(disk, FAULTS[fault](number * 1000 + step))
            store = ReferenceStore(disk, CONFIG)
            run(store.start(at(300)))
            check(store, seen)
            if fault == "process crash":
                found = {name: data for name, data in disk.contents().items() if not name.startswith("index/")}
                assert {k: v for k, v in found.items() if k != "checkpoint"} == {
                    k: v for k, v in wanted.items() if k != "checkpoint"
                }
