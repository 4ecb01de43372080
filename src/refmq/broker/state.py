"""Everything the control plane knows, as one value.

The data plane works on such a value: an immutable snapshot that is replaced on every change. The tables are
persistent maps, so a change costs what it touches, whatever the number of topics and queues.
"""

from __future__ import annotations

from dataclasses import dataclass

from refmq.broker.clients import ClientTable
from refmq.broker.filters import FilterRegistry
from refmq.broker.groups import GroupTable
from refmq.broker.queue_locks import QueueLocks
from refmq.broker.topics import TopicTable
from refmq.model.broker_config import BrokerConfig
from refmq.plane.offsets import OffsetTable


@dataclass(frozen=True, slots=True)
class BrokerState:
    """The tables of a broker. `clients` and `locks` live in memory only, the others have files."""

    config: BrokerConfig
    topics: TopicTable
    groups: GroupTable
    clients: ClientTable
    offsets: OffsetTable
    locks: QueueLocks
    filters: FilterRegistry
