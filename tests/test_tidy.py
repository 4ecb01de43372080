"""House rules that a program can read off the sources.

Files stay below 700 lines. Outside the tests, a module opens with a docstring, and whoever switches a checker off
says why on the same line. Every module of refmq has a test file of its name: ``store/append.py`` has
``tests/store/test_append.py``. What has none is values only and on a list, which a function takes it off.
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


# --- namesakes --------------------------------------------------------------------------------------------------------

# Values only: no function to test. What is promised of them is tested where they are used: bodies and headers in
# `test_bodies.py` and `test_headers.py` of their folders, which hold every class against upstream's.
VALUES_ONLY = {
    "broker/environment.py",  # a Protocol; the brokers of `net` and of the tests are two of it
    "broker/state.py",
    "filter/sql_ast.py",
    "model/step.py",
    "plane/effects.py",
    "plane/engine.py",  # Protocols; net/engine.py is one
    "plane/inputs.py",
    "plane/needs.py",
    "plane/state.py",
    "protocol/bodies/config.py",
    "protocol/bodies/connections.py",
    "protocol/bodies/heartbeat.py",
    "protocol/bodies/offsets.py",
    "protocol/bodies/stats.py",
    "protocol/headers/clients.py",
    "protocol/headers/messages.py",
    "protocol/headers/nameserver.py",
    "protocol/headers/offsets.py",
    "protocol/headers/pop.py",
    "protocol/headers/pull.py",
}
# A package whose modules share one test, with the reason why one for each would say less.
TOGETHER = {
    "verify/spark": "test_agreement.py",  # screens, plans and examination are right if they agree with the oracles
    "verify/synth": "test_synth.py",  # a cluster, its mistakes and its files are one trace
    "verify/oracles": "test_oracles.py",  # a table from each promise to the runs that break it, whoever judges it
}


def namesake(module: Path) -> Path:
    """Where the test of a module below ``src/refmq`` is. A package's own functions are tested under its name."""
    package = Path("tests", module.parent)
    if module.name != "__init__.py":
        return package / f"test_{module.stem.strip('_')}.py"
    return package / f"test_{module.parent.name or 'refmq'}.py"


def has_a_body(function: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    """Whether a function does something: those of Protocols hold a docstring or dots only."""
    return not all(isinstance(line, ast.Expr) and isinstance(line.value, ast.Constant) for line in function.body)


def functions_of(text: str) -> list[str]:
    nodes = ast.walk(ast.parse(text))
    return [n.name for n in nodes if isinstance(n, (ast.FunctionDef, ast.AsyncFunctionDef)) and has_a_body(n)]


def without_a_test(modules: dict[str, str], tests: set[str], values_only: set[str]) -> list[str]:
    """What is wrong with the names of tests, by the texts of modules (paths below ``src/refmq``)."""
    found = [f"{name} is on the list of values and does not exist" for name in values_only - set(modules)]
    for name, text in modules.items():
        functions, test = functions_of(text), str(namesake(Path(name)))
        together = str(Path("tests", Path(name).parent) / TOGETHER.get(str(Path(name).parent), ""))
        if name in values_only:
            if functions:
                found.append(f"{name} is on the list of values and has the function {functions[0]}")
            if test in tests:
                found.append(f"{name} is on the list of values and has a test: {test}")
        elif test not in tests and together not in tests and (functions or not name.endswith("__init__.py")):
            found.append(f"{name} has no test of its name: {test}")
    return sorted(found)


def test_every_module_has_a_test_of_its_name() -> None:
    files = [str(path) for path in sources()]
    modules = {
        name.removeprefix("src/refmq/"): (ROOT / name).read_text() for name in files if name[:10] == "src/refmq/"
    }
    modules = {name: text for name, text in modules.items() if name.endswith(".py")}
    assert len(modules) > 200
    assert without_a_test(modules, set(files), VALUES_ONLY) == []


def test_a_file_of_tests_has_a_test() -> None:
    """A namesake without a test in it would be none."""
    for path in sources():
        if path.parts[0] == "tests" and path.name.startswith("test_") and path.suffix == ".py":
            assert re.search(r"^\s*(async )?def test_", (ROOT / path).read_text(), re.MULTILINE), path


VALUE = "class A:\n    x: int = 1\n    def f(self) -> int:\n        ...\n"
CODE = "class A:\n    def f(self) -> int:\n        return 1\n"


@pytest.mark.parametrize(
    ("modules", "tests", "values_only", "complaint"),
    [
        ({"a/b.py": VALUE}, set(), set(), "a/b.py has no test of its name: tests/a/test_b.py"),
        ({"a/_b.py": CODE}, {"tests/b/test_b.py"}, set(), "tests/a/test_b.py"),
        ({"a/b.py": CODE}, set(), {"a/b.py"}, "has the function f"),
        ({"a/b.py": VALUE}, {"tests/a/test_b.py"}, {"a/b.py"}, "on the list of values and has a test"),
        ({}, set(), {"a/b.py"}, "does not exist"),
        ({"a/__init__.py": CODE}, {"tests/test_a.py"}, set(), "tests/a/test_a.py"),
        ({"__init__.py": CODE}, set(), set(), "tests/test_refmq.py"),
        ({"verify/oracles/b.py": CODE}, set(), set(), "tests/verify/oracles/test_b.py"),
    ],
)
def test_a_module_without_its_test_is_found(
    modules: dict[str, str], tests: set[str], values_only: set[str], complaint: str
) -> None:
    (found,) = without_a_test(modules, tests, values_only)
    assert complaint in found


def test_namesakes_values_and_packages_without_code_are_left_alone() -> None:
    modules = {"a/b.py": CODE, "a/c.py": VALUE, "a/__init__.py": '"""Doc."""\n', "verify/oracles/d.py": CODE}
    tests = {"tests/a/test_b.py", "tests/verify/oracles/test_oracles.py"}
    assert without_a_test(modules, tests, {"a/c.py"}) == []
