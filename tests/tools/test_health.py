"""Each line of the doctor, well and unwell."""

from __future__ import annotations

import importlib.util
import shutil
from pathlib import Path

import pytest

import refmq_fast
from refmq.tools import health
from refmq.tools.health import GIB, State
from refmq.tools.jdk import Java

JAVA = Java(Path("/usr/bin/java"), "17.0.9", 17)


def test_an_old_python_is_a_problem() -> None:
    assert health.python((3, 10, 9)).state is State.PROBLEM
    assert health.python((3, 11, 0)).state is State.OK


@pytest.mark.skipif(not refmq_fast.AVAILABLE, reason="extension is off")
def test_a_loaded_extension_is_well() -> None:
    assert health.extension(True, "built and loaded").state is State.OK


@pytest.mark.parametrize(
    ("pure", "compiler", "remedy"),
    [
        ("1", None, "Unset REFMQ_PURE"),
        ("", None, "Install a C compiler"),
        ("", "/usr/bin/cc", "install --force-reinstall"),
    ],
)
def test_an_extension_that_is_off_is_advice_with_the_right_remedy(
    monkeypatch: pytest.MonkeyPatch, pure: str, compiler: str | None, remedy: str
) -> None:
    monkeypatch.setenv("REFMQ_PURE", pure)
    monkeypatch.setattr(shutil, "which", lambda name: compiler)
    finding = health.extension(False, "some reason")
    assert finding.state is State.ADVICE
    assert "off: some reason" in finding.found
    assert remedy in finding.remedy


def test_tlc_needs_its_jar_and_java() -> None:
    jar = Path("/opt/tla2tools.jar")
    assert health.java_runtime(JAVA).state is State.OK
    assert health.java_runtime(None).state is State.ADVICE
    assert health.model_checker(jar, JAVA).state is State.OK
    assert "JDK" in health.model_checker(jar, None).remedy
    assert "refmq[spec]" in health.model_checker(None, JAVA).remedy


def test_spark_that_is_not_installed_is_advice(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    assert "refmq[spark]" in health.spark(JAVA).remedy


def test_spark_without_java_cannot_run(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: object())
    monkeypatch.setattr(importlib.metadata, "version", lambda name: "4.0.0")
    assert health.spark(JAVA).found == "pyspark 4.0.0"
    assert "JDK" in health.spark(None).remedy


@pytest.mark.parametrize(
    ("free_bytes", "state"),
    [(2 * GIB, State.OK), (2 * GIB - 1, State.ADVICE), (GIB // 4, State.ADVICE), (GIB // 4 - 1, State.PROBLEM)],
)
def test_free_disk(tmp_path: Path, free_bytes: int, state: State) -> None:
    assert health.free_disk(tmp_path, free_bytes).state is state


@pytest.mark.parametrize(
    ("limits", "state", "remedy"),
    [
        ((-1, -1), State.OK, ""),
        ((4096, 4096), State.OK, ""),
        ((1024, 524288), State.ADVICE, "ulimit -n 4096"),
        ((1024, -1), State.ADVICE, "ulimit -n 4096"),
        ((1024, 2048), State.ADVICE, "administrator"),
        ((64, 64), State.PROBLEM, "administrator"),
    ],
)
def test_open_files(limits: tuple[int, int], state: State, remedy: str) -> None:
    finding = health.open_files(limits)
    assert finding.state is state
    assert remedy in finding.remedy
