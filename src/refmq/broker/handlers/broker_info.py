"""What the broker reports about itself: 28 runtime info, 315 statistics, 25 and 26 its configuration."""

from __future__ import annotations

from typing import Final

from refmq.broker.control_plane import Broker
from refmq.broker.handlers._registry import Answer, done, handles, refuse
from refmq.broker.runtime import runtime_info
from refmq.broker.settings import change_over_the_wire, shown_settings
from refmq.broker.stats import Period
from refmq.errors import UsageError
from refmq.plane.engine import Peer
from refmq.protocol.bodies.codec import encode_body
from refmq.protocol.bodies.config import KVTable
from refmq.protocol.bodies.stats import BrokerStatsData, BrokerStatsItem
from refmq.protocol.codes import RequestCode, ResponseCode
from refmq.protocol.command import RemotingCommand
from refmq.protocol.headers.admin import GetBrokerConfigResponse, ViewBrokerStatsDataRequest
from refmq.protocol.headers.codec import decode_header, encode_header
from refmq.protocol.properties import format_properties, parse_properties

SETTINGS_BYTES_MAX: Final = 64 << 10
BLACK_LIST: Final = frozenset({"brokerConfigPath", "rocketmqHome", "configBlackList"})
"""Keys that may never be changed over the wire (4.9.8)."""


@handles(RequestCode.GET_BROKER_RUNTIME_INFO)
def get_broker_runtime_info(broker: Broker, peer: Peer, command: RemotingCommand) -> Answer:
    """Version, rates, sizes and progress."""
    return done(command, body=encode_body(KVTable(table=runtime_info(broker, broker.meter))))


@handles(RequestCode.VIEW_BROKER_STATS_DATA)
def view_broker_stats_data(broker: Broker, peer: Peer, command: RemotingCommand) -> Answer:
    """One counter over the last minute, hour and day."""
    header = decode_header(ViewBrokerStatsDataRequest, command)
    counter = broker.counted().get(header.stats_name, header.stats_key)
    if counter is None:
        remark = f"The stats <{header.stats_name}> <{header.stats_key}> not exist"
        return refuse(command, ResponseCode.SYSTEM_ERROR, remark)

    def item(period: Period) -> BrokerStatsItem:
        figure = counter.figure(period)
        return BrokerStatsItem(sum=figure.sum, tps=figure.tps, avgpt=figure.average)

    body = BrokerStatsData(stats_minute=item(Period.MINUTE), stats_hour=item(Period.HOUR), stats_day=item(Period.DAY))
    return done(command, body=encode_body(body))


@handles(RequestCode.GET_BROKER_CONFIG)
def get_broker_config(broker: Broker, peer: Peer, command: RemotingCommand) -> Answer:
    """Every setting, one line each."""
    text = format_properties(shown_settings(broker.config, broker.store_config))
    version = encode_body(broker.config_version).decode()
    return done(command, encode_header(GetBrokerConfigResponse(version=version)), text.encode())


@handles(RequestCode.UPDATE_BROKER_CONFIG)
async def update_broker_config(broker: Broker, peer: Peer, command: RemotingCommand) -> Answer:
    """Changes settings that are safe to change; all of them or none."""
    if len(command.body) > SETTINGS_BYTES_MAX:
        return refuse(command, ResponseCode.SYSTEM_ERROR, f"settings have at most {SETTINGS_BYTES_MAX} bytes")
    given = parse_properties(command.body.decode("utf-8", "replace"))
    black_listed = BLACK_LIST.union(broker.config.config_black_list.split(";"))
    if black_listed.intersection(given):
        return refuse(command, ResponseCode.NO_PERMISSION, "Can not update config in black list.")
    try:
        config = change_over_the_wire(broker.config, given)
    except UsageError as mistake:
        return refuse(command, ResponseCode.SYSTEM_ERROR, str(mistake))
    await broker.change_config(config, given)
    return done(command)
