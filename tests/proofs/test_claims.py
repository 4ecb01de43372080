from __future__ import annotations

import json

import pytest

pytest.importorskip("z3", reason="the extra `symbolic` is not installed; nox -s symbolic runs these tests")

import z3

from spec.proofs import __main__ as command
from spec.proofs.catalogue import CLAIMS
from spec.proofs.claim import Claim, Obligation, Twin, Verdict, judge


@pytest.mark.parametrize("claim", CLAIMS, ids=lambda claim: claim.name)
def test_a_claim_is_proved(claim: Claim) -> None:
    judgement = judge(claim.obligations(claim.rule))
    assert judgement.verdict is Verdict.PROVED, judgement


@pytest.mark.parametrize(
    ("claim", "twin"), [pytest.param(claim, twin, id=twin.mistake) for claim in CLAIMS for twin in claim.twins]
)
def test_a_broken_twin_is_refuted_by_a_model(claim: Claim, twin: Twin) -> None:
    judgement = judge(claim.obligations(twin.rule))
    assert judgement.verdict is Verdict.REFUTED, judgement
    assert "=" in judgement.model


@pytest.mark.parametrize("claim", CLAIMS, ids=lambda claim: claim.name)
def test_every_obligation_about_the_rule_is_seen_to_fail(claim: Claim) -> None:
    broken = {
        obligation.name
        for twin in claim.twins
        for obligation in claim.obligations(twin.rule)
        if judge([obligation]).verdict is Verdict.REFUTED
    }
    obligations = list(claim.obligations(claim.rule))
    assert [one.name for one in obligations if one.name not in broken and not one.is_lemma] == []
    assert len({one.name for one in obligations}) == len(obligations)


def test_every_claim_has_a_twin_and_a_name_of_its_own() -> None:
    assert [claim.name for claim in CLAIMS if not claim.twins] == []
    assert len({claim.name for claim in CLAIMS}) == len(CLAIMS)


def test_contradicting_assumptions_are_not_taken_for_a_proof() -> None:
    x = z3.Int("x")
    assert judge([Obligation("empty", (x > 0, x < 0), x == 7)]).verdict is Verdict.VACUOUS


def test_no_obligation_is_no_proof() -> None:
    assert judge([]).verdict is Verdict.UNDECIDED


def test_what_z3_cannot_decide_is_no_proof() -> None:
    a, b, c = z3.Ints("a b c")
    fermat = Obligation("cubes", (a > 0, b > 0, c > 0), a * a * a + b * b * b != c * c * c)
    assert judge([fermat], timeout_ms=50).verdict is Verdict.UNDECIDED


def test_the_command_exits_with_3_when_a_twin_is_taken_for_a_claim(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    sound = next(claim for claim in CLAIMS if claim.name == "level queue")
    broken = Claim("broken", sound.says, sound.obligations, sound.twins[0].rule, ())
    monkeypatch.setattr("spec.proofs.catalogue.CLAIMS", (sound,))
    assert command.main(["--json"]) == 0
    monkeypatch.setattr("spec.proofs.catalogue.CLAIMS", (broken,))
    capsys.readouterr()
    assert command.main(["--json"]) == 3
    found = json.loads(capsys.readouterr().out)
    assert (found["expected"], found["found"]) == ("proved", "refuted")
    assert "level" in found["model"]


def test_the_command_exits_with_3_when_a_twin_is_not_refuted(monkeypatch: pytest.MonkeyPatch) -> None:
    sound = next(claim for claim in CLAIMS if claim.name == "level queue")
    toothless = Claim("toothless", sound.says, sound.obligations, sound.rule, (Twin("no mistake", sound.rule),))
    monkeypatch.setattr("spec.proofs.catalogue.CLAIMS", (toothless,))
    assert command.main([]) == 3
