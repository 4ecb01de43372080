"""An engine on an event loop: runs the plane, with a store below it and two ports above.

It performs what steps of `refmq.plane` ask for, in their order, and decides nothing. `reference` has the reference
store; `stepped` has the C store, and in front of the plane the C plane (`refmq.net.fast_plane`), which is asked first.
Beside that an engine has the clockwork:

    group commit    flushes whenever a put waits for it, one flush after the other
    maintain        asks the store ten times a second whether a flush or a checkpoint is due
    dispatch        gives records their queue units at the loop's next turn, a batch at a time
    tick            tells the plane the time while somebody waits
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Final

from refmq.errors import DiskError
from refmq.model.disk import Disk
from refmq.model.ids import TimestampMs
from refmq.net.connection import Connection, Handler
from refmq.net.fast_plane import HOT, FastPlane
from refmq.net.fast_store import FastStore
from refmq.net.limits import Admission, Limits
from refmq.net.plane_runner import PlaneRunner
from refmq.net.server import Server
from refmq.net.tls import ServerTls
from refmq.plane import PlaneState, Snapshot
from refmq.plane.engine import Answer, ControlPlane
from refmq.plane.inputs import Arrived, Closed, Drain, Durable, Frame, Tick
from refmq.plane.offsets import OffsetTable
from refmq.protocol.codes import RequestCode, ResponseCode
from refmq.protocol.command import RemotingCommand, response
from refmq.store.config import FlushMode, StoreConfig
from refmq.store.store import ReferenceStore
from refmq.trace.record import Recorder

TICK_PERIOD_S: Final = 0.1
"""How often the plane is told the time while somebody waits."""

DISPATCH_BATCH: Final = 64
"""Records dispatched before others have their turn on the loop."""


class LoopEngine(PlaneRunner):
    """See `refmq.plane.engine.Engine` for what each call promises."""

    def __init__(
        self,
        name: str,
        store: ReferenceStore | FastStore,
        *,
        limits: Limits | None = None,
        tls: ServerTls | None = None,
        recorder: Recorder | None = None,
        seed: int | None = None,
        around: Callable[[Handler], Handler] = lambda handler: handler,
    ) -> None:
        """A store in C brings the C plane with it. `around` wraps what serves: a test puts its faults there."""
        super().__init__(name, store, record=None if recorder is None else recorder.record, seed=seed)
        self.recorder = recorder
        self._parked_in_c: dict[int, Frame] = {}
        """Pulls that wait in C, by the number of their frame."""
        numbers, admission = itertools.count(1), Admission((limits or Limits()).connections_max)
        self._main, self._vip = (
            Server(around(partial(self._serve, on_vip)), limits, tls=tls, numbers=numbers, admission=admission)
            for on_vip in (False, True)
        )
        self._known: set[int] = set()
        """Connections that have sent something: their end matters."""
        self._flush_wanted = asyncio.Event()
        self._dispatch_scheduled = False
        self._stopped = False
        self._tick: asyncio.TimerHandle | None = None
        self._tasks: list[asyncio.Task[None]] = []

    # --- life ------------------------------------------------------------------------------------------------------

    async def listen(self, host: str, port: int) -> tuple[str, int]:
        address = await self._main.start(host, port)
        self._watch_failure(self._main.failure)
        return address

    async def listen_vip(self, host: str, port: int) -> None:
        await self._vip.start(host, port)
        self._watch_failure(self._vip.failure)

    def run(self, control: ControlPlane, snapshot: Snapshot, offsets: OffsetTable) -> None:
        assert self._control is None, "an engine runs once"
        self._control = control
        self._state = PlaneState(snapshot, offsets, looked_ms=self.uptime_ms)
        if snapshot.config.enable_calc_filter_bit_map:
            self.store.set_filters(snapshot.filters.by_topic)
        if isinstance(self.store, FastStore):
            self._front = FastPlane(self.store, self._record)
            self._front.install(snapshot)
            self._front.set_offsets(offsets)
        self._tasks.append(self._loop.create_task(self._maintain(), name="maintain"))
        if self.store.config.flush_mode is FlushMode.SYNC:
            self._tasks.append(self._loop.create_task(self._group_commit(), name="group commit"))
        self._schedule_dispatch()

    async def close(self, timeout_s: float) -> None:
        if self._state is not None:
            if self._front is not None:
                self._front.drain(self._moment(self._loop.time()))
                self._finish_outputs()
            self._feed(Drain())
        for server in (self._main, self._vip):
            await server.close(timeout_s / 2)

    async def stop(self, now_ms: TimestampMs) -> None:
        self._stopped = True
        for task in self._tasks:
            task.cancel()
        for task in self._tasks:
            with contextlib.suppress(asyncio.CancelledError):
                await task
        if self._state is not None:
            self._give_up()
        if self._tick is not None:
            self._tick.cancel()
        await self.store.stop(now_ms)

    def _give_up(self) -> None:
        if self._front is not None:
            self._front.flush_failed(self._moment(self._loop.time()))
            self._finish_outputs()
        super()._give_up()

    def _watch_failure(self, failed: asyncio.Future[None]) -> None:
        def report(done: asyncio.Future[None]) -> None:
            if not done.cancelled() and not self.failure.done():
                error = done.exception()
                assert error is not None, "a server fails with the reason"
                self.failure.set_result(error)

        failed.add_done_callback(report)

    @property
    def servers(self) -> tuple[Server, Server]:
        """The main port and that of the VIP channel."""
        return self._main, self._vip

    def connection(self, number: int) -> Connection | None:
        return self._main.connection(number) or self._vip.connection(number)

    # --- requests --------------------------------------------------------------------------------------------------

    def _serve(self, on_vip_port: bool, connection: Connection, command: RemotingCommand) -> Answer | Awaitable[Answer]:
        if self._state is None:
            return response(command, ResponseCode.SYSTEM_BUSY, remark="the broker is starting")
        if connection.number not in self._known:
            self._known.add(connection.number)
            connection.on_close(self._closed)
        begun_s = self._loop.time()
        waited_ms = int((begun_s - connection.last_received_at) * 1000)
        draw = self._random.getrandbits(31)
        number = next(self._frames)
        frame = Frame(number, connection.number, connection.peer, command, waited_ms, draw, on_vip_port)
        if self._front is not None and command.code in HOT and self._front.serve(frame, self._moment(begun_s)):
            return self._served(frame)
        return self._take(frame, begun_s)

    def _closed(self, connection: Connection) -> None:
        self._known.discard(connection.number)
        if self._front is not None:
            self._front.closed(connection.number)
            gone = [number for number, frame in self._parked_in_c.items() if frame.connection == connection.number]
            for number in gone:
                del self._parked_in_c[number]
        self._feed(Closed(connection.number))
        assert self._control is not None
        self._control.connection_closed(connection.number)

    # --- the C plane in front ----------------------------------------------------------------------------------------

    def _served(self, frame: Frame) -> Awaitable[Answer] | None:
        """C has taken the step of a request: it is answered, it waits for a flush, or it is parked."""
        assert self._front is not None
        if self._finish_outputs(frame.number):
            return None
        if frame.command.code in (RequestCode.PULL_MESSAGE, RequestCode.LITE_PULL_MESSAGE):
            self._parked_in_c[frame.number] = frame
            self._schedule_tick()
            return None
        if frame.command.is_oneway:
            return None
        self._schedule_tick()
        waiting = self._unanswered[frame.number] = self._loop.create_future()
        return waiting

    def _finish_outputs(self, asked: int = 0) -> bool:
        """Does what C wants done. Whether the request that asked was answered."""
        assert self._front is not None
        found = False
        for connection_number, number, frame in self._front.take_output():
            parked = self._parked_in_c.pop(number, None)
            if frame is None:
                assert parked is not None, "only what is parked comes back"
                self._run_again(parked)
                continue
            waiting = self._unanswered.pop(number, None)
            connection = self.connection(connection_number)
            if connection is not None:
                connection.send_frame(frame)
            if waiting is not None and not waiting.done():
                waiting.set_result(None)
            found = found or number == asked
        wants_flush, wants_dispatch = self._front.take_wants()
        if wants_flush:
            self._flush_wanted.set()
        if wants_dispatch:
            self._schedule_dispatch()
        return found

    # --- clockwork -------------------------------------------------------------------------------------------------

    async def _group_commit(self) -> None:
        while True:
            await self._flush_wanted.wait()
            self._flush_wanted.clear()
            try:
                flushed_to = await self.store.flush()
            except DiskError as error:
                self._fail(error)
                return
            if self._front is not None:
                self._front.durable(flushed_to, self._moment(self._loop.time()))
                self._finish_outputs()
            self._feed(Durable(flushed_to))

    async def _maintain(self) -> None:
        while True:
            await asyncio.sleep(self.store.config.maintain_period_ms / 1000)
            try:
                await self.store.maintain(self._wall_ms())
            except DiskError as error:
                self._fail(error)
                return
            self._schedule_dispatch()

    def _schedule_flush(self) -> None:
        self._flush_wanted.set()

    def _schedule_dispatch(self) -> None:
        if not self._dispatch_scheduled:
            self._dispatch_scheduled = True
            self._loop.call_soon(self._dispatch)

    def _dispatch(self) -> None:
        self._dispatch_scheduled = False
        if self._stopped:
            return
        before = self.store.dispatched_to
        if self._front is not None:
            messages = self._front.dispatch(DISPATCH_BATCH, self._moment(self._loop.time()))
            self._finish_outputs()
        else:
            messages = self.store.dispatch(DISPATCH_BATCH)
        for topic in {message.topic for message in messages} & self._watchers.keys():
            self._watchers[topic]()
        if messages:
            self._feed(Arrived(messages))
        if self.store.dispatched_to > before:
            self._schedule_dispatch()

    def _schedule_tick(self) -> None:
        if self._tick is None:
            self._tick = self._loop.call_later(TICK_PERIOD_S, self._on_tick)

    def _on_tick(self) -> None:
        self._tick = None
        waits_in_c = False
        if self._front is not None:
            self._front.tick(self._moment(self._loop.time()))
            self._finish_outputs()
            waits_in_c = any(self._front.waiting())
        self._feed(Tick())
        if waits_in_c or len(self.state.puts) or len(self.state.hold):
            self._schedule_tick()


def reference_engine(
    disk: Disk,
    store_config: StoreConfig,
    *,
    limits: Limits | None = None,
    tls: ServerTls | None = None,
    recorder: Recorder | None = None,
    seed: int | None = None,
    around: Callable[[Handler], Handler] = lambda handler: handler,
) -> LoopEngine:
    """An engine that is Python from top to bottom."""
    store = ReferenceStore(disk, store_config, emit=None if recorder is None else recorder.record)
    return LoopEngine("reference", store, limits=limits, tls=tls, recorder=recorder, seed=seed, around=around)
