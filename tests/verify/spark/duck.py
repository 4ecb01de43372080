"""The judge on DuckDB, in this process: the same tasks and the same SQL without a JVM."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import duckdb
import pyarrow as pa  # type: ignore[import-untyped,unused-ignore]  # it has no types

from refmq.verify.local import Progress
from refmq.verify.oracles import Promises
from refmq.verify.recordings import Stream
from refmq.verify.spark import facts, plans, rows
from refmq.verify.spark.columns import U64
from refmq.verify.spark.examine import Job, found_from_text
from refmq.verify.spark.judge import Row
from refmq.verify.spark.scan import ScanOptions
from refmq.verify.spark.tasks import ExamineWork, Reader, RowsWork, ScanWork, packed, read_files, unpacked
from refmq.verify.verdicts import Found


class DuckEngine:
    """`judge.Engine`."""

    name = "duckdb"
    dialect = plans.DUCKDB

    def __init__(self, reader: Reader = read_files, parallelism: int = 2) -> None:
        self.parallelism = parallelism
        self._reader = reader
        self.has_rows = False
        self._database = duckdb.connect()

    def scan(self, streams: Sequence[Stream], options: ScanOptions, progress: Progress) -> None:
        self.has_rows = False
        work = unpacked(packed(ScanWork(tuple(streams), self._reader, options)))
        schema = [(name, pa.string() if name in facts.TEXTS else pa.int64()) for name in facts.COLUMNS]
        self._fill("facts", schema, (facts.to_arrow(each) for n in range(len(streams)) for each in work.run(n)))

    def facts_of(self, work: Any, tasks: int, progress: Progress) -> None:
        sent = unpacked(packed(work))
        schema = [(name, pa.string() if name in facts.TEXTS else pa.int64()) for name in facts.COLUMNS]
        self._fill("facts", schema, (facts.to_arrow(each) for n in range(tasks) for each in sent.run(n)))

    def rows(self, streams: Sequence[Stream], dirty: U64 | None, progress: Progress) -> None:
        work = RowsWork(tuple(streams), self._reader, None if dirty is None else dirty.tobytes())
        schema = [(name, pa.int64()) for name in rows.NUMBERS]
        self.has_rows = True
        self._fill("rows", schema, (rows.to_arrow(each) for n in range(len(streams)) for each in work.run(n)))

    def _fill(self, name: str, schema: list[tuple[str, Any]], batches: Iterator[Any]) -> None:
        batched = pa.Table.from_batches(list(batches), schema=pa.schema(schema))
        self._database.register("batched", batched)
        self._database.execute(f"CREATE OR REPLACE TABLE {name} AS SELECT * FROM batched")

    def sql(self, query: str) -> list[Row]:
        return list(self._database.execute(query).fetchall())

    def examine(
        self, tasks: Sequence[Sequence[Job]], streams: Sequence[Stream], promises: Promises, progress: Progress
    ) -> list[tuple[str, Found]]:
        work = ExamineWork(tuple(streams), self._reader, tuple(map(tuple, tasks)), promises)
        return [found_from_text(text) for number in range(len(tasks)) for text in work.run(number)]
