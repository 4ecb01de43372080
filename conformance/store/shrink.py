"""Makes a failing history smaller: fewer steps, simpler steps, as long as the same promise stays broken."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator
from typing import Any

from conformance.store import history as h

STILL_BROKEN_TRIES_MAX = 2000
"""Enough for a history of a hundred steps; a campaign must not spend its night on one finding."""


def shrink(history: h.History, is_broken: Callable[[h.History], bool]) -> h.History:
    """The smallest history found that is still broken."""
    tries = 0

    def attempt(candidate: h.History) -> bool:
        nonlocal tries
        tries += 1
        return tries <= STILL_BROKEN_TRIES_MAX and is_broken(candidate)

    while True:
        smaller = next((c for c in _candidates(history) if attempt(c)), None)
        if smaller is None:
            return history
        history = smaller


def _candidates(history: h.History) -> Iterator[h.History]:
    """Simpler histories, the boldest first."""
    steps = history.steps
    size = max(1, len(steps) // 2)
    while size:
        for begin in range(0, len(steps), size):
            yield dataclasses.replace(history, steps=steps[:begin] + steps[begin + size :])
        size //= 2
    for number, step in enumerate(steps):
        for simpler in _simpler(step):
            yield dataclasses.replace(history, steps=(*steps[:number], simpler, *steps[number + 1 :]))
    for simpler in _simpler(history.setting):
        yield dataclasses.replace(history, setting=simpler)


def _simpler(value: Any) -> Iterator[Any]:
    for field in dataclasses.fields(value):
        present = getattr(value, field.name)
        if present != field.default:
            yield dataclasses.replace(value, **{field.name: field.default})
        if isinstance(present, tuple) and present:
            yield dataclasses.replace(value, **{field.name: present[:-1]})
            yield dataclasses.replace(value, **{field.name: present[1:]})
        elif isinstance(present, int) and not isinstance(present, bool) and present > 1 and field.name in _COUNTS:
            yield dataclasses.replace(value, **{field.name: present // 2})
            yield dataclasses.replace(value, **{field.name: present - 1})


_COUNTS = frozenset({"effects", "torn", "body_bytes", "count", "level"})
