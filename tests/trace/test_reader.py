from __future__ import annotations

import io
import tracemalloc
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from refmq.model.step import Event
from refmq.trace.columns import load
from refmq.trace.reader import TraceReader, decode_file
from refmq.trace.record import (
    BLOCK_RECORDS_MAX,
    KIND_DROP,
    KIND_EVENT,
    KIND_STRING,
    RECORD_BYTES,
    Dropped,
    Encoder,
    Outcome,
    Recorded,
    seal_block,
)

EVENTS_PER_BLOCK = 3


def blocks(count: int) -> list[bytes]:
    """The head of a file and blocks of some events; the first bring strings, and one says that some are missing."""
    encoder = Encoder("broker-a", 5)
    parts = [encoder.begin_file(5)]
    for number in range(count):
        records = encoder.node_name() if number == 0 else b""
        if number == 2:
            records += encoder.drop(Dropped(4, encoder.sequence, 1))
        for position in range(EVENTS_PER_BLOCK):
            a = number * EVENTS_PER_BLOCK + position
            records += encoder.event(Event("A", f"actor-{min(number, 3)}", "long" * 40, 1, a), a, a % 6, a)
        parts.append(seal_block(records, number, 0))
    return parts


def broken(part: bytes) -> bytes:
    return part[:-1] + bytes([part[-1] ^ 1])


def test_strings_that_were_lost_in_a_damaged_block_are_read_as_their_numbers() -> None:
    parts = blocks(4)
    parts[2] = broken(parts[2])
    file = decode_file(b"".join(parts))
    assert [recorded.event.actor for recorded in file.events] == ["actor-0"] * 3 + ["actor-2"] * 3 + ["actor-3"] * 3
    encoder = Encoder("n", 0)
    head, first = encoder.begin_file(0), seal_block(encoder.node_name(), 0, 0)
    lost = seal_block(encoder.event(Event("Lost", "who"), 1), 1, 0)
    found = seal_block(encoder.event(Event("Lost", "who", a=9), 2), 2, 1)
    file = decode_file(head + first + broken(lost) + found)
    assert [recorded.event for recorded in file.events] == [Event("?2", "?3", a=9)]
    assert len(file.damage) == 1


def test_a_node_whose_name_was_lost_has_a_number_and_one_that_says_nothing_has_none() -> None:
    parts = blocks(3)
    assert decode_file(b"".join([parts[0], broken(parts[1]), *parts[2:]])).node == "?1"
    assert decode_file(parts[0]).node == ""


def test_a_string_that_was_never_written_is_damage_of_its_event_alone() -> None:
    encoder = Encoder("n", 0)
    head, name = encoder.begin_file(0), encoder.node_name()
    encoder.strings["never"] = 77
    records = name + b"".join(encoder.event(Event(action), 0) for action in ("A", "never", "B"))
    file = decode_file(head + seal_block(records, 0, 0))
    assert [recorded.event.action for recorded in file.events] == ["A", "B"]
    (damage,) = file.damage
    assert (damage.position, damage.end) == (64 + 64 + 3 * 64, 64 + 64 + 4 * 64)
    assert not damage.is_tail
    assert damage.reason == f"action at physical offset {damage.position + 2} should be a string of this file but is 77"


@pytest.mark.parametrize(
    ("record", "reason"),
    [
        (b"\x09" + bytes(63), "kind"),
        (bytes([KIND_EVENT, 6]) + bytes(62), "outcome"),
        (bytes([KIND_STRING, 57, 0, 0, 9]) + bytes(59), "length"),
        (bytes([KIND_STRING, 1, 2, 0, 9]) + bytes(59), "more"),
        (bytes([KIND_STRING, 1, 1, 0, 9]) + bytes(59), "number"),  # the next string is another one
        (bytes([KIND_STRING, 1, 0, 0, 0]) + bytes(59), "number"),
        (bytes([KIND_STRING, 1, 0, 0, 0, 0, 1]) + bytes(57), "number"),
    ],
)
def test_a_record_that_makes_no_sense_is_damage_and_the_next_is_read(record: bytes, reason: str) -> None:
    encoder = Encoder("n", 0)
    head, name = encoder.begin_file(0), encoder.node_name()
    records = name + record + encoder.event(Event("A", a=3), 0)
    file = decode_file(head + seal_block(records, 0, 0))
    assert [recorded.event.a for recorded in file.events] == [3]
    assert [damage.reason.split()[0] for damage in file.damage] == [reason]


def test_neighbouring_damage_is_one_stretch() -> None:
    parts = blocks(6)
    file = decode_file(b"".join([*parts[:2], broken(parts[2]), broken(parts[3]), *parts[4:]]))
    (damage,) = file.damage
    assert (damage.position, damage.end) == (len(b"".join(parts[:2])), len(b"".join(parts[:4])))


