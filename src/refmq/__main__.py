"""Run the command line: the script ``refmq``, and ``python -m refmq``."""

from __future__ import annotations

import signal
import sys


def main() -> int:
    """Read the command line, and run what it says. Until then Ctrl-C ends the process as it ends any other: there is
    nothing to be stopped in good order yet, and Python would show where in its imports it was."""
    handler = signal.getsignal(signal.SIGINT)
    if handler is signal.default_int_handler:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    from refmq.cli import main as run  # here: it takes a tenth of a second

    signal.signal(signal.SIGINT, handler)
    return run()


if __name__ == "__main__":
    sys.exit(main())
