"""Types of refmq_fast. The functions are there when ``AVAILABLE`` is true; importing them otherwise raises
``ImportError`` with ``REASON``."""

from typing import Generic, Self, TypeVar

from typing_extensions import Buffer

from refmq.model.step import EventFields

AVAILABLE: bool
REASON: str

def crc32(data: Buffer, value: int = 0, /) -> int:
    """The CRC-32 of ``data``, continued from ``value``; the same number as ``zlib.crc32``.

    Large buffers are read with the GIL released: do not write to one while this runs.
    """

def crc32_portable(data: Buffer, value: int = 0, /) -> int:
    """As ``crc32``, by tables alone: what runs on a processor without carry-less multiplication."""

def crc32_is_accelerated() -> bool:
    """Whether ``crc32`` uses carry-less multiplication on this processor."""

CommandT = TypeVar("CommandT")

class FrameCodec(Generic[CommandT]):
    """Turns frames into commands and back, where that is surely right; ``None`` leaves it to ``refmq.protocol.frame``.

    ``command`` is a class with the slots of ``refmq.protocol.command.RemotingCommand``; ``languages`` and
    ``serializations`` are the values of its two enumerations in their order. Nothing in it changes: any thread may use
    it.
    """

    def __new__(
        cls, command: type[CommandT], languages: tuple[int, ...], serializations: tuple[int, ...], /
    ) -> Self: ...
    def decode(self, buffer: Buffer, start: int, frame_length_max: int, /) -> tuple[CommandT, int] | None:
        """The command of the frame that begins at ``start``, and where the next one does. ``None`` when the frame is
        not complete, or the reference has to look at it."""

    def encode(self, command: CommandT, opaque: int | None, frame_length_max: int, /) -> bytes | None:
        """The frame of ``command`` under this request id, or its own if that is ``None``. ``None`` when it has no such
        frame, or the reference has to write it."""

MadeT = TypeVar("MadeT")

class Maker(Generic[MadeT]):
    """Called with a value for each of these slots, it makes an instance of ``kind`` without calling ``__init__``."""

    def __new__(cls, kind: type[MadeT], names: tuple[str, ...], /) -> Self: ...
    def __call__(self, *values: object) -> MadeT: ...

MessageT = TypeVar("MessageT")

class MessageReader(Generic[MessageT]):
    """Makes messages from the bytes of a pull response, where that is surely right.

    ``message`` is a class with the slots of ``refmq.client.message.ReceivedMessage``. Any thread may use it.
    """

    def __new__(cls, message: type[MessageT], /) -> Self: ...
    def read(
        self, data: Buffer, start: int, queue: object, topic: str, queue_id: int, settler: object, /
    ) -> tuple[list[MessageT], int]:
        """The messages of this queue that begin at ``start``, one after another, and where the first one does that the
        reference has to look at; the end of ``data`` when there is none."""

class TracePage:
    """Memory for ``size_records`` records of a trace, as ``refmq.trace.page.PlainPage`` is it, and with the same bytes.

    ``strings`` is the table of the file that the records go to; whoever owns it may add to it. The first event gets the
    number ``sequence``. One thread packs and puts; any thread may read.
    """

    def __new__(cls, size_records: int, strings: dict[str, int], sequence: int, /) -> Self: ...
    @property
    def sequence(self) -> int:
        """The sequence number of the next event."""

    @property
    def room(self) -> int:
        """So many records fit in."""

    def pack(self, event: EventFields, at_ns: int, outcome: int, operation: int, /) -> bool:
        """Packs one event. False, and nothing has changed, without room, with a string that is not in the table, or
        with a number that does not fit its field."""

    def put(self, records: bytes, sequence: int, /) -> None:
        """Adds finished records; the next event has this sequence number. ``ValueError`` without room."""

    def read(self, start: int, /) -> bytes:
        """A copy of what is finished, from an offset on."""
