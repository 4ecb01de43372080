from __future__ import annotations

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from refmq.errors import UsageError, WireError
from refmq.model.ids import HostAddress, TimestampMs
from refmq.protocol import unique_id as module
from refmq.protocol.record import message_id
from refmq.protocol.unique_id import UniqueId, parse_unique_id, unique_id, unique_id_time

MONTH = TimestampMs(1_698_796_800_000)
MONTH_MS = 31 * 86_400_000

addresses = st.binary(min_size=4, max_size=4) | st.binary(min_size=16, max_size=16)
ids = st.builds(
    UniqueId,
    addresses,
    st.integers(0, 2**16 - 1),
    st.integers(0, 2**32 - 1),
    st.integers(0, 2**32 - 1),
    st.integers(0, 2**16 - 1),
)


@given(ids)
def test_an_id_comes_back_from_its_text(uid: UniqueId) -> None:
    assert parse_unique_id(str(uid)) == uid
    assert str(uid) == str(uid).upper()
    assert len(str(uid)) == (32 if len(uid.address) == 4 else 56)


def made(process_id: int, counter: int = 0, now_ms: int = MONTH) -> UniqueId:
    return unique_id(
        address=b"\x0a\x01\x02\x03",
        process_id=process_id,
        process_hash=0x11223344,
        now_ms=TimestampMs(now_ms),
        month_start_ms=MONTH,
        counter=counter,
    )


def processes_differ(first: int, second: int) -> None:
    assert str(made(first)) != str(made(second))


@given(st.integers(0, 2**16 - 1), st.integers(0, 2**16 - 1))
def test_two_processes_make_different_ids(first: int, second: int) -> None:
    assume(first != second)
    processes_differ(first, second)


def test_the_property_catches_a_process_id_written_by_its_high_half(monkeypatch: pytest.MonkeyPatch) -> None:
    """4.6.1 and before: four bytes were written and the low two overwritten, which left mostly zeros."""
    genuine = module.unique_id
    monkeypatch.setitem(
        made.__globals__, "unique_id", lambda **parts: genuine(**{**parts, "process_id": parts["process_id"] >> 16})
    )
    with pytest.raises(AssertionError):
        processes_differ(1234, 5678)


def test_the_layout() -> None:
    uid = unique_id(
        address=b"\x0a\x01\x02\x03",
        process_id=0x1_ABCD,
        process_hash=-1,
        now_ms=TimestampMs(MONTH + 0x01020304),
        month_start_ms=MONTH,
        counter=0x1_0007,
    )
    assert str(uid) == "0A010203ABCDFFFFFFFF010203040007"


@given(st.integers(0, MONTH_MS - 1))
def test_the_time_of_an_id_can_be_read_back(elapsed: int) -> None:
    uid = parse_unique_id(str(made(1, now_ms=MONTH + elapsed)))
    now = TimestampMs(MONTH + elapsed + 5)
    previous = TimestampMs(MONTH - 30 * 86_400_000)
    when = unique_id_time(uid, now_ms=now, month_start_ms=MONTH, previous_month_start_ms=previous)
    assert when == MONTH + elapsed


def test_an_id_from_the_future_is_of_the_month_before() -> None:
    uid = made(1, now_ms=MONTH + 1000)
    previous = TimestampMs(MONTH - MONTH_MS)
    when = unique_id_time(uid, now_ms=TimestampMs(MONTH + 10), month_start_ms=MONTH, previous_month_start_ms=previous)
    assert when == previous + 1000


def test_a_clock_that_steps_back_a_little_stands_still() -> None:
    assert made(1, now_ms=MONTH - 999_999).since_month_ms == 0
    with pytest.raises(UsageError):
        made(1, now_ms=MONTH - 1_000_000)
    with pytest.raises(UsageError):
        made(1, now_ms=MONTH + 2**32)
    with pytest.raises(UsageError):
        unique_id(address=b"x", process_id=1, process_hash=1, now_ms=MONTH, month_start_ms=MONTH, counter=0)


@pytest.mark.parametrize("text", ["", "0A", "Z" * 32, "0A" * 17, "0a 1" * 8, "٣" * 32])
def test_other_texts_are_no_such_ids(text: str) -> None:
    with pytest.raises(WireError, match="UNIQ_KEY"):
        parse_unique_id(text)


def test_the_ids_of_go_clients_are_read() -> None:
    assert parse_unique_id("0A010203ABCDFFFFFFFF0102030a0007").counter == 7


def test_both_kinds_of_id_of_the_message_in_the_books() -> None:
    assert message_id(HostAddress(bytes((10, 0, 0, 1)), 10911), 4096) == "0A00000100002A9F0000000000001000"
    ipv6 = HostAddress(bytes.fromhex("20010db8000000000000000000000002"), 10911)
    assert message_id(ipv6, 4096) == "20010DB800000000000000000000000200002A9F0000000000001000"
