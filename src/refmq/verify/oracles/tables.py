"""Promises about the tables of a broker and the files in which they are."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final, NamedTuple

from refmq.verify.oracles.base import Finding

SHOWN_MAX: Final = 200
"""Characters of a table that a sentence shows."""


class SeenTable(NamedTuple):
    """A table of a broker as it is in memory and in its file, when all was quiet."""

    broker: str
    file: str
    known: object
    saved: object


def tables_saved(tables: Iterable[SeenTable]) -> Iterator[Finding]:
    """TablesSaved: when all is quiet the files of a broker hold what it knows."""
    for number, table in enumerate(tables):
        if table.known != table.saved:
            knows, saved = (repr(value)[:SHOWN_MAX] for value in (table.known, table.saved))
            yield Finding("TablesSaved", f"{table.file} of {table.broker} holds {saved}, and it knows {knows}", number)
