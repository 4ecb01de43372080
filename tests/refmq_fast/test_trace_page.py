"""The page of a trace in C: what only it can get wrong. What pages have in common is in tests/trace/test_page.py."""

from __future__ import annotations

import gc
import sys
import weakref

import pytest

import refmq_fast
from refmq.model.step import Event

needs_extension = pytest.mark.skipif(not refmq_fast.AVAILABLE, reason=f"extension is off: {refmq_fast.REASON}")

TABLE = {"": 0, "AckPut": 1, "topic": 2, "größe": 0xFFFF, "too far for an action": 0x1_0000, "last": 0xFFFF_FFFF}


@needs_extension
@pytest.mark.extension
class TestTracePage:
    """What only the one in C can get wrong."""

    @pytest.mark.parametrize("records", [0, -1, (1 << 20) + 1, sys.maxsize])
    def test_a_size_that_cannot_be_meant_is_refused(self, records: int) -> None:
        with pytest.raises(ValueError, match="1 to 1048576 records"):
            refmq_fast.TracePage(records, {}, 0)

    def test_arguments_of_other_types_are_refused(self) -> None:
        page = refmq_fast.TracePage(1, TABLE, 0)
        for call in (
            lambda: refmq_fast.TracePage(1, [], 0),  # type: ignore[arg-type]  # on purpose
            lambda: refmq_fast.TracePage(1, {}),  # type: ignore[call-arg]  # on purpose
            lambda: page.pack(Event("AckPut"), 0, 0),  # type: ignore[call-arg]  # on purpose
            lambda: page.put("text", 0),  # type: ignore[arg-type]  # on purpose
            lambda: page.read("0"),  # type: ignore[arg-type]  # on purpose
        ):
            with pytest.raises(TypeError):
                call()
        with pytest.raises(OverflowError):
            page.read(-1)
        assert (page.room, page.sequence) == (1, 0)

    def test_nothing_is_kept_alive(self) -> None:
        class Table(dict[str, int]):
            pass

        table = Table(TABLE)
        table["cycle"] = refmq_fast.TracePage(1, table, 0)  # type: ignore[assignment]  # the worst that can be in it
        gone = weakref.ref(table)
        del table
        gc.collect()
        assert gone() is None

    def test_references_are_counted(self) -> None:
        text, number = "".join(["to", "pic"]), 1 << 40
        strings = {"": 0, text: 1 << 20}
        page = refmq_fast.TracePage(1_000, strings, 0)
        event = ("", text, text, 0, number, number, 1 << 70, 0)
        before = [sys.getrefcount(value) for value in (event, text, number, strings, strings[text])]
        for _ in range(1_000):
            assert not page.pack(event, number, 0, number)
            assert page.pack((*event[:6], 1, 0), number, 0, number)
        assert [sys.getrefcount(value) for value in (event, text, number, strings, strings[text])] == before
