"""The ledger of campaigns: which seeds were lived through by which version of the code, and what came of it.

A JSON line for each stretch of seeds that came to its end. Lines are only added, so a campaign that is cut off loses
nothing but the stretches under way, and the next one of the same version goes on behind them.
"""

from __future__ import annotations

import functools
import hashlib
import json
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parent.parent.parent
SOURCES: Final = ("src/**/*.py", "src/**/*.[ch]", "conformance/**/*.py")
STRETCH: Final = 25
"""Seeds of a line."""


@functools.cache
def version() -> str:
    """Names the code by its content: everything that can change what a seed comes to."""
    digest = hashlib.sha256()
    for path in sorted(path for pattern in SOURCES for path in ROOT.glob(pattern)):
        digest.update(str(path.relative_to(ROOT)).encode())
        digest.update(path.read_bytes())
    return digest.hexdigest()[:12]


@dataclass(frozen=True, slots=True)
class Stretch:
    """Some seeds in a row, and what came of their histories."""

    kind: str
    engine: str
    version: str
    steps: int
    begin: int
    end: int
    """The first seed behind it."""
    seconds: float = 0.0
    """Of the processor."""
    events: int = 0
    refused: int = 0
    """Histories that the engine does not take."""
    findings: dict[str, int] = field(default_factory=dict)
    """Seed -> how many promises it breaks."""
    cells: dict[str, int] = field(default_factory=dict)
    """What happened in them, for the coverage."""

    @property
    def histories(self) -> int:
        return self.end - self.begin - self.refused


class Ledger:
    """The file, and what is in it."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self.stretches = list(_read(path))

    def add(self, stretch: Stretch) -> None:
        self.stretches.append(stretch)
        self._path.parent.mkdir(parents=True, exist_ok=True)
        with self._path.open("a") as file:
            file.write(json.dumps(asdict(stretch)) + "\n")

    def of(self, kind: str, engine: str, version: str, steps: int | None = None) -> list[Stretch]:
        """What one version has lived through."""
        return [
            each
            for each in self.stretches
            if (each.kind, each.engine, each.version) == (kind, engine, version) and steps in (None, each.steps)
        ]

    def todo(self, kind: str, engine: str, version: str, steps: int, first: int) -> Iterator[tuple[int, int]]:
        """Stretches of seeds from `first` on that this version has not lived through; there is no end of them."""
        done = sorted((each.begin, each.end) for each in self.of(kind, engine, version, steps))
        seed = first
        while True:
            for begin, end in done:
                if begin <= seed < end:
                    seed = end
            following = min((begin for begin, _ in done if begin > seed), default=seed + STRETCH)
            end = min(seed + STRETCH, following)
            assert end > seed
            yield seed, end
            seed = end


def total(stretches: Iterable[Stretch]) -> tuple[int, int, Counter[str]]:
    """Histories, findings and cells of some stretches."""
    histories, findings, cells = 0, 0, Counter[str]()
    for each in stretches:
        histories += each.histories
        findings += len(each.findings)
        cells.update(each.cells)
    return histories, findings, cells


def _read(path: Path) -> Iterator[Stretch]:
    if not path.exists():
        return
    for text in path.read_text().splitlines():
        try:
            yield Stretch(**json.loads(text))
        except (ValueError, TypeError):
            continue  # the last line of a campaign that was cut off, or one of another form
