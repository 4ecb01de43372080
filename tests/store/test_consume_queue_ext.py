from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from refmq.filter import BloomFilter, compile_expression
from refmq.filter.message_filter import BitmapTest, MessageFilter
from refmq.filter.registry import FilterData, FilterRegistry, Filters
from refmq.model.ids import PhysicalOffset, QueueOffset, TimestampMs
from refmq.sim.disk import SimulatedDisk
from refmq.store import GetStatus, ReferenceStore
from refmq.store.consume_queue_ext import ADDRESS_BASE, ConsumeQueueExt, ExtUnit, encode_ext_unit, is_ext_address
from refmq.store.file_sequence import DirectoryNames
from tests.store.helpers import NOW, SMALL, bodies, message, new_disk, put, run

WITH_EXT = replace(SMALL, ext_enabled=True)


def ext_on(disk: SimulatedDisk) -> ConsumeQueueExt:
    return ConsumeQueueExt(disk, DirectoryNames(disk), "TopicA", 0, WITH_EXT)


def test_golden_units_and_addresses() -> None:
    assert encode_ext_unit(ExtUnit(0xE73, TimestampMs(1))).hex() == "00140000000000000e7300000000000000010000"
    ext = ext_on(new_disk())
    assert ext.put_unit(0xE73, 1, b"") & (2**64 - 1) == 0x8000000000000000
    assert ext.put_unit(0xE73, 1, b"") & (2**64 - 1) == 0x8000000000000014


@pytest.mark.parametrize(
    ("code", "is_address"), [(-(2**31), False), (-(2**31) - 1, True), (-(2**63), True), (0, False), (2**40, False)]
)
def test_a_negative_hash_is_no_address(code: int, is_address: bool) -> None:
    assert is_ext_address(code) is is_address


@given(st.lists(st.binary(max_size=60), max_size=30))
def test_every_unit_is_found_at_its_address(bitmaps: list[bytes]) -> None:
    disk = new_disk()
    ext = ext_on(disk)
    addresses = [ext.put_unit(number, number, bitmap) for number, bitmap in enumerate(bitmaps)]
    for number, (address, bitmap) in enumerate(zip(addresses, bitmaps, strict=True)):
        assert ext.get(address) == ExtUnit(number, TimestampMs(number), bitmap)
    for base in ext.files.bases[:-1]:
        assert not any(ext.files.read(base + 254, 2)), "four bytes stay free, the end mark comes before them"
    again = ext_on(disk)
    again.load()
    again.recover(addresses[-1] if addresses else 0)
    assert again.files.wrote == ext.files.wrote
    assert [again.get(address) for address in addresses] == [ext.get(address) for address in addresses]


def test_the_end_of_a_file_is_marked() -> None:
    disk = new_disk()
    ext = ext_on(disk)
    for _ in range(13):
        ext.put_unit(1, 1, b"")
    data = disk.contents()["consumequeue_ext/TopicA/0/00000000000000000000"]
    assert data[240:242] == b"\xff\xff"
    assert ext.files.wrote == 256 + 20


def test_a_unit_that_fits_no_file_leaves_the_plain_code() -> None:
    assert ext_on(new_disk()).put_unit(77, 1, bytes(300)) == 77


def test_units_after_the_last_address_are_cut_and_an_address_without_unit_leads_nowhere() -> None:
    disk = new_disk()
    ext = ext_on(disk)
    addresses = [ext.put_unit(number, 1, b"") for number in range(20)]
    ext.recover(addresses[3])
    assert ext.files.wrote == 80
    assert ext.get(addresses[4]) is None
    assert ext.get(addresses[3]) == ExtUnit(3, TimestampMs(1))
    assert ext.get(ADDRESS_BASE + 7) is None
    ext.recover(0)
    assert disk.list("consumequeue_ext/TopicA") == ()


def tagged_yes() -> Filters:
    """Bit 0 for messages with tag "yes"."""
    registry = FilterRegistry(BloomFilter(1, 16))
    entry = FilterData(
        topic="TopicA",
        group="g",
        expression_type="SQL92",
        text="TAGS = 'yes'",
        compiled=compile_expression("TAGS = 'yes'"),
        terms=3,
        born_ms=TimestampMs(0),
        since=PhysicalOffset(0),
        client_version=0,
        bit_positions=(0,),
        dead_ms=TimestampMs(0),
    )
    return registry.with_entry(entry).by_topic


def test_a_filter_by_bitmap_skips_messages_without_reading_them() -> None:
    disk = new_disk()
    store = ReferenceStore(disk, WITH_EXT, filters=tagged_yes())
    run(store.start(NOW))
    for number in range(10):
        put(store, message(body=b"%d" % number, tags="yes" if number % 3 == 0 else "no"))
    store.dispatch(20)
    wanted = MessageFilter(bitmap_test=BitmapTest((0,), 16, PhysicalOffset(0)))
    result = store.get_message("TopicA", 0, QueueOffset(0), 32, wanted)
    assert len(result.records) == 4
    other_shape = replace(wanted, bitmap_test=BitmapTest((0,), 24, PhysicalOffset(0)))
    assert len(store.get_message("TopicA", 0, QueueOffset(0), 32, other_shape).records) == 10
    before = replace(wanted, bitmap_test=BitmapTest((0,), 16, store.log_max))
    assert len(store.get_message("TopicA", 0, QueueOffset(0), 32, before).records) == 10
    by_tag = MessageFilter(tag_codes=frozenset({3521}))  # the hash of "no"
    assert len(store.get_message("TopicA", 0, QueueOffset(0), 32, by_tag).records) == 6
    assert store.units("TopicA", 0, QueueOffset(1), 1)[0].tags_code == 3521
    run(store.stop(NOW))
    again = ReferenceStore(disk, WITH_EXT, filters=tagged_yes())
    run(again.start(NOW))
    assert len(bodies(again)) == 10
    assert len(again.get_message("TopicA", 0, QueueOffset(0), 32, wanted).records) == 4
    assert again.get_message("TopicA", 0, QueueOffset(0), 32, wanted).status is GetStatus.FOUND
