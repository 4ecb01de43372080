"""Where a recovered store stands: everything that another engine has to know to go on from there.

Recovery is this package's for both engines. When it is done, an engine that is not the reference takes these values and
opens its own files.
"""

from __future__ import annotations

from dataclasses import dataclass

from refmq.model.ids import PhysicalOffset, TimestampMs
from refmq.store.file_sequence import FileSequence
from refmq.store.parts import Parts


@dataclass(frozen=True, slots=True)
class FilesPosition:
    """One run of files."""

    bases: tuple[int, ...]
    wrote: int
    flushed: int
    zeroed_base: int
    """The file in which bytes past the end were zeroed that no flush has covered; -1: none."""

    @classmethod
    def of(cls, files: FileSequence) -> FilesPosition:
        return cls(tuple(files.bases), files.wrote, files.flushed, files._zeroed_base)


@dataclass(frozen=True, slots=True)
class QueuePosition:
    """One consume queue."""

    topic: str
    queue_id: int
    files: FilesPosition
    min_offset: int
    log_min: int
    """The start of the log for which `min_offset` was last corrected."""
    last_physical_end: int
    dispatched_end: int
    is_dirty: bool


@dataclass(frozen=True, slots=True)
class Positions:
    """A whole store."""

    names: tuple[tuple[str, int, int], ...]
    """Directories with the numbers of their latest change by us (0: none) and of the latest durable one (-1: none)."""
    log: FilesPosition
    last_store_ms: TimestampMs
    flushed_store_ms: TimestampMs
    queues: tuple[QueuePosition, ...]
    """In the order in which the store found them."""
    queue_offsets: tuple[tuple[str, int, int], ...]
    """Topic, queue id and the offset of the next message."""
    index_files: tuple[int, ...]
    """Their names, oldest first."""
    dispatched_to: PhysicalOffset
    dispatched_ms: TimestampMs
    checkpointed_to: PhysicalOffset


def positions_of(parts: Parts) -> Positions:
    """Where a store stands that was recovered and has not been used yet."""
    names = parts.names
    assert parts.log.readable == parts.log.wrote, "nothing is in memory only"
    return Positions(
        names=tuple(
            (path, names._changed.get(path, 0), names._flushed.get(path, -1))
            for path in dict.fromkeys([*names._changed, *names._flushed])
        ),
        log=FilesPosition.of(parts.log.files),
        last_store_ms=parts.log.last_store_ms,
        flushed_store_ms=parts.log.flushed_store_ms,
        queues=tuple(
            QueuePosition(
                topic=topic,
                queue_id=queue_id,
                files=FilesPosition.of(queue.files),
                min_offset=queue.min_offset,
                log_min=queue._log_min,
                last_physical_end=queue.last_physical_end,
                dispatched_end=queue.dispatched_end,
                is_dirty=(topic, queue_id) in parts.dirty_queues,
            )
            for (topic, queue_id), queue in parts.queues.items()
        ),
        queue_offsets=tuple((*key, offset) for key, offset in parts.queue_offsets.items()),
        index_files=tuple(int(file.name) for file in parts.index.files) if parts.index is not None else (),
        dispatched_to=parts.dispatched_to,
        dispatched_ms=parts.dispatched_ms,
        checkpointed_to=parts.checkpointed_to,
    )
