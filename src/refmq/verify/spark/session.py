"""Spark as the engine of the judge: the session, what executors need, and the progress of jobs.

On this machine executors have the same Python and find refmq where we do. Those of a cluster get it from us: the
sources of `refmq` and `refmq_fast` as one zip file, and our C extension beside it. They need Python, numpy and pyarrow,
and see the traces under the same paths. (An extension that does not fit their machine or their Python is not loaded;
the numpy kernels give the same digests.)
"""

from __future__ import annotations

import importlib.util
import logging
import os
import sys
import tempfile
import threading
import zipfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from refmq.errors import RefmqError
from refmq.verify.local import Progress
from refmq.verify.oracles import Promises
from refmq.verify.recordings import Stream
from refmq.verify.spark import plans
from refmq.verify.spark.columns import U64
from refmq.verify.spark.environment import require_spark
from refmq.verify.spark.examine import Job, found_from_text
from refmq.verify.spark.export import ExportWork
from refmq.verify.spark.judge import Row
from refmq.verify.spark.native import shared_object
from refmq.verify.spark.scan import ScanOptions
from refmq.verify.spark.tasks import ExamineWork, Reader, RowsWork, ScanWork, packed, read_files
from refmq.verify.verdicts import Found

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

POLL_S: Final = 0.3
LOCAL: Final = "local[*]"

CONFIGURATION: Final = {
    "spark.app.name": "refmq verify",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.ansi.enabled": "false",  # sums of digests wrap around
    "spark.sql.shuffle.partitions": "4",
    # The tables are small: compiling a plan costs more than running it as it is.
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.execution.pyspark.udf.faulthandler.enabled": "true",
    "spark.driver.memory": "1g",
    "spark.driver.extraJavaOptions": "-XX:+UseParallelGC -XX:TieredStopAtLevel=1",
    "spark.executor.extraJavaOptions": "-XX:+UseParallelGC",
}


class SparkFailed(RefmqError):
    """Spark could not do its work; the reason in one line."""


@contextmanager
def spark_session(master: str = LOCAL, settings: dict[str, str] | None = None) -> Iterator[SparkSession]:
    """A session, ended with the block. Executors of a cluster get the code."""
    java = require_spark()
    os.environ.setdefault("JAVA_HOME", str(java.home))
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1") if master.startswith("local") else None
    from pyspark import SparkContext
    from pyspark.sql import SparkSession

    assert SparkContext._active_spark_context is None, "there is one session at a time"
    for name in ("py4j", "SQLQueryContextLogger", "DataFrameQueryContextLogger"):
        logging.getLogger(name).setLevel(logging.CRITICAL)
    builder = SparkSession.builder.master(master)
    with tempfile.TemporaryDirectory(prefix="refmq-spark-") as folder:
        chosen = {**CONFIGURATION, "spark.local.dir": folder, "spark.sql.warehouse.dir": folder, **(settings or {})}
        for name, value in chosen.items():
            builder = builder.config(name, value)
        try:
            with _errors_to(Path(folder) / "spark.log"):
                session = builder.getOrCreate()
        except Exception as error:
            raise SparkFailed(f"Spark does not start at {master}: {first_line(error)}") from error
        session.sparkContext.setLogLevel("OFF")
        try:
            if not is_here(master):
                session.sparkContext.addPyFile(str(zipped_sources(Path(folder))))
                extension = shared_object()
                if extension is not None:
                    session.sparkContext.addFile(str(extension))
            yield session
        finally:
            session.stop()


@contextmanager
def _errors_to(path: Path) -> Iterator[None]:
    """What a process that is started meanwhile says on its standard error goes to a file: the JVM is talkative."""
    sys.stderr.flush()
    kept = os.dup(2)
    try:
        with path.open("wb") as output:
            os.dup2(output.fileno(), 2)
        yield
    finally:
        os.dup2(kept, 2)
        os.close(kept)


def is_here(master: str) -> bool:
    """Whether tasks run on this machine with this Python, and find refmq where we do."""
    return master == "local" or master.startswith("local[")


def zipped_sources(folder: Path) -> Path:
    """The Python sources of refmq as a zip that executors import from."""
    path = folder / "refmq-sources.zip"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for package in ("refmq", "refmq_fast"):
            spec = importlib.util.find_spec(package)
            assert spec is not None and spec.origin is not None, "we run from it"
            root = Path(spec.origin).parent
            for source in sorted(root.rglob("*.py")):
                archive.write(source, str(Path(root.name) / source.relative_to(root)))
    return path


