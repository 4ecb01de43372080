"""The small reader of TLA+: tokens, definitions, junctions and comparisons."""

from __future__ import annotations

import pytest

from refmq.verify.spec.syntax import Node, definitions_of, read_expression, tokens_of


def module(body: str) -> str:
    return f"---- MODULE X ----\nEXTENDS Naturals\nVARIABLES x, y\n{body}\n====\n"


def kinds(node: Node) -> list[str]:
    return [node.kind, *[kind for child in node.children for kind in kinds(child)]]


def test_tokens_know_their_place_and_skip_comments() -> None:
    tokens = tokens_of('a (* x (* nested *)\n y *) == b \\* rest\n  /\\ "s\\"t" # 12')
    assert [(token.text, token.line, token.column) for token in tokens] == [
        ("a", 0, 0),
        ("==", 1, 6),
        ("b", 1, 9),
        ("/\\", 2, 2),
        ('"s\\"t"', 2, 5),
        ("#", 2, 12),
        ("12", 2, 14),
    ]


def test_what_is_not_a_token_is_reported_with_its_line() -> None:
    with pytest.raises(ValueError, match="line 2"):
        tokens_of("a\n?")


def test_definitions_begin_in_the_first_column() -> None:
    found = definitions_of(module("A == 1\nB(p, q) ==\n  LET inner == 2 IN p + inner\nf[i \\in S] == i\nASSUME TRUE"))
    assert list(found) == ["A", "B", "f"]
    assert [token.text for token in found["A"].tokens] == ["1"]


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("x = 1 /\\ y = 2", ["and", "compare", "other", "other", "compare", "other", "other"]),
        ("/\\ x = 1\n     /\\ \\/ y\n        \\/ x", ["and", "compare", "other", "other", "or", "other", "other"]),
        ("~x = 1", ["other", "compare", "other", "other"]),
        ("x => y /\\ x", ["other", "other", "and", "other", "other"]),
    ],
)
def test_junctions_and_comparisons_are_told_apart(body: str, expected: list[str]) -> None:
    definition = definitions_of(module("A == " + body))["A"]
    assert kinds(read_expression(definition)) == expected


@pytest.mark.parametrize(
    ("body", "complaint"),
    [
        ("LET a == 1", "line 4: expected a definition after LET"),
        ("LET 1 IN 2", "expected a definition after LET"),
        ("IF x THEN 1", "expected ELSE"),
        ("(x", "an expression is missing"),
        ("\\A i \\in S", "an expression is missing"),
        ("x /\\", "an expression is missing"),
        ("x .", "cannot make sense of '.'"),
        ("", "the body is empty"),
    ],
)
def test_a_body_that_breaks_off_is_reported_with_its_line(body: str, complaint: str) -> None:
    definition = definitions_of(f"---- MODULE X ----\nEXTENDS Naturals\nVARIABLES x\nA == {body}")["A"]
    with pytest.raises(ValueError, match=complaint):
        read_expression(definition)
