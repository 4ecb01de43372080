"""TLC's classes are kept for the next run, and only for the same Java and the same jar."""

from __future__ import annotations

from pathlib import Path

import pytest

from refmq.verify.spec.archive import ARCHIVE_NAME, archive_options, archive_path, keep_archive


@pytest.fixture
def programs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Path, Path]:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    java, jar = tmp_path / "java", tmp_path / "tla2tools.jar"
    java.write_bytes(b"java")
    jar.write_bytes(b"jar")
    return java, jar


def test_the_first_run_makes_an_archive_and_the_next_one_uses_it(programs: tuple[Path, Path], tmp_path: Path) -> None:
    java, jar = map(str, programs)
    archive = archive_path(java, jar)
    assert archive is not None
    assert f"-XX:ArchiveClassesAtExit={tmp_path / ARCHIVE_NAME}" in archive_options(archive, tmp_path)
    keep_archive(archive, tmp_path)
    assert not archive.exists(), "a run that ended early has made none"
    (tmp_path / ARCHIVE_NAME).write_bytes(b"classes")
    keep_archive(archive, tmp_path)
    assert archive.read_bytes() == b"classes"
    assert f"-XX:SharedArchiveFile={archive}" in archive_options(archive, tmp_path)
    assert list(archive.parent.iterdir()) == [archive]


def test_another_jar_has_another_archive(programs: tuple[Path, Path]) -> None:
    java, jar = programs
    before = archive_path(str(java), str(jar))
    jar.write_bytes(b"a newer jar")
    assert archive_path(str(java), str(jar)) != before
    assert archive_path(str(java), str(jar.parent / "missing.jar")) is None


def test_without_a_place_for_it_everything_works_as_usual(programs: tuple[Path, Path], tmp_path: Path) -> None:
    archive = archive_path(*map(str, programs))
    assert archive is not None
    (tmp_path / "cache").write_text("a file where the folder would be")
    (tmp_path / ARCHIVE_NAME).write_bytes(b"classes")
    keep_archive(archive, tmp_path)
    assert archive_options(None, tmp_path) == []
