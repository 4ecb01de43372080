"""The engines that a history of the store can be run on. Equal in every respect; an oracle never knows which it has."""

from __future__ import annotations

import importlib
from typing import Final, Protocol, cast

from conformance.store.history import Setting
from refmq.errors import UsageError
from refmq.model.disk import Disk
from refmq.store import MessageStore

ENGINES: Final = {"reference": "conformance.engines.reference"}


class StoreEngine(Protocol):
    """A module that opens stores."""

    def open_store(self, disk: Disk, setting: Setting) -> MessageStore:
        """A store on the disk, not started."""
        ...


def store_engine(name: str) -> StoreEngine:
    if name not in ENGINES:
        raise UsageError(f"there is no engine {name!r}; there are {', '.join(sorted(ENGINES))}")
    return cast("StoreEngine", importlib.import_module(ENGINES[name]))
