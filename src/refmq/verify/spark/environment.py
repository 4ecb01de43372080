"""Whether Spark can be used here: its libraries and a Java runtime. Imports none of them."""

from __future__ import annotations

import importlib.util
from typing import Final

from refmq.errors import MissingTool
from refmq.tools import jdk

NEEDED: Final = ("pyspark", "pyarrow", "numpy")
REMEDY: Final = "Install it with `pip install 'refmq[spark]'`."


def missing_libraries() -> list[str]:
    return [name for name in NEEDED if importlib.util.find_spec(name) is None]


def why_missing() -> str:
    """What of Spark is not there, in a line; empty if everything is."""
    missing = missing_libraries()
    if missing:
        return str(MissingTool(" and ".join(missing), REMEDY))
    if jdk.find_java() is None:
        return f"There is no Java runtime of version {jdk.JAVA_MAJOR_MIN} or later. {jdk.REMEDY}"
    return ""


def require_spark() -> jdk.Java:
    """Java for Spark; raises `MissingTool` with one line when it or a library is missing."""
    missing = missing_libraries()
    if missing:
        raise MissingTool(" and ".join(missing), REMEDY)
    return jdk.require_java()


def require_parquet() -> None:
    """Raises `MissingTool` when Parquet files cannot be written."""
    missing = [name for name in missing_libraries() if name != "pyspark"]
    if missing:
        raise MissingTool(" and ".join(missing), REMEDY)
