"""Digests: one small number for all that a side saw in a stretch of a queue.

Whoever names a place in a queue has a *role*: a broker appended, acknowledged, dispatched or served it, a client was
told that it sent it, a group consumed it. The events of one role in `b >> 10` of one queue are a *cell*:

    offset  size  type  name      meaning
    0       8     u64   queue     hash of topic, broker and queue id
    8       8     u64   group     hash of the group, 0 for a role of brokers and producers
    16      8     i64   range     `b >> 10`
    24      8     u64   role
    32      8     u64   count     events
    40      8     u64   sum_b     sum of mix(b ^ k0)
    48      8     u64   sum_bc    sum of mix(mix(b ^ k1) + c)
    56      8     u64   sum_ab    sum of mix(mix(b ^ k2) + a)
    64      8     u64   sum_bd    sum of mix(mix(b ^ k3) + d)
    72      8     i64   first_ns  the smallest time
    80      8     i64   last_ns   the largest

Sums are modulo 2^64 and do not depend on an order, so cells of different files are added. Two roles that saw the same
events have equal counts and sums. Two that did not have equal sums with a probability of about 2^-64 for each sum that
is compared, over the choice of the keys k0 to k3; a double event changes the count.

`digest_cells` is C where it was built (`refmq_fast/core/digest.h`), else numpy; both give the same cells.
"""

from __future__ import annotations

from enum import IntEnum
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from refmq.trace.record import Outcome
from refmq.verify.spark import native
from refmq.verify.spark.columns import Chunk, Names, mix, queue_key

RANGE_SHIFT: Final = 10


class Role(IntEnum):
    """What an event says about a place."""

    APPENDED = 1
    DISPATCHED = 2
    SERVED = 3
    ACKED = 4
    ACKED_WITH_RESERVE = 5
    SENT = 6
    SENT_WITH_RESERVE = 7
    CONSUMED = 8
    """By a group; `b` of what reached a client."""
    COMMIT_STORED = 9
    COMMIT_ASKED = 10
    COMMIT_TOLD = 11
    INTENDED = 12
    """A message was sent that is not told where it is: half messages, delayed ones. It has no place."""


HAS_STATUS: Final = 0x40
"""A `d` other than 0 makes it the next role."""
HAS_GROUP: Final = 0x80

ROLES: Final = {
    ("AppendMessage", Outcome.STEP): Role.APPENDED,
    ("DispatchMessage", Outcome.STEP): Role.DISPATCHED,
    ("ServeMessage", Outcome.STEP): Role.SERVED,
    ("AckPut", Outcome.STEP): Role.ACKED | HAS_STATUS,
    ("Send", Outcome.OK): Role.SENT | HAS_STATUS,
    ("SendBatch", Outcome.OK): Role.SENT | HAS_STATUS,
    ("SendHalf", Outcome.INVOKE): Role.INTENDED,
    ("SendDelayed", Outcome.INVOKE): Role.INTENDED,
    ("Pull", Outcome.CONSUMED): Role.CONSUMED | HAS_GROUP,
    ("PullFiltered", Outcome.CONSUMED): Role.CONSUMED | HAS_GROUP,
    ("CommitOffset", Outcome.STEP): Role.COMMIT_STORED | HAS_GROUP,
    ("CommitOffset", Outcome.INVOKE): Role.COMMIT_ASKED | HAS_GROUP,
    ("CommitOffset", Outcome.OK): Role.COMMIT_TOLD | HAS_GROUP,
}
"""Action and outcome -> role and flags."""

CELL: Final = np.dtype(
    [
        ("queue", "<u8"),
        ("group", "<u8"),
        ("range", "<i8"),
        ("role", "<u8"),
        ("count", "<u8"),
        ("sum_b", "<u8"),
        ("sum_bc", "<u8"),
        ("sum_ab", "<u8"),
        ("sum_bd", "<u8"),
        ("first_ns", "<i8"),
        ("last_ns", "<i8"),
    ]
)
Cells = NDArray[np.void]


