"""What every kind of history shares: a violation, and the saved file that brings it back.

A saved history is one JSON document:

    {"kind": "store", "found": "AckedSurvives: ...", "history": {...}}

`kind` says who replays it (`KINDS`), `found` what was seen when it was saved, in a sentence. Files in
conformance/regressions/ are replayed in every run and must not break anything any more. Counterexamples of the
specifications (`refmq spec check --counterexamples DIR`) have the same form, and more keys.
"""

from __future__ import annotations

import hashlib
import importlib
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final, Protocol, cast

from refmq.errors import UsageError
from refmq.verify.oracles.base import Finding

REGRESSIONS: Final = Path(__file__).parent / "regressions"

KINDS: Final = {kind: f"conformance.{kind}.replay" for kind in ("store", "cluster", "group")}
"""Kind of history -> the module whose `replay` runs one."""


class Broken(AssertionError):
    """A history broke at least one promise."""

    def __init__(self, violations: Sequence[Finding], replay_line: str = "") -> None:
        text = "\n".join(str(violation) for violation in violations[:10])
        super().__init__(f"{text}\nreplay with: {replay_line}" if replay_line else text)
        self.violations = tuple(violations)


class Replayer(Protocol):
    """A module that can run saved histories of its kind."""

    def replay(self, history: dict[str, Any], *, engine: str, verbose: bool) -> list[Finding]: ...


def saved_text(kind: str, history: dict[str, Any], found: str) -> str:
    return json.dumps({"kind": kind, "found": found, "history": history}, indent=1) + "\n"


def save(kind: str, history: dict[str, Any], violations: Sequence[Finding], folder: Path = REGRESSIONS) -> Path:
    """Writes a history that broke something; the name says what, and the content decides the rest of the name."""
    found = str(violations[0]) if violations else ""
    invariant = violations[0].invariant if violations else "unknown"
    digest = hashlib.sha256(json.dumps(history, sort_keys=True).encode()).hexdigest()[:10]
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{kind}-{invariant}-{digest}.json"
    path.write_text(saved_text(kind, history, found))
    return path


def replay_file(path: Path, *, engine: str = "reference", verbose: bool = False) -> list[Finding]:
    """Runs one saved history and returns what it breaks today."""
    try:
        saved = json.loads(path.read_text())
        kind, history = saved["kind"], saved.get("history")
    except OSError as error:
        raise UsageError(f"cannot read {path}: {error.strerror}") from None
    except (ValueError, KeyError, TypeError, AttributeError):
        raise UsageError(f"{path} is not a saved history") from None
    if kind == "none":  # a counterexample of a specification that no kind of history fits
        raise UsageError(f"{path} cannot be replayed: {saved.get('reason', 'it holds no history')}")
    if history is None:
        raise UsageError(f"{path} is not a saved history")
    if kind not in KINDS:
        raise UsageError(f"{path} is a history of the unknown kind {kind!r}")
    module = cast("Replayer", importlib.import_module(KINDS[kind]))
    return module.replay(history, engine=engine, verbose=verbose)


def replay_verdict(path: Path, violations: list[Finding]) -> str:
    """One line on a replay. A counterexample whose replay nobody has seen break proves nothing by not breaking."""
    if violations:
        return f"broken {path.name}"
    breaks_with = json.loads(path.read_text()).get("breaks_with")
    if breaks_with is None:  # a history that was saved because it broke
        return f"holds  {path.name}"
    if breaks_with:
        return f"holds  {path.name} (and breaks with the mistake {breaks_with})"
    return f"ran    {path.name}: no promise broke, but nobody has seen this replay break one"


def replay_line(path: Path) -> str:
    """The one line that brings a saved history back."""
    try:
        shown = path.relative_to(Path.cwd())
    except ValueError:
        shown = path
    return f"python -m conformance replay {shown}"
