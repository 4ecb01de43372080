from __future__ import annotations

from dataclasses import replace

import pytest

from refmq.errors import CorruptRecord
from refmq.model.ids import PhysicalOffset, QueueOffset, TimestampMs
from refmq.model.step import Event
from refmq.sim.disk import Fault
from refmq.store import Dispatched, FlushMode, LogPiece, OnDamage, PutStatus, StoreConfig, direct
from refmq.store.delay import DelayLevels
from refmq.store.dispatch import read_record, tags_code_of
from tests.protocol.test_record import GOLDEN
from tests.store.helpers import NOW, SMALL, at, bodies, message, new_disk, put, started

DELAYS = DelayLevels.parse("1s 5s")


def test_the_golden_record_is_read_for_dispatch() -> None:
    record = read_record(b"xx" + GOLDEN, 2, 0, DELAYS)
    assert (record.topic, record.queue_id, record.queue_offset, record.size) == ("TopicA", 0, 0, 135)
    assert record.tags_code == 0x003633D6
    assert record.keys == ("U0", "k0", "kk")
    assert record.store_ms == 1794795075974


@pytest.mark.parametrize(
    ("topic", "properties", "code"),
    [
        ("T", {}, 0),
        ("T", {"TAGS": "tg"}, 0xE73),
        ("T", {"TAGS": "polygenelubricants"}, -(2**31)),
        ("T", {"TAGS": "tg", "DELAY": "1"}, 0xE73),
        ("SCHEDULE_TOPIC_XXXX", {"TAGS": "tg", "DELAY": "1"}, 101_000),
        ("SCHEDULE_TOPIC_XXXX", {"DELAY": "9"}, 105_000),
        ("SCHEDULE_TOPIC_XXXX", {"TAGS": "tg", "DELAY": "0"}, 0xE73),
        ("SCHEDULE_TOPIC_XXXX", {"TAGS": "tg", "DELAY": "soon"}, 0xE73),
        ("SCHEDULE_TOPIC_XXXX", {"TAGS": "tg"}, 0xE73),
    ],
)
def test_the_tags_code_is_a_hash_or_a_time(topic: str, properties: dict[str, str], code: int) -> None:
    assert tags_code_of(topic, properties, 100_000, DELAYS) == code


def test_records_are_dispatched_in_order_and_each_once() -> None:
    events: list[Event] = []
    store = started(new_disk(), SMALL, events)
    for number in range(60):
        put(store, message(queue_id=number % 3, body=b"%d" % number, tags="tg"), at(number))
    seen: list[Dispatched] = []
    while dispatched := store.dispatch(7):
        assert len(dispatched) <= 7
        seen += dispatched
    assert len(seen) == 60
    assert [each.physical_offset for each in seen] == sorted(each.physical_offset for each in seen)
    assert {each.tags_code for each in seen} == {0xE73}
    assert store.dispatched_to == store.log_max
    traced = [event for event in events if event.action == "DispatchMessage"]
    assert [(event.a, event.b) for event in traced] == [(each.physical_offset, each.queue_offset) for each in seen]
    assert bodies(store, queue_id=1) == [b"%d" % number for number in range(1, 60, 3)]


def test_a_record_larger_than_one_read_is_dispatched() -> None:
    config = StoreConfig(log_file_bytes=1 << 20, queue_file_bytes=2000, index_enabled=False)
    store = started(new_disk(page_bytes=4096), config)
    put(store, message(body=bytes(config.piece_bytes + 1)))
    put(store, message(body=b"small"))
    assert [each.queue_offset for each in store.dispatch(10)] == [0, 1]


def test_keys_are_split_at_single_blanks_and_the_unique_key_comes_first() -> None:
    store = started(new_disk())
    put(store, message(keys="a  b a", unique="u"))
    store.dispatch(1)
    assert store.parts.index is not None
    assert store.parts.index.files[0].count == 4
    for key in ("a", "b", "u"):
        assert len(store.query_by_key("TopicA", key, 9, TimestampMs(0), TimestampMs(2**62)).records) == 1


