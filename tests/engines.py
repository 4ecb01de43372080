"""The engine that tests give to a broker that does not care: the reference, or with REFMQ_TEST_ENGINE=fast the threads
of the C shell on a folder of their own. Suites that talk to a broker over sockets are run on both."""

from __future__ import annotations

import os
import shutil
import tempfile
import weakref
from typing import Final

from refmq.model.disk import Disk
from refmq.net.engine import reference_engine
from refmq.net.engines import EngineChoice, EngineSurroundings, open_engine
from refmq.net.files import RealDisk
from refmq.plane.engine import Engine
from refmq.store import StoreConfig

TEST_ENGINE: Final = EngineChoice(os.environ.get("REFMQ_TEST_ENGINE", "reference"))


def folder_disk() -> RealDisk:
    """A disk in a folder that goes with it."""
    folder = tempfile.mkdtemp(prefix="refmq-test-")
    disk = RealDisk(folder)
    weakref.finalize(disk, shutil.rmtree, folder, ignore_errors=True)
    return disk


def engine_for(disk: Disk, store_config: StoreConfig, given: EngineSurroundings) -> Engine:
    """The engine under test where the disk is a folder, and the reference on any other."""
    if TEST_ENGINE is EngineChoice.FAST and isinstance(disk, RealDisk):
        return open_engine(EngineChoice.FAST, disk, store_config, given)
    return reference_engine(
        disk, store_config, limits=given.limits, tls=given.tls, recorder=given.recorder, seed=given.seed
    )
