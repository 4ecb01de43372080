"""The C kernels, where this process has them: built with `refmq_fast`, or sent along by the driver.

Executors of a cluster run from a zip file, in which no shared object can be loaded. The driver sends its own beside it;
Spark puts it where Python looks for modules, under its plain name. One for another machine or another Python does not
load, and numpy does the work.
"""

from __future__ import annotations

import importlib
import importlib.util
from functools import cache
from pathlib import Path
from typing import Any, Final

import refmq_fast

MODULE: Final = "_native"
"""The name of the shared object, inside `refmq_fast` and alone."""
KERNELS: Final = ("crc32", "digest_rows", "read_log_units", "survey_rows")


@cache
def kernels() -> Any:
    """What has the functions of `KERNELS`; None without any."""
    if refmq_fast.AVAILABLE:
        return refmq_fast
    try:
        sent = importlib.import_module(MODULE)
    except ImportError:
        return None
    return sent if all(hasattr(sent, name) for name in KERNELS) else None


def shared_object() -> Path | None:
    """The file to be sent along."""
    if not refmq_fast.AVAILABLE:
        return None
    spec = importlib.util.find_spec(f"{refmq_fast.__name__}.{MODULE}")
    return Path(spec.origin) if spec is not None and spec.origin is not None else None
