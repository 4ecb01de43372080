"""What is on the simulated disk, read without the store: what a power loss could take back.

Two pictures are compared: the disk as it is, and the disk as the worst power loss would leave it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import pairwise
from typing import Final

from conformance.oracles.store_events import Checkpoint
from conformance.store.history import Setting
from conformance.store.record import BLANK_BYTES, Record, decode, java_hash
from refmq.sim.disk import SimulatedDisk

OF_THE_STORE: Final = ("commitlog", "consumequeue", "consumequeue_ext", "index", "checkpoint", "abort")
"""What a store makes durable itself; the configuration is saved by others."""
LOG: Final = "commitlog"
QUEUES: Final = "consumequeue"
UNIT_BYTES: Final = 20
BLANK_UNIT_SIZE: Final = 0x7FFF_FFFF
LIGHT_QUEUES: Final = "%LMQ%"
"""The prefix of topics whose queues belong to another service."""
JAVA_SLACK_MS: Final = 3000
OFFSETS_MAGIC: Final = b"refmqCP1"
"""Marks physical offsets that the reference adds to the checkpoint, after the part that Java reads."""


def worst_case(disk: SimulatedDisk) -> dict[str, bytes]:
    """Every file as the worst power loss would leave it."""
    return disk.worst_contents()


def differences(worst: Mapping[str, bytes], present: Mapping[str, bytes]) -> list[str]:
    """The files of a store that a power loss would change. A file that was never written may lose its size."""
    return sorted(
        path
        for path in worst.keys() | present.keys()
        if path.partition("/")[0] in OF_THE_STORE
        and worst.get(path, b"").rstrip(b"\0") != present.get(path, b"").rstrip(b"\0")
    )


def log_files(contents: Mapping[str, bytes]) -> list[tuple[int, str]]:
    """(first position, path) of the files of the log, in order."""
    paths = [path for path in contents if path.startswith("commitlog/")]
    return sorted((int(path.rpartition("/")[2]), path) for path in paths if path.rpartition("/")[2].isdigit())


def queue_directories(contents: Mapping[str, bytes]) -> list[str]:
    """The directories of all queues that have a file; not those that are somebody else's."""
    directories = {path.rpartition("/")[0] for path in contents if path.startswith(f"{QUEUES}/")}
    return sorted(directory for directory in directories if _is_queue(directory))


def _is_queue(directory: str) -> bool:
    _, _, place = directory.partition("/")
    topic, _, queue_id = place.partition("/")
    return queue_id.isdigit() and str(int(queue_id)) == queue_id and not topic.startswith(LIGHT_QUEUES)


def queue_end(contents: Mapping[str, bytes], topic: str, queue_id: int) -> int:
    """Where the units of a queue end, in bytes from its start."""
    files = [
        (path, data) for path, data in contents.items() if path.rpartition("/")[0] == f"{QUEUES}/{topic}/{queue_id}"
    ]
    ends = [int(path.rpartition("/")[2]) + len(data.rstrip(b"\0")) for path, data in files if any(data)]
    return -(-max(ends, default=0) // UNIT_BYTES) * UNIT_BYTES


def log_records(contents: Mapping[str, bytes]) -> list[Record]:
    """Every record of the log up to the first place without one."""
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


def queues_to(contents: Mapping[str, bytes], otherwise: int) -> int:
    """Up to where a checkpoint with offsets says that every record has its unit."""
    data = contents.get("checkpoint", b"")
    return int.from_bytes(data[104:112], "big") if data[64:72] == OFFSETS_MAGIC else otherwise


def expired_queue_files(durable: Mapping[str, bytes], log_min: int, flushed_to: int) -> Iterator[str]:
    """Files of queues that nobody needs any more, of what would survive a power loss: all their records are gone, and
    the first unit of the next file says where the queue continues. A start needs one that the checkpoint covers."""
    covered_to = min(flushed_to, queues_to(durable, flushed_to))
    for directory in queue_directories(durable):
        paths = sorted(path for path in durable if path.startswith(f"{directory}/"))
        for path, following in pairwise(paths):
            last, size = _place_and_size(durable[path][-UNIT_BYTES:])
            if size == BLANK_UNIT_SIZE or size <= 0 or last >= log_min:
                break
            place, size = _place_and_size(durable[following][:UNIT_BYTES])
            if 0 < size < BLANK_UNIT_SIZE and place + size <= covered_to:
                yield path


def expired_index_files(contents: Mapping[str, bytes], log_min: int) -> Iterator[str]:
    """Index files whose records are all gone, but for the one with which the index ended at the checkpoint. A file
    whose header is not written yet says nothing: an engine may keep it in memory until the index is flushed."""
    covered_to = queues_to(contents, 2**62)
    for path, following in pairwise(sorted(path for path in contents if path.startswith("index/"))):
        end, used = int.from_bytes(contents[path][24:32], "big"), int.from_bytes(contents[path][36:40], "big")
        begin = int.from_bytes(contents[following][16:24], "big")
        following_used = int.from_bytes(contents[following][36:40], "big")
        if used <= 1 or following_used <= 1 or end >= log_min or begin >= covered_to:
            break
        yield path


def _place_and_size(unit: bytes) -> tuple[int, int]:
    return int.from_bytes(unit[:8], "big", signed=True), int.from_bytes(unit[8:12], "big", signed=True)


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
        is_durable=present.get("checkpoint") == worst.get("checkpoint"),
        missing_for_java=_missing_for_java(worst, setting, (number(0), number(8), number(16))) if setting.index else (),
    )


def _missing_for_java(worst: Mapping[str, bytes], setting: Setting, stamps: tuple[int, int, int]) -> tuple[int, ...]:
    """Which keyed records Java would not find after an unclean stop: it removes every index file that ends after the
    index stamp, and indexes again from the newest log file whose first record is 3 s older than the other stamps."""
    log_ms, queue_ms, index_ms = stamps
    records = log_records(worst)
    firsts: dict[int, Record] = {}
    for record in records:
        firsts.setdefault(record.physical_offset // setting.log_file_bytes, record)
    before_ms = min(log_ms, queue_ms) - JAVA_SLACK_MS
    again_from = max((r.physical_offset for r in firsts.values() if r.store_ms <= before_ms), default=0)
    kept = {
        path: data
        for path, data in worst.items()
        if path.startswith("index/") and int.from_bytes(data[8:16], "big") <= index_ms
    }
    pairs = index_pairs(kept, setting.index_slots)
    return tuple(r.physical_offset for r in records if r.physical_offset < again_from and not is_indexed(pairs, r))


def _places(records: Iterable[Record]) -> tuple[tuple[int, int], ...]:
    return tuple((record.store_ms, record.physical_offset) for record in records)
