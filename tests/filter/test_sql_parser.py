"""SQL92 subscriptions: what is refused, and where."""

from __future__ import annotations

import pytest

from refmq.filter import SqlSyntaxError, compile_expression
from refmq.filter.sql_parser import EXPRESSION_LENGTH_MAX
from refmq.filter.work import DEPTH_MAX, TERMS_MAX


@pytest.mark.parametrize(
    "text",
    [
        "(" * 5_000 + "a",
        "NOT " * 5_000 + "a",
        "-" * 5_000 + "1 = a",
        "(" * DEPTH_MAX + "a",
        "a" + " CONTAINS 'x'" * 1_000,
        "(" * 10 + "a" + (" IS NULL" * 20 + ")") * 10,
    ],
)
def test_deep_nesting_is_refused_and_not_run_into(text: str) -> None:
    with pytest.raises(SqlSyntaxError):
        compile_expression(text)


def test_a_long_expression_is_refused() -> None:
    with pytest.raises(SqlSyntaxError, match="longer than"):
        compile_expression("a = 1 OR " * EXPRESSION_LENGTH_MAX)


def test_an_expression_of_too_many_parts_is_refused() -> None:
    with pytest.raises(SqlSyntaxError, match="words"):
        compile_expression(" OR ".join(["a"] * (TERMS_MAX + 1)))
    with pytest.raises(SqlSyntaxError, match="parts"):
        compile_expression(" OR ".join(["a NOT BETWEEN 1 AND 2"] * (TERMS_MAX // 7 + 1)))
    with pytest.raises(SqlSyntaxError, match="words"):
        compile_expression("a IN (" + ",".join(["''"] * TERMS_MAX) + ")")


def test_an_error_names_the_position() -> None:
    with pytest.raises(SqlSyntaxError) as caught:
        compile_expression("a = 1 AND b ! 2")
    assert caught.value.position == 12
