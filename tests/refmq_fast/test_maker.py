"""Makers: the same objects as the classes make, and nothing kept."""

from __future__ import annotations

import gc
import sys
import weakref
from dataclasses import FrozenInstanceError, dataclass, fields
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import refmq_fast

pytestmark = [
    pytest.mark.skipif(not refmq_fast.AVAILABLE, reason=f"extension is off: {refmq_fast.REASON}"),
    pytest.mark.extension,
]


@dataclass(frozen=True, slots=True)
class Example:
    first: object
    second: object = 2
    third: object = 3


NAMES = tuple(field.name for field in fields(Example))


@given(st.tuples(st.text(), st.integers(), st.binary()))
def test_it_makes_what_the_class_makes(values: tuple[object, ...]) -> None:
    made = refmq_fast.Maker(Example, NAMES)(*values)
    assert type(made) is Example
    assert made == Example(*values)
    assert hash(made) == hash(Example(*values))
    with pytest.raises(FrozenInstanceError):
        made.first = 1  # type: ignore[misc]  # on purpose


def test_the_values_go_where_their_names_say() -> None:
    assert refmq_fast.Maker(Example, ("third", "first", "second"))(1, 2, 3) == Example(2, 3, 1)


def test_every_value_has_to_be_given() -> None:
    make: Any = refmq_fast.Maker(Example, NAMES)
    for values in ((), (1, 2), (1, 2, 3, 4)):
        with pytest.raises(TypeError, match=r"a .*Example is made of 3 values, without their names"):
            make(*values)
    with pytest.raises(TypeError, match="without their names"):
        make(1, 2, third=3)


def test_wrong_arguments_are_refused() -> None:
    kind: Any = refmq_fast.Maker
    for arguments in ((), (Example,), (Example, list(NAMES)), (1, NAMES), (Example, (1,))):
        with pytest.raises(TypeError):
            kind(*arguments)
    with pytest.raises(AttributeError):
        kind(Example, ("fourth",))
    with pytest.raises(TypeError, match="'__doc__' is no slot"):
        kind(Example, ("__doc__",))


def test_nothing_is_kept() -> None:
    value = object()
    make: Any = refmq_fast.Maker(Example, NAMES)
    make(value, value, value)
    before = sys.getrefcount(value), sys.getrefcount(Example)
    for _ in range(100):
        make(value, value, value)
        with pytest.raises(TypeError):
            make(value)
    assert (sys.getrefcount(value), sys.getrefcount(Example)) == before


def test_a_maker_goes_when_nobody_needs_it() -> None:
    class Slots:
        __slots__ = ("one",)
        made: Any

    Slots.made = refmq_fast.Maker(Slots, ("one",))  # a circle
    gone = weakref.ref(Slots)
    del Slots
    gc.collect()
    assert gone() is None
