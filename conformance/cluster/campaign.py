"""A campaign: one history per seed for as long as it may take, a progress line, and a saved file for a finding.

Histories of clusters and of groups (`conformance.group`) are lived through alike: `kind` says which.
"""

from __future__ import annotations

import importlib
import sys
import time
from pathlib import Path
from typing import Any, Literal, TypeAlias

from conformance.base import REGRESSIONS, Violation, save
from conformance.store.shrink import shrink

Kind: TypeAlias = Literal["cluster", "group"]

PROGRESS_EVERY_S = 5.0


def run_campaign(
    *,
    minutes: float,
    first_seed: int,
    steps: int,
    engine: str = "reference",
    folder: Path = REGRESSIONS,
    kind: Kind = "cluster",
) -> Path | None:
    """Runs histories until the time is over or one breaks a promise; returns the saved file of that one."""
    generate, runner = (importlib.import_module(f"conformance.{kind}.{name}") for name in ("generate", "runner"))
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
        run = runner.run_history(history, engine)
        events += len(run.lines)
        virtual_s += run.world.loop.elapsed_s
        if run.violations:
            _say(f"seed {seed} breaks {run.violations[0]}; shrinking")
            return shrunk_and_saved(history, run.violations, engine, folder, kind)
        seed += 1
    _say(f"{seed - first_seed} histories, {events} events, {virtual_s / 60:.0f} cluster minutes, nothing broken")
    return None


def shrunk_and_saved(
    history: Any, violations: list[Violation], engine: str, folder: Path, kind: Kind = "cluster"
) -> Path:
    """The smallest history that breaks the same promise, in a file; what it looks like goes to stderr."""
    runner, replay = (importlib.import_module(f"conformance.{kind}.{name}") for name in ("runner", "replay"))
    broken = violations[0].invariant

    def still_broken(candidate: Any) -> bool:
        return any(found.invariant == broken for found in runner.run_history(candidate, engine).violations)

    small: Any = shrink(history, still_broken)
    run = runner.run_history(small, engine)
    found = [violation for violation in run.violations if violation.invariant == broken]
    _say(replay.explain(small, run))
    return save(kind, small.to_json(), found, folder)


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)
