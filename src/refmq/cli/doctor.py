"""``refmq doctor``: is everything here that refmq can use, and what to do where it is not."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path

import click

from refmq import __version__
from refmq.cli.output import json_option, print_json
from refmq.errors import CheckFound
from refmq.tools.health import HealthLine, State, examine

MARKS = {State.OK: "ok", State.ADVICE: "--", State.PROBLEM: "!!"}


@click.command("doctor")
@click.option(
    "--store",
    type=click.Path(path_type=Path, file_okay=False),
    default=Path(),
    show_default="the current folder",
    help="Where a broker would keep its files; its free space is looked at.",
)
@json_option
def command(store: Path, as_json: bool) -> None:
    """Look at Python, the extension, JDK, TLC, Spark, disk and limits, and say what to do about each.

    Something that is only advised (--) leaves exit code 0; a problem (!!) gives 3.
    """
    findings = list(examine(store))
    problems = [finding for finding in findings if finding.state is State.PROBLEM]
    if as_json:
        print_json(
            {"version": __version__, "well": not problems, "findings": [asdict(finding) for finding in findings]}
        )
    else:
        for finding in findings:
            print_finding(finding)
    if problems:
        raise CheckFound(f"{', '.join(finding.name for finding in problems)}: not well, see the lines marked !!")


def print_finding(finding: HealthLine) -> None:
    line = f"{MARKS[finding.state]}  {finding.name:<11} {finding.found}"
    click.echo(f"{line}. {finding.remedy}" if finding.remedy else line)
