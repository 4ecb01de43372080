"""SQL92 subscriptions mean what they mean to RocketMQ 4.9.8.

The vectors were taken from runs of the real filter module: T, F and N (NULL) are results, E is an evaluation
error and P an expression that does not compile.
"""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from refmq.filter import EvaluationError, SqlSyntaxError, compile_expression, evaluate, matches, sql_eval
from refmq.filter.sql_parser import EXPRESSION_LENGTH_MAX

VECTORS = [
    ("a > 0.0", {"a": "1"}, "P"),
    ("a = 1 garbage more", {"a": "1"}, "T"),
    ("a LIKE 'x'", {"a": "x"}, "F"),
    ("a + 1 > 2", {"a": "2"}, "F"),
    ("a = 007", {"a": "0"}, "T"),
    ("NOT a = 1", {"a": "1"}, "F"),
    ("NOT (a = 1)", {}, "N"),
    ("NOT a", {"a": "true"}, "T"),
    ("a", {"a": "true"}, "F"),
    ("a = TRUE", {"a": "TrUe"}, "T"),
    ("a = FALSE", {"a": "yes"}, "T"),
    ("TRUE = a", {"a": "true"}, "E"),
    ("a = 'x'", {}, "N"),
    ("a <> 'x'", {}, "N"),
    ("'x' = a", {}, "F"),
    ("'x' <> a", {}, "T"),
    ("a = b", {}, "T"),
    ("a <> b", {}, "F"),
    ("a IN ('x')", {}, "N"),
    ("a NOT IN ('x')", {}, "N"),
    ("a = 1 OR b = 2", {"b": "2"}, "T"),
    ("a = 1 OR b = 2", {"b": "3"}, "N"),
    ("a = 1 AND b = 2", {"b": "3"}, "F"),
    ("a = 1 AND b = 2", {"b": "2"}, "N"),
    ("a > 5 OR b = 1", {"a": "xyz", "b": "1"}, "E"),
    ("b = 1 OR a > 5", {"a": "xyz", "b": "1"}, "T"),
    *((text, {"a": "1"}, "P") for text in ("a == 1", "a != 1", "a && b", "a.b = 1", 'a = "x"', "", "1", "a = 'x")),
    ("A = 1", {"a": "1"}, "N"),
    ("a = 1 -- c", {"a": "1"}, "T"),
    ("a /* c */ = 1", {"a": "1"}, "T"),
    ("TRUE", {}, "T"),
    ("NULL", {}, "N"),
    ("1 = 1", {}, "T"),
    ("1 < 2.5", {}, "T"),
    ("TRUE = TRUE", {}, "T"),
    ("a <= now", {"a": "1", "now": "5"}, "T"),
    ("a = 1 = TRUE", {"a": "1"}, "T"),
    ("5 > a", {"a": "3"}, "T"),
    ("2.5 > a", {"a": "2"}, "T"),
    ("a = 'it''s'", {"a": "it's"}, "T"),
    ("a > 1 > 0", {}, "P"),
    ("a = 5", {"a": "05"}, "T"),
    ("a = 5", {"a": "+5"}, "T"),
    ("a = 5", {"a": " 5"}, "E"),
    ("a = 5.0", {"a": " 5 "}, "T"),
    ("a = '5'", {"a": "05"}, "F"),
    ("a > 5", {"a": "3000000000"}, "E"),
    ("a > 5", {"a": "5.5"}, "E"),
    ("a > 5.0", {"a": "6"}, "T"),
    ("a > 3000000000", {"a": "5"}, "F"),
    ("a > '5'", {}, "P"),
    ("a > b", {"a": "10", "b": "9"}, "T"),
    ("a > b", {"a": "x", "b": "9"}, "E"),
    ("a BETWEEN 5 AND 1", {}, "P"),
    ("a NOT BETWEEN 5 AND 1", {"a": "3"}, "T"),
    ("a BETWEEN -5 AND 5", {"a": "-3"}, "T"),
    ("a BETWEEN 1 AND 2.5", {"a": "2"}, "T"),
    ("-a > 5", {"a": "-6"}, "N"),
    ("a = -5", {"a": "-5"}, "T"),
    ("a = NULL", {}, "P"),
    *((text, {}, "P") for text in ("a IN (1)", "a IN ()", "'x' IN ('x')", "TRUE = 1", "a > TRUE", "a IS 1")),
    ("1 = TRUE", {}, "F"),
    ("a IS NULL", {}, "T"),
    ("a IS NOT NULL", {}, "F"),
    ("a is not null", {"a": ""}, "T"),
    ("a IN ('x', 'y')", {"a": "y"}, "T"),
    ("a NOT IN ('x', 'y')", {"a": "y"}, "F"),
    ("a = 1.0", {"a": "NaN"}, "F"),
    ("a > 1.5", {"a": "Infinity"}, "T"),
    ("a = 1.5", {"a": "1.5d"}, "T"),
    ("a = 1e2", {"a": "100"}, "T"),
    ("a = 9223372036854775807", {"a": "9223372036854775807"}, "T"),
    ("a = 9223372036854775808", {}, "P"),
    ("a = 1", {"a": "0" * 5_000 + "1"}, "T"),
    ("a > 1e999", {}, "P"),
]


