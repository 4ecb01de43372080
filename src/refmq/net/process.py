"""What a server process needs from its operating system: signals that stop it, and enough open files."""

from __future__ import annotations

import asyncio
import resource
import signal
from typing import Final

RESERVED_FILES: Final = 640
"""Descriptors that are not for connections: two pools of files, flushes, the loop's own, the standard streams. Of few
descriptors altogether half are kept."""


def stop_on_signals() -> asyncio.Event:
    """An event set by SIGTERM and SIGINT. A second signal has its default effect."""
    loop = asyncio.get_running_loop()
    stop = asyncio.Event()

    def first() -> None:
        stop.set()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.remove_signal_handler(number)

    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, first)
    return stop


def raise_open_files_limit() -> int:
    """Raise the soft limit on open files to the hard one; returns how many connections fit."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != hard:
        try:
            resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
            soft = hard
        except (ValueError, OSError):
            pass  # a sandbox may forbid it; then the soft limit stays
    if soft == resource.RLIM_INFINITY:
        return 1_000_000
    return max(1, soft - min(RESERVED_FILES, soft // 2))
