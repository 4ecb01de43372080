"""Every saved history is replayed in every run, and must not break anything any more."""

from __future__ import annotations

from pathlib import Path

import pytest

from conformance.base import REGRESSIONS, replay_file, replay_line


@pytest.mark.parametrize("path", sorted(REGRESSIONS.glob("*.json")), ids=lambda path: path.stem)
def test_a_saved_history_holds(path: Path) -> None:
    violations = replay_file(path)
    assert violations == [], f"replay with: {replay_line(path)}"
