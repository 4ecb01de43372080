"""Headers of the administration requests that a broker serves: topics, groups, statistics, queues, 4.9.8 ACL files."""

from __future__ import annotations

from dataclasses import dataclass

from refmq.protocol.headers.codec import Int32, Int64


@dataclass(frozen=True, slots=True, kw_only=True)
class CreateTopicRequest:
    """17 UPDATE_AND_CREATE_TOPIC, and 513 UPDATE_AND_CREATE_STATIC_TOPIC of 5.3.3."""

    topic: str
    default_topic: str = ""  # of no effect
    read_queue_nums: Int32
    write_queue_nums: Int32
    perm: Int32
    topic_filter_type: str
    topic_sys_flag: Int32 | None = None
    order: bool = False
    attributes: str | None = None  # 5.3.3: +key=value,-key
    force: bool | None = None  # 5.3.3


@dataclass(frozen=True, slots=True, kw_only=True)
class GetBrokerConfigResponse:
    """Answer to 26 GET_BROKER_CONFIG: a DataVersion as JSON text."""

    version: str


@dataclass(frozen=True, slots=True, kw_only=True)
class GetTopicStatsInfoRequest:
    """202 GET_TOPIC_STATS_INFO."""

    topic: str


@dataclass(frozen=True, slots=True, kw_only=True)
class GetConsumerConnectionListRequest:
    """203 GET_CONSUMER_CONNECTION_LIST."""

    consumer_group: str


@dataclass(frozen=True, slots=True, kw_only=True)
class GetProducerConnectionListRequest:
    """204 GET_PRODUCER_CONNECTION_LIST."""

    producer_group: str


@dataclass(frozen=True, slots=True, kw_only=True)
class DeleteSubscriptionGroupRequest:
    """207 DELETE_SUBSCRIPTIONGROUP. The flag is ``removeOffset`` in 4.9.8 and ``cleanOffset`` in 5.3.3."""

    group_name: str
    remove_offset: bool | None = None
    clean_offset: bool | None = None

    @property
    def deletes_offsets(self) -> bool:
        return bool(self.remove_offset or self.clean_offset)


@dataclass(frozen=True, slots=True, kw_only=True)
class GetConsumeStatsRequest:
    """208 GET_CONSUME_STATS. A blank topic means all topics of the group."""

    consumer_group: str
    topic: str | None = None
    topic_list: str | None = None  # 5.3.3, separated by ;


@dataclass(frozen=True, slots=True, kw_only=True)
class DeleteTopicRequest:
    """215 DELETE_TOPIC_IN_BROKER."""

    topic: str


@dataclass(frozen=True, slots=True, kw_only=True)
class QueryTopicConsumeByWhoRequest:
    """300 QUERY_TOPIC_CONSUME_BY_WHO."""

    topic: str


@dataclass(frozen=True, slots=True, kw_only=True)
class QueryConsumeTimeSpanRequest:
    """303 QUERY_CONSUME_TIME_SPAN."""

    topic: str
    group: str


@dataclass(frozen=True, slots=True, kw_only=True)
class QueryCorrectionOffsetRequest:
    """308 QUERY_CORRECTION_OFFSET. ``filter_groups`` is separated by commas."""

    filter_groups: str | None = None
    compare_group: str
    topic: str


@dataclass(frozen=True, slots=True, kw_only=True)
class CloneGroupOffsetRequest:
    """314 CLONE_GROUP_OFFSET. A blank topic means all."""

    src_group: str
    dest_group: str
    topic: str | None = None
    offline: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ViewBrokerStatsDataRequest:
    """315 VIEW_BROKER_STATS_DATA."""

    stats_name: str
    stats_key: str


@dataclass(frozen=True, slots=True, kw_only=True)
class GetBrokerConsumeStatsRequest:
    """317 GET_BROKER_CONSUME_STATS."""

    is_order: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class QueryConsumeQueueRequest:
    """321 QUERY_CONSUME_QUEUE."""

    topic: str
    queue_id: Int32
    index: Int64
    count: Int32
    consumer_group: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class GetAllProducerInfoRequest:
    """328 GET_ALL_PRODUCER_INFO: no fields."""


@dataclass(frozen=True, slots=True, kw_only=True)
class QueryTopicsByConsumerRequest:
    """343 QUERY_TOPICS_BY_CONSUMER (5.3.3)."""

    group: str


@dataclass(frozen=True, slots=True, kw_only=True)
class QuerySubscriptionByConsumerRequest:
    """345 QUERY_SUBSCRIPTION_BY_CONSUMER (5.3.3)."""

    group: str
    topic: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class GetTopicConfigRequest:
    """351 GET_TOPIC_CONFIG (5.3.3; its mqadmin cannot do without)."""

    topic: str
    lo: bool | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class GetSubscriptionGroupConfigRequest:
    """352 GET_SUBSCRIPTIONGROUP_CONFIG (5.3.3)."""

    group: str


@dataclass(frozen=True, slots=True, kw_only=True)
class UpdateGroupForbiddenRequest:
    """353 UPDATE_AND_GET_GROUP_FORBIDDEN (5.3.3)."""

    group: str
    topic: str
    readable: bool | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class UpdateAclConfigRequest:
    """50 UPDATE_AND_CREATE_ACL_CONFIG (4.9.8). The permissions are ``name=PERM``, separated by commas."""

    access_key: str
    secret_key: str | None = None
    white_remote_address: str | None = None
    admin: bool = False
    default_topic_perm: str | None = None
    default_group_perm: str | None = None
    topic_perms: str | None = None
    group_perms: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class DeleteAclConfigRequest:
    """51 DELETE_ACL_CONFIG (4.9.8)."""

    access_key: str


@dataclass(frozen=True, slots=True, kw_only=True)
class GetBrokerClusterAclInfoResponse:
    """Answer to 52 GET_BROKER_CLUSTER_ACL_INFO (4.9.8). The versions are JSON texts."""

    version: str
    all_acl_file_version: str | None = None
    broker_name: str
    broker_addr: str
    cluster_name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class UpdateGlobalWhiteAddrsRequest:
    """53 UPDATE_GLOBAL_WHITE_ADDRS_CONFIG (4.9.8). The addresses are separated by commas."""

    global_white_addrs: str
    acl_file_full_path: str | None = None
