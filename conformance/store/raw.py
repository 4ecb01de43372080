"""What is on the simulated disk, read without the store: what a power loss could take back.

Two pictures are compared: the disk as it is, and the disk as the worst power loss would leave it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from conformance.oracles.store_events import Checkpoint
from conformance.store.history import Setting
from conformance.store.record import BLANK_BYTES, Record, decode, java_hash
from refmq.sim.choice import harshest
from refmq.sim.disk import SimulatedDisk

LOG: Final = "commitlog"
QUEUES: Final = "consumequeue"
UNIT_BYTES: Final = 20
OFFSETS_MAGIC: Final = b"refmqCP1"
"""Marks physical offsets that the reference adds to the checkpoint, behind the part that Java reads."""


def worst_case(disk: SimulatedDisk) -> dict[str, bytes]:
    """Every file as the worst power loss would leave it."""
    return disk.copy().after_power_loss(harshest).contents()


def log_files(contents: Mapping[str, bytes]) -> list[tuple[int, str]]:
    """(begin, path) of the files of the log, in order."""
    paths = [path for path in contents if path.startswith("commitlog/")]
    return sorted((int(path.rpartition("/")[2]), path) for path in paths if path.rpartition("/")[2].isdigit())


def queue_directories(contents: Mapping[str, bytes]) -> list[str]:
    """The directories of all queues that have a file."""
    return sorted({path.rpartition("/")[0] for path in contents if path.startswith(f"{QUEUES}/")})


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


def index_pairs(contents: Mapping[str, bytes], slots: int) -> set[tuple[int, int]]:
    """(hash, physical offset) of every index entry."""
    found = set()
    for path, data in contents.items():
        if path.startswith("index/") and len(data) > 40:
            for number in range(1, int.from_bytes(data[36:40], "big")):
                at = 40 + 4 * slots + 20 * number
                found.add((int.from_bytes(data[at : at + 4], "big"), int.from_bytes(data[at + 4 : at + 12], "big")))
    return found


def is_indexed(pairs: set[tuple[int, int]], record: Record) -> bool:
    hashes = (abs(java_hash(f"{record.topic}#{key}")) for key in record.keys)
    return all((value & 0x7FFFFFFF, record.physical_offset) in pairs for value in hashes)


def checkpoint(disk: SimulatedDisk, setting: Setting, deleted_to: Mapping[str, int]) -> Checkpoint:
    """The stamps as they may survive, and what the data may lose. Records of a deleted topic have no units."""
    present = disk.contents()
    worst = worst_case(disk)
    stamps = present.get("checkpoint", b"").ljust(128, b"\0")

    def number(at: int) -> int:
        return int.from_bytes(stamps[at : at + 8], "big", signed=True)

    has_offsets = stamps[64:72] == OFFSETS_MAGIC
    durable = {record.physical_offset: record for record in log_records(worst)}
    pairs = index_pairs(worst, setting.index_slots)
    written = log_records(present)
    return Checkpoint(
        log_ms=number(0),
        queue_ms=number(8),
        index_ms=number(16),
        log_to=number(96) if has_offsets else -1,
        queues_to=number(104) if has_offsets else -1,
        index_to=number(112) if has_offsets else -1,
        missing_in_log=_places(r for r in written if durable.get(r.physical_offset) != r),
        missing_in_queues=_places(
            r
            for r in written
            if r.has_queue_unit
            and r.physical_offset >= deleted_to.get(r.topic, 0)
            and not has_unit(worst, r, setting.queue_file_units * UNIT_BYTES)
        ),
        missing_in_index=_places(r for r in written if setting.index and not is_indexed(pairs, r)),
    )


def _places(records: Iterable[Record]) -> tuple[tuple[int, int], ...]:
    return tuple((record.store_ms, record.physical_offset) for record in records)
