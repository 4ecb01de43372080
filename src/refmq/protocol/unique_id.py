"""The id that a client gives to a message before it sends it (property ``UNIQ_KEY``).

    offset  bytes  type  field         meaning
    ------  -----  ----  ------------  ------------------------------------------------------------------------
    0       4/16         address       of the client, IPv4 or IPv6
    +0      2      u16   process id    its low 16 bits
    +2      4      u32   process hash  any number that differs between processes; Java: hash of a class loader
    +6      4      u32   time          milliseconds since the month began, in the client's time zone
    +10     2      u16   counter       wraps around

Written in hexadecimal, upper case: 32 or 56 characters. (The Go client writes the last twelve in lower case and counts
the time in seconds.) To everyone but its maker the id is text; only a query by it reads the time back, to know where to
begin. A month has up to 2,678,400,000 ms, more than 31 bits: the time has no sign.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import Final

from refmq.errors import UsageError, WireError
from refmq.model.ids import TimestampMs

_TAIL: Final = struct.Struct(">HIIH")
CLOCK_STEP_MAX_MS: Final = 1_000_000  # a clock that was set back by less counts as standing at the start of the month


@dataclass(frozen=True, slots=True)
class UniqueId:
    """The parts of a client's message id. ``str`` gives its text."""

    address: bytes
    process_id: int
    process_hash: int
    since_month_ms: int
    counter: int

    def __str__(self) -> str:
        tail = _TAIL.pack(self.process_id, self.process_hash, self.since_month_ms, self.counter)
        return (self.address + tail).hex().upper()


def unique_id(
    *,
    address: bytes,
    process_id: int,
    process_hash: int,
    now_ms: TimestampMs,
    month_start_ms: TimestampMs,
    counter: int,
) -> UniqueId:
    """An id made of what the caller knows: nothing is looked up here. Numbers are cut to the width of their fields."""
    if len(address) not in (4, 16):
        raise UsageError(f"An address has 4 or 16 bytes, not {len(address)}.")
    elapsed = now_ms - month_start_ms
    if -CLOCK_STEP_MAX_MS < elapsed < 0:
        elapsed = 0
    if not 0 <= elapsed < 2**32:
        raise UsageError(f"{now_ms} is not within the month that began at {month_start_ms}.")
    return UniqueId(
        address=address,
        process_id=process_id & 0xFFFF,
        process_hash=process_hash & 0xFFFF_FFFF,
        since_month_ms=elapsed,
        counter=counter & 0xFFFF,
    )


def parse_unique_id(text: str) -> UniqueId:
    """The parts of an id in its usual form. ``WireError`` for any other text, which may still be an id."""
    data = b""
    if len(text) in (32, 56) and text.isascii() and text.isalnum():
        try:
            data = bytes.fromhex(text)
        except ValueError:
            data = b""
    if not data:
        raise WireError("UNIQ_KEY", 0, "32 or 56 hexadecimal digits", repr(text[:60]))
    return UniqueId(data[: -_TAIL.size], *_TAIL.unpack(data[-_TAIL.size :]))


def unique_id_time(
    uid: UniqueId, *, now_ms: TimestampMs, month_start_ms: TimestampMs, previous_month_start_ms: TimestampMs
) -> TimestampMs:
    """About when the id was made: in this month, or in the one before when that would be in the future."""
    this_month = month_start_ms + uid.since_month_ms
    return TimestampMs(this_month if this_month <= now_ms else previous_month_start_ms + uid.since_month_ms)
