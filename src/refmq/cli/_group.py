"""The top-level group: a table of commands, each imported when it is used."""

from __future__ import annotations

import importlib
from collections.abc import Mapping

import click

from refmq import __version__

# Command name -> (module that defines `command`, the line that `refmq --help` shows).
# The help line is repeated here so that listing the commands imports none of them.
COMMANDS: dict[str, tuple[str, str]] = {
    "broker": ("refmq.cli.broker", "Run a broker until SIGTERM or Ctrl-C."),
    "doctor": ("refmq.cli.doctor", "Look at what refmq can use here and say what is missing."),
    "namesrv": ("refmq.cli.namesrv", "Run a nameserver that a RocketMQ cluster can use."),
    "serve": ("refmq.cli.serve", "Run a nameserver and a broker on loopback until Ctrl-C."),
    "spec": ("refmq.cli.spec", "Check the TLA+ specifications, and traces against them."),
    "store": ("refmq.cli.store", "Look at the files of a stopped or copied store, ours or Java's."),
    "trace": ("refmq.cli.trace", "Read recorded traces, and make some."),
    "verify": ("refmq.cli.verify", "Judge recorded traces: were the promises kept?"),
}


class LazyGroup(click.Group):
    """A click group whose members are named in a table and imported on first use."""

    def __init__(self, *, table: Mapping[str, tuple[str, str]], name: str, help: str) -> None:
        super().__init__(name=name, help=help, no_args_is_help=True)
        self.table = table

    def list_commands(self, ctx: click.Context) -> list[str]:
        return sorted(self.table)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        entry = self.table.get(cmd_name)
        if entry is None:
            return None
        command = importlib.import_module(entry[0]).command
        assert isinstance(command, click.Command), f"{entry[0]}.command is not a click command"
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        rows = [(name, self.table[name][1]) for name in self.list_commands(ctx)]
        if rows:
            with formatter.section("Commands"):
                formatter.write_dl(rows)


cli = LazyGroup(
    table=COMMANDS,
    name="refmq",
    help="RocketMQ as an executable specification. Exit codes: 0 done, 1 failed, 2 usage, 3 a check found something.",
)
cli = click.version_option(__version__, prog_name="refmq", message="%(prog)s %(version)s")(cli)
