"""Histories drawn from a source of choices: Hypothesis for the state machine, a seed for a campaign.

Every function takes a `Choose`; 0 is the simplest choice everywhere, so what Hypothesis shrinks becomes simple. The
weights are chosen so that a history of some forty steps has several lives, files that roll and a few faults.
"""

from __future__ import annotations

from typing import Final

from conformance.store import history as h
from conformance.store.patterns import PATTERNS
from conformance.store.steps import next_step, setting
from refmq.sim.choice import seeded

PATTERN_ONE_IN: Final = 10
"""How often a step of a history is a whole pattern."""


def history(seed: int, steps: int = 40) -> h.History:
    """A history from a seed. Whether a store runs is guessed from the steps: any list of steps is a history."""
    choose = seeded(seed)
    first = setting(choose)
    made: list[h.Step] = []
    is_running = True
    for _ in range(steps):
        if is_running and choose(PATTERN_ONE_IN) == PATTERN_ONE_IN - 1:
            made.extend(PATTERNS[choose(len(PATTERNS))](choose))
            continue
        step = next_step(choose, is_running=is_running)
        made.append(step)
        match step:
            case h.StartStore():
                is_running = True
            case h.StopStore() | h.ProcessCrash(effects=0) | h.PowerLoss(effects=0):
                is_running = False
            case h.ProcessCrash() | h.PowerLoss():
                # It dies somewhere in the steps that follow, or at the latest before the next start.
                made.extend(next_step(choose, is_running=True) for _ in range(1 + choose(4)))
                is_running = False
            case _:
                pass
    return h.History(first, tuple(made))
