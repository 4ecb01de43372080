"""A campaign: one history per seed for as long as it may take, a progress line, and a saved file for a finding."""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import Any, cast

from conformance.base import REGRESSIONS, Violation, save
from conformance.cluster import generate
from conformance.cluster.history import History
from conformance.cluster.replay import explain
from conformance.cluster.runner import run_history
from conformance.store.shrink import shrink

PROGRESS_EVERY_S = 5.0


def run_campaign(
    *, minutes: float, first_seed: int, steps: int, engine: str = "reference", folder: Path = REGRESSIONS
) -> Path | None:
    """Runs histories until the time is over or one breaks a promise; returns the saved file of that one."""
    begin = time.monotonic()
    shown = begin
    seed, events, virtual_s = first_seed, 0, 0.0
    while (now := time.monotonic()) < begin + minutes * 60:
        if now - shown >= PROGRESS_EVERY_S:
            shown = now
            _say(
                f"{seed - first_seed} histories, {events} events, {virtual_s / 60:.0f} cluster minutes, nothing broken"
            )
        history = generate.history(seed, steps)
        run = run_history(history, engine)
        events += len(run.lines)
        virtual_s += run.world.loop.elapsed_s
        if run.violations:
            _say(f"seed {seed} breaks {run.violations[0]}; shrinking")
            return shrunk_and_saved(history, run.violations, engine, folder)
        seed += 1
    _say(f"{seed - first_seed} histories, {events} events, {virtual_s / 60:.0f} cluster minutes, nothing broken")
    return None


def shrunk_and_saved(history: History, violations: list[Violation], engine: str, folder: Path) -> Path:
    """The smallest history that breaks the same promise, in a file; what it looks like goes to stderr."""
    broken = violations[0].invariant

    def still_broken(candidate: Any) -> bool:
        return any(found.invariant == broken for found in run_history(cast("History", candidate), engine).violations)

    small = cast("History", shrink(cast("Any", history), still_broken))
    run = run_history(small, engine)
    found = [violation for violation in run.violations if violation.invariant == broken]
    _say(explain(small, run))
    return save("cluster", small.to_json(), found, folder)


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)
