"""An engine on an event loop: runs the plane, with a store below it and two ports above.

It performs what steps of `refmq.plane` ask for, in their order, and decides nothing. `reference` has the reference
store; `fast` has the C store, and in front of the plane the C plane (`refmq.net.fast_plane`), which is asked first.
Beside that an engine has the clockwork:

    group commit    flushes whenever a put waits for it, one flush after the other
    maintain        asks the store ten times a second whether a flush or a checkpoint is due
    dispatch        gives records their queue units at the loop's next turn, a batch at a time
    tick            tells the plane the time while somebody waits
"""

from __future__ import annotations

import asyncio
import contextlib
import inspect
import itertools
import random
from collections.abc import Awaitable, Callable
from dataclasses import replace
from functools import partial
from typing import Final, assert_never

from refmq.errors import DiskError, RefmqError
from refmq.model.disk import Disk
from refmq.model.ids import QueueOffset, TimestampMs
from refmq.net.clock import wall_clock
from refmq.net.connection import Connection, Handler
from refmq.net.fast_plane import HOT, FastPlane
from refmq.net.fast_store import FastStore
from refmq.net.limits import Limits
from refmq.net.server import Server
from refmq.net.tls import ServerTls
from refmq.plane import PlaneState, PlaneStep, Snapshot, step
from refmq.plane.counts import Counts
from refmq.plane.effects import (
    Append,
    CountPull,
    CountPut,
    CountRefusedSend,
    CountSend,
    Dispatch,
    Effect,
    Flush,
    HandOver,
    Park,
    PutNote,
    Reply,
    SetFilters,
    Tell,
    Wait,
)
from refmq.plane.engine import Answer, ControlPlane
from refmq.plane.flow import Flow
from refmq.plane.inputs import (
    Arrived,
    Closed,
    Commit,
    Deferred,
    Done,
    Drain,
    Durable,
    FlushFailed,
    Frame,
    Input,
    Install,
    Moment,
    OwnPut,
    SetOffsets,
    Tick,
    Ticket,
)
from refmq.plane.offsets import OffsetTable, commit_offset
from refmq.plane.pull import run_again
from refmq.plane.puts import append_failed
from refmq.protocol.codes import RequestCode, ResponseCode
from refmq.protocol.command import RemotingCommand, response
from refmq.store.config import FlushMode, StoreConfig
from refmq.store.store import ReferenceStore
from refmq.store.values import MessageToStore, PutResult, PutStatus, RecoveryReport
from refmq.trace.record import Recorder

MAINTAIN_PERIOD_S: Final = 0.1
"""How often the store is asked whether a flush or a checkpoint is due."""

TICK_PERIOD_S: Final = 0.1
"""How often the plane is told the time while somebody waits."""

DISPATCH_BATCH: Final = 64
"""Records dispatched before others have their turn on the loop."""

NOBODY: Final = Ticket(0)
"""The ticket of a put that nobody waits for."""


