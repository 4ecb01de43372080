"""Traces as Parquet: a file for each stream, in its order, in the folder of its node.

Scans by node need no shuffle, and numbers that rise are stored as differences, so a regular trace takes a few bytes an
event. The files are written by pyarrow where the streams are read.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np

from refmq.verify.spark.columns import Chunk
from refmq.verify.spark.tasks import Work

ROW_GROUP_EVENTS: Final = 1 << 20
NAMES: Final = ("action", "actor", "subject")
"""Columns that are few texts."""
DELTAS: Final = ("sequence", "at_ns", "a", "b", "operation")
"""Columns that are stored as differences."""
PLAIN: Final = ("outcome", "c", "d", "queue_id")


class Written(NamedTuple):
    """One file."""

    path: str
    events: int
    size_bytes: int
    read_bytes: int


@dataclass(frozen=True, slots=True)
class ExportWork(Work):
    """Writes each stream, a task for each."""

    folder: str = ""

    def run(self, number: int) -> Iterator[Written]:
        stream = self.streams[number]
        place = Path(self.folder) / f"node={safe(stream.name)}"
        place.mkdir(parents=True, exist_ok=True)
        path = place / f"{safe(stream.node)}-{stream.life_ns}.parquet"
        events = write_parquet(path, self.chunks(stream))
        if events:
            yield Written(str(path), events, path.stat().st_size, stream.size_bytes)


def safe(name: str) -> str:
    """A name that a file can have."""
    return re.sub(r"[^A-Za-z0-9._-]", "_", name) or "node"


def write_parquet(path: Path, chunks: Iterator[Chunk]) -> int:
    """How many events were written. A file is there when it is whole."""
    import pyarrow.parquet as pq  # type: ignore[import-untyped,unused-ignore]  # the extra `spark` has it, without types

    writer, events = None, 0
    unfinished = path.with_suffix(".part")
    for table in _tables(chunks):
        if writer is None:
            writer = pq.ParquetWriter(
                unfinished,
                table.schema,
                compression="zstd",
                use_dictionary=[*NAMES, "outcome", "d", "queue_id"],
                column_encoding={**dict.fromkeys(DELTAS, "DELTA_BINARY_PACKED"), "c": "PLAIN"},
            )
        writer.write_table(table, row_group_size=ROW_GROUP_EVENTS)
        events += table.num_rows
    if writer is not None:
        writer.close()
        unfinished.replace(path)
    return events


def _tables(chunks: Iterator[Chunk]) -> Iterator[Any]:
    """Chunks joined to row groups."""
    import pyarrow as pa  # type: ignore[import-untyped,unused-ignore]  # the same

    waiting, count = [], 0
    for chunk in chunks:
        waiting.append(to_table(chunk))
        count += len(chunk)
        if count >= ROW_GROUP_EVENTS:
            yield pa.concat_tables(waiting).unify_dictionaries()
            waiting, count = [], 0
    if waiting:
        yield pa.concat_tables(waiting).unify_dictionaries()


def to_table(chunk: Chunk) -> Any:
    """A chunk as a table of Arrow; texts are dictionaries."""
    import pyarrow as pa  # type: ignore[import-untyped,unused-ignore]  # the same

    columns: dict[str, Any] = {}
    for name in NAMES:
        numbers = pa.array(chunk.rows[name].astype(np.int32))
        columns[name] = pa.DictionaryArray.from_arrays(numbers, pa.array(chunk.names.texts, pa.string()))
    for name in (*DELTAS, *PLAIN):
        values = chunk.column(name)
        signed = values.view(np.int64) if name == "operation" else values
        kind = {"sequence": np.int64, "d": np.int64, "outcome": np.int32}.get(name, signed.dtype)
        columns[name] = pa.array(signed.astype(kind))
    return pa.table(columns)
