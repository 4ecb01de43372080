"""Everything the control plane knows, as one value.

The hot path works on a snapshot of it (`refmq.plane.snapshot`), installed on every change. The tables are persistent
maps, so the cost of a change does not grow with the number of topics and queues. Committed offsets belong to the
plane.
"""

from __future__ import annotations

from dataclasses import dataclass

from refmq.broker.clients import ClientTable
from refmq.broker.groups import GroupTable
from refmq.broker.queue_locks import QueueLocks
from refmq.broker.topics import TopicTable
from refmq.filter.registry import FilterRegistry
from refmq.model.broker_config import BrokerConfig


@dataclass(frozen=True, slots=True)
class BrokerState:
    """The tables of a broker. `clients` and `locks` live in memory only, the others have files."""

    config: BrokerConfig
    topics: TopicTable
    groups: GroupTable
    clients: ClientTable
    locks: QueueLocks
    filters: FilterRegistry
