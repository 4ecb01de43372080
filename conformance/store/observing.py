"""What is looked at of a store that a history drives: readouts, what it says is durable, checkpoints, files.

Nothing here changes the store or the disk.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from conformance.oracles import store_events as seen
from conformance.store import at_rest, raw
from conformance.store.damage import ABORT, CHECKPOINT
from conformance.store.readout import read_everything
from refmq.store import MessageStore

if TYPE_CHECKING:
    from conformance.store.runner import Runner

FULL_PERCENT: Final = 90


def safe_to(life: Runner, store: MessageStore) -> int:
    """Up to where the log is not needed to build queues and index again, not even after a power loss."""
    dispatched_to = int(min(store.dispatched_to, store.flushed_to))
    return min(dispatched_to, raw.queues_to(raw.worst_case(life.disk), dispatched_to))


def look_for_expired_files(life: Runner, store: MessageStore, is_disturbed: bool) -> None:
    if not life.disk.happened and not is_disturbed:
        durable, present = raw.worst_case(life.disk), life.disk.contents()
        queue_files = [
            path
            for path in raw.expired_queue_files(durable, store.log_min, store.flushed_to)
            if present.get(path) == durable[path]  # that of a deleted topic may come back, which is another thing
        ]
        for path in (*queue_files, *raw.expired_index_files(present, store.log_min)):
            life.see(seen.Failed("clean", f"{path} speaks of expired records only and is still there"))


def log_begins(life: Runner, last: int) -> tuple[int, ...]:
    """The files of the log up to one that is known; what a producer added meanwhile does not count."""
    return tuple(begin for begin in map(int, life.disk.list("commitlog")) if begin <= last)


def look_at_rest(life: Runner) -> None:
    """After a clean stop everything is durable, and every file as its format says."""
    contents = raw.worst_case(life.disk)
    differ = raw.differences(contents, life.disk.contents())
    if differ or ABORT in contents:
        life.see(seen.Failed("StopStore", f"a power loss now would change {differ}; abort: {ABORT in contents}"))
    for fault in at_rest.faults(contents, life.setting, life.deleted_to):
        life.see(seen.Failed("StopStore", fault))
    life.is_at_rest = True


def readout(life: Runner, store: MessageStore, *, is_full: bool) -> seen.Readout:
    """Everything that a store answers. If nothing has happened to it since the last time, that is believed again."""
    hides = life.setting.transient_pool and not is_full
    places = (store.log_min, store.log_max, store.flushed_to, store.dispatched_to, store.queues())
    moment = (store, life.disk.operations, places, is_full)
    if life.last_read is None or life.last_read[0] != moment:
        life.last_read = (moment, read_everything(store, life.setting, is_full=is_full, hides_unwritten=hides))
    return life.last_read[1]


def note_progress(life: Runner) -> None:
    """What the store claims to be durable, and what its checkpoint claims."""
    if life.store is not None and life.store.flushed_to != life.flushed_to:
        life.flushed_to = life.store.flushed_to
        life.see(seen.FlushLog(life.flushed_to))
    if life.store is not None:
        note_checkpoint(life)
        may_refuse = life.disk.happened or life.may_lack_room or life.used_percent > FULL_PERCENT
        if not life.store.accepts_puts and not may_refuse:
            life.see(seen.Failed("put", "puts are refused although nothing is wrong"))


def note_checkpoint(life: Runner) -> None:
    if life.is_lied_to or not life.disk.exists(CHECKPOINT):
        return
    size = life.disk.info(CHECKPOINT).size_bytes
    file = life.disk.open(CHECKPOINT, writable=False)
    stamps = file.read(0, min(128, size))
    file.close()
    if stamps != life.checkpoint_bytes:
        life.checkpoint_bytes = stamps
        found = raw.checkpoint(life.disk, life.setting, life.deleted_to)
        if not life.disk.has_planned_faults:
            life.see(seen.FaultsOver())
        life.see(found)
        if not found.is_durable and not life.disk.happened:
            life.see(seen.Failed("WriteCheckpoint", "a power loss now would bring back the checkpoint before it"))
