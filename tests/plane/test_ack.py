"""When a producer may be told, and what a trace says of it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from refmq.model.ids import PhysicalOffset
from refmq.model.step import Event
from refmq.plane.ack import ack_put_enabled, ack_put_events
from refmq.protocol.record import BatchedMessage, encode_batch
from refmq.store import AppendPlan, BatchToStore, PutResult, PutStatus, StoreConfig
from tests.store.helpers import BORN, HERE, NOW, SMALL, message, new_disk, started


@pytest.mark.parametrize(
    ("flushed_to", "replicated_to", "enabled"),
    [
        (None, None, True),
        (100, None, True),
        (99, None, False),
        (None, 100, True),
        (None, 99, False),
        (100, 100, True),
        (100, 99, False),
        (99, 100, False),
    ],
)
def test_a_put_is_acknowledged_when_it_is_safe_wherever_the_mode_waits(
    flushed_to: int | None, replicated_to: int | None, enabled: bool
) -> None:
    def position(value: int | None) -> PhysicalOffset | None:
        return None if value is None else PhysicalOffset(value)

    put = PutResult(PutStatus.PUT_OK, durable_at=PhysicalOffset(100))
    assert ack_put_enabled(put, position(flushed_to), position(replicated_to)) is enabled


@pytest.mark.parametrize("config", [SMALL, replace(SMALL, transient_pool=True)], ids=["plain", "transient pool"])
def test_every_message_of_a_batch_is_acknowledged_in_the_trace(config: StoreConfig) -> None:
    events: list[Event] = []
    store = started(new_disk(), config, events)
    encoded = encode_batch(tuple(BatchedMessage(0, b"%d" % number, b"") for number in range(3)))
    plan = store.plan_batch(BatchToStore("T", 1, encoded, b"", NOW, BORN, HERE), NOW)
    assert isinstance(plan, AppendPlan)
    assert store.append(plan) is PutStatus.PUT_OK
    appended = [event for event in events if event.action == "AppendMessage"]
    acked = [Event._make(fields) for fields in ack_put_events(plan, PutStatus.PUT_OK)]
    assert [event.action for event in acked] == ["AckPut"] * 3
    assert [event[1:7] for event in acked] == [event[1:7] for event in appended]
    assert {event.d for event in acked} == {PutStatus.PUT_OK}


def test_an_acknowledgement_carries_its_status() -> None:
    plan = started(new_disk()).plan_message(message(), NOW)
    assert isinstance(plan, AppendPlan)
    (event,) = ack_put_events(plan, PutStatus.FLUSH_DISK_TIMEOUT)
    assert Event._make(event).d == PutStatus.FLUSH_DISK_TIMEOUT
