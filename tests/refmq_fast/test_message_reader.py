"""The reader of pull responses in C beside the reference: the same messages, or the rest is left to the reference."""

from __future__ import annotations

import dataclasses
import gc
import random
import sys
import weakref
from collections.abc import Callable
from types import MappingProxyType
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import refmq_fast
from fuzz.mutate import damaged
from refmq.client.message import ReceivedMessage, received_message
from refmq.errors import WireError
from refmq.model.ids import HostAddress, MessageQueue, PhysicalOffset, QueueOffset, TimestampMs
from refmq.net import message_list
from refmq.net.message_list import READER, read_messages
from refmq.protocol import names
from refmq.protocol.compression import compress
from refmq.protocol.record import Record, decode_records, encode_record

pytestmark = [
    pytest.mark.skipif(not refmq_fast.AVAILABLE, reason=f"extension is off: {refmq_fast.REASON}"),
    pytest.mark.extension,
]

QUEUE = MessageQueue("Orders", "broker-a", 3)
int32 = st.integers(-(2**31), 2**31 - 1)
int64 = st.integers(-(2**63), 2**63 - 1)
hosts = st.builds(HostAddress, st.binary(min_size=4, max_size=4), int32)
pieces = st.text(st.characters(exclude_categories=["Cs"]) | st.sampled_from("\x01\x02"), max_size=6)
properties = (
    st.lists(pieces).map("\x02".join).map(str.encode)
    | st.dictionaries(st.sampled_from(["UNIQ_KEY", "TAGS", "k"]), pieces).map(
        lambda found: "\x02".join(f"{name}\x01{value}" for name, value in found.items()).encode()
    )
)  # fmt: skip
plain = st.builds(
    Record,
    topic=st.just(QUEUE.topic),
    queue_id=st.just(QUEUE.queue_id),
    queue_offset=int64.map(QueueOffset),
    physical_offset=int64.map(PhysicalOffset),
    flag=int32,
    sys_flag=int32.map(lambda flags: flags & ~0x31),
    born_timestamp_ms=int64.map(TimestampMs),
    born_host=hosts,
    store_timestamp_ms=int64.map(TimestampMs),
    store_host=hosts,
    reconsume_times=int32,
    prepared_transaction_offset=int64,
    body=st.binary(max_size=60),
    properties=properties,
)
PLAIN = Record(
    "Orders", 3, QueueOffset(7), PhysicalOffset(700), 0, 0, TimestampMs(1), HostAddress(b"\x7f\0\0\1", 5),
    TimestampMs(2), HostAddress(b"\x7f\0\0\1", 10911), 0, 0, b"body", b"UNIQ_KEY\x01ID\x02TAGS\x01t",
)  # fmt: skip
SIX = HostAddress(bytes(16), 1)


class Settles:
    async def settle(self, message: ReceivedMessage, verdict: Any) -> None: ...

    def scope(self, message: ReceivedMessage) -> None: ...


SETTLER = Settles()


def by_reference(data: bytes) -> list[ReceivedMessage]:
    return [received_message(record, QUEUE.broker, settler=SETTLER) for record in decode_records(data)]


def by_c(data: bytes, start: int = 0) -> tuple[list[ReceivedMessage], int]:
    assert READER is not None
    return READER.read(data, start, QUEUE, QUEUE.topic, QUEUE.queue_id, SETTLER)


def values_of(message: ReceivedMessage) -> list[tuple[str, type, Any]]:
    """Every field with its type: what compares as equal may still not be the same."""
    found = [(field.name, getattr(message, field.name)) for field in dataclasses.fields(message)]
    return [(name, type(value), dict(value) if isinstance(value, MappingProxyType) else value) for name, value in found]


def outcome(read: Callable[[bytes], list[ReceivedMessage]], data: bytes) -> Any:
    try:
        return [values_of(message) for message in read(data)]
    except WireError as error:
        return error.args


@given(st.lists(plain, max_size=4), st.binary(max_size=5))
def test_plain_messages_are_all_read_and_with_the_values_of_the_reference(records: list[Record], before: bytes) -> None:
    data = b"".join(map(encode_record, records))
    found, end = by_c(before + data, len(before))
    assert end == len(before + data), "C hands plain messages over"
    assert [values_of(message) for message in found] == [values_of(message) for message in by_reference(data)]
    assert all(message.queue is QUEUE for message in found)


@given(st.lists(plain, min_size=1, max_size=3), st.integers(0, 1 << 32))
@settings(max_examples=300)
def test_damage_has_the_same_outcome_with_and_without_c(records: list[Record], seed: int) -> None:
    source = random.Random(seed)
    data = b"".join(map(encode_record, records))
    for _ in range(10):
        raw = damaged(source, [data])

        def read(given: bytes) -> list[ReceivedMessage]:
            return list(read_messages(given, QUEUE, settler=SETTLER))

        assert outcome(read, raw) == outcome(by_reference, raw)


