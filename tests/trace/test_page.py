"""Pages of a trace: the same cases for the one in C and the one in Python, and the same bytes from both."""

from __future__ import annotations

import struct
import threading

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import refmq_fast
from refmq.model.step import Event, EventFields
from refmq.trace.page import NewPage, Page, PlainPage, new_page
from refmq.trace.record import RECORD_BYTES, Encoder, Outcome

needs_extension = pytest.mark.skipif(not refmq_fast.AVAILABLE, reason=f"extension is off: {refmq_fast.REASON}")
PAGES = ["plain", pytest.param("extension", marks=[needs_extension, pytest.mark.extension])]


TABLE = {"": 0, "AckPut": 1, "topic": 2, "größe": 0xFFFF, "too far for an action": 0x1_0000, "last": 0xFFFF_FFFF}
NAMES = st.sampled_from([*TABLE, "unknown"])


NEAR = (-1, 0, 1)


NUMBERS = st.one_of(
    st.integers(-(1 << 65), 1 << 65),
    st.sampled_from([sign * (1 << bits) + near for bits in (8, 31, 32, 63, 64) for sign in (1, -1) for near in NEAR]),
)


FITTING = st.builds(
    Event,
    st.sampled_from(["", "AckPut", "größe"]),
    st.sampled_from([*TABLE]),
    st.sampled_from([*TABLE]),
    st.integers(-(1 << 31), (1 << 31) - 1),
    *[st.integers(-(1 << 63), (1 << 63) - 1)] * 3,
    st.integers(0, (1 << 32) - 1),
)


def page_type(name: str) -> NewPage:
    return PlainPage if name == "plain" else refmq_fast.TracePage


@needs_extension
@pytest.mark.extension
def test_the_faster_one_is_taken_where_it_is() -> None:
    assert new_page is refmq_fast.TracePage


@pytest.mark.parametrize("name", PAGES)
class TestPage:
    @given(FITTING, st.integers(-(1 << 63), (1 << 63) - 1), st.sampled_from(Outcome), st.integers(0, (1 << 64) - 1))
    def test_it_packs_what_the_encoder_packs(
        self, name: str, event: Event, at_ns: int, outcome: Outcome, operation: int
    ) -> None:
        encoder = Encoder("n", 0)
        encoder.strings, encoder.sequence = TABLE, (1 << 32) + 5
        page = page_type(name)(2, TABLE, (1 << 32) + 5)
        assert page.pack(event, at_ns, outcome, operation)
        plain: EventFields = (*event,)
        assert page.pack(plain, at_ns, outcome, operation)
        expected = [encoder.event(event, at_ns, outcome, operation) for _ in range(2)]
        assert page.read(0) == b"".join(expected)
        assert page.sequence == (1 << 32) + 7

    def test_it_takes_as_many_records_as_it_has_room_for(self, name: str) -> None:
        page = page_type(name)(3, TABLE, 0)
        page.put(b"x" * RECORD_BYTES, 7)
        assert (page.room, page.sequence) == (2, 7)
        assert [page.pack(Event("AckPut", a=number), 0, 0, 0) for number in range(4)] == [True, True, False, False]
        assert (page.room, page.sequence) == (0, 9)
        data = page.read(0)
        assert data[:RECORD_BYTES] == b"x" * RECORD_BYTES
        assert [struct.unpack_from("<I8xq", data, at * RECORD_BYTES + 4) for at in (1, 2)] == [(7, 0), (8, 1)]

    @pytest.mark.parametrize("records", [b"x", b"x" * 63, b"x" * 65, b"x" * 192])
    def test_records_that_are_not_whole_or_too_many_are_refused(self, name: str, records: bytes) -> None:
        page = page_type(name)(2, TABLE, 5)
        with pytest.raises(ValueError, match=r"bytes are not whole records, or more than the 2 that fit in"):
            page.put(records, 9)
        assert (page.room, page.sequence, page.read(0)) == (2, 5, b"")

    def test_it_is_read_from_anywhere(self, name: str) -> None:
        page = page_type(name)(2, TABLE, 0)
        page.put(bytes(range(128)), 0)
        assert page.read(0) == bytes(range(128))
        assert page.read(64) == bytes(range(64, 128))
        assert page.read(128) == page.read(500) == b""

    def test_the_table_may_grow(self, name: str) -> None:
        strings = {"": 0}
        page = page_type(name)(1, strings, 0)
        assert not page.pack(Event("AckPut"), 0, 0, 0)
        strings["AckPut"] = 7
        assert page.pack(Event("AckPut"), 0, 0, 0)
        assert page.read(0)[2:4] == b"\7\0"

    @pytest.mark.parametrize("event", [(), ("AckPut",), ("AckPut", "", "", 0, 0, 0, 0), ("",) * 9])
    def test_what_is_no_event_is_refused(self, name: str, event: EventFields) -> None:
        with pytest.raises(ValueError, match=r"unpack|tuple of 8 fields"):
            page_type(name)(1, TABLE, 0).pack(event, 0, 0, 0)

    @pytest.mark.parametrize("number", [1.0, "1", None, b"1"])
    def test_what_is_no_number_does_not_fit(self, name: str, number: int) -> None:
        page = page_type(name)(1, TABLE, 0)
        assert not page.pack(("AckPut", "", "", 0, number, 0, 0, 0), 0, 0, 0)
        assert not page.pack(Event("AckPut"), 0, 0, number)
        assert (page.room, page.sequence) == (1, 0)

    def test_a_mistake_inside_of_a_field_comes_out(self, name: str) -> None:
        class Number(int):
            pass

        class Wrong:
            def __index__(self) -> int:
                raise RuntimeError("mine")

        page = page_type(name)(1, TABLE, 0)
        with pytest.raises(RuntimeError, match="mine"):
            page.pack(("AckPut", "", "", 0, Wrong(), 0, 0, 0), 0, 0, 0)  # type: ignore[arg-type]  # that is the mistake
        with pytest.raises(TypeError, match="unhashable"):
            page.pack(("AckPut", [], "", 0, 0, 0, 0, 0), 0, 0, 0)  # type: ignore[arg-type]  # this too
        assert page.pack(("AckPut", "", "", 0, Number(5), 0, 0, True), 0, 0, 0)

    def test_what_is_finished_can_be_read_while_more_is_packed(self, name: str) -> None:
        count = 20_000
        page = page_type(name)(count, TABLE, 0)
        read = bytearray()

        def follow() -> None:
            while len(read) < count * RECORD_BYTES:
                read.extend(page.read(len(read)))

        reader = threading.Thread(target=follow)
        reader.start()
        for number in range(count):
            assert page.pack(("AckPut", "topic", "", 3, number, -number, 0, 0), number, 0, 0)
        reader.join(timeout=60)
        assert not reader.is_alive()
        assert bytes(read) == page.read(0)
        assert list(struct.iter_unpack("<4xI8xqq32x", read)) == [(n, n, -n) for n in range(count)]


