"""Reading traces with nothing but the standard library.

A file is read block by block, and no more of it than a block is kept. A block that is not whole ends the file when
nothing follows it: that is the torn tail a crash leaves, not an error. Anything else that is wrong is reported with its
position, and reading continues at the next whole block, or after an invalid record at the next record. Strings
that may have been defined in what is damaged are read as `?` and their number.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import BinaryIO, Final
from zlib import crc32

from refmq.errors import CorruptRecord, UsageError
from refmq.trace.record import (
    KIND_BLOCK,
    KIND_DROP,
    KIND_EVENT,
    KIND_NOTHING,
    KIND_STRING,
    RECORD_BYTES,
    STRINGS_MAX,
    BlockHead,
    Dropped,
    FileHead,
    Recorded,
    decode_block_head,
    decode_file_head,
    unpack_drop,
    unpack_event,
    unpack_string,
)

SUFFIX: Final = ".trace"
NODE_NUMBER: Final = 1
"""The string that is the node's name."""
CHUNK_BYTES: Final = 4096 * RECORD_BYTES
"""How many bytes are searched at a time for the next whole block."""


@dataclass(frozen=True, slots=True)
class Damage:
    """A stretch of a file that cannot be read."""

    position: int
    end: int
    reason: str
    is_tail: bool
    """Nothing readable follows: what a crash leaves behind."""

    def __str__(self) -> str:
        what = "torn tail" if self.is_tail else "damaged"
        return f"{what}: bytes {self.position} to {self.end}: {self.reason}"


@dataclass(frozen=True, slots=True)
class Block:
    """A whole block: where its records begin in the file, and the records."""

    position: int
    head: BlockHead
    records: bytes


class Strings(dict[int, str]):
    """The strings of a file that were met so far, by their numbers."""

    has_gaps = False
    """Some may be missing."""

    def __missing__(self, number: int) -> str:
        if self.has_gaps and number <= STRINGS_MAX:
            return f"?{number}"
        raise KeyError(number)


