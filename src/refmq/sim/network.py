"""The simulated network: who reaches whom, how late, and what is lost.

Nodes have addresses and names; `localhost` is the node itself. Between two nodes there are TCP
connections (`refmq.sim.transport`), each with its own delays, so bytes of one connection stay in order and
bytes of different connections overtake each other.

Faults:

| fault                   | what the two ends see                                                              |
|-------------------------|------------------------------------------------------------------------------------|
| `cut(a, b)`             | nothing: bytes wait, as TCP repeats them; after `GIVE_UP_S` the writer gives up.    |
|                         | Connecting hangs. One direction only if asked (`both=False`).                      |
| `heal(a, b)`            | what waited arrives, late                                                          |
| `reset_between(a, b)`   | both ends lose the connection; bytes under way are gone in both directions         |
| `lose_next(a, b)`       | the next bytes from a to b are gone and the connection with them (a lost answer)   |
| `half_open(a, b)`       | a's end vanishes silently; b notices only when it writes                           |
| `set_delay(...)`        | a slower or less regular wire                                                      |
| `slow_reader(a, rate)`  | node a reads at most that many bytes a second                                      |
| crash of a process      | its peers get a reset, if the wire lets it through                                 |
| power loss of a node    | its peers hear nothing until it is up again and answers their next bytes by a reset |

Not simulated: loss and duplication of packets below TCP (they are delay, seen from above), bandwidth,
UDP, TLS.
"""

from __future__ import annotations

import asyncio
import random
from collections import deque
from collections.abc import Callable
from contextvars import Context, copy_context
from dataclasses import dataclass
from typing import Any, Final

from refmq.sim.loop import SimulatedLoop
from refmq.sim.process import Process
from refmq.sim.timeline import Timeline
from refmq.sim.transport import WINDOW_BYTES, Link, SimulatedSocket, SimulatedTransport

SYN_RETRIES_S: Final = (1.0, 3.0, 7.0, 15.0, 31.0, 63.0, 127.0)
"""When Linux repeats an unanswered connection request, and, last, when it gives up (tcp_syn_retries 6)."""
GIVE_UP_S: Final = 924.6
"""When Linux gives up on a connection whose bytes are not acknowledged (tcp_retries2 15)."""
FIRST_EPHEMERAL_PORT: Final = 32_768
LOOPBACK_DELAY_S: Final = 0.000_02
RECEIVE_BYTES: Final = 256 * 1024
"""The most that one `data_received` carries, as in asyncio's selector transport."""
SLOW_TICK_S: Final = 0.1
"""How often a slow reader reads."""
TICK_S: Final = 1e-9
"""What keeps two pieces of one stream apart: timers of one moment run in any order."""
HICCUP_FACTOR: Final = 20.0
"""How much later than usual an unlucky piece is."""


@dataclass(frozen=True, slots=True)
class Delay:
    """How long a piece of a stream takes: evenly between two times, and sometimes much longer."""

    shortest_s: float = 0.000_1
    longest_s: float = 0.002
    hiccup_chance: float = 0.01
    split_chance: float = 0.1
    """How often a piece arrives as two."""


class Reset(ConnectionResetError):
    """The other end is gone."""

    def __init__(self) -> None:
        super().__init__(104, "Connection reset by peer")


