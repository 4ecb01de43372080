"""Every mistake of access control is found by tests, which blame nothing without it. Prints the table."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest

from conformance.mutants.access import ATTACKS, FILES, NAMES, PURE, SEEDED_ACCESS, try_access
from conformance.mutants.mechanical import source_of

JOBS = 2


def test_every_mistake_is_found(capsys: pytest.CaptureFixture[str]) -> None:
    with ThreadPoolExecutor(JOBS) as pool:
        outcomes = list(pool.map(try_access, SEEDED_ACCESS))
    with capsys.disabled():
        print()
        for trial, (_, first) in zip(SEEDED_ACCESS, outcomes, strict=True):
            print(f"{trial.mistake.bug:5} {trial.mistake.name:30} {first or 'SURVIVES'}")
    found = zip(SEEDED_ACCESS, outcomes, strict=True)
    assert [trial.mistake.name for trial, (is_found, _) in found if not is_found] == []


def test_without_a_mistake_nothing_is_found() -> None:
    assert try_access(None, (*PURE, *ATTACKS, *FILES, *NAMES)) == (False, "")


def test_every_mistake_fits_its_module_and_has_a_name_of_its_own() -> None:
    mistakes = [trial.mistake for trial in SEEDED_ACCESS]
    assert len({each.name for each in mistakes}) == len(mistakes)
    for each in mistakes:
        assert each.change()(source_of(each.module)) != source_of(each.module)
