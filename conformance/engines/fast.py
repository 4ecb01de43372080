"""The C store as an engine that writes every queue unit at once, as the reference does: their effects can be compared.
`fast_tails` is the same store as it runs in production."""

from __future__ import annotations

from conformance.engines.reference import config_of
from conformance.store.history import Setting
from refmq.model.disk import Disk
from refmq.net.fast_store import FastStore, refusal_of
from refmq.store import MessageStore
from refmq.store.parts import Emit


def refuses(setting: Setting) -> str | None:
    """Why no history with this setting can be lived through; None if it can."""
    return refusal_of(config_of(setting))


def open_store(disk: Disk, setting: Setting, emit: Emit | None = None) -> MessageStore:
    return FastStore(disk, config_of(setting), emit=emit, tail_bytes=0, index_pages=0)