class SimulatedServer(asyncio.AbstractServer):
    """A listening address of one process."""

    def __init__(
        self, network: Network, process: Process, factory: Callable[[], asyncio.BaseProtocol], address: tuple[str, int]
    ) -> None:
        self.process = process
        self.factory = factory
        self.context: Context = copy_context()
        self.address = address
        self.connections: dict[int, SimulatedTransport] = {}
        self._network = network
        self._serving = False
        self._closed = False
        self._waiters: list[asyncio.Future[None]] = []
        self._forever: asyncio.Future[None] | None = None

    @property
    def sockets(self) -> tuple[SimulatedSocket, ...]:
        return () if self._closed else (SimulatedSocket(self.address),)

    def get_loop(self) -> asyncio.AbstractEventLoop:
        return self._network.loop

    def is_serving(self) -> bool:
        return self._serving

    async def start_serving(self) -> None:
        assert not self._closed, "the server is closed"
        self._serving = True

    async def serve_forever(self) -> None:
        assert self._forever is None, "serve_forever runs already"
        await self.start_serving()
        self._forever = self._network.loop.create_future()
        try:
            await self._forever
        finally:
            self._forever = None
            self.close()

    def close(self) -> None:
        if self._closed:
            return
        self._closed = True
        self._serving = False
        self._network.stop_listening(self)
        if self._forever is not None and not self._forever.done():
            self._forever.cancel()
        self.connection_gone(None)

    async def wait_closed(self) -> None:
        if self._closed and not self.connections:
            return
        waiter = self._network.loop.create_future()
        self._waiters.append(waiter)
        await waiter

    def connection_gone(self, transport: SimulatedTransport | None) -> None:
        if transport is not None:
            self.connections.pop(transport.number, None)
        if self._closed and not self.connections:
            waiters, self._waiters = self._waiters, []
            for waiter in waiters:
                if not waiter.done():
                    waiter.set_result(None)

    def close_clients(self) -> None:
        for transport in list(self.connections.values()):
            transport.close()

    def abort_clients(self) -> None:
        for transport in list(self.connections.values()):
            transport.abort()


@dataclass(slots=True, eq=False)
class _Attempt:
    """One connection request under way."""

    process: Process
    context: Context
    target: str
    port: int
    answer: asyncio.Future[SimulatedTransport]
    started_s: float
    retries: int = 0


