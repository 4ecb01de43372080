"""Messages: what may be sent, and what a record becomes."""

from __future__ import annotations

import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st

from refmq.client.message import (
    SUCCESS,
    Batch,
    Message,
    ReceivedMessage,
    Verdict,
    checked_message,
    message_properties,
    received_message,
)
from refmq.errors import InvalidMessage
from refmq.model.ids import HostAddress, MessageQueue, PhysicalOffset, QueueOffset, TimestampMs
from refmq.protocol.compression import compress
from refmq.protocol.record import Record, decode_properties, encode_properties

QUEUE = MessageQueue("T", "b", 0)


def record(**changed: object) -> Record:
    fields: dict[str, object] = {
        "topic": "T",
        "queue_id": 0,
        "queue_offset": QueueOffset(7),
        "physical_offset": PhysicalOffset(100),
        "flag": 3,
        "sys_flag": 0,
        "born_timestamp_ms": TimestampMs(1_000),
        "born_host": HostAddress(bytes([10, 0, 0, 1]), 5),
        "store_timestamp_ms": TimestampMs(2_000),
        "store_host": HostAddress(bytes(15) + b"\x01", 10911),
        "reconsume_times": 2,
        "prepared_transaction_offset": 0,
        "body": b"x",
        "properties": encode_properties({"TAGS": "A", "KEYS": "k1 k2", "UNIQ_KEY": "ID", "own": "1"}),
        **changed,
    }
    return Record(**fields)  # type: ignore[arg-type]  # put together above


class Judge:
    def __init__(self) -> None:
        self.verdicts: list[Verdict] = []

    async def settle(self, message: ReceivedMessage, verdict: Verdict) -> None:
        self.verdicts.append(verdict)

    def scope(self, message: ReceivedMessage) -> None:
        return None


def test_a_record_becomes_a_message_with_all_it_holds() -> None:
    message = received_message(record(), "b")
    assert (message.topic, message.tag, message.keys, message.msg_id) == ("T", "A", ("k1", "k2"), "ID")
    assert message.queue == QUEUE
    assert (message.born_host, message.store_host) == ("10.0.0.1:5", "[::1]:10911")
    assert message.stored_at.timestamp() == 2
    assert message.properties["own"] == "1"
    assert received_message(record(properties=b""), "b").msg_id == message.offset_msg_id


def test_a_compressed_body_is_what_it_was() -> None:
    body, flag = compress(b"a" * 5000, 0)
    assert received_message(record(body=body, sys_flag=flag), "b").body == b"a" * 5000


def test_a_retry_shows_the_topic_it_was_first_sent_to() -> None:
    properties = encode_properties({"RETRY_TOPIC": "ns%Orders"})
    message = received_message(record(topic="%RETRY%ns%g", properties=properties), "b", namespace="ns", group="ns%g")
    assert message.topic == "Orders"
    assert message.queue.topic == "%RETRY%ns%g"
    assert received_message(record(topic="%RETRY%h", properties=properties), "b", group="g").topic == "%RETRY%h"


@given(st.dictionaries(st.text("abc", min_size=1), st.text("xyz", min_size=1)), st.text("kl", min_size=1))
def test_properties_come_back_as_they_were_sent(properties: dict[str, str], key: str) -> None:
    message = checked_message(Message("T", b"x", tag="A", keys=(key,), properties=properties))
    travelled = decode_properties(encode_properties(message_properties(message)))
    assert {name: travelled[name] for name in properties} == properties
    assert (travelled["TAGS"], travelled["KEYS"], travelled["WAIT"]) == ("A", key, "true")


def test_leaving_a_block_is_success_and_an_exception_is_later() -> None:
    judge = Judge()

    async def story() -> None:
        message = received_message(record(), "b", settler=judge)
        async with message.processing():
            pass
        async with message.processing():
            raise ZeroDivisionError("oh")
        async with Batch((message, message)).processing():
            pass
        with pytest.raises(asyncio.CancelledError):
            async with message.processing():
                raise asyncio.CancelledError
        await message.retry_later(delay_level=3)
        await message.to_dead_letters("no")

    asyncio.run(story())
    assert judge.verdicts == [
        SUCCESS,
        Verdict(False, reason="ZeroDivisionError: oh"),
        SUCCESS,
        SUCCESS,
        Verdict(False, 3),
        Verdict(False, -1, "no"),
    ]


def test_a_message_that_no_consumer_handed_out_has_no_verdict() -> None:
    message = received_message(record(), "b")
    with pytest.raises(InvalidMessage, match="nobody waits"):
        asyncio.run(message.ack())


def test_messages_are_frozen() -> None:
    with pytest.raises(AttributeError):
        Message("T", b"x").body = b"y"  # type: ignore[misc]  # the point of it
