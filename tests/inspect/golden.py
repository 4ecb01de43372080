"""Stores of RocketMQ 4.9.7, and the same ones with something broken in them."""

from __future__ import annotations

import zipfile
from pathlib import Path

from refmq.model.ids import TimestampMs
from refmq.sim.disk import SimulatedDisk

GOLDEN = Path(__file__).parent.parent / "golden" / "store"
LOG_FILE_BYTES = 65536


def golden(name: str) -> dict[str, bytes]:
    """The files of a golden store by their paths."""
    with zipfile.ZipFile(GOLDEN / f"{name}-4.9.7.zip") as archive:
        names = [
            info.filename for info in archive.infolist() if info.filename.startswith("store/") and not info.is_dir()
        ]
        return {name.removeprefix("store/"): archive.read(name) for name in names}


def disk_of(contents: dict[str, bytes]) -> SimulatedDisk:
    disk = SimulatedDisk(clock=lambda: TimestampMs(0))
    disk.put_contents(contents)
    return disk


def changed(contents: dict[str, bytes], path: str, position: int, data: bytes) -> dict[str, bytes]:
    old = contents[path]
    return {**contents, path: old[:position] + data + old[position + len(data) :]}


LOG = "commitlog/00000000000000000000"
QUEUE = "consumequeue/GoldenTopic/1/00000000000000000000"