@given(st.lists(st.tuples(st.integers(0, 120), st.integers(0, 255)), min_size=1, max_size=3), st.booleans())
def test_changed_bytes_have_the_same_outcome_with_and_without_c(changes: list[tuple[int, int]], second: bool) -> None:
    raw = bytearray(encode_record(PLAIN) * (1 + second))
    for at, value in changes:
        raw[at % len(raw)] = value
    both = [outcome(lambda data: list(read_messages(data, QUEUE, settler=SETTLER)), bytes(raw)),
            outcome(by_reference, bytes(raw))]  # fmt: skip
    assert both[0] == both[1]


def test_each_bit_that_is_flipped_has_the_same_outcome_with_and_without_c() -> None:
    data = encode_record(PLAIN._replace(body=b"a body that is long enough for the bytes of two hosts"))
    for bit in range(len(data) * 8):
        raw = bytearray(data)
        raw[bit // 8] ^= 1 << bit % 8
        read = outcome(lambda given: list(read_messages(given, QUEUE, settler=SETTLER)), bytes(raw))
        assert read == outcome(by_reference, bytes(raw)), bit


BODY, COMPRESSED = compress(b"x" * 100, 0)
LEFT = {
    "a compressed body": PLAIN._replace(body=BODY, sys_flag=COMPRESSED),
    "an IPv6 host it was born at": PLAIN._replace(born_host=SIX),
    "an IPv6 host it is stored at": PLAIN._replace(store_host=SIX),
    "another topic": PLAIN._replace(topic="Other"),
    "another queue": PLAIN._replace(queue_id=4),
    "properties that are not UTF-8": PLAIN._replace(properties=b"k\x01\xff"),
}


@pytest.mark.parametrize("record", LEFT.values(), ids=list(LEFT))
def test_the_rest_is_left_to_the_reference(record: Record) -> None:
    one, other = encode_record(PLAIN), encode_record(record)
    found, end = by_c(one + other + one)
    assert (len(found), end) == (1, len(one))
    read = list(read_messages(one + other + one, QUEUE, settler=SETTLER))
    assert [values_of(each) for each in read] == [values_of(each) for each in by_reference(one + other + one)]


def test_the_length_of_a_topic_has_a_sign() -> None:
    topic = "t" * 200
    record = bytearray(encode_record(PLAIN._replace(body=b"", topic="", properties=b""))[:-3])
    record += bytes((len(topic),)) + topic.encode() + bytes(2)
    record[:4] = len(record).to_bytes(4, "big")
    assert READER is not None
    assert READER.read(bytes(record), 0, QUEUE, topic, QUEUE.queue_id, SETTLER) == ([], 0)
    with pytest.raises(WireError, match="topic length"):
        by_reference(bytes(record))


def test_a_name_of_the_applications_own_is_left_to_the_reference(monkeypatch: pytest.MonkeyPatch) -> None:
    retry = PLAIN._replace(topic=names.retry_topic("g"), properties=b"RETRY_TOPIC\x01Orders")
    queue = MessageQueue(retry.topic, "b", 3)
    (read,) = read_messages(encode_record(retry), queue, group="g", renamed=True)
    assert read.topic == "Orders"
    assert read.queue == queue


def test_without_c_the_reference_reads_everything(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(message_list, "READER", None)
    data = encode_record(PLAIN) * 2
    assert list(read_messages(data, QUEUE, settler=SETTLER)) == by_reference(data)


def test_wrong_arguments_are_refused() -> None:
    kind: Any = refmq_fast.MessageReader
    with pytest.raises(TypeError):
        kind()
    with pytest.raises(AttributeError):
        kind(object)
    with pytest.raises(TypeError, match="topic of a message is to be a slot"):
        kind(type("NoSlots", (), {"topic": 0}))
    loose: Any = READER
    for arguments in ((), (b"", "0", QUEUE, "t", 1, None), (b"", 0, QUEUE, 1, 1, None), (1, 0, QUEUE, "t", 1, None)):
        with pytest.raises(TypeError):
            loose.read(*arguments)
    for start in (-1, 2):
        with pytest.raises(ValueError, match="messages begin at 0 to 1"):
            loose.read(b"x", start, QUEUE, "t", 1, None)


def test_nothing_is_kept() -> None:
    data = encode_record(PLAIN) + encode_record(LEFT["another topic"])
    held: list[object] = [QUEUE, QUEUE.topic, SETTLER, ReceivedMessage, data]
    by_c(data)
    before = [sys.getrefcount(each) for each in held]
    for _ in range(100):
        by_c(data)
    assert [sys.getrefcount(each) for each in held] == before


def test_a_reader_goes_when_nobody_needs_it() -> None:
    class Message:
        __slots__ = tuple(field.name for field in dataclasses.fields(ReceivedMessage))
        made: Any

    Message.made = refmq_fast.MessageReader(Message)  # a circle
    gone = weakref.ref(Message)
    del Message
    gc.collect()
    assert gone() is None
