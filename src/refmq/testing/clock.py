"""Time that a test owns: the brokers' clock goes on by itself, and jumps when it is told to.

A jump is not one leap. Every timer of the brokers on the way fires at its own time, in its order; and after each one
that brought something to a client (a delayed message, a retry, a check-back) the clock waits until the clients have
reacted. So a message that fails again and again goes through all its retries within one `advance`.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from functools import partial
from typing import Final

TURNS: Final = 4
"""How often the loop turns after a jump before it is looked at: a timer may start what another one waits for."""
STEPS: Final = 1_000
STEP_MIN_S: Final = 0.1
STEP_MAX_S: Final = 5.0
SETTLE_S: Final = 0.05
SETTLE_MAX_S: Final = 10.0


class OwnedLoop(asyncio.SelectorEventLoop):
    """An event loop whose clock is ahead of the real one by as much as a test wants."""

    def __init__(self) -> None:
        super().__init__()
        self.ahead_s = 0.0
        self.slow_callback_duration = float("inf")  # a jump is no slow callback

    def time(self) -> float:
        return super().time() + getattr(self, "ahead_s", 0.0)

    def wall_ms(self) -> int:
        """What brokers write into messages; `refmq.net.clock` asks for it."""
        return time.time_ns() // 1_000_000 + round(self.ahead_s * 1000)

    def jump_to(self, when: float) -> None:
        self.ahead_s += max(0.0, when - self.time())

    def next_timer(self) -> float | None:
        """When the next timer is due."""
        scheduled = [handle.when() for handle in self._scheduled if not handle.cancelled()]  # type: ignore[attr-defined]  # of BaseEventLoop
        return min(scheduled, default=None)


class Stirred:
    """Counts what clients see and do, so that one can wait until they have reacted."""

    def __init__(self) -> None:
        self.stirs = 0
        """Things that a client will react to: messages that came, questions that were asked."""
        self.handed_out = 0
        """Messages that clients were given."""
        self.given_back = 0
        """Messages that clients have given back."""
        self.last_s = 0.0
        """The real time of the last request or answer."""

    def touch(self) -> None:
        self.last_s = time.monotonic()


async def advance(loop: OwnedLoop, seconds: float, stirred: Stirred, settle_s: float) -> None:
    """Moves the clock of ``loop`` on; runs on the loop itself."""
    target = loop.time() + seconds
    # Timers that are due within one small step fire together, a little late, as on a busy machine: brokers have timers
    # every few milliseconds, and nobody wants to wait for a million of them.
    step_s = min(max(seconds / STEPS, STEP_MIN_S), STEP_MAX_S)
    while (when := loop.next_timer()) is not None and when <= target:
        before, given_back, handed_out = stirred.stirs, stirred.given_back, stirred.handed_out
        loop.jump_to(min(max(when, loop.time() + step_s), target))
        for _ in range(TURNS):
            await asyncio.sleep(0)
        if stirred.stirs != before:
            await settled(stirred, settle_s, partial(_all_given_back, stirred, given_back, handed_out))
    loop.jump_to(target)
    for _ in range(TURNS):
        await asyncio.sleep(0)


def _all_given_back(stirred: Stirred, given_back_before: int, handed_out_before: int) -> bool:
    """Whether clients have given back what they were given since. Something: as long as it is nothing, it may come."""
    return stirred.given_back - given_back_before >= max(1, stirred.handed_out - handed_out_before)


async def settled(stirred: Stirred, settle_s: float, answered: Callable[[], bool] = lambda: False) -> None:
    """Waits until clients have been quiet for a while, or have given back all that they were given."""
    stirred.touch()
    deadline = time.monotonic() + SETTLE_MAX_S
    while time.monotonic() < deadline:
        if answered() or time.monotonic() - stirred.last_s > settle_s:
            return
        await asyncio.sleep(0.002)


class Clock:
    """The clock of a test cluster."""

    def __init__(self, run: Callable[[float, float], None]) -> None:
        self._run = run

    def advance(
        self,
        *,
        seconds: float = 0.0,
        minutes: float = 0.0,
        hours: float = 0.0,
        settle: float = SETTLE_S,
    ) -> None:
        """Lets the brokers' time go on. ``settle`` (real seconds) is how long clients must be quiet to count as done;
        give more when listeners take longer. In a coroutine use ``advance_async``: this blocks the loop."""
        total = seconds + 60 * minutes + 3600 * hours
        if total < 0:
            raise ValueError("time goes forward only")
        self._run(total, settle)

    async def advance_async(
        self, *, seconds: float = 0.0, minutes: float = 0.0, hours: float = 0.0, settle: float = SETTLE_S
    ) -> None:
        """The same for a test that is a coroutine: clients on its loop can go on meanwhile."""
        total = seconds + 60 * minutes + 3600 * hours
        if total < 0:
            raise ValueError("time goes forward only")
        await asyncio.get_running_loop().run_in_executor(None, self._run, total, settle)
