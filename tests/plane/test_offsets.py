"""Committed offsets: a register that the last writer wins, per topic, group and queue."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from refmq.model.ids import QueueOffset
from refmq.plane import offsets
from refmq.plane.offsets import OffsetTable
from refmq.protocol.bodies.offsets import ConsumerOffsets

COMMITS = st.lists(
    st.tuples(st.sampled_from("tu"), st.sampled_from("gh"), st.integers(0, 2), st.integers(0, 9)), max_size=20
)


def play(commits: list[tuple[str, str, int, int]]) -> OffsetTable:
    table = OffsetTable()
    for topic, group, queue, offset in commits:
        table = offsets.commit_offset(table, topic, group, queue, QueueOffset(offset)).state
    return table


@given(COMMITS)
def test_the_last_commit_of_each_queue_is_what_is_stored(commits: list[tuple[str, str, int, int]]) -> None:
    last = {(topic, group, queue): offset for topic, group, queue, offset in commits}
    table = play(commits)
    assert all(table.get(*key) == offset for key, offset in last.items())
    assert table.get("t", "nobody", 0) is None


@given(COMMITS)
def test_what_is_written_to_the_file_is_read_back(commits: list[tuple[str, str, int, int]]) -> None:
    table = play(commits)
    assert offsets.load_offsets(table.body()) == table


def test_an_event_says_what_was_before_and_after() -> None:
    first = offsets.commit_offset(OffsetTable(), "t", "g", 1, QueueOffset(5))
    second = offsets.commit_offset(first.state, "t", "g", 1, QueueOffset(3))
    assert first.event is not None
    assert second.event is not None
    assert (first.event.a, first.event.b) == (-1, 5)
    assert (second.event.actor, second.event.subject, second.event.queue_id) == ("g", "t", 1)
    assert (second.event.a, second.event.b) == (5, 3)


def test_a_key_without_a_group_is_left_out() -> None:
    loaded = offsets.load_offsets(ConsumerOffsets(offset_table={"odd": {0: 1}, "t@g": {0: 2}}))
    assert loaded == play([("t", "g", 0, 2)])


def test_forgetting_a_group_and_cloning_one_touch_no_other() -> None:
    table = play([("t", "g", 0, 1), ("u", "g", 0, 2), ("t", "gg", 0, 3)])
    assert offsets.forget_group(table, "g") == play([("t", "gg", 0, 3)])
    cloned = offsets.clone_group(table, "g", "new", "t")
    assert cloned.get("t", "new", 0) == 1
    assert cloned.get("u", "new", 0) is None
    assert offsets.clone_group(table, "nobody", "new", "t") is table


def test_the_table_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(offsets, "ENTRIES_MAX", 1)
    table = play([("t", "g", 0, 1)])
    refused = offsets.commit_offset(table, "u", "g", 0, QueueOffset(1))
    assert refused.state is table
    assert refused.event is None
    assert offsets.commit_offset(table, "t", "g", 1, QueueOffset(1)).event is None, "each queue counts"
    assert offsets.commit_offset(table, "t", "g", 0, QueueOffset(2)).event is not None
    assert offsets.clone_group(table, "g", "new", "t") is table


@pytest.mark.parametrize(
    ("topic", "group", "queue_id"),
    [
        ("", "g", 0),
        ("t" * 263, "g", 0),
        ("t", "", 0),
        ("t", "g" * 256, 0),
        ("t/u", "g", 0),
        ("t", "g@h", 0),
        ("t", "g", -1),
        ("t", "g", 65_536),
        ("RMQ_SYS_TRANS_HALF_TOPIC", "CID_RMQ_SYS_TRANS", 0),
    ],
)
def test_what_nobody_can_have_consumed_is_not_committed(topic: str, group: str, queue_id: int) -> None:
    assert offsets.commit_mistake(topic, group, queue_id) is not None


def test_every_queue_that_there_can_be_can_have_an_offset() -> None:
    assert offsets.commit_mistake("%RETRY%" + "g" * 255, "g" * 255, 65_535) is None


@given(COMMITS)
def test_the_indexes_and_the_count_are_those_of_the_offsets(commits: list[tuple[str, str, int, int]]) -> None:
    table = offsets.forget_group(play(commits), "h")
    pairs = set(table.offsets)
    assert table.count == sum(len(queues) for queues in table.offsets.values())
    assert {(topic, group) for group in table.topics for topic in table.topics_of(group)} == pairs
    assert {(topic, group) for topic in table.groups for group in table.groups_of(topic)} == pairs
