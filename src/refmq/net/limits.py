"""What one peer may cost: every bound of a connection, and the budget that all connections of a server share."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from refmq.protocol.frame import FRAME_LENGTH_MAX


@dataclass(frozen=True, slots=True)
class Limits:
    """Bounds of a server or client. The defaults suit a broker; a test makes them small."""

    frame_length_max: int = FRAME_LENGTH_MAX
    """The longest frame, its length field included."""

    idle_timeout_s: float = 120.0
    """A connection that was silent in both directions for so long is closed; upstream's 120 s on both ends."""

    frame_timeout_s: float = 120.0
    """A frame that was begun, and a TLS handshake, must be complete within this time."""

    requests_in_flight_max: int = 4096
    """Requests of one peer that are being served. At the bound we stop reading; parked pulls count."""

    request_bytes_in_flight_max: int = 2 * FRAME_LENGTH_MAX
    """Bytes of the requests of one peer that are being served. Above it we stop reading."""

    requests_per_turn_max: int = 64
    """Requests taken from one peer before the others have their turn."""

    write_buffer_high_bytes: int = 1 << 20
    """Unsent bytes above which we stop reading from the peer: who does not take answers gets no more questions in."""

    write_buffer_bytes_max: int = 64 << 20
    """Unsent bytes above which the peer is given up and the connection aborted."""

    requests_waiting_max: int = 65_535
    """Our own requests that wait for an answer on one connection; upstream's semaphores have the same number."""

    connections_max: int = 20_000
    """Connections of one server. One more is closed as soon as it is accepted."""

    memory_bytes_max: int = 512 << 20
    """What all connections of a server hold together: incomplete frames, requests being served, unsent bytes."""

    connect_timeout_s: float = 3.0
    """For a client: how long a connection may take to be made; upstream's 3 s."""

    linger_s: float = 5.0
    """How long a closed connection may take to send what is left before it is cut."""


class Holder(Protocol):
    """A connection, seen from the budget."""

    def give_up(self, reason: str) -> None:
        """Close at once and let go of everything."""
        ...


class Budget:
    """The bytes that all connections of one server hold. When they are too many, the one that holds most goes."""

    def __init__(self, bytes_max: int) -> None:
        self._bytes_max = bytes_max
        self._held: dict[Holder, int] = {}
        self.total = 0

    def hold(self, holder: Holder, size: int) -> None:
        """Say how much ``holder`` holds now."""
        self.total += size - self._held.pop(holder, 0)
        if size:
            self._held[holder] = size
        while self.total > self._bytes_max:
            greediest = max(self._held, key=self._held.__getitem__)
            self.total -= self._held.pop(greediest)
            greediest.give_up("it held most when the memory of the server was used up")
