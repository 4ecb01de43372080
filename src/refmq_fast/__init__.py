"""The C side of refmq, where it was built. It may only be faster than ``refmq``, never different.

``AVAILABLE`` says whether the extension is loaded and ``REASON`` why, or why not, in one line. Asking for a
function of an extension that is not loaded raises ``ImportError`` with that line. ``REFMQ_PURE=1`` in the
environment keeps the extension out.
"""

import os

AVAILABLE = False

if os.environ.get("REFMQ_PURE") == "1":
    REASON = "REFMQ_PURE=1 is set"
else:
    try:
        from refmq_fast._native import (
            DiskWork,
            FrameCodec,
            Job,
            Maker,
            MessageReader,
            Notes,
            Plane,
            PosixDisk,
            PosixFile,
            Shell,
            Store,
            TracePage,
            crc32,
            crc32_is_accelerated,
            crc32_portable,
            digest_rows,
            read_log_units,
            scan_records,
            survey_rows,
        )
    except ModuleNotFoundError:
        REASON = "it was not built when refmq was installed (no C compiler, or the build failed)"
    except ImportError as error:
        REASON = f"it was built and cannot be loaded: {error}"
    else:
        AVAILABLE = True
        REASON = "built and loaded"

__all__ = [
    "AVAILABLE",
    "REASON",
    "DiskWork",
    "FrameCodec",
    "Job",
    "Maker",
    "MessageReader",
    "Notes",
    "Plane",
    "PosixDisk",
    "PosixFile",
    "Shell",
    "Store",
    "TracePage",
    "crc32",
    "crc32_is_accelerated",
    "crc32_portable",
    "digest_rows",
    "read_log_units",
    "scan_records",
    "survey_rows",
]


def __getattr__(name: str) -> object:
    if name in __all__:
        raise ImportError(f"refmq_fast.{name} is not there: the extension is off because {REASON}", name=__name__)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
