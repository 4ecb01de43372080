"""Mistakes of searches by key, of limits, and of what is gone."""

from __future__ import annotations

from typing import Final

from conformance.mutants.mistake import Seeded

SEEDED_SEARCHES: Final = (
    Seeded(
        "key-search-old-files-first",
        "",
        "A search by key begins with the oldest index file.",
        "refmq.store.index",
        "reversed(self.files)",
        "self.files",
        "Index.find",
    ),
    Seeded(
        "full-disk-loses-a-key",
        "",
        "A key that found no room is passed over when there is room again.",
        "refmq.store.index",
        "self._half_done = (physical_offset, number)",
        "self._half_done = (physical_offset, number + 1)",
        "Index.put_keys",
    ),
    Seeded(
        "span-end-left-out",
        "",
        "A search by key leaves out the last millisecond of its span.",
        "refmq.store.get",
        "<= record.store_timestamp_ms <= end_ms",
        "<= record.store_timestamp_ms < end_ms",
        "query_by_key",
    ),
    Seeded(
        "only-first-key",
        "",
        "Of more than two keys of a message only two are indexed.",
        "refmq.store.dispatch",
        "tuple((key for key in properties.get(PROPERTY_KEYS, '').split(KEY_SEPARATOR) if key))",
        "tuple((key for key in properties.get(PROPERTY_KEYS, '').split(KEY_SEPARATOR)[:2] if key))",
        "read_record",
    ),
    Seeded(
        "one-more-than-the-limit",
        "",
        "A read brings one message more than its limit of bytes.",
        "refmq.store.get",
        "size_bytes + size, log_end",
        "size_bytes, log_end",
        "_collect",
    ),
    Seeded(
        "too-small-told-nothing",
        "",
        "A reader below the beginning of a queue is not told where it begins.",
        "refmq.store.get",
        "GetStatus.OFFSET_TOO_SMALL, low",
        "GetStatus.OFFSET_TOO_SMALL, queue_offset",
        "get_message",
    ),
    Seeded(
        "index-expires-early",
        "",
        "An index file is removed when the first of its records is gone.",
        "refmq.store.index",
        "self.files[0].header.end_physical < log_min",
        "self.files[0].header.begin_physical < log_min",
        "Index.remove_expired_files",
    ),
    Seeded(
        "large-record-untold",
        "",
        "Nobody hears of a record that is larger than one read.",
        "refmq.store.dispatch",
        "    if dispatched is not None:\n        found.append(dispatched)\n",
        "",
        "_dispatch_large",
    ),
    Seeded(
        "min-offset-at-last",
        "",
        "A queue begins one message too late after its first file is gone.",
        "refmq.store.consume_queue",
        "low = middle + 1",
        "low = middle + 2",
        "ConsumeQueue.correct_min_offset",
    ),
)
"""Beside those of `conformance.mutants.seeded_slips`."""
