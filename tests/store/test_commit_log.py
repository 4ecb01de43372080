from __future__ import annotations

from dataclasses import replace

import pytest

from refmq.errors import UsageError
from refmq.model.ids import PhysicalOffset
from refmq.protocol.record import BLANK_MAGIC
from refmq.sim.choice import mildest
from refmq.store import FlushMode, LogPiece, ReferenceStore, direct
from tests.store.helpers import NOW, SMALL, at, bodies, message, new_disk, put, put_many, run, started

POOL = replace(SMALL, transient_pool=True)


def test_with_the_pool_nothing_is_readable_before_it_is_committed() -> None:
    disk = new_disk()
    store = started(disk, POOL)
    result = put(store, message())
    assert store.log_max == 0
    assert store.dispatch(10) == ()
    assert store.message_at(result.physical_offset) is None
    run(store.maintain(at(199)))
    assert store.log_max == 0
    run(store.maintain(at(200)))
    assert store.log_max == result.durable_at
    assert len(store.dispatch(10)) == 1


def test_with_the_pool_a_process_crash_takes_what_was_not_committed_and_nothing_else() -> None:
    disk = new_disk()
    store = started(disk, POOL)
    put_many(store, 60)
    put(store, message(body=b"gone"))
    store = started(disk.after_process_crash(), POOL)
    assert bodies(store) == [b"%d" % number for number in range(60)]


def test_the_pool_is_committed_before_a_file_ends_and_by_a_stop() -> None:
    disk = new_disk()
    store = started(disk, POOL)
    put(store, message(body=bytes(3000)))
    put(store, message(body=bytes(3000)))
    assert store.log_max == 4096
    run(store.stop(NOW))
    assert [len(body) for body in bodies(started(disk, POOL))] == [3000, 3000]


def test_the_pool_is_for_async_masters_only() -> None:
    assert POOL.uses_transient_pool
    assert not replace(POOL, is_slave=True).uses_transient_pool


def copy_of(store: ReferenceStore, step: int) -> ReferenceStore:
    """A slave that got the log in pieces of some size."""
    slave = ReferenceStore(new_disk(), replace(SMALL, is_slave=True))
    run(slave.start(NOW))
    while (piece := store.read_log(slave.received_to, step)) is not None:
        slave.append_log(piece)
        slave.dispatch(3)
        run(slave.flush())
    slave.dispatch(1000)
    return slave


@pytest.mark.parametrize("step", [1, 7, 500, 100_000])
def test_a_slave_gets_the_log_byte_for_byte_whatever_the_pieces(step: int) -> None:
    store = started(new_disk())
    put_many(store, 30)
    put(store, message(body=bytes(3000)))
    store.dispatch(1)
    slave = copy_of(store, step)
    assert slave.log_max == store.log_max
    assert bodies(slave) == bodies(store)
    ours, theirs = store.parts.log.files, slave.parts.log.files
    for base in ours.bases:
        length = min(4096, store.log_max - base)
        assert ours.read(base, length) == theirs.read(base, length)
    assert direct.put(slave, message(), NOW).status.name == "SERVICE_NOT_AVAILABLE"
    slave.set_slave(False)
    assert put(slave, message(), at(99)).queue_offset == 31


def test_an_empty_slave_begins_at_the_start_of_any_file() -> None:
    slave = started(new_disk())
    with pytest.raises(UsageError):
        slave.append_log(LogPiece(PhysicalOffset(4097), b"x"))
    store = started(new_disk())
    put_many(store, 60)
    piece = store.read_log(PhysicalOffset(4096), 10**6)
    assert piece is not None
    slave.append_log(piece)
    assert (slave.log_min, slave.log_max) == (4096, store.log_max)
    slave.dispatch(100)
    assert bodies(slave) == bodies(store)[-len(bodies(slave)) :]
    assert slave.min_offset("TopicA", 0) > 0
    assert slave.max_offset("TopicA", 0) == 60


@pytest.mark.parametrize("offset", [0, 1, 10_000])
def test_a_piece_that_does_not_follow_is_refused(offset: int) -> None:
    store = started(new_disk())
    put_many(store, 3)
    before = store.log_max
    with pytest.raises(UsageError):
        store.append_log(LogPiece(PhysicalOffset(offset), b"x"))
    with pytest.raises(UsageError):
        store.append_log(LogPiece(before, bytes(5000)))
    assert store.log_max == before


def test_a_piece_never_crosses_a_file() -> None:
    store = started(new_disk())
    put_many(store, 60)
    piece = store.read_log(PhysicalOffset(4000), 10**6)
    assert piece is not None
    assert len(piece.data) == 96
    assert store.read_log(store.log_max, 10) is None
    assert store.read_log(PhysicalOffset(store.log_max + 1), 10) is None


