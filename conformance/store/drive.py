"""Drives a store directly: its coroutines without an event loop, its appends and acknowledgements without a data plane.

The simulated disk never makes a flush wait, so every coroutine of a store runs to its end at once.
"""

from __future__ import annotations

from collections.abc import Coroutine
from typing import Any, TypeVar

from refmq.model.ids import TimestampMs
from refmq.plane.ack import ack_put_enabled
from refmq.store import AppendPlan, BatchToStore, MessageStore, MessageToStore, PutResult, PutStatus, StoreReader

T = TypeVar("T")


def drive(coroutine: Coroutine[Any, Any, T]) -> T:
    """Runs a coroutine that never waits."""
    try:
        coroutine.send(None)
    except StopIteration as done:
        result: T = done.value
        return result
    coroutine.close()
    raise AssertionError("the store waited for something that is not its disk")


def plan(store: StoreReader, message: MessageToStore | BatchToStore, now_ms: TimestampMs) -> AppendPlan | PutStatus:
    """The plan of an append. Planning twice gives the same plan, because planning changes nothing."""
    if isinstance(message, MessageToStore):
        first, second = store.plan_message(message, now_ms), store.plan_message(message, now_ms)
    else:
        first, second = store.plan_batch(message, now_ms), store.plan_batch(message, now_ms)
    assert first == second, f"planning the same append twice gave {first} and {second}"
    return first


def put(store: MessageStore, message: MessageToStore | BatchToStore, now_ms: TimestampMs) -> PutResult:
    """Plans an append and performs it."""
    planned = plan(store, message, now_ms)
    return PutResult(planned) if isinstance(planned, PutStatus) else PutResult.of(store.append(planned), planned)


def ack(store: StoreReader, result: PutResult, *, sync_flush: bool) -> PutStatus:
    """What the producer of a stored message may be told now."""
    flushed_to = store.flushed_to if sync_flush else None
    is_enabled = store.failure is None and ack_put_enabled(result, flushed_to, None)
    return PutStatus.PUT_OK if is_enabled else PutStatus.FLUSH_DISK_TIMEOUT
