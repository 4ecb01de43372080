"""Spark itself: the same verdicts as on DuckDB, from files and from nothing, here and in processes of their own.

One session serves all tests that can share it: a JVM needs seconds to start.
"""

from __future__ import annotations

import json
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from refmq.errors import MissingTool
from refmq.tools import jdk
from refmq.verify.oracles import Promises
from refmq.verify.recordings import find_recordings
from refmq.verify.spark import environment
from refmq.verify.spark.export import ExportWork
from refmq.verify.spark.judge import Wishes, judge_by, picture_by
from refmq.verify.synth.cluster import Cluster
from refmq.verify.synth.plants import Plant
from refmq.verify.synth.streams import Synthetic, SyntheticReader, SyntheticWriter, synthetic
from tests.verify.spark.duck import DuckEngine
from tests.verify.spark.engines import sentences, statuses

pytestmark = pytest.mark.jdk
WHOLE = synthetic(6_000, seed=3, violations=1)
WISHES = Wishes(Promises(), bins=True)


@pytest.fixture(scope="module")
def traces(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("traces")
    SyntheticWriter(folder).write(WHOLE)
    return folder


@pytest.fixture(scope="module")
def engine() -> Iterator[object]:
    if environment.why_missing():
        pytest.skip(environment.why_missing())
    from refmq.verify.spark.session import SparkEngine, spark_session

    with spark_session("local[2]") as session:
        yield SparkEngine(session)


def test_spark_and_duckdb_find_the_same(engine: object, traces: Path) -> None:
    from refmq.verify.spark.session import SparkEngine

    assert isinstance(engine, SparkEngine)
    recordings = find_recordings([traces])
    told: list[float] = []
    theirs = judge_by(engine, recordings, WISHES, lambda part, what: told.append(part))
    duck = DuckEngine()
    ours = judge_by(duck, recordings, WISHES)
    assert statuses(theirs) == statuses(ours)
    assert sentences(theirs) == sentences(ours)
    assert theirs.broken and theirs.engine.startswith("spark 4")
    assert picture_by(engine) == picture_by(duck)
    assert all(0 <= part <= 1 for part in told)


def test_a_source_inside_spark_needs_no_files(engine: object) -> None:
    from refmq.verify.spark.session import SparkEngine

    assert isinstance(engine, SparkEngine)
    whole = synthetic(4_000, seed=9)
    judgement = judge_by(SparkEngine(engine.session, SyntheticReader(whole)), whole.recordings(), WISHES)
    assert judgement.census.total == whole.event_count
    assert judgement.broken == judgement.doubtful == []


def test_a_trace_becomes_parquet(engine: object, traces: Path, tmp_path: Path) -> None:
    from refmq.verify.spark.session import SparkEngine

    assert isinstance(engine, SparkEngine)
    recordings = find_recordings([traces])
    rows = engine.export(ExportWork(recordings.streams, folder=str(tmp_path)))
    frame = engine.session.read.parquet(str(tmp_path))
    assert frame.count() == sum(int(str(row[1])) for row in rows) > 5_000
    sends = frame.where("action = 'Send' AND outcome = 1").selectExpr("count(*)", "count(DISTINCT node)").collect()
    assert sends[0][0] > 500 and sends[0][1] == 2


def test_what_is_missing_is_said_in_a_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(environment, "missing_libraries", lambda: ["pyspark"])
    assert "pip install 'refmq[spark]'" in environment.why_missing()
    with pytest.raises(MissingTool, match="pyspark"):
        environment.require_spark()
    monkeypatch.setattr(environment, "missing_libraries", list)
    monkeypatch.setattr(jdk, "find_java", lambda: None)
    assert "Java runtime of version 17" in environment.why_missing()


def test_executors_get_the_sources(tmp_path: Path) -> None:
    pytest.importorskip("pyspark")
    from refmq.verify.spark.session import first_line, is_here, zipped_sources

    names = zipfile.ZipFile(zipped_sources(tmp_path)).namelist()
    assert {"refmq/verify/spark/tasks.py", "refmq/trace/record.py", "refmq_fast/__init__.py"} <= set(names)
    assert [is_here(master) for master in ("local", "local[*]", "local-cluster[2,1,1024]", "spark://h:7077")] == [
        *(True, True, False, False)
    ]
    assert first_line(ValueError("one\n caused by: SomeError: two\n at x")) == "caused by: SomeError: two"


@pytest.mark.slow
def test_executors_in_processes_of_their_own_judge_the_same(traces: Path, tmp_path: Path) -> None:
    if environment.why_missing():
        pytest.skip(environment.why_missing())
    report = tmp_path / "report.json"
    options = ["--master", "local-cluster[2,1,1024]", "--flush", "sync", "--settled", "--json", str(report)]
    command = [sys.executable, "-m", "refmq", "verify", str(traces), *options]
    done = subprocess.run(command, capture_output=True, text=True, timeout=240, check=False)
    assert done.returncode == 3, done.stderr
    data = json.loads(report.read_text())
    assert "local-cluster[2,1,1024]" in data["engine"]
    theirs = {verdict["promise"]: verdict["status"] for verdict in data["verdicts"]}
    assert theirs == statuses(judge_by(DuckEngine(), find_recordings([traces]), WISHES))


@pytest.mark.slow
def test_a_growing_trace_is_watched(engine: object, tmp_path: Path) -> None:
    from refmq.verify.spark.follow import follow
    from refmq.verify.spark.session import SparkEngine
    from refmq.verify.spark.watch import Watch

    assert isinstance(engine, SparkEngine)
    whole = Synthetic(Cluster(1, 3, 2), 20, (Plant("hole in a queue", 0, 4),))
    SyntheticWriter(tmp_path).write(whole)
    said: list[str] = []
    watch = Watch(patience_s=1.0)
    # It ends early when something was said; on a busy machine a batch takes its time.
    alarms = follow(engine.session, tmp_path, said.append, seconds=60.0, watch=watch, until=lambda: bool(said))
    assert alarms == len(said) >= 1 and "what was dispatched" in said[0] and "at broker-0" in said[0]
