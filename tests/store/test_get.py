from __future__ import annotations

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from refmq.filter import compile_expression
from refmq.filter.message_filter import MessageFilter
from refmq.model.ids import QueueOffset, TimestampMs
from refmq.model.step import Event
from refmq.protocol.record import decode_record, string_hash
from refmq.store import ReferenceStore, StoreConfig
from refmq.store.consume_queue import BLANK_UNIT
from tests.store.helpers import SMALL, at, message, new_disk, put, put_many, read_all, started

HUGE = TimestampMs(2**62)


def get(
    store: ReferenceStore, offset: int, count: int = 32, wanted: MessageFilter | None = None
) -> tuple[str, int, int]:
    """Status, next offset and number of messages."""
    result = store.get_message("TopicA", 0, QueueOffset(offset), count, wanted or MessageFilter())
    return result.status.name, result.next_offset, len(result.records)


def test_an_unknown_queue_has_no_message() -> None:
    store = started(new_disk())
    assert get(store, 0) == ("NO_MESSAGE_IN_QUEUE", 0, 0)
    assert get(store, 7) == ("NO_MESSAGE_IN_QUEUE", 0, 0)
    assert store.queues() == ()


def test_every_place_outside_the_queue_has_its_status() -> None:
    store = started(new_disk())
    put_many(store, 25)
    assert get(store, 25) == ("OFFSET_OVERFLOW_ONE", 25, 0)
    assert get(store, 26) == ("OFFSET_OVERFLOW_BADLY", 25, 0)
    store.parts.queues["TopicA", 0].min_offset = QueueOffset(4)
    assert get(store, 3) == ("OFFSET_TOO_SMALL", 4, 0)
    assert get(store, 4) == ("FOUND", 10, 6)


def test_a_slave_does_not_correct_offsets_unless_told() -> None:
    disk = new_disk()
    store = started(disk)
    put_many(store, 5)
    store.set_slave(True)
    assert get(store, 9) == ("OFFSET_OVERFLOW_BADLY", 9, 0)
    store.parts.config = replace(store.parts.config, correct_offsets_on_slave=True)
    assert get(store, 9) == ("OFFSET_OVERFLOW_BADLY", 5, 0)


def test_one_read_stays_in_one_file_of_the_queue() -> None:
    store = started(new_disk())
    put_many(store, 25)
    assert [get(store, offset) for offset in (0, 10, 20)] == [("FOUND", 10, 10), ("FOUND", 20, 10), ("FOUND", 25, 5)]
    assert get(store, 3, 4) == ("FOUND", 7, 4)


def test_a_queue_without_its_file_leads_to_the_next_one() -> None:
    store = started(new_disk())
    put_many(store, 25)
    queue = store.parts.queues["TopicA", 0]
    queue.files.remove(0)
    assert get(store, 3) == ("OFFSET_FOUND_NULL", 10, 0)


def test_when_the_log_loses_a_file_its_messages_are_below_the_queue_at_once() -> None:
    store = started(new_disk())
    put_many(store, 60)
    store.parts.log.files.remove(0)
    status, offset, count = get(store, 0)
    assert (status, count) == ("OFFSET_TOO_SMALL", 0)
    assert 0 < offset < 60
    assert store.min_offset("TopicA", 0) == offset
    assert [int(record.body) for record in read_all(store)] == list(range(offset, 60))


def test_a_message_that_is_gone_is_passed() -> None:
    store = started(new_disk())
    put_many(store, 8)
    store.parts.queues["TopicA", 0].files.write(20 * 3, BLANK_UNIT)
    assert get(store, 3, 1) == ("FOUND", 5, 1)
    assert [int(record.body) for record in read_all(store)] == [0, 1, 2, 4, 5, 6, 7]
    store.parts.queues["TopicA", 0].files.write(20 * 4, BLANK_UNIT * 4)
    assert get(store, 3) == ("MESSAGE_WAS_REMOVING", 8, 0)


BIG = StoreConfig(log_file_bytes=1 << 20, queue_file_bytes=20 * 2000, index_enabled=False)


def test_bytes_and_count_of_one_read_are_bounded_but_not_for_the_first_message() -> None:
    store = started(new_disk(page_bytes=4096), BIG)
    for _ in range(40):
        put(store, message(body=bytes(100)))
    put(store, message(body=bytes(300_000)))
    put(store, message(body=bytes(300_000)))
    store.dispatch(100)
    assert get(store, 0, 100) == ("FOUND", 32, 32)
    assert get(store, 32, 100) == ("FOUND", 40, 8)
    assert get(store, 40, 100) == ("FOUND", 41, 1)
    assert get(store, 0, 0) == ("FOUND", 1, 1)


def test_messages_that_must_come_from_the_disk_are_fewer_and_a_slave_is_suggested() -> None:
    config = replace(BIG, memory_bytes=10_000, memory_ratio_percent=40)
    store = started(new_disk(page_bytes=4096), config)
    for _ in range(60):
        put(store, message(body=bytes(100)))
    store.dispatch(100)
    assert get(store, 0, 100) == ("FOUND", 8, 8)
    assert store.get_message("TopicA", 0, QueueOffset(0), 32).suggest_slave
    assert get(store, 45, 100) == ("FOUND", 60, 15)
    assert not store.get_message("TopicA", 0, QueueOffset(45), 32).suggest_slave


