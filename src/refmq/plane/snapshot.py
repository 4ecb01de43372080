"""What the control plane has told the plane: all that a request of the hot path is checked against.

A snapshot is a value. The control plane installs a new one at every change, before anybody is told of the change. So a
permission that was taken away is gone before its answer leaves.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Protocol

from refmq.filter.registry import FilterRegistry
from refmq.model.broker_config import BrokerConfig
from refmq.model.ids import HostAddress
from refmq.protocol.bodies.config import SubscriptionGroupConfig, TopicConfig
from refmq.protocol.bodies.heartbeat import MessageModel, SubscriptionData
from refmq.protocol.command import RemotingCommand
from refmq.store.config import StoreConfig

NO_POLICY: Final = "access control is on and its files have not been read"


class Access(Protocol):
    """Who may do what: `refmq.acl.check.Guard` is one."""

    def refusal(self, command: RemotingCommand, peer: str) -> str | None:
        """Why a request may not be served, as the remark of its answer; None if it may."""
        ...


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
    access: Access | None = None
    """What every request is checked against when `config.acl_enable`. None lets nobody in then."""
    opens_at: str = ""
    """When sends are accepted (`startAcceptSendRequestTimeStamp`), as people at the broker's place read it."""

    def refusal(self, command: RemotingCommand, peer: str) -> str | None:
        """Why access control refuses a request, or None. `peer` is `host:port`."""
        if not self.config.acl_enable:
            return None
        return NO_POLICY if self.access is None else self.access.refusal(command, peer)
