"""Mistakes in the C store, plane and shell are found, and without one nobody is accused. `python -m conformance.mutants
native` tries all of them; here are some that are found quickly."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

import refmq_fast
from conformance.mutants.native import (
    HEADERS,
    KINDS,
    SOURCES,
    NativeMistake,
    build,
    native_line,
    native_mistakes,
    try_native,
)

pytestmark = [
    pytest.mark.skipif(not refmq_fast.AVAILABLE, reason=f"extension is off: {refmq_fast.REASON}"),
    pytest.mark.skipif(shutil.which("cc") is None, reason="there is no C compiler"),
    pytest.mark.extension,
]

QUICK = ("index_one_key", "lose_tail", "ack_before_flush", "bars_ignored", "access_unchecked")
SECONDS = 60.0
MORE_SECONDS = 5.0
"""For a difference between the engines, which is printed and not asserted: a lost tail never makes one."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where builds share what has no mistakes."""
    return tmp_path_factory.mktemp("native")


def test_every_mistake_has_a_place_in_the_sources() -> None:
    mistakes = native_mistakes()
    assert [mistake.kind for mistake in mistakes].count("store") >= 10
    assert [mistake.kind for mistake in mistakes].count("cluster") >= 10
    assert len({mistake.number for mistake in mistakes}) == len(mistakes)
    text = "".join(path.read_text() for folder in KINDS for path in SOURCES.glob(f"{folder}/*.c"))
    assert [one.name for one in mistakes if f"RMQ_IS_RIGHT(RMQ_MISTAKE_{one.name.upper()})" not in text] == []
    assert all("#define RMQ_MISTAKE_" in header.read_text() for header in HEADERS)


@pytest.mark.parametrize("name", QUICK)
def test_a_mistake_is_found(name: str, folder: Path) -> None:
    (mistake,) = [one for one in native_mistakes() if one.name == name]
    answer = try_native(build(mistake.number, folder), SECONDS, mistake.kind, MORE_SECONDS)
    print(native_line(mistake, answer))
    assert answer["by"], f"{name} survives {answer['tried']} histories"


@pytest.mark.parametrize("kind", ["store", "cluster"])
def test_nobody_without_a_mistake_is_accused(kind: str, folder: Path) -> None:
    answer = try_native(build(0, folder), 3.0, kind)
    assert answer["by"] == ""
    assert answer["differs_after"] == 0
    assert "SURVIVES" in native_line(NativeMistake("none", 0, "nothing"), answer)
