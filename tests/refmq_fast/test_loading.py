"""How refmq_fast loads, or says why it does not. Each case runs in an interpreter of its own."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import refmq_fast

PACKAGE = Path(__file__).parent.parent.parent / "src/refmq_fast"

PROBE = """
import refmq_fast
print(refmq_fast.AVAILABLE)
print(refmq_fast.REASON)
try:
    from refmq_fast import crc32
except ImportError as error:
    print(error)
print(hasattr(refmq_fast, "no_such_name"))
"""


def probe(site: Path | None = None, **environment: str) -> list[str]:
    # -S keeps an installed refmq_fast out when a copy is looked at instead.
    command = [sys.executable, *(["-S"] if site else []), "-c", PROBE]
    env = {**os.environ, **environment, **({"PYTHONPATH": str(site)} if site else {})}
    env.pop("REFMQ_PURE", None)
    env.update(environment)
    result = subprocess.run(command, env=env, capture_output=True, text=True, timeout=60, check=True)
    return result.stdout.splitlines()


def test_refmq_pure_keeps_the_extension_out() -> None:
    assert probe(REFMQ_PURE="1") == [
        "False",
        "REFMQ_PURE=1 is set",
        "refmq_fast.crc32 is not there: the extension is off because REFMQ_PURE=1 is set",
        "False",
    ]


@pytest.fixture
def bare_copy(tmp_path: Path) -> Path:
    (tmp_path / "refmq_fast").mkdir()
    shutil.copy(PACKAGE / "__init__.py", tmp_path / "refmq_fast")
    return tmp_path


def test_an_extension_that_was_not_built_is_named_as_such(bare_copy: Path) -> None:
    available, reason, error, _ = probe(bare_copy)
    assert available == "False"
    assert reason.startswith("it was not built when refmq was installed")
    assert reason in error


def test_an_extension_that_cannot_be_loaded_is_named_as_such(bare_copy: Path) -> None:
    (bare_copy / "refmq_fast/_native.py").write_text("raise ImportError('wrong ELF class')\n")
    assert probe(bare_copy)[1] == "it was built and cannot be loaded: wrong ELF class"


@pytest.mark.skipif(os.environ.get("REFMQ_REQUIRE_EXTENSION") != "1", reason="REFMQ_REQUIRE_EXTENSION=1 is not set")
def test_the_extension_is_there_where_it_is_required() -> None:
    """``nox`` requires it wherever there is a compiler, so that its tests are never skipped by accident."""
    assert refmq_fast.AVAILABLE, refmq_fast.REASON
