"""The reference data plane: drives a `MessageStore` on an event loop.

Puts are appended at once. With sync flush the waiting ones share a flush (group commit): while one flush is under way
the next puts gather, and the next flush serves all of them. After a put (async flush) or a flush (sync) the records are
dispatched to their queues, and whoever waits for messages is told.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable
from typing import Final

from refmq.errors import DiskError
from refmq.model.ids import PhysicalOffset, TimestampMs
from refmq.model.step import EventFields
from refmq.plane.ack import ack_put_enabled, ack_put_events
from refmq.store.api import MessageStore
from refmq.store.config import FlushMode, StoreConfig
from refmq.store.values import AppendPlan, BatchToStore, Dispatched, MessageToStore, PutResult, PutStatus

MAINTAIN_PERIOD_S: Final = 0.1
"""How often the store is asked whether a flush or a checkpoint is due."""

DISPATCH_BATCH: Final = 64
"""Records dispatched before others have their turn on the loop."""


class ReferenceEngine:
    """A store with the clockwork around it. `start` and `stop` belong to whoever started the store."""

    def __init__(
        self,
        store: MessageStore,
        config: StoreConfig,
        now_ms: Callable[[], TimestampMs],
        on_arrival: Callable[[Dispatched], None],
        on_put: Callable[[int], None] = lambda took_ms: None,
        flush_timeout_s: float = 5.0,
        emit: Callable[[EventFields], None] | None = None,
    ) -> None:
        """`on_arrival` is told what can be read from now on, `on_put` how long each put took. A put that waits longer
        than `flush_timeout_s` for its flush ends as FLUSH_DISK_TIMEOUT. `emit` gets one event for every acknowledged
        message."""
        self.store = store
        self.failed: asyncio.Future[DiskError] = asyncio.get_running_loop().create_future()
        """Done when a flush failed: from then on nothing can be promised, and the broker should be stopped."""
        self._is_sync = config.flush_mode is FlushMode.SYNC
        self._now_ms = now_ms
        self._on_arrival = on_arrival
        self._on_put = on_put
        self._flush_timeout_s = flush_timeout_s
        self._emit = emit
        self._loop = asyncio.get_running_loop()
        self._waiting: list[tuple[PhysicalOffset, asyncio.Future[None]]] = []
        self._wanted = asyncio.Event()
        self._dispatch_scheduled = False
        self._tasks: list[asyncio.Task[None]] = []

    def start(self) -> None:
        self._tasks.append(self._loop.create_task(self._maintain(), name="maintain"))
        if self._is_sync:
            self._tasks.append(self._loop.create_task(self._group_commit(), name="group commit"))
        self._schedule_dispatch()

    async def stop(self) -> None:
        """Ends the clockwork; puts that still wait for a flush are answered with a time-out."""
        for task in self._tasks:
            task.cancel()
        for task in self._tasks:
            with contextlib.suppress(asyncio.CancelledError):
                await task
        self._release(PhysicalOffset(0), everybody=True)

    # --- puts ----------------------------------------------------------------------------------------------------

    async def put(self, message: MessageToStore, *, wait_durable: bool = True) -> PutResult:
        """Appends a message and returns when the producer may be told."""
        begun_s = self._loop.time()
        return await self._finish(self.store.plan_message(message, self._now_ms()), wait_durable, begun_s)

    async def put_batch(self, batch: BatchToStore, *, wait_durable: bool = True) -> PutResult:
        """Appends a batch and returns when the producer may be told."""
        begun_s = self._loop.time()
        return await self._finish(self.store.plan_batch(batch, self._now_ms()), wait_durable, begun_s)

    async def _finish(self, plan: AppendPlan | PutStatus, wait_durable: bool, begun_s: float) -> PutResult:
        if isinstance(plan, PutStatus):
            return PutResult(plan)
        status = self.store.append(plan)
        if not status.is_stored:
            return PutResult(status)
        if self._is_sync:
            self._wanted.set()
            if wait_durable:
                await self._durable(plan.durable_at)
        else:
            self._schedule_dispatch()
        self._on_put(int((self._loop.time() - begun_s) * 1000))
        if self._is_sync and not wait_durable:
            return PutResult.of(status, plan)
        flushed_to = self.store.flushed_to if self._is_sync else None
        if self.store.failure is not None or not ack_put_enabled(plan.durable_at, flushed_to, None):
            status = PutStatus.FLUSH_DISK_TIMEOUT
        if self._emit is not None:
            for event in ack_put_events(plan, status):
                self._emit(event)
        return PutResult.of(status, plan)

    async def _durable(self, position: PhysicalOffset) -> None:
        """Waits until the log is durable up to a position, or the time is up."""
        if self.store.flushed_to >= position:
            return
        flushed: asyncio.Future[None] = self._loop.create_future()
        self._waiting.append((position, flushed))
        self._wanted.set()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(self._flush_timeout_s):
                await flushed

    async def _group_commit(self) -> None:
        while True:
            await self._wanted.wait()
            self._wanted.clear()
            try:
                flushed_to = await self.store.flush()
            except DiskError as error:
                self._fail(error)
                return
            self._release(flushed_to)
            self._schedule_dispatch()

    def _release(self, flushed_to: PhysicalOffset, *, everybody: bool = False) -> None:
        still: list[tuple[PhysicalOffset, asyncio.Future[None]]] = []
        for position, flushed in self._waiting:
            if flushed.done():
                continue
            if everybody or position <= flushed_to:
                flushed.set_result(None)
            else:
                still.append((position, flushed))
        self._waiting = still

    # --- what follows a put ------------------------------------------------------------------------------------------

    def _schedule_dispatch(self) -> None:
        if not self._dispatch_scheduled:
            self._dispatch_scheduled = True
            self._loop.call_soon(self._dispatch)

    def _dispatch(self) -> None:
        self._dispatch_scheduled = False
        before = self.store.dispatched_to
        for message in self.store.dispatch(DISPATCH_BATCH):
            self._on_arrival(message)
        if self.store.dispatched_to > before:
            self._schedule_dispatch()

    async def _maintain(self) -> None:
        while True:
            await asyncio.sleep(MAINTAIN_PERIOD_S)
            try:
                await self.store.maintain(self._now_ms())
            except DiskError as error:
                self._fail(error)
                return
            self._schedule_dispatch()

    def _fail(self, error: DiskError) -> None:
        """After a failed flush nobody waits for a better one: everybody is told that the disk was too slow."""
        self._release(PhysicalOffset(0), everybody=True)
        if not self.failed.done():
            self.failed.set_result(error)
