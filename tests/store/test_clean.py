from __future__ import annotations

from dataclasses import replace

import pytest

from refmq.errors import DiskFailed
from refmq.model.disk import DiskUsage
from refmq.model.ids import TimestampMs
from refmq.sim.choice import harshest, seeded
from refmq.sim.disk import Fault, SimulatedCrash, SimulatedDisk
from refmq.store import PutStatus, ReferenceStore, StoreConfig, direct
from refmq.store.clean import Pressure, pressure_of, used_percent
from tests.store.helpers import NOW, SMALL, at, bodies, message, new_disk, put_many, run, started

HOUR = 3_600_000
OLD = TimestampMs(NOW + 73 * HOUR)


@pytest.mark.parametrize(
    ("total", "free", "percent"), [(100, 100, 0), (100, 25, 75), (1000, 249, 76), (0, 0, -1), (7, 0, 100)]
)
def test_used_space_is_rounded_up_to_whole_percent(total: int, free: int, percent: int) -> None:
    assert used_percent(DiskUsage(total, free)) == percent


@pytest.mark.parametrize(
    ("percent", "pressure"),
    [
        (75, Pressure()),
        (76, Pressure(remove_expired=True)),
        (86, Pressure(remove_expired=True, remove_any=True)),
        (90, Pressure(remove_expired=True, remove_any=True)),
        (91, Pressure(remove_expired=True, remove_any=True, is_full=True)),
    ],
)
def test_pressure_grows_with_the_used_space(percent: int, pressure: Pressure) -> None:
    assert pressure_of(StoreConfig(), DiskUsage(100, 100 - percent)) == pressure
    if pressure.remove_any:
        assert not pressure_of(StoreConfig(clean_forcibly=False), DiskUsage(100, 100 - percent)).remove_any


def store_of(count: int, config: StoreConfig = SMALL) -> tuple[SimulatedDisk, ReferenceStore]:
    disk = new_disk()
    store = started(disk, config)
    put_many(store, count)
    run(store.maintain(at(60_000)))
    return disk, store


def test_expired_files_go_in_their_hour_and_never_the_last_one() -> None:
    _, store = store_of(200)
    files = len(store.parts.log.files.bases)
    assert files > 4
    assert run(store.clean(OLD, 3)) == 0
    assert run(store.clean(TimestampMs(NOW + 71 * HOUR), 4)) == 0
    assert run(store.clean(OLD, 4)) == files - 1
    assert len(store.parts.log.files.bases) == 1
    left = bodies(store)
    assert left == [b"%d" % number for number in range(200 - len(left), 200)]
    assert 0 < len(left) < 200
    assert store.min_offset("TopicA", 0) == 200 - len(left)
    assert store.max_offset("TopicA", 0) == 200
    assert len(store.parts.queues["TopicA", 0].files.bases) <= len(left) // 10 + 2


def test_queues_and_index_stay_right_after_a_restart() -> None:
    disk, store = store_of(200)
    run(store.clean(OLD, 4))
    left = bodies(store)
    run(store.stop(NOW))
    again = started(disk)
    assert bodies(again) == left
    assert again.min_offset("TopicA", 0) == 200 - len(left)
    for number in range(200):
        found = again.query_by_key("TopicA", f"k{number}", 9, TimestampMs(0), TimestampMs(2**62))
        assert len(found.records) == (number >= 200 - len(left))


def test_at_most_ten_files_go_in_one_run() -> None:
    _, store = store_of(200, replace(SMALL, delete_files_max=3))
    before = len(store.parts.log.files.bases)
    assert run(store.clean(OLD, 4)) == 3
    assert len(store.parts.log.files.bases) == before - 3


def test_a_file_that_is_not_expired_protects_those_after_it() -> None:
    now = NOW
    disk = SimulatedDisk(clock=lambda: now, page_bytes=512)
    store = started(disk)
    put_many(store, 100)
    # The first file was touched later than the others.
    now = OLD
    store.parts.log.files.write(0, store.parts.log.files.read(0, 1))
    assert run(store.clean(TimestampMs(OLD + HOUR), 4)) == 0


