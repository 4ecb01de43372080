"""Starting a store whose log has a damaged record; and what a process that does not run may not leave behind."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from conformance.engines import StoreEngine
from conformance.oracles import store_events as seen
from conformance.store import damage, raw
from conformance.store import history as h
from conformance.store.drive import drive
from conformance.store.readout import read_everything
from refmq.errors import CorruptRecord, DamagedLog, StrayFile
from refmq.model.ids import PhysicalOffset, TimestampMs
from refmq.sim.disk import SimulatedDisk


def start_damaged(
    step: h.DamageRecord, copy: SimulatedDisk, setting: h.Setting, engine: StoreEngine, now_ms: TimestampMs
) -> Iterator[seen.Observation]:
    """A record that was durable is damaged and others follow. A start may refuse, or overlook it; it may not drop what
    follows, unless it is told to cut the log. `copy` is a disk that was stopped cleanly, and is used up."""
    records = raw.log_records(copy.contents())
    if len(records) < 2:
        return
    record = records[step.record % (len(records) - 1)]
    place = record.physical_offset
    base = place // setting.log_file_bytes * setting.log_file_bytes
    if step.lost == "file":
        yield from _start_without(base, copy, setting, engine, now_ms)
        return
    damage.flip_byte(copy, f"{raw.LOG}/{base:020}", place - base + step.byte % record.size_bytes)
    if step.lost == "checkpoint":
        copy.take_away(damage.CHECKPOINT)
    elif step.lost:
        damage.lose_derived(copy, step.lost)
    before = copy.contents()
    store = engine.open_store(copy, replace(setting, cut_damage=step.cut))
    try:
        drive(store.start(now_ms))
    except CorruptRecord as error:
        if step.cut:
            yield seen.Failed("StartStore", f"a damaged log was refused and should be cut: {error}")
        yield from leftovers(copy, "StartStore")
        yield from _changes(before, copy.contents(), only_log=not isinstance(error, DamagedLog))
        return
    offsets = [other.physical_offset for other in records]
    gone = {offset for offset in offsets if store.message_at(PhysicalOffset(offset)) is None}
    if step.cut:
        if any(offset < place for offset in gone):
            yield seen.Failed("StartStore", f"a cut at {place} took {sorted(gone)} with it")
        if store.log_max <= place:  # otherwise nobody has noticed, and any field of the record may be wrong
            yield seen.Cut(read_everything(store, setting, is_full=True))
    elif gone - {place}:
        yield seen.Failed("StartStore", f"a damaged record at {place} took {sorted(gone)} with it")


def _start_without(
    base: int, copy: SimulatedDisk, setting: h.Setting, engine: StoreEngine, now_ms: TimestampMs
) -> Iterator[seen.Observation]:
    """A file from the middle of the log is gone. Those after it were durable, so a start refuses."""
    bases = [begin for begin, _ in raw.log_files(copy.contents())]
    has_more = any(
        record.physical_offset > base + setting.log_file_bytes for record in raw.log_records(copy.contents())
    )
    if base == bases[0] or not has_more:
        return
    copy.take_away(f"{raw.LOG}/{base:020}")
    before = copy.contents()
    try:
        drive(engine.open_store(copy, setting).start(now_ms))
        yield seen.Failed("StartStore", f"the file at {base} is missing, and the log was started")
    except DamagedLog:
        yield from _changes(before, copy.contents(), only_log=False)


def _changes(before: dict[str, bytes], after: dict[str, bytes], *, only_log: bool) -> Iterator[seen.Observation]:
    """Files that a start has changed although it refused. A record that fits no queue may be noticed only when the
    queues are built again: then all but what is built is as it was."""
    changed = {path for path in before.keys() | after.keys() if before.get(path) != after.get(path)}
    changed = {path for path in changed - {damage.LOCK} if path.startswith(raw.LOG) or not only_log}
    if changed:
        yield seen.Failed("StartStore", f"a start that refused a damaged log has changed {sorted(changed)}")


def must_be_refused(
    path: str, disk: SimulatedDisk, setting: h.Setting, engine: StoreEngine, now_ms: int
) -> Iterator[seen.Observation]:
    """A start with a stray file says what is wrong, and changes nothing."""
    before = disk.contents()
    try:
        drive(engine.open_store(disk, setting).start(TimestampMs(now_ms)))
    except StrayFile as error:
        if path not in str(error):
            yield seen.Failed("StartStore", f"an error that does not name {path}: {error}")
        after = disk.contents()
        changed = {name for name in before.keys() | after.keys() if before.get(name) != after.get(name)}
        if changed - {damage.LOCK}:
            yield seen.Failed("StartStore", f"a start that was refused has changed {sorted(changed)}")
        yield from leftovers(disk, "StartStore")
    except Exception as error:  # an engine may be wrong in any way
        yield seen.Failed("StartStore", f"{type(error).__name__} instead of StrayFile: {error}")
    else:
        yield seen.Failed("StartStore", f"it was started in spite of {path}")


def leftovers(disk: SimulatedDisk, step: str) -> Iterator[seen.Observation]:
    """A store that has ended, or was not let to start, holds nothing any more."""
    if disk.is_alive and (disk.open_paths or disk.held_locks):
        yield seen.Failed(step, f"still open: {disk.open_paths}, still locked: {disk.held_locks}")
