"""JVMs that run TLC many times: a run finds the same wherever it runs, and no JVM is left behind."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from refmq.tools.jdk import find_java
from refmq.tools.tlc import find_tlc_jar
from refmq.verify.spec import host
from refmq.verify.spec.catalogue import Configuration, find_configurations
from refmq.verify.spec.check import RunOptions, run_all, run_configuration
from refmq.verify.spec.tlc import Found, Outcome, Progress, Tlc, find_tlc, run_tlc
from tests.verify.spec.helpers import SPEC, TOY

SMALLEST = (
    "ha_replication/weak/split_brain",
    "rebalance/weak/brokers_list_different_members",
    "transaction_check_back/weak/committed_twice_by_duplicate_decision",
)
PATIENCE_S = 60

needs_java = pytest.mark.skipif(find_java() is None or find_tlc_jar() is None, reason="needs Java and TLC")


def findings(outcome: Outcome) -> tuple[object, ...]:
    """All of an outcome but the times."""
    return (
        *(outcome.found, outcome.name, outcome.states, outcome.loop_to, outcome.progress, outcome.coverage),
        *(outcome.errors, outcome.printed),
    )


def run_each(tlc: Tlc, configurations: list[Configuration]) -> list[tuple[object, ...]]:
    with tlc.threads(1) as pool:
        runs = [
            pool.submit(run_configuration, tlc, configuration, RunOptions(), None, True)
            for configuration in configurations
        ]
        return [findings(run.result().outcome) for run in runs]


def in_processes() -> Tlc:
    tlc = find_tlc()
    tlc.hosts.command = ()
    return tlc


def gone(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    return False


def wait_until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while not condition():
        assert time.monotonic() < deadline, "waited in vain"
        time.sleep(0.02)


@pytest.fixture
def small() -> list[Configuration]:
    """The toys, and a configuration of each protocol that has less than a hundred states."""
    toys = [one for one in find_configurations(TOY) if one.role in ("MC", "SIM")]
    return [*toys, *(one for one in find_configurations(SPEC) if one.name in SMALLEST)]


@pytest.fixture
def mixed(small: list[Configuration]) -> list[Configuration]:
    # Three times, and the second time in the other order: what a run leaves would show in another one.
    return [*small, *reversed(small), *small]


@pytest.mark.jdk
@needs_java
def test_a_run_in_a_host_finds_what_a_process_finds(mixed: list[Configuration]) -> None:
    started: list[str] = []
    tlc = find_tlc()
    start = tlc.hosts.start

    def note(command: object, folder: Path) -> subprocess.Popen[str]:
        started.append(str(command))
        return start(command, folder)  # type: ignore[arg-type]  # handed on as it came

    tlc.hosts.start = note
    hosted = run_each(tlc, mixed)
    assert len(started) == 1, "one host for all, or none"
    alone = run_each(in_processes(), mixed[: len(mixed) // 3])
    assert hosted == [*alone, *reversed(alone), *alone]


@pytest.mark.jdk
@needs_java
def test_a_host_that_does_not_restore_what_a_run_changed_is_noticed(
    small: list[Configuration], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    broken = tmp_path / "TlcHost.java"
    text = host.SOURCE.read_text()
    assert text.count("memento.restore();") == 1
    broken.write_text(text.replace("memento.restore();", ""))
    monkeypatch.setattr(host, "SOURCE", broken)
    once = run_each(find_tlc(), small * 2)
    assert once[: len(small)] != once[len(small) :]


@pytest.mark.jdk
@needs_java
def test_a_java_without_a_compiler_runs_each_in_a_process(small: list[Configuration], tmp_path: Path) -> None:
    tlc = find_tlc()
    java = tmp_path / "java"
    java.write_text(
        f"""#!/bin/sh
case "$*" in *TlcHost.java*) echo 'error: Could not find or load main class TlcHost.java'; exit 1;; esac
exec {tlc.java[0]} "$@"
"""
    )
    java.chmod(0o755)
    without_compiler = Tlc((str(java),), tlc.main, tlc.origin)
    assert run_each(without_compiler, small[:2]) == run_each(in_processes(), small[:2])


@pytest.mark.jdk
@needs_java
def test_a_host_ends_with_whoever_started_it(tmp_path: Path) -> None:
    script = (
        "import time; from refmq.verify.spec.tlc import find_tlc; tlc = find_tlc(); tlc.hosts.open();"
        "host = tlc.hosts.borrow(['-Xmx64m']); print(host.process.pid, flush=True); time.sleep(600)"
    )
    environment = {**os.environ, "TMPDIR": str(tmp_path)}
    with subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True, env=environment) as parent:
        assert parent.stdout is not None
        pid = int(parent.stdout.readline())
        assert not gone(pid)
        parent.send_signal(signal.SIGKILL)
    wait_until(lambda: gone(pid))


@pytest.fixture
def deaf(tmp_path: Path) -> Tlc:
    """A JVM that is ready and answers nothing; it writes its process id down."""
    java = tmp_path / "java"
    java.write_text(f"#!/bin/sh\necho $$ >> {tmp_path / 'pids'}\necho '{host.READY}'\nexec sleep 600\n")
    java.chmod(0o755)
    return Tlc((str(java),), ("-cp", "no.jar", "tlc2.TLC"), "no.jar")


def pids(tmp_path: Path) -> list[int]:
    path = tmp_path / "pids"
    return [int(line) for line in path.read_text().split()] if path.exists() else []


def test_a_run_that_takes_too_long_takes_its_host_with_it(deaf: Tlc, tmp_path: Path) -> None:
    toy = find_configurations(TOY, "MC")[0]
    with deaf.threads(1) as pool:
        for _ in range(2):
            run = pool.submit(run_tlc, deaf, toy.module, toy.text, short_lived=True, timeout_s=0.2)
            assert run.result(PATIENCE_S).found is Found.TIMEOUT
        assert len(set(pids(tmp_path))) == 2
        assert all(map(gone, pids(tmp_path)))


def test_an_interrupted_check_leaves_no_host_behind(deaf: Tlc, tmp_path: Path) -> None:
    def interrupt(running: dict[str, Progress]) -> None:
        if len(pids(tmp_path)) == 2:
            raise KeyboardInterrupt

    begun = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        list(run_all(deaf, find_configurations(TOY, "MC"), RunOptions(), 2, interrupt))
    assert time.monotonic() - begun < PATIENCE_S, "it waited for the runs instead of ending them"
    assert all(map(gone, pids(tmp_path)))


def test_hosts_are_only_lent_to_the_threads_that_end_them(deaf: Tlc) -> None:
    assert deaf.hosts.borrow([]) is None
    with deaf.threads(1):
        lent = deaf.hosts.borrow([])
        assert lent is not None
    assert deaf.hosts.take_back(lent, host.HostedRun(lent.process, code=0), usable=True) == (0, 0.0)
    assert lent.process.returncode is not None, "given back too late, so it is ended at once"
    assert not lent.folder.exists()


def test_a_request_is_written_as_java_reads_it() -> None:
    assert host.request("ä", "") == b"\0\0\0\2" + b"\0\2\xc3\xa4" + b"\0\0"
