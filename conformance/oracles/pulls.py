"""What one read of a queue should give, and where it should say to go on."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from conformance.oracles.store_events import Pulled

MEMORY_PERCENT: Final = 40
"""Messages that are further from the end of the log than this part of the memory have to come from disk."""


def pull_faults(seen: Pulled) -> Iterator[str]:
    """A read of a queue says where it stands and where to go on, and passes over nothing that was wanted."""
    where = f"reading {seen.topic}/{seen.queue_id} [{seen.min_offset}, {seen.max_offset}) at {seen.offset}"
    if seen.max_offset == 0:
        expected: tuple[str, int] | None = ("NO_MESSAGE_IN_QUEUE", 0)
    elif seen.offset < seen.min_offset:
        expected = ("OFFSET_TOO_SMALL", seen.min_offset)
    elif seen.offset == seen.max_offset:
        expected = ("OFFSET_OVERFLOW_ONE", seen.offset)
    elif seen.offset > seen.max_offset:
        expected = ("OFFSET_OVERFLOW_BADLY", seen.max_offset)
    else:
        expected = None
    if expected is not None:
        if (seen.status, seen.next_offset) != expected or seen.found:
            yield f"{where} gave {seen.status}, next {seen.next_offset}, {seen.found}; expected {expected}"
        return
    found, next_offset, suggest_slave = _expected_pull(seen)
    if (list(seen.found), seen.next_offset) != (found, next_offset):
        yield f"{where} gave {list(seen.found)}, next {seen.next_offset}; expected {found}, next {next_offset}"
    if seen.suggest_slave != suggest_slave:
        yield f"{where} suggests a slave: {seen.suggest_slave}"
    if seen.status != ("FOUND" if seen.found else "NO_MATCHED_MESSAGE"):
        yield f"{where} gave {len(seen.found)} messages and says {seen.status}"


def _expected_pull(seen: Pulled) -> tuple[list[int], int, bool]:
    """What one read should give: as many messages as its limits allow, of one file of the queue."""
    in_memory = seen.memory_bytes * MEMORY_PERCENT // 100
    last = seen.offset - seen.offset % seen.units_per_file + seen.units_per_file
    found: list[int] = []
    size_bytes, behind, next_offset = 0, 0, seen.offset
    for unit in seen.units:
        if not seen.offset <= unit.queue_offset < min(last, seen.offset + max(seen.units_at_once, seen.count_max)):
            continue
        behind = seen.log_max - unit.physical_offset
        count_max, bytes_max = seen.from_disk if behind > in_memory else seen.from_memory
        if found and (len(found) >= min(count_max, seen.count_max) or size_bytes + unit.size_bytes > bytes_max):
            break
        if unit.is_wanted:
            found.append(unit.queue_offset)
            size_bytes += unit.size_bytes
        next_offset = unit.queue_offset + 1
    return found, next_offset, behind > in_memory
