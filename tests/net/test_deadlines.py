"""Deadlines behind one timer: each key that waits is called at its own time, and nothing piles up."""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Callable
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from refmq.net.deadlines import OLD_MAX, Deadlines


class Timer:
    def __init__(self, callback: Callable[[], object]) -> None:
        self.callback = callback
        self.cancelled = False

    def cancel(self) -> None:
        self.cancelled = True


class TimersOnly:
    """The timers of a loop, on a clock of their own."""

    def __init__(self) -> None:
        self.now = 100.0
        self.armed: list[float] = []
        self._timers: list[tuple[float, int, Timer]] = []
        self._numbers = itertools.count()

    def time(self) -> float:
        return self.now

    def call_at(self, at: float, callback: Callable[..., object], *arguments: object) -> Timer:
        timer = Timer(lambda: callback(*arguments))
        self.armed.append(at)
        heapq.heappush(self._timers, (at, next(self._numbers), timer))
        return timer

    def run(self) -> None:
        while self._timers:
            at, _, timer = heapq.heappop(self._timers)
            self.now = max(self.now, at)
            if not timer.cancelled:
                timer.callback()


times = st.integers(1, 40).map(float)


@given(st.lists(times, max_size=30), st.dictionaries(st.integers(0, 29), st.integers(0, 40).map(lambda n: n + 0.5)))
def test_whoever_still_waits_is_called_at_its_deadline(waits: list[float], answered: dict[int, float]) -> None:
    loop: Any = TimersOnly()
    waiting: dict[int, None] = {}
    called: list[tuple[float, int]] = []

    def expire(key: int) -> None:
        del waiting[key]
        called.append((loop.now - 100, key))

    deadlines = Deadlines(loop, waiting, expire)
    for key, seconds in enumerate(waits):
        waiting[key] = None
        deadlines.add(100 + seconds, key)
    for key, seconds in answered.items():
        loop.call_at(100 + seconds, waiting.pop, key, None)
    loop.run()
    assert called == sorted((due, key) for key, due in enumerate(waits) if answered.get(key, 99) > due)
    assert not waiting


def test_answered_requests_cost_one_timer_and_no_memory() -> None:
    loop: Any = TimersOnly()
    waiting: dict[int, None] = {}
    deadlines = Deadlines(loop, waiting, waiting.pop)
    for key in range(20_000):
        waiting[key] = None
        deadlines.add(103.0 + key / 1000, key)
        waiting.pop(key - 10, None)
        assert len(deadlines._heap) <= 2 * (len(waiting) + 1) + OLD_MAX + 1
    assert loop.armed == [103.0]


def test_an_earlier_deadline_moves_the_timer_and_closing_stops_it() -> None:
    loop: Any = TimersOnly()
    waiting = {1: None, 2: None}
    deadlines = Deadlines(loop, waiting, waiting.pop)
    deadlines.add(130.0, 1)
    deadlines.add(103.0, 2)
    assert loop.armed == [130.0, 103.0]
    deadlines.close()
    loop.run()
    assert waiting == {1: None, 2: None}
