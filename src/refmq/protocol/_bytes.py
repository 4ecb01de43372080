"""A reader of big-endian fields that cannot leave its buffer, and the ranges of the fields.

Every layout of the protocol is read through ``ByteReader``: it checks a length against what is really there *before*
anything is copied, so a forged length costs nothing, and its errors name the field and the offset.
"""

from __future__ import annotations

import struct
from typing import Final

from refmq.errors import DecodeError, UsageError, WireError

INT8_MAX: Final = 2**7 - 1
INT16_MAX: Final = 2**15 - 1
INT32_MAX: Final = 2**31 - 1
INT64_MAX: Final = 2**63 - 1
INT32_MIN: Final = -(2**31)
INT64_MIN: Final = -(2**63)

_I8: Final = struct.Struct(">b")
_I16: Final = struct.Struct(">h")
_I32: Final = struct.Struct(">i")
_I64: Final = struct.Struct(">q")


class ByteReader:
    """Reads fields one after the other from ``data[start:end]``.

    ``base`` is the offset of ``data[0]`` in the frame or file that errors refer to; ``error`` is the class they
    are raised as (``WireError`` for what a peer sent, ``CorruptRecord`` for what a file holds).
    """

    __slots__ = ("_base", "_data", "_end", "_error", "position")

    def __init__(
        self,
        data: bytes | bytearray | memoryview,
        *,
        start: int = 0,
        end: int | None = None,
        base: int = 0,
        error: type[DecodeError] = WireError,
    ) -> None:
        self._data = data
        self._end = len(data) if end is None else end
        self._base = base
        self._error = error
        self.position = start
        assert 0 <= start <= self._end <= len(data)

    @property
    def remaining(self) -> int:
        return self._end - self.position

    def fail(self, field: str, expected: object, found: object, *, at: int | None = None) -> DecodeError:
        """The error for ``field``, which starts at position ``at`` (here, when not given). For the caller to raise."""
        return self._error(field, self._base + (self.position if at is None else at), expected, found)

    def take(self, size: int, field: str) -> bytes:
        """The next ``size`` bytes."""
        start = self._advance(size, field)
        return bytes(self._data[start : start + size])

    def int8(self, field: str) -> int:
        return int(_I8.unpack_from(self._data, self._advance(1, field))[0])

    def int16(self, field: str) -> int:
        return int(_I16.unpack_from(self._data, self._advance(2, field))[0])

    def int32(self, field: str) -> int:
        return int(_I32.unpack_from(self._data, self._advance(4, field))[0])

    def int64(self, field: str) -> int:
        return int(_I64.unpack_from(self._data, self._advance(8, field))[0])

    def length(self, size: int, field: str, limit: int) -> int:
        """A length field of ``size`` bytes: not negative, at most ``limit``, and no more than what follows it."""
        assert limit >= 0, f"{field} can have no length at all"
        at = self._advance(size, field)
        value = int.from_bytes(self._data[at : at + size], "big", signed=True)
        if not 0 <= value <= limit or value > self._end - self.position:
            raise self.fail(field, f"0 to {min(limit, self.remaining)}", value, at=at)
        return value

    def text(self, size: int, field: str) -> str:
        """The next ``size`` bytes as UTF-8."""
        at = self._advance(size, field)
        try:
            return str(self._data[at : at + size], "utf-8")
        except UnicodeDecodeError as error:
            raise self.fail(field, "UTF-8 text", "an invalid byte", at=at + error.start) from None

    def _advance(self, size: int, field: str) -> int:
        assert size >= 0, f"{field} has {size} bytes: a length off the wire goes through `length` first"
        start = self.position
        if size > self._end - start:
            raise self.fail(field, f"{size} bytes", f"only {self._end - start} bytes before the end")
        self.position = start + size
        return start


def encode_utf8(text: str, field: str) -> bytes:
    """``text`` as UTF-8. Half a surrogate pair has no such form and is the caller's mistake."""
    try:
        return text.encode()
    except UnicodeEncodeError:
        raise UsageError(f"{field} holds half a surrogate pair and cannot be written as UTF-8.") from None


def check_range(value: int, low: int, high: int, field: str) -> int:
    """``value`` when the field can hold it."""
    assert low <= high, f"{field} can hold nothing"
    if not low <= value <= high:
        raise UsageError(f"{field} must be from {low} to {high}; {value} does not fit.")
    return value
