"""Which engine serves: the choice behind `--engine`, and the one place that makes engines.

reference   `refmq.net.engine`
fast        the C data plane, which this version does not have yet
auto        fast where it is there and can serve what is asked of it, else reference; so the reference for now
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from refmq.errors import UsageError
from refmq.model.disk import Disk
from refmq.net.engine import ReferenceEngine
from refmq.net.limits import Limits
from refmq.net.tls import ServerTls
from refmq.plane.engine import Engine
from refmq.store.config import StoreConfig
from refmq.trace.record import Recorder


class EngineChoice(StrEnum):
    """What can be asked for."""

    AUTO = "auto"
    REFERENCE = "reference"
    FAST = "fast"


@dataclass(frozen=True, slots=True)
class EngineSurroundings:
    """What an engine is given beside its disk."""

    limits: Limits | None = None
    tls: ServerTls | None = None
    recorder: Recorder | None = None
    seed: int | None = None
    """For the few things that are left to chance; None: a new one each time."""


def open_engine(choice: EngineChoice, disk: Disk, store_config: StoreConfig, given: EngineSurroundings) -> Engine:
    """An engine over a disk, not started. `UsageError` when the one that is asked for is not there."""
    if choice is EngineChoice.FAST:
        raise UsageError("--engine fast: the C data plane is not part of this version; use --engine reference")
    return ReferenceEngine(
        disk, store_config, limits=given.limits, tls=given.tls, recorder=given.recorder, seed=given.seed
    )
