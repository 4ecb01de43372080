"""The time in which somebody is at work on a message: it ends early when the lock of the queue does.

An orderly consumer relies on the lock of a queue for 30 s after the last answer that renewed it. Renewals are asked for
every 10 s, so a listener may take as long as it likes while its broker answers. When it does not, the broker may lend
the queue to another consumer after 60 s, and then two listeners would have messages of one queue (W-16). So the work
is cancelled when the trust ends: the message has no verdict, and comes again, to whoever has the queue then.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from types import TracebackType

from refmq.client.message import ReceivedMessage
from refmq.model.ids import MessageQueue

Place = tuple[MessageQueue, int]


class Scopes:
    """Everything of one consumer that is at work."""

    def __init__(
        self, is_trusted: Callable[[MessageQueue], bool], on_stopped: Callable[[ReceivedMessage], None]
    ) -> None:
        self.is_trusted = is_trusted
        self.on_stopped = on_stopped
        self._working: dict[Place, asyncio.Timeout] = {}

    def stop(self, queue: MessageQueue) -> int:
        """Stops what is at work on a queue; how much that was."""
        places = [place for place in self._working if place[0] == queue]
        for place in places:
            _end(self._working.pop(place))
        return len(places)

    def enter(self, place: Place, timeout: asyncio.Timeout) -> None:
        if self.is_trusted(place[0]):
            self._working[place] = timeout
        else:
            _end(timeout)  # the lock was lost between the hand-out and the beginning of the work

    def leave(self, place: Place) -> bool:
        """Whether it was not stopped."""
        return self._working.pop(place, None) is not None


def _end(timeout: asyncio.Timeout) -> None:
    when = timeout.when()
    now = asyncio.get_running_loop().time()
    if when is None or when > now:  # else it is ending by itself
        timeout.reschedule(now)


class Scope:
    """``async with`` around the work on one message. With ``timeout_s`` it takes no longer."""

    __slots__ = ("_message", "_place", "_scopes", "_timeout", "stopped", "too_late")

    def __init__(self, scopes: Scopes, message: ReceivedMessage, timeout_s: float | None = None) -> None:
        self._scopes = scopes
        self._message = message
        self._place = (message.queue, message.queue_offset)
        self._timeout = asyncio.timeout(timeout_s)
        self.stopped = False
        """The lock of the queue ran out: the message has no verdict."""
        self.too_late = False
        """It took more than ``timeout_s``."""

    async def __aenter__(self) -> None:
        await self._timeout.__aenter__()
        self._scopes.enter(self._place, self._timeout)

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> bool:
        in_order = self._scopes.leave(self._place)
        try:
            await self._timeout.__aexit__(kind, error, traceback)
        except TimeoutError:
            if in_order:
                self.too_late = True
                raise
            self.stopped = True
            self._scopes.on_stopped(self._message)
            return True
        return False
