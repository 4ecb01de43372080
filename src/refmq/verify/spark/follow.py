"""`refmq verify --follow`: Structured Streaming over growing traces.

A stream source looks for new blocks with a `Tail`, its partitions are the slices of files, and each batch is the small
table of their digests. A `Watch` in the driver adds them up.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition

from refmq.verify.spark import facts
from refmq.verify.spark.columns import queue_key, text_hash
from refmq.verify.spark.facts import as_signed, cell_columns
from refmq.verify.spark.scan import places_in
from refmq.verify.spark.session import SparkFailed, first_line
from refmq.verify.spark.tail import Slice, Tail, cells_of, read_slice
from refmq.verify.spark.watch import MASK, Watch

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

TRIGGER: Final = "1 second"
POLL_S: Final = 1

Say = Callable[[str], None]


class Sliced(InputPartition):  # type: ignore[misc,unused-ignore]  # where pyspark is not installed
    """New blocks of one file."""

    def __init__(self, part: Slice) -> None:
        super().__init__(part)
        self.part = part


class FollowReader(DataSourceStreamReader):  # type: ignore[misc,unused-ignore]  # the same
    """Offsets count the batches; what belongs to one is remembered until it is committed."""

    def __init__(self, folder: str, seed: int) -> None:
        self._tail = Tail(Path(folder))
        self._seed = seed
        self._number = 0
        self._waiting: dict[int, list[Slice]] = {}

    def initialOffset(self) -> dict[str, int]:  # noqa: N802 - the name is Spark's
        return {"batch": 0}

    def latestOffset(self, start: object = None, limit: object = None) -> dict[str, int]:  # noqa: N802 - Spark's name
        found = self._tail.poll()
        if found:
            self._number += 1
            self._waiting[self._number] = found
        return {"batch": self._number}

    def partitions(self, start: dict[str, int], end: dict[str, int]) -> Sequence[InputPartition]:
        numbers = range(start["batch"] + 1, end["batch"] + 1)
        return [Sliced(part) for number in numbers for part in self._waiting.get(number, ())]

    def commit(self, end: dict[str, int]) -> None:
        for number in [number for number in self._waiting if number <= end["batch"]]:
            del self._waiting[number]

    def read(self, partition: InputPartition) -> Iterator[Any]:
        assert isinstance(partition, Sliced)
        yield facts.to_arrow(cell_columns(cells_of(partition.part, self._seed)))
        told = facts.Facts()
        for queue, name in names_of(partition.part).items():
            told.add("queue", k1=as_signed(queue), text=name)
        yield from map(facts.to_arrow, told.take())


def names_of(part: Slice) -> dict[int, str]:
    """The queues that new blocks speak of."""
    found: dict[int, str] = {}
    for chunk in read_slice(part):
        for subject, queue_id in places_in(chunk):
            topic, broker = chunk.names.place_of(chunk.names.texts[subject])
            number = chunk.names.topic[subject : subject + 1]
            found[int(queue_key(number, np.array([queue_id], np.int32))[0])] = f"{topic}/{queue_id} at {broker}"
    return found


class FollowSource(DataSource):  # type: ignore[misc,unused-ignore]  # the same
    """The digests of growing files."""

    @classmethod
    def name(cls) -> str:
        return "refmq-follow"

    def schema(self) -> str:
        return facts.SCHEMA

    def streamReader(self, schema: object) -> DataSourceStreamReader:  # noqa: N802 - the name is Spark's
        return FollowReader(self.options["folder"], int(self.options["seed"]))


def follow(
    session: SparkSession,
    folder: Path,
    say: Say,
    *,
    watch: Watch,
    seconds: float | None = None,
    until: Callable[[], bool] = lambda: False,
) -> int:
    """Watches a folder until somebody interrupts it, for a while, or until something. How many alarms there were."""
    session.dataSource.register(FollowSource)
    seed = text_hash(str(folder)) >> 20
    names: dict[int, str] = {}
    alarms = 0

    def take(frame: Any, number: int) -> None:
        now_s = time.monotonic()
        for row in frame.groupBy("kind", "k1", "k2", "k3", "k4", "text").sum("n", "s1", "s2", "s3", "s4").collect():
            if row["kind"] == "queue":
                names[row["k1"]] = row["text"]
                continue
            sums = tuple(int(row[f"sum({name})"]) & MASK for name in ("n", "s1", "s2", "s3", "s4"))
            watch.feed(row["k1"], row["k3"], row["k4"], row["k2"], sums, now_s)  # type: ignore[arg-type]  # five sums

    source = session.readStream.format("refmq-follow").options(folder=str(folder), seed=str(seed)).load()
    query = source.writeStream.foreachBatch(take).trigger(processingTime=TRIGGER).start()
    begun_s = time.monotonic()
    try:
        while not until() and (seconds is None or time.monotonic() - begun_s < seconds):
            if query.awaitTermination(POLL_S):
                break
            for alarm in watch.alarms(time.monotonic()):
                alarms += 1
                say(alarm.in_words(names))
    except KeyboardInterrupt:
        pass
    except Exception as error:
        raise SparkFailed(f"Spark failed: {first_line(error)}") from error
    finally:
        query.stop()
    return alarms