@needs_extension
@pytest.mark.extension
class TestBoth:
    @given(
        st.tuples(NAMES, NAMES, NAMES, NUMBERS, NUMBERS, NUMBERS, NUMBERS, NUMBERS),
        NUMBERS,
        NUMBERS,
        NUMBERS,
    )
    @example(("AckPut", "last", "topic", -1, 1, 2, 3, 4), 5, 255, (1 << 64) - 1)
    def test_they_agree_on_what_fits_and_on_its_bytes(
        self, event: EventFields, at_ns: int, outcome: int, operation: int
    ) -> None:
        plain, fast = PlainPage(1, TABLE, 0), refmq_fast.TracePage(1, TABLE, 0)
        packed = plain.pack(event, at_ns, outcome, operation)
        assert fast.pack(event, at_ns, outcome, operation) is packed
        assert fast.read(0) == plain.read(0)
        assert (fast.room, fast.sequence) == (plain.room, plain.sequence) == ((0, 1) if packed else (1, 0))

    @pytest.mark.parametrize("position", range(5))
    @pytest.mark.parametrize("offset", [-1, 0, 1])
    @pytest.mark.parametrize("limit", [-(1 << 63), -(1 << 31), 0, 1 << 8, 1 << 16, 1 << 31, 1 << 32, 1 << 63, 1 << 64])
    def test_they_agree_at_every_limit_of_every_field(self, position: int, offset: int, limit: int) -> None:
        fields = [0] * 5
        fields[position] = limit + offset
        event = ("AckPut", "", "topic", fields[0], fields[1], fields[2], fields[3], fields[4])
        numbers = [(0, 0, 0), (limit + offset, 0, 0), (0, limit + offset, 0), (0, 0, limit + offset)]
        for at_ns, outcome, operation in numbers if position == 0 else numbers[:1]:
            pages: list[Page] = [PlainPage(1, TABLE, 0), refmq_fast.TracePage(1, TABLE, 0)]
            assert len({page.pack(event, at_ns, outcome, operation) for page in pages}) == 1
            assert len({page.read(0) for page in pages}) == 1
