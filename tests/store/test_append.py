from __future__ import annotations

from dataclasses import replace

import pytest

from refmq.errors import DiskFailed
from refmq.model.ids import HostAddress, TimestampMs
from refmq.model.step import Event
from refmq.protocol.record import BatchedMessage, decode_properties, decode_record, encode_batch
from refmq.sim.disk import Fault
from refmq.store import AppendPlan, BatchToStore, MessageToStore, PutStatus, ReferenceStore, direct
from refmq.store.append import unique_key
from tests.protocol.test_record import GOLDEN
from tests.store.helpers import BORN, HERE, NOW, SMALL, ack, at, message, new_disk, put, run, started

IPV6 = HostAddress(bytes.fromhex("20010db8000000000000000000000001"), 1)


def batch_of(*messages: BatchedMessage, properties: bytes = b"CLUSTER\x01c", **fields: object) -> BatchToStore:
    plain = BatchToStore("TopicA", 0, encode_batch(messages), properties, NOW, BORN, HERE)
    return replace(plain, **fields)  # type: ignore[arg-type]  # a test names the fields it changes


def test_the_golden_record_is_written_byte_for_byte() -> None:
    disk = new_disk()
    store = started(disk)
    golden = MessageToStore(
        "TopicA",
        0,
        b"body-0",
        b"TAGS\x01tag0\x02KEYS\x01k0 kk\x02UNIQ_KEY\x01U0",
        TimestampMs(1700000000123),
        BORN,
        HERE,
        flag=7,
    )
    result = put(store, golden, TimestampMs(1794795075974))
    assert result.message_id == "0A09080700002A9F0000000000000000"
    assert disk.contents()["commitlog/00000000000000000000"][:135] == GOLDEN
    store.dispatch(1)
    unit = disk.contents()["consumequeue/TopicA/0/00000000000000000000"][:20]
    assert unit.hex() == "00000000000000000000008700000000003633d6"


def test_a_record_may_leave_exactly_the_eight_bytes_of_a_blank() -> None:
    disk = new_disk()
    store = started(disk)
    room = SMALL.log_file_bytes - 8 - 91 - len("TopicA")
    put(store, message(body=bytes(room)))
    result = put(store, message(body=b"next"))
    assert result.physical_offset == SMALL.log_file_bytes
    first = disk.contents()["commitlog/00000000000000000000"]
    assert first[-8:].hex() == "00000008cbd43194"


def test_one_byte_more_is_refused_because_no_file_can_hold_it() -> None:
    store = started(new_disk())
    room = SMALL.log_file_bytes - 8 - 91 - len("TopicA")
    assert direct.put(store, message(body=bytes(room + 1)), NOW).status is PutStatus.MESSAGE_ILLEGAL
    assert store.log_max == 0


def test_the_file_that_a_record_does_not_fit_ends_with_a_blank_to_its_end() -> None:
    events: list[Event] = []
    disk = new_disk()
    store = started(disk, SMALL, events)
    first = put(store, message(body=bytes(3000)))
    second = put(store, message(body=bytes(3000)))
    assert second.physical_offset == 4096
    data = disk.contents()["commitlog/00000000000000000000"]
    end = first.size_bytes
    assert int.from_bytes(data[end : end + 4], "big") == 4096 - end
    assert data[end + 4 : end + 8].hex() == "cbd43194"
    assert [(event.a, event.b) for event in events if event.action == "RollFile"] == [(end, 4096)]


