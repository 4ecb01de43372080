"""What a broker reports about itself."""

from __future__ import annotations

import pytest

from refmq.broker.stats import Period
from refmq.protocol.bodies.codec import decode_body
from refmq.protocol.bodies.config import (
    KVTable,
)
from refmq.protocol.bodies.stats import (
    BrokerStatsData,
)
from refmq.protocol.codes import RequestCode, ResponseCode
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


def update(world: Harness, text: str) -> tuple[int, str | None]:
    answer = world.ask(RequestCode.UPDATE_BROKER_CONFIG, body=text.encode())
    return answer.code, answer.remark


def test_a_change_over_the_wire_takes_effect_is_kept_and_counted() -> None:
    world = Harness()
    assert update(world, "enablePropertyFilter=true\nregionId=eu\n") == (ResponseCode.SUCCESS, None)
    assert world.broker.config.enable_property_filter
    assert world.settings == {"enablePropertyFilter": "true", "regionId": "eu"}
    answer = world.ask(RequestCode.GET_BROKER_CONFIG)
    assert b"\nregionId=eu\n" in answer.body
    assert '"counter":1' in answer.fields["version"]


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("brokerConfigPath=/etc/passwd", 16),
        ("rocketmqHome=/", 16),
        ("listenPort=1", 1),
        ("regionId=eu\nstorePathRootDir=/", 1),
        ("tls.server.mode=disabled", 1),
        ("madeUp=1", 1),
        ("longPollingEnable=maybe", 1),
    ],
)
def test_a_change_that_is_not_safe_changes_nothing_at_all(text: str, code: int) -> None:
    world = Harness()
    before = world.broker.config
    assert update(world, text)[0] == code
    assert world.broker.config == before
    assert world.settings == {}


def test_a_new_permission_is_told_to_the_nameservers() -> None:
    world = Harness()
    version = world.broker.state.topics.version
    update(world, "brokerPermission=4")
    assert world.registered == 1
    assert world.broker.state.topics.version != version
