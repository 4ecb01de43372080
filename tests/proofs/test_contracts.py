from __future__ import annotations

import pytest

pytest.importorskip("crosshair", reason="the extra `symbolic` is not installed; nox -s symbolic runs these tests")

from spec.proofs import contracts
from spec.proofs.check_contracts import Answer, check


def impossible(number: int) -> int:
    """
    pre: number > 0 and number < 0
    post: _ == 7
    """
    return number


def without_a_contract(number: int) -> int:
    return number


def test_a_contract_of_real_code_is_confirmed() -> None:
    outcome = check(contracts.offset_inside_its_queue, is_sound=True, seconds=30)
    assert outcome.answer is Answer.CONFIRMED, outcome


def test_its_broken_twin_is_refuted_with_arguments() -> None:
    outcome = check(contracts.broken_offset_inside_its_queue, is_sound=False, seconds=30)
    assert outcome.answer is Answer.REFUTED
    assert "broken_offset_inside_its_queue(" in outcome.detail
    assert outcome.is_as_expected


def test_a_broken_contract_that_should_hold_is_not_as_expected() -> None:
    assert not check(contracts.broken_offset_inside_its_queue, is_sound=True, seconds=30).is_as_expected


def test_a_contract_that_nothing_satisfies_was_not_checked() -> None:
    outcome = check(impossible, is_sound=True, seconds=5)
    assert outcome.answer is Answer.NOT_CHECKED, outcome
    assert not outcome.is_as_expected


def test_a_function_without_a_contract_was_not_checked() -> None:
    assert check(without_a_contract, is_sound=True, seconds=5).answer is Answer.NOT_CHECKED


def test_every_contract_of_the_module_is_listed() -> None:
    listed = {contract.__name__ for contract in (*contracts.SOUND, *contracts.BROKEN)}
    promised = {name for name, value in vars(contracts).items() if callable(value) and "post:" in (value.__doc__ or "")}
    assert promised == listed
