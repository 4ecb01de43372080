"""TLA+ values as TLC prints them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from refmq.verify.spec.values import ModelValue, TlaFunction, TlaValue, parse_value, show, to_json

VALUES: st.SearchStrategy[TlaValue] = st.recursive(
    st.one_of(
        st.integers(-99, 99),
        st.booleans(),
        st.text(alphabet='ab "\\x', max_size=4),
        st.sampled_from([ModelValue("m1"), ModelValue("m2")]),
    ),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3).map(tuple),
        st.dictionaries(st.sampled_from(["f", "g"]), inner, min_size=1).map(lambda d: TlaFunction(tuple(d.items()))),
        st.dictionaries(st.integers(0, 3), inner, min_size=1).map(lambda d: TlaFunction(tuple(d.items()))),
        st.frozensets(st.integers(0, 5), max_size=3),
    ),
    max_leaves=8,
)


@given(VALUES)
def test_a_value_that_is_shown_can_be_read_again(value: TlaValue) -> None:
    assert parse_value(show(value)) == value


def test_values_are_read_as_tlc_prints_them() -> None:
    assert parse_value("1..3") == frozenset({1, 2, 3})
    assert to_json(parse_value('[a |-> <<1, m1>>, b |-> {"y", "x"}]')) == {"a": [1, "m1"], "b": ["x", "y"]}
    for text in ("<<1", "[a |->", "1 2", "?"):
        with pytest.raises(ValueError, match=r"the value|expected"):
            parse_value(text)
