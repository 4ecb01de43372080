"""The wall clock: the only place in the shells that reads it."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable

from refmq.model.ids import TimestampMs


def wall_ms() -> TimestampMs:
    """Milliseconds since 1970, from the running loop if it has its own clock (the simulated one does)."""
    return wall_clock(asyncio.get_running_loop())()


def wall_clock(loop: asyncio.AbstractEventLoop) -> Callable[[], TimestampMs]:
    """What `wall_ms` reads on this loop. For those who ask for every message."""
    own_clock: Callable[[], TimestampMs] | None = getattr(loop, "wall_ms", None)
    return own_clock if own_clock is not None else _real_wall_ms


def _real_wall_ms() -> TimestampMs:
    return TimestampMs(time.time_ns() // 1_000_000)
