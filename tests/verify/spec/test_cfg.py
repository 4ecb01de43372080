"""TLC's configuration files: read, combined, and written so that they read the same again."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from refmq.verify.spec.cfg import LISTS, SINGLE, Cfg, read_cfg

TEXT = r"""
\* A header, with INVARIANT in it.
SPECIFICATION FairSpec
CONSTANTS
    Node = {n1, n2}  Faults = {"Promote", "Disconnect"}  None = {}
    Becomes = "wiped" (* a comment = that spans
    lines *) Max = 3
CONSTANT Heartbeat <- Never
INVARIANT TypeOK Safe \* not this one
INVARIANTS Third
PROPERTY Lives
SYMMETRY Alike
"""
NAMES = st.from_regex(r"[A-Z][a-z]{0,5}", fullmatch=True)
VALUES = st.sampled_from(["1", "TRUE", "n1", '"wiped"', "{}", "{n1, n2}", '{"A", "B"}'])


@st.composite
def cfgs(draw: st.DrawFn) -> Cfg:
    constants = draw(st.dictionaries(NAMES, VALUES, max_size=6))
    replacements = draw(st.dictionaries(NAMES.filter(lambda name: name not in constants), NAMES, max_size=3))
    singles = {name: draw(st.one_of(st.just(""), NAMES)) for name in SINGLE}
    lists = {name: tuple(draw(st.lists(NAMES, max_size=30))) for name in LISTS}
    return Cfg(constants=constants, replacements=replacements, **singles, **lists)  # type: ignore[arg-type]  # types differ


def test_every_section_is_read_and_comments_are_not() -> None:
    assert read_cfg(TEXT) == Cfg(
        "FairSpec",
        {"Node": "{n1, n2}", "Faults": '{"Promote", "Disconnect"}', "None": "{}", "Becomes": '"wiped"', "Max": "3"},
        {"Heartbeat": "Never"},
        ("TypeOK", "Safe", "Third"),
        ("Lives",),
        symmetry="Alike",
    )


@given(cfgs())
def test_reading_what_was_written_gives_it_back(cfg: Cfg) -> None:
    assert read_cfg(cfg.render()) == cfg
    assert max(map(len, cfg.render().splitlines()), default=0) <= 120


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("TypeOK", "cannot read 'TypeOK'"),
        ("CONSTANT A", "cannot read an assignment at 'A'"),
        ("CONSTANT A = INVARIANT B", "cannot read an assignment"),
        ("CONSTANT A = {1, 2", "the set of A has no end"),
        ("CONSTANTS A = 1 A <- B", "A is given twice"),
        ("SPECIFICATION A B", "SPECIFICATION takes one name, not 2"),
        ("INVARIANT a=b", "cannot read '='"),
        ("INIT Init", "cannot read 'INIT'"),
    ],
)
def test_a_text_beyond_the_reader_is_refused(text: str, complaint: str) -> None:
    with pytest.raises(ValueError, match=complaint):
        read_cfg(text)


def test_a_change_sets_constants_and_replaces_lists() -> None:
    base = read_cfg("SPECIFICATION Spec CONSTANTS A = 1 B = 2 C <- D INVARIANTS One Two")
    after = base.changed_by(read_cfg("CONSTANTS B <- E C = 3 F = 4 INVARIANT Three PROPERTY Lives"))
    assert after == read_cfg("SPECIFICATION Spec CONSTANTS A = 1 B <- E C = 3 F = 4 INVARIANT Three PROPERTY Lives")
    assert base.changed_by(Cfg()) == base


@given(cfgs(), cfgs())
def test_what_a_change_sets_is_set_and_nothing_else_is(before: Cfg, change: Cfg) -> None:
    after = before.changed_by(change)
    assigned = {**after.constants, **after.replacements}
    set_by_change = {**change.constants, **change.replacements}
    for name, value in {**before.constants, **before.replacements, **set_by_change}.items():
        assert assigned.pop(name) == set_by_change.get(name, value)
    assert not assigned
    for name in (*SINGLE, *LISTS):
        assert getattr(after, name) == (getattr(change, name) or getattr(before, name))


def test_what_is_unset_is_gone_and_must_have_been_there() -> None:
    cfg = read_cfg("CONSTANTS A = 1 B <- C INVARIANT One PROPERTY Lives")
    assert cfg.unset(["A", "B", "PROPERTY"]) == read_cfg("INVARIANT One")
    assert cfg.unset([]) == cfg
    with pytest.raises(ValueError, match="there is no SYMMETRY, Z to unset"):
        cfg.unset(["Z", "SYMMETRY", "A"])
