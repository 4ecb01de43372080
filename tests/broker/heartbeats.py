"""Heartbeats of groups, for tests of several handlers."""

from __future__ import annotations

from refmq.protocol.bodies.codec import encode_body
from refmq.protocol.bodies.heartbeat import (
    ConsumeFromWhere,
    ConsumerData,
    ConsumeType,
    HeartbeatData,
    MessageModel,
    ProducerData,
    SubscriptionData,
)
from refmq.protocol.codes import RequestCode, ResponseCode
from tests.broker.harness import Harness

OK = ResponseCode.SUCCESS


def beat_group(
    world: Harness, peer: int = 1, group: str = "g", *topics: str, client: str | None = None, version: int = 409
) -> None:
    consumer = ConsumerData(
        group_name=group,
        consume_type=ConsumeType.CONSUME_PASSIVELY,
        message_model=MessageModel.CLUSTERING,
        consume_from_where=ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET,
        subscription_data_set=(SubscriptionData(topic="T", sub_string="*"),),
    )
    data = HeartbeatData(
        client_id=client or f"c{peer}",
        consumer_data_set=(consumer,),
        producer_data_set=(ProducerData(group_name="producers"),),
    )
    assert world.ask(RequestCode.HEART_BEAT, body=encode_body(data), peer=peer, version=version).code == OK


def consumer_of(*subscriptions: SubscriptionData, group: str = "consumers") -> ConsumerData:
    return ConsumerData(
        group_name=group,
        consume_type=ConsumeType.CONSUME_PASSIVELY,
        message_model=MessageModel.CLUSTERING,
        consume_from_where=ConsumeFromWhere.CONSUME_FROM_LAST_OFFSET,
        subscription_data_set=subscriptions,
    )


def beat_groups(world: Harness, peer: int, *consumers: ConsumerData, producers: tuple[str, ...] = ()) -> None:
    producer_data = tuple(ProducerData(group_name=name) for name in producers)
    data = HeartbeatData(client_id=f"c{peer}", consumer_data_set=consumers, producer_data_set=producer_data)
    assert world.ask(RequestCode.HEART_BEAT, body=encode_body(data), peer=peer).code == OK
