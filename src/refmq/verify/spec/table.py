"""The tables of results and of mutants in spec/README.md. They stand between marks; the text around them stays."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence, Set
from pathlib import Path

from refmq.errors import UsageError
from refmq.verify.spec.catalogue import extensions, find_configurations, find_protocols
from refmq.verify.spec.check import Verdict

BEGIN = "<!-- results: written by `refmq spec check --write-table` -->"
END = "<!-- end of results -->"
HEADER = ("configuration", "expected and found", "distinct states", "depth", "processor time")
SCORES_BEGIN = "<!-- mutants: written by `refmq spec mutate X --write-table` -->"
SCORES_END = "<!-- end of mutants -->"
SCORES_HEADER = (
    "protocol",
    "mutants",
    "killed",
    "score",
    "survived, explained",
    "survived, not explained",
    "undecided",
)


def write_table(readme: Path, verdicts: Sequence[Verdict]) -> None:
    """Replace the rows of the configurations that ran, and keep the rows of the others."""
    new = {verdict.configuration.name: row(verdict) for verdict in verdicts if verdict.ok}
    names = {configuration.name for configuration in find_configurations(readme.parent)}
    replace_rows(readme, (BEGIN, END), HEADER, new, names)


def write_score(readme: Path, protocol: str, cells: Sequence[int | str]) -> None:
    """Replace the row of one protocol in the table of mutants."""
    new = {protocol: line((f"`{protocol}`", *map(str, cells)))}
    existing = {*find_protocols(readme.parent), *extensions(readme.parent)}
    assert protocol in existing, f"{protocol} is not in {readme.parent}"
    replace_rows(readme, (SCORES_BEGIN, SCORES_END), SCORES_HEADER, new, existing)


def replace_rows(
    readme: Path, marks: tuple[str, str], header: Sequence[str], new: Mapping[str, str], existing: Set[str]
) -> None:
    """Put new rows into the table between the marks, and drop rows of what no longer exists."""
    begin, end = marks
    assert begin != end
    assert set(new) <= existing, f"{set(new) - existing} are not there"
    text = readme.read_text() if readme.is_file() else ""
    if begin not in text or end not in text:
        raise UsageError(f"{readme} has no place for the table; it needs the lines {begin} and {end}")
    before, rest = text.split(begin, 1)
    table, after = rest.split(end, 1)
    rows = {**known_rows(table), **new}
    lines = [line(header), line(["---"] * len(header)), *[rows[name] for name in sorted(rows) if name in existing]]
    readme.write_text(before + begin + "\n" + "\n".join(lines) + "\n" + end + after)


def known_rows(table: str) -> dict[str, str]:
    rows = {}
    for text in table.splitlines():
        match = re.match(r"\| `([\w/]+)` \|", text)
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
