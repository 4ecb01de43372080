"""The engine that the brokers of a test run on. Suites that talk to brokers over sockets run on each: the reference on
a disk in memory, and the threads of the C shell on a folder."""

from __future__ import annotations

import shutil
import tempfile
import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Final

import pytest

import refmq_fast
from refmq.model.disk import Disk
from refmq.net.clock import wall_ms
from refmq.net.engine import reference_engine
from refmq.net.engines import EngineChoice, EngineSurroundings, open_engine
from refmq.net.files import RealDisk
from refmq.plane.engine import Engine
from refmq.sim.disk import SimulatedDisk
from refmq.store import StoreConfig

_chosen: Final[ContextVar[EngineChoice]] = ContextVar("engine under test", default=EngineChoice.REFERENCE)

EACH_ENGINE: Final = [
    pytest.param(EngineChoice.REFERENCE, id="reference"),
    pytest.param(
        EngineChoice.FAST,
        id="fast",
        marks=[
            pytest.mark.extension,
            pytest.mark.skipif(not refmq_fast.AVAILABLE, reason=f"extension is off: {refmq_fast.REASON}"),
        ],
    ),
]
"""For a fixture's `params`."""


@contextmanager
def on_engine(request: pytest.FixtureRequest) -> Iterator[None]:
    """Runs the test of this request on the engine that its parameter names. What is marked `reference_only` reaches
    into a broker where only Python can be reached."""
    choice: EngineChoice = request.param
    if choice is EngineChoice.FAST and request.node.get_closest_marker("reference_only"):
        pytest.skip("it reaches into the reference")
    token = _chosen.set(choice)
    try:
        yield
    finally:
        _chosen.reset(token)


def disk_for_engine() -> Disk:
    """A disk that the engine under test can serve; a folder goes with its disk."""
    if _chosen.get() is EngineChoice.REFERENCE:
        return SimulatedDisk(clock=wall_ms)
    folder = tempfile.mkdtemp(prefix="refmq-test-")
    disk = RealDisk(folder)
    weakref.finalize(disk, shutil.rmtree, folder, ignore_errors=True)
    return disk


def engine_for(disk: Disk, store_config: StoreConfig, given: EngineSurroundings) -> Engine:
    """The engine under test where the disk is a folder, and the reference on any other."""
    if _chosen.get() is EngineChoice.FAST and isinstance(disk, RealDisk):
        return open_engine(EngineChoice.FAST, disk, store_config, given)
    return reference_engine(
        disk, store_config, limits=given.limits, tls=given.tls, recorder=given.recorder, seed=given.seed
    )
