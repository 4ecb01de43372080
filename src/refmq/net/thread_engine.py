"""The engine with its ports in C: threads of `refmq_fast.Shell` serve the hot path; this is the control plane's end.

The IO thread reads frames and serves them with the C plane, without the interpreter. What it does not serve comes up in
a letter (`refmq.net.shell_letters`) and is fed to an ordinary `Connection`, whose transport sends letters down; so
requests, answers and requests of our own work as on any other connection. A connection that begins with a TLS handshake
comes up as a whole, and is served here from its first byte to its last.

The store and the C plane are shared with the IO thread under one lock, which every call of `refmq_fast` takes by
itself. A step of the reference plane takes it around all of its calls (`_alone`).
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import random
import socket
from collections import deque
from collections.abc import Awaitable, Callable
from contextlib import AbstractContextManager
from dataclasses import replace
from functools import partial
from typing import Final

import refmq_fast
from refmq.errors import DiskError, RefmqError
from refmq.model.ids import PhysicalOffset, TimestampMs
from refmq.net.address import format_address, parse_address
from refmq.net.connection import Connection, Handler
from refmq.net.fast_plane import FastPlane
from refmq.net.fast_store import FastStore
from refmq.net.limits import Admission, Limits
from refmq.net.note_recorder import NoteRecorder
from refmq.net.plane_runner import PlaneRunner
from refmq.net.server import ACCEPT_BACKLOG, Server
from refmq.net.shell_letters import Down, Letter, Up
from refmq.net.shell_transport import ShellTransport
from refmq.net.tls import ServerTls, TlsMode
from refmq.plane import PlaneState, Snapshot
from refmq.plane.engine import Answer, ControlPlane
from refmq.plane.inputs import Arrived, Closed, Drain, Durable, Frame, Tick
from refmq.plane.offsets import OffsetTable
from refmq.protocol.command import RemotingCommand
from refmq.protocol.frame import decode
from refmq.store.values import Dispatched

TICK_PERIOD_S: Final = 0.1
"""How often the plane is told the time while somebody waits here; C looks at the clock itself."""

LETTERS_PER_TURN: Final = 64
"""Letters that are read before others have their turn on the loop."""

WATCH_PERIOD_S: Final = 10.0
"""How often topics are forgotten for which nobody waits here any more."""

NEVER_S: Final = 1e9
"""An idle timeout that C keeps, not the connection here."""

TLS_MODES: Final = {TlsMode.DISABLED: 0, TlsMode.PERMISSIVE: 1, TlsMode.ENFORCING: 2}

log = logging.getLogger("refmq.net")


class ThreadEngine(PlaneRunner):
    """See `refmq.plane.engine.Engine` for what each call promises. The store is a `FastStore` over a
    `refmq_fast.PosixDisk`."""

    def __init__(
        self,
        name: str,
        store: FastStore,
        *,
        limits: Limits | None = None,
        tls: ServerTls | None = None,
        recorder: NoteRecorder | None = None,
        seed: int | None = None,
        around: Callable[[Handler], Handler] = lambda handler: handler,
    ) -> None:
        super().__init__(name, store, record=None if recorder is None else recorder.record, seed=seed)
        self.recorder = recorder
        self._limits = limits or Limits()
        self._tls = tls or ServerTls()
        self._fast_store = store
        self._seed = random.SystemRandom().getrandbits(63) if seed is None else seed
        quiet = replace(self._limits, idle_timeout_s=NEVER_S)
        handlers = {on_vip_port: around(partial(self._serve, on_vip_port)) for on_vip_port in (False, True)}
        self._told = {on_vip_port: Server(handler, quiet) for on_vip_port, handler in handlers.items()}
        """The connections in C of which the control plane has heard, by their port."""
        admission = Admission(self._limits.python_connections_max)
        self._whole = {
            on_vip_port: Server(handler, self._limits, tls=self._tls, admission=admission)
            for on_vip_port, handler in handlers.items()
        }
        """The connections that are served here."""
        self._shell: refmq_fast.Shell | None = None
        self._listening: list[tuple[socket.socket, bool]] = []
        self._letters: deque[Letter] = deque()
        self._watched: set[str] = set()
        self._known: set[int] = set()
        """Connections that have sent something here: their end matters."""
        self._is_empty = asyncio.Event()
        self._tick: asyncio.TimerHandle | None = None
        self._tasks: list[asyncio.Task[None]] = []
        for server in self.servers:
            server.failure.add_done_callback(self._server_failed)

    @property
    def servers(self) -> tuple[Server, ...]:
        """Those of the main port first."""
        return (self._told[False], self._whole[False], self._told[True], self._whole[True])

    @property
    def runs(self) -> bool:
        """Whether its threads do."""
        return self._shell is not None

    @property
    def open_connections(self) -> int:
        """How many there are in C; those that came up as a whole are in `servers`."""
        return 0 if self._shell is None else self._shell.counts[0]

    # --- life ------------------------------------------------------------------------------------------------------

    async def listen(self, host: str, port: int) -> tuple[str, int]:
        sockets = await bound_sockets(host, port)
        name = sockets[0].getsockname()
        self._take_listeners(sockets, on_vip_port=False)
        return str(name[0]), int(name[1])

    async def listen_vip(self, host: str, port: int) -> None:
        self._take_listeners(await bound_sockets(host, port), on_vip_port=True)

    def _take_listeners(self, sockets: list[socket.socket], *, on_vip_port: bool) -> None:
        """Until `run` connections wait in the backlog."""
        self._listening += [(each, on_vip_port) for each in sockets]
        if self._shell is not None:
            self._give_listeners(self._shell)

    def _give_listeners(self, shell: refmq_fast.Shell) -> None:
        for each, on_vip_port in self._listening:
            shell.listen(each.detach(), on_vip_port)
        self._listening.clear()

    def run(self, control: ControlPlane, snapshot: Snapshot, offsets: OffsetTable) -> None:
        assert self._control is None, "an engine runs once"
        self._control = control
        self._state = PlaneState(snapshot, offsets, looked_ms=self.uptime_ms)
        notes = None if self.recorder is None else self.recorder.notes
        self._front = FastPlane(self._fast_store, notes)
        self._front.install(snapshot)
        self._front.set_offsets(offsets)
        shell = refmq_fast.Shell(self._front.native, self._shell_limits(), self._seed)
        self._shell = shell
        self._loop.add_reader(shell.bell, self._collect)
        self._give_listeners(shell)
        shell.start()
        shell.post(Down.WORK)  # a recovery may have left records without units
        self._tasks.append(self._loop.create_task(self._maintain(), name="maintain"))
        self._tasks.append(self._loop.create_task(self._forget_topics(), name="forget topics"))

    def _shell_limits(self) -> dict[str, int]:
        limits = self._limits
        return {
            "frame_length_max": limits.frame_length_max,
            "requests_in_flight_max": limits.requests_in_flight_max,
            "request_bytes_in_flight_max": limits.request_bytes_in_flight_max,
            "write_high_bytes": limits.write_buffer_high_bytes,
            "write_max_bytes": limits.write_buffer_bytes_max,
            "idle_timeout_ms": int(limits.idle_timeout_s * 1000),
            "frame_timeout_ms": int(limits.frame_timeout_s * 1000),
            "connections_max": limits.connections_max,
            "memory_bytes_max": limits.memory_bytes_max,
            "linger_ms": int(limits.linger_s * 1000),
            "tls": TLS_MODES[self._tls.mode],
        }

    async def close(self, timeout_s: float) -> None:
        if self._shell is None:
            return
        self._shell.post(Down.DRAIN)
        self._feed(Drain())
        for server in self.servers:
            await server.close(timeout_s / 5)
        self._shell.post(Down.CLOSE_ALL)
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(timeout_s / 5):
                await self._is_empty.wait()
        self._shell.post(Down.ABORT_ALL)

    async def stop(self, now_ms: TimestampMs) -> None:
        for task in self._tasks:
            task.cancel()
        for task in self._tasks:
            with contextlib.suppress(asyncio.CancelledError):
                await task
        if self._tick is not None:
            self._tick.cancel()
        if self._shell is not None:
            self._loop.remove_reader(self._shell.bell)
            await asyncio.to_thread(self._shell.stop)
            self._collect()
            while self._letters:
                self._read_letters()
            self._give_up()
            # The shell knows the plane, and the plane the store: in this order they go.
            self._shell = self._front = None
        for each, _ in self._listening:
            each.close()
        await self.store.stop(now_ms)
        if self.recorder is not None:
            self.recorder.close()

    def _server_failed(self, failed: asyncio.Future[None]) -> None:
        if not failed.cancelled() and not self.failure.done():
            error = failed.exception()
            assert error is not None, "a server fails with the reason"
            self.failure.set_result(error)

    def connection(self, number: int) -> Connection | None:
        return next(filter(None, (server.connection(number) for server in self.servers)), None)

    # --- letters ---------------------------------------------------------------------------------------------------

    def _collect(self) -> None:
        """The bell rings: there are letters."""
        if self._shell is not None:
            was_idle = not self._letters
            self._letters.extend(Letter.of(fields) for fields in self._shell.collect())
            if was_idle and self._letters:
                self._read_letters()

    def _read_letters(self) -> None:
        arrived: list[Dispatched] = []
        for _ in range(min(LETTERS_PER_TURN, len(self._letters))):
            letter = self._letters.popleft()
            if letter.kind is Up.ARRIVED:
                assert letter.arrived is not None, "an arrival says of what"
                arrived.append(letter.arrived)
            else:
                self._read_letter(letter)
        if arrived:
            self._tell_arrived(arrived)
        if self._letters:
            self._loop.call_soon(self._read_letters)

    def _read_letter(self, letter: Letter) -> None:
        match letter.kind:
            case Up.FRAME:
                self._read_frame(letter)
            case Up.SOCKET:
                task = self._loop.create_task(self._adopt(letter), name="adopt a connection")
                self._tasks.append(task)
                task.add_done_callback(self._tasks.remove)
            case Up.PULL:
                self._take_back(letter)
            case Up.CLOSED:
                connection = self._told[letter.on_vip_port].connection(letter.connection)
                if connection is not None:
                    connection.connection_lost(None)
            case Up.EMPTY:
                self._is_empty.set()
            case Up.MISSED:
                self._look()
            case Up.DURABLE:
                self._feed(Durable(PhysicalOffset(letter.number)))
            case Up.FAILED:
                self._fail(self.store.failure or DiskError("the C plane", "serve", "it has no memory left"))
            case Up.ARRIVED:
                raise AssertionError("arrivals are read together")

    def _peer(self, letter: Letter) -> Connection:
        """The control plane's end of a connection in C, made when it is heard of first."""
        server = self._told[letter.on_vip_port]
        connection = server.connection(letter.connection)
        if connection is None:
            assert self._shell is not None, "letters come from a shell"
            connection = server.adopt(letter.connection)
            host, port = parse_address(letter.peer)
            connection.connection_made(ShellTransport(self._shell, letter.connection, (host, port)))
        return connection

    def _read_frame(self, letter: Letter) -> None:
        assert self._shell is not None, "letters come from a shell"
        self._peer(letter).data_received(letter.data)
        # A handler that takes its time is a task, which begins before this callback.
        self._loop.call_soon(self._shell.post, Down.BEGUN, letter.connection, 1)

    async def _adopt(self, letter: Letter) -> None:
        """Serves a connection here from its first byte on."""
        accepted = socket.socket(fileno=letter.number)
        accepted.setblocking(False)
        server = self._whole[letter.on_vip_port]
        with contextlib.suppress(OSError):
            await self._loop.connect_accepted_socket(partial(server.adopt, letter.connection), accepted)

    def _take_back(self, letter: Letter) -> None:
        """A woken pull that C cannot serve any more: nobody waits for what is handed over but its peer."""
        head_length = letter.split.to_bytes(4)
        head = bytes((letter.serialize, *head_length[1:])) + letter.data
        command = decode(len(head).to_bytes(4) + head)
        peer = self._peer(letter)
        frame = Frame(next(self._frames), peer.number, peer.peer, command, on_vip_port=letter.on_vip_port)
        self._run_again(frame)

    # --- arrivals --------------------------------------------------------------------------------------------------

    def watch(self, topic: str, told: Callable[[], None]) -> None:
        super().watch(topic, told)
        self._hear_of(topic)

    def _parked(self, topic: str) -> None:
        super()._parked(topic)
        self._hear_of(topic)

    def _hear_of(self, topic: str) -> None:
        """From now on letters tell of the records of a topic."""
        assert self._shell is not None, "the engine runs"
        if topic not in self._watched and self._shell.watch(topic.encode("utf-8", "surrogatepass"), True):
            self._watched.add(topic)

    def _tell_arrived(self, messages: list[Dispatched]) -> None:
        for topic in {message.topic for message in messages} & self._watchers.keys():
            self._watchers[topic]()
        self._feed(Arrived(tuple(messages)))

    def _look(self) -> None:
        """Anything may have arrived."""
        for told in self._watchers.values():
            told()
        self._state = replace(self.state, looked_ms=0)  # so that the next tick looks through all that wait
        self._feed(Tick())

    async def _forget_topics(self) -> None:
        while True:
            await asyncio.sleep(WATCH_PERIOD_S)
            waiting = {topic for topic, _ in self.state.hold.by_queue}
            for topic in self._watched - waiting - self._watchers.keys():
                assert self._shell is not None, "the engine runs"
                self._shell.watch(topic.encode("utf-8", "surrogatepass"), False)
                self._watched.discard(topic)

    # --- requests --------------------------------------------------------------------------------------------------

    def _serve(self, on_vip_port: bool, connection: Connection, command: RemotingCommand) -> Answer | Awaitable[Answer]:
        if connection.number not in self._known:
            self._known.add(connection.number)
            connection.on_close(self._closed)
        begun_s = self._loop.time()
        waited_ms = int((begun_s - connection.last_received_at) * 1000)
        draw = self._random.getrandbits(31)
        frame = Frame(next(self._frames), connection.number, connection.peer, command, waited_ms, draw, on_vip_port)
        return self._take(frame, begun_s)

    def _closed(self, connection: Connection) -> None:
        self._known.discard(connection.number)
        self._feed(Closed(connection.number))
        assert self._control is not None
        self._control.connection_closed(connection.number)

    # --- what steps want -------------------------------------------------------------------------------------------

    def _alone(self) -> AbstractContextManager[object]:
        return self._fast_store.alone()

    def _schedule_dispatch(self) -> None:
        if self._shell is not None:
            self._shell.post(Down.WORK)

    def _schedule_flush(self) -> None:
        if self._shell is not None:
            self._shell.post(Down.FLUSH)

    def _schedule_tick(self) -> None:
        if self._tick is None:
            self._tick = self._loop.call_later(TICK_PERIOD_S, self._on_tick)

    def _on_tick(self) -> None:
        self._tick = None
        self._feed(Tick())
        if len(self.state.puts) or len(self.state.hold):
            self._schedule_tick()

    async def _maintain(self) -> None:
        while True:
            await asyncio.sleep(self.store.config.maintain_period_ms / 1000)
            try:
                await self.store.maintain(self._wall_ms())
            except DiskError as error:
                self._fail(error)
                return


async def bound_sockets(host: str, port: int) -> list[socket.socket]:
    """Listening sockets on all addresses of a host, the same port on each. `RefmqError` if one cannot be had."""
    loop = asyncio.get_running_loop()
    sockets: list[socket.socket] = []
    try:
        found = await loop.getaddrinfo(host or None, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
        for family, kind, protocol, _, address in dict.fromkeys(found):
            listener = socket.socket(family, kind, protocol)
            sockets.append(listener)
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            if family == socket.AF_INET6:
                listener.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
            chosen = sockets[0].getsockname()[1]
            listener.bind((address[0], port or chosen, *address[2:]))
            listener.listen(ACCEPT_BACKLOG)
            listener.setblocking(False)
    except OSError as error:
        for each in sockets:
            each.close()
        reason = error.strerror or str(error)
        raise RefmqError(f"cannot listen on {format_address(host, port)}: {reason}") from None
    return sockets