def first_line(error: BaseException) -> str:
    """What an exception of Spark says, without the stack of the JVM."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    telling = [line for line in lines if "Error" in line or "Exception" in line]
    return (telling or lines or [type(error).__name__])[-1 if telling else 0][:400]


@dataclass(slots=True)
class SparkEngine:
    """`judge.Engine` on a session."""

    session: SparkSession
    reader: Reader = read_files
    has_rows: bool = False
    _frames: list[Any] = field(default_factory=list)

    def __post_init__(self) -> None:
        from refmq.verify.spark.sources import SOURCES

        for source in SOURCES:
            self.session.dataSource.register(source)

    @property
    def name(self) -> str:
        return f"spark {self.session.version} at {self.session.sparkContext.master}"

    @property
    def dialect(self) -> plans.Dialect:
        return plans.SPARK

    @property
    def parallelism(self) -> int:
        return max(int(self.session.sparkContext.defaultParallelism), 1)

    def scan(self, streams: Sequence[Stream], options: ScanOptions, progress: Progress) -> None:
        self.close()
        work = ScanWork(tuple(streams), self.reader, options)
        frame = self._source("refmq-facts", work, len(streams)).cache()
        frame.createOrReplaceTempView("facts")
        self._frames.append(frame)
        with self._watched(progress, 0.0, 0.5, "reading and comparing"):
            frame.count()

    def rows(self, streams: Sequence[Stream], dirty: U64 | None, progress: Progress) -> None:
        keys = None if dirty is None else dirty.tobytes()
        frame = self._source("refmq-rows", RowsWork(tuple(streams), self.reader, keys), len(streams)).persist()
        frame.createOrReplaceTempView("rows")
        self._frames.append(frame)
        with self._watched(progress, 0.5, 0.7, "looking at ranges that differ"):
            frame.count()
        self.has_rows = True

    def sql(self, query: str) -> list[Row]:
        return self._collected(lambda: self.session.sql(query))

    def examine(
        self, tasks: Sequence[Sequence[Job]], streams: Sequence[Stream], promises: Promises, progress: Progress
    ) -> list[tuple[str, Found]]:
        work = ExamineWork(tuple(streams), self.reader, tuple(map(tuple, tasks)), promises)
        with self._watched(progress, 0.7, 1.0, "asking the oracles"):
            rows = self._collected(lambda: self._source("refmq-examine", work, len(tasks)))
        return [found_from_text(str(text)) for (text,) in rows]

    def facts_of(self, work: object, tasks: int, progress: Progress) -> None:
        """`stores.StoreEngine`: the facts that the tasks of a work yield."""
        self.close()
        frame = self._source("refmq-facts", work, tasks).persist()
        frame.createOrReplaceTempView("facts")
        self._frames.append(frame)
        with self._watched(progress, 0.0, 1.0, "reading the store"):
            frame.count()

    def export(self, work: ExportWork) -> list[Row]:
        """Writes Parquet files; a row for each."""
        return self._collected(lambda: self._source("refmq-export", work, len(work.streams)))

    def close(self) -> None:
        """Gives memory back."""
        self.has_rows = False
        while self._frames:
            self._frames.pop().unpersist()

    def _source(self, name: str, work: object, count: int) -> Any:
        return self.session.read.format(name).options(work=packed(work), tasks=str(count)).load()

    @staticmethod
    def _collected(frame: Callable[[], Any]) -> list[Row]:
        try:
            return [tuple(row) for row in frame().collect()]
        except Exception as error:
            raise SparkFailed(f"Spark failed: {first_line(error)}") from error

    @contextmanager
    def _watched(self, progress: Progress, begin: float, end: float, what: str) -> Iterator[None]:
        """Tells from another thread how many tasks of a step are done."""
        done = threading.Event()
        tracker = self.session.sparkContext.statusTracker()
        thread = threading.Thread(
            target=_watch, args=(tracker, done, lambda part: progress(begin + (end - begin) * part, what)), daemon=True
        )
        thread.start()
        try:
            yield
        except Exception as error:
            if isinstance(error, RefmqError):
                raise
            raise SparkFailed(f"Spark failed: {first_line(error)}") from error
        finally:
            done.set()
            thread.join()


def _watch(tracker: Any, done: threading.Event, tell: Callable[[float], None]) -> None:
    while not done.wait(POLL_S):
        stages = [tracker.getStageInfo(stage) for stage in tracker.getActiveStageIds()]
        total = sum(stage.numTasks for stage in stages if stage is not None)
        finished = sum(stage.numCompletedTasks for stage in stages if stage is not None)
        tell(finished / total if total else 0.0)
