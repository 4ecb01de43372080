"""Configurations describe themselves: what the runner reads from their headers."""

from __future__ import annotations

from pathlib import Path

import pytest

from refmq.errors import UsageError
from refmq.model import vocabulary
from refmq.verify.spec.actions import actions_of_next
from refmq.verify.spec.catalogue import (
    Expectation,
    Profile,
    extensions,
    find_configurations,
    find_spec_dir,
    modules_read,
    protocols,
    read_configuration,
)
from refmq.verify.spec.mutants import mutants_of, read_reasons
from refmq.verify.spec.syntax import definitions_of, reached_from

SPEC = Path(__file__).parent.parent.parent / "spec"
TOY = Path(__file__).parent / "toy"


def configuration(tmp_path: Path, text: str, name: str = "MCToy") -> Path:
    (tmp_path / "MCToy.tla").write_text("---- MODULE MCToy ----\n====\n")
    path = tmp_path / f"{name}.cfg"
    path.write_text(text)
    return path


def test_a_header_says_what_is_expected_and_when_it_runs(tmp_path: Path) -> None:
    text = (
        "\\* expect: violation Safe\n\\* profile: quick, deep\n\\* mutants: yes\n\\* coverage: except A B\n"
        "\\* timeout: 12\n\\* Some prose, with a colon: here.\nSPECIFICATION Spec\n"
        "INVARIANTS\n  TypeOK Safe \\* not this one\nCONSTANT N = 3\nPROPERTY Lives\n"
    )
    read = read_configuration(configuration(tmp_path, text, "MCToyBroken"))
    assert read.expect == Expectation("violation", "Safe")
    assert read.profiles == {Profile.QUICK, Profile.DEEP}
    assert (read.protocol, read.role, read.module.name) == ("Toy", "MC", "MCToy.tla")
    assert (read.invariants, read.properties) == (("TypeOK", "Safe"), ("Lives",))
    assert read.mutants
    assert read.covers
    assert read.covers_except == {"A", "B"}
    assert read.timeout_s == 12
    assert not read.deadlock
    assert read.prose == ("Some prose, with a colon: here.",)


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("SPECIFICATION Spec\n", "the first line must be"),
        ("", "the first line must be"),
        ("\\* prose\n\\* expect: ok\n", "the first line must be"),
        ("\\* expect: maybe\n", "cannot read the expectation"),
        ("\\* expect: violation Safe\nINVARIANT Other\n", "which it does not list"),
        ("\\* expect: violation (liveness) Lives\nPROPERTIES Lives More\n", "must be the only PROPERTY"),
        ("\\* expect: ok\n\\* expct: ok\n", "unknown key 'expct'"),
        ("\\* expect: ok\n\\* profile: fast\n", "profile is quick, deep or both"),
        ("\\* expect: ok\n\\* mutants: perhaps\n", "mutants is yes or no"),
        ("\\* expect: ok\n\\* timeout: 0\n", "timeout is a positive number"),
        ("\\* expect: ok\n\\* timeout: 5\n\\* timeout: 6\n", "given twice"),
        ("\\* expect: ok\n\\* coverage: some\n", "coverage is yes, no or"),
    ],
)
def test_a_header_that_cannot_be_meant_is_refused(tmp_path: Path, text: str, complaint: str) -> None:
    with pytest.raises(UsageError, match=complaint):
        read_configuration(configuration(tmp_path, text))


def test_a_configuration_belongs_to_the_module_with_the_longest_name(tmp_path: Path) -> None:
    path = configuration(tmp_path, "\\* expect: ok\n", "MCToyLongSpecial")
    (tmp_path / "MCToyLong.tla").touch()
    assert read_configuration(path).module.name == "MCToyLong.tla"


def test_a_configuration_without_a_module_or_a_role_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="there is no MC"):
        read_configuration(configuration(tmp_path, "\\* expect: ok\n", "MCOther"))
    with pytest.raises(UsageError, match="begins with MC, SIM or Trace"):
        read_configuration(configuration(tmp_path, "\\* expect: ok\n", "Other"))


