"""Traces as numpy structured arrays: one row per event, the columns of `refmq.trace.record.COLUMNS`.

numpy is an extra (`pip install refmq[trace]`); `refmq.trace.reader` reads the same files without it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from refmq.errors import MissingTool
from refmq.trace.reader import Block, Damage, Strings, TraceReader
from refmq.trace.record import COLUMNS, KIND_EVENT, RECORD_BYTES, STRINGS_MAX, Dropped, FileHead, Outcome

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


@dataclass(slots=True)
class TraceColumns:
    """One file: the events as an array, and the strings that their numbers stand for."""

    head: FileHead
    events: NDArray[np.void]
    strings: list[str]
    """`strings[row["subject"]]` is the topic of a row; `?` and the number where it was lost in damage."""
    drops: list[Dropped] = field(default_factory=list)
    damage: list[Damage] = field(default_factory=list)


@cache
def record_dtype() -> np.dtype[Any]:
    """The layout of an event for numpy."""
    try:
        import numpy as np
    except ImportError as error:
        raise MissingTool("numpy", "Install it with `pip install refmq[trace]`.") from error
    names, formats, offsets = zip(*COLUMNS, strict=True)
    return np.dtype({"names": names, "formats": formats, "offsets": offsets, "itemsize": RECORD_BYTES})


def load(path: Path) -> TraceColumns:
    """The events of one file: those that the plain reader reads, and what it finds damaged."""
    dtype = record_dtype()
    import numpy as np

    parts = []
    drops: list[Dropped] = []
    with path.open("rb") as source:
        reader = TraceReader(source)
        for block in reader.blocks():
            rows = np.frombuffer(block.records, dtype)
            if not _are_plain_events(rows, reader.strings):
                drops += [entry for entry in reader.entries_of(block) if isinstance(entry, Dropped)]
                rows = rows[_readable(block, reader.damage) & (rows["kind"] == KIND_EVENT)]
            parts.append(rows)
    events = np.concatenate(parts) if parts else np.empty(0, dtype)
    count = max(*reader.strings, _highest_string(events)) + 1
    strings = [reader.strings.get(number, f"?{number}") for number in range(count)]
    return TraceColumns(reader.head, events, strings, drops, reader.damage)


def _highest_string(rows: NDArray[np.void]) -> int:
    return max(int(rows[name].max(initial=0)) for name in ("action", "actor", "subject"))


def _are_plain_events(rows: NDArray[np.void], strings: Strings) -> bool:
    """Whether these are events and nothing else, with known strings: most blocks are, and need no closer look."""
    known = STRINGS_MAX if strings.has_gaps else len(strings) - 1
    return bool(
        (rows["kind"] == KIND_EVENT).all()
        and rows["outcome"].max() <= max(Outcome)
        and _highest_string(rows) <= known
        and (strings.has_gaps or max(strings) == known)  # none is missing in between
    )


def _readable(block: Block, damage: list[Damage]) -> NDArray[np.bool_]:
    """Which records of a block are not part of any damage."""
    import numpy as np

    readable = np.ones(block.head.count, bool)
    for stretch in damage:
        first, last = ((place - block.position) // RECORD_BYTES for place in (stretch.position, stretch.end))
        readable[max(first, 0) : max(last, 0)] = False
    return readable
