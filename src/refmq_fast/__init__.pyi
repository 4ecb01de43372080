"""Types of refmq_fast. The functions are there when ``AVAILABLE`` is true; importing them otherwise raises
``ImportError`` with ``REASON``."""

from typing import Self

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
