"""A judge that does not finish in time has said nothing: it is asked again with more time."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner

from refmq.cli.spec import command, report_mutants
from refmq.errors import CheckFound, UsageError
from refmq.verify.spec.catalogue import find_configurations
from refmq.verify.spec.check import RunOptions
from refmq.verify.spec.judging import FIRST_LIMIT_S, LAST_LIMIT_S, Fate, judge_mutants
from refmq.verify.spec.mutants import mutants_of
from refmq.verify.spec.score import Score
from refmq.verify.spec.tlc import Found, Outcome, Tlc
from tests.verify.spec.helpers import TOY, TURNSTILE

JUDGE = "turnstile/mc/every_promise"
ALL_TAKEN = {"InsertCoin": 1, "WalkIn": 1}

Answer = Callable[[bool, float], Outcome]


def content() -> Outcome:
    return Outcome(coverage=ALL_TAKEN)


def judge_with(
    answer: Answer, monkeypatch: pytest.MonkeyPatch, cache: Path | None = None, timeout_s: int | None = None
) -> tuple[Fate, list[float]]:
    """The fate of one mutant when TLC answers so; and the limits that it had for the mutant."""
    limits: list[float] = []
    original = TURNSTILE.read_text()

    def run(tlc: Tlc, module: Path, cfg: str, **options: object) -> Outcome:
        is_mutant = (module.parent / TURNSTILE.name).read_text() != original
        limit_s = options["timeout_s"]
        assert isinstance(limit_s, int)
        if is_mutant:
            limits.append(limit_s)
        return answer(is_mutant, limit_s)

    monkeypatch.setattr("refmq.verify.spec.judging.run_tlc", run)
    judges = [one for one in find_configurations(TOY, "MC") if one.mutants]
    mutant = mutants_of(original)[0]
    tlc = Tlc((), ("no program",), "none")
    fates = judge_mutants(tlc, TURNSTILE, [mutant], judges, RunOptions(timeout_s=timeout_s), 1, None, cache)
    return fates[0], limits


def test_a_late_judge_is_asked_again_with_more_time(monkeypatch: pytest.MonkeyPatch) -> None:
    def answer(is_mutant: bool, limit_s: float) -> Outcome:
        if not is_mutant:
            return content()
        return Outcome(found=Found.TIMEOUT if limit_s == FIRST_LIMIT_S else Found.DEADLOCK)

    fate, limits = judge_with(answer, monkeypatch)
    assert limits == [FIRST_LIMIT_S, LAST_LIMIT_S]
    assert "found deadlock" in fate.finding


@pytest.mark.parametrize(
    "silent",
    [
        Outcome(found=Found.TIMEOUT),
        Outcome(found=Found.ERROR, errors=["java.lang.OutOfMemoryError: Java heap space"]),
        Outcome(found=Found.ERROR, errors=["TLC ended with code -9"]),
    ],
)
def test_a_silent_judge_leaves_the_mutant_undecided(
    silent: Outcome, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    fate, limits = judge_with(lambda is_mutant, limit_s: silent if is_mutant else content(), monkeypatch)
    assert limits == [FIRST_LIMIT_S, LAST_LIMIT_S]
    assert (fate.killed_by, fate.undecided_by) == ("", JUDGE)
    assert fate.mutant is not None
    score = Score([fate], {fate.mutant.key: "a reason does not help: nobody knows whether it survives"})
    assert score.cells() == (1, 0, "0.0 %", 0, 0, 1)
    with pytest.raises(CheckFound, match="1 mutants are undecided"):
        report_mutants("Turnstile", score, {}, False, False)
    assert "undecided InsertCoin" in capsys.readouterr().out


def test_a_late_verdict_is_kept_only_for_the_time_that_it_had(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def late(is_mutant: bool, limit_s: float) -> Outcome:
        return Outcome(found=Found.TIMEOUT) if is_mutant else content()

    def deadlock(is_mutant: bool, limit_s: float) -> Outcome:
        return Outcome(found=Found.DEADLOCK) if is_mutant else content()

    cache = tmp_path / "verdicts"
    assert judge_with(late, monkeypatch, cache, 5)[1] == [5]
    assert judge_with(late, monkeypatch, cache, 5)[1] == [], "it is known that 5 s are not enough"
    fate, limits = judge_with(deadlock, monkeypatch, cache, 6)
    assert (limits, fate.killed_by) == ([6], JUDGE)
    assert judge_with(late, monkeypatch, cache, 900)[0].killed_by == JUDGE, "a finding is kept for good"


def test_a_late_original_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(CheckFound, match="without any mutation turnstile/mc/every_promise takes more than 900 s"):
        judge_with(lambda is_mutant, limit_s: Outcome(found=Found.TIMEOUT), monkeypatch)


def test_a_score_of_some_mutants_is_not_written() -> None:
    arguments = ["mutate", "Turnstile", "--only", "WalkIn", "--write-table", "--spec-dir", str(TOY)]
    result = CliRunner().invoke(command, arguments)
    assert isinstance(result.exception, UsageError)
