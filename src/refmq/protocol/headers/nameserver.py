"""Headers of the requests that a nameserver serves, and of its answers.

Each class names its request code; the fields stand in upstream's order with their wire names in camel case.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from refmq.protocol.headers.codec import Int32, Int64, Wire


@dataclass(frozen=True, slots=True, kw_only=True)
class PutKvConfigRequest:
    """100 PUT_KV_CONFIG."""

    namespace: str
    key: str
    value: str


@dataclass(frozen=True, slots=True, kw_only=True)
class GetKvConfigRequest:
    """101 GET_KV_CONFIG."""

    namespace: str
    key: str


@dataclass(frozen=True, slots=True, kw_only=True)
class GetKvConfigResponse:
    """Answer to 101."""

    value: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class DeleteKvConfigRequest:
    """102 DELETE_KV_CONFIG."""

    namespace: str
    key: str


@dataclass(frozen=True, slots=True, kw_only=True)
class GetKvListByNamespaceRequest:
    """219 GET_KVLIST_BY_NAMESPACE."""

    namespace: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RegisterBrokerRequest:
    """103 REGISTER_BROKER. ``body_crc32`` covers the body as sent (compressed or not); 0 means unchecked."""

    broker_name: str
    broker_addr: str
    cluster_name: str
    ha_server_addr: str
    broker_id: Int64
    compressed: bool = False
    body_crc32: Annotated[Int32, Wire("bodyCrc32")] = 0
    heartbeat_timeout_millis: Int64 | None = None  # 5.3.3
    enable_acting_master: bool | None = None  # 5.3.3


@dataclass(frozen=True, slots=True, kw_only=True)
class RegisterBrokerResponse:
    """Answer to 103: for a slave whose master is known, where that is."""

    ha_server_addr: str | None = None
    master_addr: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class UnregisterBrokerRequest:
    """104 UNREGISTER_BROKER."""

    broker_name: str
    broker_addr: str
    cluster_name: str
    broker_id: Int64


@dataclass(frozen=True, slots=True, kw_only=True)
class GetRouteInfoRequest:
    """105 GET_ROUTEINFO_BY_TOPIC."""

    topic: str
    accept_standard_json_only: bool | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class WipeWritePermOfBrokerRequest:
    """205 WIPE_WRITE_PERM_OF_BROKER."""

    broker_name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class WipeWritePermOfBrokerResponse:
    """Answer to 205."""

    wipe_topic_count: Int32


@dataclass(frozen=True, slots=True, kw_only=True)
class AddWritePermOfBrokerRequest:
    """327 ADD_WRITE_PERM_OF_BROKER."""

    broker_name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class AddWritePermOfBrokerResponse:
    """Answer to 327."""

    add_topic_count: Int32


@dataclass(frozen=True, slots=True, kw_only=True)
class DeleteTopicInNamesrvRequest:
    """216 DELETE_TOPIC_IN_NAMESRV. Without a cluster the topic goes everywhere."""

    topic: str
    cluster_name: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RegisterTopicRequest:
    """217 REGISTER_TOPIC_IN_NAMESRV (5.3.3)."""

    topic: str


@dataclass(frozen=True, slots=True, kw_only=True)
class GetTopicsByClusterRequest:
    """224 GET_TOPICS_BY_CLUSTER."""

    cluster: str


@dataclass(frozen=True, slots=True, kw_only=True)
class QueryDataVersionRequest:
    """322 QUERY_DATA_VERSION. The body is the broker's DataVersion."""

    broker_name: str
    broker_addr: str
    cluster_name: str
    broker_id: Int64


@dataclass(frozen=True, slots=True, kw_only=True)
class QueryDataVersionResponse:
    """Answer to 322."""

    changed: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerHeartbeatRequest:
    """904 BROKER_HEARTBEAT (5.3.3). ``heartbeatTimeoutMills`` is spelt that way."""

    cluster_name: str
    broker_addr: str
    broker_name: str
    broker_id: Int64 | None = None
    epoch: Int32 | None = None
    max_offset: Int64 | None = None
    confirm_offset: Int64 | None = None
    heartbeat_timeout_mills: Int64 | None = None
    election_priority: Int32 | None = None
