"""Mutants: one place of the specification changed at a time."""

from __future__ import annotations

from pathlib import Path

import pytest

from refmq.errors import UsageError
from refmq.verify.spec.mutants import KINDS, Mutant, mutants_of, read_reasons
from refmq.verify.spec.syntax import definitions_of
from tests.verify.spec.helpers import TURNSTILE

TOY = TURNSTILE.read_text()


def module(body: str) -> str:
    return f"---- MODULE X ----\nEXTENDS Naturals\nVARIABLES x, y\n{body}\n====\n"


def named(mutants: list[Mutant]) -> list[tuple[str, str, str]]:
    return [(mutant.definition, mutant.kind, mutant.original) for mutant in mutants]


def test_guards_are_dropped_comparisons_swapped_and_assignments_undone() -> None:
    assert named(mutants_of(TOY)) == [
        ("InsertCoin", "drop", "paid + n <= Coins"),
        ("InsertCoin", "swap", "paid + n <= Coins"),
        ("InsertCoin", "effect", "paid' = paid + n"),
        ("InsertCoin", "effect", 'log\' = Append(log, "coin")'),
        ("WalkIn", "drop", "inside < paid \\/ ~Strict"),
        ("WalkIn", "swap", "inside < paid"),
        ("WalkIn", "drop", "inside < Coins"),
        ("WalkIn", "swap", "inside < Coins"),
        ("WalkIn", "effect", "inside' = inside + 1"),
        ("WalkIn", "effect", 'log\' = Append(log, "in")'),
        ("FairSpec", "fair", "WF_vars(Next)"),
    ]


def test_bounds_of_quantifiers_and_updates_are_not_comparisons() -> None:
    body = (
        "A ==\n  /\\ \\E i \\in S, j \\in T : i < j\n  /\\ x' = [x EXCEPT ![1] = 2, ![3].f = IF y = 1 THEN 4 ELSE 5]\n"
        "  /\\ y' = {e \\in S : e > 1 /\\ e # 2} \\cup {g(e) : e \\in T} \\cup [k \\in S |-> k]\nNext == A"
    )
    swaps = [mutant.original for mutant in mutants_of(module(body), ["swap"])]
    assert sorted(swaps) == ["e # 2", "e > 1", "i < j", "y = 1"]


def test_the_definitions_that_an_action_uses_are_mutated_once() -> None:
    body = "Full == x >= 3\nA == ~Full /\\ x' = x + 1\nB == Full /\\ x' = 0\nUnused == x < 1\nNext == A \\/ B"
    assert named(mutants_of(module(body), ["drop", "swap"])) == [
        ("Full", "swap", "x >= 3"),
        ("A", "drop", "~Full"),
        ("B", "drop", "Full"),
    ]


def test_a_module_that_extends_a_protocol_is_mutated_where_its_own_steps_reach() -> None:
    body = "A == /\\ x < 3\n     /\\ x' = x + 1\nPromise == x < 9\nLaterNext == Next \\/ A"
    assert named(mutants_of(module(body), ["drop", "swap"])) == [("A", "drop", "x < 3"), ("A", "swap", "x < 3")]


def test_a_mutant_changes_one_place_and_keeps_the_lines() -> None:
    for mutant in mutants_of(TOY):
        changed = mutant.apply(TOY)
        before, after = TOY.splitlines(), changed.splitlines()
        assert len(before) == len(after)
        assert sum(old != new for old, new in zip(before, after, strict=True)) == 1
        assert set(definitions_of(changed)) == set(definitions_of(TOY))
    (dropped,) = [one for one in mutants_of(TOY, ["drop"]) if one.original == "inside < Coins"]
    assert "    /\\ TRUE          \n    /\\ inside' = inside + 1" in dropped.apply(TOY)


