"""The book and the sources say the same: what exists is documented, and what is shown is what happens."""

from __future__ import annotations

import ast
import doctest
import re
import runpy
import tomllib
from pathlib import Path

import pytest

from refmq.cli import COMMANDS
from refmq.cli._reference import as_markdown

ROOT = Path(__file__).parent.parent.parent
DOCS = ROOT / "docs"
PAGES = sorted(DOCS.rglob("*.md"))


def test_every_variable_that_the_sources_read_is_documented() -> None:
    read = set()
    for path in [*(ROOT / "src").rglob("*.py"), ROOT / "noxfile.py"]:
        read |= set(re.findall(r"\bREFMQ_[A-Z_]+\b", path.read_text()))
    read -= {"REFMQ_WERROR", "REFMQ_SANITIZE", "REFMQ_C_TESTS"}  # CMake's options, explained in CMakeLists.txt
    assert "REFMQ_PURE" in read
    text = (DOCS / "reference/environment.md").read_text()
    assert sorted(name for name in read if f"`{name}`" not in text) == []


def test_every_extra_has_its_reason() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    text = (DOCS / "reference/extras.md").read_text()
    assert sorted(name for name in project["optional-dependencies"] if f"| `{name}` |" not in text) == []


def test_every_check_is_in_the_list_of_checks() -> None:
    tree = ast.parse((ROOT / "noxfile.py").read_text())
    sessions = [
        node.name
        for node in tree.body
        if isinstance(node, ast.FunctionDef) and any("nox.session" in ast.unparse(mark) for mark in node.decorator_list)
    ]
    assert "tests" in sessions
    text = (DOCS / "how-to/run-the-checks.md").read_text()
    assert [name for name in sessions if f"| `{name}` |" not in text] == []


def test_every_command_is_in_the_reference() -> None:
    text = as_markdown()
    for name in COMMANDS:
        assert f"## `refmq {name}`\n" in text
        assert f"Usage: refmq {name}" in text
    assert "<!-- cli-reference -->" in (DOCS / "reference/cli.md").read_text()


@pytest.mark.parametrize("page", PAGES, ids=[str(page.relative_to(DOCS)) for page in PAGES])
def test_what_a_page_shows_in_python_is_what_happens(page: Path) -> None:
    # The closing fence of a block would be taken for output: doctest sees the page without fences.
    text = re.sub(r"^```.*$", "", page.read_text(), flags=re.MULTILINE)
    test = doctest.DocTestParser().get_doctest(text, {}, page.name, str(page), 0)
    outcome = doctest.DocTestRunner(verbose=False).run(test)
    assert outcome.failed == 0


@pytest.mark.parametrize("name", ["README.md", "CONTRIBUTING.md"])
def test_links_to_files_lead_somewhere(name: str) -> None:
    targets = re.findall(r"\]\(([^)#:]+)\)", (ROOT / name).read_text())
    assert [target for target in targets if not (ROOT / target).exists()] == []
    assert targets or name != "README.md"


def test_the_readme_has_exactly_the_two_commands_to_set_up() -> None:
    blocks = re.findall(r"^```console\n(.*?)^```", (ROOT / "README.md").read_text(), flags=re.MULTILINE | re.DOTALL)
    assert blocks == ["pip install . && refmq serve\n", "pip install nox && nox\n"]
    assert "nox" in (ROOT / ".ci/run").read_text()


def test_the_constraints_hold_names_and_versions_only() -> None:
    lines = [line for line in (ROOT / "constraints.txt").read_text().splitlines() if not line.startswith("#")]
    assert lines
    assert [line for line in lines if not re.fullmatch(r"[A-Za-z0-9._-]+==[A-Za-z0-9.]+", line)] == []


def test_the_page_of_clients_is_what_the_interop_tests_say() -> None:
    module = runpy.run_path(str(DOCS / "_clients.py"))
    assert module["PAGE"].read_text() == module["page"](), "run `python docs/_clients.py --write` and commit the page"


def test_a_row_of_the_page_of_clients_names_tests_that_are_there(monkeypatch: pytest.MonkeyPatch) -> None:
    """The comparison above would not be worth much if it could not fail."""
    module = runpy.run_path(str(DOCS / "_clients.py"))
    page = module["page"]
    monkeypatch.setitem(page.__globals__, "ROWS", (("A feature", ("test_that_was_renamed",)),))
    with pytest.raises(SystemExit, match="test_that_was_renamed"):
        page()
    monkeypatch.setitem(page.__globals__, "ROWS", (("A feature", ("test_compressions_of_5",)),))
    assert "| A feature |  | yes |  |  |  |" in page()
