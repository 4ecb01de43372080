"""Types of refmq_fast. The functions are there when ``AVAILABLE`` is true; importing them otherwise raises
``ImportError`` with ``REASON``."""

from typing_extensions import Buffer

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
