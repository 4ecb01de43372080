"""The score of a mutation run, and each thing that can be wrong with it."""

from __future__ import annotations

import pytest

from refmq.verify.spec.judging import Fate
from refmq.verify.spec.mutants import Mutant, Reasons
from refmq.verify.spec.score import Score

MUTANT = Mutant("WalkIn", "drop", 3, "a < b", 1, 0, 5, "TRUE")
OTHER = Mutant("WalkIn", "swap", 4, "a < c", 1, 6, 9, "<=")
KILLED = Fate(MUTANT, "judge", "found it")
SURVIVED = Fate(MUTANT)


def test_killed_and_explained_mutants_are_counted() -> None:
    score = Score([KILLED] * 3 + [SURVIVED], {MUTANT.key: "because"})
    assert score.cells() == (4, 3, "75.0 %", 1, 0, 0)
    assert score.complaint("Toy", complete=False) == ""


@pytest.mark.parametrize(
    ("fates", "reasons", "complaint"),
    [
        ([KILLED], {}, ""),
        ([], {}, ""),
        ([Fate(MUTANT, "judge", "parse error", broken=True)], {}, "1 mutants do not parse"),
        ([KILLED, Fate(MUTANT, undecided_by="judge")], {}, "1 mutants are undecided"),
        ([KILLED, SURVIVED], {}, "1 survivors have no reason in judges/Toy.survivors.toml"),
        ([KILLED], {OTHER.key: "because"}, "explains mutants that did not survive"),
        ([KILLED, SURVIVED], {MUTANT.key: "because"}, "the score of Toy is below 95 %"),
        ([KILLED] * 19 + [SURVIVED], {MUTANT.key: "because"}, ""),
    ],
)
def test_whatever_is_wrong_is_said(fates: list[Fate], reasons: Reasons, complaint: str) -> None:
    said = Score(fates, reasons).complaint("Toy", complete=True)
    assert complaint in said
    assert bool(said) == bool(complaint)
