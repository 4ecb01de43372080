"""Connections are listed, and requests are relayed to the member they name."""

from __future__ import annotations

from refmq.protocol.bodies.codec import decode_body
from refmq.protocol.bodies.connections import ConsumerConnection, GroupList, ProducerConnection
from refmq.protocol.codes import RequestCode, ResponseCode
from tests.broker.harness import Harness
from tests.broker.heartbeats import beat_group

OK = ResponseCode.SUCCESS


def test_connections_are_listed() -> None:
    world = Harness()
    beat_group(world, 1)
    answer = world.ask(RequestCode.GET_CONSUMER_CONNECTION_LIST, fields={"consumerGroup": "g"})
    consumers = decode_body(ConsumerConnection, answer.body)
    assert [(c.client_id, c.client_addr, c.version) for c in consumers.connection_set] == [
        ("c1", "127.0.0.1:40001", 409)
    ]
    assert list(consumers.subscription_table) == ["T"]
    answer = world.ask(RequestCode.GET_PRODUCER_CONNECTION_LIST, fields={"producerGroup": "producers"})
    assert len(decode_body(ProducerConnection, answer.body).connection_set) == 1
    offline = world.ask(RequestCode.GET_CONSUMER_CONNECTION_LIST, fields={"consumerGroup": "h"})
    assert offline.code == ResponseCode.CONSUMER_NOT_ONLINE
    who = world.ask(RequestCode.QUERY_TOPIC_CONSUME_BY_WHO, fields={"topic": "T"})
    assert decode_body(GroupList, who.body).group_list == ("g",)


def test_a_request_is_forwarded_to_the_member_it_names() -> None:
    world = Harness()
    beat_group(world, 1)
    beat_group(world, 2)
    world.peer(2).received.clear()
    fields = {"consumerGroup": "g", "clientId": "c2", "jstackEnable": "false"}
    assert world.ask(RequestCode.GET_CONSUMER_RUNNING_INFO, fields=fields).code == OK
    assert [c.code for c in world.peer(2).received] == [RequestCode.GET_CONSUMER_RUNNING_INFO]
    nobody = world.ask(RequestCode.GET_CONSUMER_RUNNING_INFO, fields={**fields, "clientId": "c9"})
    assert nobody.remark == "The Consumer <g> <c9> not online"
    beat_group(world, 3, client="old", version=61)
    old = world.ask(RequestCode.GET_CONSUMER_RUNNING_INFO, fields={**fields, "clientId": "old"})
    assert "too low to finish" in (old.remark or "")
