"""What ``refmq broker`` and ``refmq namesrv`` share: options, their variables, and the printed settings."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click
import pytest
from click.testing import CliRunner

from refmq.cli._server import engine_option, print_settings, server_options
from refmq.net.engines import EngineChoice


def parsed(arguments: list[str], env: dict[str, str] | None = None) -> dict[str, Any]:
    """What a command with these options is called with."""
    found: dict[str, Any] = {}

    @click.command()
    @server_options("namesrv", 9876, "Where it is.")
    @engine_option
    def command(**given: Any) -> None:
        found.update(given)

    result = CliRunner().invoke(command, arguments, env=env, catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return found


def test_what_is_not_said_is_left_to_the_file() -> None:
    found = parsed([])
    assert {name: found[name] for name in ("conf", "port", "listen", "folder", "trace")} == dict.fromkeys(
        ("conf", "port", "listen", "folder", "trace")
    )
    assert found["engine"] is EngineChoice.AUTO


def test_the_environment_speaks_and_the_command_line_has_the_last_word() -> None:
    env = {"REFMQ_NAMESRV_PORT": "1", "REFMQ_NAMESRV_LISTEN": "::1", "REFMQ_NAMESRV_DIR": "/a"}
    found = parsed([], env)
    assert (found["port"], found["listen"], found["folder"]) == (1, "::1", Path("/a"))
    found = parsed(["--port", "2", "--listen", "h", "--dir", "b", "-c", "c", "--engine", "fast"], env)
    assert (found["port"], found["listen"], found["folder"], found["conf"]) == (2, "h", Path("b"), Path("c"))
    assert found["engine"] is EngineChoice.FAST


@pytest.mark.parametrize("arguments", [["--port", "65536"], ["--port", "-1"], ["--engine", "slow"]])
def test_what_cannot_be_is_refused(arguments: list[str]) -> None:
    with pytest.raises(AssertionError, match="Invalid value"):
        parsed(arguments)


def test_settings_are_lines_that_a_file_may_hold_or_one_document(capsys: pytest.CaptureFixture[str]) -> None:
    print_settings({"b": "2", "a": "1=1"}, ["c has no effect"], as_json=False)
    output = capsys.readouterr()
    assert output.out == "b=2\na=1=1\n"
    assert output.err == "refmq: c has no effect\n"
    print_settings({"b": "2"}, ["c has no effect"], as_json=True)
    output = capsys.readouterr()
    assert json.loads(output.out) == {"settings": {"b": "2"}, "complaints": ["c has no effect"]}
    assert output.err == ""
