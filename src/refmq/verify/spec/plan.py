"""Planning a run from the last one: the table in spec/README.md says how large each configuration is.

A JVM that lives for a second should compile quickly rather than well, and the longest run should start first, so that
it does not keep one core busy alone at the end. Neither changes what is found; a missing or outdated table only makes a
run longer.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from refmq.verify.spec.catalogue import Configuration

SHORT_RUN_S = 13.0  # below this the JVM's optimising compiler costs more than it gains
ROW = re.compile(r"\| `([\w/]+)` \|[^|]*\| ([\d,]+) \| (\d+) \| ([\d.]+) s \|")


@dataclass(frozen=True, slots=True)
class Record:
    """One row of the table."""

    name: str
    distinct: int
    depth: int
    seconds: float


def recorded(readme: Path) -> dict[str, Record]:
    """The rows of the table, by configuration; none when there is no table."""
    if not readme.is_file():
        return {}
    rows = (ROW.match(line) for line in readme.read_text().splitlines())
    return {
        row[1]: Record(row[1], int(row[2].replace(",", "")), int(row[3]), float(row[4]))
        for row in rows
        if row is not None
    }


def is_short(configuration: Configuration, known: Mapping[str, Record]) -> bool:
    """Whether this configuration runs too briefly for the JVM's optimising compiler.

    Of those that have not been timed yet, judges of mutants and searches for a violation are assumed to be short.
    """
    record = known.get(configuration.name)
    if record is None:
        return configuration.mutants or configuration.expect.kind == "violation"
    return record.seconds < SHORT_RUN_S


def longest_first(configurations: Iterable[Configuration], known: Mapping[str, Record]) -> list[Configuration]:
    """The longest first. Those not timed yet come before all others, complete searches before violations."""

    def rank(configuration: Configuration) -> tuple[bool, float, bool, str]:
        record = known.get(configuration.name)
        return (
            record is not None,
            -record.seconds if record is not None else 0.0,
            configuration.expect.kind != "ok",
            configuration.name,
        )

    return sorted(configurations, key=rank)
