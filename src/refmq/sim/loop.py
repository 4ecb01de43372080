"""A deterministic asyncio event loop: virtual time, and a seeded order of what is ready.

Order. asyncio promises that callbacks of one loop run in the order in which they were scheduled, and
refmq's shells may rely on it. Real nodes are separate processes, and nothing orders one node's
callbacks against another's. So every process has a first-in-first-out queue of its own, and the seed
decides, callback by callback, which process runs next. Timers that are due at the same moment run
in a seeded order, within one process too: asyncio leaves that open.

Time. It stands still while anything is ready and then jumps to the next timer. `loop.time()` is the
monotonic clock; `loop.wall_ms()` is the wall clock of the process that asks, which faults can move.

What is left out raises `Escape`, naming the place: file descriptors, real sockets, pipes,
subprocesses, TLS. `run_in_executor` runs the function inside the loop a little later.

Nothing here depends on hashes or addresses of objects: tasks and futures hash by the order of their
creation, because asyncio keeps them in sets (`TaskGroup` cancels its tasks in the order of a set).
"""

from __future__ import annotations

import asyncio
import gc
import heapq
import random
import sys
import weakref
from collections.abc import AsyncGenerator, Awaitable, Callable, Coroutine, Generator
from contextvars import Context
from dataclasses import dataclass
from ipaddress import ip_address
from typing import Any, Final, NoReturn, Protocol, TypeVar, TypeVarTuple, Unpack

from refmq.model.ids import TimestampMs
from refmq.sim.disk import SimulatedCrash
from refmq.sim.escape import Escape, Guard
from refmq.sim.process import CURRENT, Process

T = TypeVar("T")
Ts = TypeVarTuple("Ts")

MONOTONIC_START_S: Final = 100_000.0
"""Not zero: code that takes 0 for "never" must not work here by accident."""
WALL_START_MS: Final = 1_700_000_000_000
"""2023-11-14T22:13:20Z, the wall clock at the start of every run."""
CALLBACKS_PER_MOMENT_MAX: Final = 200_000
"""More callbacks than this at one moment of virtual time means an endless loop."""
TASKS_KEPT_MIN: Final = 64
"""Finished tasks are dropped from a process when it has twice as many as after the last time, at least this."""
LIVES_MAX: Final = 1_000
"""Lives of a node that have process numbers of their own."""

EXECUTOR_DELAY_S: Final = (0.000_02, 0.000_2)
"""What a thread pool takes to run a function: shortest and longest."""


class Stuck(AssertionError):
    """The simulated world can make no progress: a deadlock, a livelock, or its time is up."""


class Transports(Protocol):
    """What the loop asks of the network. `refmq.sim.network.Network` is it."""

    async def connect(
        self, process: Process, factory: Callable[[], asyncio.BaseProtocol], host: str, port: int
    ) -> tuple[asyncio.Transport, asyncio.BaseProtocol]: ...

    def listen(
        self, process: Process, factory: Callable[[], asyncio.BaseProtocol], host: str | None, port: int
    ) -> asyncio.AbstractServer: ...

    def resolve(self, process: Process, host: str | None) -> str: ...


@dataclass(frozen=True, slots=True)
class Problem:
    """An unhandled exception."""

    process: str
    at_s: float
    message: str
    exception: BaseException | None

    def __str__(self) -> str:
        shown = "" if self.exception is None else f": {type(self.exception).__name__}: {self.exception}"
        return f"{self.process} at {self.at_s:.6f} s: {self.message}{shown}"


class SimulatedHandle(asyncio.Handle):
    """A callback of one process."""

    __slots__ = ("process",)

    def __init__(
        self,
        process: Process,
        callback: Callable[..., object],
        args: tuple[Any, ...],
        loop: SimulatedLoop,
        context: Context | None,
    ) -> None:
        super().__init__(callback, args, loop, context)
        self.process = process


class SimulatedTimer(asyncio.TimerHandle):
    """A callback of one process at a time."""

    __slots__ = ("process",)

    def __init__(
        self,
        process: Process,
        when: float,
        callback: Callable[..., object],
        args: tuple[Any, ...],
        loop: SimulatedLoop,
        context: Context | None,
    ) -> None:
        super().__init__(when, callback, args, loop, context)
        self.process = process


