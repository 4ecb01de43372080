"""The table that one pass over the streams yields: few rows, however many events there are.

A fact is a row of one shape, whatever it says; `kind` tells what the columns hold:

| kind     | node   | name    | k1    | k2     | k3     | k4      | n      | s1 to s4               | t0, t1 | text   |
|----------|--------|---------|-------|--------|--------|---------|--------|------------------------|--------|--------|
| `count`  | who    | action  |       |        |        | outcome | events |                        | ends   |        |
| `cell`   |        |         | queue | group  | range  | role    | count  | sum_b, _bc, _ab, _bd   | ends   |        |
| `queue`  | broker |         | queue | broker | stream |         |        |                        |        | name   |
| `group`  |        |         | group |        |        |         |        |                        |        | name   |
| `suspect`| who    | promise | key   |        |        |         |        |                        |        | reason |
| `gap`    | who    | file    |       |        |        |         | events |                        |        | what   |
| `end`    | client |         | queue |        |        |         |        | end of the queue       | when   |        |
| `acked`  | client |         | queue |        |        |         |        | last acknowledged      | when   |        |
|`progress`| client |         | queue | group  |        |         |        | begun at, consumed to  | when   |        |
| `bin`    | who    | action  |       |        | second | outcome | events |                        |        |        |
| `latency`| client | request |       |        | log2   |         | events |                        |        |        |
| `lock`   | broker | action  | queue | group  |        | granted |        |                        | when   | member |

Spark knows no unsigned numbers: hashes are the signed numbers with the same bits.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from refmq.verify.spark.digest import Cells, signed

TEXTS: Final = ("kind", "node", "name", "text")
NUMBERS: Final = ("k1", "k2", "k3", "k4", "n", "s1", "s2", "s3", "s4", "t0", "t1")
COLUMNS: Final = (*TEXTS, *NUMBERS)
SCHEMA: Final = ", ".join([f"{name} string" for name in TEXTS] + [f"{name} bigint" for name in NUMBERS])
"""For Spark."""

Columns = dict[str, Sequence[Any] | NDArray[Any]]
"""Columns of some facts; a column that is missing holds nothing."""


def as_signed(number: int) -> int:
    """A 64-bit number as Spark has it."""
    return (number & 0xFFFF_FFFF_FFFF_FFFF ^ 1 << 63) - (1 << 63)


def as_unsigned(number: int) -> int:
    return number & 0xFFFF_FFFF_FFFF_FFFF


@dataclass(slots=True)
class Facts:
    """Facts that wait to be handed over."""

    rows: list[dict[str, int | str]] = field(default_factory=list)

    def add(self, kind: str, **values: int | str) -> None:
        self.rows.append({"kind": kind, **values})

    def take(self) -> Iterator[Columns]:
        """All of them, as columns."""
        rows, self.rows = self.rows, []
        if rows:
            yield {name: [row.get(name, "" if name in TEXTS else 0) for row in rows] for name in COLUMNS}


def cell_columns(cells: Cells) -> Columns:
    """Cells of a digest as facts."""
    names = ("count", "sum_b", "sum_bc", "sum_ab", "sum_bd")
    return {
        "kind": ["cell"] * len(cells),
        "k1": signed(cells["queue"]),
        "k2": signed(cells["group"]),
        "k3": cells["range"],
        "k4": signed(cells["role"]),
        **{to: signed(cells[name]) for to, name in zip(("n", "s1", "s2", "s3", "s4"), names, strict=True)},
        "t0": cells["first_ns"],
        "t1": cells["last_ns"],
    }


def to_arrow(columns: Columns) -> Any:
    """Columns as a batch of Arrow, all of them, in the order of the schema."""
    import pyarrow as pa  # type: ignore[import-untyped,unused-ignore]  # the extra `spark` has it, without types

    count = len(columns["kind"])
    arrays = []
    for name in COLUMNS:
        if name in TEXTS:
            arrays.append(pa.array(columns.get(name, [""] * count), pa.string()))
        else:
            values = columns.get(name)
            numbers = np.zeros(count, np.int64) if values is None else np.asarray(values, np.int64)
            arrays.append(pa.array(np.ascontiguousarray(numbers), pa.int64()))
    return pa.RecordBatch.from_arrays(arrays, names=list(COLUMNS))
