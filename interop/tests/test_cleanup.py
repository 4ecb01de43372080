"""A run that ends, fails or is interrupted leaves no process and no folder behind."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from interop.processes import wait_until

ROOT = Path(__file__).parent.parent.parent
CASES = "interop/tests/test_java_send.py::test_sync", "interop/tests/test_java_send.py::test_async"
ENDS_WITHIN_S = 60.0
BEGINS_WITHIN_S = 180.0


def processes_with(text: str) -> list[str]:
    """The command lines of all processes that mention ``text``, but for the one that asks."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and int(entry.name) != os.getpid():
            try:
                line = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
            except OSError:
                continue
            if text in line:
                found.append(line)
    return found


def start(tmp_path: Path, *arguments: str) -> tuple[subprocess.Popen[bytes], Path, Path]:
    """A run of some cases as a process group of its own, whose temporary files are in a folder of their own."""
    temporary, log = tmp_path / "temporary", tmp_path / "run.out"
    temporary.mkdir()
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "--verbose", *arguments, *CASES]
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
    with log.open("wb") as output:
        run = subprocess.Popen(
            command,
            cwd=ROOT,
            stdout=output,
            stderr=output,
            env={**environment, "TMPDIR": str(temporary)},
            start_new_session=True,
            # A shell that runs us in the background ignores Ctrl-C, and that would be inherited.
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
        )
    return run, temporary, log


def nothing_is_left(temporary: Path) -> None:
    wait_until(lambda: not processes_with(str(temporary)), "the end of all processes", 10)
    # pytest makes an empty folder for itself when it starts others.
    assert [path for path in temporary.rglob("*") if path.is_file() or path.name.startswith("refmq")] == []


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/cmdline").exists(), reason="looks for processes in /proc")
@pytest.mark.parametrize(("number", "processes"), [(signal.SIGINT, ("-n", "2")), (signal.SIGTERM, ())])
def test_an_interrupted_run_leaves_nothing(tmp_path: Path, number: signal.Signals, processes: tuple[str, ...]) -> None:
    run, temporary, log = start(tmp_path, *processes)
    try:
        wait_until(lambda: b"PASSED" in log.read_bytes() or run.poll() is not None, "a case", BEGINS_WITHIN_S)
        assert run.poll() is None, log.read_text()[-2000:]
        assert processes_with(str(temporary)), "servers and clients run"
        if number == signal.SIGINT:
            os.killpg(run.pid, number)  # as a terminal does it
        else:
            run.send_signal(number)
        began = time.monotonic()
        run.wait(ENDS_WITHIN_S)
        assert run.returncode != 0, f"ended after {time.monotonic() - began:.0f} s"
        nothing_is_left(temporary)
    finally:
        run.kill()


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/cmdline").exists(), reason="looks for processes in /proc")
def test_a_run_that_ends_leaves_nothing(tmp_path: Path) -> None:
    run, temporary, log = start(tmp_path)
    assert run.wait(BEGINS_WITHIN_S) == 0, log.read_text()[-2000:]
    nothing_is_left(temporary)
