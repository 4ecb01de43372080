"""A campaign: one history per seed for as long as it may take, a progress line, and a saved file for a finding."""

from __future__ import annotations

import sys
import time
from pathlib import Path

from conformance.base import REGRESSIONS, Violation, save
from conformance.engines import store_engine
from conformance.store import generate
from conformance.store.history import History
from conformance.store.runner import run_history
from conformance.store.shrink import shrink

PROGRESS_EVERY_S = 5.0


def run_campaign(
    *, minutes: float, first_seed: int, steps: int, engine: str, folder: Path = REGRESSIONS
) -> Path | None:
    """Runs histories until the time is over or one breaks a promise; returns the saved file of that one."""
    begin = time.monotonic()
    shown = begin
    seed, lives, refused = first_seed, 0, 0
    while (now := time.monotonic()) < begin + minutes * 60:
        if now - shown >= PROGRESS_EVERY_S:
            shown = now
            _say(f"{seed - first_seed} histories, {lives} observations, {now - begin:.0f} s, nothing broken")
        history = generate.history(seed, steps)
        if store_engine(engine).refuses(history.setting) is not None:
            refused += 1
            seed += 1
            continue
        violations, observations = run_history(history, engine)
        lives += len(observations)
        if violations:
            _say(f"seed {seed} breaks {violations[0]}; shrinking")
            return _shrunk_and_saved(history, violations, engine, folder)
        seed += 1
    _say(f"{seed - first_seed} histories, {lives} observations, {time.monotonic() - begin:.0f} s, nothing broken")
    if refused:
        _say(f"{refused} of them were passed over: they need what {engine} does not have")
    return None


def _shrunk_and_saved(history: History, violations: list[Violation], engine: str, folder: Path) -> Path:
    broken = violations[0].invariant

    def still_broken(candidate: History) -> bool:
        return any(found.invariant == broken for found in run_history(candidate, engine)[0])

    small = shrink(history, still_broken)
    found = [violation for violation in run_history(small, engine)[0] if violation.invariant == broken]
    _say(f"{found[0]}\n{small}")
    return save("store", small.to_json(), found, folder)


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)
