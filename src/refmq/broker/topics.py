"""The topics of a broker: which exist from the start, who may send to them, and how new ones are created.

A topic exists because it is built in, because an administrator created it, or because a producer sent to it and it
could inherit from a default topic (nearly always TBW102). Every change bumps the version of the table, because
nameservers take a broker's topics only when its version differs.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Final

from rpds import HashTrieMap

from refmq.model.broker_config import PERM_INHERIT, PERM_READ_WRITE, BrokerConfig
from refmq.model.ids import TimestampMs
from refmq.plane.needs import SendCreation
from refmq.protocol.bodies.config import DataVersion, TopicConfig, TopicConfigSerializeWrapper
from refmq.protocol.names import (
    AUTO_CREATE_TOPIC,
    BENCHMARK_TOPIC,
    OFFSET_MOVED_EVENT_TOPIC,
    RETRY_PREFIX,
    SCHEDULE_TOPIC,
    SELF_TEST_TOPIC,
    SYSTEM_TOPIC_PREFIX,
    SYSTEM_TOPICS,
)

TOPICS_MAX: Final = 100_000
"""So that senders of random topic names cannot fill the memory; upstream has no bound."""

SYS_FLAG_UNIT: Final = 1
SYS_FLAG_UNIT_SUB: Final = 2


@dataclass(frozen=True, slots=True)
class TopicTable:
    """Every topic of the broker, and the version that nameservers compare."""

    version: DataVersion
    topics: HashTrieMap[str, TopicConfig]
    system: frozenset[str]
    """Topics that no administrator may create, change or delete."""

    def get(self, name: str) -> TopicConfig | None:
        return self.topics.get(name)

    def is_system(self, name: str) -> bool:
        return name in self.system or name.startswith(SYSTEM_TOPIC_PREFIX)

    def wrapper(self) -> TopicConfigSerializeWrapper:
        """What goes into topics.json and to nameservers; sorted, so that it does not depend on hash seeds."""
        return TopicConfigSerializeWrapper(
            data_version=self.version,
            topic_config_table={name: self.topics[name] for name in sorted(self.topics)},
        )


def built_in_topics(config: BrokerConfig) -> tuple[TopicConfig, ...]:
    """The topics every broker has before it reads topics.json."""

    def topic(name: str, queues: int, perm: int = PERM_READ_WRITE) -> TopicConfig:
        return TopicConfig(topic_name=name, read_queue_nums=queues, write_queue_nums=queues, perm=perm)

    inheritable = PERM_READ_WRITE | PERM_INHERIT
    own_name_perm = {True: inheritable, False: PERM_INHERIT}
    topics = [
        topic(SELF_TEST_TOPIC, 1),
        topic(BENCHMARK_TOPIC, 1024),
        topic(config.broker_cluster_name, 16, own_name_perm[config.cluster_topic_enable]),
        topic(config.broker_name, 1, own_name_perm[config.broker_topic_enable]),
        topic(OFFSET_MOVED_EVENT_TOPIC, 1),
        topic(SCHEDULE_TOPIC, 18),
        topic(config.reply_topic, 1),
    ]
    if config.auto_create_topic_enable:
        topics.append(topic(AUTO_CREATE_TOPIC, config.default_topic_queue_nums, inheritable))
    if config.trace_topic_enable:
        topics.append(topic(config.msg_trace_topic_name, 1))
    return tuple(topics)


def start_topics(config: BrokerConfig, stored: TopicConfigSerializeWrapper | None, now_ms: TimestampMs) -> TopicTable:
    """The table at startup: the built-in topics, overlaid with those in the file."""
    built_in = {topic.topic_name: topic for topic in built_in_topics(config)}
    stored_topics: Mapping[str, TopicConfig] = {} if stored is None else stored.topic_config_table
    return TopicTable(
        version=DataVersion(timestamp=now_ms, counter=0) if stored is None else stored.data_version,
        topics=HashTrieMap({**built_in, **stored_topics}),
        system=SYSTEM_TOPICS | frozenset(built_in),
    )


def next_version(version: DataVersion, now_ms: TimestampMs) -> DataVersion:
    return replace(version, timestamp=now_ms, counter=version.counter + 1)


def put_topic(table: TopicTable, topic: TopicConfig, now_ms: TimestampMs) -> TopicTable:
    """Creates or replaces a topic."""
    return replace(
        table, topics=table.topics.insert(topic.topic_name, topic), version=next_version(table.version, now_ms)
    )


def delete_topic(table: TopicTable, name: str, now_ms: TimestampMs) -> TopicTable:
    """Removes a topic. Removing a missing topic only bumps the version, as upstream."""
    return replace(table, topics=table.topics.discard(name), version=next_version(table.version, now_ms))


def ensure_topic(table: TopicTable, name: str, queues: int, sys_flag: int, now_ms: TimestampMs) -> TopicTable | None:
    """The table including a topic the broker itself needs (retry, dead letters, half messages ...).

    The same table when the topic exists, None when there is no room for it.
    """
    if name in table.topics:
        return table
    if len(table.topics) >= TOPICS_MAX:
        return None
    topic = TopicConfig(
        topic_name=name,
        read_queue_nums=queues,
        write_queue_nums=queues,
        perm=PERM_READ_WRITE,
        topic_sys_flag=sys_flag,
    )
    return put_topic(table, topic, now_ms)


def create_on_send(
    table: TopicTable, config: BrokerConfig, creation: SendCreation, now_ms: TimestampMs
) -> TopicTable | None:
    """The table after a send to a topic that may not exist, or None when it may not be created.

    The new topic inherits from the default topic if that allows it; a retry topic is always created. Without
    `autoCreateTopicEnable` nothing is inherited; 4.9.8 then still takes a default topic other than TBW102.
    """
    if creation.topic in table.topics:
        return table
    is_retry = creation.topic.startswith(RETRY_PREFIX)
    sys_flag = (SYS_FLAG_UNIT_SUB if is_retry else SYS_FLAG_UNIT) if creation.unit_mode else 0
    default = table.get(creation.default_topic)
    inheritable = default is not None and default.perm & PERM_INHERIT != 0 and config.auto_create_topic_enable
    if inheritable and len(table.topics) < TOPICS_MAX:
        assert default is not None
        queues = max(0, min(creation.queues_wanted, default.write_queue_nums))
        inherited = replace(
            default,
            topic_name=creation.topic,
            read_queue_nums=queues,
            write_queue_nums=queues,
            perm=default.perm & ~PERM_INHERIT,
            topic_sys_flag=sys_flag,
            order=False,
        )
        return put_topic(table, inherited, now_ms)
    return ensure_topic(table, creation.topic, 1, sys_flag, now_ms) if is_retry else None


def apply_order_config(table: TopicTable, ordered: Iterable[str], now_ms: TimestampMs) -> TopicTable:
    """Marks exactly the given topics as ordered: what a nameserver's ORDER_TOPIC_CONFIG says."""
    wanted = frozenset(ordered)
    topics = table.topics
    for name in sorted(table.topics):
        topic = table.topics[name]
        if topic.order != (name in wanted):
            topics = topics.insert(name, replace(topic, order=name in wanted))
    if topics is table.topics:
        return table
    return replace(table, topics=topics, version=next_version(table.version, now_ms))
