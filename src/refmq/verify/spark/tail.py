"""Growing trace files: what is new in them, in whole blocks, and what their strings mean.

A file is read as far as its blocks are whole. What comes next time begins there, with the table of strings as it was,
so nothing is read twice. `Tail` belongs to one place (the driver), which hands out `Slice`s for others to read.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from refmq.errors import CorruptRecord
from refmq.trace.columns import record_dtype
from refmq.trace.reader import SUFFIX, Strings
from refmq.trace.record import (
    KIND_EVENT,
    KIND_STRING,
    RECORD_BYTES,
    decode_block_head,
    decode_file_head,
)
from refmq.verify.recordings import UNKNOWN_NODE
from refmq.verify.spark.columns import CHUNK_RECORDS, Chunk, Names
from refmq.verify.spark.digest import CELL, Cells, added, digest_cells, keys_of


@dataclass(frozen=True, slots=True)
class Slice:
    """New blocks of one file."""

    path: str
    begin: int
    end: int
    strings: tuple[str, ...]
    """All that the file has defined up to the end."""

    @property
    def node(self) -> str:
        return self.strings[1].partition("#")[0] if len(self.strings) > 1 else UNKNOWN_NODE


@dataclass(slots=True)
class _File:
    end: int = 0
    """Everything before it was handed out."""
    strings: Strings = field(default_factory=lambda: Strings({0: ""}))
    is_bad: bool = False


@dataclass(slots=True)
class Tail:
    """The growing files below a directory."""

    folder: Path
    bad: list[str] = field(default_factory=list)
    """Files that are no traces, as they are met."""
    _files: dict[str, _File] = field(default_factory=dict)

    def poll(self) -> list[Slice]:
        """What is new since the last time."""
        found = []
        for path in sorted(self.folder.rglob(f"*{SUFFIX}")):
            file = self._files.setdefault(str(path), _File())
            if file.is_bad:
                continue
            try:
                new = self._grown(path, file)
            except CorruptRecord as error:
                file.is_bad = True
                self.bad.append(f"{path} is not a trace: {error}")
            except OSError:
                continue  # it was removed, or cannot be read just now
            else:
                found += [new] if new is not None else []
        return found

    def _grown(self, path: Path, file: _File) -> Slice | None:
        with path.open("rb", buffering=0) as source:
            size = source.seek(0, 2)
            if size < RECORD_BYTES or size <= file.end:
                return None
            begin = file.end or RECORD_BYTES
            if not file.end:
                source.seek(0)
                decode_file_head(source.read(RECORD_BYTES))
            at = begin
            while at + RECORD_BYTES <= size:
                source.seek(at)
                try:
                    count = decode_block_head(source.read(RECORD_BYTES), at).count
                except CorruptRecord:
                    break  # it is being written, or torn: judged when the trace is complete
                if at + (count + 1) * RECORD_BYTES > size:
                    break
                self._define(source.read(count * RECORD_BYTES), file.strings)
                at += (count + 1) * RECORD_BYTES
        if at == begin:
            return None
        file.end = at
        texts = tuple(file.strings.get(number, f"?{number}") for number in range(max(file.strings) + 1))
        return Slice(str(path), begin, at, texts)

    @staticmethod
    def _define(records: bytes, strings: Strings) -> None:
        kinds = records[::RECORD_BYTES]
        at, text = kinds.find(KIND_STRING), b""
        while at >= 0:
            start = at * RECORD_BYTES
            length, more = records[start + 1], records[start + 2]
            text += records[start + 8 : start + 8 + length]
            if not more:
                strings[int.from_bytes(records[start + 4 : start + 8], "little")] = text.decode(errors="replace")
                text = b""
            at = kinds.find(KIND_STRING, at + 1)


def read_slice(part: Slice) -> Iterator[Chunk]:
    """The events of new blocks."""
    names = Names(part.node)
    names.extend(Strings(enumerate(part.strings)))
    with Path(part.path).open("rb") as source:
        source.seek(part.begin)
        data = source.read(part.end - part.begin)
    rows = np.frombuffer(data, record_dtype())
    valid = rows["kind"] == KIND_EVENT
    valid &= np.maximum.reduce([rows["action"], rows["actor"], rows["subject"]]) < len(part.strings)
    rows = rows[valid & (rows["outcome"] <= 5)]
    for first in range(0, len(rows), CHUNK_RECORDS):
        piece = rows[first : first + CHUNK_RECORDS]
        yield Chunk(part.node, piece, names, piece["at_ns"].astype(np.int64))


def cells_of(part: Slice, seed: int) -> Cells:
    """The digest of new blocks."""
    keys = keys_of(seed)
    cells = [digest_cells(chunk, keys) for chunk in read_slice(part)]
    return added(np.concatenate(cells)) if cells else np.empty(0, CELL)
