"""What is known about each request code: who serves it, in which version, with which header and body.

A row says nothing about whether refmq serves the code, except when it has been decided not to (``declined``). What is
served is what the roles themselves dispatch: each role that answers requests has a name ``SERVED`` in its package, the
frozen set of the codes in its dispatch table. ``status`` puts the two together:

    status         meaning
    -------------  ----------------------------------------------------------------------------------------------
    implemented    every role that serves the code upstream and exists here dispatches it
    not supported  declined, with the reason: the answer is response code 3 and will stay so
    not yet        neither: the answer is response code 3 for now

A code that is declined and dispatched all the same is a contradiction, and ``status`` fails on it.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Final

from refmq.protocol import bodies, headers
from refmq.protocol.codes import RequestCode as Code


class Role(Enum):
    """Who answers a request."""

    NAMESERVER = "nameserver"
    BROKER = "broker"
    CLIENT = "client"
    CONTROLLER = "controller"
    CONTAINER = "broker container"


class Status(Enum):
    """What refmq does with a request code."""

    IMPLEMENTED = "implemented"
    NOT_SUPPORTED = "not supported"
    NOT_YET = "not yet"


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One request code. A body is a class of ``bodies``, or words for one that is not JSON."""

    code: Code
    served_by: tuple[Role, ...]
    header: type | None = None
    body: type | str | None = None
    response_header: type | None = None
    response_body: type | str | None = None
    declined: str | None = None

    @property
    def versions(self) -> str:
        """The versions that define the code."""
        if self.code in ONLY_4_9_8:
            return "4.9.8"
        return "5.3.3" if self.code in ONLY_5_3_3 else "4.9.8, 5.3.3"


def status(row: Row, served: Mapping[Role, Collection[int]]) -> Status:
    """What refmq does with the code of ``row`` when each role dispatches what ``served`` says."""
    roles = [role for role in row.served_by if role in served]
    dispatched = [role for role in roles if row.code in served[role]]
    if row.declined is not None:
        assert not dispatched, f"{row.code.name} is declined, but the {dispatched[0].value} serves it"
        return Status.NOT_SUPPORTED
    return Status.IMPLEMENTED if roles and dispatched == roles else Status.NOT_YET


ONLY_4_9_8: Final = frozenset(
    {
        Code.UPDATE_AND_CREATE_ACL_CONFIG,
        Code.DELETE_ACL_CONFIG,
        Code.GET_BROKER_CLUSTER_ACL_INFO,
        Code.UPDATE_GLOBAL_WHITE_ADDRS_CONFIG,
    }
)
ONLY_5_3_3: Final = frozenset(
    {
        Code.UPDATE_AND_CREATE_TOPIC_LIST,
        Code.GET_CLIENT_CONFIG,
        Code.GET_TIMER_CHECK_POINT,
        Code.GET_TIMER_METRICS,
        Code.REGISTER_TOPIC_IN_NAMESRV,
        Code.UPDATE_AND_CREATE_SUBSCRIPTIONGROUP_LIST,
        *(code for code in Code if code >= Code.QUERY_TOPICS_BY_CONSUMER),
    }
)

_NS, _BR, _CL = (Role.NAMESERVER,), (Role.BROKER,), (Role.CLIENT,)
_BR_CL = (Role.BROKER, Role.CLIENT)
_CONTROLLER, _CONTAINER = (Role.CONTROLLER,), (Role.CONTAINER,)

_NO_HANDLER: Final = "upstream defines the code and has no handler for it"
_POP: Final = "POP consumption of 5.x"
_TIMER: Final = "the timing wheel of 5.x"
_ROCKS: Final = "the RocksDB store of 5.x"
_AUTH: Final = "users and policies of 5.x"
_COLD: Final = "cold data flow control of 5.x"
_CONTROL: Final = "the controller of 5.x"
_HA_5: Final = "acting masters and HA of 5.x"
_MESSAGES: Final = "messages"
_LINES: Final = "`key=value` lines"