@pytest.mark.parametrize(
    ("changed", "status"),
    [
        ({"topic": "t" * 128}, PutStatus.MESSAGE_ILLEGAL),
        ({"topic": "ü" * 64}, PutStatus.MESSAGE_ILLEGAL),
        ({"topic": ""}, PutStatus.MESSAGE_ILLEGAL),
        ({"topic": ".."}, PutStatus.MESSAGE_ILLEGAL),
        ({"topic": "a/b"}, PutStatus.MESSAGE_ILLEGAL),
        ({"topic": "a\0b"}, PutStatus.MESSAGE_ILLEGAL),
        ({"topic": "\ud800"}, PutStatus.MESSAGE_ILLEGAL),
        ({"queue_id": -1}, PutStatus.MESSAGE_ILLEGAL),
        ({"queue_id": 2**31}, PutStatus.MESSAGE_ILLEGAL),
        ({"flag": 2**31}, PutStatus.MESSAGE_ILLEGAL),
        ({"properties": b"p" * 32768}, PutStatus.PROPERTIES_SIZE_EXCEEDED),
        ({"body": bytes(201)}, PutStatus.MESSAGE_ILLEGAL),
    ],
)
def test_what_would_be_unreadable_is_refused_and_leaves_no_byte(changed: dict[str, object], status: PutStatus) -> None:
    disk = new_disk()
    store = started(disk, replace(SMALL, message_bytes_max=200))
    put(store, message())
    before = disk.contents()
    assert direct.put(store, message(**changed), NOW).status is status  # type: ignore[arg-type]  # fields by name
    assert disk.contents() == before
    assert put(store, message()).queue_offset == 1


def test_the_flags_for_ipv6_hosts_are_made_from_the_addresses() -> None:
    store = started(new_disk())
    four = put(store, message(sys_flag=0x30))
    six = put(store, message(born_host=IPV6))
    both = put(store, message(born_host=IPV6, store_host=IPV6))
    records = [store.message_at(result.physical_offset) for result in (four, six, both)]
    decoded = [decode_record(record) for record in records if record is not None]
    assert [record.sys_flag for record in decoded] == [0, 0x10, 0x30]
    assert len(both.message_id) == 56
    assert six.size_bytes == 75 + 20 + 8 + 4 + 6


def test_half_and_rollback_records_have_no_place_in_a_queue() -> None:
    store = started(new_disk())
    kinds = (0x0, 0x4, 0x8, 0xC, 0x0)
    results = [put(store, message(sys_flag=kind, keys=f"k{kind}")) for kind in kinds]
    assert [result.queue_offset for result in results] == [0, 0, 1, 0, 2]
    assert [each.physical_offset for each in store.dispatch(10)] == [results[i].physical_offset for i in (0, 2, 4)]
    assert store.max_offset("TopicA", 0) == 3
    for kind, count in ((0x0, 2), (0x4, 1), (0x8, 1), (0xC, 0)):
        found = store.query_by_key("TopicA", f"k{kind}", 10, TimestampMs(0), TimestampMs(2**62))
        assert len(found.records) == count


def test_a_delayed_message_waits_in_the_queue_of_its_level() -> None:
    store = started(new_disk())
    result = put(store, message(delay_level=99, queue_id=3, tags="t"))
    assert (result.topic, result.queue_id) == ("SCHEDULE_TOPIC_XXXX", 17)
    record = decode_record(store.message_at(result.physical_offset) or b"")
    assert decode_properties(record.properties) == {
        "TAGS": "t",
        "DELAY": "18",
        "REAL_TOPIC": "TopicA",
        "REAL_QID": "3",
    }
    (dispatched,) = store.dispatch(1)
    assert dispatched.tags_code == NOW + 2 * 3600 * 1000


def test_store_times_never_go_back() -> None:
    store = started(new_disk())
    times = [put(store, message(), now).store_timestamp_ms for now in (at(10), at(5), at(20), at(0))]
    assert times == [at(10), at(10), at(20), at(20)]
    store = started(new_disk(), replace(SMALL, keep_clock_steps=True))
    assert [put(store, message(), now).store_timestamp_ms for now in (at(10), at(5))] == [at(10), at(5)]


