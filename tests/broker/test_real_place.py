"""Where a message belongs, according to properties that nobody protects."""

from __future__ import annotations

import pytest

from refmq.broker.real_place import RealPlace, real_place
from refmq.plane.topic_rules import QUEUES_MAX


@pytest.mark.parametrize("queue_id", [0, 1, QUEUES_MAX - 1])
def test_a_topic_and_a_queue_of_it_are_a_place(queue_id: int) -> None:
    assert real_place({"REAL_TOPIC": "%RETRY%g", "REAL_QID": str(queue_id)}) == RealPlace("%RETRY%g", queue_id)


@pytest.mark.parametrize(
    ("topic", "queue"),
    [
        ("", "0"),
        ("a/b", "0"),
        ("x" * 128, "0"),
        ("SCHEDULE_TOPIC_XXXX", "0"),
        ("RMQ_SYS_TRANS_HALF_TOPIC", "0"),
        ("RMQ_SYS_TRANS_OP_HALF_TOPIC", "0"),
        ("T", ""),
        ("T", "-1"),
        ("T", "\u0663"),
        ("T", str(QUEUES_MAX)),
        ("T", "9" * 5_000),
    ],
)
def test_anything_else_is_none(topic: str, queue: str) -> None:
    assert real_place({"REAL_TOPIC": topic, "REAL_QID": queue}) is None


def test_without_properties_there_is_none() -> None:
    assert real_place({}) is None
