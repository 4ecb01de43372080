"""What the name of a topic may be, which topics belong to a group, and how a topic reads in a remark."""

from __future__ import annotations

import re
from typing import Final

from refmq.model.broker_config import perm_text
from refmq.protocol.bodies.config import TopicConfig
from refmq.protocol.names import DLQ_PREFIX, RETRY_PREFIX, TOPIC_LENGTH_MAX

QUEUES_MAX: Final = 65_536
"""Of a topic; upstream has no bound. A number off the wire must not become a million files."""

_LEGAL_NAME: Final = re.compile(r"[%|a-zA-Z0-9_-]+")


def retry_topic(group: str) -> str:
    return RETRY_PREFIX + group


def dlq_topic(group: str) -> str:
    return DLQ_PREFIX + group


def is_legal_name(name: str) -> bool:
    """Whether a topic or a group may be called so, however long that is."""
    return _LEGAL_NAME.fullmatch(name) is not None


def name_mistake(topic: str) -> str | None:
    """Why a name cannot be a topic's, in upstream's words, or None."""
    if not topic.strip():
        return "The specified topic is blank."
    if not _LEGAL_NAME.fullmatch(topic):
        return "The specified topic contains illegal characters, allowing only ^[%|a-zA-Z0-9_-]+$"
    if len(topic) > TOPIC_LENGTH_MAX:
        return "The specified topic is longer than topic max length."
    return None


def describe(topic: TopicConfig) -> str:
    """A topic as it reads in remarks."""
    return (
        f"TopicConfig [topicName={topic.topic_name}, readQueueNums={topic.read_queue_nums}, "
        f"writeQueueNums={topic.write_queue_nums}, perm={perm_text(topic.perm)}, "
        f"topicFilterType={topic.topic_filter_type.name}, topicSysFlag={topic.topic_sys_flag}, "
        f"order={'true' if topic.order else 'false'}]"
    )
