"""What happened in a history of a store, counted for the coverage."""

from __future__ import annotations

from collections import Counter
from typing import TypeAlias

from conformance.store import history as h
from refmq.model.step import EventFields
from refmq.sim.disk import SimulatedDisk

Cells: TypeAlias = Counter[str]


class Told:
    """Listens to a store, and to what is done to it."""

    def __init__(self) -> None:
        self.cells: Cells = Counter()
        self._before = ""
        self._struck: list[str] = []
        self._faults = 0

    def take(self, step: h.Step, disk: SimulatedDisk) -> None:
        """A step of the history was taken."""
        self.cells[f"take {type(step).__name__}"] += 1
        for fault in disk.happened[self._faults :]:
            self.fault(fault.name)
        self._faults = len(disk.happened)

    def event(self, event: EventFields) -> None:
        """The store took a step of its own."""
        action = event[0]
        self.cells[f"step {action}"] += 1
        self._before = action
        for fault in self._struck:
            self.cells[f"fault {fault} by {action}"] += 1
        self._struck.clear()

    def fault(self, name: str) -> None:
        self.cells[f"fault {name}"] += 1
        if self._before:
            self.cells[f"fault {name} by {self._before}"] += 1
        self._struck.append(name)
