"""Python data sources for Spark: each partition runs one task of a `tasks.Work`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import pyarrow as pa  # type: ignore[import-untyped,unused-ignore]  # the extra `spark` has it, without types
from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition

from refmq.verify.spark import facts, rows
from refmq.verify.spark.export import ExportWork
from refmq.verify.spark.tasks import ExamineWork, RowsWork, ScanWork, unpacked

TEXT_SCHEMA = "text string"


class Numbered(InputPartition):  # type: ignore[misc,unused-ignore]  # where pyspark is not installed
    """A partition: the number of a task."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.number = number


class _Reader(DataSourceReader):  # type: ignore[misc,unused-ignore]  # where pyspark is not installed
    """Runs tasks."""

    def __init__(self, options: dict[str, str]) -> None:
        self._work = options["work"]
        self._count = int(options["tasks"])

    def partitions(self) -> Sequence[InputPartition]:
        return [Numbered(number) for number in range(self._count)]

    def read(self, partition: InputPartition) -> Iterator[Any]:
        assert isinstance(partition, Numbered)
        return self.batches(unpacked(self._work), partition.number)

    def batches(self, work: Any, number: int) -> Iterator[Any]:
        raise NotImplementedError


class _ScanReader(_Reader):
    def batches(self, work: ScanWork, number: int) -> Iterator[Any]:
        return map(facts.to_arrow, work.run(number))


class _RowsReader(_Reader):
    def batches(self, work: RowsWork, number: int) -> Iterator[Any]:
        return map(rows.to_arrow, work.run(number))


class _ExamineReader(_Reader):
    def batches(self, work: ExamineWork, number: int) -> Iterator[Any]:
        for text in work.run(number):
            yield pa.RecordBatch.from_arrays([pa.array([text], pa.string())], names=["text"])


class ScanSource(DataSource):  # type: ignore[misc,unused-ignore]  # where pyspark is not installed
    """The facts of a pass."""

    @classmethod
    def name(cls) -> str:
        return "refmq-facts"

    def schema(self) -> str:
        return facts.SCHEMA

    def reader(self, schema: object) -> DataSourceReader:
        return _ScanReader(dict(self.options))


class RowsSource(DataSource):  # type: ignore[misc,unused-ignore]  # where pyspark is not installed
    """The rows of dirty ranges."""

    @classmethod
    def name(cls) -> str:
        return "refmq-rows"

    def schema(self) -> str:
        return rows.SCHEMA

    def reader(self, schema: object) -> DataSourceReader:
        return _RowsReader(dict(self.options))


class ExamineSource(DataSource):  # type: ignore[misc,unused-ignore]  # where pyspark is not installed
    """What oracles found, as JSON."""

    @classmethod
    def name(cls) -> str:
        return "refmq-examine"

    def schema(self) -> str:
        return TEXT_SCHEMA

    def reader(self, schema: object) -> DataSourceReader:
        return _ExamineReader(dict(self.options))


class _ExportReader(_Reader):
    def batches(self, work: ExportWork, number: int) -> Iterator[Any]:
        for written in work.run(number):
            columns = [pa.array([written.path], pa.string()), *(pa.array([n], pa.int64()) for n in written[1:])]
            yield pa.RecordBatch.from_arrays(columns, names=list(written._fields))


class ExportSource(DataSource):  # type: ignore[misc,unused-ignore]  # where pyspark is not installed
    """Parquet files as they are written."""

    @classmethod
    def name(cls) -> str:
        return "refmq-export"

    def schema(self) -> str:
        return "path string, events bigint, size_bytes bigint, read_bytes bigint"

    def reader(self, schema: object) -> DataSourceReader:
        return _ExportReader(dict(self.options))


SOURCES = (ExportSource, ScanSource, RowsSource, ExamineSource)
