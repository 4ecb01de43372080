"""A record that is damaged is none, and the operator hears of it."""

from __future__ import annotations

from refmq.broker.sound_record import sound_record
from refmq.model.ids import PhysicalOffset
from tests.broker.harness import Harness


def test_a_sound_record_is_read_and_nobody_is_told() -> None:
    world = Harness()
    world.send(body=b"sound")
    record = sound_record(world.store, world, PhysicalOffset(0), "a message")
    assert record is not None and record.body == b"sound"
    assert world.warnings == []


def test_a_damaged_record_is_none_and_the_operator_is_told_where_it_is() -> None:
    world = Harness()
    world.send(body=b"sound")
    world.damage(0, b"sound")
    assert sound_record(world.store, world, PhysicalOffset(0), "a message") is None
    (warning,) = world.warnings
    assert warning.startswith("a message at physical offset 0 is damaged and is set aside: body crc")


def test_where_no_record_is_nobody_is_told() -> None:
    world = Harness()
    assert sound_record(world.store, world, PhysicalOffset(0), "a message") is None
    assert world.warnings == []
