"""The three sides of a store: they do not overlap, and the reference has all of them, with the same signatures."""

from __future__ import annotations

import inspect
from typing import Protocol

import pytest

from refmq.store import MessageStore, ReferenceStore, StoreClockwork, StoreReader, StoreWriter

SIDES = (StoreReader, StoreWriter, StoreClockwork)


def members_of(side: type) -> set[str]:
    return {name for name in vars(side) if not name.startswith("_")}


def test_the_sides_do_not_overlap_and_a_store_is_all_of_them() -> None:
    assert sum(len(members_of(side)) for side in SIDES) == len(set().union(*map(members_of, SIDES)))
    assert MessageStore.__mro__[1:4] == SIDES
    assert members_of(MessageStore) == set()


def test_nothing_that_reads_waits() -> None:
    for name in members_of(StoreReader) | members_of(StoreWriter):
        assert not inspect.iscoroutinefunction(getattr(ReferenceStore, name)), name


@pytest.mark.parametrize("side", SIDES)
def test_the_reference_has_every_member_with_its_signature(side: type[Protocol]) -> None:  # type: ignore[valid-type]  # any Protocol
    for name in members_of(side):
        promised, found = vars(side)[name], inspect.getattr_static(ReferenceStore, name)
        assert isinstance(found, property) == isinstance(promised, property), name
        if not isinstance(promised, property):
            assert inspect.signature(found) == inspect.signature(promised), name
            assert inspect.iscoroutinefunction(found) == inspect.iscoroutinefunction(promised), name