class SimulatedFuture(asyncio.Future[T]):
    """A future that hashes by the order of creation."""

    def __init__(self, number: int, process: Process, loop: SimulatedLoop) -> None:
        self.number = number
        self.process = process
        super().__init__(loop=loop)

    def __hash__(self) -> int:
        return self.number


class SimulatedTask(asyncio.Task[T]):
    """A task that hashes by the order of creation."""

    def __init__(
        self,
        number: int,
        process: Process,
        coroutine: Generator[Any, None, T] | Coroutine[Any, Any, T],
        loop: SimulatedLoop,
        name: str,
        context: Context | None,
    ) -> None:
        self.process = process
        self.number = number  # before the rest: asyncio puts the task into a set while it initialises it
        super().__init__(coroutine, loop=loop, name=name, context=context)

    def __hash__(self) -> int:
        return self.number


_TimerEntry = tuple[float, float, int, "SimulatedTimer | Callable[[], object]"]


def _refuse(name: str) -> Callable[..., Any]:
    def refused(self: SimulatedLoop, *args: Any, **kwargs: Any) -> NoReturn:
        error = Escape(f"loop.{name}", "the simulated loop has no file descriptors, processes or datagrams")
        self.guard.note(error)
        raise error

    refused.__name__ = name
    return refused


