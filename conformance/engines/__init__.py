"""The engines that histories can be run on. Equal in every respect; an oracle never knows which it has."""

from __future__ import annotations

import importlib
from functools import partial
from typing import Final, Protocol, cast

from conformance.store.history import Setting
from refmq.errors import UsageError
from refmq.model.disk import Disk
from refmq.net.engines import EngineChoice, open_engine
from refmq.sim.cluster import OpenEngine
from refmq.store import MessageStore

ENGINES: Final = {"reference": "conformance.engines.reference"}


class StoreEngine(Protocol):
    """A module that opens stores."""

    def open_store(self, disk: Disk, setting: Setting) -> MessageStore:
        """A store on the disk, not started."""
        ...


def cluster_engine(name: str) -> OpenEngine:
    """What opens the engines of a simulated cluster's brokers: those of `refmq broker --engine`."""
    if name not in ENGINES:
        raise UsageError(f"there is no engine {name!r}; there are {', '.join(sorted(ENGINES))}")
    return partial(open_engine, EngineChoice(name))


def store_engine(name: str) -> StoreEngine:
    if name not in ENGINES:
        raise UsageError(f"there is no engine {name!r}; there are {', '.join(sorted(ENGINES))}")
    return cast("StoreEngine", importlib.import_module(ENGINES[name]))
