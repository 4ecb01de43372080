"""One history of any kind: made from a seed, lived through on an engine, judged."""

from __future__ import annotations

import importlib
import signal
from collections import Counter
from dataclasses import dataclass, field
from types import FrameType
from typing import Any, Final

from conformance.engines import store_engine
from refmq.verify.oracles.base import Finding

STEPS: Final = {"store": 60, "cluster": 40, "group": 30}
"""How many steps a history of a campaign has."""

HISTORY_SECONDS_MAX: Final = 60
"""Of the processor. A history takes a fraction of a second; one that takes this long hangs."""

HANG: Final = "Hang"
RUN_FAILS: Final = "RunFails"


class Hang(BaseException):
    """A history did not end."""


def _hang(number: int, frame: FrameType | None) -> None:
    raise Hang


@dataclass(frozen=True, slots=True)
class Lived:
    """What came of one history."""

    violations: tuple[Finding, ...] = ()
    events: int = 0
    cells: Counter[str] = field(default_factory=Counter)
    """What happened in it, for the coverage: cell -> how often."""
    refused: bool = False
    """The engine does not have what the history needs; nothing was run."""


def make(kind: str, seed: int, steps: int) -> Any:
    """The history of a seed."""
    return importlib.import_module(f"conformance.{kind}.generate").history(seed, steps)


def live(kind: str, history: Any, engine: str, *, counted: bool = False) -> Lived:
    """Lives through a history and judges it, with `counted` for the coverage as well. Whatever goes wrong is a
    violation; nothing is raised."""
    if kind == "store" and store_engine(engine).refuses(history.setting) is not None:
        return Lived(refused=True)
    before = signal.signal(signal.SIGVTALRM, _hang)
    signal.setitimer(signal.ITIMER_VIRTUAL, HISTORY_SECONDS_MAX)
    try:
        how = {"counted": counted} if kind == "store" else {}  # the others count from their lines
        run = importlib.import_module(f"conformance.{kind}.runner").run_history(history, engine, **how)
        return Lived(tuple(run.violations), run.events, run.cells() if counted else Counter())
    except Hang:
        return Lived((Finding(HANG, f"the history did not end within {HISTORY_SECONDS_MAX} s of processor"),))
    except Exception as error:  # whatever it is, the campaign goes on
        return Lived((Finding(RUN_FAILS, f"{type(error).__name__}: {error}"),))
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, before)
