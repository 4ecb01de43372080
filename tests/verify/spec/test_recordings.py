"""Recordings: files of several nodes become one trace, and every protocol that it concerns is judged."""

from __future__ import annotations

from pathlib import Path

import pytest

from refmq.errors import UsageError
from refmq.model.step import Event
from refmq.trace.memory import encode_trace
from refmq.trace.record import Outcome, Recorded
from refmq.verify.spec.check import RunOptions
from refmq.verify.spec.group_hints import Told
from refmq.verify.spec.recordings import (
    GROUPS,
    STORE,
    Settings,
    brokers_of,
    judge_recording,
    out_of_order,
    read_recording,
)
from refmq.verify.spec.tlc import Tlc
from tests.verify.spec.helpers import SPEC
from tests.verify.spec.recorded_store import store_events


def write(folder: Path, node: str, life_ns: int, events: list[tuple[int, Event]]) -> None:
    recorded = [Recorded(event, at_ns, number, Outcome.STEP, 0) for number, (at_ns, event) in enumerate(events)]
    (folder / f"{node}-{life_ns}-00000.trace").write_bytes(encode_trace(node, life_ns, recorded))


def test_the_events_of_all_nodes_are_one_trace_in_the_order_of_their_clocks(tmp_path: Path) -> None:
    write(tmp_path, "broker-a", 20, [(21, Event("StartStore")), (25, Event("Heartbeat", "c", "g"))])
    write(tmp_path, "client", 1, [(24, Event("ViewRefresh", "g@c", "T")), (26, Event("Leave", "c", "g"))])
    write(tmp_path, "broker-a", 10, [(30, Event("StartStore", a=1))])
    told = read_recording(tmp_path)
    assert [(one.node, one.event.action) for one in told if one.node == "client"] == [
        ("client", "ViewRefresh"),
        ("client", "Leave"),
    ]
    assert [one.event for one in told if one.node == "broker-a"] == [
        Event("StartStore", a=1),
        Event("StartStore"),
        Event("Heartbeat", "c", "g"),
    ], "lives follow each other, even when a clock was set back"
    assert brokers_of(told) == ["broker-a"]


def test_what_is_not_complete_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no trace files"):
        read_recording(tmp_path)
    assert out_of_order([0, 1, 2]) is None
    assert out_of_order([0xFFFF_FFFF, 0], 0xFFFF_FFFF) is None
    assert [out_of_order([0, 2]), out_of_order([0, 0]), out_of_order([1])] == [(2, 1), (0, 1), (1, 0)]
    write(tmp_path, "broker-a", 1, [(number, Event("Heartbeat", "c", "g")) for number in range(5)])
    (path,) = tmp_path.iterdir()
    data = bytearray(path.read_bytes())
    data[-64:-60] = b"\x09\x09\x09\x09"  # in the last event: the checksum of the block does not hold
    whole = path.read_bytes()[64:]
    path.write_bytes(bytes(data) + whole)
    with pytest.raises(UsageError, match="is not complete"):
        read_recording(tmp_path)


@pytest.mark.jdk
def test_a_recording_is_judged_by_every_protocol_that_it_concerns(tlc: Tlc) -> None:
    told = [Told("broker-a", event) for event in store_events()]
    options, settings = RunOptions(timeout_s=120), Settings(sync_flush=True)
    (alone,) = judge_recording(tlc, SPEC, told, options, settings)
    assert (alone.node, alone.protocol, alone.answer.accepted) == ("broker-a", STORE, True)

    told.insert(-1, Told("broker-a", Event("CommitOffset", "g", "T", 0, a=-1, b=1)))
    told.insert(-1, Told("broker-a", Event("CommitOffset", "g", "T", 0, a=0, b=2)))
    store, groups = judge_recording(tlc, SPEC, told, options, settings)
    assert (store.answer.accepted, groups.protocol, groups.answer.accepted) == (True, GROUPS, False)
    assert "before=0" in groups.answer.reason
    (only,) = judge_recording(tlc, SPEC, told, options, settings, [GROUPS])
    assert only.protocol == GROUPS


def test_a_recording_begins_with_a_broker() -> None:
    with pytest.raises(UsageError, match="no start of a broker"):
        list(judge_recording(Tlc((), (), "none"), SPEC, [], RunOptions(), Settings()))


def test_a_missing_file_of_a_life_is_noticed_by_its_numbers(tmp_path: Path) -> None:
    for number in (0, 2):
        recorded = [Recorded(Event("Heartbeat", "c", "g"), 5, 0, Outcome.STEP, 0)]
        (tmp_path / f"broker-a-1-0000{number}.trace").write_bytes(encode_trace("broker-a", 1, recorded))
    with pytest.raises(UsageError, match="event 0 follows 0"):
        read_recording(tmp_path)
