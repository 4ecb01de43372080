"""Traces of a whole cluster: which files there are, what of them can be read, and all events in one order.

A *stream* is one life of one node: its files, one after another. Between streams clocks decide. Within a stream the
order is that of the file, whatever the clock says: an event counts as no earlier than what stands before it. So the
order of two events does not depend on which others are looked at.

A file that cannot be read, a damaged stretch and dropped events are *gaps*: what they may hide is not judged.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, NamedTuple

from refmq.errors import CorruptRecord, UsageError
from refmq.trace.reader import TraceReader, trace_files
from refmq.trace.record import Dropped
from refmq.verify.oracles import Line, line_of

UNKNOWN_NODE: Final = "?"
"""The node of a file of which not even the name can be read."""


@dataclass(frozen=True, slots=True)
class Piece:
    """One file that is a trace."""

    path: str
    size_bytes: int
    node: str
    """As the file says it; `broker-a#2` is the second life of `broker-a`."""
    life_ns: int
    number: int
    """0 for the first file of a life, then one more for each."""

    @property
    def name(self) -> str:
        """The node, whichever life it is."""
        return self.node.partition("#")[0]


@dataclass(frozen=True, slots=True)
class Stream:
    """One life of one node: the files that it wrote, in their order."""

    node: str
    life_ns: int
    pieces: tuple[Piece, ...]

    @property
    def name(self) -> str:
        return self.node.partition("#")[0]

    @property
    def size_bytes(self) -> int:
        return sum(piece.size_bytes for piece in self.pieces)


@dataclass(frozen=True, slots=True)
class Gap:
    """Something that a node recorded and nobody can read."""

    node: str
    where: str
    """The file."""
    reason: str
    count: int = 0
    """Events that are missing; 0 if nobody knows how many."""

    def __str__(self) -> str:
        return f"{self.where}: {self.reason}"


@dataclass(frozen=True, slots=True)
class Recordings:
    """What there is to judge."""

    streams: tuple[Stream, ...]
    gaps: tuple[Gap, ...] = ()
    """Files that are no traces, and those of which a number is missing. What is inside of files is found on reading."""

    @property
    def size_bytes(self) -> int:
        return sum(stream.size_bytes for stream in self.streams)

    @property
    def file_count(self) -> int:
        return sum(len(stream.pieces) for stream in self.streams)


def find_recordings(places: Iterable[Path]) -> Recordings:
    """The traces in files and directories. `UsageError` when there are none."""
    pieces: list[Piece] = []
    gaps: list[Gap] = []
    paths = dict.fromkeys(path for place in places for path in trace_files(place))
    for path in paths:
        try:
            piece = look_at(path)
        except CorruptRecord as error:
            gaps.append(Gap(UNKNOWN_NODE, str(path), f"it is not a trace: {error}"))
        except OSError as error:
            gaps.append(Gap(UNKNOWN_NODE, str(path), f"it cannot be read: {error.strerror}"))
        else:
            pieces += [piece] if piece is not None else []
    if not paths or (not pieces and not gaps):
        raise UsageError("There are no trace files with events there.")
    lives: dict[tuple[str, int], list[Piece]] = {}
    for piece in sorted(pieces, key=lambda each: (each.node, each.life_ns, each.number, each.path)):
        lives.setdefault((piece.node, piece.life_ns), []).append(piece)
    for life in lives.values():
        gaps += _missing_files(life)
    return Recordings(tuple(Stream(*key, tuple(life)) for key, life in lives.items()), tuple(gaps))


def look_at(path: Path) -> Piece | None:
    """What a file says of itself; None for an empty one, as a node leaves that ended before it wrote anything."""
    with path.open("rb") as source:
        if path.stat().st_size == 0:
            return None
        reader = TraceReader(source)
        first = next(reader.blocks(), None)
        if first is not None:
            next(reader.entries_of(first), None)  # the name of the node stands before the first event
        node = reader.node or UNKNOWN_NODE
        return Piece(str(path), reader.size_bytes, node, reader.head.life_ns, reader.head.file_number)


def _missing_files(life: Sequence[Piece]) -> Iterator[Gap]:
    """Files that were there before the last one of a life. Writing that fails leaves out numbers as well, and says so
    by a record of what was dropped; so this is a gap only where the beginning is gone."""
    if life[0].number > 0:
        yield Gap(life[0].name, life[0].path, f"the {life[0].number} files before it are not there")


class Placed(NamedTuple):
    """A line, and when it happened as far as the order goes."""

    order_ns: int
    line: Line


@dataclass(slots=True)
class Reading:
    """Lines read so far, and the gaps that were met."""

    gaps: list[Gap] = field(default_factory=list)
    bytes_read: int = 0

    def of_stream(self, stream: Stream) -> Iterator[Placed]:
        """The lines of one stream in its order."""
        order_ns = 0
        for piece in stream.pieces:
            with Path(piece.path).open("rb") as source:
                reader = TraceReader(source)
                for block in reader.blocks():
                    self.bytes_read += len(block.records)
                    for entry in reader.entries_of(block):
                        if isinstance(entry, Dropped):
                            self.gaps.append(dropped_gap(stream.name, piece.path, entry))
                            continue
                        order_ns = max(order_ns, entry.at_ns)
                        yield Placed(order_ns, line_of(stream.node, entry))
                self.gaps += [Gap(stream.name, piece.path, str(damage)) for damage in reader.damage]

    def of_all(self, streams: Iterable[Stream]) -> Iterator[Line]:
        """All lines in one order."""
        return merged(self.of_stream(stream) for stream in streams)


def dropped_gap(node: str, path: str, entry: Dropped) -> Gap:
    return Gap(node, path, f"{entry.count} events from number {entry.sequence} on were dropped", entry.count)


def merged(streams: Iterable[Iterator[Placed]]) -> Iterator[Line]:
    """The lines of several streams in the order of their times."""
    for placed in heapq.merge(*streams, key=lambda each: each.order_ns):
        yield placed.line
