"""A proof is about a formula. These tests hold the formulas against the code, at many numbers."""

from __future__ import annotations

from typing import cast

import pytest

pytest.importorskip("z3", reason="the extra `symbolic` is not installed; nox -s symbolic runs these tests")

import z3
from hypothesis import example, given
from hypothesis import strategies as st

from refmq.broker.delay import DelayService
from refmq.broker.handlers.send_back import FIRST_RETRY_LEVEL
from refmq.client.allocate import allocate_averagely, allocate_averagely_by_circle
from refmq.client.allocate_rooms import allocate_by_machine_room
from refmq.model.ids import MessageQueue, PhysicalOffset, QueueOffset, TimestampMs
from refmq.protocol.record import BLANK_HEADER_BYTES
from refmq.store import index_file
from refmq.store.commit_log import CommitLog
from refmq.store.config import DELAY_LEVELS_DEFAULT, QUEUE_UNIT_BYTES, StoreConfig
from refmq.store.consume_queue import ConsumeQueue
from refmq.store.delay import DelayLevels, redirect
from refmq.store.file_sequence import NAME_DIGITS, DirectoryNames, FileSequence
from refmq.store.values import QueueUnit
from spec.proofs import allocation, delay, index, log, queue
from tests.store.helpers import new_disk

LEVELS = DelayLevels.parse(DELAY_LEVELS_DEFAULT)
counts = st.integers(1, 60)
int32s = st.integers(-(2**31), 2**31 - 1)


def value(formula: z3.ExprRef) -> int:
    """What a formula without unknowns comes to."""
    found = z3.simplify(formula)
    return int(found.as_signed_long() if isinstance(found, z3.BitVecNumRef) else found.as_long())


@given(queue_count=counts, member_count=counts)
def test_average(queue_count: int, member_count: int) -> None:
    ids = [f"{number:03}" for number in range(member_count)]
    share, rest = divmod(queue_count, member_count)
    for member in {0, rest - 1, rest, member_count - 1} & set(range(member_count)):
        sizes = [z3.IntVal(number) for number in (queue_count, member_count, share, rest, member)]
        start, count = map(value, allocation.average_range(*sizes))
        assert allocate_averagely(ids[member], range(queue_count), ids) == list(range(start, start + count))


@given(queue_count=counts, member_count=counts, queue_number=st.integers(0, 59))
def test_circle(queue_count: int, member_count: int, queue_number: int) -> None:
    ids = [f"{number:03}" for number in range(member_count)]
    owners = [name for name in ids if queue_number in allocate_averagely_by_circle(name, range(queue_count), ids)]
    assert owners == ([ids[queue_number % member_count]] if queue_number < queue_count else [])


@given(queue_count=counts, member_count=counts, queue_number=st.integers(0, 59))
def test_machine_room(queue_count: int, member_count: int, queue_number: int) -> None:
    ids = [f"{number:03}" for number in range(member_count)]
    queues = [MessageQueue("T", "r1@b", number) for number in range(queue_count)]
    queue = MessageQueue("T", "r1@b", queue_number)
    owners = [at for at, name in enumerate(ids) if queue in allocate_by_machine_room(name, queues, ids, {"r1"})]
    share, blocks = queue_count // member_count, queue_count // member_count * member_count
    owner = queue_number // share if queue_number < blocks else queue_number - blocks
    assert owners == ([owner] if queue_number < queue_count else [])


@given(size=st.integers(1, 2**31), position=st.integers(0, 2**62))
def test_base_of_a_position(size: int, position: int) -> None:
    disk = new_disk()
    files = FileSequence(disk, DirectoryNames(disk), "a", size, reserve=False)
    numbers = [z3.IntVal(number) for number in (position, size, position % size)]
    assert files.base_of(position) == value(log.base_of(*numbers))


@given(lengths=st.lists(st.integers(1, 1016), max_size=12))
def test_room_of_the_log(lengths: list[int]) -> None:
    size = 1024
    disk = new_disk()
    commit_log = CommitLog(disk, DirectoryNames(disk), StoreConfig(log_file_bytes=size))
    commit_log.roll_file()
    for length in lengths:
        room = commit_log.room
        assert room >= log.BLANK_HEAD_BYTES
        assert commit_log.has_room(length) == (length + log.BLANK_HEAD_BYTES <= room)
        if not commit_log.has_room(length):
            commit_log.roll_file()
            assert commit_log.room == size
        commit_log.append(b"x" * length, TimestampMs(0))


