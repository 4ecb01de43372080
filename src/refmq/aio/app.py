"""An application that consumes: listeners as decorated functions, and a program that runs them.

    app = refmq.App("127.0.0.1:9876")

    @app.listener("Orders", group="billing", tag="Paid", concurrency=20)
    async def on_paid(message: refmq.ReceivedMessage) -> None: ...

    app.run()

Ctrl-C or SIGTERM once: nothing more is handed out, what is being worked on is finished, offsets are committed. Twice:
the program leaves at once.
"""

from __future__ import annotations

import asyncio
import contextlib
import inspect
import logging
import os
import signal
import sys
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from types import TracebackType
from typing import Any, Final, Self, TypeVar, Unpack

from refmq.aio.consumer import CLOSE_TIMEOUT_S, Consumer, Mode
from refmq.aio.instance import ConnectionOptions
from refmq.aio.producer import Producer
from refmq.client.message import ReceivedMessage
from refmq.client.start_offset import StartAt
from refmq.client.subscription import Sql
from refmq.errors import ClosedError, RefmqError, UsageError

SIGNALS: Final = (signal.SIGINT, signal.SIGTERM)
EXIT_FAILED: Final = 1
EXIT_FORCED: Final = 130

log = logging.getLogger("refmq.app")

F = TypeVar("F", bound=Callable[[ReceivedMessage], object])
Hook = Callable[[], Awaitable[object]]


@dataclass(frozen=True, slots=True)
class _Listener:
    function: Callable[[ReceivedMessage], object]
    topics: Mapping[str, str | Sql]
    group: str
    mode: Mode
    start: StartAt
    concurrency: int
    more: Mapping[str, Any]


class App:
    """Listeners and what they need, opened and closed together. ``producer_group`` gives it a producer too."""

    def __init__(
        self,
        namesrv: str | list[str] | tuple[str, ...] | None = None,
        *,
        producer_group: str | None = None,
        **options: Unpack[ConnectionOptions],
    ) -> None:
        self._namesrv = namesrv
        self._options = options
        self._listeners: list[_Listener] = []
        self._startup: list[Hook] = []
        self._shutdown: list[Hook] = []
        self._producer_group = producer_group
        self._producer: Producer | None = None
        self.consumers: dict[str, Consumer] = {}
        """The consumers by their groups, while the app is open."""

    # What it does ---------------------------------------------------------------------------------------------------

    def listener(
        self,
        topics: str | Mapping[str, str | Sql] | Sequence[str],
        *,
        group: str,
        tag: str | Sql = "*",
        mode: Mode = "concurrent",
        start: StartAt = "last",
        concurrency: int = 20,
        **more: Any,
    ) -> Callable[[F], F]:
        """Makes a function the listener of a group. Returning is success, an exception means "later".

        A plain function runs in a thread, so that it may wait. ``more`` goes to ``Consumer``.
        """
        if any(known.group == group for known in self._listeners):
            raise UsageError(f"The group {group} already has a listener. One group has one set of topics.")
        if isinstance(topics, Mapping):
            wanted = dict(topics)
        else:
            wanted = dict.fromkeys([topics] if isinstance(topics, str) else topics, tag)

        def register(function: F) -> F:
            self._listeners.append(_Listener(function, wanted, group, mode, start, concurrency, more))
            return function

        return register

    def on_startup(self, hook: Hook) -> Hook:
        """Runs before the first message comes."""
        self._startup.append(hook)
        return hook

    def on_shutdown(self, hook: Hook) -> Hook:
        """Runs after the last message is done with."""
        self._shutdown.append(hook)
        return hook

    @property
    def producer(self) -> Producer:
        """The producer of the app, for listeners that send."""
        if self._producer is None:
            raise ClosedError("The app has no producer: give App(producer_group=...), and use it while the app runs.")
        return self._producer

    # Life -----------------------------------------------------------------------------------------------------------

    async def __aenter__(self) -> Self:
        await self.open()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self.close()

    async def open(self) -> None:
        """Opens everything. If something cannot be opened, what was is closed again."""
        if not self._listeners and self._producer_group is None:
            raise UsageError("The app has nothing to do: decorate a function with @app.listener(...).")
        try:
            if self._producer_group is not None:
                self._producer = Producer(self._namesrv, group=self._producer_group, **self._options)
                await self._producer.open()
            for hook in self._startup:
                await hook()
            for entry in self._listeners:
                consumer = Consumer(
                    self._namesrv,
                    group=entry.group,
                    topics=entry.topics,
                    mode=entry.mode,
                    start=entry.start,
                    concurrency=entry.concurrency,
                    listener=_as_coroutine(entry.function),
                    **entry.more,
                    **self._options,
                )
                await consumer.open()
                self.consumers[entry.group] = consumer
        except BaseException:
            await self.close(1.0)
            raise

    async def close(self, timeout: float = CLOSE_TIMEOUT_S) -> None:
        """Drains and closes everything, in about ``timeout`` seconds."""
        consumers, self.consumers = list(self.consumers.values()), {}
        problems = await asyncio.gather(*(consumer.close(timeout) for consumer in consumers), return_exceptions=True)
        try:
            for hook in self._shutdown:
                await hook()
        finally:
            if self._producer is not None:
                await self._producer.close(timeout)
                self._producer = None
        for problem in problems:
            if isinstance(problem, BaseException):
                raise problem

    async def serve(self, stop: asyncio.Event | None = None) -> None:
        """Runs until ``stop`` is set, or for ever."""
        async with self:
            await (stop or asyncio.Event()).wait()

    def run(self, timeout: float = CLOSE_TIMEOUT_S) -> None:
        """Runs the program: until Ctrl-C or SIGTERM, then drains. Errors at the start end it with one line."""
        try:
            asyncio.run(self._run(timeout))
        except RefmqError as error:
            log.error("%s", error)
            sys.stderr.write(f"{error}\n")
            raise SystemExit(EXIT_FAILED) from None

    async def _run(self, timeout: float) -> None:
        stop = asyncio.Event()
        loop = asyncio.get_running_loop()

        def asked(number: signal.Signals) -> None:
            if stop.is_set():
                log.warning("%s again: leaving at once", number.name)
                sys.stdout.flush()
                os._exit(EXIT_FORCED)  # whatever hangs, hangs no longer; brokers see the connections close
            log.info("%s: finishing what is being worked on", number.name)
            stop.set()

        with contextlib.suppress(NotImplementedError):
            for number in SIGNALS:
                loop.add_signal_handler(number, asked, number)
        await self.open()
        try:
            await stop.wait()
        finally:
            await self.close(timeout)


def _as_coroutine(function: Callable[[ReceivedMessage], object]) -> Callable[[ReceivedMessage], Awaitable[object]]:
    """The function as something that can be awaited: a plain one runs in a thread."""
    if inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(type(function).__call__):
        return function  # type: ignore[return-value]  # it has just been looked at

    async def in_thread(message: ReceivedMessage) -> object:
        result = await asyncio.get_running_loop().run_in_executor(None, partial(function, message))
        return await result if inspect.isawaitable(result) else result

    return in_thread
