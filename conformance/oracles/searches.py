"""The promises about searches: by key and by time."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator

from conformance.oracles.store_events import (
    Observation,
    Queue,
    Readout,
)
from conformance.store.record import Record
from refmq.verify.oracles.base import Finding


def index_finds_every_key(observations: Iterable[Observation]) -> Iterator[Finding]:
    """A query by key finds every retained message that has the key, and only messages of that topic and key."""
    for event, seen in enumerate(observations):
        if not isinstance(seen, Readout):
            continue
        having: dict[tuple[str, str], list[int]] = {}
        for record in seen.records:
            for key in dict.fromkeys(record.keys):
                having.setdefault((record.topic, key), []).append(record.physical_offset)
        for (topic, key), found in seen.by_key.items():
            offsets = having.get((topic, key), [])
            missing = sorted({offset for offset in offsets if offset < seen.dispatched_to} - set(found))
            if missing:
                yield Finding("IndexFindsEveryKey", f"key {key} of {topic} does not find {missing}", event)
            if set(found) - set(offsets):
                yield Finding("IndexFindsEveryKey", f"key {key} of {topic} finds strangers: {found}", event)
            newest = seen.newest_by_key.get((topic, key))
            if newest is not None and list(newest) != list(found)[-1:]:
                yield Finding("IndexFindsEveryKey", f"of {found} key {key} of {topic} finds {newest} as newest", event)
            if list(found) != sorted(set(found)):
                yield Finding(
                    "IndexFindsEveryKey", f"key {key} of {topic} finds {found}: not in order, or twice", event
                )
        indexed = [record for record in seen.records if record.keys and record.physical_offset < seen.dispatched_to]
        newest_indexed = (indexed[-1].store_ms, indexed[-1].physical_offset) if indexed else None
        # A message may be half indexed on a full disk: then it is past what is dispatched.
        if (
            newest_indexed
            and seen.index_last
            and newest_indexed != seen.index_last
            and (seen.index_last[1] < seen.dispatched_to)
        ):
            yield Finding("IndexFindsEveryKey", f"the index says that it ends at {seen.index_last}", event)
        at = {record.physical_offset: record for record in seen.records}
        for (topic, key, begin_ms, end_ms), found in seen.by_key_between.items():
            expected = [
                offset
                for offset in having.get((topic, key), ())
                if begin_ms <= at[offset].store_ms <= end_ms and (offset < seen.dispatched_to or offset in found)
            ]
            if list(found) != expected:
                yield Finding(
                    "IndexFindsEveryKey",
                    f"key {key} of {topic} finds {found} from {begin_ms} to {end_ms}, and should find {expected}",
                    event,
                )


def time_search_exact(observations: Iterable[Observation]) -> Iterator[Finding]:
    """The search by time finds the first message stored at or after the time (or the last at or before it)."""
    for event, seen in enumerate(observations):
        if isinstance(seen, Readout):
            log_times = [record.store_ms for record in seen.records]
            if log_times != sorted(log_times):
                yield Finding("TimeSearchExact", f"store times go back in the log: {log_times}", event)
            for (topic, queue_id), queue in seen.queues.items():
                times = [record.store_ms for record in queue.served if isinstance(record, Record)]
                if len(times) != queue.max_offset - queue.min_offset:
                    continue  # QueueMatchesLog says so already
                if queue.store_times is not None and list(queue.store_times) != times:
                    yield Finding(
                        "TimeSearchExact", f"{topic}/{queue_id} has times {times} and says {queue.store_times}", event
                    )
                for at_ms, boundary, found in queue.times:
                    expected = _search(queue, times, at_ms, boundary)
                    if found != expected:
                        yield Finding(
                            "TimeSearchExact",
                            f"{boundary} bound of {at_ms} in {topic}/{queue_id} with times {times} "
                            f"from {queue.min_offset}: found {found}, expected {expected}",
                            event,
                        )


def _search(queue: Queue, times: list[int], at_ms: int, boundary: str) -> int:
    if boundary == "lower":
        return queue.min_offset + bisect_left(times, at_ms)
    if boundary == "nearest":
        # The first of those at the time itself; otherwise the nearer neighbour, the earlier one of two.
        after = bisect_left(times, at_ms)
        before = after - 1
        if after == len(times) or (
            before >= 0 and times[after] != at_ms and at_ms - times[before] <= times[after] - at_ms
        ):
            after = before
        return queue.min_offset + max(0, after)
    return queue.min_offset + max(0, bisect_right(times, at_ms) - 1)
