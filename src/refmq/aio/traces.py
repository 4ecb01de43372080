"""Sends message traces: gathered, bounded, flushed when the client closes, and never in the way of anything."""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Awaitable, Callable
from typing import Final

from refmq.client.message_trace import TraceEntry, packed
from refmq.errors import RefmqError

ENTRIES_MAX: Final = 1024  # as upstream: what comes when so many wait is dropped
GATHER_S: Final = 0.5

log = logging.getLogger("refmq.client")


class MessageTraces:
    """Collects entries and hands them to ``send`` as bodies with keys."""

    def __init__(self, send: Callable[[bytes, tuple[str, ...]], Awaitable[object]]) -> None:
        self._send = send
        self._waiting: deque[TraceEntry] = deque()
        self._came = asyncio.Event()
        self.dropped = 0

    def add(self, entry: TraceEntry) -> None:
        if len(self._waiting) >= ENTRIES_MAX:
            self.dropped += 1
            return
        self._waiting.append(entry)
        self._came.set()

    async def run(self) -> None:
        """Sends what has come, half a second after the first of it."""
        while True:
            await self._came.wait()
            await asyncio.sleep(GATHER_S)
            await self.flush()

    async def flush(self) -> None:
        """Sends what waits. A trace that cannot be sent is lost: the messages matter more."""
        self._came.clear()
        entries = list(self._waiting)
        self._waiting.clear()
        for body, keys in packed(entries):
            try:
                await self._send(body, keys)
            except RefmqError as error:
                self.dropped += len(entries)
                log.warning("message traces were not sent: %s", error)
                return