def test_a_slave_that_lost_power_goes_on_where_its_log_is_whole() -> None:
    store = started(new_disk())
    put_many(store, 10)
    disk = new_disk()
    slave = ReferenceStore(disk, replace(SMALL, is_slave=True))
    run(slave.start(NOW))
    piece = store.read_log(PhysicalOffset(0), 700)
    assert piece is not None
    slave.append_log(piece)
    slave = ReferenceStore(disk.after_power_loss(mildest), replace(SMALL, is_slave=True))
    run(slave.start(NOW))
    assert 0 < slave.log_max < 700
    rest = store.read_log(slave.log_max, 10**6)
    assert rest is not None
    slave.append_log(rest)
    slave.dispatch(100)
    assert bodies(slave) == bodies(store)


def test_a_slave_writes_a_record_when_all_of_it_has_come() -> None:
    """Pieces end anywhere. Written as they come, a power loss could leave a record with a gap inside a page."""
    store = started(new_disk())
    put_many(store, 3)
    size = len(store.message_at(PhysicalOffset(0)) or b"")
    data = store.read_log(PhysicalOffset(0), 10**6)
    assert data is not None
    slave = started(new_disk())
    for begin in range(0, size - 1, 7):
        slave.append_log(LogPiece(PhysicalOffset(begin), data.data[begin : min(begin + 7, size - 1)]))
    assert (slave.log_max, slave.received_to) == (0, size - 1)
    slave.append_log(LogPiece(PhysicalOffset(size - 1), data.data[size - 1 : size + 5]))
    assert (slave.log_max, slave.received_to) == (size, size + 5)
    slave.append_log(LogPiece(PhysicalOffset(size + 5), data.data[size + 5 :]))
    assert slave.log_max == slave.received_to == store.log_max


def test_a_blank_record_ends_with_its_file_whatever_size_it_says() -> None:
    """A slave that took a wrong size for the end of the blank would dispatch past what it has."""
    store = started(new_disk())
    put_many(store, 60)
    first = store.read_log(PhysicalOffset(0), 10**6)
    assert first is not None
    blank_at = first.data.rindex(BLANK_MAGIC.to_bytes(4, "big")) - 4
    lying = first.data[:blank_at] + (8).to_bytes(4, "big") + first.data[blank_at + 4 :]
    slave = ReferenceStore(new_disk(), replace(SMALL, is_slave=True))
    run(slave.start(NOW))
    slave.append_log(LogPiece(PhysicalOffset(0), lying[: blank_at + 20]))
    assert (slave.log_max, slave.received_to) == (blank_at, blank_at + 20)
    run(slave.flush())
    assert len(slave.dispatch(1000)) == len(bodies(slave))
    slave.append_log(LogPiece(PhysicalOffset(blank_at + 20), lying[blank_at + 20 :]))
    assert slave.log_max == slave.received_to == 4096


def test_a_slave_flushes_the_first_file_before_it_begins_the_second() -> None:
    """Otherwise a power loss could leave the second alone, and a log that seems to start there."""
    store = started(new_disk())
    put_many(store, 60)
    slave = started(new_disk())
    first, second = (store.read_log(PhysicalOffset(begin), 10**6) for begin in (0, 4096))
    assert first is not None
    assert second is not None
    slave.append_log(first)
    with pytest.raises(UsageError, match="flush"):
        slave.append_log(second)
    run(slave.flush())
    slave.append_log(second)
    assert slave.log_max == 4096 + len(second.data)


def test_a_slave_that_becomes_master_gives_no_offset_twice_and_continues_after_its_last_whole_record() -> None:
    store = started(new_disk())
    put_many(store, 45)
    for cut in (1, 50, 90, 200):
        slave = ReferenceStore(new_disk(), replace(SMALL, is_slave=True, flush_mode=FlushMode.SYNC))
        run(slave.start(NOW))
        while (piece := store.read_log(slave.received_to, 10**6)) is not None:
            data = piece.data[: max(0, store.log_max - cut - piece.physical_offset)]
            if not data:
                break
            slave.append_log(LogPiece(piece.physical_offset, data))
            run(slave.flush())
        slave.set_slave(False)
        whole = bodies(store)[: 44 if cut < 100 else 43]
        result = put(slave, message(body=b"mine"), at(9000))
        assert result.queue_offset == len(whole)
        run(slave.flush())
        slave.dispatch(1000)
        assert bodies(slave) == [*whole, b"mine"]


def test_records_without_a_queue_do_not_end_a_dispatch() -> None:
    store = started(new_disk())
    for _ in range(5):
        put(store, message(sys_flag=0xC))
    put(store, message())
    assert len(store.dispatch(2)) == 1
    assert store.dispatched_to == store.log_max
    for _ in range(5):
        put(store, message(sys_flag=0x4))
    assert store.dispatch(2) == ()
    assert store.dispatched_to == store.log_max
