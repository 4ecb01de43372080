"""In-memory TCP: the two ends of a connection, as asyncio transports.

What is modelled, from the writer to the reader:

    write() -> transport buffer -> [window] -> wire (delay, cut, loss) -> receive queue -> data_received()
               pause_writing above the high-water mark

- The transport buffer is unbounded, as asyncio's is; `pause_writing` and `resume_writing` are called at
  the usual marks, so a writer that ignores them shows only in its memory.
- At most `window_bytes` of the network are under way or unread. A reader that pauses fills the window, and then the
  writer's buffer: back-pressure crosses the wire.
- A stream arrives in order and whole, cut into other pieces than it was written in.
- `close` flushes and ends the stream; `abort`, a crash and a broken link reset it, and then bytes under
  way are lost in both directions.

Bytes cross the wire in `refmq.sim.network.Network.carry`, which decides when.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from contextvars import Context
from dataclasses import dataclass, field
from typing import Any, Final, Protocol

from refmq.sim.loop import SimulatedLoop
from refmq.sim.process import Process

HIGH_WATER_BYTES: Final = 64 * 1024
"""asyncio's default for `set_write_buffer_limits`."""
WINDOW_BYTES: Final = 256 * 1024
"""Bytes under way or unread in one direction: socket buffers of both kernels together."""


class Wire(Protocol):
    """What the ends of a connection ask of the network. `refmq.sim.network.Network` is it."""

    loop: SimulatedLoop
    window_bytes: int

    def carry(self, link: Link, sender: SimulatedTransport, data: bytes | None, /) -> None: ...

    def reset(self, link: Link, by: SimulatedTransport) -> None: ...

    def forget(self, transport: SimulatedTransport, /) -> None: ...

    def deliver_later(self, transport: SimulatedTransport, deliver: Callable[[], object], /) -> None: ...

    def receive_limit(self, transport: SimulatedTransport, /) -> int: ...


@dataclass(slots=True, eq=False)
class Link:
    """One connection between two ends."""

    client: SimulatedTransport
    server: SimulatedTransport
    broken: bool = False
    reset_by: SimulatedTransport | None = None
    """The end that is gone and whose reset is under way."""
    muted: SimulatedTransport | None = None
    """The end that is gone and whose reset never got through: nothing from it arrives any more."""
    last_arrival_s: dict[SimulatedTransport, float] = field(default_factory=dict)
    """Per sending end: nothing that it sends arrives before this."""
    waiting: dict[SimulatedTransport, deque[bytes | None]] = field(default_factory=dict)
    """Per sending end: what cannot get through at present, in order."""

    def other(self, end: SimulatedTransport) -> SimulatedTransport:
        return self.server if end is self.client else self.client


class SimulatedSocket:
    """What `get_extra_info("socket")` and `server.sockets` give: addresses, and options that do nothing."""

    def __init__(self, local: tuple[str, int], remote: tuple[str, int] | None = None) -> None:
        self._local = local
        self._remote = remote
        self.family = 2  # AF_INET
        self.type = 1  # SOCK_STREAM

    def getsockname(self) -> tuple[str, int]:
        return self._local

    def getpeername(self) -> tuple[str, int]:
        if self._remote is None:
            raise OSError(107, "Transport endpoint is not connected")
        return self._remote

    def setsockopt(self, *_: Any) -> None:
        """Options change nothing here."""

    def fileno(self) -> int:
        return -1


