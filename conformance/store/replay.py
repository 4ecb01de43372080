"""Replays a saved history of a store."""

from __future__ import annotations

from typing import Any

from conformance.engines import store_engine
from conformance.oracles.store_events import Readout, Recovered
from conformance.store.history import History
from conformance.store.runner import run_history
from refmq.errors import UsageError
from refmq.verify.oracles.base import Finding


def replay(history: dict[str, Any], *, engine: str, verbose: bool) -> list[Finding]:
    """Runs it; with `verbose` prints the steps and what was observed."""
    value = History.from_json(history)
    refusal = store_engine(engine).refuses(value.setting)
    if refusal is not None:
        raise UsageError(f"the history cannot be replayed on {engine}: {refusal}")
    run = run_history(value, engine)
    if verbose:
        print(value)
        for number, seen in enumerate(run.observations):
            print(
                f"{number:4} {type(seen).__name__}" if isinstance(seen, Readout | Recovered) else f"{number:4} {seen}"
            )
    return run.violations
