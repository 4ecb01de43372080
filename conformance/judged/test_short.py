"""The long trace modules accept and refuse what the short ones do, or the difference is named."""

from __future__ import annotations

import pytest

from conformance.judged import differences, short
from refmq.verify.spec.tlc import Tlc

pytestmark = pytest.mark.jdk


@pytest.mark.parametrize("name", short.SUBJECTS)
def test_both_modules_accept_the_run(tlc: Tlc, name: str) -> None:
    subject = short.SUBJECTS[name]
    assert subject.short(tlc, subject.run())
    assert subject.long(tlc, subject.run())


@pytest.mark.slow
@pytest.mark.parametrize("actions", [short.OF_TRANSACTIONS, short.OF_GROUPS], ids=["transactions", "groups"])
def test_both_modules_refuse_the_same_alterations_or_the_difference_is_named(tlc: Tlc, actions: frozenset[str]) -> None:
    found: dict[tuple[str, str], str] = {}
    for subject in short.SUBJECTS.values():
        if {told.event.action for told in subject.run() if subject.concerns(told)} <= actions:
            found |= short.different(tlc, subject)
    named = {case: who for case, (who, _) in differences.BY_ONE_MODULE.items() if case[0] in actions}
    assert found == named


def test_every_named_difference_is_one_of_some_run() -> None:
    possible = {(action, what) for subject in short.SUBJECTS.values() for action, what, _ in short.cases(subject)}
    assert set(differences.BY_ONE_MODULE) <= possible
    text = differences.modules_as_markdown()
    assert all(why in text for _, why in differences.BY_ONE_MODULE.values())
