"""The names that every header class has on the wire, for the tests of this folder."""

from __future__ import annotations

from typing import Any

from refmq.protocol.command import request
from refmq.protocol.frame import decode, encode
from refmq.protocol.headers import (
    decode_header,
    encode_header,
)
from refmq.protocol.headers.codec import header_plan
from tests.protocol.upstream import upstream_headers

# The names on the wire, typed in once more from upstream's field lists; `?` marks those that may be absent.
WIRE_NAMES = {
    "SendMessageRequest": "producerGroup? topic defaultTopic? defaultTopicQueueNums? queueId sysFlag bornTimestamp flag"
    " properties? reconsumeTimes? unitMode? maxReconsumeTimes? batch? bname?",
    "SendMessageResponse": "msgId? queueId? queueOffset? transactionId? MSG_REGION? TRACE_ON? batchUniqId?"
    " recallHandle?",
    "ReplyMessageRequest": "producerGroup topic defaultTopic defaultTopicQueueNums queueId sysFlag bornTimestamp flag"
    " properties? reconsumeTimes? unitMode? bornHost storeHost storeTimestamp",
    "PullMessageRequest": "consumerGroup topic queueId queueOffset maxMsgNums sysFlag commitOffset?"
    " suspendTimeoutMillis? subscription? subVersion? expressionType? maxMsgBytes? requestSource?"
    " proxyFrowardClientId? bname?",
    "PullMessageResponse": "suggestWhichBrokerId nextBeginOffset minOffset maxOffset offsetDelta? topicSysFlag?"
    " groupSysFlag? forbiddenType?",
    "QueryConsumerOffsetRequest": "consumerGroup topic queueId setZeroIfNotFound? bname?",
    "QueryConsumerOffsetResponse": "offset",
    "UpdateConsumerOffsetRequest": "consumerGroup topic queueId commitOffset bname?",
    "UpdateConsumerOffsetResponse": "",
    "SearchOffsetRequest": "topic queueId timestamp boundaryType? bname?",
    "SearchOffsetResponse": "offset",
    "GetMaxOffsetRequest": "topic queueId committed? bname?",
    "GetMaxOffsetResponse": "offset",
    "GetMinOffsetRequest": "topic queueId bname?",
    "GetMinOffsetResponse": "offset",
    "GetEarliestMsgStoretimeRequest": "topic queueId bname?",
    "GetEarliestMsgStoretimeResponse": "timestamp",
    "QueryMessageRequest": "topic key maxNum beginTimestamp endTimestamp _UNIQUE_KEY_QUERY?",
    "QueryMessageResponse": "indexLastUpdateTimestamp indexLastUpdatePhyoffset",
    "ViewMessageRequest": "offset topic?",
    "ViewMessageResponse": "",
    "ConsumerSendMsgBackRequest": "offset group delayLevel originMsgId? originTopic? unitMode? maxReconsumeTimes?"
    " bname?",
    "EndTransactionRequest": "producerGroup tranStateTableOffset commitLogOffset commitOrRollback fromTransactionCheck?"
    " msgId transactionId? topic? bname?",
    "EndTransactionResponse": "",
    "CheckTransactionStateRequest": "tranStateTableOffset commitLogOffset msgId? transactionId? offsetMsgId? topic?"
    " bname?",
    "ResumeCheckHalfMessageRequest": "msgId? topic?",
    "RecallMessageRequest": "producerGroup? topic recallHandle",
    "RecallMessageResponse": "msgId",
    "HeartbeatResponse": "IS_SUPPORT_HEART_BEAT_V2? IS_SUB_CHANGE?",
    "UnregisterClientRequest": "clientID producerGroup? consumerGroup?",
    "UnregisterClientResponse": "",
    "GetConsumerListByGroupRequest": "consumerGroup",
    "NotifyConsumerIdsChangedRequest": "consumerGroup",
    "GetConsumerRunningInfoRequest": "consumerGroup clientId jstackEnable?",
    "ConsumeMessageDirectlyRequest": "consumerGroup clientId? msgId? brokerName? topic? topicSysFlag? groupSysFlag?",
    "GetConsumerStatusRequest": "topic group clientAddr?",
    "ResetOffsetRequest": "topic group timestamp isForce? queueId? offset?",
    "CreateTopicRequest": "topic defaultTopic? readQueueNums writeQueueNums perm topicFilterType topicSysFlag? order?"
    " attributes? force?",
    "GetBrokerConfigResponse": "version",
    "GetTopicStatsInfoRequest": "topic",
    "GetConsumerConnectionListRequest": "consumerGroup",
    "GetProducerConnectionListRequest": "producerGroup",
    "DeleteSubscriptionGroupRequest": "groupName removeOffset? cleanOffset?",
    "GetConsumeStatsRequest": "consumerGroup topic? topicList?",
    "DeleteTopicRequest": "topic",
    "QueryTopicConsumeByWhoRequest": "topic",
    "QueryConsumeTimeSpanRequest": "topic group",
    "QueryCorrectionOffsetRequest": "filterGroups? compareGroup topic",
    "CloneGroupOffsetRequest": "srcGroup destGroup topic? offline?",
    "ViewBrokerStatsDataRequest": "statsName statsKey",
    "GetBrokerConsumeStatsRequest": "isOrder",
    "QueryConsumeQueueRequest": "topic queueId index count consumerGroup?",
    "GetAllProducerInfoRequest": "",
    "QueryTopicsByConsumerRequest": "group",
    "QuerySubscriptionByConsumerRequest": "group topic?",
    "GetTopicConfigRequest": "topic lo?",
    "GetSubscriptionGroupConfigRequest": "group",
    "UpdateGroupForbiddenRequest": "group topic readable?",
    "UpdateAclConfigRequest": "accessKey secretKey? whiteRemoteAddress? admin? defaultTopicPerm? defaultGroupPerm?"
    " topicPerms? groupPerms?",
    "DeleteAclConfigRequest": "accessKey",
    "GetBrokerClusterAclInfoResponse": "version allAclFileVersion? brokerName brokerAddr clusterName",
    "UpdateGlobalWhiteAddrsRequest": "globalWhiteAddrs aclFileFullPath?",
    "PutKvConfigRequest": "namespace key value",
    "GetKvConfigRequest": "namespace key",
    "GetKvConfigResponse": "value?",
    "DeleteKvConfigRequest": "namespace key",
    "GetKvListByNamespaceRequest": "namespace",
    "RegisterBrokerRequest": "brokerName brokerAddr clusterName haServerAddr brokerId compressed? bodyCrc32?"
    " heartbeatTimeoutMillis? enableActingMaster?",
    "RegisterBrokerResponse": "haServerAddr? masterAddr?",
    "UnregisterBrokerRequest": "brokerName brokerAddr clusterName brokerId",
    "GetRouteInfoRequest": "topic acceptStandardJsonOnly?",
    "WipeWritePermOfBrokerRequest": "brokerName",
    "WipeWritePermOfBrokerResponse": "wipeTopicCount",
    "AddWritePermOfBrokerRequest": "brokerName",
    "AddWritePermOfBrokerResponse": "addTopicCount",
    "DeleteTopicInNamesrvRequest": "topic clusterName?",
    "RegisterTopicRequest": "topic",
    "GetTopicsByClusterRequest": "cluster",
    "QueryDataVersionRequest": "brokerName brokerAddr clusterName brokerId",
    "QueryDataVersionResponse": "changed",
    "BrokerHeartbeatRequest": "clusterName brokerAddr brokerName brokerId? epoch? maxOffset? confirmOffset?"
    " heartbeatTimeoutMills? electionPriority?",
    "PopMessageRequest": "consumerGroup topic queueId maxMsgNums invisibleTime pollTime bornTime initMode expType? exp?"
    " order? attemptId?",
    "PopMessageResponse": "popTime invisibleTime reviveQid restNum startOffsetInfo? msgOffsetInfo? orderCountInfo?",
    "AckMessageRequest": "consumerGroup topic queueId extraInfo offset",
    "PeekMessageRequest": "topic queueId maxMsgNums consumerGroup",
    "ChangeInvisibleTimeRequest": "consumerGroup topic queueId extraInfo offset invisibleTime",
    "ChangeInvisibleTimeResponse": "popTime invisibleTime reviveQid",
    "NotificationRequest": "consumerGroup topic queueId pollTime bornTime order? attemptId?",
    "NotificationResponse": "hasMsg pollingFull?",
    "PollingInfoRequest": "consumerGroup topic queueId",
    "PollingInfoResponse": "pollingNum",
}


def names_of(header_type: Any) -> str:
    return " ".join(plan.wire_name + ("" if plan.required else "?") for plan in header_plan(header_type))


def round_trips(header: Any) -> None:
    command = request(11, encode_header(header))
    assert decode_header(type(header), decode(encode(command))) == header


UPSTREAM = upstream_headers("4.9.8", "5.3.3")
