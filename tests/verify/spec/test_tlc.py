"""TLC as a program: what its output means, and that no process of it is left behind."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from refmq.verify.spec.catalogue import find_configurations
from refmq.verify.spec.check import RunOptions, run_all
from refmq.verify.spec.tlc import Found, Progress, Tlc, read_output
from tests.verify.spec.helpers import TOY


@pytest.mark.parametrize(
    ("code", "text", "found", "name"),
    [
        ("2114:1", "Deadlock reached.", Found.DEADLOCK, ""),
        ("2116:1", "Temporal properties were violated.", Found.TEMPORAL, ""),
        (
            "2112:1",
            "Action property line 5, col 1 of module X is violated.",
            Found.ACTION_PROPERTY,
            "line 5, col 1 of module X",
        ),
        ("2107:1", "Invariant Safe is violated by the initial state:\n/\\ x = 1", Found.INVARIANT, "Safe"),
        ("1000:1", "TLC threw an unexpected exception.", Found.ERROR, ""),
        ("5001:0", "File not found.", Found.ERROR, ""),
        ("2193:0", "Model checking completed. No error has been found.", Found.OK, ""),
    ],
)
def test_every_kind_of_end_is_recognised(code: str, text: str, found: Found, name: str) -> None:
    number = code.split(":")[0]
    outcome = read_output(
        [f"@!@!@STARTMSG {code} @!@!@\n", *text.splitlines(keepends=True), "\n", f"@!@!@ENDMSG {number} @!@!@\n"]
    )
    assert (outcome.found, outcome.name) == (found, name)


def test_an_interrupted_check_leaves_no_process_behind(tmp_path: Path) -> None:
    pids = tmp_path / "pids"
    program = tmp_path / "tlc"
    program.write_text(f"#!/bin/sh\necho $$ >> {pids}\nexec sleep 600\n")
    program.chmod(0o755)

    def interrupt(running: dict[str, Progress]) -> None:
        if pids.exists() and len(pids.read_text().split()) == 2:
            raise KeyboardInterrupt

    tlc = Tlc((), (str(program),), str(program))
    begun = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        list(run_all(tlc, find_configurations(TOY), RunOptions(), 2, interrupt))
    assert time.monotonic() - begun < 300, "it waited for the runs instead of ending them"
    for pid in map(int, pids.read_text().split()):
        with pytest.raises(ProcessLookupError):
            os.kill(pid, 0)
