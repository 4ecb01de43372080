"""The choice of engine: what `--engine` means, and the only place that makes engines.

reference   `refmq.net.engine`
fast        the C data plane, which this version does not have yet
auto        fast if it is available and can do what is asked, otherwise reference; for now always reference
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
    """What an engine gets besides its disk."""

    limits: Limits | None = None
    tls: ServerTls | None = None
    recorder: Recorder | None = None
    seed: int | None = None
    """The source of randomness; None for a new one each time."""


def open_engine(choice: EngineChoice, disk: Disk, store_config: StoreConfig, given: EngineSurroundings) -> Engine:
    """An engine on a disk, not started. `UsageError` if the requested one is not available."""
    if choice is EngineChoice.FAST:
        raise UsageError("--engine fast: the C data plane is not part of this version; use --engine reference")
    return ReferenceEngine(
        disk, store_config, limits=given.limits, tls=given.tls, recorder=given.recorder, seed=given.seed
    )
