"""What becomes of a toy history."""

from __future__ import annotations

import os
from collections import Counter
from dataclasses import dataclass

from conformance.campaign.toy.generate import History
from refmq.verify.oracles.base import Finding

DEADLY = 7
ENDLESS = 12
BREAKING = 10
"""A number that ends with 3 breaks a promise; one that ends with 5 raises something."""


@dataclass
class Run:
    """What came of it."""

    violations: list[Finding]
    events: int = 2

    def cells(self) -> Counter[str]:
        return Counter({"step Toy": 1})


def run_history(history: History, engine: str) -> Run:
    if history.number == DEADLY:
        os._exit(9)
    while history.number == ENDLESS:
        pass
    if history.number % BREAKING == 5:
        raise ValueError("5 is not liked")
    broken = history.number % BREAKING == 3
    return Run([Finding("Toy", f"message {history.number} is lost")] if broken else [])
