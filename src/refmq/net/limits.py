"""What one peer may cost: every bound of a connection, and the budget that all connections of a server share."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Protocol

from refmq.protocol.frame import FRAME_LENGTH_MAX


@dataclass(frozen=True, slots=True)
class Limits:
    """Bounds of a server or client. The defaults suit a broker; a test makes them small."""

    frame_length_max: int = FRAME_LENGTH_MAX
    """The longest frame, its length field included."""

    idle_timeout_s: float = 120.0
    """A connection silent in both directions for this long is closed; upstream uses 120 s on both ends."""

    frame_timeout_s: float = 120.0
    """A frame, once started, and a TLS handshake must be complete within this time."""

    requests_in_flight_max: int = 4096
    """Requests from one peer being served at a time. At the bound we stop reading; parked pulls count."""

    request_bytes_in_flight_max: int = 2 * FRAME_LENGTH_MAX
    """Bytes of one peer's requests being served at a time. Above it we stop reading."""

    requests_per_turn_max: int = 64
    """Requests taken from one peer before the others have their turn."""

    write_buffer_high_bytes: int = 1 << 20
    """Unsent bytes above which we stop reading from the peer: no new requests until it reads its answers."""

    write_buffer_bytes_max: int = 64 << 20
    """Unsent bytes above which the connection is aborted."""

    requests_waiting_max: int = 65_535
    """Our own requests awaiting an answer on one connection; upstream's semaphores have the same limit."""

    connections_max: int = 20_000
    """Connections of the servers that share an `Admission`. One more is closed as soon as it is accepted."""

    python_connections_max: int = 20_000
    """Of a broker whose connections are in C: those that Python serves all the same, with TLS for example."""

    memory_bytes_max: int = 512 << 20
    """What all connections of a server hold together: incomplete frames, requests being served, unsent bytes."""

    connect_timeout_s: float = 3.0
    """For a client: how long connecting may take; upstream uses 3 s."""

    linger_s: float = 5.0
    """How long a closing connection may take to send what is left before it is aborted."""


def within_descriptors(limits: Limits, descriptors: int) -> Limits:
    """The limits of a process that has so many descriptors for all its connections together."""
    if descriptors >= limits.connections_max + limits.python_connections_max:
        return limits
    python = max(1, min(descriptors // 5, limits.python_connections_max))
    rest = max(1, min(descriptors - python, limits.connections_max))
    return replace(limits, connections_max=rest, python_connections_max=python)


class Admission:
    """How many connections the servers that share it may have together."""

    def __init__(self, places: int) -> None:
        assert places > 0
        self._left = places

    def enter(self) -> bool:
        """Takes a place. False if there is none."""
        if self._left == 0:
            return False
        self._left -= 1
        return True

    def leave(self) -> None:
        self._left += 1


class Holder(Protocol):
    """A connection as the budget sees it."""

    def give_up(self, reason: str) -> None:
        """Close immediately and release everything."""
        ...


class Budget:
    """The bytes held by all connections of one server. Over the limit, the one that holds the most is closed."""

    def __init__(self, bytes_max: int) -> None:
        self._bytes_max = bytes_max
        self._held: dict[Holder, int] = {}
        self.total = 0

    def hold(self, holder: Holder, size: int) -> None:
        """Update how much ``holder`` holds."""
        self.total += size - self._held.pop(holder, 0)
        if size:
            self._held[holder] = size
        while self.total > self._bytes_max:
            greediest = max(self._held, key=self._held.__getitem__)
            self.total -= self._held.pop(greediest)
            greediest.give_up("it held the most when the server's memory budget ran out")
