"""The arrow of imports, read from the sources.

    errors <- model <- trace.record
                    <- protocol <- acl, filter <- store <- plane <- broker <- net <- sim <- verify <- cli
                                                   <- nameserver, client <-
                                                                         net <- aio <- sync <- testing

A package may import what its row in ``MAY_IMPORT`` names, and itself. The packages in ``PURE`` do no input or output
and read no clock and no random number: they may not import the modules in ``IMPURE_MODULES`` nor call what is in
``IMPURE_CALLS``. Imports inside functions and under ``TYPE_CHECKING`` count as well: knowing is importing.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

SOURCES = Path(__file__).parent.parent / "src"

VALUES = {"errors", "model", "trace.record"}
BYTES = {"protocol", "acl", "filter", "store"}
ROLES = {"nameserver", "plane", "broker", "client"}

# Package (or module at the top of refmq) -> what it may import from refmq besides itself. "" is refmq/__init__.py.
# `trace.record` is the pure layout of a trace record, apart from the rest of `trace`, which writes files.
MAY_IMPORT: dict[str, set[str]] = {
    "": {"errors", "client", "net", "aio", "sync", "model", "protocol"},
    "errors": set(),
    "model": {"errors"},
    "trace.record": {"errors", "model"},
    "protocol": VALUES,
    "acl": VALUES | {"protocol"},
    "filter": VALUES | {"protocol"},
    "store": VALUES | {"protocol", "filter"},
    "inspect": VALUES | BYTES,
    "plane": VALUES | BYTES,
    "nameserver": VALUES | BYTES,
    "broker": VALUES | BYTES | {"plane"},
    "client": VALUES | BYTES,
    "trace": VALUES | BYTES | {"refmq_fast"},
    "tools": {"errors", "refmq_fast"},
    "net": VALUES | BYTES | ROLES | {"trace", "tools", "refmq_fast"},
    "aio": VALUES | BYTES | {"client", "net", "trace"},
    "sync": {"errors", "aio", "client", "model"},
    "testing": VALUES | BYTES | ROLES | {"trace", "net", "sim", "aio", "sync"},
    "pytest_plugin": {"errors", "testing"},
    "sim": VALUES | BYTES | ROLES | {"trace", "net", "refmq_fast"},
    "verify": VALUES | BYTES | ROLES | {"inspect", "trace", "tools", "net", "sim", "refmq_fast"},
    "cli": VALUES | BYTES | ROLES | {"", "inspect", "trace", "tools", "net", "sim", "verify", "refmq_fast"},
    "__main__": {"cli"},
    "refmq_fast": {"", "errors", "model"},
}

PURE = {
    "errors",
    "model",
    "trace.record",
    "protocol",
    "acl",
    "filter",
    "store",
    "inspect",
    "plane",
    "nameserver",
    "broker",
    "client",
}

# Modules inside a pure package that are shells all the same, each with its reason. Better: move them to refmq.net.
SHELLS: dict[str, str] = {}

IMPURE_MODULES = {
    "os",
    "sys",
    "socket",
    "time",
    "random",
    "threading",
    "asyncio",
    "subprocess",
    "secrets",
    "selectors",
    "select",
    "ssl",
    "multiprocessing",
    "concurrent",
    "signal",
    "mmap",
    "tempfile",
    "shutil",
    "glob",
    "pathlib",
    "uuid",
    "platform",
    "sched",
    "queue",
    "logging",
    "importlib",
    "fcntl",
    "resource",
}
IMPURE_CALLS = {"open", "input", "print", "__import__", "exec", "eval"}
CLOCK_METHODS = {"now", "utcnow", "today"}  # of datetime and date, whose values are welcome


def modules_under(root: Path) -> dict[str, Path]:
    """Every module of refmq and refmq_fast below ``root`` by its dotted name."""
    found = {}
    for path in sorted([*root.glob("refmq/**/*.py"), *root.glob("refmq_fast/**/*.py")]):
        parts = path.relative_to(root).with_suffix("").parts
        found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


def imports_of(name: str, path: Path, tree: ast.Module, known: dict[str, Path]) -> Iterator[tuple[int, str]]:
    """The line and the absolute name of each module that ``tree`` imports."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield node.lineno, alias.name
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            if node.level:
                package = name.split(".") if path.name == "__init__.py" else name.split(".")[:-1]
                above = package[: len(package) - (node.level - 1)]
                base = ".".join([*above, base] if base else above)
            for alias in node.names:
                # `from refmq import errors` imports a module, `from refmq.errors import WireError` a name in one.
                submodule = f"{base}.{alias.name}"
                yield node.lineno, submodule if submodule in known else base


def package_of(module: str) -> str | None:
    """The row of ``MAY_IMPORT`` that ``module`` belongs to, or None when it is not ours."""
    parts = module.split(".")
    if parts[0] == "refmq_fast":
        return "refmq_fast"
    if parts[0] != "refmq":
        return None
    if parts[1:3] == ["trace", "record"]:
        return "trace.record"
    return parts[1] if len(parts) > 1 else ""


def violations(root: Path) -> list[str]:
    """One line for each place below ``root`` where the rule is broken."""
    known = modules_under(root)
    found = []
    for name, path in known.items():
        package = package_of(name)
        assert package is not None
        tree = ast.parse(path.read_text(), filename=str(path))
        if package not in MAY_IMPORT:
            found.append(f"{name}: package {package!r} has no row in MAY_IMPORT")
            continue
        pure = package in PURE and name not in SHELLS
        for line, target in imports_of(name, path, tree, known):
            owner = package_of(target)
            if owner is not None and owner != package and owner not in MAY_IMPORT[package]:
                found.append(f"{name}:{line}: {package or 'refmq'} may not import {target}")
            if pure and owner is None and target.split(".")[0] in IMPURE_MODULES:
                found.append(f"{name}:{line}: {package} is pure and may not import {target}")
        if pure:
            found.extend(f"{name}:{line}: {package} is pure and may not call {call}" for line, call in calls_of(tree))
    return found


