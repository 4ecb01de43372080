"""Checks, one session each. Plain ``nox`` runs what CI runs; ``nox -s NAME`` runs one.

Environments are reused and only reinstalled when what they install has changed. To add a subject, write one
function with ``@nox.session`` and call ``prepare`` with the extras it needs.
"""

from __future__ import annotations

import hashlib
from pathlib import Path

import nox

ROOT = Path(__file__).parent
TYPED = ["src", "tests", "interop", "noxfile.py"]

nox.options.default_venv_backend = "virtualenv"
nox.options.reuse_existing_virtualenvs = True
nox.options.error_on_missing_interpreters = True


def prepare(session: nox.Session, *requirements: str, inputs: tuple[Path, ...] = ()) -> None:
    """Install ``requirements`` under the pinned versions, unless the environment already holds exactly that."""
    digest = hashlib.sha256()
    for text in requirements:
        digest.update(text.encode() + b"\0")
    for path in (ROOT / "constraints.txt", ROOT / "pyproject.toml", *inputs):
        digest.update(path.read_bytes())
    stamp = Path(session.virtualenv.location) / "refmq-installed"
    if stamp.exists() and stamp.read_text() == digest.hexdigest():
        return
    stamp.unlink(missing_ok=True)
    session.install("-c", "constraints.txt", *requirements)
    stamp.write_text(digest.hexdigest())


@nox.session
def lint(session: nox.Session) -> None:
    """Style of the Python sources."""
    prepare(session, "ruff")
    session.run("ruff", "check", ".")
    session.run("ruff", "format", "--check", ".")


@nox.session
def types(session: nox.Session) -> None:
    """mypy --strict on everything that is Python."""
    prepare(session, "mypy", "click", "rpds-py", "hypothesis", "pytest", "nox")
    session.run("mypy", *TYPED)


@nox.session
def tests(session: nox.Session) -> None:
    """The quick tests."""
    prepare(session, "-e", ".[test]")
    session.run("pytest", *session.posargs)