VECTORS_5X = [
    ("a CONTAINS 'el'", {"a": "hello"}, "T"),
    ("a contains 'El'", {"a": "hello"}, "F"),
    ("a STARTSWITH 'he'", {"a": "hello"}, "T"),
    ("a STARTSWITH 'lo'", {"a": "hello"}, "F"),
    ("a ENDSWITH 'lo'", {"a": "hello"}, "T"),
    ("a ENDSWITH 'he'", {"a": "hello"}, "F"),
    ("a NOT CONTAINS 'el'", {"a": "hello"}, "F"),
    ("a NOT STARTSWITH 'x'", {"a": "hello"}, "T"),
    ("a NOT ENDSWITH 'x'", {"a": "hello"}, "T"),
    *((f"a {word} 'x'", {}, "F") for word in ("CONTAINS", "NOT CONTAINS", "STARTSWITH", "NOT ENDSWITH")),
    *((f"a {word} ''", {"a": "x"}, "F") for word in ("CONTAINS", "NOT CONTAINS")),
    ("NOT (a CONTAINS 'x')", {}, "T"),
    ("a CONTAINS 'x' AND b = 1", {"a": "xyz", "b": "1"}, "T"),
    ("a CONTAINS 1", {}, "P"),
    ("a NOT 'x'", {}, "P"),
    ("CONTAINS = 1", {"CONTAINS": "1"}, "T"),  # a property, as in 4.9.8
    ("a = CONTAINS", {"a": "1", "CONTAINS": "1"}, "T"),
]
"""What 5.x has besides: read off ComparisonExpression, 5.3.3."""


@pytest.mark.parametrize(("text", "properties", "expected"), VECTORS_5X)
def test_the_operators_of_5x_look_into_strings(text: str, properties: dict[str, str], expected: str) -> None:
    assert outcome(text, properties) == expected


def outcome(text: str, properties: dict[str, str]) -> str:
    try:
        expression = compile_expression(text)
    except SqlSyntaxError:
        return "P"
    try:
        return {True: "T", False: "F", None: "N"}[evaluate(expression, properties)]
    except EvaluationError:
        return "E"


@pytest.mark.parametrize(("text", "properties", "expected"), VECTORS)
def test_an_expression_means_what_upstream_makes_of_it(text: str, properties: dict[str, str], expected: str) -> None:
    assert outcome(text, properties) == expected


def test_only_true_is_a_match() -> None:
    expression = compile_expression("a > 5")
    assert matches(expression, {"a": "6"})
    assert not matches(expression, {"a": "5"})
    assert not matches(expression, {})
    assert not matches(expression, {"a": "many"})


TRUTHS = st.recursive(
    st.sampled_from(["TRUE", "FALSE", "NULL", "p IS NULL", "p = 1"]),
    lambda inner: st.one_of(
        st.tuples(inner, st.sampled_from([" AND ", " OR "]), inner).map(lambda t: f"({''.join(t)})"),
        inner.map(lambda t: f"(NOT ({t}))"),
    ),
    max_leaves=12,
)


def _kleene(text: str, p: str | None) -> bool | None:
    """The textbook tables, over numbers: FALSE 0, NULL 1, TRUE 2; AND is min, OR is max, NOT is 2 - x."""

    class Truth(int):
        def __and__(self, other: int) -> Truth:
            return Truth(min(self, other))

        def __or__(self, other: int) -> Truth:
            return Truth(max(self, other))

        def __invert__(self) -> Truth:
            return Truth(2 - self)

    leaf = 1 if p is None else 2 * (p == "1")
    names = {"T": Truth(2), "F": Truth(0), "N": Truth(1), "ISNULL": Truth(2 * (p is None)), "EQ": Truth(leaf)}
    python = text.replace("p IS NULL", "ISNULL").replace("p = 1", "EQ").replace("FALSE", "F").replace("TRUE", "T")
    python = python.replace("NOT", "~").replace("AND", "&").replace("OR", "|").replace("(NULL", "(N")
    python = python.replace(" NULL", " N") if python != "NULL" else "N"
    result = eval(python, {"__builtins__": {}}, names)
    return {0: False, 1: None, 2: True}[int(result)]


@given(TRUTHS, st.sampled_from([None, "1", "2"]))
def test_and_or_not_are_the_three_valued_ones(text: str, p: str | None) -> None:
    assert evaluate(compile_expression(text), {} if p is None else {"p": p}) == _kleene(text, p)


def test_the_three_valued_property_catches_a_two_valued_and(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sql_eval, "_and", lambda operands, properties: all(evaluate(o, properties) for o in operands))
    leaves = ["TRUE", "FALSE", "NULL"]
    wrong = [
        (a, b)
        for a, b in itertools.product(leaves, leaves)
        if evaluate(compile_expression(f"({a} AND {b})"), {}) != _kleene(f"({a} AND {b})", None)
    ]
    assert ("NULL", "TRUE") in wrong


@given(st.text(max_size=60), st.dictionaries(st.text(max_size=3), st.text(max_size=5), max_size=3))
def test_any_text_gives_a_result_or_one_of_the_two_errors(text: str, properties: dict[str, str]) -> None:
    assert outcome(text, properties) in "TFNEP"


TOKENS = ["a", "b", "1", "2.5", "'x'", "99999999999", "(", ")", ",", "=", "<>", "<", ">=", "+", "-", "--", "/*", "*/"]


KEYWORDS = ["NOT", "AND", "OR", "BETWEEN", "IN", "IS", "NULL", "TRUE", "CONTAINS"]


FRAGMENTS = st.lists(st.sampled_from(TOKENS + KEYWORDS), max_size=14).map(" ".join)


@given(FRAGMENTS, st.sampled_from(["1", "x", "true", "99999999999"]))
def test_any_sequence_of_tokens_gives_a_result_or_one_of_the_two_errors(text: str, a: str) -> None:
    assert outcome(text, {"a": a}) in "TFNEP"


def test_a_long_chain_of_operators_is_evaluated() -> None:
    text = " OR ".join(["a = 1"] * 1_000)
    assert len(text) < EXPRESSION_LENGTH_MAX
    assert evaluate(compile_expression(text), {"a": "2"}) is False
