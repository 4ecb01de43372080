"""Replays a saved history of a cluster."""

from __future__ import annotations

from typing import Any

from conformance.cluster.history import History
from conformance.cluster.runner import Run, run_history
from refmq.verify.oracles.base import Finding


def replay(history: dict[str, Any], *, engine: str, verbose: bool) -> list[Finding]:
    """Runs it; with `verbose` prints the steps and the time line of every node."""
    value = History.from_json(history)
    run = run_history(value, engine)
    if verbose:
        print(explain(value, run))
    return run.violations


def explain(history: History, run: Run) -> str:
    """The history, what it breaks and what every node saw, for people to read."""
    found = "\n".join(str(violation) for violation in run.violations) or "nothing is broken"
    return f"{history}\n\n{found}\n\n{run.world.timeline.per_node()}"
