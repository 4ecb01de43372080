"""The specifications themselves: each has all its parts, and its names are those of the vocabulary."""

from __future__ import annotations

import re

import pytest

from refmq.model import vocabulary
from refmq.verify.spec.actions import actions_of_next
from refmq.verify.spec.catalogue import Profile, extensions, find_configurations, find_module, find_protocols
from refmq.verify.spec.mutants import mutants_of, read_reasons, survivors_file
from refmq.verify.spec.plan import recorded
from refmq.verify.spec.syntax import definitions_of, reached_from
from tests.verify.spec.helpers import SPEC

FOLDERS = find_protocols(SPEC)
EXTENSIONS = extensions(SPEC)
CONFIGURATIONS = {one.name: one for one in find_configurations(SPEC)}
PROTOCOLS = {protocol.module: protocol for protocol in vocabulary.PROTOCOLS}
OUR_OWN = {"EngineThreads"}
"""Models of refmq itself and not of RocketMQ: clients never see their steps, and no trace has them."""


def test_every_protocol_of_the_vocabulary_has_a_folder() -> None:
    assert set(FOLDERS) == set(PROTOCOLS) | OUR_OWN


@pytest.mark.parametrize("name", FOLDERS)
def test_a_protocol_has_all_its_parts(name: str) -> None:
    of_a_protocol = (f"{name}Abstract.tla", f"SIM{name}.tla", f"Trace{name}.tla")
    for part in (f"mc/MC{name}.tla", *(() if name in OUR_OWN else of_a_protocol)):
        assert (FOLDERS[name] / part).is_file(), part
    mine = [one for one in CONFIGURATIONS.values() if one.protocol == name and one.role == "MC"]
    assert any(one.expect.kind == "violation" for one in mine), "no expected violation"
    assert any(one.mutants for one in mine), "nothing judges mutants"
    assert any(one.expect.liveness for one in mine), "nothing shows that liveness is not vacuous"


@pytest.mark.parametrize("name", FOLDERS)
def test_only_the_base_is_a_cfg_file(name: str) -> None:
    assert list(FOLDERS[name].rglob("*.cfg")) == [FOLDERS[name] / "base.cfg"]


def test_every_name_says_what_it_is_in_lower_case() -> None:
    odd = [name for name in CONFIGURATIONS if not re.fullmatch(r"[a-z_]+(/[a-z_]+){1,2}", name)]
    assert odd == []


def test_every_weak_point_has_a_repair_that_holds_or_says_why_not() -> None:
    weak = [one for one in CONFIGURATIONS.values() if one.is_weak_point]
    assert len(weak) > 40
    for one in weak:
        beside = one.name.rpartition("/")[0]
        repair = CONFIGURATIONS.get(f"{beside}/{one.repair}")
        if repair is None:
            assert re.match(r"none: \w+ \w+", one.repair), f"{one.name} has no repair"
        else:
            assert repair.expect.kind == "ok", f"{repair.name} repairs nothing"
            assert set(repair.cfg.invariants + repair.cfg.properties) >= {one.expect.name}, (
                f"{repair.name} does not look"
            )


def test_a_judge_judges() -> None:
    owned = set(EXTENSIONS)
    idle = [
        one.name
        for one in CONFIGURATIONS.values()
        if "/judges/" in one.name and not one.mutants and one.module.stem not in owned
    ]
    assert idle == []


def test_the_table_has_every_result_and_the_text_names_those_that_nobody_has() -> None:
    known = recorded(SPEC / "README.md")
    assert set(known) <= set(CONFIGURATIONS)
    unfinished = {name for name, one in CONFIGURATIONS.items() if one.role == "MC"} - set(known)
    text = (SPEC / "README.md").read_text().partition("## Results")[2].partition("<!-- results")[0]
    assert set(re.findall(r"`(\w+/\w+/\w+)`", text)) == unfinished
    assert all(CONFIGURATIONS[name].profiles == {Profile.DEEP} for name in unfinished)


def test_the_pages_for_people_name_configurations_that_exist() -> None:
    endings = {"/".join(name.split("/")[at:]) for name in CONFIGURATIONS for at in range(3)}
    actions = [action for protocol in PROTOCOLS.values() for action in protocol.actions]
    others = {name for action in actions for name in (action.step, *action.fields)}
    for page in sorted((SPEC.parent / "docs" / "explanation").glob("spec-*.md")):
        text = page.read_text()
        named = {
            *re.findall(r"`((?:\w+/)?(?:mc|weak|judges)/\w+)`", text),
            *re.findall(r"`([a-z]+(?:_[a-z]+)+)`", text),
        }
        assert len(named) > 10, f"{page.name} names none"
        assert named - endings - others == set(), page.name


@pytest.mark.parametrize("name", PROTOCOLS)
def test_the_actions_are_those_of_the_vocabulary(name: str) -> None:
    actions = actions_of_next((FOLDERS[name] / f"{name}.tla").read_text())
    assert sorted(actions) == sorted(action.name for action in PROTOCOLS[name].actions)


@pytest.mark.parametrize("name", PROTOCOLS)
def test_every_promise_of_the_vocabulary_is_defined(name: str) -> None:
    places = (FOLDERS[name] / f"{name}.tla", FOLDERS[name] / f"{name}Promises.tla")
    defined = {defined for path in places if path.is_file() for defined in definitions_of(path.read_text())}
    assert {one.name for one in PROTOCOLS[name].invariants} - defined - NOT_IN_TLA == set()


@pytest.mark.parametrize("name", PROTOCOLS)
def test_every_promise_of_the_vocabulary_is_checked_somewhere(name: str) -> None:
    mine = [one for one in CONFIGURATIONS.values() if one.protocol == name and one.role == "MC"]
    checked = {promise for one in mine for promise in (*one.cfg.invariants, *one.cfg.properties)}
    assert {one.name for one in PROTOCOLS[name].invariants} - checked - NOT_IN_TLA == set()


NOT_IN_TLA = {"TimeSearchExact"}
"""The search by time is a function of the store and no step of the protocol: the store's oracles judge it."""


@pytest.mark.parametrize("name", FOLDERS)
def test_the_mutation_tool_reads_every_action(name: str) -> None:
    text = (FOLDERS[name] / f"{name}.tla").read_text()
    mutants = mutants_of(text)
    assert len(mutants) > 20
    mutated = {mutant.definition for mutant in mutants}
    definitions = definitions_of(text)
    for action in actions_of_next(text):
        assert mutated & set(reached_from(action, definitions)), f"{action} and what it uses have no mutant"


@pytest.mark.parametrize("name", [*FOLDERS, *EXTENSIONS])
def test_every_explained_survivor_is_a_mutant(name: str) -> None:
    folder = {**FOLDERS, **EXTENSIONS}[name]
    module = find_module(folder, name)
    assert module is not None
    keys = {mutant.key for mutant in mutants_of(module.read_text())}
    assert set(read_reasons(survivors_file(folder, name))) <= keys


@pytest.mark.parametrize("name", EXTENSIONS)
def test_the_mutation_tool_reads_the_actions_of_every_extension(name: str) -> None:
    module = find_module(EXTENSIONS[name], name)
    assert module is not None
    found = {mutant.definition for mutant in mutants_of(module.read_text())}
    assert found
    assert found <= set(definitions_of(module.read_text()))
    assert [one for one in CONFIGURATIONS.values() if one.module == module]
