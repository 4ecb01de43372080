"""What a broker reports about itself: the table of 28 GET_BROKER_RUNTIME_INFO.

`mqadmin clusterList` and `brokerStatus` read it; all values are text. Figures about threads and mapped files are 0:
nothing here waits for the log's lock, and nothing is dispatched through a buffer.
"""

from __future__ import annotations

from typing import Final

from refmq.broker.control_plane import Broker
from refmq.broker.stats import RateMeter
from refmq.plane.flow import Kind, capacity
from refmq.protocol.names import SCHEDULE_TOPIC
from refmq.protocol.versions import V4_9_8, version_name

QUERY_QUEUE_CAPACITY: Final = 20_000
"""What upstream shows for a missing queue."""

_UNITS: Final = ("B", "KiB", "MiB", "GiB", "TiB", "PiB")


def human_size(size_bytes: int) -> str:
    """A size as upstream prints it: `0 B`, `1.5 MiB`."""
    assert size_bytes >= 0, "a size is not negative"
    size = float(size_bytes)
    unit = 0
    while size >= 1024 and unit < len(_UNITS) - 1:
        size /= 1024
        unit += 1
    return f"{size_bytes} B" if unit == 0 else f"{size:.1f} {_UNITS[unit]}"


def runtime_info(broker: Broker, meter: RateMeter) -> dict[str, str]:
    """The table, in the order of upstream's names."""
    store, stats, now_ms = broker.engine.store, broker.counted(), broker.environment.now_ms()
    ratio = f"{broker.engine.store.disk_used_ratio:.4f}"
    total_bytes, free_bytes = broker.environment.disk_capacity()
    first = store.message_at(store.log_min)
    earliest_ms = int.from_bytes(first[56:64], "big") if first is not None else -1
    table = {
        "brokerVersionDesc": version_name(V4_9_8),
        "brokerVersion": str(V4_9_8),
        "bootTimestamp": str(broker.started_ms),
        "runtime": _running_time(now_ms - broker.started_ms),
        "putTps": meter.rates(lambda totals: totals.put),
        "getFoundTps": meter.rates(lambda totals: totals.found),
        "getMissTps": meter.rates(lambda totals: totals.missed),
        "getTotalTps": meter.rates(lambda totals: totals.pulled),
        "getTransferedTps": meter.rates(lambda totals: totals.transferred),
        "putMessageTimesTotal": str(max(1, stats.put_total)),
        "putMessageFailedTimes": str(stats.put_failed_total),
        "putMessageSizeTotal": str(stats.put_bytes_total),
        "putMessageAverageSize": str(stats.put_bytes_total / max(1, stats.put_total)),
        "putMessageEntireTimeMax": str(stats.put_times.longest_ms),
        "getMessageEntireTimeMax": str(stats.get_times.longest_ms),
        "putMessageDistributeTime": stats.put_times.distribution(),
        "putLatency99": f"{stats.put_times.percentile_ms(0.99):.2f}",
        "putLatency999": f"{stats.put_times.percentile_ms(0.999):.2f}",
        "dispatchMaxBuffer": "0",
        "commitLogDiskRatio": ratio,
        "consumeQueueDiskRatio": ratio,
        "commitLogMinOffset": str(store.log_min),
        "commitLogMaxOffset": str(store.log_max),
        "dispatchBehindBytes": str(store.log_max - store.dispatched_to),
        "earliestMessageTimeStamp": str(earliest_ms),
        "pageCacheLockTimeMills": "0",
        "startAcceptSendRequestTimeStamp": str(broker.config.start_accept_send_request_time_stamp),
        "remainTransientStoreBufferNumbs": str(2**31 - 1),
        "remainHowManyDataToFlush": human_size(max(0, store.log_max - store.flushed_to)),
        "commitLogDirCapacity": f"Total : {human_size(total_bytes)}, Free : {human_size(free_bytes)}.",
    }
    table |= _day_totals(broker) | _queues(broker) | _delay_progress(broker)
    return {name: table[name] for name in sorted(table)}


def _running_time(running_ms: int) -> str:
    seconds, _ = divmod(running_ms, 1000)
    minutes, seconds = divmod(seconds, 60)
    hours, minutes = divmod(minutes, 60)
    days, hours = divmod(hours, 24)
    return f"[ {days} days, {hours} hours, {minutes} minutes, {seconds} seconds ]"


def _day_totals(broker: Broker) -> dict[str, str]:
    stats = broker.stats
    table = {"msgPutTotalTodayNow": str(stats.put_total), "msgGetTotalTodayNow": str(stats.get_total)}
    for name, (yesterday, today) in stats.mornings().items():
        table[f"msg{name}TotalYesterdayMorning"] = str(yesterday)
        table[f"msg{name}TotalTodayMorning"] = str(today)
    return table


def _queues(broker: Broker) -> dict[str, str]:
    """What is being served (`refmq.plane.flow`). Queries never wait."""
    config, flow, uptime_ms = broker.config, broker.engine.flow, broker.engine.uptime_ms
    rows = {
        name: (flow.size(kind), capacity(config, kind), flow.head_wait_ms(kind, uptime_ms))
        for name, kind in (("send", Kind.SEND), ("pull", Kind.PULL))
    }
    table = {}
    for name, (size, most, head_wait_ms) in {**rows, "query": (0, QUERY_QUEUE_CAPACITY, 0)}.items():
        table[f"{name}ThreadPoolQueueSize"] = str(size)
        table[f"{name}ThreadPoolQueueCapacity"] = str(most)
        table[f"{name}ThreadPoolQueueHeadWaitTimeMills"] = str(head_wait_ms)
    return table | {
        "EndTransactionQueueSize": str(flow.size(Kind.TRANSACTION)),
        "EndTransactionThreadPoolQueueCapacity": str(capacity(config, Kind.TRANSACTION)),
    }


def _delay_progress(broker: Broker) -> dict[str, str]:
    return {
        f"scheduleMessageOffset_{level}": f"{offset},{broker.engine.store.max_offset(SCHEDULE_TOPIC, level - 1)}"
        for level, offset in sorted(broker.delay.cursors.items())
        if offset > 0
    }
