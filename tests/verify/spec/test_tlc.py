"""Whoever ends the runner ends the Java machines that it started."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from refmq.verify.spec.catalogue import find_configurations
from refmq.verify.spec.check import RunOptions, run_all
from refmq.verify.spec.tlc import Progress, Tlc

TOY = Path(__file__).parent / "toy"


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
