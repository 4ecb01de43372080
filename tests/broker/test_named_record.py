"""Records that peers name by their place in the log."""

from __future__ import annotations

import pytest

from refmq.broker.named_record import named_record
from refmq.errors import CorruptRecord
from refmq.model.ids import PhysicalOffset
from refmq.protocol.record import encode_record
from tests.broker.harness import Harness


def planted() -> tuple[Harness, PhysicalOffset, PhysicalOffset]:
    """A message whose body is a record that claims to begin where it does; where the message and the body begin."""
    world = Harness()
    world.send("T", b"first")
    (first,) = world.records("T")
    place = PhysicalOffset(world.store.log_max)
    size = len(encode_record(first))
    body_at = PhysicalOffset(place + encode_record(first).index(b"first"))
    world.send("T", encode_record(first._replace(physical_offset=body_at)))
    assert world.store.log_max > place + size
    return world, place, body_at


def test_a_record_is_found_where_it_begins_and_nowhere_else() -> None:
    world, place, body_at = planted()
    found = named_record(world.store, place)
    assert found is not None
    assert found[0].physical_offset == place
    assert world.store.message_at(body_at) is not None, "the bytes there look like a record"
    assert named_record(world.store, body_at) is None
    assert named_record(world.store, PhysicalOffset(world.store.log_max)) is None


def test_a_record_that_has_no_unit_yet_is_reached_from_the_last_that_has(monkeypatch: pytest.MonkeyPatch) -> None:
    world, place, body_at = planted()
    monkeypatch.setattr(type(world.store), "dispatched_to", property(lambda _: PhysicalOffset(0)))
    assert named_record(world.store, place) is not None
    assert named_record(world.store, body_at) is None
    monkeypatch.setattr("refmq.broker.named_record.WALK_RECORDS_MAX", 0)
    assert named_record(world.store, place) is None, "so far behind nobody looks"


def test_a_damaged_record_is_told_apart_from_none() -> None:
    world, place, _ = planted()
    world.damage(0, b"first")
    with pytest.raises(CorruptRecord):
        named_record(world.store, PhysicalOffset(0))
    assert named_record(world.store, place) is not None
