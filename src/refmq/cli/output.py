"""Helpers for commands that print data: every one of them has ``--json``."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import TypeVar

import click

F = TypeVar("F", bound=Callable[..., object])


def json_option(function: F) -> F:
    """Add ``--json`` to a click command; the function receives it as ``as_json: bool``."""
    return click.option("--json", "as_json", is_flag=True, help="Print one JSON document instead of text.")(function)


def print_json(data: object) -> None:
    """Print one JSON document: stable key order as given, UTF-8, two spaces of indentation."""
    click.echo(json.dumps(data, indent=2, ensure_ascii=False))


def print_table(header: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
    """Print rows in columns as wide as their widest cell, for people to read."""
    cells = [list(header), *[[str(cell) for cell in row] for row in rows]]
    widths = [max(len(row[column]) for row in cells) for column in range(len(header))]
    for row in cells:
        click.echo("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip())


def warn(message: str) -> None:
    """Say on stderr what is worth knowing and ends nothing."""
    click.echo(f"refmq: {message}", err=True)
