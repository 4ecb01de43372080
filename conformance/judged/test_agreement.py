"""TLC and the oracles on altered runs: the same verdict, or the difference is named."""

from __future__ import annotations

import pytest

from conformance.judged import agreement, differences
from conformance.judged.differences import NUMBERS
from refmq.verify.spec.recordings import judge_recording
from refmq.verify.spec.tlc import Tlc

pytestmark = pytest.mark.jdk


def test_the_run_itself_is_accepted_by_both(tlc: Tlc) -> None:
    assert agreement.is_numbered(agreement.recorded())
    told = agreement.of_tlc(agreement.recorded())  # the oracles have judged it: it would not be here otherwise
    verdicts = list(judge_recording(tlc, agreement.SPEC, told, agreement.OPTIONS, agreement.SETTINGS))
    assert [verdict.protocol for verdict in verdicts] == list(agreement.JUDGES)
    assert [verdict.answer.reason for verdict in verdicts if not verdict.answer.accepted] == []


@pytest.mark.slow
def test_both_notice_an_altered_event_or_the_difference_is_named(tlc: Tlc, capsys: pytest.CaptureFixture[str]) -> None:
    found = {
        (action, what): agreement.noticed_by(tlc, action, altered)
        for action, what, altered in agreement.cases(agreement.recorded())
    }
    with capsys.disabled():
        both, by_numbers = sum(not who for who in found.values()), sum(who == NUMBERS for who in found.values())
        print(f"\nTLC and the oracles both notice {both + by_numbers} of {len(found)} altered runs", end="")
        print(f", {by_numbers} of them by the numbers of the events")
    assert {case: who for case, who in found.items() if who} == {
        case: who for case, (who, _) in differences.NOT_BY_BOTH.items()
    }


def test_the_table_of_the_book_has_every_difference() -> None:
    text = differences.as_markdown()
    assert all(f"| `{action}` |" in text for action, _ in differences.NOT_BY_BOTH)
    assert all(why in text for _, why in differences.NOT_BY_BOTH.values())
