"""The page of commands: every command has its section, with the help that it prints."""

from __future__ import annotations

import click
import pytest

from refmq.cli import main
from refmq.cli._group import COMMANDS, cli
from refmq.cli._reference import HELP_WIDTH, as_markdown, commands


def test_every_command_comes_after_its_group_and_under_its_full_name() -> None:
    paths = [context.command_path for context in commands("refmq", cli)]
    assert len(paths) == len(set(paths))
    assert {f"refmq {name}" for name in COMMANDS} <= set(paths)
    for number, path in enumerate(paths[1:], 1):
        assert path.rpartition(" ")[0] in paths[:number]
    assert "refmq store repair" in paths, "what is below a group as well"


def test_the_page_shows_what_the_command_prints(capsys: pytest.CaptureFixture[str]) -> None:
    page = as_markdown()
    assert page.count("\n## `") + page.startswith("## `") == len(list(commands("refmq", cli)))
    assert main(["doctor", "--help"]) == 0
    said = capsys.readouterr().out.split()
    section = page.split("## `refmq doctor`\n\n```text\n")[1].split("\n```")[0]
    assert section.split() == said, "only its lines may be broken elsewhere"
    assert all(len(line) <= HELP_WIDTH for line in section.splitlines())


def test_a_command_that_is_listed_and_missing_is_a_mistake() -> None:
    class Broken(click.Group):
        def list_commands(self, ctx: click.Context) -> list[str]:
            return ["gone"]

    with pytest.raises(AssertionError, match="gone"):
        list(commands("x", Broken("x")))
