"""House rules that a program can read off the sources.

Files stay below 700 lines. Outside the tests, a module opens with a docstring, and whoever switches a checker off
says why on the same line.
"""

from __future__ import annotations

import ast
import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
LINES_MAX = 700
GENERATED = {"src/refmq_fast/core/crc32_table.h"}  # numbers only, compared with what makes them by a test

SWITCH = re.compile(r"#\s*(?:type: ignore|noqa)(?:\[[\w, -]+\]|: ?[A-Z0-9, ]+)?(?P<reason>.*)")


def sources() -> list[Path]:
    """Every Python and C source that git knows of or would add, relative to the root."""
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard", "*.py", "*.pyi", "*.c", "*.h"]
    result = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=60, check=False)
    if result.returncode != 0:
        pytest.skip("this is not a git checkout")
    return [Path(name) for name in result.stdout.splitlines() if (ROOT / name).exists()]


def complaints(path: Path, text: str) -> list[str]:
    """What is untidy about one file, whose path is relative to the root."""
    found = []
    if len(text.splitlines()) > LINES_MAX:
        found.append(f"has {len(text.splitlines())} lines, more than {LINES_MAX}: two ideas share a file")
    if path.parts[0] == "tests" or path.name.startswith("test_"):
        return found
    if path.suffix == ".py" and text.strip() and ast.get_docstring(ast.parse(text)) is None:
        found.append("does not open with a docstring")
    if path.suffix in {".c", ".h"} and not text.startswith("/*"):
        found.append("does not open with a comment")
    for number, line in enumerate(text.splitlines(), 1):
        switch = SWITCH.search(line) if path.suffix in {".py", ".pyi"} else None
        if switch and not re.search(r"[a-z]{2,}", switch["reason"]):
            found.append(f"line {number} switches a checker off without saying why")
    return found


def test_the_sources_are_tidy() -> None:
    files = [path for path in sources() if str(path) not in GENERATED]
    assert len(files) > 20
    untidy = [f"{path} {what}" for path in files for what in complaints(path, (ROOT / path).read_text())]
    assert not untidy, "\n".join(untidy)


@pytest.mark.parametrize(
    ("name", "text", "expected"),
    [
        ("a.py", '"""Doc."""\n' + "x = 1\n" * 700, "has 701 lines"),
        ("a.py", "x = 1\n", "docstring"),
        ("a.c", "int x;\n", "comment"),
        ("a.py", '"""Doc."""\nx = f()  # type: ' + "ignore[arg-type]\n", "line 2 switches"),
        ("a.py", '"""Doc."""\nx = f()  # no' + "qa: E501\n", "line 2 switches"),
        ("a.py", '"""Doc."""\nx = f()  # no' + "qa\n", "line 2 switches"),
    ],
)
def test_an_untidy_file_is_found(name: str, text: str, expected: str) -> None:
    (complaint,) = complaints(Path(name), text)
    assert expected in complaint


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("a.py", ""),
        ("tests/a.py", "x = 1\n"),
        ("a.py", '"""Doc."""\nx = f()  # type: ' + "ignore[arg-type]  # the stub is wrong\n"),
        ("a.py", '"""Doc."""\nx = f()  # no' + "qa: PTH105 - both names read alike this way\n"),
    ],
)
def test_a_tidy_file_is_left_alone(name: str, text: str) -> None:
    assert complaints(Path(name), text) == []
