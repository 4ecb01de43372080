"""A recorder: a TCP proxy that sees every frame between real clients and servers, and can point them back to itself.

A nameserver tells its clients where the brokers are, and they would connect there directly. So the recorder replaces
the broker's address in what the clients get by its own, which has as many digits, and therefore changes no length.
What is recorded are the bytes before that.
"""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Callable
from dataclasses import dataclass, field

from interop.processes import free_port

LENGTH_BYTES = 4


@dataclass(frozen=True)
class Captured:
    """One frame: which connection, in which direction, during which command."""

    connection: int
    to_server: bool
    server: str
    command: str
    frame: bytes


@dataclass
class Route:
    """A port of ours, the port behind it, and what that server is called in the records."""

    listen: int
    target: int
    server: str


@dataclass
class Recorder:
    """Runs in a thread of its own between ``start`` and ``stop``."""

    command: str = ""
    """What is going on; stands with every frame from now on."""
    captured: list[Captured] = field(default_factory=list)
    replacements: dict[bytes, bytes] = field(default_factory=dict)
    """What is replaced in frames to clients: text of equal length."""

    def __post_init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._connections = 0
        self._tasks: set[asyncio.Task[None]] = set()

    def start(self) -> Recorder:
        self._thread.start()
        return self

    def stop(self) -> None:
        async def cancel_all() -> None:
            for task in list(self._tasks):
                task.cancel()

        asyncio.run_coroutine_threadsafe(cancel_all(), self._loop).result(10)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(10)

    def listen(self, target: int, server: str, *, rewrite: bool = True, port: int | None = None) -> int:
        """Stand before the server on port ``target``; returns our port."""
        port = port or free_port((-2, 0, 1))
        started = self._serve(Route(port, target, server))
        asyncio.run_coroutine_threadsafe(started, self._loop).result(10)
        if rewrite:
            self.replacements[f"127.0.0.1:{target}".encode()] = f"127.0.0.1:{port}".encode()
        return port

    async def _serve(self, route: Route) -> None:
        async def accepted(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            task = asyncio.current_task()
            assert task is not None
            self._tasks.add(task)
            self._connections += 1
            try:
                await self._carry(route, self._connections, reader, writer)
            finally:
                self._tasks.discard(task)

        await asyncio.start_server(accepted, "127.0.0.1", route.listen)

    async def _carry(
        self, route: Route, number: int, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        try:
            far_reader, far_writer = await asyncio.open_connection("127.0.0.1", route.target)
        except OSError:
            writer.close()
            return

        def note(to_server: bool) -> Callable[[bytes], None]:
            return lambda frame: self.captured.append(Captured(number, to_server, route.server, self.command, frame))

        pumps = (
            self._pump(reader, far_writer, note(True), {}),
            self._pump(far_reader, writer, note(False), self.replacements),
        )
        try:
            await asyncio.gather(*pumps)
        finally:
            writer.close()
            far_writer.close()

    async def _pump(
        self,
        source: asyncio.StreamReader,
        target: asyncio.StreamWriter,
        note: Callable[[bytes], None],
        replacements: dict[bytes, bytes],
    ) -> None:
        with contextlib.suppress(asyncio.IncompleteReadError, ConnectionError):
            while True:
                prefix = await source.readexactly(LENGTH_BYTES)
                frame = prefix + await source.readexactly(int.from_bytes(prefix, "big"))
                note(frame)
                for old, new in replacements.items():
                    frame = frame.replace(old, new)
                target.write(frame)
                await target.drain()
        target.close()