class LoopEngine:
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
        self.name = name
        self.store = store
        self._front: FastPlane | None = None
        self._parked: dict[int, Frame] = {}
        """Pulls that wait in C, by the number of their frame."""
        self._record = None if recorder is None else recorder.record
        self._random = random.Random(seed)
        self._loop = asyncio.get_running_loop()
        self._wall_ms = wall_clock(self._loop)
        numbers = itertools.count(1)
        self._main = Server(around(partial(self._serve, False)), limits, tls=tls, numbers=numbers)
        self._vip = Server(around(partial(self._serve, True)), limits, tls=tls, numbers=numbers)
        self.failure: asyncio.Future[BaseException] = self._loop.create_future()
        self._control: ControlPlane | None = None
        self._state: PlaneState | None = None
        self._counts = Counts()
        self._frames = itertools.count(1)
        self._tickets = itertools.count(NOBODY + 1)
        self._unanswered: dict[int, asyncio.Future[Answer]] = {}
        """Requests that wait for their reply, by the number of their frame."""
        self._untold: dict[Ticket, asyncio.Future[PutResult]] = {}
        self._watchers: dict[str, Callable[[], None]] = {}
        self._known: set[int] = set()
        """Connections that have sent something: their end matters."""
        self._flush_wanted = asyncio.Event()
        self._dispatch_scheduled = False
        self._stopped = False
        self._tick: asyncio.TimerHandle | None = None
        self._tasks: list[asyncio.Task[None]] = []

    # --- life ------------------------------------------------------------------------------------------------------

    async def recover(self, now_ms: TimestampMs) -> RecoveryReport:
        return await self.store.start(now_ms)

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
        """Nobody who still waits for a flush will see it."""
        if self._front is not None:
            self._front.flush_failed(self._moment(self._loop.time()))
            self._finish_outputs()
        self._feed(FlushFailed())

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

    # --- what the control plane uses -------------------------------------------------------------------------------

    @property
    def state(self) -> PlaneState:
        assert self._state is not None, "the engine runs"
        return self._state

    @property
    def offsets(self) -> OffsetTable:
        self._take_offsets()
        return self.state.offsets

    @property
    def flow(self) -> Flow:
        return self.state.flow

    @property
    def uptime_ms(self) -> int:
        return int(self._loop.time() * 1000)

    def install(self, snapshot: Snapshot) -> None:
        if self._front is not None:
            self._front.install(snapshot)
        self._feed(Install(snapshot))

    def commit_offset(self, group: str, topic: str, queue_id: int, offset: QueueOffset) -> None:
        self._feed(Commit(group, topic, queue_id, offset))

    def set_offsets(self, offsets: OffsetTable) -> None:
        self._feed(SetOffsets(offsets))
        if self._front is not None:
            self._front.set_offsets(offsets)

    async def put(self, message: MessageToStore, *, wait_durable: bool = True) -> PutResult:
        ticket = Ticket(next(self._tickets))
        told: asyncio.Future[PutResult] = self._loop.create_future()
        self._untold[ticket] = told
        self._feed(OwnPut(ticket, message, wait_durable))
        return await told

    def again(self, frame: Frame) -> Answer | Awaitable[Answer]:
        return self._feed(frame)

    def take_counts(self) -> Counts:
        taken, self._counts = self._counts, Counts()
        if self._front is not None:
            self._front.add_counts(taken)
        return taken

    def watch(self, topic: str, told: Callable[[], None]) -> None:
        self._watchers[topic] = told

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
            gone = [number for number, frame in self._parked.items() if frame.connection == connection.number]
            for number in gone:
                del self._parked[number]
        self._feed(Closed(connection.number))
        assert self._control is not None
        self._control.connection_closed(connection.number)

    # --- steps and their effects -------------------------------------------------------------------------------------

    def _feed(self, given: Input) -> Answer | Awaitable[Answer]:
        return self._take(given, self._loop.time())

    def _moment(self, uptime_s: float) -> Moment:
        return Moment(self._wall_ms(), int(uptime_s * 1000))

    def _take(self, given: Input, begun_s: float) -> Answer | Awaitable[Answer]:
        """Takes the step of an input. For a frame: its answer, what will be its answer, or None if it has none now."""
        self._take_offsets()
        outcome = step(self.state, self.store, given, self._moment(begun_s))
        first = outcome.effects[0] if outcome.effects else None
        if isinstance(first, Append):
            status = self.store.append(first.put.plan)
            if status is not PutStatus.PUT_OK:
                outcome = append_failed(self.state, self.store, first.put, status)
        return self._perform_step(outcome, given, begun_s)

    def _perform_step(self, outcome: PlaneStep, given: Input, begun_s: float) -> Answer | Awaitable[Answer]:
        self._state = outcome.state
        for event in outcome.events:
            if self._record is not None:
                self._record(event)
            if self._front is not None and event[0] == "CommitOffset":
                _, group, topic, queue_id, _, offset, _, _ = event
                self._front.set_offset(Commit(group, topic, queue_id, QueueOffset(offset)))
        return self._perform(outcome, given, begun_s)

    # --- the C plane in front ----------------------------------------------------------------------------------------

    def _served(self, frame: Frame) -> Awaitable[Answer] | None:
        """C has taken the step of a request: it is answered, it waits for a flush, or it is parked."""
        assert self._front is not None
        if self._finish_outputs(frame.number):
            return None
        if frame.command.code in (RequestCode.PULL_MESSAGE, RequestCode.LITE_PULL_MESSAGE):
            self._parked[frame.number] = frame
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
            parked = self._parked.pop(number, None)
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

    def _run_again(self, frame: Frame) -> None:
        """A woken pull that C cannot serve any more."""
        begun_s = self._loop.time()
        effects = run_again(self.state.snapshot, self.store, frame, self._moment(begun_s))
        self._perform_step(PlaneStep(self.state, effects), Drain(), begun_s)

    def _take_offsets(self) -> None:
        """The control plane's table of offsets learns what C has committed; C has recorded the events."""
        if self._front is None:
            return
        committed = self._front.take_offsets()
        if committed:
            offsets = self.state.offsets
            for each in committed:
                offsets = commit_offset(offsets, each.topic, each.group, each.queue_id, each.offset).state
            self._state = replace(self.state, offsets=offsets)

    def _perform(self, outcome: PlaneStep, given: Input, begun_s: float) -> Answer | Awaitable[Answer]:
        result: Answer | Awaitable[Answer] = None
        for effect in outcome.effects:
            match effect:
                case Reply():
                    if effect.frame is given:
                        result = effect.command
                    else:
                        self._reply(effect)
                case Wait():
                    result = self._unanswered[effect.frame.number] = self._loop.create_future()
                    self._schedule_tick()
                case HandOver():
                    result = self._hand_over(effect)
                case _:
                    self._perform_other(effect, begun_s)
        return result

    def _perform_other(self, effect: Effect, begun_s: float) -> None:
        """The effects that are no answer to the input."""
        match effect:
            case CountSend() | CountPut() | CountRefusedSend():
                self._counts.add(effect)
            case CountPull():
                self._counts.add_pull(effect, int((self._loop.time() - begun_s) * 1000))
            case Append():
                pass  # performed already: nothing else happens before it
            case Dispatch():
                self._schedule_dispatch()
            case Flush():
                self._flush_wanted.set()
                self._schedule_tick()
            case Park():
                self._schedule_tick()
            case Tell():
                told = self._untold.pop(effect.ticket, None)
                if told is not None and not told.done():
                    told.set_result(effect.result)
            case SetFilters():
                self.store.set_filters(effect.filters)
            case PutNote():
                self._feed(OwnPut(NOBODY, effect.message, waits=False))
            case Reply() | Wait() | HandOver():
                raise AssertionError("answers are performed with their input")
            case _:
                assert_never(effect)

    def _reply(self, reply: Reply) -> None:
        """The answer to an earlier input. A peer that is gone needs none."""
        waiting = self._unanswered.pop(reply.frame.number, None)
        if waiting is not None:
            if not waiting.done():
                waiting.set_result(reply.command)
            return
        connection = self.connection(reply.frame.connection)
        if connection is None or connection.closed or reply.frame.command.is_oneway:
            return
        try:
            connection.send(reply.command)
        except RefmqError as error:  # the answer does not fit a frame
            connection.send(response(reply.frame.command, ResponseCode.SYSTEM_ERROR, remark=str(error)))

    def _hand_over(self, given: HandOver) -> Answer | Awaitable[Answer]:
        assert self._control is not None
        peer = self.connection(given.frame.connection)
        if peer is None:
            return None
        answer = self._control.serve(peer, given.frame, given.need)
        if not inspect.isawaitable(answer) or given.need is not None:
            return answer
        self._feed(Deferred(given.frame))
        return self._finish(given.frame, answer)

    async def _finish(self, frame: Frame, answer: Awaitable[Answer]) -> Answer:
        try:
            return await answer
        finally:
            self._feed(Done(frame))

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
            await asyncio.sleep(MAINTAIN_PERIOD_S)
            try:
                await self.store.maintain(self._wall_ms())
            except DiskError as error:
                self._fail(error)
                return
            self._schedule_dispatch()

    def _fail(self, error: DiskError) -> None:
        self._give_up()
        if not self.failure.done():
            self.failure.set_result(error)

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
