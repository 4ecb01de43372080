"""One build of the C store and plane against the histories, in a process of its own.

    python -m conformance.mutants.native_trial LIBRARY --kind store --seconds 30

prints one JSON line: the first promise that was broken and after how many histories, and after how many the effects or
answers were not those of the reference (0: they were, in all that were tried). Of a plane the last is 1 if its tests
beside the reference fail.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib.util
import io
import json
import sys
import time
from collections.abc import Iterator
from importlib.machinery import ExtensionFileLoader
from pathlib import Path
from typing import Any, Final

import pytest

STEPS = 60
CLUSTER_STEPS = 70
PLANE_TESTS: Final = "tests/net/test_fast_plane.py"
SHELL_TESTS: Final = "tests/net/test_thread_engine.py"
ACCESS_TESTS: Final = "tests/net/test_access.py"
UNIT_TESTS: Final = (
    "tests/refmq_fast",
    "tests/net/test_fast_store.py",
    "tests/net/test_fast_plane.py",
    "tests/net/test_thread_engine.py",
    "tests/net/test_posix_disk.py",
    "tests/net/test_files.py",
    "tests/net/test_note_recorder.py",
    "tests/net/test_revocation.py",
)
ENGINES = ("fast-tails", "fast")


def load(library: Path) -> None:
    """Puts a build into the place of the installed extension."""
    assert "refmq_fast" not in sys.modules, "the extension is loaded already"
    loader = ExtensionFileLoader("refmq_fast._native", str(library))
    spec = importlib.util.spec_from_file_location("refmq_fast._native", library, loader=loader)
    assert spec is not None
    module = importlib.util.module_from_spec(spec)
    loader.exec_module(module)
    sys.modules["refmq_fast._native"] = module


def trial(seconds: float, more_seconds: float) -> dict[str, Any]:
    """Generated histories, until one breaks a promise and the engines differ, or the time is over.

    Once a promise is broken, a difference is looked for `more_seconds` at most: some mistakes never make one.
    """
    from conformance.store.differential import difference
    from conformance.store.runner import run_history

    end = time.process_time() + seconds
    by, tried, differs_after = "", 0, 0
    for number, history in enumerate(_histories(), start=1):
        if not by:
            tried = number
            violations = [found for engine in ENGINES for found in run_history(history, engine).violations]
            if violations:
                by = str(violations[0])
                end = min(end, time.process_time() + more_seconds)
        if not differs_after and difference(history) is not None:
            differs_after = number
        if (by and differs_after) or time.process_time() > end:
            break
    return {"by": by, "tried": tried, "differs_after": differs_after}


def cluster_trial(seconds: float) -> dict[str, Any]:
    """Histories of clusters on the fast engine, until one breaks a promise or the time is over; and the random requests
    that are sent to both planes."""
    from conformance.cluster import generate
    from conformance.cluster.runner import run_history

    begin = time.process_time()
    tried, by = 0, ""
    while not by and time.process_time() - begin < seconds:
        violations = run_history(generate.history(tried, CLUSTER_STEPS), "fast").violations
        tried += 1
        by = str(violations[0]) if violations else ""
    return {"by": by, "tried": tried, "differs_after": int(_first_failure(PLANE_TESTS) != "")}


def shell_trial() -> dict[str, Any]:
    """The tests of the threads: the first that fails."""
    return {"by": _first_failure(SHELL_TESTS), "tried": 0, "differs_after": 0}


def access_trial() -> dict[str, Any]:
    """The attacks on a broker with accounts, which histories do not have: the first that comes through."""
    return {"by": _first_failure(ACCESS_TESTS), "tried": 0, "differs_after": int(_first_failure(PLANE_TESTS) != "")}


def unit_trial() -> dict[str, Any]:
    """All tests of the extension and of what stands on it: the first that fails."""
    return {"by": _first_failure(*UNIT_TESTS), "tried": 0, "differs_after": 0}


class _FailureWatcher:
    """A plugin of pytest that remembers the first test that failed."""

    def __init__(self) -> None:
        self.failed = ""

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed and not self.failed:
            self.failed = report.nodeid.rpartition("::")[2]


def _first_failure(*tests: str) -> str:
    watcher = _FailureWatcher()
    with contextlib.redirect_stdout(io.StringIO()):
        options = ["-q", "-x", "-p", "no:cacheprovider", "--hypothesis-profile=ci", "--assert=plain"]
        pytest.main([*tests, *options], plugins=[watcher])
    return watcher.failed


def _histories() -> Iterator[Any]:
    """The saved ones, then others without end; without those whose setting C refuses."""
    from conformance.base import REGRESSIONS
    from conformance.engines import store_engine
    from conformance.store import generate
    from conformance.store.history import History

    refuses = store_engine("fast").refuses
    for path in sorted(REGRESSIONS.glob("store-*.json")):
        saved = History.from_json(json.loads(path.read_text())["history"])
        if refuses(saved.setting) is None:
            yield saved
    seed = 0
    while True:
        history = generate.history(seed, STEPS)
        seed += 1
        if refuses(history.setting) is None:
            yield history


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("library", type=Path)
    parser.add_argument("--kind", choices=["store", "cluster", "shell", "access", "unit"], default="store")
    parser.add_argument("--seconds", type=float, default=30.0)
    parser.add_argument("--more-seconds", type=float, default=30.0, help="after a broken promise, for a difference")
    given = parser.parse_args()
    load(given.library)
    match given.kind:
        case "store":
            found = trial(given.seconds, given.more_seconds)
        case "cluster":
            found = cluster_trial(given.seconds)
        case "access":
            found = access_trial()
        case "unit":
            found = unit_trial()
        case _:
            found = shell_trial()
    print(json.dumps(found))
    return 0


if __name__ == "__main__":
    sys.exit(main())