class SimulatedLoop(asyncio.AbstractEventLoop):
    """The loop of a simulated world. `World` makes one per run."""

    def __init__(self, schedule: random.Random, outside: Process, guard: Guard) -> None:
        """`schedule` decides the order, `outside` is the process of the code that drives the run."""
        self.outside = outside
        self.transports: Transports | None = None
        self.problems: list[Problem] = []
        self.callbacks_run = 0
        self._random = schedule.random
        self.guard = guard
        self._now = MONOTONIC_START_S
        self._timers: list[_TimerEntry] = []
        self._numbers = 0
        self._runnable: list[Process] = []
        self._dead: list[Process] = []
        self._stopping = False
        self._running = False
        self._closed = False
        self._async_generators: weakref.WeakKeyDictionary[AsyncGenerator[Any, Any], int] = weakref.WeakKeyDictionary()
        self._prune_at: dict[str, int] = {}

    # --- time -------------------------------------------------------------------------------------------------

    def time(self) -> float:
        return self._now

    @property
    def elapsed_s(self) -> float:
        """Virtual seconds since the start of the run."""
        return self._now - MONOTONIC_START_S

    def wall_ms(self) -> TimestampMs:
        """The wall clock of the process that asks."""
        skew_ms = CURRENT.get(self.outside).wall_skew_ms
        return TimestampMs(WALL_START_MS + int(self.elapsed_s * 1000) + skew_ms)

    def entropy(self) -> random.Random:
        """The random numbers of the process that asks, for shells that need a unique identifier."""
        return CURRENT.get(self.outside).entropy

    def process_id(self) -> int:
        """The number of the process that asks: the same in every run, another one in every life."""
        process = CURRENT.get(self.outside)
        return ip_address(process.address).packed[-1] * LIVES_MAX + process.life % LIVES_MAX

    # --- scheduling -------------------------------------------------------------------------------------------

    def call_soon(
        self, callback: Callable[[Unpack[Ts]], object], *args: *Ts, context: Context | None = None
    ) -> asyncio.Handle:
        process = CURRENT.get(self.outside) if context is None else context.get(CURRENT, self.outside)
        handle = SimulatedHandle(process, callback, args, self, context)
        if not process.alive:
            handle.cancel()
            return handle
        process.ready.append(handle)
        if not process.is_runnable and not process.paused:
            process.is_runnable = True
            self._runnable.append(process)
        return handle

    def call_soon_threadsafe(
        self, callback: Callable[[Unpack[Ts]], object], *args: *Ts, context: Context | None = None
    ) -> asyncio.Handle:
        return self.call_soon(callback, *args, context=context)

    def call_later(
        self, delay: float, callback: Callable[[Unpack[Ts]], object], *args: *Ts, context: Context | None = None
    ) -> asyncio.TimerHandle:
        return self.call_at(self._now + delay, callback, *args, context=context)

    def call_at(
        self, when: float, callback: Callable[[Unpack[Ts]], object], *args: *Ts, context: Context | None = None
    ) -> asyncio.TimerHandle:
        process = CURRENT.get(self.outside) if context is None else context.get(CURRENT, self.outside)
        timer = SimulatedTimer(process, when, callback, args, self, context)
        if not process.alive:
            timer.cancel()
            return timer
        heapq.heappush(self._timers, (when, self._random(), self._number(), timer))
        return timer

    def call_world_at(self, when: float, callback: Callable[[], object]) -> None:
        """Something that happens to the world and not in a process: a packet arrives, a fault strikes."""
        heapq.heappush(self._timers, (when, self._random(), self._number(), callback))

    def _timer_handle_cancelled(self, handle: asyncio.TimerHandle) -> None:
        """Cancelled timers stay in the heap until their time has come."""

    def _number(self) -> int:
        self._numbers += 1
        return self._numbers

    def pause(self, process: Process) -> None:
        """The process stops as if by SIGSTOP: its timers and packets pile up."""
        process.paused = True
        if process.is_runnable:
            process.is_runnable = False
            self._runnable.remove(process)

    def resume(self, process: Process) -> None:
        process.paused = False
        if process.ready and process.alive and not process.is_runnable:
            process.is_runnable = True
            self._runnable.append(process)

    def bury(self, process: Process) -> None:
        """A process has died: reap it when the callback that runs now has returned."""
        if process.is_runnable:
            process.is_runnable = False
            self._runnable.remove(process)
        self._dead.append(process)

    # --- running ----------------------------------------------------------------------------------------------

    def run_forever(self) -> None:
        assert not self._running, "the simulated loop runs already"
        assert not self._closed, "the simulated loop is closed"
        collecting = gc.isenabled()
        gc.disable()  # A collection falls on another moment in every process, and finalizers are code too.
        hooks = sys.get_asyncgen_hooks()
        sys.set_asyncgen_hooks(firstiter=self._async_generator_started, finalizer=self._async_generator_dropped)
        asyncio._set_running_loop(self)
        self._running = True
        self.guard.enter(self.wall_ms)
        try:
            while not self._stopping:
                self._run_one()
        finally:
            self.guard.leave()
            self._stopping = self._running = False
            asyncio._set_running_loop(None)
            sys.set_asyncgen_hooks(*hooks)
            if collecting:
                gc.enable()

    def run_until_complete(self, future: Generator[Any, None, T] | Awaitable[T]) -> T:
        task: asyncio.Future[T] = asyncio.ensure_future(future, loop=self)  # type: ignore[arg-type]  # typeshed has it twice
        task.add_done_callback(self._stop_at_end)
        try:
            self.run_forever()
        finally:
            task.remove_done_callback(self._stop_at_end)
            if not task.done():
                task._log_destroy_pending = False  # type: ignore[attr-defined]  # the run has failed; it says why
        return task.result()

    def _stop_at_end(self, _: asyncio.Future[Any]) -> None:
        self._stopping = True

    def _run_one(self) -> None:
        """One callback of one process, or a jump to the next moment."""
        runnable = self._runnable
        if not runnable:
            self._next_moment()
            return
        position = int(self._random() * len(runnable)) if len(runnable) > 1 else 0
        process = runnable[position]
        handle = process.ready.popleft()
        if not process.ready:
            process.is_runnable = False
            del runnable[position]
        if not handle._cancelled:
            self.callbacks_run += 1
            self._moment_callbacks += 1
            if self._moment_callbacks > CALLBACKS_PER_MOMENT_MAX:
                raise Stuck(f"{process.label} runs forever at {self.elapsed_s:.6f} s without waiting: {handle!r}")
            handle._run()
        while self._dead:
            self._dead.pop().reap()

    _moment_callbacks = 0

    def _next_moment(self) -> None:
        timers = self._timers
        if not timers:
            raise Stuck(f"deadlock at {self.elapsed_s:.6f} s: nothing is ready and no timer is set; {self.waiting()}")
        if timers[0][0] > self._now:
            self._now = timers[0][0]
            self._moment_callbacks = 0
        now = self._now
        while timers and timers[0][0] <= now:
            timer = heapq.heappop(timers)[3]
            if not isinstance(timer, SimulatedTimer):
                timer()
            elif not timer.cancelled() and timer.process.alive:
                process = timer.process
                process.ready.append(timer)
                if not process.is_runnable and not process.paused:
                    process.is_runnable = True
                    self._runnable.append(process)
        while self._dead:
            self._dead.pop().reap()

    def waiting(self) -> str:
        """The driver's unfinished tasks, for messages."""
        names = [task.get_name() for task in self.outside.tasks if not task.done()]
        return "unfinished outside: " + (", ".join(names) or "nothing")

    def stop(self) -> None:
        self._stopping = True

    def is_running(self) -> bool:
        return self._running

    def is_closed(self) -> bool:
        return self._closed

    def close(self) -> None:
        assert not self._running
        self._closed = True
        self._timers.clear()
        self._runnable.clear()

    # --- tasks and futures ------------------------------------------------------------------------------------

    def create_future(self) -> asyncio.Future[Any]:
        return SimulatedFuture(self._number(), CURRENT.get(self.outside), self)

    def create_task(
        self,
        coro: Generator[Any, None, T] | Coroutine[Any, Any, T],
        *,
        name: str | None = None,
        context: Context | None = None,
    ) -> asyncio.Task[T]:
        process = CURRENT.get(self.outside) if context is None else context.get(CURRENT, self.outside)
        number = self._number()
        if name is None:
            name = f"{process.label}/{getattr(coro, '__qualname__', 'task')}-{number}"
        task = SimulatedTask(number, process, coro, self, name, context)
        process.tasks.append(task)
        if len(process.tasks) >= self._prune_at.get(process.label, 2 * TASKS_KEPT_MIN):
            for lost in process.forget_finished_tasks():
                self._unseen(process, lost)
            self._prune_at[process.label] = 2 * max(TASKS_KEPT_MIN, len(process.tasks))
        return task

    def report_unseen(self, process: Process) -> None:
        """Reports exceptions of finished tasks that were never retrieved as problems."""
        for task in process.forget_finished_tasks(at_end=True):
            self._unseen(process, task)

    def _unseen(self, process: Process, task: asyncio.Task[Any]) -> None:
        error = task.exception()  # looking at it also stops asyncio from reporting it
        if process.alive and not isinstance(error, SimulatedCrash):
            self._problem(process, f"exception of {task.get_name()} was never retrieved", error)

    def _problem(self, process: Process, message: str, exception: BaseException | None) -> None:
        self.problems.append(Problem(process.label, self.elapsed_s, message, exception))

    def call_exception_handler(self, context: dict[str, Any]) -> None:
        process = CURRENT.get(self.outside)
        for key in ("handle", "future", "task"):
            owner = context.get(key)
            if isinstance(owner, SimulatedHandle | SimulatedTimer | SimulatedFuture | SimulatedTask):
                process = owner.process
        exception = context.get("exception")
        if isinstance(exception, SimulatedCrash) or not process.alive:
            return
        if process.exception_handler is not None:
            process.exception_handler(self, context)
        else:
            self._problem(process, str(context.get("message", "unhandled exception")), exception)

    def default_exception_handler(self, context: dict[str, Any]) -> None:
        self._problem(CURRENT.get(self.outside), str(context.get("message")), context.get("exception"))

    def get_exception_handler(self) -> Callable[[asyncio.AbstractEventLoop, dict[str, Any]], object] | None:
        return CURRENT.get(self.outside).exception_handler

    def set_exception_handler(
        self, handler: Callable[[asyncio.AbstractEventLoop, dict[str, Any]], object] | None
    ) -> None:
        CURRENT.get(self.outside).exception_handler = handler

    def run_in_executor(self, executor: Any, func: Callable[[Unpack[Ts]], T], *args: *Ts) -> asyncio.Future[T]:
        """Runs `func` inside the loop, as late as a thread pool would have finished it."""
        future: asyncio.Future[T] = self.create_future()
        shortest, longest = EXECUTOR_DELAY_S

        def run() -> None:
            if future.cancelled():
                return
            try:
                future.set_result(func(*args))
            except Exception as error:
                future.set_exception(error)

        self.call_later(shortest + (longest - shortest) * self._random(), run)
        return future

    def _async_generator_started(self, generator: AsyncGenerator[Any, Any]) -> None:
        self._async_generators[generator] = self._number()

    def _async_generator_dropped(self, generator: AsyncGenerator[Any, Any]) -> None:
        self._async_generators.pop(generator, None)
        if not self._closed and CURRENT.get(self.outside).alive:
            self.create_task(generator.aclose())

    async def shutdown_asyncgens(self) -> None:
        for generator, _ in sorted(self._async_generators.items(), key=lambda item: item[1]):
            await generator.aclose()

    async def shutdown_default_executor(self, timeout: float | None = None) -> None:
        """There is none."""

    def set_default_executor(self, executor: Any) -> None:
        """Functions for an executor run in the loop, whatever the executor."""

    # --- the network ------------------------------------------------------------------------------------------

    async def create_connection(self, protocol_factory: Any, host: Any = None, port: Any = None, **options: Any) -> Any:
        self._only_plain("create_connection", options)
        assert self.transports is not None
        assert isinstance(host, str), f"host {host!r} is not a name"
        assert isinstance(port, int), f"port {port!r} is not a number"
        return await self.transports.connect(CURRENT.get(self.outside), protocol_factory, host, port)

    async def create_server(self, protocol_factory: Any, host: Any = None, port: Any = None, **options: Any) -> Any:
        self._only_plain("create_server", options)
        assert self.transports is not None
        start_serving = options.get("start_serving", True)
        if not isinstance(host, str | None):
            hosts = list(host)
            assert len(hosts) == 1, "a simulated server listens on one address"
            host = hosts[0]
        server = self.transports.listen(CURRENT.get(self.outside), protocol_factory, host, int(port or 0))
        if start_serving:
            await server.start_serving()
        return server

    async def getaddrinfo(self, host: Any, port: Any, **_: Any) -> Any:
        assert self.transports is not None
        address = self.transports.resolve(CURRENT.get(self.outside), host)
        family = 10 if ":" in address else 2  # AF_INET6, AF_INET
        return [(family, 1, 6, "", (address, int(port or 0)))]  # SOCK_STREAM, TCP

    async def getnameinfo(self, sockaddr: Any, flags: int = 0) -> tuple[str, str]:
        return str(sockaddr[0]), str(sockaddr[1])

    @staticmethod
    def _only_plain(call: str, options: dict[str, Any]) -> None:
        for name in ("ssl", "sock", "local_addr"):
            if options.get(name):
                raise Escape(f"{call}({name}=...)", "the simulated network has plain TCP connections only")

    # --- signals ----------------------------------------------------------------------------------------------

    def add_signal_handler(self, sig: int, callback: Callable[[Unpack[Ts]], object], *args: *Ts) -> None:
        CURRENT.get(self.outside).signal_handlers[int(sig)] = (callback, args)

    def remove_signal_handler(self, sig: int) -> bool:
        return CURRENT.get(self.outside).signal_handlers.pop(int(sig), None) is not None

    # --- the rest of asyncio's interface ----------------------------------------------------------------------

    def get_debug(self) -> bool:
        return False

    def set_debug(self, enabled: bool) -> None:
        """asyncio's debug mode measures real time; here it has nothing to measure."""

    def get_task_factory(self) -> None:
        return None

    add_reader = _refuse("add_reader")  # type: ignore[assignment]  # it takes anything and refuses it
    remove_reader = _refuse("remove_reader")
    add_writer = _refuse("add_writer")  # type: ignore[assignment]  # it takes anything and refuses it
    remove_writer = _refuse("remove_writer")
    sock_recv = _refuse("sock_recv")
    sock_recv_into = _refuse("sock_recv_into")
    sock_recvfrom = _refuse("sock_recvfrom")
    sock_recvfrom_into = _refuse("sock_recvfrom_into")
    sock_sendall = _refuse("sock_sendall")
    sock_sendto = _refuse("sock_sendto")
    sock_connect = _refuse("sock_connect")
    sock_accept = _refuse("sock_accept")
    sock_sendfile = _refuse("sock_sendfile")
    sendfile = _refuse("sendfile")
    start_tls = _refuse("start_tls")
    create_unix_connection = _refuse("create_unix_connection")
    create_unix_server = _refuse("create_unix_server")
    create_datagram_endpoint = _refuse("create_datagram_endpoint")
    connect_read_pipe = _refuse("connect_read_pipe")
    connect_write_pipe = _refuse("connect_write_pipe")
    connect_accepted_socket = _refuse("connect_accepted_socket")
    subprocess_shell = _refuse("subprocess_shell")
    subprocess_exec = _refuse("subprocess_exec")
    set_task_factory = _refuse("set_task_factory")
