"""The script ``refmq`` before it has read its command line."""

from __future__ import annotations

import signal
import subprocess
import sys

import pytest

import refmq.cli
from refmq import __main__ as entry

WAIT_S = 60.0

INTERRUPTED_BY_AN_IMPORT = """
import os, signal, sys
from refmq.__main__ import main

class Interrupting:
    def find_spec(self, name, path=None, target=None):
        if name == sys.argv[1]:
            os.kill(os.getpid(), signal.SIGINT)

sys.meta_path.insert(0, Interrupting())
sys.exit(main())
"""


@pytest.mark.parametrize("module", ["refmq.cli", "click", "refmq.cli._group"])
def test_an_interrupt_while_modules_are_read_shows_no_traceback(module: str) -> None:
    hearing = "import signal; signal.signal(signal.SIGINT, signal.default_int_handler)"  # also in a shell's background
    command = [sys.executable, "-c", hearing + INTERRUPTED_BY_AN_IMPORT, module]
    done = subprocess.run(command, capture_output=True, text=True, timeout=WAIT_S)
    assert (done.returncode, done.stdout, done.stderr) == (-signal.SIGINT, "", "")


def test_an_interrupt_that_is_to_be_ignored_is_ignored() -> None:
    """A shell starts what is in its background so."""
    ignoring = "import signal; signal.signal(signal.SIGINT, signal.SIG_IGN)"
    command = [sys.executable, "-c", ignoring + INTERRUPTED_BY_AN_IMPORT, "refmq.cli", "--version"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=WAIT_S)
    assert (done.returncode, done.stderr) == (2, "refmq: No such command 'refmq.cli'. (see `refmq --help`)\n")


@pytest.mark.parametrize("handler", [signal.default_int_handler, signal.SIG_IGN])
def test_a_command_runs_under_the_handler_that_was_there(monkeypatch: pytest.MonkeyPatch, handler: object) -> None:
    """Also when Ctrl-C is to be ignored, as in the background of a shell."""
    before = signal.signal(signal.SIGINT, handler)  # type: ignore[arg-type]  # one of the two above
    found: list[object] = []

    def command() -> int:
        found.append(signal.getsignal(signal.SIGINT))
        return 7

    try:
        monkeypatch.setattr(refmq.cli, "main", command)
        assert entry.main() == 7
        assert found == [handler]
    finally:
        signal.signal(signal.SIGINT, before)
