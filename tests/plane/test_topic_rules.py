"""What a topic may be called, and how it reads in a remark."""

from __future__ import annotations

import pytest

from refmq.plane import topic_rules
from refmq.protocol.bodies.config import TopicConfig


@pytest.mark.parametrize(
    ("name", "mistake"),
    [
        ("Orders", None),
        ("%RETRY%a|b-c_9", None),
        ("", "blank"),
        ("  ", "blank"),
        ("a.b", "illegal characters"),
        ("a\n", "illegal characters"),
        ("é", "illegal characters"),
        ("a" * 127, None),
        ("a" * 128, "longer"),
    ],
)
def test_a_name_is_checked_as_upstream_does(name: str, mistake: str | None) -> None:
    found = topic_rules.name_mistake(name)
    assert (found is None) if mistake is None else (found is not None and mistake in found)


def test_a_topic_reads_in_remarks_as_upstream_writes_it() -> None:
    text = topic_rules.describe(TopicConfig(topic_name="T", read_queue_nums=4, write_queue_nums=4))
    assert text == (
        "TopicConfig [topicName=T, readQueueNums=4, writeQueueNums=4, perm=RW-, "
        "topicFilterType=SINGLE_TAG, topicSysFlag=0, order=false]"
    )
