"""Every attack, on both engines."""

from __future__ import annotations

from pathlib import Path

import pytest

import refmq_fast
from conformance.hostile.attacks import EVERY, Attack
from conformance.hostile.target import attacked

FAST = pytest.param(
    "fast",
    marks=[
        pytest.mark.extension,
        pytest.mark.skipif(not refmq_fast.AVAILABLE, reason=f"extension is off: {refmq_fast.REASON}"),
    ],
)


@pytest.mark.parametrize("engine", ["reference", FAST])
@pytest.mark.parametrize("given", EVERY, ids=lambda each: each.name)
def test_the_server_and_its_neighbour_do_not_mind(given: Attack, engine: str, tmp_path: Path) -> None:
    with attacked(tmp_path, engine, dict(given.settings)) as (target, _):
        given.run(target)


def test_every_attack_has_a_name_of_its_own() -> None:
    names = [each.name for each in EVERY]
    assert len(set(names)) == len(names) >= 15
