"""What happens to the files of a stopped store behind its back. Every function changes the disk directly."""

from __future__ import annotations

from itertools import pairwise
from typing import Final

from conformance.store import raw
from conformance.store.history import Setting
from refmq.sim.disk import SimulatedDisk

ABORT: Final = "abort"
CHECKPOINT: Final = "checkpoint"
LOCK: Final = "lock"
HOUR_MS: Final = 3_600_000
FOREIGN: Final = ("light queue", "queue name", "topic text")
"""Files that are none of the store's business, wherever they stand."""


def damage_checkpoint(disk: SimulatedDisk, how: str, begin_ms: int, now_ms: int) -> None:
    """`begin_ms` is before every record, `now_ms` after all of them."""
    stamps = disk.contents().get(CHECKPOINT, b"")
    disk.take_away(CHECKPOINT)
    match how:
        case "missing":
            return
        case "empty":
            stamps = b""
        case "zero":
            stamps = bytes(4096)
        case "behind":
            stamps = (begin_ms - 1).to_bytes(8, "big") * 3 + bytes(4072)
        case "ahead":
            stamps = (now_ms + HOUR_MS).to_bytes(8, "big") * 3 + bytes(4072)
        case _:
            stamps = stamps[:8] + bytes(max(0, len(stamps) - 8))
    disk.put_contents({CHECKPOINT: stamps})


def stray_file(disk: SimulatedDisk, setting: Setting, where: str) -> str | None:
    """Puts a file where it does not belong. Returns the file that a start must refuse; None if it must cope with it."""
    match where:
        case "log" | "zero log":
            names = disk.list(raw.LOG)
            end = int(names[-1]) + setting.log_file_bytes if names else 0
            disk.put_contents({f"{raw.LOG}/{end:020}": b"" if where == "log" else bytes(setting.log_file_bytes)})
            return None
        case "queue":
            for directory in raw.queue_directories(disk.contents()):
                names = disk.list(directory)
                end = int(names[-1]) + setting.queue_file_units * raw.UNIT_BYTES
                disk.put_contents({f"{directory}/{end:020}": b""})
                break
            return None
        case "log text":
            path = f"{raw.LOG}/notes.txt"
        case "light queue":
            path = f"{raw.QUEUES}/%LMQ%light/0/{0:020}"
            disk.put_contents({path: bytes(8) + (100).to_bytes(4, "big") + bytes(28)})
            return path
        case "queue name" | "topic text":
            path = f"{raw.QUEUES}/Aa/00/{0:020}" if where == "queue name" else f"{raw.QUEUES}/notes.txt"
            disk.put_contents({path: b"notes"})
            return path
        case "queue text":
            directories = raw.queue_directories(disk.contents())
            path = f"{directories[0]}/{10**19:020}" if directories else f"{raw.LOG}/{10**19:020}"
        case _ if setting.index:
            path = "index/20200101000000000"
        case _:
            return None
    disk.put_contents({path: b"notes"})
    return path


def lose_derived(disk: SimulatedDisk, what: str) -> None:
    """Takes away what can be built again from the log."""
    contents = disk.contents()
    if what.startswith("index"):
        gone = [path for path in contents if path.startswith("index/")]
        if what != "index":
            gone = gone[-1:]
    else:
        directories = raw.queue_directories(contents)
        gone = [path for path in contents if path.rpartition("/")[0] in directories]
    if what == "one queue":
        gone = [path for path in gone if gone[0].rpartition("/")[0] == path.rpartition("/")[0]]
    if what == "queue file":
        # The first file of a queue may be missing because it has expired; nobody can know.
        gone = [path for before, path in pairwise(gone) if before.rpartition("/")[0] == path.rpartition("/")[0]][:1]
    for path in gone:
        disk.take_away(path)
        if what == "index content":
            disk.put_contents({path: bytes(len(contents[path]))})


def flip_byte(disk: SimulatedDisk, path: str, at: int) -> None:
    """Changes one byte of a file, or puts it right again. A file that is gone stays gone."""
    data = disk.contents().get(path, b"")
    if at < len(data):
        disk.put_contents({path: data[:at] + bytes([data[at] ^ 0xFF]) + data[at + 1 :]})
