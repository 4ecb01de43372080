"""What the control plane has told the plane: all that a request of the hot path is checked against.

A snapshot is a value. The control plane installs a new one at every change, before anybody is told of the change. So a
permission that was taken away is gone before its answer leaves.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

from refmq.filter.registry import FilterRegistry
from refmq.model.broker_config import BrokerConfig
from refmq.model.ids import HostAddress
from refmq.protocol.bodies.config import SubscriptionGroupConfig, TopicConfig
from refmq.protocol.bodies.heartbeat import MessageModel, SubscriptionData
from refmq.store.config import StoreConfig


class Subscribers(Protocol):
    """A consumer group as its heartbeats describe it."""

    @property
    def message_model(self) -> MessageModel: ...

    @property
    def subscriptions(self) -> Mapping[str, SubscriptionData]: ...


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The tables of a broker, as the plane may rely on them."""

    config: BrokerConfig
    store_config: StoreConfig
    store_host: HostAddress
    """This broker's address, as records carry it."""
    topics: Mapping[str, TopicConfig]
    """Only topics that are durable: a message is never stored under a topic that a crash could forget."""
    groups: Mapping[str, SubscriptionGroupConfig]
    consumers: Mapping[str, Subscribers]
    filters: FilterRegistry
    opens_at: str = ""
    """When sends are accepted (`startAcceptSendRequestTimeStamp`), as people at the broker's place read it."""
