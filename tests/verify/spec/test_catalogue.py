"""The folder of a protocol: its modules, and what its tables make of base.cfg."""

from __future__ import annotations

from pathlib import Path

import pytest

from refmq.errors import UsageError
from refmq.verify.spec.catalogue import (
    Configuration,
    extensions,
    find_configurations,
    find_module,
    find_protocols,
    find_spec_dir,
    library,
    modules_read,
)
from refmq.verify.spec.cfg import read_cfg
from tests.verify.spec.helpers import SPEC, TOY

MODULES = {
    "Toy": "EXTENDS Naturals, ToyParts\nNext == TRUE\nA == INSTANCE ToyAbstract",
    "ToyParts": "",
    "ToyAbstract": "Next == TRUE",
    "ToyOther": "",
    "mc/MCToy": "EXTENDS Toy",
    "judges/MCToyLater": "EXTENDS MCToy\nLaterNext == Next \\/ TRUE",
    "judges/MCToyReach": "EXTENDS MCToy\nNextReached == 2",
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A protocol Toy with a module that extends it."""
    place = tmp_path / "toy"
    for path, body in MODULES.items():
        file = place / f"{path}.tla"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(f"---- MODULE {file.stem} ----\n{body}\n====\n")
    (place / "base.cfg").write_text("SPECIFICATION Spec\nCONSTANTS A = 1  B = 2  C <- D\n")
    return place


def only(folder: Path, table: str, presets: str = "") -> Configuration:
    """The last configuration of a table in mc/."""
    (folder / "mc" / "configurations.toml").write_text(table)
    (folder / "configurations.toml").write_text(presets)
    return find_configurations(folder.parent)[-1]


def test_the_folder_is_found_beside_the_sources_and_must_exist(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert find_spec_dir(None) == SPEC
    assert find_spec_dir(TOY) == TOY
    with pytest.raises(UsageError, match="is not a folder"):
        find_spec_dir(tmp_path / "nowhere")


def test_the_modules_of_a_protocol_are_found_in_its_folder_and_one_below(folder: Path) -> None:
    assert find_protocols(folder.parent) == {"Toy": folder}
    assert library(folder) == [folder, folder / "judges", folder / "mc"]
    assert find_module(folder, "MCToy") == folder / "mc" / "MCToy.tla"
    assert find_module(folder, "Nothing") is None


def test_a_folder_without_a_model_is_refused(folder: Path) -> None:
    (folder / "mc" / "MCToy.tla").unlink()
    with pytest.raises(UsageError, match=r"needs one X.tla with an mc/MCX.tla, and has 0"):
        find_protocols(folder.parent)


def test_a_module_with_steps_of_its_own_extends_a_protocol(folder: Path) -> None:
    assert extensions(folder.parent) == {"MCToyLater": folder}
    read = {path.stem for path in modules_read(folder, folder / "judges" / "MCToyLater.tla")}
    assert read == {"MCToyLater", "MCToy", "Toy", "ToyParts", "ToyAbstract"}


def test_an_entry_changes_the_base(folder: Path) -> None:
    read = only(folder, "[one]\nabout = 'x'\nexpect = 'ok'\ncfg = 'CONSTANT B = 3 INVARIANT Safe'\n")
    assert (read.name, read.protocol, read.module.stem) == ("toy/mc/one", "Toy", "MCToy")
    assert read.cfg == read_cfg("SPECIFICATION Spec CONSTANTS A = 1 B = 3 C <- D INVARIANT Safe")


def test_presets_come_first_then_what_is_unset_then_the_entry_itself(folder: Path) -> None:
    presets = "[preset.p]\ncfg = 'CONSTANTS A = 5 B = 5 E = 5'\n[preset.q]\nunset = ['C']\ncfg = 'CONSTANT A = 6'\n"
    table = "[one]\nabout = 'x'\nexpect = 'ok'\nwith = ['p', 'q']\nunset = ['E']\ncfg = 'CONSTANT B = 7'\n"
    assert only(folder, table, presets).cfg == read_cfg("SPECIFICATION Spec CONSTANTS A = 6 B = 7")


def test_an_entry_can_start_from_another_one(folder: Path) -> None:
    table = (
        "[one]\nabout = 'x'\nexpect = 'violation Safe'\nmutants = true\nmodule = 'MCToyReach'\n"
        "cfg = 'CONSTANT B = 3 INVARIANT Safe'\n"
        "[one_repaired]\nabout = 'y'\nexpect = 'ok'\nlike = 'one'\ncfg = 'CONSTANT A = 4'\n"
    )
    read = only(folder, table)
    assert read.cfg == read_cfg("SPECIFICATION Spec CONSTANTS A = 4 B = 3 C <- D INVARIANT Safe")
    assert read.module.stem == "MCToyReach"
    assert (str(read.expect), read.mutants) == ("ok", False), "what an entry says about itself is not handed on"


@pytest.mark.parametrize(
    ("table", "complaint"),
    [
        ("[one\n", "configurations.toml: "),
        ("one = 1\n", "toy/mc/one is not a table"),
        ("[one]\nabout = 'x'\nexpect = 'ok'\nlike = 'two'\n", "toy/mc/one: there is no two in"),
        ("[one]\nabout = 'x'\nexpect = 'ok'\nlike = 'one'\n", "more than 5 entries are like one another"),
        ("[one]\nabout = 'x'\nexpect = 'ok'\nwith = ['p']\n", "toy/mc/one: there is no preset p"),
        ("[one]\nabout = 'x'\nexpect = 'ok'\nunset = ['Z']\n", "toy/mc/one: there is no Z to unset"),
        ("[one]\nabout = 'x'\nexpect = 'ok'\ncfg = 'CONSTANT A'\n", "toy/mc/one: cannot read an assignment"),
        ("[one]\nabout = 'x'\nexpect = 'ok'\nmodule = 'MCNo'\n", "toy/mc/one: there is no MCNo.tla"),
    ],
)
def test_a_table_that_makes_no_sense_is_refused(folder: Path, table: str, complaint: str) -> None:
    with pytest.raises(UsageError, match=complaint):
        only(folder, table)


def test_a_base_that_cannot_be_read_is_named(folder: Path) -> None:
    (folder / "base.cfg").write_text("CONSTANTS A\n")
    with pytest.raises(UsageError, match=r"base.cfg: cannot read an assignment"):
        find_configurations(folder.parent)


def test_the_questions_come_before_the_weak_points_and_the_judges() -> None:
    groups = [one.name.split("/")[1] for one in find_configurations(SPEC, "MC") if one.protocol == "Rebalance"]
    assert list(dict.fromkeys(groups)) == ["mc", "weak", "judges"]
    assert {one.role for one in find_configurations(SPEC, "SIM")} == {"SIM"}
