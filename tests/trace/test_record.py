from __future__ import annotations

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from refmq.errors import CorruptRecord
from refmq.model.step import Event
from refmq.trace.memory import encode_trace
from refmq.trace.reader import decode_file
from refmq.trace.record import (
    BLOCK_RECORDS_MAX,
    RECORD_BYTES,
    STRING_BYTES_MAX,
    Dropped,
    Encoder,
    Outcome,
    Recorded,
    decode_file_head,
    seal_block,
)

I64 = st.integers(-(1 << 63), (1 << 63) - 1)
NAMES = st.one_of(st.sampled_from(["", "AckPut", "topic", "DefaultCluster"]), st.text(max_size=150))
EVENTS = st.builds(
    Event,
    action=NAMES,
    actor=NAMES,
    subject=NAMES,
    queue_id=st.integers(-1, (1 << 31) - 1),
    a=I64,
    b=I64,
    c=I64,
    d=st.integers(0, (1 << 32) - 1),
)
RECORDED = st.builds(
    Recorded,
    event=EVENTS,
    at_ns=I64,
    sequence=st.just(0),
    outcome=st.sampled_from(Outcome),
    operation=st.integers(0, (1 << 64) - 1),
)


def numbered(events: list[Recorded]) -> list[Recorded]:
    return [Recorded(e.event, e.at_ns, number, e.outcome, e.operation) for number, e in enumerate(events)]


@given(NAMES, st.lists(RECORDED, max_size=20))
def test_decoding_what_was_encoded_gives_it_back(node: str, events: list[Recorded]) -> None:
    data = encode_trace(node, 17, events)
    assert len(data) % RECORD_BYTES == 0
    file = decode_file(data)
    assert file.events == numbered(events)
    assert (file.node, file.head.life_ns, file.damage, file.drops) == (node, 17, [], [])


def test_many_events_go_to_several_blocks() -> None:
    events = [Recorded(Event("AckPut", subject=f"topic-{n % 7}", a=n), n, n) for n in range(3 * BLOCK_RECORDS_MAX)]
    file = decode_file(encode_trace("broker-a", 0, events))
    assert file.events == events
    assert file.block_count == 4


def test_the_layout_is_the_one_in_the_table() -> None:
    event = Event("Act", "who", "what", 7, 1, -2, 3, 4)
    data = encode_trace("n", 5, [Recorded(event, 9, 0, Outcome.OK, 11)])
    assert data[:12] == b"refmqtrc" + struct.pack("<HH", 1, 64)
    assert struct.unpack_from("<Iqq", data, 12) == (0, 5, 5)
    block, name, action, actor, subject, record = (data[64 * n : 64 * n + 64] for n in range(1, 7))
    assert struct.unpack_from("<BBHIQ", block) == (4, 0, 5, 0, 0)
    for number, (raw, text) in enumerate(
        [(name, b"n"), (action, b"Act"), (actor, b"who"), (subject, b"what")], start=1
    ):
        assert struct.unpack_from("<BBHI", raw) == (2, len(text), 0, number)
        assert raw[8:] == text.ljust(56, b"\0")
    assert struct.unpack("<BBHIqqqqIIIiQ", record) == (1, 2, 2, 0, 9, 1, -2, 3, 4, 3, 4, 7, 11)


@given(st.lists(RECORDED, min_size=1, max_size=5), st.data())
def test_every_cut_of_a_file_is_a_torn_tail_and_loses_only_its_last_blocks(
    events: list[Recorded], data: st.DataObject
) -> None:
    encoder = Encoder("n", 0)
    whole = encoder.begin_file(0) + seal_block(encoder.node_name(), 0, 0)
    ends = [len(whole)]
    for number, recorded in enumerate(events, start=1):
        whole += seal_block(
            encoder.event(recorded.event, recorded.at_ns, recorded.outcome, recorded.operation), number, 0
        )
        ends.append(len(whole))
    cut = data.draw(st.integers(RECORD_BYTES, len(whole)))
    file = decode_file(whole[:cut])
    kept = sum(end <= cut for end in ends[1:])
    assert file.events == numbered(events)[:kept]
    assert [damage.is_tail for damage in file.damage] == ([] if cut in (RECORD_BYTES, *ends) else [True])


@given(st.lists(RECORDED, min_size=3, max_size=6), st.data())
def test_every_changed_byte_is_noticed(events: list[Recorded], data: st.DataObject) -> None:
    encoded = bytearray(encode_trace("n", 0, events))
    at = data.draw(st.integers(0, len(encoded) - 1))
    encoded[at] ^= data.draw(st.integers(1, 255))
    try:
        file = decode_file(bytes(encoded))
    except CorruptRecord:
        assert at < RECORD_BYTES
        return
    assert at >= RECORD_BYTES
    assert file.damage


def test_damage_in_the_middle_does_not_hide_what_follows() -> None:
    encoder = Encoder("n", 0)
    parts = [encoder.begin_file(0), seal_block(encoder.node_name(), 0, 0)]
    parts += [seal_block(encoder.event(Event("A", a=n), n), n + 1, n) for n in range(3)]
    parts[3] = parts[3][:-1] + b"\xff"
    file = decode_file(b"".join(parts))
    assert [recorded.event.a for recorded in file.events] == [0, 2]
    assert [damage.is_tail for damage in file.damage] == [False]


def test_reserved_space_at_the_end_is_no_damage() -> None:
    data = encode_trace("n", 0, [Recorded(Event("A"), 0, 0)])
    file = decode_file(data + bytes(10 * RECORD_BYTES))
    assert len(file.events) == 1
    assert file.damage == []


def test_a_string_that_is_too_long_is_cut_at_a_character() -> None:
    file = decode_file(encode_trace("ü" * STRING_BYTES_MAX, 0, []))
    assert file.node == "ü" * (STRING_BYTES_MAX // 2)


def test_a_drop_is_part_of_the_file() -> None:
    encoder = Encoder("n", 0)
    head = encoder.begin_file(0)
    block = encoder.node_name() + encoder.drop(Dropped(41, 7, 99))
    assert decode_file(head + seal_block(block, 0, 0)).drops == [Dropped(41, 7, 99)]


@pytest.mark.parametrize(
    ("data", "field"),
    [(b"", "file head"), (b"x" * 64, "magic"), (b"refmqtrc\x02" + bytes(55), "version")],
)
def test_a_file_that_is_no_trace_says_so(data: bytes, field: str) -> None:
    with pytest.raises(CorruptRecord) as caught:
        decode_file_head(data)
    assert caught.value.field == field
