"""A transport whose socket belongs to a thread in C: what is written to it travels there in a letter."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from refmq.net.shell_letters import Down

if TYPE_CHECKING:
    import refmq_fast


class ShellTransport(asyncio.Transport):
    """The control plane's end of a connection that C serves. C bounds what is unsent, and ends the connection of a peer
    that lets too much of it gather, so nothing is counted here."""

    def __init__(self, shell: refmq_fast.Shell, connection: int, peer: tuple[str, int]) -> None:
        super().__init__({"peername": peer})
        self._shell = shell
        self._connection = connection
        self._is_closing = False

    def write(self, data: bytes | bytearray | memoryview[Any]) -> None:
        self._shell.write(self._connection, bytes(data))

    def get_write_buffer_size(self) -> int:
        return 0

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        pass

    def pause_reading(self) -> None:
        self._shell.post(Down.PAUSE, self._connection)

    def resume_reading(self) -> None:
        self._shell.post(Down.RESUME, self._connection)

    def is_closing(self) -> bool:
        return self._is_closing

    def close(self) -> None:
        self._is_closing = True
        self._shell.post(Down.CLOSE, self._connection)

    def abort(self) -> None:
        self._is_closing = True
        self._shell.post(Down.ABORT, self._connection)
