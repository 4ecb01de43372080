"""How fast traces and stores are judged, and what it costs beside DuckDB on the same data in the same run.

    python -m bench.verify [--events 2000000] [--inside 20000000] [--log-mb 256] [--json FILE] [--plot FILE]

Synthetic traces of `refmq.verify.synth` are judged by Spark at local[*], from files in memory and made inside Spark.
The start of Spark is a step of its own: the session, and the first small trace, for which the JVM loads its classes and
Python starts its workers. The times of the steps below it are those of a Spark that has started. A step's processor
time is that of the whole tree of processes (JVM and Python workers), and its memory the largest sum of their
proportional set sizes. DuckDB reads the Parquet files that `refmq trace export` made, and runs the digest as SQL; Spark
runs the same SQL on the same files.

The machine should be idle, and `--events 100000000 --inside 1000000000` fit in 24 GiB.
"""

from __future__ import annotations

import argparse
import json
import mmap
import multiprocessing
import os
import platform
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from refmq.inspect.files import QUEUE_UNIT, look_at_store
from refmq.model.ids import HostAddress, PhysicalOffset, QueueOffset, TimestampMs
from refmq.net.files import RealDisk
from refmq.protocol.record import Record, encode_record, string_hash
from refmq.verify.oracles import Promises
from refmq.verify.recordings import find_recordings
from refmq.verify.spark.export import ExportWork
from refmq.verify.spark.judge import Wishes, judge_by
from refmq.verify.spark.log_pieces import decode_units
from refmq.verify.spark.session import SparkEngine, spark_session
from refmq.verify.spark.stores import StoreWork, judge_stores, pieces_of
from refmq.verify.synth.streams import SyntheticReader, SyntheticWriter, synthetic

TICKS = os.sysconf("SC_CLK_TCK")
SAMPLE_S = 0.5
SMALL_EVENTS = 100_000
FIRST_EVENTS = 10_000
DIGEST = """
SELECT subject, queue_id, b >> 10 AS range, action, outcome, count(*) AS n, {sum_b} AS hash_b, {sum_bc} AS hash_bc,
  min(at_ns) AS first, max(at_ns) AS last
FROM events WHERE action IN ('AppendMessage', 'AckPut', 'DispatchMessage', 'ServeMessage', 'Send', 'Pull')
GROUP BY subject, queue_id, b >> 10, action, outcome"""


@dataclass(frozen=True)
class Step:
    """One measurement."""

    name: str
    events: int
    seconds: float
    cpu_seconds: float
    memory_mb: float

    @property
    def rate(self) -> float:
        return self.events / max(self.seconds, 1e-9)


def tree() -> list[int]:
    """This process and all below it."""
    parents: dict[int, list[int]] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            fields = _stat(entry)
            if fields:
                parents.setdefault(int(fields[1]), []).append(int(entry.name))
    found, waiting = [], [os.getpid()]
    while waiting:
        pid = waiting.pop()
        found.append(pid)
        waiting += parents.get(pid, [])
    return found


def _stat(entry: Path) -> list[str]:
    """The fields of a process after its name; none if it is gone."""
    try:
        return (entry / "stat").read_text().rpartition(")")[2].split()
    except OSError:
        return []


_spent: dict[tuple[int, str], int] = {}
"""Process and when it started -> its processor time, when it was last looked at."""


def cpu_seconds() -> float:
    """Processor time of the tree, and of all that was seen in it before: Python's workers end without a parent that
    would count their time."""
    for pid in tree():
        fields = _stat(Path(f"/proc/{pid}"))
        if fields:
            _spent[pid, fields[19]] = int(fields[11]) + int(fields[12])
    return sum(list(_spent.values())) / TICKS  # another thread may add to it


def memory_mb() -> float:
    total = 0
    for pid in tree():
        try:
            lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
        except OSError:
            continue
        total += sum(int(line.split()[1]) for line in lines if line.startswith("Pss:"))
    return total / 1024


@contextmanager
def measured(steps: list[Step], name: str, events: int) -> Iterator[None]:
    peak, done = [0.0], threading.Event()

    def sample() -> None:
        while not done.wait(SAMPLE_S):
            peak[0] = max(peak[0], memory_mb())
            cpu_seconds()

    thread = threading.Thread(target=sample, daemon=True)
    thread.start()
    begun_s, begun_cpu = time.monotonic(), cpu_seconds()
    try:
        yield
    finally:
        seconds, cpu = time.monotonic() - begun_s, cpu_seconds() - begun_cpu
        done.set()
        thread.join()
    step = Step(name, events, seconds, cpu, max(peak[0], memory_mb()))
    steps.append(step)
    print(told(step), flush=True)


def told(step: Step) -> str:
    rate = f"{step.rate / 1e6:.2f} M/s"
    return f"{step.name:<58} {step.seconds:8.1f} s {step.cpu_seconds:8.1f} cpu s {rate:>12} {step.memory_mb:7.0f} MB"


