"""The tables in spec/README.md: rows of what ran are replaced, the others stay."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from refmq.errors import UsageError
from refmq.verify.spec.catalogue import Expectation
from refmq.verify.spec.check import judge
from refmq.verify.spec.judging import Fate
from refmq.verify.spec.mutants import Mutant
from refmq.verify.spec.score import Score
from refmq.verify.spec.table import BEGIN, END, SCORES_BEGIN, SCORES_END, write_score, write_table
from refmq.verify.spec.tlc import Outcome, Progress
from tests.verify.spec.helpers import TOY, expecting


def test_the_table_replaces_the_rows_that_ran_and_keeps_the_others(tmp_path: Path) -> None:
    shutil.copytree(TOY, tmp_path, dirs_exist_ok=True)
    readme = tmp_path / "README.md"
    other = "| `turnstile/mc/free_entry` | ok | 5 | 2 | 1 s |"
    readme.write_text(f"before\n{BEGIN}\n{other}\n| `turnstile/mc/gone` | ok | 5 | 2 | 1 s |\n{END}\nafter\n")
    verdict = judge(expecting(Expectation("ok")), Outcome(progress=Progress(7, 9000, 1234), seconds=3.4))
    write_table(readme, [verdict])
    text = readme.read_text()
    assert "| `turnstile/mc/every_promise` | ok | 1,234 | 7 | 3.4 s |" in text
    assert other in text
    assert "gone" not in text
    assert text.startswith("before\n")
    assert text.endswith("after\n")
    readme.write_text("nothing")
    with pytest.raises(UsageError, match="no place for the table"):
        write_table(readme, [verdict])


def test_the_score_has_a_row_for_each_protocol(tmp_path: Path) -> None:
    readme = tmp_path / "README.md"
    readme.write_text(f"before\n{SCORES_BEGIN}\n| `Gone` | 1 |\n{SCORES_END}\nafter\n")
    shutil.copytree(TOY, tmp_path, dirs_exist_ok=True)
    mutant = Mutant("WalkIn", "drop", 3, "a < b", 1, 0, 5, "TRUE")
    score = Score([Fate(mutant), Fate(mutant, "turnstile/mc/every_promise", "found it")], {mutant.key: "because"})
    write_score(readme, "Turnstile", score.cells())
    text = readme.read_text()
    assert "| `Turnstile` | 2 | 1 | 50.0 % | 1 | 0 | 0 |" in text
    assert "Gone" not in text
    assert text.startswith("before\n") and text.endswith("after\n")
