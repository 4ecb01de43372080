"""One vocabulary: every name is found where it should be, and no excuse is out of date."""

from __future__ import annotations

import pytest

from conformance import homes
from conformance import vocabulary as table
from refmq.model import vocabulary
from refmq.model.vocabulary import By, fields_of

ROWS = {(row.protocol, row.action.name): row for row in table.rows()}
HOMES = [(protocol, action, home) for protocol, known in homes.HOMES.items() for action, home in known.items()]


def test_every_action_is_found_on_every_side_where_it_should_be() -> None:
    missing = {f"{protocol}.{name}": row.missing() for (protocol, name), row in ROWS.items() if row.missing()}
    assert missing == {}


@pytest.mark.parametrize(("protocol", "action", "home"), HOMES, ids=lambda one: one if isinstance(one, str) else "")
def test_a_home_is_exactly_where_it_says(protocol: str, action: str, home: homes.Home) -> None:
    row = ROWS[protocol, action]
    assert not home.step or homes.exists(home.step), f"there is no {home.step}"
    for place in home.recorders():
        assert homes.records(place, action), f"{place} does not record {action}"
    name = home.step.rpartition(":")[2].rpartition(".")[2]
    has_its_name = name in ("", row.action.step, f"serve_{row.action.step}")
    assert has_its_name == (not home.part), "a step has the action's name, or says why not; and not both"


def test_every_event_that_is_recorded_has_a_home() -> None:
    claimed = {(action, place) for _, action, home in HOMES for place in home.recorders()}
    names = {name for _, name in ROWS}
    recorded = {(name, place) for name in names for place in homes.recorders().get(name, ())}
    assert recorded == claimed


def test_what_is_not_built_is_really_not_built() -> None:
    built = {action for _, action, _ in HOMES}
    for protocol, actions in homes.NOT_BUILT.items():
        assert len(actions) == len(set(actions))
        for name in actions:
            assert ROWS[protocol, name].action.by is By.NODE
            assert name not in homes.HOMES[protocol], f"{protocol}.{name} has a home and counts as not built"
            assert name in built or name not in homes.recorders(), f"{name} is recorded by {homes.recorders()[name]}"


def test_a_function_of_the_right_name_elsewhere_is_not_a_home() -> None:
    assert any(name.rpartition(".")[2] == "connect" for name in homes.functions_of("refmq.net.client"))
    row = ROWS["HaReplication", "Connect"]
    assert "step" not in row.found
    assert row.excuse("step") == "not built"


def test_no_excuse_is_for_something_that_exists() -> None:
    names = {name for _, name in ROWS}
    found = set(table.history_steps())
    assert set(table.NOT_IN_HISTORIES) <= names
    assert set(table.NOT_IN_HISTORIES) & found == set(), "a history has these steps"
    promises = {invariant.name for _, invariant in table.promises()}
    assert set(table.NO_ORACLE) <= promises
    assert set(table.NO_ORACLE) & set(table.oracles()) == set(), "an oracle judges these promises"


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


def test_a_home_that_is_not_there_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    action = ROWS["StoreRecovery", "RollFile"].action
    for step in ("refmq.store.append:roll_files", "refmq.store.nowhere:roll_file", "refmq.store.flush:roll_file"):
        monkeypatch.setitem(homes.STORE_RECOVERY, "RollFile", homes.Home(step))
        assert "step" not in dict(table.found_on("StoreRecovery", action))
    monkeypatch.setitem(homes.STORE_RECOVERY, "RollFile", homes.Home("refmq.store.append:append_message"))
    assert "event" not in dict(table.found_on("StoreRecovery", action)), "it does not record that event"


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


def test_the_page_has_every_name_and_says_what_is_not_built() -> None:
    page = table.as_markdown()
    for protocol in vocabulary.PROTOCOLS:
        for action in protocol.actions:
            assert f"| `{action.name}` |" in page
    assert "none:  |" not in page
    (line,) = [line for line in page.splitlines() if line.startswith("| `Connect` |")]
    assert line.split(" | ")[3] == "not built"