class TraceReader:
    """One file, read once from start to end. `CorruptRecord` if it is not a trace file. The checksum of blocks may be
    one that is faster than zlib's."""

    def __init__(self, source: BinaryIO, checksum: Callable[[bytes], int] = crc32) -> None:
        self._source = source
        self._checksum = checksum
        self.size_bytes = source.seek(0, io.SEEK_END)
        source.seek(0)
        self.head: FileHead = decode_file_head(source.read(RECORD_BYTES))
        self.strings = Strings({0: ""})
        self.damage: list[Damage] = []
        self.block_count = 0

    @property
    def node(self) -> str:
        """The name of the node, which is the first thing in a file."""
        is_known = NODE_NUMBER in self.strings or self.strings.has_gaps
        return self.strings[NODE_NUMBER] if is_known else ""

    def entries(self) -> Iterator[Recorded | Dropped]:
        """Events and drops, in their order."""
        for block in self.blocks():
            yield from self.entries_of(block)

    def entries_of(self, block: Block) -> Iterator[Recorded | Dropped]:
        """Those of one block. Blocks must be given in their order, because of their strings."""
        records, base = block.records, block.position
        at = 0
        while at < len(records):
            kind = records[at]
            try:
                if kind == KIND_EVENT:
                    yield unpack_event(records, at, self.strings, base)
                elif kind == KIND_STRING:
                    at = self._define(records, at, base)
                elif kind == KIND_DROP:
                    yield unpack_drop(records, at)
                else:
                    raise CorruptRecord("kind", base + at, "an event, a string or a drop", f"{kind:#04x}")
            except (
                CorruptRecord
            ) as error:  # the checksum holds, so it was written this way, or depends on something damaged before
                self._damaged(base + at, base + at + RECORD_BYTES, str(error))
            at += RECORD_BYTES

    def has_only_events(self, block: Block) -> bool:
        """Whether there are neither strings nor drops in a block."""
        return block.records[::RECORD_BYTES].count(KIND_EVENT) == block.head.count

    def _define(self, records: bytes, at: int, base: int) -> int:
        """Reads a string with all of its pieces; the offset of the last one."""
        number, text, more = unpack_string(records, at, base)
        while more:
            at += RECORD_BYTES
            if at >= len(records) or records[at] != KIND_STRING:
                raise CorruptRecord("more", base + at - RECORD_BYTES + 2, "another piece of the string", "none")
            again, piece, more = unpack_string(records, at, base)
            if again != number:
                raise CorruptRecord("number", base + at + 4, number, again)
            text += piece
        self.strings[number] = text.decode(errors="replace")
        return at

    def blocks(self) -> Iterator[Block]:
        """Every whole block. What is not whole goes to `damage`."""
        at = RECORD_BYTES
        while at < self.size_bytes:
            try:
                block = self._read_block(at)
            except CorruptRecord as error:
                if self._is_unused_from(at):
                    return
                following = self._next_block(at + RECORD_BYTES)
                if following is None:
                    self.damage.append(Damage(at, self.size_bytes, str(error), True))
                    return
                self._damaged(at, following, str(error))
                self.strings.has_gaps = True
                at = following
                continue
            self.block_count += 1
            yield block
            at = block.position + len(block.records)

    def _damaged(self, position: int, end: int, reason: str) -> None:
        """Damage followed by something readable. Adjacent damage is one stretch, with the first reason."""
        last = self.damage[-1] if self.damage else None
        if last is not None and last.end == position:
            self.damage[-1] = replace(last, end=end)
        else:
            self.damage.append(Damage(position, end, reason, False))

    def _read_block(self, at: int) -> Block:
        """The block at an offset; `CorruptRecord` if there is no whole one."""
        self._source.seek(at)
        head = decode_block_head(self._source.read(RECORD_BYTES), at)
        records = self._source.read(head.count * RECORD_BYTES)
        if len(records) < head.count * RECORD_BYTES:
            raise CorruptRecord("block", at, f"{head.count} records", f"{len(records) // RECORD_BYTES}")
        crc = self._checksum(records)
        if crc != head.records_crc:
            raise CorruptRecord("records_crc", at + 56, f"{crc:#010x}", f"{head.records_crc:#010x}")
        return Block(at + RECORD_BYTES, head, records)

    def _chunks(self, at: int) -> Iterator[tuple[int, bytes]]:
        """The rest of the file from an offset on, in pieces."""
        while at < self.size_bytes:
            self._source.seek(at)
            chunk = self._source.read(CHUNK_BYTES)
            if not chunk:
                return
            yield at, chunk
            at += len(chunk)

    def _is_unused_from(self, at: int) -> bool:
        """Whether the rest was reserved and never used."""
        return all(not chunk.strip(bytes([KIND_NOTHING])) for _, chunk in self._chunks(at))

    def _next_block(self, at: int) -> int | None:
        """The offset of the next block that is whole, at or after `at`."""
        for start, chunk in self._chunks(at):
            kinds = chunk[::RECORD_BYTES]
            index = kinds.find(KIND_BLOCK)
            while index >= 0:
                candidate = start + index * RECORD_BYTES
                try:
                    self._read_block(candidate)
                except CorruptRecord:
                    index = kinds.find(KIND_BLOCK, index + 1)
                else:
                    return candidate
        return None


@dataclass(slots=True)
class TraceFile:
    """One file, read whole: its events in order, and what is missing."""

    head: FileHead
    node: str = ""
    events: list[Recorded] = field(default_factory=list)
    drops: list[Dropped] = field(default_factory=list)
    damage: list[Damage] = field(default_factory=list)
    block_count: int = 0
    size_bytes: int = 0

    @property
    def dropped_count(self) -> int:
        return sum(drop.count for drop in self.drops)


def read_whole(source: BinaryIO) -> TraceFile:
    """Everything in one file."""
    reader = TraceReader(source)
    file = TraceFile(reader.head, damage=reader.damage, size_bytes=reader.size_bytes)
    for entry in reader.entries():
        if isinstance(entry, Dropped):
            file.drops.append(entry)
        else:
            file.events.append(entry)
    file.node = reader.node
    file.block_count = reader.block_count
    return file


def decode_file(data: bytes) -> TraceFile:
    """Everything in the bytes of one file."""
    return read_whole(io.BytesIO(data))


def read_file(path: Path) -> TraceFile:
    """One trace file."""
    with path.open("rb") as source:
        return read_whole(source)


def trace_files(place: Path) -> list[Path]:
    """The trace files of a directory (or the one file that was named), in the order in which nodes wrote them."""
    if place.is_file():
        return [place]
    if not place.is_dir():
        raise UsageError(f"There is no trace file or directory {place}.")
    return sorted(path for path in place.rglob(f"*{SUFFIX}") if path.is_file())
