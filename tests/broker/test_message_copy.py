"""Copies of stored messages."""

from __future__ import annotations

from refmq.broker.message_copy import copy_of, put_copy
from refmq.protocol.record import decode_properties
from refmq.store.values import PutStatus
from tests.broker.harness import Harness, run


def test_a_copy_has_everything_the_sender_set() -> None:
    world = Harness()
    world.send("T", b"x", properties={"TAGS": "a"}, flag=7, reconsume_times=2)
    (original,) = world.records("T")
    world.now += 1_000
    assert run(put_copy(world.engine, copy_of(original), {"TAGS": "a"})).status is PutStatus.PUT_OK
    _, copy = world.records("T")
    for name in ("topic", "body", "flag", "sys_flag", "reconsume_times", "born_timestamp_ms", "born_host"):
        assert getattr(copy, name) == getattr(original, name), name
    assert copy.physical_offset > original.physical_offset
    assert copy.store_timestamp_ms == original.store_timestamp_ms + 1_000


def test_a_copy_obeys_its_properties() -> None:
    world = Harness()
    world.send("T", b"x")
    (original,) = world.records("T")
    run(put_copy(world.engine, copy_of(original)._replace(topic="Other"), {"DELAY": "3"}))
    assert world.records("Other") == []
    (waiting,) = world.records("SCHEDULE_TOPIC_XXXX", 2)
    assert decode_properties(waiting.properties)["REAL_TOPIC"] == "Other"
