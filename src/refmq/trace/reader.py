"""Reading traces, without anything but the standard library.

A file is read block by block. A block that is not whole ends the file when nothing follows it: that is
the torn tail which a crash leaves, and no mistake. Anything else that is wrong is reported with its
place, and reading goes on at the next whole block.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final
from zlib import crc32

from refmq.errors import CorruptRecord, UsageError
from refmq.trace.record import (
    KIND_BLOCK,
    KIND_DROP,
    KIND_EVENT,
    KIND_NOTHING,
    KIND_STRING,
    RECORD_BYTES,
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


def blocks(data: bytes, damage: list[Damage]) -> Iterator[tuple[int, BlockHead]]:
    """Offset of the first record, and head, of every whole block. What is not whole goes to `damage`."""
    at = RECORD_BYTES
    while at < len(data):
        if data[at] == KIND_NOTHING and not data[at:].strip(b"\0"):
            return  # reserved and never used
        try:
            head = decode_block_head(data, at)
            end = at + (1 + head.count) * RECORD_BYTES
            if end > len(data):
                raise CorruptRecord("block", at, f"{head.count} records", f"{(len(data) - at) // RECORD_BYTES - 1}")
            crc = crc32(data[at + RECORD_BYTES : end])
            if crc != head.records_crc:
                raise CorruptRecord("records_crc", at + 56, f"{crc:#010x}", f"{head.records_crc:#010x}")
        except CorruptRecord as error:
            following = _next_block(data, at + RECORD_BYTES)
            damage.append(Damage(at, following or len(data), str(error), following is None))
            if following is None:
                return
            at = following
            continue
        yield at + RECORD_BYTES, head
        at = end


def _next_block(data: bytes, at: int) -> int | None:
    """The offset of the next block that is whole, at or after `at`."""
    for candidate in range(at, len(data) - RECORD_BYTES, RECORD_BYTES):
        if data[candidate] != KIND_BLOCK:
            continue
        try:
            head = decode_block_head(data, candidate)
        except CorruptRecord:
            continue
        records = data[candidate + RECORD_BYTES : candidate + (1 + head.count) * RECORD_BYTES]
        if len(records) == head.count * RECORD_BYTES and crc32(records) == head.records_crc:
            return candidate
    return None


def decode_file(data: bytes) -> TraceFile:
    """Everything in the bytes of one file."""
    file = TraceFile(decode_file_head(data), size_bytes=len(data))
    strings: dict[int, str] = {0: ""}
    for start, head in blocks(data, file.damage):
        file.block_count += 1
        end = start + head.count * RECORD_BYTES
        at = start
        while at < end:
            try:
                at = _decode_record(data, at, end, strings, file)
            except CorruptRecord as error:
                # The checksum holds, so the writer wrote it so: the rest of this block means nothing.
                file.damage.append(Damage(at, end, str(error), False))
                break
    file.node = strings.get(1, "")
    return file


def _decode_record(data: bytes, at: int, end: int, strings: dict[int, str], file: TraceFile) -> int:
    """Reads one record, or one string of several, and returns the offset of the next."""
    match data[at]:
        case kind if kind == KIND_EVENT:
            file.events.append(unpack_event(data, at, strings))
        case kind if kind == KIND_STRING:
            number, text, more = unpack_string(data, at)
            while more:
                at += RECORD_BYTES
                if at >= end:
                    raise CorruptRecord("more", at - RECORD_BYTES + 2, "0 at the end of a block", 1)
                again, piece, more = unpack_string(data, at)
                if again != number:
                    raise CorruptRecord("number", at + 4, number, again)
                text += piece
            strings[number] = text.decode(errors="replace")
        case kind if kind == KIND_DROP:
            file.drops.append(unpack_drop(data, at))
        case kind:
            raise CorruptRecord("kind", at, "an event, a string or a drop", f"{kind:#04x}")
    return at + RECORD_BYTES


def read_file(path: Path) -> TraceFile:
    """One trace file."""
    return decode_file(path.read_bytes())


def trace_files(place: Path) -> list[Path]:
    """The trace files of a directory (or the one file that was named), in the order in which nodes wrote them."""
    if place.is_file():
        return [place]
    if not place.is_dir():
        raise UsageError(f"There is no trace file or directory {place}.")
    return sorted(path for path in place.rglob(f"*{SUFFIX}") if path.is_file())
