"""What an install brings, with a compiler and without one.

The wheel is built and unpacked into a folder of its own, and the command is run from there. ``-S`` keeps the
editable refmq of the test environment out of the way.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import sysconfig
import zipfile
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from refmq.tools.health import find_compiler

ROOT = Path(__file__).parent.parent.parent
BUILD_TIMEOUT_S = 240

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        find_spec("scikit_build_core") is None or find_spec("pip") is None, reason="the build tools are not installed"
    ),
]


def build_wheel(folder: Path, **environment: str) -> Path:
    """The wheel that ``pip install .`` would install, built without a download."""
    command = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-build-isolation", "--no-deps"]
    # A build folder of its own: nothing that an earlier build left behind may help.
    command += ["--wheel-dir", str(folder), f"--config-settings=build-dir={folder / 'build'}", str(ROOT)]
    env = {**os.environ, **environment}
    result = subprocess.run(command, env=env, capture_output=True, text=True, timeout=BUILD_TIMEOUT_S, check=False)
    assert result.returncode == 0, result.stderr
    (wheel,) = folder.glob("*.whl")
    return wheel


def answer_of(wheel: Path, folder: Path, *arguments: str) -> Any:
    """What a command of refmq answers as JSON, as run from the unpacked wheel."""
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(folder)
    dependencies = sysconfig.get_paths()["platlib"]
    env = {**os.environ, "PYTHONPATH": os.pathsep.join([str(folder), dependencies])}
    env.pop("REFMQ_PURE", None)
    command = [sys.executable, "-S", "-m", "refmq", *arguments, "--json"]
    result = subprocess.run(command, env=env, cwd=folder, capture_output=True, text=True, timeout=60, check=False)
    assert result.returncode in (0, 3), result.stderr
    return json.loads(result.stdout)


def doctor_of(wheel: Path, folder: Path) -> dict[str, dict[str, str]]:
    """The lines of ``refmq doctor``, by name."""
    return {line["name"]: line for line in answer_of(wheel, folder, "doctor")["findings"]}


def specifications() -> set[str]:
    """The files of spec/ that the protocols are made of."""
    folders = [path.parent for path in (ROOT / "spec").glob("*/base.cfg")]
    assert folders
    return {str(path.relative_to(ROOT / "spec")) for folder in folders for path in folder.rglob("*") if path.is_file()}


@pytest.mark.skipif(find_compiler() is None, reason="there is no C compiler")
def test_with_a_compiler_the_extension_is_built_and_loaded(tmp_path: Path) -> None:
    wheel = build_wheel(tmp_path)
    assert not wheel.name.endswith("none-any.whl")
    names = zipfile.ZipFile(wheel).namelist()
    assert {"refmq/py.typed", "refmq_fast/py.typed", "refmq_fast/__init__.pyi"} <= set(names)
    assert [name for name in names if name.endswith((".c", ".h", ".a"))] == []
    protocols = "refmq/verify/spec/protocols/"
    assert {name.removeprefix(protocols) for name in names if name.startswith(protocols)} == specifications()
    assert doctor_of(wheel, tmp_path / "site")["extension"]["state"] == "ok"


def test_without_a_compiler_the_install_goes_on_and_the_doctor_says_so(tmp_path: Path) -> None:
    wheel = build_wheel(tmp_path, CC=str(tmp_path / "no-such-compiler"))
    assert wheel.name.endswith("py3-none-any.whl")
    extension = doctor_of(wheel, tmp_path / "site")["extension"]
    assert extension["state"] == "advice"
    assert extension["found"].startswith("off: it was not built when refmq was installed")
    assert extension["remedy"]
    listed = answer_of(wheel, tmp_path / "site", "spec", "list")["protocols"]
    assert {"StoreRecovery", "TransactionCheckBack", "Rebalance"} <= set(listed)