def test_the_folder_is_found_beside_the_sources_and_must_exist(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert find_spec_dir(None) == SPEC.resolve()
    assert find_spec_dir(TOY) == TOY.resolve()
    with pytest.raises(UsageError, match="is not a folder"):
        find_spec_dir(tmp_path / "nowhere")


# The specifications themselves.


def test_every_configuration_of_the_project_is_readable() -> None:
    found = find_configurations(SPEC)
    assert len(found) > 15
    for one in found:
        assert one.prose, f"{one.name} does not say what it is about"


@pytest.mark.parametrize("name", protocols(SPEC))
def test_a_protocol_has_all_its_parts(name: str) -> None:
    for part in (f"{name}Abstract.tla", f"MC{name}.tla", f"SIM{name}.tla", f"Trace{name}.tla", f"MC{name}.cfg"):
        assert (SPEC / part).is_file(), part
    mine = [one for one in find_configurations(SPEC, "MC") if one.protocol == name]
    assert any(one.expect.kind == "violation" for one in mine), "no expected violation"
    assert any(one.mutants for one in mine), "nothing judges mutants"
    assert any(one.expect.liveness for one in mine), "nothing shows that liveness is not vacuous"


@pytest.mark.parametrize("name", protocols(SPEC))
def test_the_actions_are_those_of_the_vocabulary(name: str) -> None:
    (known,) = [protocol for protocol in vocabulary.PROTOCOLS if protocol.module == name]
    actions = actions_of_next((SPEC / f"{name}.tla").read_text())
    assert sorted(actions) == sorted(action.name for action in known.actions)


@pytest.mark.parametrize("name", protocols(SPEC))
def test_the_mutation_tool_reads_every_action(name: str) -> None:
    text = (SPEC / f"{name}.tla").read_text()
    mutants = mutants_of(text)
    assert len(mutants) > 20
    mutated = {mutant.definition for mutant in mutants}
    definitions = definitions_of(text)
    for action in actions_of_next(text):
        assert mutated & set(reached_from(action, definitions)), f"{action} and what it uses have no mutant"
    read_reasons(SPEC / "mutants" / f"{name}.toml")


def test_a_module_for_one_question_belongs_to_its_protocol(tmp_path: Path) -> None:
    (tmp_path / "Toy.tla").write_text("---- MODULE Toy ----\n====\n")
    (tmp_path / "MCToyTwice.tla").write_text("---- MODULE MCToyTwice ----\n====\n")
    read = read_configuration(configuration(tmp_path, "\\* expect: ok\nSPECIFICATION Spec\n", "MCToyTwiceOver"))
    assert (read.module.name, read.protocol) == ("MCToyTwice.tla", "Toy")


def test_a_module_with_steps_of_its_own_extends_a_protocol(tmp_path: Path) -> None:
    texts = {
        "Toy": "---- MODULE Toy ----\nEXTENDS Naturals, ToyParts\nNext == TRUE\nA == INSTANCE ToyAbstract\n====\n",
        "ToyParts": "---- MODULE ToyParts ----\n====\n",
        "ToyAbstract": "---- MODULE ToyAbstract ----\nNext == TRUE\n====\n",
        "MCToy": "---- MODULE MCToy ----\nEXTENDS Toy\n====\n",
        "MCToyLater": "---- MODULE MCToyLater ----\nEXTENDS MCToy\nLaterNext == Next \\/ TRUE\n====\n",
        "MCToySeen": "---- MODULE MCToySeen ----\nEXTENDS MCToy\nNextSeen == 2\n====\n",
        "ToyOther": "---- MODULE ToyOther ----\n====\n",
    }
    for name, text in texts.items():
        (tmp_path / f"{name}.tla").write_text(text)
    assert extensions(tmp_path) == ["MCToyLater"]
    read = {path.stem for path in modules_read(tmp_path / "MCToyLater.tla")}
    assert read == {"MCToyLater", "MCToy", "Toy", "ToyParts", "ToyAbstract"}


@pytest.mark.parametrize("name", extensions(SPEC))
def test_the_mutation_tool_reads_the_actions_of_every_extension(name: str) -> None:
    definitions = definitions_of((SPEC / f"{name}.tla").read_text())
    found = {mutant.definition for mutant in mutants_of((SPEC / f"{name}.tla").read_text())}
    assert found <= set(definitions)
    assert found
    assert [one for one in find_configurations(SPEC, "MC") if one.module.stem == name]
