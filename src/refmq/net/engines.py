"""The choice of engine: what `--engine` means, and the only place that makes engines.

reference   the plane and the store in Python, on an event loop
fast        the plane and the store in C, on threads of their own; what C does not serve goes to the reference
auto        fast where it can serve, and otherwise the reference

On a simulated disk `fast` is the same C, stepped on the event loop, so that histories can be replayed.
"""

from __future__ import annotations

import random
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from refmq.errors import UsageError
from refmq.model.disk import Disk
from refmq.net import fast_plane, fast_store
from refmq.net.engine import LoopEngine, reference_engine
from refmq.net.fast_store import FastStore
from refmq.net.files import RealDisk
from refmq.net.limits import Limits
from refmq.net.note_recorder import NoteRecorder
from refmq.net.posix_disk import PosixDisk
from refmq.net.thread_engine import ThreadEngine
from refmq.net.tls import ServerTls
from refmq.plane.engine import Engine
from refmq.store.config import StoreConfig
from refmq.trace.record import Recorder

LOG_TAIL_BYTES: Final = 1 << 20
"""Records that the IO thread gathers in a turn before it writes them at once."""


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
    if choice is EngineChoice.REFERENCE or (choice is EngineChoice.AUTO and refusal_of(store_config, disk) is not None):
        return reference_engine(
            disk, store_config, limits=given.limits, tls=given.tls, recorder=given.recorder, seed=given.seed
        )
    reason = refusal_of(store_config, None if choice is EngineChoice.FAST else disk)
    if reason is not None:
        raise UsageError(f"--engine fast: {reason}; use --engine reference")
    # Names come from strangers: nobody may guess where they stand in a table.
    draw = random.SystemRandom() if given.seed is None else random.Random(given.seed)
    if isinstance(disk, RealDisk):
        return _thread_engine(disk, store_config, given, draw)
    emit = None if given.recorder is None else given.recorder.record
    store = FastStore(disk, store_config, emit=emit, hash_seed=draw.getrandbits(63))
    name = EngineChoice.FAST.value
    return LoopEngine(name, store, limits=given.limits, tls=given.tls, recorder=given.recorder, seed=given.seed)


def _thread_engine(
    disk: RealDisk, store_config: StoreConfig, given: EngineSurroundings, draw: random.Random
) -> ThreadEngine:
    seed = draw.getrandbits(63)
    notes = None if given.recorder is None else NoteRecorder(given.recorder, seed)
    store = FastStore(
        PosixDisk(disk.root),
        store_config,
        emit=None if notes is None else notes.record,
        notes=None if notes is None else notes.notes,
        log_tail_bytes=LOG_TAIL_BYTES,
        hash_seed=seed,
    )
    name = EngineChoice.FAST.value
    return ThreadEngine(name, store, limits=given.limits, tls=given.tls, recorder=notes, seed=seed)


def refusal_of(store_config: StoreConfig, disk: Disk | None = None) -> str | None:
    """Why `fast` cannot serve a store of this configuration, on this disk, as the default; None if it can."""
    if disk is not None and not isinstance(disk, RealDisk):
        return "a disk in memory has no descriptors"
    return fast_plane.refusal() or fast_store.refusal_of(store_config)