def test_what_no_checkpoint_covers_is_never_removed() -> None:
    disk = new_disk()
    store = started(disk)
    for number in range(200):
        direct.put(store, message(body=b"%d" % number), at(number))
    assert run(store.clean(OLD, 4)) == 0
    store.dispatch(100)
    assert run(store.clean(OLD, 4)) == 0
    run(store.flush())
    assert run(store.clean(OLD, 4)) == 0
    run(store.maintain(at(60_000)))
    removed = run(store.clean(OLD, 4))
    assert removed > 0
    assert store.log_min <= store.dispatched_to
    store.dispatch(1000)
    assert store.max_offset("TopicA", 0) == 200


def test_a_full_disk_refuses_puts_and_removes_files_whatever_their_age() -> None:
    disk, store = store_of(200)
    used = disk.capacity_bytes - disk.usage("").free_bytes
    disk.capacity_bytes = used * 100 // 95
    assert run(store.clean(at(1), 12)) > 0
    assert direct.put(store, message(), at(2)).status is PutStatus.SERVICE_NOT_AVAILABLE
    disk.capacity_bytes = used * 10
    run(store.clean(at(3), 12))
    assert direct.put(store, message(), at(4)).status is PutStatus.PUT_OK


def test_a_crash_while_cleaning_leaves_one_piece_of_the_log() -> None:
    """RetentionPrefix: no power loss may bring back a removed file without its neighbours."""
    total = 0
    for step in range(60):
        disk, store = store_of(120)
        disk.crash_at(disk.operations + step)
        try:
            run(store.clean(OLD, 4))
        except SimulatedCrash:
            total += 1
        for seed in range(3):
            after = disk.copy().after_power_loss(seeded(seed))
            again = started(after)
            bases = again.parts.log.files.bases
            assert bases == list(range(bases[0], bases[-1] + 1, 4096))
            left = bodies(again)
            assert left == [b"%d" % number for number in range(120 - len(left), 120)]
            assert left
    assert total > 3


def test_a_file_that_a_power_loss_brings_back_still_has_its_units() -> None:
    disk, store = store_of(120)
    run(store.maintain(at(60_000)))
    before = bodies(store)
    disk.inject(Fault.FLUSH_FAILS)
    with pytest.raises(DiskFailed):
        run(store.clean(OLD, 4))
    assert store.log_min == 4096, "the file is gone as far as this process can see"
    assert 0 < store.min_offset("TopicA", 0) < 120
    assert not store.accepts_puts
    again = started(disk.after_power_loss(harshest))
    assert again.log_min == 0
    assert bodies(again) == before


def test_deleting_a_topic_removes_its_queues_and_its_offsets_start_afresh() -> None:
    disk, store = store_of(25)
    put_many(store, 3, topic="Other")
    assert store.delete_topic("TopicA") == 1
    assert store.delete_topic("TopicA") == 0
    assert store.max_offset("TopicA", 0) == 0
    assert bodies(store, "Other") == [b"0", b"1", b"2"]
    assert disk.list("consumequeue") == ("Other",)
    put_many(store, 2)
    assert bodies(store) == [b"0", b"1"]
    run(store.maintain(at(1)))
    again = started(disk.after_process_crash())
    assert bodies(again) == [b"0", b"1"]


def test_a_topic_that_started_afresh_is_right_even_when_everything_is_rebuilt() -> None:
    disk, store = store_of(25)
    store.delete_topic("TopicA")
    put_many(store, 2)
    run(store.stop(NOW))
    disk.remove("checkpoint")
    again = started(disk)
    assert bodies(again)[:2] == [b"0", b"1"]
    assert again.max_offset("TopicA", 0) == 2
