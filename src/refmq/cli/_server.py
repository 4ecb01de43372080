"""What the commands that run a server share: their options, and printing the settings instead of running."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TypeVar

import click

from refmq.cli.output import json_option, print_json, warn
from refmq.net.engines import EngineChoice

F = TypeVar("F", bound=Callable[..., object])


def server_options(what: str, port: int, folder_help: str) -> Callable[[F], F]:
    """The options of a server: `what` is its command, which is also the middle of its variables."""
    variable = f"REFMQ_{what.upper()}"
    options = (
        click.option(
            "-c",
            "conf",
            type=click.Path(path_type=Path, dir_okay=False),
            help=f"A {what}.conf of upstream: Java properties. Settings changed over the wire are written to it.",
        ),
        click.option(
            "--port",
            type=click.IntRange(0, 65535),
            envvar=f"{variable}_PORT",
            help=f"The port to listen on; 0 takes a free one.  [default: listenPort of the file, or {port}]",
        ),
        click.option(
            "--host",
            "--listen",
            "listen",
            envvar=(f"{variable}_HOST", f"{variable}_LISTEN"),
            help="The address to listen on; 0.0.0.0 is all.  [default: bindAddress of the file, or 127.0.0.1]",
        ),
        click.option(
            "--dir",
            "folder",
            type=click.Path(path_type=Path, file_okay=False),
            envvar=f"{variable}_DIR",
            help=folder_help,
        ),
        trace_option(f"the {_NOUNS.get(what, what)}"),
        click.option("-p", "only_print", is_flag=True, help="Print the settings in effect and exit."),
        json_option,
    )

    def add(function: F) -> F:
        for option in reversed(options):
            function = option(function)
        return function

    return add


_NOUNS = {"namesrv": "nameserver"}


def trace_option(who: str) -> Callable[[F], F]:
    """`--trace`: record what a node does."""
    return click.option(
        "--trace", type=click.Path(path_type=Path, file_okay=False), help=f"Record what {who} does in this folder."
    )


def engine_option(function: F) -> F:
    """`--engine`: who serves messages. Checked where the engine is opened."""
    return click.option(
        "--engine",
        type=click.Choice([choice.value for choice in EngineChoice]),
        callback=lambda context, parameter, value: EngineChoice(value),
        default=EngineChoice.AUTO.value,
        show_default=True,
        help="Who serves messages: the reference in Python, or the fast data plane in C.",
    )(function)


def print_settings(settings: Mapping[str, str], complaints: Sequence[str], *, as_json: bool) -> None:
    """The settings in effect, and a line for each that has none."""
    if as_json:
        print_json({"settings": dict(settings), "complaints": list(complaints)})
        return
    for complaint in complaints:
        warn(complaint)
    for name, value in settings.items():
        click.echo(f"{name}={value}")
