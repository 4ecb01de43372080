"""Headers of the requests about clients: membership, notifications, and what a broker asks or forwards to a client.

Spellings to mind: ``clientID`` in 35, ``clientId`` in 307 and 309.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from refmq.protocol.headers.codec import Int32, Int64, Wire


@dataclass(frozen=True, slots=True, kw_only=True)
class HeartbeatResponse:
    """Answer of a 5.3.3 broker to 34; a 4.9.8 broker sends no fields."""

    is_support_heart_beat_v2: Annotated[bool | None, Wire("IS_SUPPORT_HEART_BEAT_V2")] = None
    is_sub_change: Annotated[bool | None, Wire("IS_SUB_CHANGE")] = None


@dataclass(frozen=True, slots=True, kw_only=True)
class UnregisterClientRequest:
    """35 UNREGISTER_CLIENT. The C++ client sends an empty string for the group it does not mean."""

    client_id: Annotated[str, Wire("clientID")]
    producer_group: str | None = None
    consumer_group: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class UnregisterClientResponse:
    """Answer to 35: no fields."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GetConsumerListByGroupRequest:
    """38 GET_CONSUMER_LIST_BY_GROUP."""

    consumer_group: str


@dataclass(frozen=True, slots=True, kw_only=True)
class NotifyConsumerIdsChangedRequest:
    """40 NOTIFY_CONSUMER_IDS_CHANGED, one-way from a broker to a client."""

    consumer_group: str


@dataclass(frozen=True, slots=True, kw_only=True)
class GetConsumerRunningInfoRequest:
    """307 GET_CONSUMER_RUNNING_INFO, from the admin to the broker and on to the client."""

    consumer_group: str
    client_id: str
    jstack_enable: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsumeMessageDirectlyRequest:
    """309 CONSUME_MESSAGE_DIRECTLY. The broker sets ``brokerName`` and the body when it forwards."""

    consumer_group: str
    client_id: str | None = None
    msg_id: str | None = None
    broker_name: str | None = None
    topic: str | None = None  # 5.3.3
    topic_sys_flag: Int32 | None = None  # 5.3.3
    group_sys_flag: Int32 | None = None  # 5.3.3


@dataclass(frozen=True, slots=True, kw_only=True)
class GetConsumerStatusRequest:
    """221 (to the client) and 223 (to the broker). ``client_addr`` is a client id; empty means all."""

    topic: str
    group: str
    client_addr: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ResetOffsetRequest:
    """220 (one-way to the client) and 222 (to the broker). Timestamp -1 means the maximum offset."""

    topic: str
    group: str
    timestamp: Int64
    is_force: bool = False
    queue_id: Int32 | None = None  # 5.3.3 always sends it, -1 for all queues
    offset: Int64 | None = None  # 5.3.3; -1 or absent: by time
