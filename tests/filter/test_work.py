"""What expressions may cost."""

from __future__ import annotations

import pytest

from refmq.filter import compile_expression
from refmq.filter.work import WORK_MAX, terms_and_depth, work_of


@pytest.mark.parametrize(
    ("text", "terms", "depth"),
    [
        ("a", 1, 1),
        ("a = 1", 3, 2),
        ("a = 1 AND b > 2 AND c IS NULL", 9, 3),
        ("NOT (a CONTAINS 'x')", 3, 3),
        ("a IN ('x', 'y', 'z')", 1, 1),
        ("a BETWEEN 1 AND -b", 8, 4),
    ],
)
def test_every_part_is_counted(text: str, terms: int, depth: int) -> None:
    assert terms_and_depth(compile_expression(text)) == (terms, depth)


def test_a_short_expression_may_look_at_a_thousandth_of_its_work_in_each_message() -> None:
    assert work_of(3, 100) * 400 < WORK_MAX


def test_more_terms_and_longer_properties_cost_more() -> None:
    assert work_of(500, 100) > 20 * work_of(3, 100)
    assert work_of(3, 32_767) > 20 * work_of(3, 100)