def test_strange_records_in_a_row_are_one_stretch() -> None:
    encoder = Encoder("n", 0)
    head, name = encoder.begin_file(0), encoder.node_name()
    file = decode_file(head + seal_block(name + 3 * (b"\x09" + bytes(63)), 0, 0))
    assert [(damage.position, damage.end) for damage in file.damage] == [(64 * 3, 64 * 6)]


def test_a_record_between_two_blocks_hides_neither() -> None:
    parts = blocks(2)
    file = decode_file(b"".join([*parts[:2], b"\x04" + bytes(63), parts[2]]))
    assert [recorded.event.a for recorded in file.events] == list(range(6))
    assert [damage.end - damage.position for damage in file.damage] == [RECORD_BYTES]


def test_a_string_without_its_end_does_not_swallow_an_event() -> None:
    encoder = Encoder("n", 0)
    head, name = encoder.begin_file(0), encoder.node_name()
    encoder.sequence = 9  # the event looks like the last piece of string 9, but for its kind
    records = name + bytes([KIND_STRING, 1, 1, 0, 9]) + bytes(59) + encoder.event(Event("", a=3), 0)
    file = decode_file(head + seal_block(records, 0, 0))
    assert [recorded.event.a for recorded in file.events] == [3]
    assert [damage.reason.split()[0] for damage in file.damage] == ["more"]


def test_events_and_drops_come_in_their_order() -> None:
    reader = TraceReader(io.BytesIO(b"".join(blocks(4))))
    kinds = ["drop" if isinstance(entry, Dropped) else entry.event.a for entry in reader.entries()]
    assert kinds == [0, 1, 2, 3, 4, 5, "drop", *range(6, 12)]


@given(st.lists(st.integers(0, 2**31), max_size=4), st.booleans(), st.data())
def test_numpy_reads_of_a_damaged_file_what_the_plain_reader_reads(
    tmp_path_factory: pytest.TempPathFactory, places: list[int], is_cut: bool, data: st.DataObject
) -> None:
    whole = bytearray(b"".join(blocks(8)))
    for place in places:
        whole[RECORD_BYTES + place % (len(whole) - RECORD_BYTES)] ^= data.draw(st.integers(1, 255))
    if is_cut:
        del whole[data.draw(st.integers(RECORD_BYTES, len(whole))) :]
    path = tmp_path_factory.mktemp("damaged") / "x.trace"
    path.write_bytes(whole)
    same_in_columns(path)


@pytest.mark.parametrize("position", range(1, 8))
@pytest.mark.parametrize("field", [b"\x09", bytes([KIND_EVENT, 9]), bytes([KIND_EVENT, 0, 99]), bytes([KIND_DROP])])
def test_numpy_reads_of_strange_records_what_the_plain_reader_reads(
    tmp_path: Path, position: int, field: bytes
) -> None:
    parts = blocks(8)
    records = bytearray(parts[position][RECORD_BYTES:])
    records[-RECORD_BYTES : len(records) - RECORD_BYTES + len(field)] = field
    parts[position] = seal_block(bytes(records), position - 1, 0)
    path = tmp_path / "x.trace"
    path.write_bytes(b"".join(parts))
    same_in_columns(path)


def same_in_columns(path: Path) -> None:
    plain, columns = decode_file(path.read_bytes()), load(path)
    strings = columns.strings
    found = [
        Recorded(
            Event(
                strings[row["action"]],
                strings[row["actor"]],
                strings[row["subject"]],
                *[int(row[name]) for name in ("queue_id", "a", "b", "c", "d")],
            ),
            int(row["at_ns"]),
            int(row["sequence"]),
            Outcome(row["outcome"]),
            int(row["operation"]),
        )
        for row in columns.events
    ]
    assert found == plain.events
    assert (columns.head, columns.drops, columns.damage) == (plain.head, plain.drops, plain.damage)


def test_no_more_than_a_block_is_kept_in_memory() -> None:
    encoder = Encoder("n", 0)
    parts = [encoder.begin_file(0), seal_block(encoder.node_name() + encoder.event(Event("A"), 0), 0, 0)]
    record = encoder.event(Event("A", a=1), 0)
    parts += [seal_block(record * BLOCK_RECORDS_MAX, number, 0) for number in range(1, 17)]
    parts[4] = broken(parts[4])
    source = io.BytesIO(b"".join(parts))
    tracemalloc.start()
    try:
        reader = TraceReader(source)
        count = sum(1 for _ in reader.entries())
        _, peak_bytes = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert count == 1 + 15 * BLOCK_RECORDS_MAX
    assert peak_bytes < 6 * BLOCK_RECORDS_MAX * RECORD_BYTES  # of sixteen that the file has
