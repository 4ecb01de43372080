"""The C store as it runs in production: the newest units of queues and entries of the index are in memory at first, and
lost when a process dies."""

from __future__ import annotations

from conformance.engines.fast import refuses
from conformance.engines.reference import config_of
from conformance.store.history import Setting
from refmq.model.disk import Disk
from refmq.net.fast_store import FastStore
from refmq.store import MessageStore
from refmq.store.parts import Emit

__all__ = ["open_store", "refuses"]

TAIL_BYTES = 60
"""Three units: tails fill up, and are cut, in histories of a few messages."""
INDEX_PAGES = 1
"""A file of a history's index has no more."""


def open_store(disk: Disk, setting: Setting, emit: Emit | None = None) -> MessageStore:
    return FastStore(disk, config_of(setting), emit=emit, tail_bytes=TAIL_BYTES, index_pages=INDEX_PAGES)
