"""One vocabulary: every name is found wherever it should be."""

from __future__ import annotations

import pytest

from conformance import vocabulary as table
from refmq.model import vocabulary
from refmq.model.vocabulary import By, fields_of


def test_every_action_is_found_on_every_side_where_it_should_be() -> None:
    missing = {f"{row.protocol}.{row.action.name}": row.missing() for row in table.rows() if row.missing()}
    assert missing == {}


@pytest.mark.parametrize("module", sorted(table.specified()))
def test_a_specification_has_no_action_that_the_vocabulary_does_not_have(module: str) -> None:
    (protocol,) = [protocol for protocol in vocabulary.PROTOCOLS if protocol.module == module]
    assert set(table.specified()[module]) <= {action.name for action in protocol.actions}


def test_every_promise_has_an_oracle_or_a_reason() -> None:
    judged = table.oracles()
    without = [(owner, invariant) for owner, invariant in table.promises() if invariant.name not in judged]
    assert [invariant.name for owner, invariant in without if not table.reason(owner, invariant)] == []


def test_every_oracle_judges_a_promise() -> None:
    assert set(table.oracles()) <= {invariant.name for _, invariant in table.promises()}


def test_a_missing_side_is_seen() -> None:
    action = vocabulary.Action("NeverWritten", By.NODE, "Nobody takes it.")
    assert table.Row("Rebalance", action, {"spec": "here"}).missing() == ["step", "event"]
    action = vocabulary.Action("NeverHappens", By.ENVIRONMENT, "Nothing does it.")
    assert table.Row("Rebalance", action, {"spec": "here"}).missing() == ["history"]


def test_an_action_of_two_protocols_has_the_same_fields_in_both() -> None:
    seen: dict[str, tuple[str, ...]] = {}
    for protocol in vocabulary.PROTOCOLS:
        for action in protocol.actions:
            known = seen.setdefault(action.name, action.fields)
            assert not known or not action.fields or known == action.fields, action.name
            assert len(action.fields) <= 4


def test_the_step_of_an_action_is_its_name_in_snake_case() -> None:
    assert vocabulary.Action("HalfRenewAndCheck", By.NODE, "").step == "half_renew_and_check"


def test_fields_depend_on_the_outcome() -> None:
    assert fields_of("CommitOffset", "step") == ("before", "after")
    assert fields_of("Pull", "ok") == ("from_offset", "next_offset", "max_offset", "status")
    assert fields_of("Pull", "consumed") == vocabulary.CONSUMED_FIELDS
    assert fields_of("NoSuchAction", "step") == ()


def test_the_page_has_every_name() -> None:
    page = table.as_markdown()
    for protocol in vocabulary.PROTOCOLS:
        for action in protocol.actions:
            assert f"| `{action.name}` |" in page
    assert "none:  |" not in page
