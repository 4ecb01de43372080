"""Bodies about offsets and locks of queues. A map keyed by a queue has the queue as a bare object before the colon.

body                     JSON members
-----------------------  ------------------------------------------------------------------------------------------
ConsumerOffsets          ``offsetTable`` {"topic@group": {queue id: offset}}; 5.3.3: ``dataVersion``
DelayOffsets             ``offsetTable`` {delay level: offset}
CorrectionOffsets        ``correctionOffsets`` {queue id: offset}
ResetOffsetBody          ``offsetTable`` {queue: offset}
ResetOffsetBodyForC      ``offsetTable`` [{brokerName, offset, queueId, topic}], for consumers in C++
GetConsumerStatusBody    ``consumerTable`` {client id: {queue: offset}}, ``messageQueueTable`` {queue: offset}
LockBatchRequestBody     ``clientId``, ``consumerGroup``, ``mqSet`` [queue]; 5.3.3: ``onlyThisBroker``
LockBatchResponseBody    ``lockOKMQSet`` [queue]
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated

from refmq.model.ids import MessageQueue
from refmq.protocol.bodies.config import DataVersion
from refmq.protocol.headers.codec import Int32, Int64, Wire


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsumerOffsets:
    """Answer to 43, and the file consumerOffset.json."""

    offset_table: Mapping[str, Mapping[Int32, Int64]] = field(default_factory=dict)
    data_version: DataVersion | None = None  # 5.3.3


@dataclass(frozen=True, slots=True, kw_only=True)
class DelayOffsets:
    """Answer to 45, and the file delayOffset.json."""

    offset_table: Mapping[Int32, Int64] = field(default_factory=dict)
    data_version: DataVersion | None = None  # 5.3.3


@dataclass(frozen=True, slots=True, kw_only=True)
class CorrectionOffsets:
    """Answer to 308."""

    correction_offsets: Mapping[Int32, Int64] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class ResetOffsetBody:
    """Request 220 and answer to 222, for every client but those in C++."""

    offset_table: Mapping[MessageQueue, Int64] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueWithOffset:
    """One entry of ``ResetOffsetBodyForC``."""

    broker_name: str
    topic: str
    queue_id: Int32
    offset: Int64


@dataclass(frozen=True, slots=True, kw_only=True)
class ResetOffsetBodyForC:
    """Request 220 to a consumer in C++, which cannot read the map."""

    offset_table: tuple[QueueWithOffset, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class GetConsumerStatusBody:
    """Answer to 221 (a client fills the second table) and 223 (a broker fills the first)."""

    consumer_table: Mapping[str, Mapping[MessageQueue, Int64]] = field(default_factory=dict)
    message_queue_table: Mapping[MessageQueue, Int64] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class LockBatchRequestBody:
    """Requests 41 and 42."""

    consumer_group: str
    client_id: str
    mq_set: tuple[MessageQueue, ...] = ()
    only_this_broker: bool | None = None  # 5.3.3


@dataclass(frozen=True, slots=True, kw_only=True)
class LockBatchResponseBody:
    """Answer to 41: the queues that are locked now."""

    lock_ok_mq_set: Annotated[tuple[MessageQueue, ...], Wire("lockOKMQSet")] = ()
