"""AckPut: when a producer may be told that its message is stored."""

from __future__ import annotations

from refmq.model.ids import PhysicalOffset
from refmq.model.step import EventFields
from refmq.store.values import AppendPlan, PutStatus


def ack_put_enabled(
    durable_at: PhysicalOffset, flushed_to: PhysicalOffset | None, replicated_to: PhysicalOffset | None
) -> bool:
    """Whether a put whose records end at `durable_at` may be acknowledged.

    `flushed_to` is how far the log is durable here, `replicated_to` how far it is durable elsewhere. None means that
    this mode does not wait for it.
    """
    assert durable_at > 0
    is_flushed = flushed_to is None or durable_at <= flushed_to
    is_replicated = replicated_to is None or durable_at <= replicated_to
    return is_flushed and is_replicated


def ack_put_events(plan: AppendPlan, status: PutStatus) -> tuple[EventFields, ...]:
    """What a trace says of an acknowledgement: one event for each message."""
    assert status.is_stored
    return tuple(
        (
            "AckPut",
            "",
            plan.topic,
            plan.queue_id,
            place.physical_offset,
            place.queue_offset,
            place.fingerprint,
            status,
        )
        for place in plan.places
    )
