"""Names that mean something to RocketMQ: properties, topics, groups, and namespaces.

form                      what it names
------------------------  ---------------------------------------------------------------
``%RETRY%group``          topic of messages that a group will see again
``%DLQ%group``            topic of messages that a group has given up
``%LMQ%name``             light queue
``cluster_REPLY_TOPIC``   topic of answers to requests
``CID_RMQ_SYS_...``       consumer group of the system
``rmq_sys_...``           topic of the system
``ns%name``               ``name`` in namespace ``ns``: a renaming that only clients know of. The prefixes of
                          retry and dead letter topics stay in front, ``%RETRY%ns%group``
"""

from __future__ import annotations

import re
from typing import Final

FAQ: Final = "\nSee http://rocketmq.apache.org/docs/faq/ for further details."
"""How some of upstream's remarks end."""

RETRY_PREFIX: Final = "%RETRY%"
DLQ_PREFIX: Final = "%DLQ%"
LMQ_PREFIX: Final = "%LMQ%"
REPLY_TOPIC_SUFFIX: Final = "_REPLY_TOPIC"
SYSTEM_GROUP_PREFIX: Final = "CID_RMQ_SYS_"
SYSTEM_TOPIC_PREFIX: Final = "rmq_sys_"

AUTO_CREATE_TOPIC: Final = "TBW102"
SCHEDULE_TOPIC: Final = "SCHEDULE_TOPIC_XXXX"
TRANS_HALF_TOPIC: Final = "RMQ_SYS_TRANS_HALF_TOPIC"
TRANS_OP_HALF_TOPIC: Final = "RMQ_SYS_TRANS_OP_HALF_TOPIC"
TRANS_CHECK_MAX_TIME_TOPIC: Final = "TRANS_CHECK_MAX_TIME_TOPIC"
TRACE_TOPIC: Final = "RMQ_SYS_TRACE_TOPIC"
SELF_TEST_TOPIC: Final = "SELF_TEST_TOPIC"
OFFSET_MOVED_EVENT_TOPIC: Final = "OFFSET_MOVED_EVENT"
BENCHMARK_TOPIC: Final = "BenchmarkTest"
TRANS_GROUP: Final = "CID_RMQ_SYS_TRANS"

NOT_FOR_CLIENTS: Final = frozenset(
    {
        SCHEDULE_TOPIC,
        TRANS_HALF_TOPIC,
        TRANS_OP_HALF_TOPIC,
        TRANS_CHECK_MAX_TIME_TOPIC,
        SELF_TEST_TOPIC,
        OFFSET_MOVED_EVENT_TOPIC,
    }
)
"""Topics that no client may send to."""

SYSTEM_TOPICS: Final = NOT_FOR_CLIENTS | {AUTO_CREATE_TOPIC, BENCHMARK_TOPIC, TRACE_TOPIC}
"""Topics that may not be created or deleted, besides those that start with ``SYSTEM_TOPIC_PREFIX``."""

TOPIC_LENGTH_MAX: Final = 127  # TopicValidator, 4.9.8; also what the signed length byte of a record can say
GROUP_LENGTH_MAX: Final = 255  # Validators, 4.9.8
_ALLOWED: Final = re.compile(r"[%|a-zA-Z0-9_-]+")
NAMESPACE_SEPARATOR: Final = "%"

# Properties of messages. The constants have upstream's names, the values are what stands in a message.
KEYS: Final = "KEYS"
TAGS: Final = "TAGS"
WAIT_STORE_MSG_OK: Final = "WAIT"
DELAY_TIME_LEVEL: Final = "DELAY"
RETRY_TOPIC: Final = "RETRY_TOPIC"
REAL_TOPIC: Final = "REAL_TOPIC"
REAL_QUEUE_ID: Final = "REAL_QID"
TRANSACTION_PREPARED: Final = "TRAN_MSG"
PRODUCER_GROUP: Final = "PGROUP"
MIN_OFFSET: Final = "MIN_OFFSET"
MAX_OFFSET: Final = "MAX_OFFSET"
BUYER_ID: Final = "BUYER_ID"
ORIGIN_MESSAGE_ID: Final = "ORIGIN_MESSAGE_ID"
TRANSFER_FLAG: Final = "TRANSFER_FLAG"
CORRECTION_FLAG: Final = "CORRECTION_FLAG"
MQ2_FLAG: Final = "MQ2_FLAG"
RECONSUME_TIME: Final = "RECONSUME_TIME"
MSG_REGION: Final = "MSG_REGION"
TRACE_SWITCH: Final = "TRACE_ON"
UNIQ_KEY: Final = "UNIQ_KEY"
MAX_RECONSUME_TIMES: Final = "MAX_RECONSUME_TIMES"
CONSUME_START_TIMESTAMP: Final = "CONSUME_START_TIME"
TRANSACTION_PREPARED_QUEUE_OFFSET: Final = "TRAN_PREPARED_QUEUE_OFFSET"
TRANSACTION_CHECK_TIMES: Final = "TRANSACTION_CHECK_TIMES"
CHECK_IMMUNITY_TIME_IN_SECONDS: Final = "CHECK_IMMUNITY_TIME_IN_SECONDS"
INSTANCE_ID: Final = "INSTANCE_ID"
CORRELATION_ID: Final = "CORRELATION_ID"
MESSAGE_REPLY_TO_CLIENT: Final = "REPLY_TO_CLIENT"
MESSAGE_TTL: Final = "TTL"
REPLY_MESSAGE_ARRIVE_TIME: Final = "ARRIVE_TIME"
PUSH_REPLY_TIME: Final = "PUSH_REPLY_TIME"
CLUSTER: Final = "CLUSTER"
MESSAGE_TYPE: Final = "MSG_TYPE"
INNER_MULTI_DISPATCH: Final = "INNER_MULTI_DISPATCH"
INNER_MULTI_QUEUE_OFFSET: Final = "INNER_MULTI_QUEUE_OFFSET"

