"""The C store as an engine, in two ways: writing every queue unit as the reference does (`fast`), and keeping the newest
units of each queue in memory (`fast-tails`), as it does in production."""

from __future__ import annotations

from dataclasses import replace

from conformance.engines.reference import config_of
from conformance.store.history import Setting
from refmq.model.disk import Disk
from refmq.net.fast_store import FastStore, refusal_of
from refmq.store import MessageStore


def refuses(setting: Setting) -> str | None:
    """Why no history with this setting can be lived through; None if it can."""
    return refusal_of(config_of(setting))


def without_refused(setting: Setting) -> Setting:
    """The same setting without what C refuses."""
    return replace(setting, ext=False, transient_pool=False)


def open_store(disk: Disk, setting: Setting) -> MessageStore:
    return FastStore(disk, config_of(setting), tail_bytes=0)
