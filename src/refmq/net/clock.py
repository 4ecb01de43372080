"""The wall clock: the only place in the shells that reads it."""

from __future__ import annotations

import asyncio
import time

from refmq.model.ids import TimestampMs


def wall_ms() -> TimestampMs:
    """Milliseconds since 1970, from the running loop if it has its own clock (the simulated one does)."""
    own_clock = getattr(asyncio.get_running_loop(), "wall_ms", None)
    return TimestampMs(own_clock() if own_clock is not None else time.time_ns() // 1_000_000)
