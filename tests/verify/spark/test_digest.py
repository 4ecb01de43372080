"""Digests: both kernels make the same cells, in any order of events, and any change shows."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import refmq_fast
from refmq.trace.columns import record_dtype
from refmq.trace.reader import Strings
from refmq.trace.record import KIND_EVENT
from refmq.verify.spark import native
from refmq.verify.spark.columns import Chunk, Names
from refmq.verify.spark.digest import CELL, Cells, Role, added, digest_cells, keys_of

TEXTS = (
    "",
    "broker-0",
    "AppendMessage",
    "Send",
    "Pull",
    "AckPut",
    "CommitOffset",
    "FlushLog",
    "t@b",
    "u",
    "g@c.1",
    "h@c.1",
)
KEYS = keys_of(7)
I64 = st.integers(-(2**63), 2**63 - 1)

events = st.lists(
    st.tuples(
        st.integers(2, 7),  # action
        st.integers(0, 5),  # outcome
        st.sampled_from([0, 8, 9]),  # subject
        st.sampled_from([0, 10, 11]),  # actor
        st.integers(-1, 2),  # queue
        I64 | st.integers(-2, 5_000),
        I64 | st.integers(-2, 5_000),
        I64,
        st.integers(0, 2**32 - 1) | st.just(0),
    ),
    max_size=60,
)


def chunk_of(rows: Sequence[tuple[int, ...]]) -> Chunk:
    names = Names("broker-0")
    names.extend(Strings(enumerate(TEXTS)))
    table = np.zeros(len(rows), record_dtype())
    table["kind"] = KIND_EVENT
    for at, name in enumerate(("action", "outcome", "subject", "actor", "queue_id", *"abcd")):
        table[name] = [row[at] for row in rows]
    table["at_ns"] = np.arange(len(rows)) * 1_000
    return Chunk("broker-0", table, names, table["at_ns"].astype(np.int64))


def as_set(cells: Cells) -> set[tuple[object, ...]]:
    return set(added(cells).tolist())


@pytest.mark.extension
@pytest.mark.skipif(not refmq_fast.AVAILABLE, reason="the extension is not built")
@given(events)
def test_both_kernels_make_the_same_cells(rows: list[tuple[int, ...]]) -> None:
    chunk = chunk_of(rows)
    assert as_set(digest_cells(chunk, KEYS, fast=True)) == as_set(digest_cells(chunk, KEYS, fast=False))


@pytest.mark.parametrize("fast", [False, pytest.param(True, marks=pytest.mark.extension)])
@given(rows=events, data=st.data())
def test_the_order_of_events_makes_no_difference(fast: bool, rows: list[tuple[int, ...]], data: st.DataObject) -> None:
    if fast and not refmq_fast.AVAILABLE:
        pytest.skip("the extension is not built")
    sums = ["queue", "group", "range", "role", "count", "sum_b", "sum_bc", "sum_ab", "sum_bd"]
    shuffled = data.draw(st.permutations(rows))
    one, other = (digest_cells(chunk_of(each), KEYS, fast=fast) for each in (rows, shuffled))
    assert {row[:9] for row in as_set(one)} == {row[:9] for row in as_set(other)}
    assert len(sums) == 9


APPENDED = (2, 0, 9, 0, 1, 4096, 17, 12345, 250)


@pytest.mark.parametrize("field", [4, 5, 6, 7, 8])
@pytest.mark.parametrize("fast", [False, pytest.param(True, marks=pytest.mark.extension)])
def test_a_change_of_one_field_shows(field: int, fast: bool) -> None:
    if fast and not refmq_fast.AVAILABLE:
        pytest.skip("the extension is not built")
    changed = (*APPENDED[:field], APPENDED[field] + 1, *APPENDED[field + 1 :])
    one, other = (digest_cells(chunk_of([row]), KEYS, fast=fast) for row in (APPENDED, changed))
    names = ["queue", "range", "count", "sum_b", "sum_bc", "sum_ab", "sum_bd"]
    assert [one[name].tolist() for name in names] != [other[name].tolist() for name in names]


@pytest.mark.parametrize("fast", [False, pytest.param(True, marks=pytest.mark.extension)])
def test_a_double_event_shows_and_a_status_makes_another_role(fast: bool) -> None:
    if fast and not refmq_fast.AVAILABLE:
        pytest.skip("the extension is not built")
    (cell,) = digest_cells(chunk_of([APPENDED, APPENDED]), KEYS, fast=fast)
    assert cell["count"] == 2
    acked = (5, 0, 9, 0, 1, 4096, 17, 12345, 0)
    roles = {int(cell["role"]) for cell in digest_cells(chunk_of([acked, (*acked[:8], 10)]), KEYS, fast=fast)}
    assert roles == {Role.ACKED, Role.ACKED_WITH_RESERVE}


@pytest.mark.extension
@pytest.mark.skipif(not refmq_fast.AVAILABLE, reason="the extension is not built")
def test_tables_that_do_not_belong_together_are_refused() -> None:
    rows, good = bytes(64), bytes(6)
    with pytest.raises(ValueError, match="sizes"):
        refmq_fast.digest_rows(rows, good, bytes(16), bytes(8), bytes(32))
    with pytest.raises(ValueError, match="sizes"):
        refmq_fast.digest_rows(bytes(63), good, bytes(8), bytes(8), bytes(32))
    assert refmq_fast.digest_rows(rows, good, bytes(8), bytes(8), bytes(32)) == b""
    assert refmq_fast.digest_rows(b"\xff" * 64, good, bytes(8), bytes(8), bytes(32)) == b"", "unknown strings"


@pytest.mark.extension
@pytest.mark.skipif(not refmq_fast.AVAILABLE, reason="the extension is not built")
def test_more_cells_than_the_table_holds_are_all_told() -> None:
    rows = [(2, 0, 9, 0, 1, at, at << 10, 1, 1) for at in range(60_000)]
    cells = digest_cells(chunk_of(rows), KEYS, fast=True)
    assert len(added(cells)) == 60_000
    assert CELL.itemsize == 88


@pytest.mark.extension
@pytest.mark.skipif(not refmq_fast.AVAILABLE, reason="the extension is not built")
def test_a_shared_object_that_was_sent_along_is_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sent = native.shared_object()
    assert sent is not None
    monkeypatch.setattr(refmq_fast, "AVAILABLE", False)
    native.kernels.cache_clear()
    assert native.kernels() is None and native.shared_object() is None
    shutil.copy(sent, tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    native.kernels.cache_clear()
    found = native.kernels()
    assert found is not None and found is not refmq_fast
    assert as_set(digest_cells(chunk_of([APPENDED]), KEYS)) == as_set(
        digest_cells(chunk_of([APPENDED]), KEYS, fast=False)
    )
    native.kernels.cache_clear()
    monkeypatch.delitem(sys.modules, native.MODULE)
