"""The broker about itself: 28 runtime info, 315 statistics, 25 and 26 its configuration."""

from __future__ import annotations

from dataclasses import fields, replace
from typing import Final

from refmq.broker.broker import Broker
from refmq.broker.config import BrokerConfig
from refmq.broker.handlers._registry import Answer, done, handles, refuse
from refmq.broker.runtime import runtime_info
from refmq.broker.stats import Period
from refmq.broker.topics import next_version
from refmq.broker.world import Peer
from refmq.errors import UsageError
from refmq.protocol.bodies.codec import encode_body
from refmq.protocol.bodies.config import KVTable
from refmq.protocol.bodies.stats import BrokerStatsData, BrokerStatsItem
from refmq.protocol.codes import RequestCode, ResponseCode
from refmq.protocol.command import RemotingCommand
from refmq.protocol.headers.admin import GetBrokerConfigResponse, ViewBrokerStatsDataRequest
from refmq.protocol.headers.codec import decode_header, encode_header

BLACK_LIST: Final = frozenset({"brokerConfigPath", "rocketmqHome", "configBlackList"})
"""Keys that nobody may change over the wire (4.9.8)."""


@handles(RequestCode.GET_BROKER_RUNTIME_INFO)
def get_broker_runtime_info(broker: Broker, peer: Peer, command: RemotingCommand) -> Answer:
    """Version, rates, sizes and progress."""
    return done(command, body=encode_body(KVTable(table=runtime_info(broker, broker.meter))))


@handles(RequestCode.VIEW_BROKER_STATS_DATA)
def view_broker_stats_data(broker: Broker, peer: Peer, command: RemotingCommand) -> Answer:
    """One counter over the last minute, hour and day."""
    header = decode_header(ViewBrokerStatsDataRequest, command)
    counter = broker.stats.get(header.stats_name, header.stats_key)
    if counter is None:
        remark = f"The stats <{header.stats_name}> <{header.stats_key}> not exist"
        return refuse(command, ResponseCode.SYSTEM_ERROR, remark)

    def item(period: Period) -> BrokerStatsItem:
        figure = counter.figure(period)
        return BrokerStatsItem(sum=figure.sum, tps=figure.tps, avgpt=figure.average)

    body = BrokerStatsData(
        stats_minute=item(Period.MINUTE), stats_hour=item(Period.HOUR), stats_day=item(Period.DAY)
    )
    return done(command, body=encode_body(body))
