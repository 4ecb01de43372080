"""The messages of a pull response, with C and without."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

import refmq_fast
from refmq.client.message import received_message
from refmq.errors import WireError
from refmq.model.ids import HostAddress, MessageQueue, PhysicalOffset, QueueOffset, TimestampMs
from refmq.net import message_list
from refmq.net.message_list import read_messages
from refmq.protocol import names
from refmq.protocol.record import Record, decode_records, encode_record

HERE = HostAddress(b"\x7f\0\0\1", 10911)
SIX = HostAddress(bytes(16), 1)
QUEUE = MessageQueue("Orders", "broker-a", 3)
PLAIN = Record(
    "Orders", 3, QueueOffset(7), PhysicalOffset(700), 0, 0, TimestampMs(1), HERE,
    TimestampMs(2), HERE, 0, 0, b"body", b"UNIQ_KEY\x01ID\x02TAGS\x01t",
)  # fmt: skip
READERS = ["reference", "fastest"]


@pytest.fixture(params=READERS)
def reader(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    if request.param == "reference":
        monkeypatch.setattr(message_list, "READER", None)
    return str(request.param)


@pytest.mark.parametrize("left_to_the_reference", [(), (0,), (1,), (2,), (0, 2), (0, 1, 2)])
def test_messages_keep_their_order_whoever_reads_them(reader: str, left_to_the_reference: tuple[int, ...]) -> None:
    """C stops at each that it does not read, and goes on behind it."""
    records = [
        PLAIN._replace(queue_offset=QueueOffset(n), born_host=SIX if n in left_to_the_reference else HERE)
        for n in range(3)
    ]
    data = b"".join(map(encode_record, records))
    found = list(read_messages(data, QUEUE))
    assert [message.queue_offset for message in found] == [0, 1, 2]
    assert found == [received_message(record, QUEUE.broker) for record in decode_records(data)]


@given(st.integers(1, 200), st.booleans())
def test_what_is_whole_is_given_before_the_damage_is_told(cut: int, in_c: bool) -> None:
    with pytest.MonkeyPatch.context() as patch:
        if not in_c:
            patch.setattr(message_list, "READER", None)
        one = encode_record(PLAIN)
        messages = read_messages(one + one[: -min(cut, len(one) - 1)], QUEUE)
        assert next(messages).queue_offset == 7
        with pytest.raises(WireError):
            next(messages)


def test_nothing_is_no_message(reader: str) -> None:
    assert list(read_messages(b"", QUEUE)) == []


def test_a_name_of_the_applications_own_is_what_it_sees(reader: str) -> None:
    retry = PLAIN._replace(topic=names.retry_topic("g"), properties=b"RETRY_TOPIC\x01Orders")
    (read,) = read_messages(encode_record(retry), MessageQueue(retry.topic, "b", 3), group="g", renamed=True)
    assert read.topic == "Orders"


def test_the_tests_above_compare_two_readers() -> None:
    assert (message_list.READER is None) == (not refmq_fast.AVAILABLE)