class Network:
    """The wires between the nodes of one world."""

    def __init__(
        self, loop: SimulatedLoop, chance: random.Random, timeline: Timeline, delay: Delay | None = None
    ) -> None:
        self.loop = loop
        self.links: list[Link] = []
        self._random = chance.random
        self._timeline = timeline
        self._delay = delay or Delay()
        self._delays: dict[tuple[str, str], Delay] = {}
        self._names: dict[str, str] = {}
        self._hosts_down: set[str] = set()
        self._cuts: set[tuple[str, str]] = set()
        self._losing: dict[tuple[str, str], int] = {}
        self._slow: dict[str, float] = {}
        self._servers: dict[tuple[str, int], SimulatedServer] = {}
        self._owners: dict[int, SimulatedServer] = {}
        self._ports: dict[str, int] = {}
        self._connections = 0
        self.window_bytes = WINDOW_BYTES
        """How much of a connection may be under way or unread, each way."""
        self.heard: Callable[[SimulatedTransport, SimulatedTransport, bytes], None] | None = None
        """Is told of all bytes that arrive: by whom, for whom, which."""

    # --- hosts ------------------------------------------------------------------------------------------------

    def add_host(self, name: str, address: str) -> None:
        self._names[name] = address

    def name_of(self, address: str) -> str:
        return next((name for name, known in self._names.items() if known == address), address)

    def resolve(self, process: Process, host: str | None) -> str:
        if host is None or host in ("", "0.0.0.0", "localhost") or host.startswith("127."):
            return process.address
        address = self._names.get(host, host)
        if address not in self._names.values():
            raise OSError(-2, f"Name or service not known: {host}")
        return address

    def host_down(self, name: str) -> None:
        self._hosts_down.add(self._names[name])

    def host_up(self, name: str) -> None:
        self._hosts_down.discard(self._names[name])
        self._retry_waiting()

    def process_died(self, process: Process, *, power: bool) -> None:
        """Ends every connection and listener of a process; the peers notice unless the power is lost."""
        for server in [server for server in self._servers.values() if server.process is process]:
            del self._servers[server.address]
        for link in list(self.links):
            for end in (link.client, link.server):
                if end.process is process and not end.is_gone:
                    end.vanish()
                    if power:
                        self._mute_if_waiting(link, end)
                    elif self._random() < 0.5:
                        self.reset(link, by=end)
                    else:
                        self.carry(link, end, None)  # The kernel closes the stream cleanly.

    # --- faults -----------------------------------------------------------------------------------------------

    def cut(self, a: str, b: str, *, both: bool = True) -> None:
        """Nothing gets from a to b any more, nor back if `both`."""
        self._cuts.add((self._names[a], self._names[b]))
        if both:
            self._cuts.add((self._names[b], self._names[a]))

    def heal(self, a: str | None = None, b: str | None = None) -> None:
        """Ends the cut between two nodes, or every cut."""
        if a is None or b is None:
            self._cuts.clear()
        else:
            self._cuts.discard((self._names[a], self._names[b]))
            self._cuts.discard((self._names[b], self._names[a]))
        self._retry_waiting()

    def end_faults(self) -> None:
        """The wires are whole again: no cut, no planned loss, no slow reader, no long way between two nodes."""
        self._losing.clear()
        self._delays.clear()
        self._slow.clear()
        self.heal()

    def links_between(self, a: str, b: str) -> list[Link]:
        pair = {self._names[a], self._names[b]}
        return [link for link in self.links if {link.client.process.address, link.server.process.address} == pair]

    def reset_between(self, a: str, b: str) -> int:
        """Breaks every connection between two nodes; returns how many there were."""
        links = self.links_between(a, b)
        for link in links:
            self._break(link)
            for end in (link.client, link.server):
                end.lose(Reset())
        return len(links)

    def lose_next(self, source: str, target: str, count: int = 1) -> None:
        """The next `count` writes from source to target are lost, each with its connection."""
        pair = (self._names[source], self._names[target])
        self._losing[pair] = self._losing.get(pair, 0) + count

    def half_open(self, a: str, b: str) -> None:
        """The ends of node a are gone; node b does not know."""
        for link in self.links_between(a, b):
            for end in (link.client, link.server):
                if end.process.address == self._names[a]:
                    end.lose(Reset())

    def set_delay(self, delay: Delay, a: str | None = None, b: str | None = None) -> None:
        """The delay of every wire, or of the wire between two nodes."""
        if a is None or b is None:
            self._delay = delay
        else:
            self._delays[self._names[a], self._names[b]] = self._delays[self._names[b], self._names[a]] = delay

    def slow_reader(self, name: str, bytes_per_s: float | None) -> None:
        """The node reads no faster than this from each of its connections; None ends it."""
        if bytes_per_s is None:
            self._slow.pop(self._names[name], None)
        else:
            assert bytes_per_s > 0
            self._slow[self._names[name]] = bytes_per_s

    # --- the wire ---------------------------------------------------------------------------------------------

    def carry(self, link: Link, sender: SimulatedTransport, data: bytes | None) -> None:
        """Takes bytes (or the end of the stream) from one end and brings them to the other, in order."""
        target = link.other(sender)
        pair = (sender.process.address, target.process.address)
        if link.broken or link.reset_by is not None or link.muted is sender:
            return
        if data is not None and self._losing.get(pair, 0):
            self._losing[pair] -= 1
            self._note("lose", sender, target, len(data))
            self._break(link)
            for end in (sender, target):
                self.loop.call_world_at(self._arrival(link, sender), _lost(end))
            return
        if link.waiting.get(sender) or self._blocked(pair):
            self._wait(link, sender, data)
            return
        pieces = [data]
        if data is not None and len(data) > 1 and self._random() < self._delay_of(pair).split_chance:
            at = 1 + int(self._random() * (len(data) - 1))
            pieces = [data[:at], data[at:]]
        for piece in pieces:
            self._send(link, sender, piece)

    def _send(self, link: Link, sender: SimulatedTransport, piece: bytes | None) -> None:
        when = self._arrival(link, sender)
        link.last_arrival_s[sender] = when
        self.loop.call_world_at(when, lambda: self._arrived(link, sender, piece))

    def _arrived(self, link: Link, sender: SimulatedTransport, data: bytes | None) -> None:
        target = link.other(sender)
        if link.broken or link.muted is sender or link.reset_by is target:
            return
        pair = (sender.process.address, target.process.address)
        if link.waiting.get(sender) or pair in self._cuts or pair[1] in self._hosts_down:
            self._wait(link, sender, data)
            return
        if target.is_gone:
            if data is not None:  # an end of stream sent to a closed end needs no answer
                self.reset(link, by=target)
            return
        self._note("arrive", sender, target, -1 if data is None else len(data))
        if self.heard is not None and data is not None:
            self.heard(sender, target, data)
        target.arrive(data)

    def _arrival(self, link: Link, sender: SimulatedTransport) -> float:
        pair = (sender.process.address, link.other(sender).process.address)
        return max(self.loop.time() + self._latency(pair), link.last_arrival_s.get(sender, 0.0) + TICK_S)

    def _delay_of(self, pair: tuple[str, str]) -> Delay:
        return self._delays.get(pair, self._delay) if self._delays else self._delay

    def _latency(self, pair: tuple[str, str]) -> float:
        if pair[0] == pair[1]:
            return LOOPBACK_DELAY_S
        delay = self._delay_of(pair)
        latency = delay.shortest_s + (delay.longest_s - delay.shortest_s) * self._random()
        return latency * HICCUP_FACTOR if self._random() < delay.hiccup_chance else latency

    def _blocked(self, pair: tuple[str, str]) -> bool:
        return pair in self._cuts or pair[0] in self._hosts_down or pair[1] in self._hosts_down

    def _wait(self, link: Link, sender: SimulatedTransport, data: bytes | None) -> None:
        """What cannot get through waits to be resent; the sender gives up if that takes too long."""
        if sender.process.address in self._hosts_down:
            link.muted = sender  # No one is left to resend it.
            return
        waiting = link.waiting.setdefault(sender, deque())
        waiting.append(data)
        if len(waiting) == 1:
            self.loop.call_world_at(self.loop.time() + GIVE_UP_S, lambda: self._give_up(link, sender, waiting))

    def _give_up(self, link: Link, sender: SimulatedTransport, waiting: deque[bytes | None]) -> None:
        if waiting and link.waiting.get(sender) is waiting and not link.broken:
            self._reset_lost(link, sender)
            sender.lose(TimeoutError(110, "Connection timed out"))

    def _retry_waiting(self) -> None:
        for link in list(self.links):
            for sender in (link.client, link.server):
                waiting = link.waiting.get(sender)
                if waiting and not self._blocked((sender.process.address, link.other(sender).process.address)):
                    del link.waiting[sender]
                    for data in waiting:
                        self._send(link, sender, data)

    def reset(self, link: Link, by: SimulatedTransport) -> None:
        """A closed end resets the other. What it sent before may arrive first, or be overtaken."""
        if link.broken or link.reset_by is not None:
            return
        pair = (by.process.address, link.other(by).process.address)
        if self._blocked(pair):
            self._reset_lost(link, by)
            return
        link.reset_by = by
        overtakes = self._random() < 0.5
        when = self.loop.time() + self._latency(pair) if overtakes else self._arrival(link, by)
        self.loop.call_world_at(when, lambda: self._reset_arrived(link, by))

    def _reset_arrived(self, link: Link, by: SimulatedTransport) -> None:
        other = link.other(by)
        if (by.process.address, other.process.address) in self._cuts or other.process.address in self._hosts_down:
            self._reset_lost(link, by)
        elif not link.broken:
            self._break(link)
            other.lose(Reset())

    def _reset_lost(self, link: Link, by: SimulatedTransport) -> None:
        """A reset is not repeated: the other end stays half-open until it writes and gets another one."""
        link.reset_by = None
        link.muted = by
        link.waiting.pop(by, None)

    def _mute_if_waiting(self, link: Link, end: SimulatedTransport) -> None:
        """Bytes on the wire outlive their sender; bytes it would have had to resend do not."""
        if link.waiting.pop(end, None):
            link.muted = end

    def _break(self, link: Link) -> None:
        link.broken = True
        link.waiting.clear()
        if link in self.links:
            self.links.remove(link)

    def forget(self, transport: SimulatedTransport) -> None:
        """An end is over; its server counts one connection less."""
        server = self._owners.pop(transport.number, None)
        if server is not None:
            server.connection_gone(transport)
        link = transport.link
        if link is not None and link.other(transport).is_gone and link in self.links:
            self.links.remove(link)

    def deliver_later(self, transport: SimulatedTransport, deliver: Callable[[], object]) -> None:
        """Lets a process read: soon, or later when it is a slow reader."""
        if transport.process.address in self._slow:
            self.loop.call_later(SLOW_TICK_S, deliver, context=transport.context)
        else:
            self.loop.call_soon(deliver, context=transport.context)

    def receive_limit(self, transport: SimulatedTransport) -> int:
        """How many bytes one delivery may carry."""
        rate = self._slow.get(transport.process.address)
        return RECEIVE_BYTES if rate is None else max(1, int(rate * SLOW_TICK_S))

    def _note(self, what: str, sender: SimulatedTransport, target: SimulatedTransport, size: int) -> None:
        self._timeline.note(self.loop.elapsed_s, target.process.label, what, sender.process.label, sender.number, size)

    # --- connecting and listening -----------------------------------------------------------------------------

    def listen(
        self, process: Process, factory: Callable[[], asyncio.BaseProtocol], host: str | None, port: int
    ) -> SimulatedServer:
        process.effect("listen")
        if self.resolve(process, host) != process.address:
            raise OSError(99, f"Cannot assign requested address: {host}")
        address = (process.address, port or self._next_port(process.address))
        if address in self._servers:
            raise OSError(98, f"Address already in use: {address[0]}:{address[1]}")
        server = SimulatedServer(self, process, factory, address)
        self._servers[address] = server
        return server

    def stop_listening(self, server: SimulatedServer) -> None:
        if self._servers.get(server.address) is server:
            del self._servers[server.address]

    def _next_port(self, address: str) -> int:
        port = self._ports.get(address, FIRST_EPHEMERAL_PORT)
        while (address, port) in self._servers:
            port += 1
        self._ports[address] = port + 1
        return port

    async def connect(
        self, process: Process, factory: Callable[[], asyncio.BaseProtocol], host: str, port: int
    ) -> tuple[asyncio.Transport, asyncio.BaseProtocol]:
        process.effect("connect")
        answer = self.loop.create_future()
        target = self.resolve(process, host)
        attempt = _Attempt(process, copy_context(), target, port, answer, self.loop.time())
        self.loop.call_world_at(
            self.loop.time() + self._latency((process.address, target)), lambda: self._requested(attempt)
        )
        transport = await answer
        protocol = factory()
        transport.attach(protocol)
        return transport, protocol

    def _requested(self, attempt: _Attempt) -> None:
        """A connection request reaches the other host, or has to be repeated."""
        if attempt.answer.done() or not attempt.process.alive:
            return
        pair = (attempt.process.address, attempt.target)
        if self._blocked(pair) or self._blocked((pair[1], pair[0])):
            if attempt.retries == len(SYN_RETRIES_S):
                attempt.answer.set_exception(TimeoutError(110, "Connection timed out"))
                return
            when = attempt.started_s + SYN_RETRIES_S[attempt.retries] + self._latency(pair)
            attempt.retries += 1
            self.loop.call_world_at(when, lambda: self._requested(attempt))
            return
        back_s = self.loop.time() + self._latency((pair[1], pair[0]))
        server = self._servers.get((attempt.target, attempt.port))
        if server is None or not server.is_serving():
            self.loop.call_world_at(back_s, lambda: self._refused(attempt))
            return
        link = self._accept(attempt, server)
        self.loop.call_world_at(back_s, lambda: self._established(attempt, link))

    def _accept(self, attempt: _Attempt, server: SimulatedServer) -> Link:
        local = (attempt.process.address, self._next_port(attempt.process.address))
        self._connections += 2
        number = self._connections
        client = SimulatedTransport(self, attempt.process, attempt.context, local, server.address, number - 1)
        accepted = SimulatedTransport(self, server.process, server.context.copy(), server.address, local, number)
        link = Link(client, accepted)
        client.link = accepted.link = link
        self.links.append(link)
        server.connections[number] = accepted
        self._owners[number] = server
        self._note("connect", client, accepted, 0)

        def begin() -> None:
            if not accepted.is_gone:
                accepted.attach(server.factory())

        self.loop.call_soon(begin, context=accepted.context)
        return link

    def _refused(self, attempt: _Attempt) -> None:
        if not attempt.answer.done() and attempt.process.alive:
            address = f"{attempt.target}:{attempt.port}"
            attempt.answer.set_exception(ConnectionRefusedError(111, f"Connect call failed: {address}"))

    def _established(self, attempt: _Attempt, link: Link) -> None:
        if attempt.answer.done() or not attempt.process.alive or link.client.is_gone:
            link.client.is_gone = True
            self.reset(link, by=link.client)
            if not attempt.answer.done() and attempt.process.alive:
                attempt.answer.set_exception(Reset())
            return
        attempt.answer.set_result(link.client)


def _lost(end: SimulatedTransport) -> Callable[[], Any]:
    return lambda: end.lose(Reset())
