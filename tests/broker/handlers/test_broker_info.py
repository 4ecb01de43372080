"""What a broker reports about itself."""

from __future__ import annotations

from refmq.broker.stats import Period
from refmq.protocol.bodies.codec import decode_body
from refmq.protocol.bodies.config import (
    KVTable,
)
from refmq.protocol.bodies.stats import (
    BrokerStatsData,
)
from refmq.protocol.codes import RequestCode
from tests.broker.harness import Harness


def test_runtime_info_and_statistics() -> None:
    world = Harness()
    world.send()
    world.pull()
    world.pull(offset=1)
    for _ in range(12):
        world.now += 1_000
        world.broker.meter.sample(world.now_ms(), world.broker.stats.totals())
    table = decode_body(KVTable, world.ask(RequestCode.GET_BROKER_RUNTIME_INFO).body).table
    assert (table["brokerVersionDesc"], table["putMessageTimesTotal"]) == ("V4_9_8", "1")
    assert table["putTps"].split(" ")[0] == "0.0"
    assert (world.broker.stats.found_total, world.broker.stats.missed_total) == (1, 1)
    assert table["commitLogDirCapacity"] == "Total : 4.0 GiB, Free : 3.0 GiB."
    world.broker.stats.sample(Period.MINUTE, world.now_ms())
    fields = {"statsName": "TOPIC_PUT_NUMS", "statsKey": "T"}
    stats = decode_body(BrokerStatsData, world.ask(RequestCode.VIEW_BROKER_STATS_DATA, fields=fields).body)
    assert stats.stats_minute.sum == 1
    unknown = world.ask(RequestCode.VIEW_BROKER_STATS_DATA, fields={**fields, "statsKey": "U"})
    assert unknown.remark == "The stats <TOPIC_PUT_NUMS> <U> not exist"