def keys_of(seed: int) -> NDArray[np.uint64]:
    """The keys of the four sums."""
    numbers = np.arange(1, 5, dtype=np.uint64) + np.uint64(seed & 0xFFFF_FFFF_FFFF)
    return mix(numbers * np.uint64(0x9E3779B97F4A7C15))


def role_table(names: Names) -> NDArray[np.uint8]:
    """Role and flags by the number of an action's string and the outcome."""
    table = np.zeros((len(names.texts), len(Outcome)), np.uint8)
    numbers = {text: number for number, text in enumerate(names.texts)}
    for (action, outcome), entry in ROLES.items():
        if action in numbers:
            table[numbers[action], outcome] = entry
    return table


def digest_cells(chunk: Chunk, keys: NDArray[np.uint64], *, fast: bool | None = None) -> Cells:
    """The cells of a chunk, in any order; a cell may come in several parts. `fast` says whether C is to make them."""
    roles = role_table(chunk.names)
    if not roles.any():
        return np.empty(0, CELL)
    if not (native.kernels() is not None if fast is None else fast):
        return _cells_by_numpy(chunk, roles, keys)
    names = chunk.names
    tables = (roles.data, names.topic.data, names.group.data, keys.data)
    found = native.kernels().digest_rows(np.ascontiguousarray(chunk.rows).view(np.uint8).data, *tables)
    return np.frombuffer(found, CELL)


def _cells_by_numpy(chunk: Chunk, roles: NDArray[np.uint8], keys: NDArray[np.uint64]) -> Cells:
    entries = roles[chunk.rows["action"], chunk.rows["outcome"]]
    rows, entries = chunk.rows[entries > 0], entries[entries > 0]
    if not len(rows):
        return np.empty(0, CELL)
    cells = np.empty(len(rows), CELL)
    has_status = (entries & HAS_STATUS > 0) & (rows["d"] > 0)
    cells["role"] = (entries & 0x1F) + has_status
    cells["queue"] = queue_key(chunk.names.topic[rows["subject"]], rows["queue_id"])
    cells["group"] = np.where(entries & HAS_GROUP, chunk.names.group[rows["actor"]], 0)
    cells["range"] = rows["b"] >> RANGE_SHIFT
    cells["count"] = 1
    a, b, c, d = (rows[letter].astype(np.int64).astype(np.uint64) for letter in "abcd")
    cells["sum_b"] = mix(b ^ keys[0])
    for key, name, value in ((keys[1], "sum_bc", c), (keys[2], "sum_ab", a), (keys[3], "sum_bd", d)):
        cells[name] = mix(mix(b ^ key) + value)
    cells["first_ns"] = cells["last_ns"] = rows["at_ns"]
    return added(cells)


def added(cells: Cells) -> Cells:
    """Cells of one key made one."""
    if not len(cells):
        return cells
    order = np.lexsort((cells["queue"], cells["group"], cells["range"], cells["role"]))
    sorted_cells = cells[order]
    fresh = np.ones(len(cells), np.bool_)
    for name in ("queue", "group", "range", "role"):
        column = sorted_cells[name]
        fresh[1:] &= column[1:] == column[:-1]
    fresh[1:] = ~fresh[1:]
    starts = np.flatnonzero(fresh)
    result = sorted_cells[starts].copy()
    for name in ("count", "sum_b", "sum_bc", "sum_ab", "sum_bd"):
        result[name] = np.add.reduceat(sorted_cells[name], starts)
    result["first_ns"] = np.minimum.reduceat(sorted_cells["first_ns"], starts)
    result["last_ns"] = np.maximum.reduceat(sorted_cells["last_ns"], starts)
    return result


def signed(values: NDArray[Any]) -> NDArray[np.int64]:
    """64-bit numbers as a table of Spark has them: it knows no unsigned ones."""
    return values.astype(np.uint64, copy=False).view(np.int64)
