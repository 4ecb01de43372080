"""Traces as numpy structured arrays: one row per event, the columns of `refmq.trace.record.COLUMNS`.

numpy is an extra (`pip install refmq[trace]`); `refmq.trace.reader` reads the same files without it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from refmq.errors import MissingTool
from refmq.trace.reader import Damage, blocks
from refmq.trace.record import (
    COLUMNS,
    KIND_DROP,
    KIND_EVENT,
    KIND_STRING,
    RECORD_BYTES,
    Dropped,
    FileHead,
    decode_file_head,
    unpack_drop,
    unpack_string,
)

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


@dataclass(slots=True)
class TraceColumns:
    """One file: the events as an array, and the strings that their numbers stand for."""

    head: FileHead
    events: NDArray[np.void]
    strings: list[str]
    """`strings[row["subject"]]` is the topic of a row. A number without a string is an empty text."""
    drops: list[Dropped] = field(default_factory=list)
    damage: list[Damage] = field(default_factory=list)


def record_dtype() -> np.dtype[Any]:
    """The layout of an event for numpy."""
    try:
        import numpy as np
    except ImportError as error:
        raise MissingTool("numpy", "Install it with `pip install refmq[trace]`.") from error
    names, formats, offsets = zip(*COLUMNS, strict=True)
    return np.dtype({"names": names, "formats": formats, "offsets": offsets, "itemsize": RECORD_BYTES})


def load(path: Path) -> TraceColumns:
    """The events of one file. Blocks are checked as the plain reader checks them."""
    dtype = record_dtype()
    import numpy as np

    data = path.read_bytes()
    head = decode_file_head(data)
    damage: list[Damage] = []
    parts = []
    texts: dict[int, bytes] = {}
    drops: list[Dropped] = []
    for start, block in blocks(data, damage):
        part = np.frombuffer(data, dtype, block.count, start)
        for index in np.flatnonzero(part["kind"] != KIND_EVENT):
            at = start + int(index) * RECORD_BYTES
            if data[at] == KIND_STRING:
                number, piece, _ = unpack_string(data, at)
                texts[number] = texts.get(number, b"") + piece
            elif data[at] == KIND_DROP:
                drops.append(unpack_drop(data, at))
        parts.append(part[part["kind"] == KIND_EVENT])
    events = np.concatenate(parts) if parts else np.empty(0, dtype)
    strings = [texts.get(number, b"").decode(errors="replace") for number in range(max(texts, default=0) + 1)]
    return TraceColumns(head, events, strings, drops, damage)