def _row(
    code: Code,
    served_by: tuple[Role, ...],
    header: type | None = None,
    response_header: type | None = None,
    *,
    body: type | str | None = None,
    response_body: type | str | None = None,
    declined: str | None = None,
) -> Row:
    return Row(
        code=code,
        served_by=served_by,
        header=header,
        body=body,
        response_header=response_header,
        response_body=response_body,
        declined=declined,
    )


_SEND: Final = (headers.SendMessageRequest, headers.SendMessageResponse)
_PULL: Final = (headers.PullMessageRequest, headers.PullMessageResponse)

ROWS: Final[tuple[Row, ...]] = (
    _row(Code.SEND_MESSAGE, _BR, *_SEND, body="message body"),
    _row(Code.PULL_MESSAGE, _BR, *_PULL, response_body=_MESSAGES),
    _row(
        Code.QUERY_MESSAGE,
        _BR,
        headers.QueryMessageRequest,
        headers.QueryMessageResponse,
        response_body=_MESSAGES,
    ),
    _row(Code.QUERY_BROKER_OFFSET, (), declined=_NO_HANDLER),
    _row(Code.QUERY_CONSUMER_OFFSET, _BR, headers.QueryConsumerOffsetRequest, headers.QueryConsumerOffsetResponse),
    _row(Code.UPDATE_CONSUMER_OFFSET, _BR, headers.UpdateConsumerOffsetRequest, headers.UpdateConsumerOffsetResponse),
    _row(Code.UPDATE_AND_CREATE_TOPIC, _BR, headers.CreateTopicRequest),
    _row(Code.UPDATE_AND_CREATE_TOPIC_LIST, _BR, body=bodies.TopicConfigList),
    _row(Code.GET_ALL_TOPIC_CONFIG, _BR, response_body=bodies.TopicConfigSerializeWrapper),
    _row(Code.GET_TOPIC_CONFIG_LIST, (), declined=_NO_HANDLER),
    _row(Code.GET_TOPIC_NAME_LIST, (), declined=_NO_HANDLER),
    _row(Code.UPDATE_BROKER_CONFIG, _BR, body=_LINES),
    _row(Code.GET_BROKER_CONFIG, _BR, None, headers.GetBrokerConfigResponse, response_body=_LINES),
    _row(Code.TRIGGER_DELETE_FILES, (), declined=_NO_HANDLER),
    _row(Code.GET_BROKER_RUNTIME_INFO, _BR, response_body=bodies.KVTable),
    _row(Code.SEARCH_OFFSET_BY_TIMESTAMP, _BR, headers.SearchOffsetRequest, headers.SearchOffsetResponse),
    _row(Code.GET_MAX_OFFSET, _BR, headers.GetMaxOffsetRequest, headers.GetMaxOffsetResponse),
    _row(Code.GET_MIN_OFFSET, _BR, headers.GetMinOffsetRequest, headers.GetMinOffsetResponse),
    _row(
        Code.GET_EARLIEST_MSG_STORETIME,
        _BR,
        headers.GetEarliestMsgStoretimeRequest,
        headers.GetEarliestMsgStoretimeResponse,
    ),
    _row(
        Code.VIEW_MESSAGE_BY_ID,
        _BR,
        headers.ViewMessageRequest,
        headers.ViewMessageResponse,
        response_body="one message",
    ),
    _row(Code.HEART_BEAT, _BR, None, headers.HeartbeatResponse, body=bodies.HeartbeatData),
    _row(Code.UNREGISTER_CLIENT, _BR, headers.UnregisterClientRequest, headers.UnregisterClientResponse),
    _row(Code.CONSUMER_SEND_MSG_BACK, _BR, headers.ConsumerSendMsgBackRequest),
    _row(Code.END_TRANSACTION, _BR, headers.EndTransactionRequest, headers.EndTransactionResponse),
    _row(
        Code.GET_CONSUMER_LIST_BY_GROUP,
        _BR,
        headers.GetConsumerListByGroupRequest,
        response_body=bodies.ConsumerIdList,
    ),
    _row(Code.CHECK_TRANSACTION_STATE, _CL, headers.CheckTransactionStateRequest, body="one message"),
    _row(Code.NOTIFY_CONSUMER_IDS_CHANGED, _CL, headers.NotifyConsumerIdsChangedRequest),
    _row(Code.LOCK_BATCH_MQ, _BR, body=bodies.LockBatchRequestBody, response_body=bodies.LockBatchResponseBody),
    _row(Code.UNLOCK_BATCH_MQ, _BR, body=bodies.LockBatchRequestBody),
    _row(Code.GET_ALL_CONSUMER_OFFSET, _BR, response_body=bodies.ConsumerOffsets),
    _row(Code.GET_ALL_DELAY_OFFSET, _BR, response_body=bodies.DelayOffsets),
    _row(Code.CHECK_CLIENT_CONFIG, _BR, body=bodies.CheckClientRequestBody),
    _row(Code.GET_CLIENT_CONFIG, (), declined=_NO_HANDLER),
    _row(Code.UPDATE_AND_CREATE_ACL_CONFIG, _BR, headers.UpdateAclConfigRequest),
    _row(Code.DELETE_ACL_CONFIG, _BR, headers.DeleteAclConfigRequest),
    _row(Code.GET_BROKER_CLUSTER_ACL_INFO, _BR, None, headers.GetBrokerClusterAclInfoResponse),
    _row(Code.UPDATE_GLOBAL_WHITE_ADDRS_CONFIG, _BR, headers.UpdateGlobalWhiteAddrsRequest),
    _row(Code.GET_TIMER_CHECK_POINT, _BR, declined=_TIMER),
    _row(Code.GET_TIMER_METRICS, _BR, declined=_TIMER),
    _row(Code.PUT_KV_CONFIG, _NS, headers.PutKvConfigRequest),
    _row(Code.GET_KV_CONFIG, _NS, headers.GetKvConfigRequest, headers.GetKvConfigResponse),
    _row(Code.DELETE_KV_CONFIG, _NS, headers.DeleteKvConfigRequest),
    _row(
        Code.REGISTER_BROKER,
        _NS,
        headers.RegisterBrokerRequest,
        headers.RegisterBrokerResponse,
        body=bodies.RegisterBrokerBody,
        response_body=bodies.KVTable,
    ),
    _row(Code.UNREGISTER_BROKER, _NS, headers.UnregisterBrokerRequest),
    _row(Code.GET_ROUTEINFO_BY_TOPIC, _NS, headers.GetRouteInfoRequest, response_body=bodies.TopicRouteData),
    _row(Code.GET_BROKER_CLUSTER_INFO, _NS, response_body=bodies.ClusterInfo),
    _row(Code.UPDATE_AND_CREATE_SUBSCRIPTIONGROUP, _BR, body=bodies.SubscriptionGroupConfig),
    _row(Code.GET_ALL_SUBSCRIPTIONGROUP_CONFIG, _BR, response_body=bodies.SubscriptionGroupWrapper),
    _row(Code.GET_TOPIC_STATS_INFO, _BR, headers.GetTopicStatsInfoRequest, response_body=bodies.TopicStatsTable),
    _row(
        Code.GET_CONSUMER_CONNECTION_LIST,
        _BR,
        headers.GetConsumerConnectionListRequest,
        response_body=bodies.ConsumerConnection,
    ),
    _row(
        Code.GET_PRODUCER_CONNECTION_LIST,
        _BR,
        headers.GetProducerConnectionListRequest,
        response_body=bodies.ProducerConnection,
    ),
    _row(
        Code.WIPE_WRITE_PERM_OF_BROKER,
        _NS,
        headers.WipeWritePermOfBrokerRequest,
        headers.WipeWritePermOfBrokerResponse,
    ),
    _row(Code.GET_ALL_TOPIC_LIST_FROM_NAMESERVER, _NS, response_body=bodies.TopicList),
    _row(Code.DELETE_SUBSCRIPTIONGROUP, _BR, headers.DeleteSubscriptionGroupRequest),
    _row(Code.GET_CONSUME_STATS, _BR, headers.GetConsumeStatsRequest, response_body=bodies.ConsumeStats),
    _row(Code.SUSPEND_CONSUMER, (), declined=_NO_HANDLER),
    _row(Code.RESUME_CONSUMER, (), declined=_NO_HANDLER),
    _row(Code.RESET_CONSUMER_OFFSET_IN_CONSUMER, (), declined=_NO_HANDLER),
    _row(Code.RESET_CONSUMER_OFFSET_IN_BROKER, (), declined=_NO_HANDLER),
    _row(Code.ADJUST_CONSUMER_THREAD_POOL, (), declined=_NO_HANDLER),
    _row(Code.WHO_CONSUME_THE_MESSAGE, (), declined=_NO_HANDLER),
    _row(Code.DELETE_TOPIC_IN_BROKER, _BR, headers.DeleteTopicRequest),
    _row(Code.DELETE_TOPIC_IN_NAMESRV, _NS, headers.DeleteTopicInNamesrvRequest),
    _row(Code.REGISTER_TOPIC_IN_NAMESRV, _NS, headers.RegisterTopicRequest, body=bodies.TopicRouteData),
    _row(Code.GET_KVLIST_BY_NAMESPACE, _NS, headers.GetKvListByNamespaceRequest, response_body=bodies.KVTable),
    _row(Code.RESET_CONSUMER_CLIENT_OFFSET, _CL, headers.ResetOffsetRequest, body=bodies.ResetOffsetBody),
    _row(
        Code.GET_CONSUMER_STATUS_FROM_CLIENT,
        _CL,
        headers.GetConsumerStatusRequest,
        response_body=bodies.GetConsumerStatusBody,
    ),
    _row(
        Code.INVOKE_BROKER_TO_RESET_OFFSET,
        _BR,
        headers.ResetOffsetRequest,
        response_body=bodies.ResetOffsetBody,
    ),
    _row(
        Code.INVOKE_BROKER_TO_GET_CONSUMER_STATUS,
        _BR,
        headers.GetConsumerStatusRequest,
        response_body=bodies.GetConsumerStatusBody,
    ),
    _row(Code.GET_TOPICS_BY_CLUSTER, _NS, headers.GetTopicsByClusterRequest, response_body=bodies.TopicList),
    _row(Code.UPDATE_AND_CREATE_SUBSCRIPTIONGROUP_LIST, _BR, body=bodies.SubscriptionGroupList),
    _row(Code.QUERY_TOPIC_CONSUME_BY_WHO, _BR, headers.QueryTopicConsumeByWhoRequest, response_body=bodies.GroupList),
    _row(Code.REGISTER_FILTER_SERVER, (), declined=_NO_HANDLER),
    _row(Code.REGISTER_MESSAGE_FILTER_CLASS, (), declined=_NO_HANDLER),
    _row(
        Code.QUERY_CONSUME_TIME_SPAN,
        _BR,
        headers.QueryConsumeTimeSpanRequest,
        response_body=bodies.QueryConsumeTimeSpan,
    ),
    _row(Code.GET_SYSTEM_TOPIC_LIST_FROM_NS, _NS, response_body=bodies.TopicList),
    _row(Code.GET_SYSTEM_TOPIC_LIST_FROM_BROKER, _BR, response_body=bodies.TopicList),
    _row(Code.CLEAN_EXPIRED_CONSUMEQUEUE, _BR),
    _row(
        Code.GET_CONSUMER_RUNNING_INFO,
        _BR_CL,
        headers.GetConsumerRunningInfoRequest,
        response_body=bodies.ConsumerRunningInfo,
    ),
    _row(
        Code.QUERY_CORRECTION_OFFSET,
        _BR,
        headers.QueryCorrectionOffsetRequest,
        response_body=bodies.CorrectionOffsets,
    ),
    _row(
        Code.CONSUME_MESSAGE_DIRECTLY,
        _BR_CL,
        headers.ConsumeMessageDirectlyRequest,
        body="to the client: one message",
        response_body=bodies.ConsumeMessageDirectlyResult,
    ),
    _row(Code.SEND_MESSAGE_V2, _BR, *_SEND, body="message body"),
    _row(Code.GET_UNIT_TOPIC_LIST, _NS, response_body=bodies.TopicList),
    _row(Code.GET_HAS_UNIT_SUB_TOPIC_LIST, _NS, response_body=bodies.TopicList),
    _row(Code.GET_HAS_UNIT_SUB_UNUNIT_TOPIC_LIST, _NS, response_body=bodies.TopicList),
    _row(Code.CLONE_GROUP_OFFSET, _BR, headers.CloneGroupOffsetRequest),
    _row(Code.VIEW_BROKER_STATS_DATA, _BR, headers.ViewBrokerStatsDataRequest, response_body=bodies.BrokerStatsData),
    _row(Code.CLEAN_UNUSED_TOPIC, _BR),
    _row(
        Code.GET_BROKER_CONSUME_STATS,
        _BR,
        headers.GetBrokerConsumeStatsRequest,
        response_body=bodies.ConsumeStatsList,
    ),
    _row(Code.UPDATE_NAMESRV_CONFIG, _NS, body=_LINES),
    _row(Code.GET_NAMESRV_CONFIG, _NS, response_body=_LINES),
    _row(Code.SEND_BATCH_MESSAGE, _BR, *_SEND, body="batch"),
    _row(Code.QUERY_CONSUME_QUEUE, _BR, headers.QueryConsumeQueueRequest, response_body=bodies.ConsumeQueueDump),
    _row(
        Code.QUERY_DATA_VERSION,
        _NS,
        headers.QueryDataVersionRequest,
        headers.QueryDataVersionResponse,
        body=bodies.DataVersion,
        response_body=bodies.DataVersion,
    ),
    _row(Code.RESUME_CHECK_HALF_MESSAGE, _BR, headers.ResumeCheckHalfMessageRequest),
    _row(Code.SEND_REPLY_MESSAGE, _BR, *_SEND, body="message body"),
    _row(Code.SEND_REPLY_MESSAGE_V2, _BR, *_SEND, body="message body"),
    _row(Code.PUSH_REPLY_MESSAGE_TO_CLIENT, _CL, headers.ReplyMessageRequest, body="message body"),
    _row(
        Code.ADD_WRITE_PERM_OF_BROKER,
        _NS,
        headers.AddWritePermOfBrokerRequest,
        headers.AddWritePermOfBrokerResponse,
    ),
    _row(Code.GET_ALL_PRODUCER_INFO, _BR, headers.GetAllProducerInfoRequest, response_body=bodies.ProducerTableInfo),
    _row(Code.DELETE_EXPIRED_COMMITLOG, _BR),
    _row(Code.QUERY_TOPICS_BY_CONSUMER, _BR, headers.QueryTopicsByConsumerRequest, response_body=bodies.TopicList),
    _row(
        Code.QUERY_SUBSCRIPTION_BY_CONSUMER,
        _BR,
        headers.QuerySubscriptionByConsumerRequest,
        response_body=bodies.QuerySubscriptionResponseBody,
    ),
    _row(Code.GET_TOPIC_CONFIG, _BR, headers.GetTopicConfigRequest, response_body=bodies.TopicConfig),
    _row(
        Code.GET_SUBSCRIPTIONGROUP_CONFIG,
        _BR,
        headers.GetSubscriptionGroupConfigRequest,
        response_body=bodies.SubscriptionGroupConfig,
    ),
    _row(
        Code.UPDATE_AND_GET_GROUP_FORBIDDEN,
        _BR,
        headers.UpdateGroupForbiddenRequest,
        response_body=bodies.GroupForbidden,
    ),
    _row(Code.CHECK_ROCKSDB_CQ_WRITE_PROGRESS, _BR, declined=_ROCKS),
    _row(Code.EXPORT_ROCKSDB_CONFIG_TO_JSON, _BR, declined=_ROCKS),
    _row(Code.LITE_PULL_MESSAGE, _BR, *_PULL, response_body=_MESSAGES),
    _row(Code.RECALL_MESSAGE, _BR, headers.RecallMessageRequest, headers.RecallMessageResponse, declined=_TIMER),
    _row(
        Code.QUERY_ASSIGNMENT,
        _BR,
        body=bodies.QueryAssignmentRequestBody,
        response_body=bodies.QueryAssignmentResponseBody,
        declined=_POP,
    ),
    _row(Code.SET_MESSAGE_REQUEST_MODE, _BR, body=bodies.SetMessageRequestModeBody, declined=_POP),
    _row(Code.GET_ALL_MESSAGE_REQUEST_MODE, _BR, declined=_POP),
    _row(
        Code.UPDATE_AND_CREATE_STATIC_TOPIC,
        _BR,
        headers.CreateTopicRequest,
        declined="static topics of 5.x",
    ),
    _row(Code.GET_BROKER_MEMBER_GROUP, _NS, declined=_HA_5),
    _row(Code.ADD_BROKER, _CONTAINER, declined="broker containers of 5.x"),
    _row(Code.REMOVE_BROKER, _CONTAINER, declined="broker containers of 5.x"),
    _row(Code.BROKER_HEARTBEAT, _NS, headers.BrokerHeartbeatRequest),
    _row(Code.NOTIFY_MIN_BROKER_ID_CHANGE, _BR, declined=_HA_5),
    _row(Code.EXCHANGE_BROKER_HA_INFO, _BR, declined=_HA_5),
    _row(Code.GET_BROKER_HA_STATUS, _BR, declined=_HA_5),
    _row(Code.RESET_MASTER_FLUSH_OFFSET, _BR, declined=_HA_5),
    *(
        _row(code, _CONTROLLER, declined=_CONTROL)
        for code in (
            Code.CONTROLLER_ALTER_SYNC_STATE_SET,
            Code.CONTROLLER_ELECT_MASTER,
            Code.CONTROLLER_REGISTER_BROKER,
            Code.CONTROLLER_GET_REPLICA_INFO,
            Code.CONTROLLER_GET_METADATA_INFO,
            Code.CONTROLLER_GET_SYNC_STATE_DATA,
        )
    ),
    _row(Code.GET_BROKER_EPOCH_CACHE, _BR, declined=_CONTROL),
    _row(Code.NOTIFY_BROKER_ROLE_CHANGED, _BR, declined=_CONTROL),
    *(
        _row(code, _CONTROLLER, declined=_CONTROL)
        for code in (
            Code.UPDATE_CONTROLLER_CONFIG,
            Code.GET_CONTROLLER_CONFIG,
            Code.CLEAN_BROKER_DATA,
            Code.CONTROLLER_GET_NEXT_BROKER_ID,
            Code.CONTROLLER_APPLY_BROKER_ID,
        )
    ),
    *(
        _row(code, _BR, declined=_COLD)
        for code in (
            Code.UPDATE_COLD_DATA_FLOW_CTR_CONFIG,
            Code.REMOVE_COLD_DATA_FLOW_CTR_CONFIG,
            Code.GET_COLD_DATA_FLOW_CTR_INFO,
            Code.SET_COMMITLOG_READ_MODE,
        )
    ),
    *(
        _row(code, _BR, body=bodies.UserInfo if code <= Code.AUTH_LIST_USER else bodies.AclInfo, declined=_AUTH)
        for code in Code
        if Code.AUTH_CREATE_USER <= code <= Code.AUTH_LIST_ACL
    ),
    _row(
        Code.POP_MESSAGE,
        _BR,
        headers.PopMessageRequest,
        headers.PopMessageResponse,
        response_body=_MESSAGES,
        declined=_POP,
    ),
    _row(Code.ACK_MESSAGE, _BR, headers.AckMessageRequest, declined=_POP),
    _row(Code.PEEK_MESSAGE, _BR, headers.PeekMessageRequest, declined=_POP),
    _row(
        Code.CHANGE_MESSAGE_INVISIBLETIME,
        _BR,
        headers.ChangeInvisibleTimeRequest,
        headers.ChangeInvisibleTimeResponse,
        declined=_POP,
    ),
    _row(Code.NOTIFICATION, _BR, headers.NotificationRequest, headers.NotificationResponse, declined=_POP),
    _row(Code.POLLING_INFO, _BR, headers.PollingInfoRequest, headers.PollingInfoResponse, declined=_POP),
    _row(Code.POP_ROLLBACK, _BR, declined=_POP),
    _row(Code.BATCH_ACK_MESSAGE, _BR, body=bodies.BatchAckRequestBody, declined=_POP),
)
