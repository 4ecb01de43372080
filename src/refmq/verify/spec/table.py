"""The table of results in spec/README.md, between two marks, so that the text around it stays as it is."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from refmq.errors import UsageError
from refmq.verify.spec.check import Verdict

BEGIN = "<!-- results: written by `refmq spec check --write-table` -->"
END = "<!-- end of results -->"
HEADER = ("configuration", "expected and found", "distinct states", "depth", "processor time")


def write_table(readme: Path, verdicts: Sequence[Verdict]) -> None:
    """Replace the rows of the configurations that ran, and keep the rows of the others."""
    text = readme.read_text() if readme.is_file() else ""
    if BEGIN not in text or END not in text:
        raise UsageError(f"{readme} has no place for the table: it needs the lines {BEGIN} and {END}")
    before, rest = text.split(BEGIN, 1)
    table, after = rest.split(END, 1)
    rows = known_rows(table)
    rows.update({verdict.configuration.name: row(verdict) for verdict in verdicts if verdict.ok})
    names = {path.stem for path in readme.parent.glob("*.cfg")}
    lines = [line(HEADER), line(["---"] * len(HEADER)), *[rows[name] for name in sorted(rows) if name in names]]
    readme.write_text(before + BEGIN + "\n" + "\n".join(lines) + "\n" + END + after)


def known_rows(table: str) -> dict[str, str]:
    rows = {}
    for text in table.splitlines():
        match = re.match(r"\| `(\w+)` \|", text)
        if match is not None:
            rows[match[1]] = text
    return rows


def row(verdict: Verdict) -> str:
    progress = verdict.outcome.progress
    return line(
        (
            f"`{verdict.configuration.name}`",
            verdict.result,
            f"{progress.distinct:,}",
            str(progress.depth),
            f"{verdict.outcome.cpu_seconds or verdict.outcome.seconds:.1f} s",
        )
    )


def line(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cells) + " |"
