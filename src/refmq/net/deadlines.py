"""Many deadlines behind one timer of the loop: nearly all requests are answered long before theirs.

A timer of its own for each request costs more than the request's frame: an object, a place in the loop's heap, and
taking it out again. Here a deadline is a pair in a heap; what was answered meanwhile is left there and passed over. So
that it does not pile up, the heap is made anew when most of it is old.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection
from heapq import heapify, heappop, heappush
from typing import Final

OLD_MAX: Final = 256
"""So many keys that do not wait any more are always kept; it is not worth looking for them."""


class Deadlines:
    """Calls ``expire`` with each key that still waits at its deadline.

    ``waiting`` is the owner's collection of those who wait. A key that has left it is not called, so nothing has to be
    taken out here; it must not come back for as long as its first deadline.
    """

    __slots__ = ("_at", "_expire", "_heap", "_loop", "_timer", "_waiting")

    def __init__(
        self, loop: asyncio.AbstractEventLoop, waiting: Collection[int], expire: Callable[[int], None]
    ) -> None:
        self._loop = loop
        self._waiting = waiting
        self._expire = expire
        self._heap: list[tuple[float, int]] = []
        self._timer: asyncio.TimerHandle | None = None
        self._at = 0.0
        """When the timer fires."""

    def add(self, due: float, key: int) -> None:
        """``key`` waits until the loop's time is ``due``."""
        heap = self._heap
        if len(heap) > 2 * len(self._waiting) + OLD_MAX:
            heap[:] = [each for each in heap if each[1] in self._waiting]
            heapify(heap)
        heappush(heap, (due, key))
        if self._timer is None or due < self._at:
            self._arm(due)

    def close(self) -> None:
        """Calls nobody any more."""
        self._heap.clear()
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _arm(self, at: float) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._at = at
        self._timer = self._loop.call_at(at, self._fire)

    def _fire(self) -> None:
        # The loop calls a timer that is due within its clock's resolution: what it was set for is over in any case.
        now = max(self._at, self._loop.time())
        self._timer = None
        while self._heap and (self._heap[0][0] <= now or self._heap[0][1] not in self._waiting):
            _, key = heappop(self._heap)
            if key in self._waiting:
                self._expire(key)
        if self._heap and self._timer is None:
            self._arm(self._heap[0][0])
