"""Bodies about connected clients: who they are, what they do, and what they answered.

    body                          JSON members
    ----------------------------  -------------------------------------------------------------------------------------
    ConsumerIdList                ``consumerIdList`` [client id]
    GroupList                     ``groupList`` [group]
    ConsumerConnection            ``connectionSet`` [Connection], ``consumeFromWhere``, ``consumeType``,
                                  ``messageModel``, ``subscriptionTable`` {topic: SubscriptionData}
    ProducerConnection            ``connectionSet`` [Connection]
    ProducerTableInfo             ``data`` {group: [ProducerInfo]}
    ConsumerRunningInfo           ``jstack`` (if asked for), ``mqTable`` {queue: ProcessQueueInfo}, ``properties``,
                                  ``statusTable`` {topic: ConsumeStatus}, ``subscriptionSet`` [SubscriptionData]
    ConsumeMessageDirectlyResult  ``autoCommit``, ``consumeResult``, ``order``, ``remark``, ``spentTimeMills``

``droped`` in ProcessQueueInfo is spelt that way (the Go client writes ``dropped``).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Annotated

from refmq.model.ids import MessageQueue
from refmq.protocol.bodies.heartbeat import ConsumeFromWhere, ConsumeType, MessageModel, SubscriptionData
from refmq.protocol.command import LanguageCode
from refmq.protocol.headers.codec import Int32, Int64, Wire


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsumerIdList:
    """Answer to 38."""

    consumer_id_list: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupList:
    """Answer to 300."""

    group_list: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Connection:
    """One client of a group."""

    client_id: str
    client_addr: str
    version: Int32
    language: LanguageCode = LanguageCode.OTHER  # a Java server leaves out a language that it does not know


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsumerConnection:
    """Answer to 203."""

    connection_set: tuple[Connection, ...] = ()
    subscription_table: Mapping[str, SubscriptionData] = field(default_factory=dict)
    consume_type: ConsumeType | None = None
    message_model: MessageModel | None = None
    consume_from_where: ConsumeFromWhere | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ProducerConnection:
    """Answer to 204."""

    connection_set: tuple[Connection, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ProducerInfo:
    """One producer in ``ProducerTableInfo``."""

    client_id: str
    remote_ip: Annotated[str, Wire("remoteIP")]
    version: Int32
    last_update_timestamp: Int64
    language: LanguageCode = LanguageCode.OTHER


@dataclass(frozen=True, slots=True, kw_only=True)
class ProducerTableInfo:
    """Answer to 328."""

    data: Mapping[str, tuple[ProducerInfo, ...]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessQueueInfo:
    """What a consumer holds of one queue."""

    commit_offset: Int64 = 0
    cached_msg_min_offset: Int64 = 0
    cached_msg_max_offset: Int64 = 0
    cached_msg_count: Int32 = 0
    cached_msg_size_in_mib: Annotated[Int32, Wire("cachedMsgSizeInMiB")] = 0
    transaction_msg_min_offset: Int64 = 0
    transaction_msg_max_offset: Int64 = 0
    transaction_msg_count: Int32 = 0
    locked: bool = False
    try_unlock_times: Int64 = 0
    last_lock_timestamp: Int64 = 0
    droped: bool = False
    last_pull_timestamp: Int64 = 0
    last_consume_timestamp: Int64 = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsumeStatus:
    """How fast a consumer is with one topic."""

    pull_rt: Annotated[float, Wire("pullRT")] = 0.0
    pull_tps: Annotated[float, Wire("pullTPS")] = 0.0
    consume_rt: Annotated[float, Wire("consumeRT")] = 0.0
    consume_ok_tps: Annotated[float, Wire("consumeOKTPS")] = 0.0
    consume_failed_tps: Annotated[float, Wire("consumeFailedTPS")] = 0.0
    consume_failed_msgs: Int64 = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsumerRunningInfo:
    """Answer to 307. A broker passes it on as it came; only the two ends look inside."""

    properties: Mapping[str, str] = field(default_factory=dict)
    subscription_set: tuple[SubscriptionData, ...] = ()
    mq_table: Mapping[MessageQueue, ProcessQueueInfo] = field(default_factory=dict)
    status_table: Mapping[str, ConsumeStatus] = field(default_factory=dict)
    jstack: str | None = None


class ConsumeResult(IntEnum):
    """How a message that was consumed on request came out."""

    CR_SUCCESS = 0
    CR_LATER = 1
    CR_ROLLBACK = 2
    CR_COMMIT = 3
    CR_THROW_EXCEPTION = 4
    CR_RETURN_NULL = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsumeMessageDirectlyResult:
    """Answer to 309."""

    order: bool = False
    auto_commit: bool = True
    consume_result: ConsumeResult | None = None
    remark: str | None = None
    spent_time_mills: Int64 = 0


class MessageRequestMode(IntEnum):
    """How a group gets its messages (5.3.3)."""

    PULL = 0
    POP = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class QueryAssignmentRequestBody:
    """Request 400 (5.3.3)."""

    topic: str
    consumer_group: str
    client_id: str
    strategy_name: str | None = None
    message_model: MessageModel | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class MessageQueueAssignment:
    """One queue of an assignment (5.3.3)."""

    message_queue: MessageQueue
    mode: MessageRequestMode = MessageRequestMode.PULL
    attachments: Mapping[str, str] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class QueryAssignmentResponseBody:
    """Answer to 400 (5.3.3)."""

    message_queue_assignments: tuple[MessageQueueAssignment, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class SetMessageRequestModeBody:
    """Request 401 (5.3.3)."""

    topic: str
    consumer_group: str
    mode: MessageRequestMode = MessageRequestMode.PULL
    pop_share_queue_num: Int32 = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchAck:
    """Acknowledgements of messages popped together (5.3.3), under one-letter names."""

    consumer_group: Annotated[str, Wire("c")]
    topic: Annotated[str, Wire("t")]
    retry: Annotated[str, Wire("r")]
    start_offset: Annotated[Int64, Wire("so")]
    queue_id: Annotated[Int32, Wire("q")]
    revive_queue_id: Annotated[Int32, Wire("rq")]
    pop_time: Annotated[Int64, Wire("pt")]
    invisible_time: Annotated[Int64, Wire("it")]
    bit_set: Annotated[str, Wire("b")]  # base64 of the bits, lowest first


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchAckRequestBody:
    """Request 200151 (5.3.3)."""

    broker_name: str
    acks: tuple[BatchAck, ...] = ()
