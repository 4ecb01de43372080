"""Finding a Java runtime among pretended ones: small scripts that print a version."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from refmq.errors import MissingTool
from refmq.tools import jdk

NOWHERE = Path("/nonexistent")


def pretend_java(folder: Path, version: str, *, exit_code: int = 0) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "java"
    path.write_text(f"#!/bin/sh\necho 'openjdk version \"{version}\" 2023-10-17' >&2\nexit {exit_code}\n")
    path.chmod(0o755)
    return path


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('openjdk version "17.0.15" 2025-04-15\nOpenJDK Runtime', ("17.0.15", 17)),
        ('java version "1.8.0_392"', ("1.8.0_392", 8)),
        ('openjdk version "21" 2023-09-19', ("21", 21)),
        ('openjdk version "25-ea" 2025-09-16', ("25-ea", 25)),
        ('Picked up JAVA_TOOL_OPTIONS: -Xmx1g\nopenjdk version "17.0.1"', ("17.0.1", 17)),
        ("no version at all", None),
    ],
)
def test_versions_are_understood(text: str, expected: tuple[str, int] | None) -> None:
    assert jdk.parse_version(text) == expected


def test_java_home_comes_before_path(tmp_path: Path) -> None:
    home = pretend_java(tmp_path / "home/bin", "21.0.1")
    pretend_java(tmp_path / "path", "17.0.2")
    java = jdk.find_java({"JAVA_HOME": str(tmp_path / "home"), "PATH": str(tmp_path / "path")}, NOWHERE)
    assert java == jdk.Java(home, "21.0.1", 21)
    assert java.home == tmp_path / "home"


@pytest.mark.parametrize("home", ["1.8.0_392", "16.0.2", "", "nonsense"])
def test_an_old_or_broken_java_home_is_passed_over(tmp_path: Path, home: str) -> None:
    if home:
        pretend_java(tmp_path / "home/bin", home)
    good = pretend_java(tmp_path / "path", "17.0.2")
    java = jdk.find_java({"JAVA_HOME": str(tmp_path / "home"), "PATH": str(tmp_path / "path")}, NOWHERE)
    assert java == jdk.Java(good, "17.0.2", 17)


def test_debians_folder_is_looked_at_last(tmp_path: Path) -> None:
    pretend_java(tmp_path / "path", "11.0.2")
    good = pretend_java(tmp_path / "jvm/java-17-openjdk-amd64/bin", "17.0.9")
    java = jdk.find_java({"PATH": str(tmp_path / "path")}, tmp_path / "jvm")
    assert java == jdk.Java(good, "17.0.9", 17)


def test_a_java_that_fails_is_none(tmp_path: Path) -> None:
    pretend_java(tmp_path, "17.0.9", exit_code=1)
    assert jdk.find_java({"PATH": str(tmp_path)}, NOWHERE) is None


@pytest.fixture
def no_java(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jdk, "find_java", lambda: None)


@pytest.mark.usefixtures("no_java")
def test_without_java_the_error_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jdk, "can_install", lambda: False)
    with pytest.raises(MissingTool, match="openjdk-17-jre-headless"):
        jdk.ensure_java()


@pytest.mark.usefixtures("no_java")
def test_main_says_it_in_one_line(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(jdk, "can_install", lambda: False)
    assert jdk.main() == 1
    out, err = capsys.readouterr()
    assert out == ""
    assert err.count("\n") == 1
    assert "JAVA_HOME" in err


def test_where_it_may_be_installed_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    commands: list[list[str]] = []
    java = jdk.Java(Path("/usr/bin/java"), "17.0.9", 17)
    monkeypatch.setattr(jdk, "can_install", lambda: True)
    monkeypatch.setattr(jdk, "find_java", lambda: java if jdk.INSTALL in commands else None)

    def run(command: list[str], **_: object) -> None:
        commands.append(command)
        if command == jdk.UPDATE:
            raise subprocess.CalledProcessError(100, command)  # one of many sources is down: not the end

    monkeypatch.setattr(subprocess, "run", run)
    assert jdk.ensure_java() == java
    assert commands == [jdk.UPDATE, jdk.INSTALL]


def test_an_install_that_fails_ends_in_the_same_clear_line(monkeypatch: pytest.MonkeyPatch) -> None:
    def run(command: list[str], **_: object) -> None:
        raise subprocess.TimeoutExpired(command, jdk.INSTALL_TIMEOUT_S)

    monkeypatch.setattr(jdk, "can_install", lambda: True)
    monkeypatch.setattr(jdk, "find_java", lambda: None)
    monkeypatch.setattr(subprocess, "run", run)
    with pytest.raises(MissingTool):
        jdk.ensure_java()
