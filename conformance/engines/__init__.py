"""The engines that histories can be run on. Equal in every respect; an oracle never knows which it has."""

from __future__ import annotations

import importlib
from functools import partial
from typing import Final, Protocol, cast

import refmq_fast
from conformance.store.history import Setting
from refmq.errors import UsageError
from refmq.model.disk import Disk
from refmq.net.engines import EngineChoice, open_engine
from refmq.sim.cluster import OpenEngine
from refmq.store import MessageStore
from refmq.store.parts import Emit

ENGINES: Final = ("reference", "fast")
"""The engines of a whole broker. `fast` needs the extension."""

BUILT_ENGINES: Final = ENGINES if refmq_fast.AVAILABLE else ("reference",)
"""Those of them that can run here."""

STORE_ENGINES: Final = {
    "reference": "conformance.engines.reference",
    "fast": "conformance.engines.fast",
    "fast-tails": "conformance.engines.fast_tails",
}
"""The engines of a store. Those in C need the extension."""

BUILT_STORE_ENGINES: Final = tuple(sorted(STORE_ENGINES)) if refmq_fast.AVAILABLE else ("reference",)
"""Those of them that can run here."""


class StoreEngine(Protocol):
    """A module that opens stores."""

    def open_store(self, disk: Disk, setting: Setting, emit: Emit | None = None) -> MessageStore:
        """A store on the disk, not started."""
        ...

    def refuses(self, setting: Setting) -> str | None:
        """Why no store with this setting can be opened; None if it can. Such a history is passed over."""
        ...


def cluster_engine(name: str) -> OpenEngine:
    """What opens the engines of a simulated cluster's brokers: those of `refmq broker --engine`."""
    if name not in ENGINES:
        raise UsageError(f"there is no engine {name!r}; there are {', '.join(sorted(ENGINES))}")
    if name not in BUILT_ENGINES:
        raise UsageError(f"the engine {name!r} cannot run: {refmq_fast.REASON}")
    return partial(open_engine, EngineChoice(name))


def store_engine(name: str) -> StoreEngine:
    if name not in STORE_ENGINES:
        raise UsageError(f"there is no engine {name!r}; there are {', '.join(sorted(STORE_ENGINES))}")
    if name not in BUILT_STORE_ENGINES:
        raise UsageError(f"the engine {name!r} cannot run: {refmq_fast.REASON}")
    return cast("StoreEngine", importlib.import_module(STORE_ENGINES[name]))
