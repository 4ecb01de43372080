"""Every seeded mistake is found by the histories, and the unchanged store is not blamed. Prints the table."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest

from conformance.base import replay_file
from conformance.mutants.__main__ import (
    KILLERS,
    SEEDED_OF,
    modules_of,
    run_trial,
    seeded_line,
    try_seeded,
)
from conformance.mutants.equivalent import read, sort_out
from conformance.mutants.mechanical import changed, mutants_of, source_of
from conformance.mutants.seeded import NOT_OURS, SEEDED, Seeded

SECONDS = 40.0
"""For each mistake; the saved history finds it in a second, and if that fits no longer others are tried."""
JOBS = 2


def test_every_seeded_mistake_is_found(capsys: pytest.CaptureFixture[str]) -> None:
    with ThreadPoolExecutor(JOBS) as pool:
        outcomes = list(pool.map(lambda mutant: try_seeded(mutant, SECONDS), SEEDED))
    with capsys.disabled():
        print()
        for mutant, outcome in zip(SEEDED, outcomes, strict=True):
            print(seeded_line(mutant, outcome))
        for bug, reason in NOT_OURS.items():
            print(f"{bug:7} {'not ours':26} {reason}")
    survivors = [mutant.name for mutant, outcome in zip(SEEDED, outcomes, strict=True) if not outcome["caught"]]
    assert survivors == []


@pytest.mark.parametrize("path", sorted(KILLERS.glob("*.json")), ids=lambda path: path.stem)
def test_a_history_that_finds_a_mistake_breaks_nothing_without_it(path: object) -> None:
    assert replay_file(path) == []  # type: ignore[arg-type]  # ids= makes pytest call it an object


def test_a_change_that_means_nothing_is_not_found() -> None:
    old = "        return self.log.readable\n\n    def close"
    assert source_of("refmq.store.parts").count(old) == 1
    outcome = run_trial({"module": "refmq.store.parts", "old": old, "new": f"        # same\n{old}"}, 1.0, 0, [])
    assert not outcome["caught"]
    assert outcome["tried"] > 0


@pytest.mark.parametrize("kind", ["store", "cluster"])
def test_every_module_that_is_scored_has_mutants(kind: str) -> None:
    assert [module for module in modules_of(kind) if not mutants_of(module)] == []


def test_every_seeded_mistake_fits_its_module_and_has_a_name_of_its_own() -> None:
    every = [mutant for group in SEEDED_OF.values() for mutant in group]
    stale = []
    for mutant in every:
        try:
            compile(mutant.change()(source_of(mutant.module)), mutant.module, "exec")
        except LookupError as error:
            stale.append(f"{mutant.name}: {error}")
    assert stale == []
    for group in SEEDED_OF.values():
        names = [mutant.name for mutant in group]
        assert [name for name in names if names.count(name) > 1] == []


@pytest.mark.parametrize("function", ["", "Parts.over", "Parts.no_such", "NoSuch.over"])
def test_a_mutant_that_fits_no_longer_is_said_to_be_stale(function: str) -> None:
    mutant = {"module": "refmq.store.parts", "old": "no such text", "new": "", "function": function}
    outcome = run_trial(mutant, 1.0, 0, [])
    assert not outcome["caught"]
    assert "does not fit" in outcome["by"]


def test_a_mistake_in_a_function_fits_whatever_the_source_looks_like() -> None:
    mistake = Seeded("n", "", "t", "m", "flush(a)", "pass", "C.f")
    one = "class C:\n    def f(self, a):\n        flush(a)  # why\n\n    def g(self, a):\n        flush(a)\n"
    other = "class C:\n    def f(self, a):\n        flush(\n            a\n        )\n    def g(self, a): flush(a)\n"
    assert mistake.change()(one) == mistake.change()(other)
    assert mistake.change()(one).count("flush(a)") == 1


def test_every_entry_of_the_equivalents_fits_a_mutant() -> None:
    modules = [module for kind in SEEDED_OF for module in modules_of(kind)]
    mistakes, none, unused = sort_out((m for module in dict.fromkeys(modules) for m in mutants_of(module)), read())
    assert unused == []
    assert len(none) >= len(read())
    assert len(mistakes) > len(none)


SOURCE = """
def f(self, a, b):
    flush(a)
    write(b)
    if a < b and b:
        self.x = a + 1
    for i in a:
        break
"""


def test_every_rule_changes_its_place() -> None:
    variants = set()
    number = 0
    while True:
        try:
            variants.add(changed(SOURCE, number))
        except LookupError:
            break
        number += 1
    text = "\n".join(variants)
    for expected in (
        "pass\n    write(b)",
        "write(b)\n    flush(a)",
        "a <= b",
        "a < b or b",
        "if False:",
        "if True:",
        "a + 2",
        "a + 0",
        "a - 1",
        "continue",
        "if a < b and b:\n        pass",
    ):
        assert expected in text
    assert len(variants) == number
