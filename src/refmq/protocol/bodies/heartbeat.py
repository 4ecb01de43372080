"""The heartbeat (34) and what it says about consumers.

    body              JSON members
    ----------------  --------------------------------------------------------------------------------------------------
    HeartbeatData     ``clientID``, ``consumerDataSet`` [ConsumerData], ``producerDataSet`` [ProducerData];
                      5.3.3: ``heartbeatFingerprint``, ``withoutSub``
    ConsumerData      ``consumeFromWhere``, ``consumeType``, ``groupName``, ``messageModel``,
                      ``subscriptionDataSet`` [SubscriptionData], ``unitMode``
    ProducerData      ``groupName``
    SubscriptionData  ``classFilterMode``, ``codeSet`` [hash of a tag], ``expressionType``, ``subString``,
                      ``subVersion``, ``tagsSet`` [tag], ``topic``

Clients differ: the C++ one writes the enums as numbers and ``subVersion`` as a string, and leaves out what is empty or
false. All of it is read.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from typing import Annotated, Final

from refmq.protocol.headers.codec import Int32, Int64, Wire

EXPRESSION_TAG: Final = "TAG"
EXPRESSION_SQL92: Final = "SQL92"


class ConsumeType(IntEnum):
    """Who drives the consumer."""

    CONSUME_ACTIVELY = 0  # the application pulls
    CONSUME_PASSIVELY = 1  # the client library pulls and calls the application
    CONSUME_POP = 2  # 5.3.3


class MessageModel(IntEnum):
    """Whether a message goes to every member of a group or to one."""

    BROADCASTING = 0
    CLUSTERING = 1


class ConsumeFromWhere(IntEnum):
    """Where a group without an offset starts."""

    CONSUME_FROM_LAST_OFFSET = 0
    CONSUME_FROM_LAST_OFFSET_AND_FROM_MIN_WHEN_BOOT_FIRST = 1
    CONSUME_FROM_MIN_OFFSET = 2
    CONSUME_FROM_MAX_OFFSET = 3
    CONSUME_FROM_FIRST_OFFSET = 4
    CONSUME_FROM_TIMESTAMP = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class SubscriptionData:
    """What a group wants of a topic. ``*`` as ``sub_string`` means everything and leaves both sets empty."""

    topic: str
    sub_string: str
    tags_set: tuple[str, ...] = ()
    code_set: tuple[Int32, ...] = ()
    sub_version: Int64 = 0
    expression_type: str = EXPRESSION_TAG
    class_filter_mode: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsumerData:
    """One consumer group of a client."""

    group_name: str
    consume_type: ConsumeType
    message_model: MessageModel
    consume_from_where: ConsumeFromWhere
    subscription_data_set: tuple[SubscriptionData, ...] = ()
    unit_mode: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ProducerData:
    """One producer group of a client."""

    group_name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class HeartbeatData:
    """Request 34."""

    client_id: Annotated[str, Wire("clientID")]
    producer_data_set: tuple[ProducerData, ...] = ()
    consumer_data_set: tuple[ConsumerData, ...] = ()
    heartbeat_fingerprint: Int32 | None = None  # 5.3.3
    without_sub: bool | None = None  # 5.3.3


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckClientRequestBody:
    """Request 46: can the broker filter by this subscription?"""

    client_id: str
    group: str
    subscription_data: SubscriptionData
    namespace: str | None = None  # 5.3.3


@dataclass(frozen=True, slots=True, kw_only=True)
class QuerySubscriptionResponseBody:
    """Answer to 345 (5.3.3)."""

    group: str
    topic: str
    subscription_data: SubscriptionData | None = None
