"""The choice of engine: what `--engine` means, and the only place that makes engines.

reference   the plane and the store in Python
fast        the plane and the store in C, on the same event loop; what C does not serve goes to the reference
auto        reference: `fast` has no thread of its own yet, and is not the default before it has
"""

from __future__ import annotations

import random
from dataclasses import dataclass
from enum import StrEnum

from refmq.errors import UsageError
from refmq.model.disk import Disk
from refmq.net import fast_plane, fast_store
from refmq.net.engine import LoopEngine
from refmq.net.fast_store import FastStore
from refmq.net.limits import Limits
from refmq.net.tls import ServerTls
from refmq.plane.engine import Engine
from refmq.store.config import StoreConfig
from refmq.store.store import ReferenceStore
from refmq.trace.record import Recorder


class EngineChoice(StrEnum):
    """What can be asked for."""

    AUTO = "auto"
    REFERENCE = "reference"
    FAST = "fast"


@dataclass(frozen=True, slots=True)
class EngineSurroundings:
    """What an engine gets besides its disk."""

    limits: Limits | None = None
    tls: ServerTls | None = None
    recorder: Recorder | None = None
    seed: int | None = None
    """The source of randomness; None for a new one each time."""


def open_engine(choice: EngineChoice, disk: Disk, store_config: StoreConfig, given: EngineSurroundings) -> Engine:
    """An engine on a disk, not started. `UsageError` if the requested one is not available."""
    emit = None if given.recorder is None else given.recorder.record
    store: ReferenceStore | FastStore
    if choice is EngineChoice.FAST:
        # Names come from strangers: nobody may guess where they stand in a table.
        draw = random.SystemRandom() if given.seed is None else random.Random(given.seed)
        store = FastStore(disk, _servable(store_config), emit=emit, hash_seed=draw.getrandbits(63))
    else:
        store = ReferenceStore(disk, store_config, emit=emit)
    name = EngineChoice.FAST if isinstance(store, FastStore) else EngineChoice.REFERENCE
    return LoopEngine(name.value, store, limits=given.limits, tls=given.tls, recorder=given.recorder, seed=given.seed)


def _servable(store_config: StoreConfig) -> StoreConfig:
    """The configuration, or `UsageError` with what C cannot do of it."""
    fast_plane.require()
    reason = fast_store.refusal_of(store_config)
    if reason is not None:
        raise UsageError(f"--engine fast: {reason}; use --engine reference")
    return store_config
