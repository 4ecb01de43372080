"""One mutant against the histories, in a process of its own.

    python -m conformance.mutants.trial '{"module": ..., "number": 3}' ...

prints one JSON line: whether it was caught, by which promise, after how many histories and seconds (of the processor: a
busy machine changes nothing). With `--save FILE` the history that caught it is made as short as it can be and written
there: a regression, or a killer for `seeded`.
"""

from __future__ import annotations

import argparse
import importlib
import json
import os
import signal
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from types import FrameType
from typing import Any

from conformance.mutants.apply import change_on_import
from conformance.mutants.mistake import change_of

HISTORY_SECONDS_MAX = 20
"""A history takes a fraction of a second; one that takes this long hangs."""


BEHIND_C = "refmq.protocol."
"""Modules that C stands in front of: a mistake there shows only where C is not."""


class Hang(BaseException):
    """A history did not end."""


def _hang(number: int, frame: FrameType | None) -> None:
    raise Hang


def trial(*, seconds: float, first_seed: int, steps: int, histories: list[Path], kind: str = "store") -> dict[str, Any]:
    """Runs saved histories, then generated ones, until one breaks a promise or the time is over."""
    begin = time.process_time()
    tried = 0
    signal.signal(signal.SIGVTALRM, _hang)
    for name, violations in _outcomes(kind, first_seed, steps, histories):
        tried += 1
        elapsed = time.process_time() - begin
        if violations:
            return {"caught": True, "by": violations[0], "history": name, "tried": tried, "seconds": round(elapsed, 2)}
        if elapsed > seconds:
            break
    return {"caught": False, "by": "", "history": "", "tried": tried, "seconds": round(time.process_time() - begin, 2)}


def _outcomes(kind: str, first_seed: int, steps: int, histories: list[Path]) -> Iterator[tuple[str, list[str]]]:
    # Imported here: the mutant is in place only now.
    generate, history = (importlib.import_module(f"conformance.{kind}.{name}") for name in ("generate", "history"))
    run_history = importlib.import_module(f"conformance.{kind}.runner").run_history
    from_json = history.History.from_json
    for path in histories:
        yield str(path), _broken(run_history, from_json(json.loads(path.read_text())["history"]))
    seed = first_seed
    while True:
        yield str(seed), _broken(run_history, generate.history(seed, steps))
        seed += 1


def _broken(run_history: Any, history: Any) -> list[str]:
    signal.setitimer(signal.ITIMER_VIRTUAL, HISTORY_SECONDS_MAX)
    try:
        return [str(violation) for violation in run_history(history).violations]
    except Hang:
        return ["Hang: a history did not end"]
    except Exception as error:  # outside of a step: the readout of a start, for example
        return [f"UnexpectedError: {type(error).__name__}: {error}"]
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)


def save_shrunk(kind: str, name: str, steps: int, path: Path) -> None:
    """Writes the shortest form of a history that breaks a promise: that of a seed, or that of a file."""
    from conformance.base import saved_text
    from conformance.store.shrink import shrink

    generate, values = (importlib.import_module(f"conformance.{kind}.{module}") for module in ("generate", "history"))
    run_history = importlib.import_module(f"conformance.{kind}.runner").run_history
    if name.isdigit():
        history = generate.history(int(name), steps)
    else:
        history = values.History.from_json(json.loads(Path(name).read_text())["history"])
    promise = _broken(run_history, history)[0].partition(":")[0]

    def is_broken(candidate: Any) -> bool:
        return any(violation.startswith(promise) for violation in _broken(run_history, candidate))

    small = shrink(history, is_broken)
    path.write_text(saved_text(kind, small.to_json(), _broken(run_history, small)[0]))


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("mutant", help="JSON: module and number, or module, old, new and perhaps function")
    parser.add_argument("--seconds", type=float, default=10)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--steps", type=int, default=40)
    parser.add_argument("--kind", choices=("store", "cluster", "group"), default="store")
    parser.add_argument("--history", type=Path, action="append", default=[])
    parser.add_argument("--save", type=Path)
    options = parser.parse_args()
    mutant = json.loads(options.mutant)
    if mutant.get("module", "").startswith(BEHIND_C):
        os.environ["REFMQ_PURE"] = "1"
    if "number" in mutant:
        from conformance.mutants.mechanical import changed

        change_on_import(mutant["module"], lambda source: changed(source, mutant["number"]))
    elif mutant:
        change_on_import(mutant["module"], change_of(mutant))
    try:
        outcome = trial(
            seconds=options.seconds,
            first_seed=options.seed,
            steps=options.steps,
            histories=options.history,
            kind=options.kind,
        )
        if options.save is not None and outcome["caught"]:
            save_shrunk(options.kind, outcome["history"], options.steps, options.save)
    except LookupError as error:
        outcome = {"caught": False, "by": str(error), "history": "", "tried": 0, "seconds": 0.0, "stale": True}
    except Exception as error:  # the mutant does not even import
        outcome = {
            "caught": True,
            "by": f"UnexpectedError: {type(error).__name__}: {error}",
            "history": "import",
            "tried": 0,
            "seconds": 0.0,
        }
    print(json.dumps(outcome))
    return 0


if __name__ == "__main__":
    sys.exit(main())