def test_a_full_disk_stops_dispatching_and_nothing_is_lost() -> None:
    refused = 0
    for step in range(14):
        disk = new_disk()
        store = started(disk)
        for number in range(12):
            put(store, message(body=b"%d" % number, keys=f"k{number} all"))
        disk.inject(Fault.DISK_FULL, disk.operations + step * 3)
        dispatched = list(store.dispatch(100))
        assert store.max_offset("TopicA", 0) == len(dispatched), "nobody reads what has no keys yet"
        assert len(store.units("TopicA", 0, QueueOffset(0), 100)) == len(dispatched)
        if store.dispatched_to < store.log_max:
            refused += 1
            assert direct.put(store, message(), NOW).status is PutStatus.SERVICE_NOT_AVAILABLE
        dispatched += store.dispatch(100)
        assert [each.queue_offset for each in dispatched] == list(range(12)), "each is told once"
        assert bodies(store) == [b"%d" % number for number in range(12)]
        assert store.parts.queue_sum == 12
        found = store.query_by_key("TopicA", "all", 64, TimestampMs(0), TimestampMs(2**62))
        assert len(found.records) == 12
        assert store.accepts_puts
    assert refused > 5


def test_what_is_no_record_is_reported_with_its_place() -> None:
    store = started(new_disk())
    put(store, message())
    second = put(store, message())
    store.parts.log.files.write(second.physical_offset + 4, b"\0")
    with pytest.raises(CorruptRecord) as caught:
        store.dispatch(10)
    assert caught.value.field == "magic"
    assert caught.value.offset == second.physical_offset + 4
    assert store.dispatched_to == second.physical_offset


def test_a_record_that_names_no_queue_is_reported() -> None:
    data = bytearray(GOLDEN)
    data[95:101] = b"../../"
    store = started(new_disk())
    store.append_log(LogPiece(PhysicalOffset(0), bytes(data)))
    with pytest.raises(CorruptRecord, match="topic"):
        store.dispatch(1)


@pytest.mark.parametrize("on_damage", OnDamage)
def test_a_queue_offset_that_cannot_be_does_not_fill_the_disk(on_damage: OnDamage) -> None:
    store = started(new_disk(), replace(SMALL, on_damage=on_damage))
    put(store, message())
    second, third = put(store, message()), put(store, message())
    store.parts.log.files.write(second.physical_offset + 21, b"\x01")
    assert len(store.dispatch(1)) == 1
    if on_damage is OnDamage.REFUSE:
        with pytest.raises(CorruptRecord, match="queue offset"):
            store.dispatch(10)
        assert store.dispatched_to == second.physical_offset
        return
    assert [each.queue_offset for each in store.dispatch(10)] == [1, 2]
    units = store.units("TopicA", 0, QueueOffset(0), 10)
    assert [unit.physical_offset for unit in units] == [0, second.physical_offset, third.physical_offset]


def test_the_switch_dispatches_before_the_flush_as_java_does() -> None:
    config = replace(SMALL, flush_mode=FlushMode.SYNC, dispatch_unflushed=True)
    store = started(new_disk(), config)
    put(store, message(), NOW)
    assert len(store.dispatch(1)) == 1


def test_a_slave_waits_for_the_rest_of_a_blank_and_writes_nothing_into_it() -> None:
    master = started(new_disk())
    put(master, message(body=bytes(3000)))
    put(master, message(body=bytes(3000)))
    end = master.parts.log.record_at(0)
    assert end is not None
    slave = started(new_disk())
    slave.set_slave(True)
    piece = master.read_log(PhysicalOffset(0), len(end) + 100)
    assert piece is not None
    slave.append_log(piece)
    slave.dispatch(10)
    assert slave.dispatched_to == len(end)
    slave.set_slave(False)
    own = put(slave, message(body=b"own"))
    assert own.physical_offset == len(end)
    slave.dispatch(10)
    assert slave.message_at(own.physical_offset) is not None
    assert slave.max_offset(own.topic, own.queue_id) == 2


def test_a_short_record_that_claims_two_long_hosts_is_reported() -> None:
    data = bytearray(GOLDEN[:95])
    data[0:4] = (95).to_bytes(4, "big")
    data[36:40] = (0x30).to_bytes(4, "big")
    with pytest.raises(CorruptRecord):
        read_record(bytes(data), 0, 0, DELAYS)
