"""One history on two engines: the same answers, the same trace, and the same effects on the disk, byte for byte and in
the same order.

The runner observes every answer of a store. What it does not see, the order of the effects with their bytes, is written
down by a disk between it and the store. A difference is given with the step in which it appears first.
"""

from __future__ import annotations

import sys
import time
from dataclasses import dataclass, field
from typing import Final

from conformance.engines import StoreEngine, store_engine
from conformance.oracles import store_events as seen
from conformance.store import generate
from conformance.store import history as h
from conformance.store.recorded import Effect, RecordedDisk
from conformance.store.runner import Runner
from refmq.model.disk import Disk
from refmq.model.step import EventFields
from refmq.store import MessageStore
from refmq.store.parts import Emit

SHOWN_MAX: Final = 300
"""Of an effect or an observation so many characters are shown."""
PROGRESS_EVERY_S: Final = 10.0


@dataclass
class Recording:
    """What one engine did in each step of a history; the last entry is the end of the history."""

    effects: list[list[Effect]] = field(default_factory=lambda: [[]])
    events: list[list[EventFields]] = field(default_factory=lambda: [[]])
    observations: list[seen.Observation] = field(default_factory=list)
    observed_to: list[int] = field(default_factory=list)
    """How many observations there were at the end of each step."""


@dataclass(frozen=True, slots=True)
class RecordingEngine:
    """An engine whose stores are listened to."""

    engine: StoreEngine
    recording: Recording

    def open_store(self, disk: Disk, setting: h.Setting, emit: Emit | None = None) -> MessageStore:
        assert emit is None, "the recording listens"
        recorded = RecordedDisk(disk, lambda effect: self.recording.effects[-1].append(effect))
        return self.engine.open_store(recorded, setting, lambda event: self.recording.events[-1].append(event))

    def refuses(self, setting: h.Setting) -> str | None:
        return self.engine.refuses(setting)


def record(history: h.History, engine: str) -> Recording:
    """Lives through a history and writes down everything."""
    recording = Recording()
    runner = Runner(history.setting, RecordingEngine(store_engine(engine), recording))
    for step in history.steps:
        runner.take(step)
        recording.observed_to.append(len(runner.observations))
        recording.effects.append([])
        recording.events.append([])
    runner.finish()
    recording.observations = runner.observations
    recording.observed_to.append(len(runner.observations))
    return recording


def difference(history: h.History, first: str = "reference", second: str = "fast") -> str | None:
    """The first thing in which two engines differ, in a sentence; None if there is none."""
    one, other = record(history, first), record(history, second)
    begin = 0
    for number in range(len(history.steps) + 1):
        step = history.steps[number] if number < len(history.steps) else "the end"
        where = f"step {number} ({step})"
        for what, mine, theirs in (
            ("effect", one.effects[number], other.effects[number]),
            ("event", one.events[number], other.events[number]),
            (
                "observation",
                one.observations[begin : one.observed_to[number]],
                other.observations[begin : other.observed_to[number]],
            ),
        ):
            found = _first_difference(list(mine), list(theirs))
            if found is not None:
                place, expected, instead = found
                return f"{where}, {what} {place}: {first} has {expected}, {second} has {instead}"
        begin = one.observed_to[number]
    return None


def _first_difference(mine: list[object], theirs: list[object]) -> tuple[int, str, str] | None:
    for number in range(max(len(mine), len(theirs))):
        a = mine[number] if number < len(mine) else "nothing"
        b = theirs[number] if number < len(theirs) else "nothing"
        if a != b:
            return number, repr(a)[:SHOWN_MAX], repr(b)[:SHOWN_MAX]
    return None


@dataclass
class Count:
    """How many histories were compared, and how many passed over because an engine refuses their setting."""

    compared: int = 0
    refused: int = 0


def compare_seeds(first_seed: int, count: int, *, second: str = "fast", steps: int = 60) -> tuple[Count, str | None]:
    """Compares the histories of so many seeds; stops at the first difference."""
    total = Count()
    shown = time.monotonic()
    for seed in range(first_seed, first_seed + count):
        history = generate.history(seed, steps)
        if store_engine(second).refuses(history.setting) is not None:
            total.refused += 1
            continue
        found = difference(history, second=second)
        total.compared += 1
        if found is not None:
            return total, f"seed {seed}: {found}"
        if time.monotonic() - shown >= PROGRESS_EVERY_S:
            shown = time.monotonic()
            print(f"{total.compared} histories alike, {total.refused} refused", file=sys.stderr, flush=True)
    return total, None
