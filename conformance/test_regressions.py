"""Every saved history is replayed in every run, and must not break anything any more."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from conformance.base import REGRESSIONS, replay_file, replay_line
from conformance.engines import BUILT_ENGINES, BUILT_STORE_ENGINES, store_engine
from conformance.store.differential import difference
from conformance.store.history import History

STORES = sorted(REGRESSIONS.glob("store-*.json"))
CLUSTERS = sorted(REGRESSIONS.glob("cluster-*.json"))
IN_C = [engine for engine in BUILT_STORE_ENGINES if engine != "reference"]


@pytest.mark.parametrize("path", sorted(REGRESSIONS.glob("*.json")), ids=lambda path: path.stem)
def test_a_saved_history_holds(path: Path) -> None:
    violations = replay_file(path)
    assert violations == [], f"replay with: {replay_line(path)}"


@pytest.mark.parametrize("engine", [engine for engine in BUILT_ENGINES if engine != "reference"])
@pytest.mark.parametrize("path", CLUSTERS, ids=lambda path: path.stem)
def test_a_saved_history_of_a_cluster_holds_in_c(path: Path, engine: str) -> None:
    violations = replay_file(path, engine=engine)
    assert violations == [], f"replay with: {replay_line(path)} --engine {engine}"


@pytest.mark.parametrize("engine", IN_C)
@pytest.mark.parametrize("path", STORES, ids=lambda path: path.stem)
def test_a_saved_history_of_a_store_holds_in_c(path: Path, engine: str) -> None:
    history = History.from_json(json.loads(path.read_text())["history"])
    refusal = store_engine(engine).refuses(history.setting)
    if refusal is not None:
        pytest.skip(refusal)
    violations = replay_file(path, engine=engine)
    assert violations == [], f"replay with: {replay_line(path)} --engine {engine}"
    if engine == "fast":
        assert difference(history) is None
