"""The table of commands."""

from __future__ import annotations

import subprocess
import sys

import click

from refmq.cli import COMMANDS, cli


def test_every_command_of_the_table_can_be_imported_and_has_a_help() -> None:
    for name in COMMANDS:
        command = cli.get_command(click.Context(cli), name)
        assert command is not None
        assert command.help, f"{name} has no help"


def test_starting_the_command_imports_nothing_heavy() -> None:
    """Start-up stays under 0.2 s because of what is not imported; time itself is measured in bench/, not here."""
    program = """if True:
        import sys
        from refmq.cli import main
        main(["--version"])
        main(["--help"])
        heavy = {"asyncio", "ssl", "json", "multiprocessing", "rpds", "numpy", "pyspark", "refmq_fast"}
        print(*sorted(heavy & {name.split(".")[0] for name in sys.modules}))
        print(*sorted(name for name in sys.modules if name.startswith("refmq") and "cli" not in name))
    """
    result = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=True)
    assert result.stdout.splitlines()[-2:] == ["", "refmq refmq.errors"]
