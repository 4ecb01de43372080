"""What a broker says about itself: the table of 28 GET_BROKER_RUNTIME_INFO.

`mqadmin clusterList` and `brokerStatus` read it; all values are text. Figures that only a thread pool has are 0, and so
are those that are not measured here: latencies, longest times, and pulls that found nothing.
"""

from __future__ import annotations

from typing import Final

from refmq.broker.broker import Broker
from refmq.broker.stats import RateMeter
from refmq.protocol.names import SCHEDULE_TOPIC
from refmq.protocol.versions import V4_9_8, version_name

_UNITS: Final = ("B", "KiB", "MiB", "GiB", "TiB", "PiB")


def human_size(size_bytes: int) -> str:
    """A size as upstream prints it: `0 B`, `1.5 MiB`."""
    size = float(size_bytes)
    unit = 0
    while size >= 1024 and unit < len(_UNITS) - 1:
        size /= 1024
        unit += 1
    return f"{size_bytes} B" if unit == 0 else f"{size:.1f} {_UNITS[unit]}"


def runtime_info(broker: Broker, meter: RateMeter) -> dict[str, str]:
    """The table, in the order of upstream's names."""
    store, stats, now_ms = broker.engine.store, broker.stats, broker.world.now_ms()
    ratio = f"{broker.world.disk_used_ratio():.4f}"
    total_bytes, free_bytes = broker.world.disk_capacity()
    first = store.message_at(store.log_min)
    earliest_ms = int.from_bytes(first[56:64], "big") if first is not None else -1
    table = {
        "brokerVersionDesc": version_name(V4_9_8),
        "brokerVersion": str(V4_9_8),
        "bootTimestamp": str(broker.started_ms),
        "runtime": _running_time(now_ms - broker.started_ms),
        "putTps": meter.rates(1),
        "getFoundTps": meter.rates(2),
        "getMissTps": "",
        "getTotalTps": meter.rates(2),
        "getTransferedTps": meter.rates(2),
        "putMessageTimesTotal": str(max(1, stats.put_total)),
        "putMessageFailedTimes": str(stats.put_failed_total),
        "putMessageSizeTotal": str(stats.put_bytes_total),
        "putMessageAverageSize": str(stats.put_bytes_total / max(1, stats.put_total)),
        "putMessageEntireTimeMax": "0",
        "getMessageEntireTimeMax": "0",
        "putMessageDistributeTime": "null",
        "putLatency99": "0.00",
        "putLatency999": "0.00",
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
    """Requests wait in no queue here: they are served in the order in which they come."""
    table = {}
    for name, capacity in (
        ("send", broker.config.send_thread_pool_queue_capacity),
        ("pull", broker.config.pull_thread_pool_queue_capacity),
        ("query", 20_000),
    ):
        table[f"{name}ThreadPoolQueueSize"] = "0"
        table[f"{name}ThreadPoolQueueCapacity"] = str(capacity)
        table[f"{name}ThreadPoolQueueHeadWaitTimeMills"] = "0"
    return table | {"EndTransactionQueueSize": "0", "EndTransactionThreadPoolQueueCapacity": "100000"}


def _delay_progress(broker: Broker) -> dict[str, str]:
    return {
        f"scheduleMessageOffset_{level}": f"{offset},{broker.engine.store.max_offset(SCHEDULE_TOPIC, level - 1)}"
        for level, offset in sorted(broker.delay.cursors.items())
        if offset > 0
    }
