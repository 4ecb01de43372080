"""An event loop in a thread, and calls into it from outside."""

from __future__ import annotations

import asyncio
import concurrent.futures
import itertools
import threading
from collections.abc import Coroutine
from typing import Any, Final, TypeVar

from refmq.errors import ClosedError, UsageError

START_TIMEOUT_S: Final = 10.0
STOP_TIMEOUT_S: Final = 5.0

T = TypeVar("T")
_numbers = itertools.count(1)


class LoopThread:
    """Runs coroutines on a loop in a daemon thread."""

    def __init__(self) -> None:
        self._loop: asyncio.AbstractEventLoop | None = None
        self._ready = threading.Event()
        self._thread = threading.Thread(target=self._main, name=f"refmq-sync-{next(_numbers)}", daemon=True)
        self._thread.start()
        if not self._ready.wait(START_TIMEOUT_S):
            raise UsageError("The thread of the client did not start.")

    def _main(self) -> None:
        asyncio.run(self._run())

    async def _run(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._end = asyncio.Event()
        self._ready.set()
        await self._end.wait()

    def call(self, work: Coroutine[Any, Any, T], timeout_s: float | None = None) -> T:
        """The result of a coroutine on the loop. Ctrl-C, or the end of ``timeout_s``, cancels it."""
        loop = self._loop
        if loop is None or not self._thread.is_alive() or loop.is_closed():
            work.close()
            raise ClosedError("This client is closed.")
        if threading.current_thread() is self._thread:
            work.close()
            raise UsageError("A listener runs on the thread of its client: use the asynchronous client there.")
        future = asyncio.run_coroutine_threadsafe(work, loop)
        try:
            return future.result(timeout_s)
        except (concurrent.futures.TimeoutError, KeyboardInterrupt):
            future.cancel()
            raise

    def close(self) -> None:
        """Ends the loop and the thread."""
        loop = self._loop
        if loop is not None and not loop.is_closed():
            loop.call_soon_threadsafe(self._end.set)
        self._thread.join(STOP_TIMEOUT_S)
