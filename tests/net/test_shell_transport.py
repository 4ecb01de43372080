"""What a connection does to its transport becomes letters, in their order."""

from __future__ import annotations

from typing import Any, cast

from refmq.net.shell_letters import Down
from refmq.net.shell_transport import ShellTransport


class Box:
    """Where letters go."""

    def __init__(self) -> None:
        self.letters: list[tuple[Any, ...]] = []

    def write(self, connection: int, data: bytes) -> None:
        self.letters.append((Down.WRITE, connection, data))

    def post(self, kind: int, connection: int = 0, number: int = 0) -> None:
        self.letters.append((Down(kind), connection))


def test_every_call_is_a_letter_about_its_connection() -> None:
    box = Box()
    transport = ShellTransport(cast("Any", box), 7, ("10.0.0.1", 99))
    assert transport.get_extra_info("peername") == ("10.0.0.1", 99)
    transport.set_write_buffer_limits(high=1)
    transport.write(bytearray(b"data"))
    transport.pause_reading()
    transport.resume_reading()
    assert not transport.is_closing()
    transport.close()
    assert transport.is_closing()
    transport.abort()
    assert transport.get_write_buffer_size() == 0
    assert box.letters == [
        (Down.WRITE, 7, b"data"),
        (Down.PAUSE, 7),
        (Down.RESUME, 7),
        (Down.CLOSE, 7),
        (Down.ABORT, 7),
    ]