def judge(engine: SparkEngine, recordings: Any, *, places_only: bool) -> None:
    wishes = Wishes(Promises(flush_sync=True, settled=True), places_only=places_only)
    judgement = judge_by(engine, recordings, wishes)
    assert not judgement.broken, [verdict.invariant for verdict in judgement.broken]


def from_files(steps: list[Step], engine: SparkEngine, folder: Path, events: int) -> None:
    recordings = find_recordings([folder])
    with measured(steps, f"Spark, {events:.0e} in files: place promises", events):
        judge(engine, recordings, places_only=True)
    with measured(steps, f"Spark, {events:.0e} in files: all promises", events):
        judge(engine, recordings, places_only=False)


def inside(steps: list[Step], engine: SparkEngine, most: int) -> None:
    """Digests of events that are made where they are read; the cost should grow with their number and no faster."""
    for events in (most // 100, most // 10, most):
        whole = synthetic(events)
        made = SparkEngine(engine.session, SyntheticReader(whole))
        with measured(steps, f"Spark, {events:.0e} made inside: place promises", events):
            judge(made, whole.recordings(), places_only=True)
        made.close()


def parquet(steps: list[Step], engine: SparkEngine, folder: Path, target: Path, events: int) -> float:
    """Exports, and runs the same digest as SQL on Spark and on DuckDB; bytes of an event."""
    recordings = find_recordings([folder])
    with measured(steps, f"export of {events:.0e} to Parquet", events):
        rows = engine.export(ExportWork(recordings.streams, folder=str(target)))
    size = sum(int(str(row[2])) for row in rows)
    return size / events


OWN_SETTINGS = {
    "spark.sql.codegen.wholeStage": "true",
    "spark.driver.extraJavaOptions": "-XX:+UseParallelGC",
    "spark.sql.shuffle.partitions": "32",
}
"""As anybody would run a large query: `refmq verify` has settings for many small ones, with which this takes five times
as long."""


def sql_on_parquet(steps: list[Step], target: Path, events: int, settings: dict[str, str]) -> None:
    """The digest as SQL on what was exported: Spark with its own settings, in a JVM of its own, and DuckDB."""
    context = multiprocessing.get_context("spawn")
    with context.Pool(1) as pool:
        steps.append(pool.apply(sql_in_spark, (target, events, {**settings, **OWN_SETTINGS})))
    by_duckdb(steps, target, events)


def sql_in_spark(target: Path, events: int, settings: dict[str, str]) -> Step:
    steps: list[Step] = []
    query = f"SELECT count(*), max(n) FROM ({DIGEST}) AS digest"
    query = query.format(sum_b="sum(xxhash64(b))", sum_bc="sum(xxhash64(b, c))")
    with spark_session("local[*]", settings) as session:
        # What it costs to plan and compile is not what is asked: one file first, and then all.
        for place in (str(next(target.glob("*/*.parquet"))), str(target)):
            session.read.parquet(place).createOrReplaceTempView("events")
            with measured(steps, "Spark: digest as SQL on Parquet", events):
                session.sql(query).collect()
    return steps[-1]


def by_duckdb(steps: list[Step], target: Path, events: int) -> None:
    import duckdb

    database = duckdb.connect()
    database.execute(f"CREATE VIEW events AS SELECT * FROM '{target}/*/*.parquet'")
    sums = {"sum_b": "sum(hash(b))", "sum_bc": "sum(hash(b, c))"}
    with measured(steps, "DuckDB: digest as SQL on Parquet", events):
        database.execute(f"SELECT count(*), max(n) FROM ({DIGEST.format(**sums)}) AS digest").fetchall()


def make_store(root: Path, log_mb: int) -> int:
    """A store of records of 1 KiB, and its queues; its number of records."""
    host, body, queues = HostAddress(bytes((127, 0, 0, 1)), 10911), b"x" * 800, 8
    units: list[list[bytes]] = [[] for _ in range(queues)]
    log, position, number = [], 0, 0
    while position < log_mb << 20:
        queue, offset = number % queues, QueueOffset(number // queues)
        properties = f"UNIQ_KEY\x01{number:032X}\x02TAGS\x01t{number % 5}\x02".encode()
        at, place = TimestampMs(1_700_000_000_000 + number), PhysicalOffset(position)
        record = Record("bench", queue, offset, place, 0, 0, at, host, at, host, 0, 0, body, properties)
        data = encode_record(record)
        units[queue].append(QUEUE_UNIT.pack(position, len(data), string_hash(f"t{number % 5}")))
        log.append(data)
        position, number = position + len(data), number + 1
    (root / "commitlog").mkdir(parents=True)
    (root / "commitlog" / f"{0:020}").write_bytes(b"".join(log) + bytes(4096))
    for queue, made in enumerate(units):
        folder = root / "consumequeue" / "bench" / str(queue)
        folder.mkdir(parents=True)
        (folder / f"{0:020}").write_bytes(b"".join(made))
    return number


def store(steps: list[Step], engine: SparkEngine, folder: Path, log_mb: int) -> None:
    records = make_store(folder, log_mb)
    (log,) = (folder / "commitlog").iterdir()
    with log.open("rb") as source, mmap.mmap(source.fileno(), 0, access=mmap.ACCESS_READ) as mapped:
        sum(mapped[:: mmap.PAGESIZE])  # so that no page has to be found
        with measured(steps, f"C: a log of {log_mb} MB, decoded with its checksums, in this process", records):
            units, _, _ = decode_units(memoryview(mapped).toreadonly(), 0)
        assert len(units) == records
    work = StoreWork(tuple(pieces_of(0, folder, look_at_store(RealDisk(folder)))))
    with measured(steps, f"the tasks of a store of {log_mb} MB, one after the other, in this process", records):
        assert sum(1 for number in range(len(work.pieces)) for _ in work.run(number)) > len(work.pieces)
    with measured(steps, f"Spark: a store of {log_mb} MB, log and queues", records):
        judgement = judge_stores(engine, [folder])
    assert judgement.records == records and not judgement.damage, judgement.flaws[:3]


def commands(steps: list[Step], folder: Path) -> None:
    """From the command to the verdict, for a small trace."""
    SyntheticWriter(folder).write(synthetic(SMALL_EVENTS))
    for engine in ("spark", "local"):
        command = [sys.executable, "-m", "refmq", "verify", str(folder), "--engine", engine]
        with measured(steps, f"refmq verify --engine {engine}, {SMALL_EVENTS:.0e} events", SMALL_EVENTS):
            subprocess.run(command, check=True, stdout=subprocess.DEVNULL, timeout=600)


def find(steps: list[Step], begin: str) -> Step:
    return next(step for step in steps if step.name.startswith(begin))


def ratios(steps: list[Step], reader: str) -> dict[str, float]:
    """What is compared with a peer of the same run."""
    spark, duck = find(steps, "Spark: digest as SQL"), find(steps, "DuckDB: digest")
    return {
        "processor time of Spark / DuckDB, digest SQL on Parquet": spark.cpu_seconds / max(duck.cpu_seconds, 1e-9),
        "processor time of the digest in the reader / DuckDB's SQL on Parquet": (
            find(steps, reader).cpu_seconds / max(duck.cpu_seconds, 1e-9)
        ),
    }


def draw(path: Path, steps: list[Step]) -> None:
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(figsize=(9, 0.45 * len(steps) + 1.2))
    names, rates = [step.name for step in steps], [step.rate / 1e6 for step in steps]
    axes.barh(names, rates)
    axes.set_xlabel("million events (or records) a second, on this machine")
    axes.invert_yaxis()
    figure.tight_layout()
    figure.savefig(path, dpi=120)


def run(arguments: argparse.Namespace, folder: Path) -> tuple[list[Step], dict[str, float]]:
    steps: list[Step] = []
    SyntheticWriter(folder / "trace").write(synthetic(arguments.events))
    settings = {"spark.driver.memory": arguments.driver_memory}
    attempts: dict[str, Callable[[SparkEngine], object]] = {
        "files": lambda engine: from_files(steps, engine, folder / "trace", arguments.events),
        "parquet": lambda engine: parquet(steps, engine, folder / "trace", folder / "parquet", arguments.events),
        "store": lambda engine: store(steps, engine, folder / "store", arguments.log_mb),
        "inside": lambda engine: inside(steps, engine, arguments.inside),
    }
    extra: dict[str, float] = {}
    SyntheticWriter(folder / "first").write(synthetic(FIRST_EVENTS))
    with ExitStack() as stack:
        with measured(steps, "start of Spark: session and first trace", FIRST_EVENTS):
            session = stack.enter_context(spark_session("local[*]", settings))
            engine = SparkEngine(session)
            judge(engine, find_recordings([folder / "first"]), places_only=True)
            engine.close()
        for name, attempt in attempts.items():
            engine = SparkEngine(session)
            result = attempt(engine)
            engine.close()
            if name == "parquet":
                assert isinstance(result, float)
                extra["bytes of an event in Parquet"] = result
    sql_on_parquet(steps, folder / "parquet", arguments.events, settings)
    commands(steps, folder / "small")
    return steps, {**ratios(steps, f"Spark, {arguments.events:.0e} in files: place"), **extra}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--events", type=int, default=2_000_000, help="in files")
    parser.add_argument("--inside", type=int, default=20_000_000, help="made inside Spark, at most")
    parser.add_argument("--log-mb", type=int, default=256)
    parser.add_argument("--driver-memory", default="2g")
    parser.add_argument("--folder", type=Path, default=Path("/dev/shm") if Path("/dev/shm").is_dir() else None)
    parser.add_argument("--json", type=Path)
    parser.add_argument("--plot", type=Path)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="refmq-bench-", dir=arguments.folder) as name:
        steps, extra = run(arguments, Path(name))
    for what, value in extra.items():
        print(f"{what}: {value:.2f}")
    if arguments.json is not None:
        data = {"machine": f"{platform.machine()}, {os.cpu_count()} cores", "steps": [asdict(step) for step in steps]}
        arguments.json.write_text(json.dumps({**data, "ratios": extra}, indent=2) + "\n")
    if arguments.plot is not None:
        draw(arguments.plot, steps)


if __name__ == "__main__":
    main()
