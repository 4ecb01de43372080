"""The consumer groups of a broker: their settings, and how first use creates one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Final

from rpds import HashTrieMap

from refmq.broker.entry_checks import is_legal_group
from refmq.broker.topics import next_version
from refmq.model.broker_config import BrokerConfig
from refmq.model.ids import TimestampMs
from refmq.protocol.bodies.config import DataVersion, SubscriptionGroupConfig, SubscriptionGroupWrapper

SYSTEM_GROUP_PREFIX: Final = "CID_RMQ_SYS_"
TRANSACTION_GROUP: Final = "CID_RMQ_SYS_TRANS"

BUILT_IN_GROUPS: Final = (
    "TOOLS_CONSUMER",
    "FILTERSRV_CONSUMER",
    "SELF_TEST_C_GROUP",
    "CID_ONS-HTTP-PROXY",
    "CID_ONSAPI_PULL",
    "CID_ONSAPI_PERMISSION",
    "CID_ONSAPI_OWNER",
)

GROUPS_MAX: Final = 100_000
"""So that clients with random group names cannot fill the memory; upstream has no bound."""


@dataclass(frozen=True, slots=True)
class GroupTable:
    """Every consumer group, and the version that slaves compare."""

    version: DataVersion
    groups: HashTrieMap[str, SubscriptionGroupConfig]

    def get(self, name: str) -> SubscriptionGroupConfig | None:
        return self.groups.get(name)

    def wrapper(self) -> SubscriptionGroupWrapper:
        """What goes into subscriptionGroup.json; sorted, so that it does not depend on hash seeds."""
        return SubscriptionGroupWrapper(
            data_version=self.version,
            subscription_group_table={name: self.groups[name] for name in sorted(self.groups)},
        )


def start_groups(stored: SubscriptionGroupWrapper | None, now_ms: TimestampMs) -> GroupTable:
    """The table at startup: the built-in groups, overlaid with those in the file."""
    stored_groups: Mapping[str, SubscriptionGroupConfig] = {} if stored is None else stored.subscription_group_table
    built_in = {name: SubscriptionGroupConfig(group_name=name) for name in BUILT_IN_GROUPS}
    return GroupTable(
        version=DataVersion(timestamp=now_ms, counter=0) if stored is None else stored.data_version,
        groups=HashTrieMap({**built_in, **stored_groups}),
    )


def put_group(table: GroupTable, group: SubscriptionGroupConfig, now_ms: TimestampMs) -> GroupTable:
    """Creates or replaces a group."""
    return replace(
        table, groups=table.groups.insert(group.group_name, group), version=next_version(table.version, now_ms)
    )


def delete_group(table: GroupTable, name: str, now_ms: TimestampMs) -> GroupTable:
    return replace(table, groups=table.groups.discard(name), version=next_version(table.version, now_ms))


def ensure_group(table: GroupTable, config: BrokerConfig, name: str, now_ms: TimestampMs) -> GroupTable | None:
    """The table including a group in use; None if it is not created automatically, or cannot be called so."""
    if name in table.groups:
        return table
    if not is_legal_group(name):
        return None
    creatable = config.auto_create_subscription_group or name.startswith(SYSTEM_GROUP_PREFIX)
    if not creatable or len(table.groups) >= GROUPS_MAX:
        return None
    return put_group(table, SubscriptionGroupConfig(group_name=name), now_ms)