def test_a_batch_is_ordinary_records_with_the_properties_of_both() -> None:
    store = started(new_disk())
    put(store, message())
    result = direct.put_batch(
        store,
        batch_of(
            BatchedMessage(1, b"a", b"TAGS\x01x"),
            BatchedMessage(2, b"b", b"TAGS\x01y\x02"),
            BatchedMessage(0, b"", b""),
        ),
        NOW,
    )
    assert (result.status, result.count, result.queue_offset) == (PutStatus.PUT_OK, 3, 1)
    store.dispatch(10)
    records = [decode_record(record) for record in store.get_message("TopicA", 0, result.queue_offset, 9).records]
    assert [record.body for record in records] == [b"a", b"b", b""]
    assert [record.flag for record in records] == [1, 2, 0]
    assert [record.properties for record in records] == [
        b"TAGS\x01x\x02CLUSTER\x01c",
        b"TAGS\x01y\x02CLUSTER\x01c",
        b"CLUSTER\x01c",
    ]
    assert result.message_id.split(",") == [record.message_id for record in records]
    assert result.durable_at == store.log_max


def test_a_batch_never_spans_two_files() -> None:
    store = started(new_disk())
    put(store, message(body=bytes(3000)))
    result = direct.put_batch(store, batch_of(*[BatchedMessage(0, bytes(300), b"")] * 3), NOW)
    assert result.physical_offset == 4096


@pytest.mark.parametrize(
    ("batch", "status"),
    [
        (batch_of(), PutStatus.MESSAGE_ILLEGAL),
        (batch_of(messages=b"\0\0\0\x16 nonsense"), PutStatus.MESSAGE_ILLEGAL),
        (batch_of(BatchedMessage(0, b"a", b"p" * 32000), properties=b"q" * 1000), PutStatus.PROPERTIES_SIZE_EXCEEDED),
        (batch_of(BatchedMessage(0, b"a", b""), sys_flag=0x4), PutStatus.MESSAGE_ILLEGAL),
        (batch_of(BatchedMessage(0, b"a", b""), delay_level=1), PutStatus.MESSAGE_ILLEGAL),
        (batch_of(BatchedMessage(0, bytes(4096), b"")), PutStatus.MESSAGE_ILLEGAL),
    ],
)
def test_a_batch_that_cannot_be_stored_whole_is_not_stored(batch: BatchToStore, status: PutStatus) -> None:
    store = started(new_disk())
    assert direct.put_batch(store, batch, NOW).status is status
    assert store.log_max == 0


@pytest.mark.parametrize("effect", [0, 1, 2])
def test_without_room_for_the_next_file_a_put_fails_and_a_later_one_succeeds(effect: int) -> None:
    disk = new_disk()
    store = started(disk)
    put(store, message(body=bytes(3000)))
    end = store.log_max
    disk.inject(Fault.DISK_FULL, disk.operations + effect)  # the next file is made, renamed, and a blank is written
    assert direct.put(store, message(body=bytes(3000)), NOW).status is PutStatus.CREATE_MAPEDFILE_FAILED
    assert store.log_max == end  # no blank without a next file
    assert direct.put(store, message(body=b"small"), NOW).status is PutStatus.PUT_OK
    assert direct.put(store, message(body=bytes(3000)), NOW).status is PutStatus.PUT_OK
    assert store.log_max > 4096
    store.dispatch(10)
    assert store.max_offset("TopicA", 0) == 3
    run(store.stop(NOW))
    assert run(ReferenceStore(disk.after_process_crash(), SMALL).start(NOW)).records_dispatched == 0


def test_without_room_for_a_write_the_message_is_not_stored_and_the_next_one_is() -> None:
    disk = new_disk()
    store = started(disk)
    put(store, message())
    disk.inject(Fault.DISK_FULL)
    assert direct.put(store, message(), NOW).status is PutStatus.SERVICE_NOT_AVAILABLE
    assert put(store, message()).queue_offset == 1


