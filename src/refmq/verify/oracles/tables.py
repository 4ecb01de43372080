"""Promises about the tables of a broker and the files in which they are."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from refmq.verify.oracles.base import Finding


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
            sentence = f"{table.file} of {table.broker} holds {table.saved!r}, and it knows {table.known!r}"
            yield Finding("TablesSaved", sentence, number)
