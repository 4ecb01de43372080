"""Heartbeats over the wire: who is a member, who is notified, and which filters live."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from refmq.model.broker_config import BrokerConfig
from refmq.protocol.bodies.codec import decode_body
from refmq.protocol.bodies.connections import ConsumerIdList
from refmq.protocol.bodies.heartbeat import (
    SubscriptionData,
)
from refmq.protocol.codes import RequestCode, ResponseCode
from tests.broker.harness import Harness
from tests.broker.heartbeats import beat_group, beat_groups, consumer_of

OK = ResponseCode.SUCCESS


def test_members_hear_of_each_other_and_find_each_other() -> None:
    world = Harness()
    beat_group(world, 1)
    beat_group(world, 2)
    told = [c.code for c in world.peer(1).received]
    assert told == [RequestCode.NOTIFY_CONSUMER_IDS_CHANGED] * 2
    answer = world.ask(RequestCode.GET_CONSUMER_LIST_BY_GROUP, fields={"consumerGroup": "g"})
    assert decode_body(ConsumerIdList, answer.body).consumer_id_list == ("c1", "c2")
    assert "%RETRY%g" in world.broker.state.topics.topics
    world.peer(1).received.clear()
    world.broker.connection_closed(2)
    assert len(world.peer(1).received) == 1
    fields = {"clientID": "c1", "consumerGroup": "g", "producerGroup": "producers"}
    assert world.ask(RequestCode.UNREGISTER_CLIENT, fields=fields).code == OK
    gone = world.ask(RequestCode.GET_CONSUMER_LIST_BY_GROUP, fields={"consumerGroup": "g"})
    assert (gone.code, gone.remark) == (ResponseCode.SYSTEM_ERROR, "no consumer for this group, g")


def test_a_filter_is_tried_when_a_consumer_starts() -> None:
    world = Harness()
    body = b'{"clientId":"c","group":"g","subscriptionData":{"topic":"T","subString":"a >","expressionType":"SQL92"}}'
    assert world.ask(RequestCode.CHECK_CLIENT_CONFIG, body=body).code == ResponseCode.SYSTEM_ERROR
    world.ask(RequestCode.UPDATE_BROKER_CONFIG, body=b"enablePropertyFilter=true")
    assert world.ask(RequestCode.CHECK_CLIENT_CONFIG, body=body).code == ResponseCode.SUBSCRIPTION_PARSE_FAILED
    assert world.ask(RequestCode.CHECK_CLIENT_CONFIG, body=body.replace(b"a >", b"a > 5")).code == OK


@pytest.mark.parametrize("told", [True, False])
def test_members_are_told_of_each_other_unless_the_broker_says_otherwise(told: bool) -> None:
    world = Harness(BrokerConfig(notify_consumer_ids_changed_enable=told))
    for peer in (1, 2):
        beat_groups(world, peer, consumer_of(SubscriptionData(topic="T", sub_string="*")))
    codes = {command.code for command in world.peer(1).received}
    assert codes == ({RequestCode.NOTIFY_CONSUMER_IDS_CHANGED} if told else set())


def test_the_filters_of_a_group_die_with_its_last_member() -> None:
    world = Harness(BrokerConfig(enable_property_filter=True))
    beat_groups(
        world, 1, consumer_of(SubscriptionData(topic="T", sub_string="a = 1", expression_type="SQL92", sub_version=1))
    )
    world.broker.connection_closed(1)
    buried = world.broker.state.filters.get("T", "consumers")
    assert buried is not None
    assert buried.is_dead


class Leaving(Harness):
    """A client goes away while the broker writes down the retry topic of its group."""

    async def save(self, file: str, encode: Callable[[], bytes]) -> None:
        await super().save(file, encode)
        self.peer(1).closed = True
        self.broker.connection_closed(1)


def test_who_left_in_the_middle_of_a_heartbeat_is_no_member() -> None:
    world = Leaving()
    beat_groups(world, 1, consumer_of(SubscriptionData(topic="T", sub_string="*")), producers=("producers",))
    table = world.broker.state.clients
    assert len(table.consumers) == len(table.producers) == len(table.producer_connections) == 0
