"""Runs the steps of the plane: feeds inputs, performs effects in their order, and decides nothing.

It is what the engines have in common. Each adds its ports and its clockwork: `refmq.net.engine` on an event loop,
`refmq.net.thread_engine` on threads in C.
"""

from __future__ import annotations

import asyncio
import inspect
import itertools
import random
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from typing import Final, assert_never

from refmq.errors import DiskError, RefmqError
from refmq.model.ids import QueueOffset, TimestampMs
from refmq.model.step import EventFields
from refmq.net.clock import wall_clock
from refmq.net.connection import Connection
from refmq.net.fast_plane import FastPlane
from refmq.net.fast_store import FastStore
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
    WakeMore,
)
from refmq.plane.engine import Answer, ControlPlane
from refmq.plane.flow import Flow
from refmq.plane.inputs import (
    Commit,
    Deferred,
    Done,
    Drain,
    FlushFailed,
    Frame,
    Input,
    Install,
    Moment,
    NextWoken,
    OwnPut,
    SetOffsets,
    Ticket,
)
from refmq.plane.offsets import OffsetTable, commit_offset
from refmq.plane.pull import run_again
from refmq.plane.puts import append_failed
from refmq.protocol.codes import ResponseCode
from refmq.protocol.command import response
from refmq.store.store import ReferenceStore
from refmq.store.values import MessageToStore, PutResult, PutStatus, RecoveryReport

NOBODY: Final = Ticket(0)
"""The ticket of a put that nobody waits for."""


class PlaneRunner(ABC):
    """The part of an engine that takes steps. See `refmq.plane.engine.HotPath` for what each call promises."""

    def __init__(
        self,
        name: str,
        store: ReferenceStore | FastStore,
        *,
        record: Callable[[EventFields], None] | None,
        seed: int | None,
    ) -> None:
        self.name = name
        self.store = store
        self._front: FastPlane | None = None
        """The C plane, which is asked first."""
        self._record = record
        self._random = random.Random(seed)
        self._loop = asyncio.get_running_loop()
        self._wall_ms = wall_clock(self._loop)
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

    async def recover(self, now_ms: TimestampMs) -> RecoveryReport:
        return await self.store.start(now_ms)

    # --- what an engine adds -----------------------------------------------------------------------------------------

    @abstractmethod
    def connection(self, number: int) -> Connection | None:
        """The open connection with this number."""

    @abstractmethod
    def _schedule_dispatch(self) -> None:
        """Something was put into the log."""

    @abstractmethod
    def _schedule_flush(self) -> None:
        """A put waits until the log is flushed."""

    @abstractmethod
    def _schedule_tick(self) -> None:
        """Somebody waits: the plane has to be told the time."""

    def _parked(self, topic: str) -> None:
        """A pull of this topic waits from now on; the step that parked it is not over yet."""
        self._schedule_tick()

    def _alone(self) -> AbstractContextManager[object]:
        """Nobody else steps plane or store meanwhile."""
        return nullcontext()

    def _fail(self, error: DiskError) -> None:
        self._give_up()
        if not self.failure.done():
            self.failure.set_result(error)

    def _give_up(self) -> None:
        """Nobody who still waits for a flush will see it."""
        self._feed(FlushFailed())

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

    def install(self, snapshot: Snapshot, *, new_group: str | None = None) -> None:
        with self._alone():
            if self._front is not None:
                self._front.install(snapshot, new_group=new_group)
            self._feed(Install(snapshot))

    def commit_offset(self, group: str, topic: str, queue_id: int, offset: QueueOffset) -> None:
        self._feed(Commit(group, topic, queue_id, offset))

    def set_offsets(self, offsets: OffsetTable) -> None:
        with self._alone():
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

    # --- steps and their effects -------------------------------------------------------------------------------------

    def _feed(self, given: Input) -> Answer | Awaitable[Answer]:
        return self._take(given, self._loop.time())

    def _moment(self, uptime_s: float) -> Moment:
        return Moment(self._wall_ms(), int(uptime_s * 1000))

    def _take(self, given: Input, begun_s: float) -> Answer | Awaitable[Answer]:
        """Takes the step of an input. For a frame: its answer, what will be its answer, or None if it has none now."""
        with self._alone():
            self._take_offsets()
            outcome = step(self.state, self.store, given, self._moment(begun_s))
            last = outcome.effects[-1] if outcome.effects else None
            if isinstance(last, Park):
                self._parked(last.topic)
            elif outcome.effects and isinstance(outcome.effects[0], Append):
                outcome = self._append(outcome, outcome.effects[0])
            self._enter(outcome)
        return self._perform(outcome, given, begun_s)

    def _append(self, outcome: PlaneStep, first: Append) -> PlaneStep:
        """Performs the append that a step begins with: nothing else happens before it."""
        status = self.store.append(first.put.plan)
        if status is PutStatus.PUT_OK:
            return outcome
        return append_failed(self.state, self.store, first.put, status)

    def _enter(self, outcome: PlaneStep) -> None:
        """The next state, and the events that lead to it."""
        self._state = outcome.state
        for event in outcome.events:
            if self._record is not None:
                self._record(event)
            if self._front is not None and event[0] == "CommitOffset":
                _, group, topic, queue_id, _, offset, _, _ = event
                self._front.set_offset(Commit(group, topic, queue_id, QueueOffset(offset)))

    def _run_again(self, frame: Frame) -> None:
        """A woken pull that C cannot serve any more."""
        begun_s = self._loop.time()
        try:
            effects = run_again(self.state.snapshot, self.store, frame, self._moment(begun_s))
        except RefmqError as error:  # a damaged record: the others that were woken get their answers
            effects = (Reply(frame, response(frame.command, ResponseCode.SYSTEM_ERROR, remark=str(error))),)
        self._perform(PlaneStep(self.state, effects), Drain(), begun_s)

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
            case Append() | Park():
                pass  # performed already: the one before anything else, the other before anything can arrive
            case Dispatch():
                self._schedule_dispatch()
            case Flush():
                self._schedule_flush()
                self._schedule_tick()
            case Tell():
                told = self._untold.pop(effect.ticket, None)
                if told is not None and not told.done():
                    told.set_result(effect.result)
            case SetFilters():
                self.store.set_filters(effect.filters)
            case WakeMore():
                self._loop.call_soon(self._feed, NextWoken())
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
