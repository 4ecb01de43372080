"""The events of place ranges that differ, as rows for the exact plans."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import numpy as np

from refmq.protocol.names import TRANS_OP_HALF_TOPIC
from refmq.verify.spark.columns import U64, Chunk, mix, queue_key
from refmq.verify.spark.digest import HAS_GROUP, HAS_STATUS, RANGE_SHIFT, Role, role_table, signed

NUMBERS: Final = ("queue", "grp", "rng", "role", "a", "b", "c", "d", "t")
SCHEMA: Final = ", ".join(f"{name} bigint" for name in NUMBERS)


def range_keys(queue: U64, ranges: np.ndarray[Any, np.dtype[np.int64]]) -> U64:
    """One number for a queue and a range of it."""
    return mix(queue + mix(ranges.astype(np.uint64)))


def dirty_rows(chunk: Chunk, dirty: U64 | None) -> dict[str, Any] | None:
    """The events of a chunk that lie in dirty ranges or nowhere, or all of them; None without any."""
    entries = role_table(chunk.names)[chunk.rows["action"], chunk.rows["outcome"]]
    # Op messages are the broker's own: nobody sends them.
    own = np.isin(chunk.rows["subject"], chunk.names.numbers_with((TRANS_OP_HALF_TOPIC,)))
    chosen = (entries > 0) & ~(own & (entries == Role.APPENDED))
    rows, entries = chunk.rows[chosen], entries[chosen]
    queue = queue_key(chunk.names.topic[rows["subject"]], rows["queue_id"])
    ranges = rows["b"] >> RANGE_SHIFT
    if dirty is not None:
        is_dirty = np.isin(range_keys(queue, ranges), dirty) | (entries == Role.INTENDED)
        rows, entries, queue, ranges = rows[is_dirty], entries[is_dirty], queue[is_dirty], ranges[is_dirty]
    if not len(rows):
        return None
    return {
        "queue": signed(queue),
        "grp": signed(np.where(entries & HAS_GROUP, chunk.names.group[rows["actor"]], 0)),
        "rng": ranges,
        "role": (entries & 0x1F).astype(np.int64) + ((entries & HAS_STATUS > 0) & (rows["d"] > 0)),
        **{letter: rows[letter].astype(np.int64) for letter in "abcd"},
        "t": rows["at_ns"],
    }


def all_rows(chunks: Iterator[Chunk], dirty: U64 | None) -> Iterator[dict[str, Any]]:
    for chunk in chunks:
        found = dirty_rows(chunk, dirty)
        if found is not None:
            yield found


def to_arrow(columns: dict[str, Any]) -> Any:
    import pyarrow as pa  # type: ignore[import-untyped,unused-ignore]  # the extra `spark` has it, without types

    arrays = [pa.array(np.ascontiguousarray(columns[name], np.int64), pa.int64()) for name in NUMBERS]
    return pa.RecordBatch.from_arrays(arrays, names=list(NUMBERS))