def test_properties_that_end_with_a_zero_byte_are_closed() -> None:
    store = started(new_disk())
    result = put(store, message(properties=b"a\x01b\0"))
    record = decode_record(store.message_at(result.physical_offset) or b"")
    assert record.properties == b"a\x01b\0\x02"


@pytest.mark.parametrize(
    ("properties", "value"),
    [
        (b"", b""),
        (b"UNIQ_KEY\x01u", b"u"),
        (b"UNIQ_KEY\x01u\x02a\x01b", b"u"),
        (b"a\x01b\x02UNIQ_KEY\x01u", b"u"),
        (b"XUNIQ_KEY\x01u", b""),
        (b"a\x01b", b""),
    ],
)
def test_the_unique_key_is_found_in_wire_form(properties: bytes, value: bytes) -> None:
    assert unique_key(properties) == value


def test_after_a_failed_flush_nothing_is_accepted_or_acknowledged() -> None:
    disk = new_disk()
    store = started(disk)
    result = put(store, message())
    disk.inject(Fault.FLUSH_FAILS)
    for _ in range(2):
        with pytest.raises(Exception, match="flush"):
            run(store.flush())
    assert store.flushed_to == 0
    assert not store.accepts_puts
    assert direct.put(store, message(), NOW).status is PutStatus.SERVICE_NOT_AVAILABLE
    assert ack(store, result) is PutStatus.FLUSH_DISK_TIMEOUT
    with pytest.raises(Exception, match="flush"):
        run(store.stop(NOW))
    assert disk.exists("abort")


def planned(store: ReferenceStore, to_store: MessageToStore) -> AppendPlan:
    plan = store.plan_message(to_store, NOW)
    assert isinstance(plan, AppendPlan)
    return plan


def test_planning_changes_nothing() -> None:
    disk = new_disk()
    events: list[Event] = []
    store = started(disk, events=events)
    put(store, message(body=bytes(3000)))
    before = (disk.contents(), disk.operations, list(events), store.log_max)
    assert planned(store, message()) == planned(store, message())
    assert planned(store, message(body=bytes(3000))).physical_offset == 4096  # it would need another file
    assert (disk.contents(), disk.operations, events, store.log_max) == before


def test_a_plan_holds_the_very_bytes_that_are_written() -> None:
    store = started(new_disk())
    plan = planned(store, message(unique="U1"))
    assert store.append(plan) is PutStatus.PUT_OK
    assert store.message_at(plan.physical_offset) == plan.data
    assert store.log_max == plan.durable_at


@pytest.mark.parametrize("earlier", [message(), message("TopicB")], ids=["the same queue", "another queue"])
def test_a_plan_is_performed_at_once_or_never(earlier: MessageToStore) -> None:
    store = started(new_disk())
    plan = planned(store, message())
    put(store, earlier)
    with pytest.raises(AssertionError, match="another end of the log"):
        store.append(plan)
    assert store.append(planned(store, message())) is PutStatus.PUT_OK


def test_a_store_that_stopped_accepting_does_not_perform_a_plan() -> None:
    disk = new_disk()
    store = started(disk)
    plan = planned(store, message())
    disk.inject(Fault.FLUSH_FAILS)
    put(store, message("TopicB"))
    with pytest.raises(DiskFailed):
        run(store.flush())
    assert store.failure is not None
    assert store.append(plan) is PutStatus.SERVICE_NOT_AVAILABLE


@pytest.mark.parametrize("transaction", [0x4, 0xC], ids=["prepared", "rolled back"])
def test_a_message_of_no_queue_takes_no_offset(transaction: int) -> None:
    store = started(new_disk())
    put(store, message())
    plan = planned(store, message(sys_flag=transaction))
    assert (plan.queue_offset, plan.is_queued, plan.places[0].queue_offset) == (0, False, 0)
    assert store.append(plan) is PutStatus.PUT_OK
    assert put(store, message()).queue_offset == 1
