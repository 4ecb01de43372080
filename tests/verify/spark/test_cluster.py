"""A cluster of Spark that knows nothing of refmq: a master and two workers of their own on loopback, with a Python that
has numpy and pyarrow only. What executors need comes with the command."""

from __future__ import annotations

import json
import os
import queue
import re
import subprocess
import sys
import sysconfig
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import IO

import pytest

from refmq.verify.oracles import Promises
from refmq.verify.recordings import find_recordings
from refmq.verify.spark import environment
from refmq.verify.spark.judge import Wishes, judge_by
from refmq.verify.synth.streams import SyntheticWriter, synthetic
from tests.verify.spark.duck import DuckEngine
from tests.verify.spark.engines import statuses

pytestmark = [pytest.mark.jdk, pytest.mark.slow]
START_TIMEOUT_S = 120
RUN_TIMEOUT_S = 400
ADDRESS = re.compile(r"Starting Spark master at (spark://127\.0\.0\.1:\d+)")
REGISTERED = re.compile(r"Successfully registered with master")


class Output:
    """The lines of a process, read by a thread so that waiting for one has an end."""

    def __init__(self, stream: IO[str]) -> None:
        self._lines: queue.Queue[str] = queue.Queue()
        threading.Thread(target=self._read, args=(stream,), daemon=True).start()

    def _read(self, stream: IO[str]) -> None:
        for line in stream:
            self._lines.put(line)

    def wait_for(self, pattern: re.Pattern[str]) -> re.Match[str]:
        while True:
            found = pattern.search(self._lines.get(timeout=START_TIMEOUT_S))
            if found is not None:
                return found


@contextmanager
def spark_process(name: str, *arguments: str) -> Iterator[Output]:
    """A daemon of Spark in the foreground."""
    spec = find_spec("pyspark")
    assert spec is not None and spec.origin is not None
    home = Path(spec.origin).parent
    command = [str(home / "bin" / "spark-class"), f"org.apache.spark.deploy.{name}", *arguments]
    environment_ = {**os.environ, "SPARK_HOME": str(home), "SPARK_LOCAL_IP": "127.0.0.1", "SPARK_DAEMON_MEMORY": "256m"}
    environment_["JAVA_HOME"] = str(environment.require_spark().home)
    with subprocess.Popen(
        command, env=environment_, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stderr is not None
        try:
            yield Output(process.stderr)
        finally:
            process.terminate()
            process.wait(60)


@contextmanager
def cluster(folder: Path) -> Iterator[str]:
    """A master with two workers of one core each; its address."""
    place = ("--host", "127.0.0.1", "--port", "0", "--webui-port", "0")
    with ExitStack() as stack:
        master = stack.enter_context(spark_process("master.Master", *place))
        address = master.wait_for(ADDRESS)[1]
        for number in (1, 2):
            size = ("--cores", "1", "--memory", "1g", "--work-dir", str(folder / f"worker-{number}"))
            stack.enter_context(spark_process("worker.Worker", *place, *size, address)).wait_for(REGISTERED)
        yield address


def python_without_refmq(folder: Path) -> Path:
    """A Python that has the libraries of this one and not the editable refmq: without `site` no .pth file is read."""
    libraries = sysconfig.get_paths()["purelib"]
    path = folder / "python"
    path.write_text(f'#!/bin/sh\nPYTHONPATH="$PYTHONPATH:{libraries}" exec {sys.executable} -S "$@"\n')
    path.chmod(0o755)
    without = subprocess.run([path, "-c", "import numpy, pyarrow, refmq"], capture_output=True, text=True, check=False)
    assert "No module named 'refmq'" in without.stderr
    return path


def judged_by_a_cluster(folder: Path, events: int, *more: str) -> tuple[dict[str, str], list[Path], Path]:
    """The verdicts of two workers about a small trace with mistakes; their folders, and that of the trace."""
    if environment.why_missing():
        pytest.skip(environment.why_missing())
    traces, report = folder / "traces", folder / "report.json"
    SyntheticWriter(traces).write(synthetic(events, seed=3, violations=1))
    python = {**os.environ, "PYSPARK_PYTHON": str(python_without_refmq(folder)), "SPARK_LOCAL_IP": "127.0.0.1"}
    with cluster(folder) as address:
        options = ["--master", address, "--flush", "sync", "--settled", "--json", str(report), *more]
        options += ["--conf", "spark.executor.memory=512m"]
        command = [sys.executable, "-m", "refmq", "verify", str(traces), *options]
        done = subprocess.run(command, env=python, capture_output=True, text=True, timeout=RUN_TIMEOUT_S, check=False)
    assert done.returncode == 3, done.stderr
    data = json.loads(report.read_text())
    assert address in data["engine"]
    executors = sorted(path for path in folder.glob("worker-*/app-*/*") if (path / "refmq-sources.zip").is_file())
    return {verdict["promise"]: verdict["status"] for verdict in data["verdicts"]}, executors, traces


@pytest.mark.parametrize("places_only", [True, False], ids=["places", "all"])
def test_a_cluster_that_knows_nothing_of_refmq_judges_the_same(places_only: bool, tmp_path: Path) -> None:
    theirs, executors, traces = judged_by_a_cluster(
        tmp_path, 3_000 if places_only else 6_000, *["--places-only"] * places_only
    )
    assert {path.parent.parent.name for path in executors} == {"worker-1", "worker-2"}, "both had something to do"
    wishes = Wishes(Promises(), places_only=places_only)
    assert theirs == statuses(judge_by(DuckEngine(), find_recordings([traces]), wishes))