def test_two_occurrences_of_a_text_are_told_apart() -> None:
    body = "A == /\\ x > 0\n     /\\ y = 1 \\/ x > 0\n     /\\ x' = 1\nNext == A"
    assert [mutant.occurrence for mutant in mutants_of(module(body), ["swap"]) if mutant.original == "x > 0"] == [1, 2]


def test_an_action_beyond_the_reader_is_a_usage_error() -> None:
    with pytest.raises(UsageError, match="cannot read A"):
        mutants_of(module("A == x' = ( ) ) 1\nNext == A"))


def test_reasons_are_read_and_checked(tmp_path: Path) -> None:
    path = tmp_path / "X.toml"
    path.write_text('[[survivor]]\naction = "A"\nkind = "drop"\ntext = "x  >\\n 0"\nreason = "x is never 0 here"\n')
    assert read_reasons(path) == {("A", "drop", "x > 0", 1): "x is never 0 here"}
    assert read_reasons(tmp_path / "none.toml") == {}
    for text, complaint in [
        ('[[survivor]]\naction = "A"\nkind = "drop"\ntext = "x"\n', "has no reason"),
        ('[[survivor]]\naction = "A"\nkind = "drop"\ntext = "x"\nreason = " "\n', "empty reason"),
        ('[[survivor]]\naction = "A"\nkind = "odd"\ntext = "x"\nreason = "r"\n', "unknown kind"),
        ("[[survivor]\n", "X.toml"),
    ]:
        path.write_text(text)
        with pytest.raises(UsageError, match=complaint):
            read_reasons(path)
    assert set(KINDS) == {"drop", "swap", "effect", "update", "then", "else", "fair"}


def test_conditions_and_parts_of_updates_are_mutated() -> None:
    body = (
        "A ==\n  /\\ x' = [x EXCEPT !.a = IF On THEN 1 ELSE 2, ![y].b = @ + 1]\n"
        "  /\\ y' = IF y = 1 THEN 4 ELSE 5\nOn == TRUE\nNext == A"
    )
    found = mutants_of(module(body), ["update", "then", "else"])
    assert sorted(named(found)) == [
        ("A", "else", "On"),
        ("A", "then", "On"),
        ("A", "update", "!.a = IF On THEN 1 ELSE 2"),
        ("A", "update", "![y].b = @ + 1"),
    ]
    (part,) = [one for one in found if one.original == "![y].b = @ + 1"]
    assert "![y].b = @    ]" in part.apply(module(body))


def test_a_single_update_and_a_comparison_as_condition_have_their_mutants_already() -> None:
    body = "A == x' = [x EXCEPT ![1] = IF y = 1 THEN 2 ELSE 3]\nNext == A"
    assert {mutant.kind for mutant in mutants_of(module(body))} == {"effect", "swap"}


def test_every_fairness_condition_is_dropped_once() -> None:
    body = (
        "A == x' = 1\nB(i) == y' = i\nNext == A \\/ B(1)\nSpec == x = 0 /\\ [][Next]_<<x, y>>\n"
        "Fair == WF_x(A) /\\ \\A i \\in {1} : SF_y(B(i))\nFairSpec == Spec /\\ Fair"
    )
    assert named(mutants_of(module(body), ["fair"])) == [
        ("Fair", "fair", "WF_x(A)"),
        ("Fair", "fair", "\\A i \\in {1} : SF_y(B(i))"),
    ]


def test_what_a_model_bounds_is_left_alone() -> None:
    body = "Room == TRUE\nMay(k) == TRUE\nA == Room /\\ May(1) /\\ x < 3 /\\ x' = 1\nNext == A"
    assert named(mutants_of(module(body), ["drop"])) == [("A", "drop", "x < 3")]


def test_an_assignment_that_changes_nothing_is_not_mutated() -> None:
    body = "A == x > 0 /\\ x' = x /\\ y' = x\nNext == A"
    assert named(mutants_of(module(body), ["effect"])) == [("A", "effect", "y' = x")]
