"""Bodies with statistics and dumps for the admin tool. A map keyed by a queue has it as a bare object before the colon.

body                   JSON members
---------------------  --------------------------------------------------------------------------------------------
TopicStatsTable        ``offsetTable`` {queue: {lastUpdateTimestamp, maxOffset, minOffset}}; 5.3.3: ``topicPutTps``
ConsumeStats           ``consumeTps``, ``offsetTable`` {queue: {brokerOffset, consumerOffset, lastTimestamp}}
ConsumeStatsList       ``brokerAddr``, ``consumeStatsList`` [{group: [ConsumeStats]}], ``totalDiff``
BrokerStatsData        ``statsDay``, ``statsHour``, ``statsMinute``, each {avgpt, sum, tps}
QueryConsumeTimeSpan   ``consumeTimeSpanSet`` [QueueTimeSpan]
ConsumeQueueDump       ``filterData``, ``maxQueueIndex``, ``minQueueIndex``, ``queueData`` [ConsumeQueueEntry],
                       ``subscriptionData``
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from refmq.model.ids import MessageQueue
from refmq.protocol.bodies.heartbeat import SubscriptionData
from refmq.protocol.headers.codec import Int32, Int64


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicOffset:
    """The bounds of one queue."""

    min_offset: Int64
    max_offset: Int64
    last_update_timestamp: Int64 = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicStatsTable:
    """Answer to 202."""

    offset_table: Mapping[MessageQueue, TopicOffset] = field(default_factory=dict)
    topic_put_tps: float | None = None  # 5.3.3


@dataclass(frozen=True, slots=True, kw_only=True)
class OffsetWrapper:
    """How far a group is in one queue."""

    broker_offset: Int64
    consumer_offset: Int64
    last_timestamp: Int64 = 0
    pull_offset: Int64 | None = None  # 5.3.3


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsumeStats:
    """Answer to 208."""

    offset_table: Mapping[MessageQueue, OffsetWrapper] = field(default_factory=dict)
    consume_tps: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsumeStatsList:
    """Answer to 317."""

    consume_stats_list: tuple[Mapping[str, tuple[ConsumeStats, ...]], ...] = ()
    broker_addr: str | None = None
    total_diff: Int64 = 0
    total_inflight_diff: Int64 | None = None  # 5.3.3


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerStatsItem:
    """Sum, rate and average of one statistic over one span of time."""

    sum: Int64 = 0
    tps: float = 0.0
    avgpt: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerStatsData:
    """Answer to 315."""

    stats_minute: BrokerStatsItem = BrokerStatsItem()
    stats_hour: BrokerStatsItem = BrokerStatsItem()
    stats_day: BrokerStatsItem = BrokerStatsItem()


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueTimeSpan:
    """Which times one queue covers and where a group is. The texts repeat the numbers in the writer's time zone."""

    message_queue: MessageQueue
    min_time_stamp: Int64 = 0
    max_time_stamp: Int64 = 0
    consume_time_stamp: Int64 = 0
    delay_time: Int64 = 0
    min_time_stamp_str: str | None = None
    max_time_stamp_str: str | None = None
    consume_time_stamp_str: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class QueryConsumeTimeSpan:
    """Answer to 303."""

    consume_time_span_set: tuple[QueueTimeSpan, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsumeQueueEntry:
    """One entry of a consume queue, and whether a filter would let its message through."""

    physic_offset: Int64
    physic_size: Int32
    tags_code: Int64
    extend_data_json: str | None = None
    bit_map: str | None = None
    eval: bool = False
    msg: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsumeQueueDump:
    """Answer to 321."""

    queue_data: tuple[ConsumeQueueEntry, ...] = ()
    min_queue_index: Int64 = 0
    max_queue_index: Int64 = 0
    subscription_data: SubscriptionData | None = None
    filter_data: str | None = None
