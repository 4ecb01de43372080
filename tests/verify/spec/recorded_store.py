"""A short run of the reference store for the tests of judges: two queues, several files, a crash and a power loss."""

from __future__ import annotations

from functools import cache

from refmq.model.step import Event
from tests.verify.spec.test_traces_of_a_store import history


@cache
def store_events() -> tuple[Event, ...]:
    return tuple(history())
