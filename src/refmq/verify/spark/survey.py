"""A quick look at a stream: its digest and its census in one pass in C, block by block, as they come from the file.

It is all that the promises about places need. What it says is what `Scan` says of the same chunks, a good deal sooner:
a block is read, checked and added up while it is in the cache, and numpy never sees its events. The tables that C
writes to:

    counts  u64[strings][6]  events by the string of their action and the outcome
    actors  u8[strings]      1 for a string that was an actor
    state   i64[4]           the smallest and the largest time, cells in use, places in use
    cells   CELL[2^n]        the digest (see `digest`); a count of 0 is a cell that is not used
    places  u64[2^n]         subject and queue id of each place, 0 for an entry that is not used
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final

import numpy as np
from numpy.typing import NDArray

from refmq.trace.record import Outcome
from refmq.verify.spark import native
from refmq.verify.spark.columns import U64, Chunk, Names
from refmq.verify.spark.digest import CELL, Cells, role_table

CELLS: Final = 1 << 13
"""704 KiB, which stays in the cache; a stream has some hundred ranges at a time."""
PLACES: Final = 1 << 14
NOTHING_YET: Final = (2**63 - 1, -(2**63), 0, 0)


def can_survey() -> bool:
    """Whether this process has the kernel."""
    return native.kernels() is not None


@dataclass(slots=True)
class Seen:
    """What there is in the chunks since the last time, by the strings of their names."""

    names: Names
    counts: Counter[tuple[int, int]]
    """By the code of an action and the outcome."""
    actors: list[int]
    places: list[tuple[int, int]]
    """Subjects with a queue id."""
    first_ns: int
    last_ns: int


@dataclass(slots=True)
class Survey:
    """Adds up the chunks of one stream."""

    keys: U64
    _names: Names | None = None
    _strings: int = 0
    _roles: NDArray[np.uint8] = field(default_factory=lambda: np.empty(0, np.uint8))
    _counts: U64 = field(default_factory=lambda: np.empty(0, np.uint64))
    _actors: NDArray[np.uint8] = field(default_factory=lambda: np.empty(0, np.uint8))
    _state: NDArray[np.int64] = field(default_factory=lambda: np.array(NOTHING_YET, np.int64))
    _cells: Cells = field(default_factory=lambda: np.zeros(CELLS, CELL))
    _places: U64 = field(default_factory=lambda: np.zeros(PLACES, np.uint64))

    def take(self, chunk: Chunk) -> Iterator[Cells | Seen]:
        """Adds a chunk. Yields what had to make room."""
        if chunk.names is not self._names or len(chunk.names.texts) != self._strings:
            yield from self.seen()
            self._begin(chunk.names)
        rows, names = np.ascontiguousarray(chunk.rows), chunk.names
        tables = (self._roles, names.topic, names.group, self.keys)
        written = (self._counts, self._actors, self._state, self._cells.view(np.uint8), self._places)
        while len(rows):
            rows = rows[native.kernels().survey_rows(rows.view(np.uint8), *tables, *written) :]
            if len(rows):  # a table is full
                assert self._state[2:].any(), "a chunk has nothing but plain events"
                yield from self.rest()

    def rest(self) -> Iterator[Cells | Seen]:
        """All that was not told yet."""
        yield from self.cells()
        yield from self.seen()

    def cells(self) -> Iterator[Cells]:
        """The cells since the last time, which may be parts of the same ones."""
        if self._state[2]:
            yield self._cells[self._cells["count"] > 0]
            self._cells[:] = 0
            self._state[2] = 0

    def seen(self) -> Iterator[Seen]:
        """The census since the last time."""
        if self._names is None or not self._counts.any():
            return
        counts: Counter[tuple[int, int]] = Counter()
        for string, outcome in np.argwhere(self._counts).tolist():
            counts[int(self._names.action[string]), outcome] += int(self._counts[string, outcome])
        places = (self._places[self._places > 0] - np.uint64(1)).tolist()
        met = [(place >> 32, _signed32(place & 0xFFFF_FFFF)) for place in places]
        first_ns, last_ns = self._state[:2].tolist()
        yield Seen(self._names, counts, np.flatnonzero(self._actors).tolist(), met, first_ns, last_ns)
        self._counts[:], self._actors[:], self._places[:] = 0, 0, 0
        self._state[:2], self._state[3] = NOTHING_YET[:2], 0

    def _begin(self, names: Names) -> None:
        self._names, self._strings = names, len(names.texts)
        self._roles = role_table(names)
        self._counts = np.zeros((self._strings, len(Outcome)), np.uint64)
        self._actors = np.zeros(self._strings, np.uint8)


def _signed32(number: int) -> int:
    return (number ^ 1 << 31) - (1 << 31)
