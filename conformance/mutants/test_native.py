"""Mistakes in the C store are found, and a store without one is not accused. `python -m conformance.mutants native`
tries all of them; here are two that the first histories find."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

import refmq_fast
from conformance.mutants.native import HEADER, SOURCES, NativeMistake, build, native_line, native_mistakes, try_native

pytestmark = [
    pytest.mark.skipif(not refmq_fast.AVAILABLE, reason=f"extension is off: {refmq_fast.REASON}"),
    pytest.mark.skipif(shutil.which("cc") is None, reason="there is no C compiler"),
    pytest.mark.extension,
]

QUICK = ("index_one_key", "lose_tail")
SECONDS = 60.0


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where builds share what has no mistakes."""
    return tmp_path_factory.mktemp("native")


def test_every_mistake_has_a_place_in_the_sources() -> None:
    mistakes = native_mistakes()
    assert [mistake.number for mistake in mistakes] == list(range(1, len(mistakes) + 1))
    assert len(mistakes) >= 10
    text = "".join(path.read_text() for path in SOURCES.glob("store/*.c"))
    assert [one.name for one in mistakes if f"RMQ_IS_RIGHT(RMQ_MISTAKE_{one.name.upper()})" not in text] == []
    assert f"#define RMQ_MISTAKES {len(mistakes) + 1}\n" in HEADER.read_text()


@pytest.mark.parametrize("name", QUICK)
def test_a_mistake_is_found(name: str, folder: Path) -> None:
    (mistake,) = [one for one in native_mistakes() if one.name == name]
    answer = try_native(build(mistake.number, folder), SECONDS)
    print(native_line(mistake, answer))
    assert answer["by"], f"{name} survives {answer['tried']} histories"


def test_a_store_without_a_mistake_is_not_accused(folder: Path) -> None:
    answer = try_native(build(0, folder), 3.0)
    assert answer["by"] == ""
    assert answer["differs_after"] == 0
    assert "SURVIVES" in native_line(NativeMistake("none", 0, "nothing"), answer)