def test_a_filter_looks_at_800_units_or_as_many_as_are_wanted() -> None:
    store = started(new_disk(page_bytes=4096), BIG)
    for _ in range(1500):
        put(store, message(body=b"", tags="no"))
    store.dispatch(2000)
    wanted = MessageFilter(tag_codes=frozenset({string_hash("yes")}))
    assert get(store, 0, 32, wanted) == ("NO_MATCHED_MESSAGE", 800, 0)
    assert get(store, 0, 1200, wanted) == ("NO_MATCHED_MESSAGE", 1200, 0)
    assert get(store, 1000, 32, wanted) == ("NO_MATCHED_MESSAGE", 1500, 0)


@given(st.lists(st.sampled_from(["A", "B", "polygenelubricants", ""]), min_size=1, max_size=20))
def test_a_tag_filter_gives_exactly_the_wanted_messages(tags: list[str]) -> None:
    store = started(new_disk())
    for number, tag in enumerate(tags):
        put(store, message(body=b"%d" % number, tags=tag))
    store.dispatch(100)
    wanted = MessageFilter(tag_codes=frozenset({string_hash("A"), string_hash("polygenelubricants")}))
    read: list[int] = []
    offset = QueueOffset(0)
    while offset < len(tags):
        result = store.get_message("TopicA", 0, offset, 32, wanted)
        read += [int(decode_record(record).body) for record in result.records]
        offset = result.next_offset
    assert read == [number for number, tag in enumerate(tags) if tag in ("A", "polygenelubricants")]


def test_an_expression_is_asked_with_the_properties() -> None:
    store = started(new_disk())
    for number in range(6):
        put(store, message(body=b"%d" % number, keys=f"k{number}"))
    store.dispatch(10)
    wanted = MessageFilter(expression=compile_expression("KEYS IN ('k2', 'k5')"))
    result = store.get_message("TopicA", 0, QueueOffset(0), 32, wanted)
    assert [decode_record(record).body for record in result.records] == [b"2", b"5"]
    assert result.size_bytes == sum(map(len, result.records))


def test_units_are_read_without_their_records() -> None:
    store = started(new_disk())
    put_many(store, 12, tags="tg")
    assert [unit.queue_offset for unit in store.units("TopicA", 0, QueueOffset(3), 100)] == list(range(3, 10))
    assert {unit.tags_code for unit in store.units("TopicA", 0, QueueOffset(3), 100)} == {0xE73}
    assert store.units("TopicA", 0, QueueOffset(12), 10) == ()
    assert store.units("Nobody", 0, QueueOffset(0), 10) == ()


def test_a_query_finds_by_key_and_by_unique_key_and_nothing_else() -> None:
    store = started(new_disk())
    results = [put(store, message(keys=f"Aa k{n}", unique=f"U{n}"), at(1000 * n)) for n in range(9)]
    put(store, message(keys="BB"), at(9000))  # the same hash as "Aa"
    put(store, message("Other", keys="Aa"), at(9000))
    store.dispatch(100)

    def query(key: str, begin: int = 0, end: int = 10**9, count: int = 64) -> list[int]:
        found = store.query_by_key("TopicA", key, count, at(begin), at(end))
        return [decode_record(record).physical_offset for record in found.records]

    offsets = [result.physical_offset for result in results]
    assert query("Aa") == offsets
    assert query("U3") == [offsets[3]]
    assert query("k8") == [offsets[8]]
    assert query("nobody") == []
    assert query("Aa", count=2) == offsets[-2:]
    assert query("Aa", 2000, 4000) == offsets[2:5]
    assert query("Aa", 2001, 3999) == [offsets[3]]
    found = store.query_by_key("TopicA", "Aa", 1, TimestampMs(0), HUGE)
    assert found.index_last_update_ms == at(9000)


def test_without_an_index_a_query_finds_nothing() -> None:
    store = started(new_disk(), replace(SMALL, index_enabled=False))
    put_many(store, 3)
    assert store.query_by_key("TopicA", "k1", 10, TimestampMs(0), HUGE).records == ()


def test_a_record_is_found_only_where_one_begins() -> None:
    store = started(new_disk())
    first, second = put_many(store, 2)
    data = store.message_at(second.physical_offset)
    assert data is not None
    assert decode_record(data).body == b"1"
    for wrong in (first.physical_offset + 1, store.log_max, 10**9, -1):
        assert store.message_at(type(first.physical_offset)(wrong)) is None


def test_what_is_served_is_traced() -> None:
    events: list[Event] = []
    store = started(new_disk(), SMALL, events)
    (result,) = put_many(store, 1)
    get(store, 0)
    served = [event for event in events if event.action == "ServeMessage"]
    assert [(event.a, event.b, event.c, event.d) for event in served] == [
        (result.physical_offset, 0, result.fingerprint, result.size_bytes)
    ]
    appended = next(event for event in events if event.action == "AppendMessage")
    assert (appended.a, appended.b, appended.c, appended.d) == (0, 0, result.fingerprint, result.size_bytes)