RESERVED_PROPERTIES: Final = frozenset(
    {
        KEYS,
        TAGS,
        WAIT_STORE_MSG_OK,
        DELAY_TIME_LEVEL,
        RETRY_TOPIC,
        REAL_TOPIC,
        REAL_QUEUE_ID,
        TRANSACTION_PREPARED,
        PRODUCER_GROUP,
        MIN_OFFSET,
        MAX_OFFSET,
        BUYER_ID,
        ORIGIN_MESSAGE_ID,
        TRANSFER_FLAG,
        CORRECTION_FLAG,
        MQ2_FLAG,
        RECONSUME_TIME,
        MSG_REGION,
        TRACE_SWITCH,
        UNIQ_KEY,
        MAX_RECONSUME_TIMES,
        CONSUME_START_TIMESTAMP,
        INSTANCE_ID,
        CORRELATION_ID,
        MESSAGE_REPLY_TO_CLIENT,
        MESSAGE_TTL,
        REPLY_MESSAGE_ARRIVE_TIME,
        PUSH_REPLY_TIME,
        CLUSTER,
        MESSAGE_TYPE,
        INNER_MULTI_QUEUE_OFFSET,
    }
)
"""Names that a 4.9.8 client does not let an application set."""


def retry_topic(group: str) -> str:
    return RETRY_PREFIX + group


def dlq_topic(group: str) -> str:
    return DLQ_PREFIX + group


def reply_topic(cluster: str) -> str:
    return cluster + REPLY_TOPIC_SUFFIX


def is_system_topic(topic: str) -> bool:
    """Whether the topic belongs to the system. A broker adds its own name and that of its cluster."""
    return topic in SYSTEM_TOPICS or topic.startswith(SYSTEM_TOPIC_PREFIX)


def is_system_group(group: str) -> bool:
    return group.startswith(SYSTEM_GROUP_PREFIX)


def topic_complaint(topic: str) -> str | None:
    """Why ``topic`` cannot be the name of a topic, or None when it can."""
    return _complaint("topic", topic, TOPIC_LENGTH_MAX)


def group_complaint(group: str) -> str | None:
    """Why ``group`` cannot be the name of a group, or None when it can."""
    return _complaint("group", group, GROUP_LENGTH_MAX)


def _complaint(kind: str, name: str, length_max: int) -> str | None:
    if not name or name.isspace():
        return f"the {kind} is blank"
    if not _ALLOWED.fullmatch(name):
        return f"the {kind} may only have the characters % | a-z A-Z 0-9 _ -"
    if len(name) > length_max:
        return f"the {kind} has {len(name)} characters; at most {length_max} are allowed"
    return None


# Namespaces ---------------------------------------------------------------------------------------


def with_namespace(name: str, namespace: str | None) -> str:
    """``name`` of a topic or group as it travels for a client in ``namespace``. System names do not change."""
    if not namespace or not name or is_system_topic(name) or is_system_group(name):
        return name
    prefix, bare = _split_prefix(name)
    if bare.startswith(namespace + NAMESPACE_SEPARATOR):
        return name
    return f"{prefix}{namespace}{NAMESPACE_SEPARATOR}{bare}"


def without_namespace(name: str, namespace: str | None) -> str:
    """``name`` as the application knows it: the inverse of ``with_namespace``."""
    prefix, bare = _split_prefix(name)
    if not namespace:
        return name
    return prefix + bare.removeprefix(namespace + NAMESPACE_SEPARATOR)


def _split_prefix(name: str) -> tuple[str, str]:
    for prefix in (RETRY_PREFIX, DLQ_PREFIX):
        if name.startswith(prefix):
            return prefix, name.removeprefix(prefix)
    return "", name
