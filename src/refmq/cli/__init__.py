"""The ``refmq`` command.

Each sub-command lives in a module of its own which is imported only when the command is used, so that
``refmq --version`` starts in well under 0.2 s. To add a command, write ``refmq/cli/NAME.py`` with a click
command called ``command`` and add one line to ``COMMANDS``.

Exit codes: 0 done, 1 failed, 2 usage, 3 a check found something.
"""

from __future__ import annotations

from refmq.cli._boundary import main
from refmq.cli._group import COMMANDS, cli

__all__ = ["COMMANDS", "cli", "main"]
