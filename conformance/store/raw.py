"""What is on the simulated disk, read without the store: what a power loss could take back.

Two pictures are compared: the disk as it is, and the disk as the worst power loss would leave it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from conformance.oracles.store_events import Checkpoint
from conformance.store.record import BLANK_BYTES, Record, decode
from refmq.sim.choice import harshest
from refmq.sim.disk import SimulatedDisk

UNIT_BYTES: Final = 20


def worst_case(disk: SimulatedDisk) -> dict[str, bytes]:
    """Every file as the worst power loss would leave it."""
    return disk.copy().after_power_loss(harshest).contents()


def log_files(contents: Mapping[str, bytes]) -> list[tuple[int, str]]:
    """(begin, path) of the files of the log, in order."""
    paths = [path for path in contents if path.startswith("commitlog/")]
    return sorted((int(path.rpartition("/")[2]), path) for path in paths if path.rpartition("/")[2].isdigit())


def log_records(contents: Mapping[str, bytes]) -> list[Record]:
    """Every record of the log up to the first place that is none."""
    found: list[Record] = []
    for begin, path in log_files(contents):
        data = contents[path]
        position = 0
        while position + BLANK_BYTES <= len(data):
            size = int.from_bytes(data[position : position + 4], "big", signed=True)
            record = decode(data[position : position + max(size, BLANK_BYTES)], begin + position)
            if isinstance(record, str):
                return found
            if record is None:
                break
            found.append(record)
            position += size
    return found


def holds(contents: Mapping[str, bytes], physical_offset: int, data: bytes, log_file_bytes: int) -> bool:
    """Whether the log has these bytes there."""
    begin = physical_offset // log_file_bytes * log_file_bytes
    file = contents.get(f"commitlog/{begin:020}", b"")
    return file[physical_offset - begin : physical_offset - begin + len(data)] == data


def has_unit(contents: Mapping[str, bytes], record: Record, queue_file_bytes: int) -> bool:
    """Whether the record's queue unit is in its place and names it."""
    position = record.queue_offset * UNIT_BYTES
    begin = position // queue_file_bytes * queue_file_bytes
    path = f"consumequeue/{record.topic}/{record.queue_id}/{begin:020}"
    unit = contents.get(path, b"")[position - begin : position - begin + UNIT_BYTES]
    expected = record.physical_offset.to_bytes(8, "big") + record.size_bytes.to_bytes(4, "big")
    return unit[:12] == expected


def checkpoint(disk: SimulatedDisk, queue_file_bytes: int) -> Checkpoint:
    """The stamps as they may survive, and what the data may lose."""
    present = disk.contents()
    worst = worst_case(disk)
    stamps = present.get("checkpoint", b"").ljust(24, b"\0")
    written = log_records(present)
    durable = {record.physical_offset: record for record in log_records(worst)}
    return Checkpoint(
        log_ms=int.from_bytes(stamps[0:8], "big", signed=True),
        queue_ms=int.from_bytes(stamps[8:16], "big", signed=True),
        index_ms=int.from_bytes(stamps[16:24], "big", signed=True),
        missing_in_log=tuple(record.store_ms for record in written if durable.get(record.physical_offset) != record),
        missing_in_queues=tuple(
            record.store_ms
            for record in durable.values()
            if record.has_queue_unit and not has_unit(worst, record, queue_file_bytes)
        ),
    )
