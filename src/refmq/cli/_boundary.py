"""The one place where exceptions become exit codes and single lines on stderr."""

from __future__ import annotations

import errno
import os
import signal
import sys
import threading
from collections.abc import Sequence
from types import FrameType

import click

from refmq.cli._group import cli
from refmq.errors import CheckFound, RefmqError, UsageError

EXIT_DONE = 0
EXIT_FAILED = 1
EXIT_USAGE = 2
EXIT_CHECK_FOUND = 3
EXIT_INTERRUPTED = 130  # 128 + SIGINT, what a shell reports for Ctrl-C
EXIT_TERMINATED = 143  # 128 + SIGTERM

DEBUG_VARIABLE = "REFMQ_DEBUG"


class Terminated(KeyboardInterrupt):
    """SIGTERM. It ends a command as Ctrl-C does: children are ended and temporary files removed on the way out."""


def main(args: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit code. Nothing but ``SystemExit`` gets past this function."""
    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGTERM, _terminate)  # servers put their own in its place
    try:
        result = cli.main(args=args, prog_name="refmq", standalone_mode=False)
        sys.stdout.flush()
    except Exception as error:
        if os.environ.get(DEBUG_VARIABLE) == "1":
            raise
        return report(error)
    except KeyboardInterrupt:
        say("interrupted")
        return EXIT_INTERRUPTED
    # click hands back the code of `ctx.exit(code)` here, and otherwise what the command returned.
    return result if isinstance(result, int) else EXIT_DONE


def _terminate(number: int, frame: FrameType | None) -> None:
    raise Terminated


def report(error: Exception) -> int:
    """Say in one line what went wrong and return the exit code that belongs to it."""
    match error:
        case CheckFound():
            say(str(error))
            return EXIT_CHECK_FOUND
        case UsageError():
            say(str(error))
            return EXIT_USAGE
        case RefmqError():
            say(str(error))
            return EXIT_FAILED
        case click.exceptions.NoArgsIsHelpError():
            error.show()
            return EXIT_USAGE
        case click.UsageError():
            path = error.ctx.command_path if error.ctx is not None else "refmq"
            say(f"{error.format_message()} (see `{path} --help`)")
            return EXIT_USAGE
        case click.ClickException():
            say(error.format_message())
            return error.exit_code
        case click.Abort(__cause__=Terminated()):  # click makes an Abort of every KeyboardInterrupt
            say("terminated")
            return EXIT_TERMINATED
        case click.Abort():
            say("interrupted")
            return EXIT_INTERRUPTED
        case OSError(errno=errno.EPIPE):
            # The reader of our output went away (`refmq ... | head`). Python would complain again when it
            # flushes stdout at exit, so stdout is pointed somewhere that accepts everything.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            return EXIT_FAILED
        case OSError():
            say(f"{error.strerror or error}" + (f": {error.filename}" if error.filename else ""))
            return EXIT_FAILED
        case _:
            say(
                f"this is a bug in refmq: {type(error).__name__}: {error} "
                f"(run again with {DEBUG_VARIABLE}=1 to see the traceback)"
            )
            return EXIT_FAILED


def say(message: str) -> None:
    """Write one line to stderr, whatever line breaks the message holds."""
    print("refmq: " + " ".join(message.split()), file=sys.stderr)
