"""The command line as a page of the book: every command's help, as the command prints it."""

from __future__ import annotations

from collections.abc import Iterator

import click

from refmq.cli._group import cli

HELP_WIDTH = 100  # characters; what fits beside the navigation


def commands(name: str, command: click.Command, parent: click.Context | None = None) -> Iterator[click.Context]:
    """``command`` and everything below it, each with the context that knows its full name."""
    context = click.Context(command, info_name=name, parent=parent, terminal_width=HELP_WIDTH)
    yield context
    if isinstance(command, click.Group):
        for child in command.list_commands(context):
            found = command.get_command(context, child)
            assert found is not None, child
            yield from commands(child, found, context)


def as_markdown() -> str:
    """A section for each command: its full name and its help."""
    sections = [
        f"## `{context.command_path}`\n\n```text\n{context.get_help()}\n```\n" for context in commands("refmq", cli)
    ]
    return "\n".join(sections)
