"""Bodies about configuration: data versions, topics, subscription groups, key-value tables.

body                         JSON members
---------------------------  --------------------------------------------------------------------------------------
DataVersion                  ``counter``, ``timestamp``; 5.3.3: ``stateVersion``
TopicConfig                  ``order``, ``perm``, ``readQueueNums``, ``topicFilterType``, ``topicName``,
                             ``topicSysFlag``, ``writeQueueNums``; 5.3.3: ``attributes``
TopicConfigSerializeWrapper  ``dataVersion``, ``topicConfigTable`` {topic: TopicConfig}
SubscriptionGroupConfig      see the class: every member has Java's default
SubscriptionGroupWrapper     ``dataVersion``, ``subscriptionGroupTable`` {group: SubscriptionGroupConfig}
KVTable                      ``table`` {key: value}
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import IntEnum

from refmq.protocol.headers.codec import Int32, Int64


class TopicFilterType(IntEnum):
    """Whether a message of the topic has one tag or several."""

    SINGLE_TAG = 0
    MULTI_TAG = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class DataVersion:
    """When a table was last changed and how often. Two tables are the same when all members are."""

    timestamp: Int64
    counter: Int64
    state_version: Int64 | None = None  # 5.3.3


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicConfig:
    """What a broker knows about a topic."""

    topic_name: str
    read_queue_nums: Int32 = 16
    write_queue_nums: Int32 = 16
    perm: Int32 = 6
    topic_filter_type: TopicFilterType = TopicFilterType.SINGLE_TAG
    topic_sys_flag: Int32 = 0
    order: bool = False
    attributes: Mapping[str, str] | None = None  # 5.3.3


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicConfigSerializeWrapper:
    """Answer to 21, the file topics.json, and the heart of a registration."""

    data_version: DataVersion
    topic_config_table: Mapping[str, TopicConfig] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicConfigList:
    """Request 18 (5.3.3)."""

    topic_config_list: tuple[TopicConfig, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class SubscriptionGroupConfig:
    """What a broker knows about a consumer group; request 200."""

    group_name: str
    consume_enable: bool = True
    consume_from_min_enable: bool = True
    consume_broadcast_enable: bool = True
    retry_queue_nums: Int32 = 1
    retry_max_times: Int32 = 16
    broker_id: Int64 = 0
    which_broker_when_consume_slowly: Int64 = 1
    notify_consumer_ids_changed_enable: bool = True
    consume_message_orderly: bool | None = None  # 5.3.3, and all below
    group_sys_flag: Int32 | None = None
    consume_timeout_minute: Int32 | None = None
    attributes: Mapping[str, str] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SubscriptionGroupWrapper:
    """Answer to 201, and the file subscriptionGroup.json."""

    data_version: DataVersion
    subscription_group_table: Mapping[str, SubscriptionGroupConfig] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class SubscriptionGroupList:
    """Request 225 (5.3.3)."""

    group_config_list: tuple[SubscriptionGroupConfig, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupForbidden:
    """Answer to 353 (5.3.3)."""

    topic: str
    group: str
    readable: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class KVTable:
    """Answer to 28, 103 and 219."""

    table: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class UserInfo:
    """Requests 3001 to 3005 (5.3.3)."""

    username: str | None = None
    password: str | None = None
    user_type: str | None = None
    user_status: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class AclEntry:
    """What may be done with one resource (5.3.3)."""

    resource: str | None = None
    actions: tuple[str, ...] = ()
    source_ips: tuple[str, ...] = ()
    decision: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class AclPolicy:
    """A list of entries of one kind (5.3.3)."""

    policy_type: str | None = None
    entries: tuple[AclEntry, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class AclInfo:
    """Requests 3006 to 3010 (5.3.3)."""

    subject: str | None = None
    policies: tuple[AclPolicy, ...] = ()
