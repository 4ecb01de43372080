"""The C store as a MessageStore: the same plans, files and answers as the reference for any message; what it refuses;
and what happens to a job that nobody takes to its end. Histories (conformance/store) say the rest."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import refmq_fast
from refmq.errors import DiskFailed, FlushFailed, StoreInUse, UsageError
from refmq.filter.message_filter import MessageFilter
from refmq.model.ids import HostAddress, PhysicalOffset, QueueOffset, TimestampMs
from refmq.net.fast_store import FastStore, refusal_of
from refmq.net.files import RealDisk
from refmq.protocol.record import (
    LENGTHS_BYTES,
    RECORD_BYTES_MIN,
    RECORD_MAGIC,
    BatchedMessage,
    encode_batch,
    string_hash,
)
from refmq.sim.disk import Fault, SimulatedDisk
from refmq.store import (
    AppendPlan,
    BatchToStore,
    Boundary,
    FlushMode,
    GetStatus,
    LogPiece,
    MessageStore,
    MessageToStore,
    PutStatus,
    ReferenceStore,
    StoreConfig,
)

pytestmark = [
    pytest.mark.skipif(not refmq_fast.AVAILABLE, reason=f"extension is off: {refmq_fast.REASON}"),
    pytest.mark.extension,
]

NOW = TimestampMs(1_700_000_000_000)
V4, V6 = HostAddress(bytes((10, 1, 2, 3)), 40001), HostAddress(bytes(range(16)), 10911)
CONFIG = StoreConfig(log_file_bytes=4096, queue_file_bytes=100, index_slots=5, index_entries=8)
LATER = TimestampMs(NOW + 1_000_000)
HEADER_BYTES = RECORD_BYTES_MIN - LENGTHS_BYTES


def drive(coroutine: Coroutine[Any, Any, Any]) -> Any:
    """Runs a coroutine that never waits."""
    with pytest.raises(StopIteration) as done:
        coroutine.send(None)
    return done.value.value


def disk() -> SimulatedDisk:
    return SimulatedDisk(clock=lambda: NOW)


def started(store: MessageStore) -> Any:
    drive(store.start(NOW))
    return store


def message(body: bytes = b"body", **changes: Any) -> MessageToStore:
    fields: dict[str, Any] = {"topic": "T", "queue_id": 0, "properties": b"TAGS\x01a\x02KEYS\x01k", **changes}
    return MessageToStore(body=body, born_timestamp_ms=NOW, born_host=V4, store_host=V4, **fields)


def put(store: MessageStore, *messages: MessageToStore) -> None:
    for one in messages:
        plan = store.plan_message(one, NOW)
        assert isinstance(plan, AppendPlan)
        assert store.append(plan) is PutStatus.PUT_OK


# --- the same as the reference ---------------------------------------------------------------------------------------


class Long(bytes):
    """Bytes that are shown by their number: a falsifying example of Hypothesis may not be as long as they are."""

    def __repr__(self) -> str:
        return f"<{len(self)} bytes>"


INTS = st.one_of(
    st.integers(-3, 20),
    st.sampled_from([sign * (1 << bits) + near for bits in (31, 32, 62) for sign in (1, -1) for near in (-1, 0)]),
)
SMALL = st.one_of(st.integers(0, 3), INTS)
PIECES = st.one_of(
    st.sampled_from(
        [
            b"TAGS\x01a",
            b"KEYS\x01k  k2 ",
            b"UNIQ_KEY\x01u",
            b"UNIQ_KEY\x01",
            b"DELAY\x013",
            b"DELAY\x01 3",
            b"DELAY\x01x",
        ]
    ),
    st.sampled_from([b"REAL_TOPIC\x01before", b"REAL_QID\x017", b"x\xff\x01y", b"x\xfe\x01z", b"\x01v", b"n\x01", b""]),
    st.binary(max_size=6),
)
WIRE = st.one_of(
    st.builds(
        lambda pieces, end: b"\x02".join(pieces) + end, st.lists(PIECES, max_size=5), st.sampled_from([b"", b"\0"])
    ),
    st.builds(lambda size: Long(b"n\x01" + bytes(size)), st.sampled_from([32764, 32765, 32766, 40000])),
)
TOPICS = st.one_of(
    st.sampled_from(["T", "größe", "𝄞", "", ".", "..", "a/b", "a\0", "\ud800", "x" * 127, "x" * 128, "é" * 64]),
    st.text(max_size=5),
)
HOSTS = st.sampled_from([V4, V6, HostAddress(V4.ip, -1), HostAddress(V4.ip, 1 << 31)])
MESSAGES = st.builds(
    MessageToStore,
    topic=TOPICS,
    queue_id=SMALL,
    body=st.one_of(st.binary(max_size=30), st.sampled_from([b"", Long(3000), Long(4100)])),
    properties=WIRE,
    born_timestamp_ms=st.integers(0, 1 << 62).map(TimestampMs),
    born_host=HOSTS,
    store_host=HOSTS,
    flag=INTS,
    sys_flag=SMALL,
    reconsume_times=SMALL,
    prepared_transaction_offset=st.integers(-(1 << 63), (1 << 63) - 1),
    delay_level=st.one_of(st.just(0), INTS),
)
BATCHED = st.builds(BatchedMessage, st.integers(-(1 << 31), (1 << 31) - 1), st.binary(max_size=9), WIRE)
BATCHES = st.builds(
    BatchToStore,
    topic=TOPICS,
    queue_id=SMALL,
    messages=st.one_of(
        st.lists(BATCHED.filter(lambda one: len(one.properties) < 32768), max_size=3).map(tuple).map(encode_batch),
        st.binary(max_size=40),
    ),
    properties=WIRE,
    born_timestamp_ms=st.just(NOW),
    born_host=HOSTS,
    store_host=HOSTS,
    sys_flag=SMALL,
    reconsume_times=SMALL,
    delay_level=st.sampled_from([0, 0, 0, 1]),
)


def planned(store: MessageStore, one: MessageToStore | BatchToStore) -> AppendPlan | PutStatus:
    return store.plan_batch(one, NOW) if isinstance(one, BatchToStore) else store.plan_message(one, NOW)


@pytest.mark.parametrize("behind", [-200, -1, 0, 1, 2_000])
def test_a_record_forged_inside_a_body_ends_within_the_log_or_is_none(behind: int) -> None:
    """Its size is `behind` more than there is from its beginning to the end of the log."""
    found = []
    for store in (started(FastStore(disk(), CONFIG)), started(ReferenceStore(disk(), CONFIG))):
        put(store, message())
        in_body = PhysicalOffset(store.log_max + HEADER_BYTES)
        body = bytearray(300)
        rest = len(body) + len(message().topic) + len(message().properties) + LENGTHS_BYTES
        body[:8] = (rest + behind).to_bytes(4, "big") + RECORD_MAGIC.to_bytes(4, "big")
        body[28:36] = in_body.to_bytes(8, "big")
        put(store, message(bytes(body)))
        assert store.log_max == in_body + rest
        found.append(store.message_at(in_body))
    assert found[0] == found[1]
    assert (found[0] is None) == (behind > 0)


@given(st.lists(st.one_of(MESSAGES, BATCHES), max_size=6), st.sampled_from([200_000, 4096]))
@example([message(delay_level=2, properties=b"x\xff\x01y\x02x\xfe\x01z\x02DELAY\x019\0")], 4096)
@example([message(queue_id=1 << 33, delay_level=1), message(sys_flag=0xC, delay_level=1)], 4096)
def test_any_message_is_planned_stored_and_found_as_by_the_reference(
    messages: list[MessageToStore | BatchToStore], log_file_bytes: int
) -> None:
    disks = (disk(), disk())
    config = StoreConfig(log_file_bytes=log_file_bytes, queue_file_bytes=100, index_slots=5, index_entries=8)
    stores: tuple[MessageStore, MessageStore] = (
        started(ReferenceStore(disks[0], config)),
        started(FastStore(disks[1], config)),
    )
    for one in messages:
        plans = [planned(store, one) for store in stores]
        assert plans[0] == plans[1]
        if isinstance(plans[0], AppendPlan):
            assert [store.append(plans[0]) for store in stores] == [PutStatus.PUT_OK] * 2
            told = [store.dispatch(10) for store in stores]
            assert told[0] == told[1]
            for key in ("k", "k2", "u", "", "\ud800", "\ufffd"):
                found = [s.query_by_key(plans[0].topic, key, 9, TimestampMs(0), LATER) for s in stores]
                assert found[0] == found[1]
    assert stores[0].queues() == stores[1].queues()
    for queue in stores[0].queues():
        read = [store.get_message(queue.topic, queue.queue_id, QueueOffset(0), 32) for store in stores]
        assert read[0] == read[1]
    for store in stores:
        drive(store.stop(NOW))
    assert disks[0].contents() == disks[1].contents()


@pytest.mark.parametrize("tags", ["a", "ab", "größe", "AaAa"])
def test_a_filter_passes_what_its_codes_and_its_expression_pass(tags: str) -> None:
    stores = [started(ReferenceStore(disk(), CONFIG)), started(FastStore(disk(), CONFIG))]
    wanted = MessageFilter(tag_codes=frozenset({string_hash(tags), 1 << 40}))
    for store in stores:
        put(store, *[message(properties=f"TAGS\x01{one}".encode()) for one in ("a", "ab", "größe", "BBBB", "AaBB")])
        store.dispatch(10)
    found = [store.get_message("T", 0, QueueOffset(0), 32, wanted) for store in stores]
    assert found[0] == found[1]
    assert found[0].records


@pytest.mark.parametrize("boundary", list(Boundary))
@pytest.mark.parametrize("at_ms", [0, NOW - 1, NOW, NOW + 5, NOW + 10, NOW + 11, (1 << 63) - 2])
def test_a_time_leads_to_the_same_message(boundary: Boundary, at_ms: int) -> None:
    found = []
    for store in (started(ReferenceStore(disk(), CONFIG)), started(FastStore(disk(), CONFIG))):
        for after_ms in (0, 5, 5, 10):
            plan = store.plan_message(message(), TimestampMs(NOW + after_ms))
            store.append(plan)
        store.dispatch(10)
        found.append(store.offset_by_time("T", 0, TimestampMs(at_ms), boundary))
    assert found[0] == found[1]


# --- what it refuses -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("config", "word"),
    [
        (StoreConfig(ext_enabled=True), "extension files"),
        (StoreConfig(transient_pool=True), "transient pool"),
        (StoreConfig(delay_levels=" ".join(["1s"] * 65)), "delay levels"),
    ],
)
def test_what_c_does_not_have_is_refused_in_a_sentence(config: StoreConfig, word: str) -> None:
    assert word in str(refusal_of(config))
    with pytest.raises(UsageError, match=word):
        FastStore(disk(), config)


def test_a_number_that_fits_no_field_makes_a_message_illegal() -> None:
    store = started(FastStore(disk(), CONFIG))
    assert store.plan_message(message(flag=1 << 70), NOW) is PutStatus.MESSAGE_ILLEGAL


def test_a_pool_that_is_not_used_is_no_reason_to_refuse() -> None:
    assert refusal_of(StoreConfig(transient_pool=True, flush_mode=FlushMode.SYNC)) is None
    assert refusal_of(StoreConfig(delay_levels=" ".join(["1s"] * 64))) is None


def test_a_negative_tail_is_refused() -> None:
    with pytest.raises(UsageError, match="tail"):
        FastStore(disk(), tail_bytes=-1)


def test_a_store_that_is_not_started_says_so() -> None:
    store = FastStore(disk(), CONFIG)
    assert store.plan_message(message(), NOW) is PutStatus.SERVICE_NOT_AVAILABLE
    assert not store.accepts_puts
    calls: list[Callable[[], object]] = [store.queues, lambda: store.log_max, lambda: store.dispatch(1)]
    calls.append(lambda: drive(store.flush()))
    for call in calls:
        with pytest.raises(UsageError, match="not started"):
            call()


def test_a_second_store_is_refused_and_nothing_stays_open() -> None:
    files = disk()
    started(FastStore(files, CONFIG))
    another = files.another_process()
    with pytest.raises(StoreInUse):
        FastStore(another, CONFIG).start(NOW).send(None)
    assert another.open_paths == ()


def test_a_slave_may_not_leave_a_gap() -> None:
    store = started(FastStore(disk(), StoreConfig(log_file_bytes=4096, is_slave=True)))
    for position, word in ((4097, "start of a file"), (-4096, "start of a file")):
        with pytest.raises(UsageError, match=word):
            store.append_log(LogPiece(PhysicalOffset(position), b"x"))
    store.append_log(LogPiece(PhysicalOffset(4096), b"x"))
    with pytest.raises(UsageError, match="cannot be appended"):
        store.append_log(LogPiece(PhysicalOffset(4096), b"x"))
    assert store.received_to == 4097


# --- failures and jobs -----------------------------------------------------------------------------------------------


def test_a_failed_flush_is_the_failure_of_the_store() -> None:
    files = disk()
    store = started(FastStore(files, CONFIG))
    put(store, message())
    files.inject(Fault.FLUSH_FAILS)
    with pytest.raises(FlushFailed) as raised:
        store.flush().send(None)
    assert store.failure is raised.value
    assert not store.accepts_puts
    with pytest.raises(FlushFailed):
        store.flush().send(None)
    with pytest.raises(DiskFailed):
        store.stop(NOW).send(None)
    assert files.open_paths == ()
    assert files.held_locks == ()


class Waiting:
    """An awaitable that waits once."""

    def __await__(self) -> Any:
        yield


def finish(coroutine: Coroutine[Any, Any, Any], meanwhile: Callable[[], None] = lambda: None) -> Any:
    """Runs a coroutine to its end; `meanwhile` happens in each of its waits."""
    while True:
        meanwhile()
        try:
            coroutine.send(None)
        except StopIteration as done:
            return done.value


async def wait() -> None:
    await Waiting()


def waiting_store() -> tuple[SimulatedDisk, Any]:
    """A store whose flushes wait from now on."""
    hook: list[Any] = []

    async def on_flush() -> None:
        if hook:
            await wait()

    files = SimulatedDisk(clock=lambda: NOW, on_flush=on_flush)
    store = started(FastStore(files, CONFIG))
    hook.append(1)
    return files, store


def test_a_flush_that_is_given_up_changes_nothing() -> None:
    _, store = waiting_store()
    put(store, message())
    flush = store.flush()
    flush.send(None)
    flush.close()
    assert store.failure is None
    assert store.flushed_to < store.log_max
    assert finish(store.flush()) == store.log_max == store.flushed_to


def test_what_comes_while_a_flush_waits_is_not_covered_by_it() -> None:
    _, store = waiting_store()
    put(store, message())
    end = store.log_max
    flush = store.flush()
    flush.send(None)
    put(store, message())
    finish(flush)
    assert store.flushed_to == end < store.log_max


def test_a_store_does_not_stop_while_it_is_maintained() -> None:
    _, store = waiting_store()
    put(store, message())
    maintain = store.maintain(TimestampMs(NOW + 60_000))
    maintain.send(None)
    with pytest.raises(UsageError, match="maintain"):
        store.stop(NOW).send(None)
    assert drive(store.maintain(TimestampMs(NOW + 60_000))) is None  # another round does nothing meanwhile
    finish(maintain)
    finish(store.stop(NOW))


def test_a_queue_may_go_while_it_is_flushed() -> None:
    files, store = waiting_store()
    put(store, message(), message(topic="U"))
    store.dispatch(10)
    maintain = store.maintain(TimestampMs(NOW + 60_000))
    maintain.send(None)

    def meanwhile() -> None:
        store.delete_topic("T")
        store.delete_topic("U")
        put(store, message(), message(topic="U"))
        store.dispatch(10)

    finish(maintain, meanwhile)
    assert store.get_message("T", 0, QueueOffset(0), 1).status in (GetStatus.FOUND, GetStatus.OFFSET_TOO_SMALL)
    assert files.is_alive


@pytest.mark.parametrize("engines", [(FastStore, ReferenceStore), (ReferenceStore, FastStore)])
@pytest.mark.parametrize("is_clean", [True, False])
def test_a_store_on_a_real_disk_is_opened_by_the_other_engine(
    engines: tuple[type[FastStore], type[ReferenceStore]], is_clean: bool, tmp_path: Path
) -> None:
    """Without a stop the newest units and entries of the C store are in memory only, and are built again."""
    first, second = engines
    (tmp_path / "first").mkdir()

    async def write() -> list[bytes]:
        store: MessageStore = first(RealDisk(tmp_path / "first"), CONFIG)
        await store.start(NOW)
        put(store, *[message(bytes([number]) * 200, queue_id=number % 3) for number in range(60)])
        assert len(store.dispatch(100)) == 60
        await store.flush()
        records = [r for queue in range(3) for r in store.get_message("T", queue, QueueOffset(0), 32).records]
        if is_clean:
            await store.stop(NOW)
        shutil.copytree(tmp_path / "first", tmp_path / "second")  # what a process leaves that dies here
        if not is_clean:
            await store.stop(NOW)
        return records

    async def read() -> tuple[list[bytes], int]:
        store: MessageStore = second(RealDisk(tmp_path / "second"), CONFIG)
        report = await store.start(NOW)
        assert report.was_clean == is_clean
        records = [r for queue in range(3) for r in store.get_message("T", queue, QueueOffset(0), 32).records]
        found = store.query_by_key("T", "k", 64, TimestampMs(0), LATER)
        await store.stop(NOW)
        return records, len(found.records)

    written = asyncio.run(write())
    assert asyncio.run(read()) == (written, 60)
