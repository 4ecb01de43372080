"""Exceptions become one line and an exit code; nothing shows a traceback unless asked to."""

from __future__ import annotations

import os
import subprocess
import sys
import types
from collections.abc import Callable

import click
import pytest

from refmq import __version__
from refmq.cli import COMMANDS, main
from refmq.errors import CheckFound, MissingTool, RefmqError, UsageError, WireError

FailWith = Callable[[BaseException], None]


def raising(error: BaseException) -> click.Command:
    def fail() -> None:
        raise error

    return click.Command("fail", callback=fail)


@pytest.fixture
def fail_with(monkeypatch: pytest.MonkeyPatch) -> FailWith:
    """Installs a command `fail` that raises what it is given."""
    monkeypatch.delenv("REFMQ_DEBUG", raising=False)

    def install(error: BaseException) -> None:
        module = types.ModuleType("refmq.cli.fail")
        module.__dict__["command"] = raising(error)
        monkeypatch.setitem(sys.modules, "refmq.cli.fail", module)
        monkeypatch.setitem(COMMANDS, "fail", ("refmq.cli.fail", "Fail."))

    return install


CASES = [
    (RefmqError("the store is locked by process 7"), 1, "refmq: the store is locked by process 7\n"),
    (
        WireError("magic", 0, "0xdaa320a7", "0x00000000"),
        1,
        "refmq: magic at byte offset 0 should be 0xdaa320a7 but is 0x00000000\n",
    ),
    (MissingTool("TLC", "Install it."), 1, "refmq: TLC was not found. Install it.\n"),
    (MissingTool("pyspark and pyarrow", "Install it."), 1, "refmq: pyspark and pyarrow were not found. Install it.\n"),
    (UsageError("--port must be below 65536"), 2, "refmq: --port must be below 65536\n"),
    (CheckFound("3 messages are missing"), 3, "refmq: 3 messages are missing\n"),
    (OSError(28, "No space left on device", "/data/0"), 1, "refmq: No space left on device: /data/0\n"),
    (OSError("no number, only words"), 1, "refmq: no number, only words\n"),
    (RefmqError("one\nline\n  only"), 1, "refmq: one line only\n"),
    (KeyboardInterrupt(), 130, "\nrefmq: interrupted\n"),  # click ends the terminal's line with ^C
    (click.ClickException("not today"), 1, "refmq: not today\n"),
    (click.BadParameter("must be even"), 2, "refmq: Invalid value: must be even (see `refmq fail --help`)\n"),
    (
        ZeroDivisionError("division by zero"),
        1,
        (
            "refmq: this is a bug in refmq: ZeroDivisionError: division by zero "
            "(run again with REFMQ_DEBUG=1 to see the traceback)\n"
        ),
    ),
]


@pytest.mark.parametrize(("error", "code", "line"), CASES, ids=[type(case[0]).__name__ for case in CASES])
def test_an_exception_becomes_one_line_and_an_exit_code(
    fail_with: FailWith, capsys: pytest.CaptureFixture[str], error: BaseException, code: int, line: str
) -> None:
    fail_with(error)
    assert main(["fail"]) == code
    assert capsys.readouterr() == ("", line)


def test_refmq_debug_shows_the_traceback(fail_with: FailWith, monkeypatch: pytest.MonkeyPatch) -> None:
    fail_with(ZeroDivisionError("division by zero"))
    monkeypatch.setenv("REFMQ_DEBUG", "1")
    with pytest.raises(ZeroDivisionError):
        main(["fail"])


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        (["nonsense"], "'nonsense'"),
        (["--nonsense"], "'--nonsense'"),
        (["doctor", "--store"], "--store"),
        (["doctor", "x"], "x"),
    ],
)
def test_unknown_input_gets_one_clear_line_and_exit_code_2(
    capsys: pytest.CaptureFixture[str], arguments: list[str], named: str
) -> None:
    assert main(arguments) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("refmq: ")
    assert err.count("\n") == 1
    assert named in err


def test_no_command_shows_the_help_and_exit_code_2(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([]) == 2
    assert "doctor" in capsys.readouterr().err


def test_help_and_version_are_done(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--help"]) == 0
    assert main(["--version"]) == 0
    out, err = capsys.readouterr()
    assert out.endswith(f"refmq {__version__}\n")
    assert err == ""


def test_a_reader_that_goes_away_is_not_our_bug() -> None:
    read, write = os.pipe()
    os.close(read)
    command = [sys.executable, "-m", "refmq", "doctor", "--json"]
    result = subprocess.run(command, stdout=write, stderr=subprocess.PIPE, text=True, timeout=120, check=False)
    os.close(write)
    assert (result.returncode, result.stderr) == (1, "")


def test_sigterm_ends_a_command_as_ctrl_c_does() -> None:
    program = (
        "import sys, types, time, click, os, signal\n"
        "from refmq.cli import COMMANDS, main\n"
        "def nap():\n"
        "    try:\n"
        "        os.kill(os.getpid(), signal.SIGTERM)\n"
        "        time.sleep(60)\n"
        "    finally:\n"
        "        print('cleaned up')\n"
        "module = types.ModuleType('refmq.cli.nap')\n"
        "module.command = click.Command('nap', callback=nap)\n"
        "sys.modules['refmq.cli.nap'] = module\n"
        "COMMANDS['nap'] = ('refmq.cli.nap', 'Nap.')\n"
        "sys.exit(main(['nap']))\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=50)
    assert (done.returncode, done.stdout.split()) == (143, ["cleaned", "up"])
    assert done.stderr.strip() == "refmq: terminated"