def calls_of(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """The line and name of each call that does input or output or reads a clock without an import to show for it."""
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call):
            continue
        match node.func:
            case ast.Name(id=name) if name in IMPURE_CALLS:
                yield node.lineno, name
            case ast.Attribute(value=ast.Name(id="datetime" | "date" as owner), attr=attribute) if (
                attribute in CLOCK_METHODS
            ):
                yield node.lineno, f"{owner}.{attribute}"


def cycles(root: Path) -> list[list[str]]:
    """Groups of modules that import each other in a circle."""
    known = modules_under(root)
    edges = {
        name: {
            target
            for _, target in imports_of(name, path, ast.parse(path.read_text()), known)
            # A package's own __init__ gathers names from its modules, which may import each other through it.
            if target in known and target != name and not name.startswith(target + ".")
        }
        for name, path in known.items()
    }
    found: list[list[str]] = []
    done: set[str] = set()

    def visit(name: str, path: list[str]) -> None:
        if name in path:
            found.append([*path[path.index(name) :], name])
        elif name not in done:
            for target in sorted(edges[name]):
                visit(target, [*path, name])
            done.add(name)

    for name in sorted(edges):
        visit(name, [])
    return found


def test_the_sources_keep_the_arrow_of_imports() -> None:
    assert len(modules_under(SOURCES)) > 10, "the sources were not found"
    assert violations(SOURCES) == []


def test_no_modules_import_each_other_in_a_circle() -> None:
    assert cycles(SOURCES) == []


def test_every_shell_inside_a_pure_package_exists() -> None:
    assert set(SHELLS) <= set(modules_under(SOURCES))


BROKEN = {
    "a pure package reads the clock": ("store/append.py", "import time\n", "store is pure and may not import time"),
    "... from inside a function": (
        "broker/ha.py",
        "def f() -> None:\n    from os import path\n",
        "broker is pure and may not import os",
    ),
    "... by a submodule": ("client/x.py", "import concurrent.futures\n", "may not import concurrent.futures"),
    "... without an import": (
        "model/x.py",
        "def f(p: str) -> None:\n    open(p)\n",
        "model is pure and may not call open",
    ),
    "... by datetime": (
        "protocol/x.py",
        "from datetime import datetime\nWHEN = datetime.now()\n",
        "protocol is pure and may not call datetime.now",
    ),
    "a role knows a shell": ("broker/x.py", "from refmq.net import files\n", "broker may not import refmq.net"),
    "... relatively": ("broker/x.py", "from ..net import files\n", "broker may not import refmq.net"),
    "... through the root": ("broker/x.py", "from refmq import net\n", "broker may not import refmq.net"),
    "... for its types only": (
        "broker/x.py",
        "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    import refmq.net\n",
        "broker may not import refmq.net",
    ),
    "a role knows another role": ("client/x.py", "import refmq.broker\n", "client may not import refmq.broker"),
    "the wire knows the disk": ("protocol/x.py", "import refmq.store\n", "protocol may not import refmq.store"),
    "the reference knows the fast path": ("store/x.py", "import refmq_fast\n", "store may not import refmq_fast"),
    "the writer of traces reaches the core": (
        "store/x.py",
        "from refmq.trace import writer\n",
        "store may not import refmq.trace",
    ),
    "a package nobody decided about": ("plugins/x.py", "", "package 'plugins' has no row"),
}

SOUND = {
    "a role uses values, bytes and the trace layout": (
        "broker/x.py",
        (
            "from datetime import datetime\nimport refmq.model, refmq.protocol\nfrom refmq.trace import record\n"
            "def f(w: datetime) -> str:\n    return w.isoformat()\n"
        ),
    ),
    "a shell does input and output": ("net/x.py", "import asyncio, os, time\nfrom refmq import broker, store\n"),
}


def tree_with(tmp_path: Path, file: str, text: str) -> Path:
    for package in ["", *[name for name in MAY_IMPORT if name not in {"", "trace.record", "refmq_fast"}]]:
        folder = tmp_path / "refmq" / package
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "__init__.py").touch()
    (tmp_path / "refmq/trace/record.py").touch()
    (tmp_path / "refmq/net/files.py").touch()
    target = tmp_path / "refmq" / file
    target.parent.mkdir(exist_ok=True)
    target.write_text(text)
    return tmp_path


@pytest.mark.parametrize(("file", "text", "expected"), BROKEN.values(), ids=list(BROKEN))
def test_a_broken_tree_is_rejected(tmp_path: Path, file: str, text: str, expected: str) -> None:
    found = violations(tree_with(tmp_path, file, text))
    assert len(found) >= 1
    assert any(expected in line for line in found), found


@pytest.mark.parametrize(("file", "text"), SOUND.values(), ids=list(SOUND))
def test_a_sound_tree_is_accepted(tmp_path: Path, file: str, text: str) -> None:
    assert violations(tree_with(tmp_path, file, text)) == []


def test_a_circle_is_found(tmp_path: Path) -> None:
    root = tree_with(tmp_path, "model/a.py", "import refmq.model.b\n")
    (root / "refmq/model/b.py").write_text("import refmq.model.a\n")
    assert cycles(root) == [["refmq.model.a", "refmq.model.b", "refmq.model.a"]]
