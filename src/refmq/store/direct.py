"""Putting messages into a store without a data plane: for tools, tests and benchmarks that drive a store directly.

A put here is a plan that is performed at once. Nobody is acknowledged and nothing waits for a flush.
"""

from __future__ import annotations

from refmq.model.ids import TimestampMs
from refmq.store.api import MessageStore
from refmq.store.values import AppendPlan, BatchToStore, MessageToStore, PutResult, PutStatus


def put(store: MessageStore, message: MessageToStore, now_ms: TimestampMs) -> PutResult:
    """Stores one message."""
    return _perform(store, store.plan_message(message, now_ms))


def put_batch(store: MessageStore, batch: BatchToStore, now_ms: TimestampMs) -> PutResult:
    """Stores all messages of a batch, or none."""
    return _perform(store, store.plan_batch(batch, now_ms))


def _perform(store: MessageStore, plan: AppendPlan | PutStatus) -> PutResult:
    if isinstance(plan, PutStatus):
        return PutResult(plan)
    return PutResult.of(store.append(plan), plan)