@given(unit=st.integers(0, 10**6), per_file=st.integers(1, 1000))
def test_place_of_a_unit(unit: int, per_file: int) -> None:
    disk = new_disk()
    config = StoreConfig(queue_file_bytes=per_file * QUEUE_UNIT_BYTES)
    consume_queue = ConsumeQueue(disk, DirectoryNames(disk), "t", 0, config)
    base = consume_queue.files.base_of(unit * QUEUE_UNIT_BYTES)
    assert consume_queue.units_per_file == per_file
    assert unit * QUEUE_UNIT_BYTES - base == queue.UNIT_BYTES * (unit - base // QUEUE_UNIT_BYTES)
    assert unit * QUEUE_UNIT_BYTES + QUEUE_UNIT_BYTES <= base + config.queue_file_bytes


@given(number=int32s)
@example(number=-(2**31))
def test_hash_of_a_key(number: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(index_file, "string_hash", lambda _: number)
        assert index_file.key_hash("t", "k") == value(index.java_key_hash(z3.BitVecVal(number, index.BITS)))


@given(hashes=st.lists(st.integers(0, 2**31 - 1), max_size=8), stray=int32s)
def test_chains_of_a_file(hashes: list[int], stray: int) -> None:
    slots, places = 3, 7
    size = index.HEADER_BYTES + slots * index.SLOT_BYTES + places * index.ENTRY_BYTES
    disk = new_disk()
    disk.create("f", size, reserve=False).close()
    raw = disk.open("f")
    raw.write(index.HEADER_BYTES, stray.to_bytes(4, "big", signed=True))  # what a crash may have left in slot 0
    file = index_file.IndexFile("f", raw, slots, places)
    for hashed in hashes:
        number = file.header.next_entry
        if file.is_full:
            assert number == places
            break
        before = file.slot(hashed % slots)
        file.put_key(hashed, 0, 0)
        assert file.entry(number).previous == value(index.previous_entry(z3.IntVal(before), z3.IntVal(number)))
        assert file.slot(hashed % slots) == number
        assert file._entry_at(number) + index.ENTRY_BYTES <= size
        assert len(list(file.find(hashed, 0, 0))) <= number


@given(times=st.integers(0, 40))
def test_level_of_a_retry(times: int) -> None:
    queue_id, _ = redirect(LEVELS, FIRST_RETRY_LEVEL + times, "t", 0, b"")
    level = delay.retry_level(z3.IntVal(times), z3.IntVal(LEVELS.level_max))
    assert queue_id == value(delay.queue_of(level))


@given(level=st.integers(1, 18), wanted=st.integers(0, 10**8), now=st.integers(0, 10**8), is_just_stored=st.booleans())
def test_when_a_message_is_due(level: int, wanted: int, now: int, is_just_stored: bool) -> None:
    waits = LEVELS.delay_ms(level)
    if is_just_stored:
        wanted = now + waits
    service = object.__new__(DelayService)
    service._levels = LEVELS
    unit = QueueUnit(QueueOffset(0), PhysicalOffset(0), 1, wanted)
    numbers = [z3.IntVal(number) for number in (wanted, now, waits)]
    assert service._due_ms(level, unit, TimestampMs(now)) == value(delay.due_ms(*numbers))


def test_constants() -> None:
    assert log.BLANK_HEAD_BYTES == BLANK_HEADER_BYTES
    assert queue.UNIT_BYTES == QUEUE_UNIT_BYTES
    assert delay.FIRST_RETRY_LEVEL == FIRST_RETRY_LEVEL
    assert cast("int", next(claim for claim in log.CLAIMS if claim.name == "file names").rule) == NAME_DIGITS
    assert (index.HEADER_BYTES, index.SLOT_BYTES, index.ENTRY_BYTES, index.INT32_MAX) == (
        index_file.HEADER_BYTES,
        index_file.SLOT_BYTES,
        index_file.ENTRY_BYTES,
        index_file.INT32_MAX,
    )
