"""ExpireFile: old files go, oldest first; and what happens when the disk fills up.

    used space (the fuller of both disks)      what happens
    above 90 %                                 puts are refused; files go whatever their age
    above 85 %                                 files go whatever their age (if `clean_forcibly`)
    above 75 %                                 expired files go at any hour
    below                                      expired files go in the hours of `delete_when`, or on request

A file has expired when it was not written to for `file_reserved_ms`. The last file never goes, nor one whose records
are not all durable together with their queue units; at most 10 go in one run; and none goes whose predecessor stays, so
that what is left of the log is always one piece. Every removal is durable before the next one. (CleanCommitLogService,
CleanConsumeQueueService of 4.9.8.)
"""

from __future__ import annotations

from dataclasses import dataclass

from refmq.errors import DiskError
from refmq.model.disk import DiskUsage
from refmq.model.ids import PhysicalOffset, TimestampMs
from refmq.model.step import Event
from refmq.store.commit_log import LOG_DIRECTORY
from refmq.store.config import StoreConfig
from refmq.store.consume_queue import QUEUE_DIRECTORY
from refmq.store.index import INDEX_DIRECTORY
from refmq.store.parts import Parts


@dataclass(frozen=True, slots=True)
class Pressure:
    """What the fill level of the disk calls for."""

    is_full: bool = False
    remove_any: bool = False
    remove_expired: bool = False


def used_percent(usage: DiskUsage) -> int:
    """Used space in whole percent, rounded up, as Java computes it; -1 if the disk does not say."""
    if usage.total_bytes <= 0:
        return -1
    return -(-(usage.total_bytes - usage.free_bytes) * 100 // usage.total_bytes)


def pressure_of(config: StoreConfig, usage: DiskUsage) -> Pressure:
    percent = used_percent(usage)
    return Pressure(
        is_full=percent > config.disk_full_percent,
        remove_any=percent > config.disk_clean_forcibly_percent and config.clean_forcibly,
        remove_expired=percent > config.disk_used_percent_max or percent < 0,
    )


def disk_pressure(parts: Parts) -> Pressure:
    """The pressure on the disk of the log or on that of the queues, whichever is worse."""
    pressures = []
    for directory in (LOG_DIRECTORY, QUEUE_DIRECTORY):
        try:
            pressures.append(pressure_of(parts.config, parts.disk.usage(directory)))
        except DiskError:
            pressures.append(Pressure(remove_expired=True))
    return Pressure(
        is_full=any(pressure.is_full for pressure in pressures),
        remove_any=any(pressure.remove_any for pressure in pressures),
        remove_expired=any(pressure.remove_expired for pressure in pressures),
    )


async def expire_files(parts: Parts, now_ms: TimestampMs, local_hour: int | None, pressure: Pressure) -> int:
    """Removes what may go from log, queues and index. Returns how many files of the log went."""
    assert local_hour is None or 0 <= local_hour <= 23
    due = local_hour is None or local_hour in parts.config.delete_when or pressure.remove_expired or pressure.remove_any
    removed = 0
    while due and removed < parts.config.delete_files_max and _first_may_go(parts, now_ms, pressure):
        await expire_file(parts)
        removed += 1
    if removed:
        # Not before the removals are durable: a file that a power loss brings back needs its units. Until then the
        # queues work out for themselves that they start later (`ConsumeQueue.min_at`).
        await follow_log_min(parts)
    return removed


def _first_may_go(parts: Parts, now_ms: TimestampMs, pressure: Pressure) -> bool:
    files = parts.log.files
    if len(files.bases) < 2:
        return False
    # A unit of a record that is gone cannot be rebuilt, and it says at which offset its queue continues.
    if files.bases[0] + files.file_bytes > parts.checkpointed_to:
        return False
    return pressure.remove_any or now_ms >= files.modified_ms(files.bases[0]) + parts.config.file_reserved_ms


async def expire_file(parts: Parts) -> None:
    """Removes the oldest file of the log."""
    files = parts.log.files
    assert len(files.bases) > 1, "the last file stays"
    base = files.bases[0]
    files.remove(base)
    await parts.names.flush(LOG_DIRECTORY)
    if parts.emit is not None:
        parts.emit(Event("ExpireFile", a=base, b=parts.log.log_min))


async def follow_log_min(parts: Parts) -> None:
    """Queues and index forget what the log has lost."""
    log_min: PhysicalOffset = parts.log.log_min
    queues = tuple(parts.queues.values())
    for queue in queues:
        queue.min_at(log_min)  # first, because this cannot fail
    for queue in queues:
        while queue.remove_expired_file(log_min, parts.checkpointed_to):
            await parts.names.flush(queue.files.directory)
        while queue.ext is not None and queue.remove_expired_ext_file():
            await parts.names.flush(queue.ext.files.directory)
    if parts.index is not None and parts.index.remove_expired_files(log_min, parts.checkpointed_to):
        await parts.names.flush(INDEX_DIRECTORY)