class SimulatedTransport(asyncio.Transport):
    """One end of a connection."""

    def __init__(
        self,
        network: Wire,
        process: Process,
        context: Context,
        local: tuple[str, int],
        remote: tuple[str, int],
        number: int,
    ) -> None:
        super().__init__(
            {
                "peername": remote,
                "sockname": local,
                "socket": SimulatedSocket(local, remote),
                "sslcontext": None,
                "ssl_object": None,
            }
        )
        self.process = process
        self.context = context
        self.number = number
        self.link: Link | None = None
        self.is_gone = False
        """This end no longer exists; whatever still arrives for it is answered by a reset."""
        self.unread_bytes = 0
        """Bytes that the other end has not read yet, under way or in its queue: the used part of the window."""
        self._network = network
        self._protocol: asyncio.BaseProtocol | None = None
        self._buffer: deque[bytes] = deque()
        self._buffer_bytes = 0
        self._high = HIGH_WATER_BYTES
        self._low = HIGH_WATER_BYTES // 4
        self._writing_paused = False
        self._reading_paused = False
        self._lost_by: Exception | None = None
        self._closing = False
        self._eof_wanted = False
        self._eof_sent = False
        self._inbox: deque[bytes] = deque()
        self._eof_arrived = False
        self._eof_told = False
        self._delivery_planned = False

    def __hash__(self) -> int:
        return self.number

    def __repr__(self) -> str:
        local, remote = self.get_extra_info("sockname"), self.get_extra_info("peername")
        return f"<connection {self.number} {self.process.label} {local[0]}:{local[1]} to {remote[0]}:{remote[1]}>"

    # --- asyncio's interface ----------------------------------------------------------------------------------

    def set_protocol(self, protocol: asyncio.BaseProtocol) -> None:
        self._protocol = protocol

    def get_protocol(self) -> asyncio.BaseProtocol:
        assert self._protocol is not None
        return self._protocol

    def is_closing(self) -> bool:
        return self._closing

    def is_reading(self) -> bool:
        return not self._reading_paused and not self._closing

    def pause_reading(self) -> None:
        self._reading_paused = True

    def resume_reading(self) -> None:
        if self._reading_paused:
            self._reading_paused = False
            self._plan_delivery()

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        if high is None:
            high = HIGH_WATER_BYTES if low is None else 4 * low
        if low is None:
            low = high // 4
        if not high >= low >= 0:
            raise ValueError(f"high ({high}) must be at least low ({low}), and low at least 0")
        self._high, self._low = high, low
        self._maybe_pause()

    def get_write_buffer_limits(self) -> tuple[int, int]:
        return self._low, self._high

    def get_write_buffer_size(self) -> int:
        return self._buffer_bytes

    def can_write_eof(self) -> bool:
        return True

    def write(self, data: bytes | bytearray | memoryview[Any]) -> None:
        if self._eof_wanted:
            raise RuntimeError("write was called after write_eof")
        if self.is_gone or self._closing or not data or not self.process.alive:
            return
        self.process.effect("send")
        self._buffer.append(bytes(data))
        self._buffer_bytes += len(data)
        self.push()
        self._maybe_pause()

    def writelines(self, list_of_data: Any) -> None:
        self.write(b"".join(list_of_data))

    def write_eof(self) -> None:
        if not self._eof_wanted and not self._closing:
            self._eof_wanted = True
            self.push()

    def close(self) -> None:
        """Flushes what is written, then ends the connection."""
        if self._closing or self.is_gone or not self.process.alive:
            return
        self._closing = True
        self._eof_wanted = True
        self._inbox.clear()
        self.push()

    def abort(self) -> None:
        if self.is_gone or not self.process.alive:
            return
        self._closing = True
        if self.link is not None:
            self._network.reset(self.link, by=self)
        self.lose(None)

    # --- the writing side -------------------------------------------------------------------------------------

    def push(self) -> None:
        """Moves bytes from the buffer to the wire, as far as the window allows."""
        if self.link is None or self.is_gone:
            return
        while self._buffer and self.unread_bytes < self._network.window_bytes:
            chunk = self._buffer.popleft()
            room = self._network.window_bytes - self.unread_bytes
            if len(chunk) > room:
                self._buffer.appendleft(chunk[room:])
                chunk = chunk[:room]
            self._buffer_bytes -= len(chunk)
            self.unread_bytes += len(chunk)
            self._network.carry(self.link, self, chunk)
        if not self._buffer and self._eof_wanted and not self._eof_sent:
            self._eof_sent = True
            self._network.carry(self.link, self, None)
        if self._closing and self._eof_sent:
            self.lose(None)

    def window_opens(self, count: int) -> None:
        """The other end has read `count` bytes."""
        self.unread_bytes -= count
        if self._buffer or self._writing_paused:
            self._network.loop.call_soon(self._after_window, context=self.context)

    def _after_window(self) -> None:
        self.push()
        if self._writing_paused and self._buffer_bytes <= self._low and not self.is_gone:
            self._writing_paused = False
            self._call(self.get_protocol().resume_writing)

    def _maybe_pause(self) -> None:
        if self._buffer_bytes > self._high and not self._writing_paused and not self.is_gone:
            self._writing_paused = True
            self._call(self.get_protocol().pause_writing)

    def _call(self, method: Callable[[], object]) -> None:
        try:
            method()
        except Exception as error:
            self._fail(error, f"{method.__qualname__} failed")

    # --- the reading side -------------------------------------------------------------------------------------

    def attach(self, protocol: asyncio.BaseProtocol) -> None:
        """Gives the connection to its protocol; what has arrived meanwhile follows."""
        was_lost = self.is_gone  # while the process that asked for it could not run
        self._protocol = protocol
        protocol.connection_made(self)
        if was_lost:
            self._network.loop.call_soon(protocol.connection_lost, self._lost_by, context=self.context)
        self._plan_delivery()

    def arrive(self, data: bytes | None) -> None:
        """Bytes, or the end of the stream, have come through the wire."""
        if data is None:
            self._eof_arrived = True
        else:
            self._inbox.append(data)
        self._plan_delivery()

    def _plan_delivery(self) -> None:
        if self._protocol is not None and not self._delivery_planned and (self._inbox or self._eof_arrived):
            self._delivery_planned = True
            self._network.deliver_later(self, self._deliver)

    def _deliver(self) -> None:
        self._delivery_planned = False
        if self._closing or self.is_gone:
            self._give_back()
            return
        if self._reading_paused:
            return
        if self._inbox:
            pieces: list[bytes] = []
            size = 0
            limit = self._network.receive_limit(self)
            while self._inbox and size < limit:
                piece = self._inbox.popleft()
                if len(piece) > limit - size:
                    self._inbox.appendleft(piece[limit - size :])
                    piece = piece[: limit - size]
                pieces.append(piece)
                size += len(piece)
            self._give_back(size)
            try:
                _feed(self.get_protocol(), b"".join(pieces))
            except Exception as error:
                self._fail(error, "data_received failed")
                return
        if self._inbox:
            self._plan_delivery()
        elif self._eof_arrived and not self._eof_told and self.is_reading():
            self._eof_told = True
            protocol = self.get_protocol()
            stay_open = protocol.eof_received() if isinstance(protocol, asyncio.Protocol) else False
            if not stay_open:
                self.close()

    def _give_back(self, count: int | None = None) -> None:
        """Opens the other end's window by what was read here."""
        if count is None:
            count = sum(map(len, self._inbox))
            self._inbox.clear()
        if count and self.link is not None:
            self.link.other(self).window_opens(count)

    # --- the end ----------------------------------------------------------------------------------------------

    def lose(self, error: Exception | None) -> None:
        """This end is closed: the protocol is notified soon. `error` is None if we closed it ourselves."""
        if self.is_gone:
            return
        self.is_gone = True
        self._lost_by = error
        self._closing = True
        self._buffer.clear()
        self._buffer_bytes = 0
        self._inbox.clear()
        self._network.forget(self)
        if self._protocol is not None:
            self._network.loop.call_soon(self._protocol.connection_lost, error, context=self.context)

    def vanish(self) -> None:
        """The process of this end is dead: there is no one to notify."""
        self.is_gone = True
        self._closing = True
        self._buffer.clear()
        self._inbox.clear()
        self._network.forget(self)

    def _fail(self, error: Exception, message: str) -> None:
        """A protocol method raised: the connection ends and the error goes to the loop's handler, as in asyncio."""
        self._network.loop.call_exception_handler({"message": message, "exception": error, "transport": self})
        self.abort()


def _feed(protocol: asyncio.BaseProtocol, data: bytes) -> None:
    if isinstance(protocol, asyncio.BufferedProtocol):
        while data:
            buffer = memoryview(protocol.get_buffer(len(data)))
            count = min(len(buffer), len(data))
            buffer[:count] = data[:count]
            protocol.buffer_updated(count)
            data = data[count:]
    else:
        assert isinstance(protocol, asyncio.Protocol)
        protocol.data_received(data)
