"""The promises about what goes and what is claimed: cleaning, and the stamps of the checkpoint."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from conformance.oracles.promised import reachable_min
from conformance.oracles.store_events import (
    Checkpoint,
    ExpireFile,
    Observation,
    PowerLoss,
    Readout,
)
from refmq.verify.oracles.base import Finding


def retention_prefix(observations: Iterable[Observation]) -> Iterator[Finding]:
    """Cleaning removes the oldest files only, never a hole in the middle, never the last, never one too young."""
    log_min = reachable = 0  # where the log starts; where it may start, if cleaning was interrupted
    after_power_loss = False  # a file whose name was never flushed may be gone; AckedSurvives knows if it mattered
    for event, seen in enumerate(observations):
        match seen:
            case ExpireFile(interrupted=True):
                reachable = max(reachable, reachable_min(seen))
            case ExpireFile():
                for sentence in _expiry_faults(seen):
                    yield Finding("RetentionPrefix", sentence, event)
                reachable = max(reachable, min(seen.begins_after, default=0))
                if seen.removed_count:  # otherwise it made nothing durable that an interrupted one had removed
                    log_min = reachable
            case Readout():
                if seen.records and seen.log_min < log_min:
                    yield Finding("RetentionPrefix", f"the log begins at {seen.log_min} again, before {log_min}", event)
                if seen.log_min > reachable and not after_power_loss:
                    yield Finding(
                        "RetentionPrefix", f"the log begins at {seen.log_min}: files from {log_min} are gone", event
                    )
                if seen.is_full:  # after a start; a removal whose flush has failed may still be undone
                    log_min = reachable = max(log_min, seen.log_min)
                after_power_loss = False
            case PowerLoss():
                after_power_loss = True
            case _:
                pass


def _expiry_faults(seen: ExpireFile) -> Iterator[str]:
    begins = [begin for begin, _ in seen.files]
    kept = len(seen.begins_after)
    removed = seen.files[: len(begins) - kept]
    if list(seen.begins_after) != begins[len(begins) - kept :]:
        yield f"of the files {begins} cleaning left {list(seen.begins_after)}"
    elif begins and not kept:
        yield "cleaning removed the last file"
    if len(removed) != seen.removed_count:
        yield f"cleaning says that {seen.removed_count} files went, and {len(removed)} did"
    if len(removed) > seen.files_max:
        yield f"{len(removed)} files went at once, and {seen.files_max} may"
    if removed and not seen.allowed:
        yield "cleaning removed files at the wrong hour"
    for begin, modified_ms in removed:
        if not seen.forced and seen.now_ms < modified_ms + seen.reserved_ms:
            yield f"file {begin} was removed {seen.now_ms - modified_ms} ms after its last change"
    for begin, _ in seen.files[1 : len(removed) + 1]:
        if begin > seen.safe_to:
            yield f"the file before {begin} was removed, but only what is before {seen.safe_to} is safe"
    if seen.required and len(removed) < seen.files_max and len(begins) > len(removed) + 1:
        begin, modified_ms = seen.files[len(removed)]
        is_expired = seen.forced or seen.now_ms >= modified_ms + seen.reserved_ms
        if is_expired and begins[len(removed) + 1] <= min(seen.safe_before, seen.safe_to):
            yield f"file {begin} has expired and was kept"


def checkpoint_monotone(observations: Iterable[Observation]) -> Iterator[Finding]:
    """Checkpoint stamps never run ahead of the durable data they describe."""
    for event, seen in enumerate(observations):
        if not isinstance(seen, Checkpoint):
            continue
        for name, stamp, bound, missing in (
            ("log", seen.log_ms, seen.log_to, seen.missing_in_log),
            ("queue", seen.queue_ms, seen.queues_to, seen.missing_in_queues),
            ("index", seen.index_ms, seen.index_to, seen.missing_in_index),
        ):
            # Records of the same millisecond may stand on both sides of a stamp.
            covered = [offset for store_ms, offset in missing if store_ms < stamp or offset < bound]
            if covered:
                yield Finding(
                    "CheckpointMonotone",
                    f"the {name} stamp ({stamp} ms, offset {bound}) covers the records at {covered}, "
                    f"which a power loss would take from the {name}",
                    event,
                )
        if seen.missing_for_java:
            yield Finding(
                "CheckpointMonotone",
                f"by these stamps ({seen.queue_ms} ms for queues, {seen.index_ms} ms for the index) Java would neither "
                f"keep nor build again the index entries of the records at {list(seen.missing_for_java)}",
                event,
            )
