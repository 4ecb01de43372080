"""What Spark's tasks run: Python data sources whose partitions are streams, or questions to oracles.

Everything that a task needs is in the options of its source, as text: the tables are small and the streams are read by
the task itself. `chunks_of` decides where a stream comes from: its files, or a generator.
"""

from __future__ import annotations

import base64
import pickle
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from refmq.verify.oracles import Promises
from refmq.verify.recordings import Gap, Stream
from refmq.verify.spark.columns import U64, Chunk, StreamReader
from refmq.verify.spark.examine import Job, examine, found_to_text
from refmq.verify.spark.facts import Columns
from refmq.verify.spark.rows import all_rows
from refmq.verify.spark.scan import Scan, ScanOptions
from refmq.verify.spark.survey import can_survey


def packed(value: object) -> str:
    return base64.b64encode(pickle.dumps(value)).decode()


def unpacked(text: str) -> Any:
    """What `packed` made of it, in this very session."""
    return pickle.loads(base64.b64decode(text))


Reader = Callable[[Stream], tuple[Iterator[Chunk], list[Gap]]]
"""The chunks of a stream, and the gaps that grow as they are read."""


def read_files(stream: Stream) -> tuple[Iterator[Chunk], list[Gap]]:
    reader = StreamReader(stream)
    return reader.chunks(), reader.gaps


def read_blocks(stream: Stream) -> tuple[Iterator[Chunk], list[Gap]]:
    """Each block a chunk, as it was read: for a survey."""
    reader = StreamReader(stream, chunk_records=1, ordered=False)
    return reader.chunks(), reader.gaps


@dataclass(frozen=True, slots=True)
class Work:
    """What all tasks of a step share."""

    streams: tuple[Stream, ...]
    reader: Reader = read_files

    def chunks(self, stream: Stream) -> Iterator[Chunk]:
        return self.reader(stream)[0]


@dataclass(frozen=True, slots=True)
class ScanWork(Work):
    """A pass over all streams, a task for each."""

    options: ScanOptions = ScanOptions()  # noqa: RUF009 - frozen as well

    def run(self, number: int) -> Iterator[Columns]:
        stream = self.streams[number]
        is_quick = self.options.is_quick and can_survey() and self.reader is read_files
        chunks, gaps = (read_blocks if is_quick else self.reader)(stream)
        return Scan(stream.name, self.options, number).run(chunks, gaps)


@dataclass(frozen=True, slots=True)
class RowsWork(Work):
    """The rows of dirty ranges, a task for each stream."""

    dirty: bytes | None = None
    """Keys of ranges; None for all of them."""

    def run(self, number: int) -> Iterator[dict[str, Any]]:
        return all_rows(self.chunks(self.streams[number]), self._keys())

    def _keys(self) -> U64 | None:
        return None if self.dirty is None else np.frombuffer(self.dirty, np.uint64)


@dataclass(frozen=True, slots=True)
class ExamineWork(Work):
    """Questions to oracles, a task for each list of jobs."""

    tasks: tuple[Sequence[Job], ...] = ()
    promises: Promises = Promises()  # noqa: RUF009 - frozen as well

    def run(self, number: int) -> Iterator[str]:
        for invariant, found in examine(self.tasks[number], self.streams, self.promises, self.chunks):
            yield found_to_text(invariant, found)
