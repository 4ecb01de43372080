"""Pages: memory in which a node's events are packed one after another, until a thread writes them to a file.

There are two implementations: `PlainPage` here, and `refmq_fast.TracePage` in C where it was built. Both make the same
bytes, and `new_page` is the faster one available.

One thread packs and puts; another may read at the same time, because finished records never change: there are only ever
more of them.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Final, Protocol

import refmq_fast
from refmq.model.step import EventFields
from refmq.trace.record import KIND_EVENT, RECORD_BYTES, pack_event_into


class Page(Protocol):
    """A piece of a trace in memory."""

    @property
    def sequence(self) -> int:
        """The sequence number of the next event."""
        ...

    @property
    def room(self) -> int:
        """How many more records fit."""
        ...

    def pack(self, event: EventFields, at_ns: int, outcome: int, operation: int, /) -> bool:
        """Packs one event. False, and nothing has changed, without room, with a string that is not in the table, or
        with a number that does not fit its field."""
        ...

    def put(self, records: bytes, sequence: int, /) -> None:
        """Adds finished records, strings or drops; the next event has this sequence number. `ValueError` without
        room."""
        ...

    def read(self, start: int, /) -> bytes:
        """A copy of what is finished, from an offset on."""
        ...


NewPage = Callable[[int, dict[str, int], int], Page]
"""A page for this many records; it numbers strings by this table and events from this number on."""


class PlainPage:
    """A `Page` without the extension."""

    __slots__ = ("_data", "_end", "_size", "_strings", "sequence")

    def __init__(self, size_records: int, strings: dict[str, int], sequence: int, /) -> None:
        self.sequence = sequence
        self._strings = strings
        self._size = size_records * RECORD_BYTES
        self._data = bytearray(self._size)
        self._end = 0
        """Everything before this is finished."""

    def pack(self, event: EventFields, at_ns: int, outcome: int, operation: int, /) -> bool:
        action, actor, subject, queue_id, a, b, c, d = event
        strings, at = self._strings, self._end
        try:
            pack_event_into(
                self._data,
                at,
                KIND_EVENT,
                outcome,
                strings[action],
                self.sequence & 0xFFFF_FFFF,
                at_ns,
                a,
                b,
                c,
                d,
                strings[actor],
                strings[subject],
                queue_id,
                operation,
            )
        except (KeyError, struct.error):  # also when there is no room: `struct` does not write beyond a buffer
            return False
        self.sequence += 1
        self._end = at + RECORD_BYTES
        return True

    @property
    def room(self) -> int:
        return (self._size - self._end) // RECORD_BYTES

    def put(self, records: bytes, sequence: int, /) -> None:
        count, rest = divmod(len(records), RECORD_BYTES)
        if rest or count > self.room:
            raise ValueError(f"{len(records)} bytes are not whole records, or more than the {self.room} that fit in")
        at = self._end
        self._data[at : at + len(records)] = records
        self.sequence = sequence
        self._end = at + len(records)

    def read(self, start: int, /) -> bytes:
        return bytes(memoryview(self._data)[start : self._end])


new_page: Final[NewPage] = refmq_fast.TracePage if refmq_fast.AVAILABLE else PlainPage
