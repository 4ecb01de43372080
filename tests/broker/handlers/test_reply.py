"""Replies are pushed to the requester and stored."""

from __future__ import annotations

from refmq.model.broker_config import BrokerConfig
from refmq.protocol.codes import RequestCode, ResponseCode
from refmq.protocol.headers.send import encode_send_header
from tests.broker.harness import Harness, send_header
from tests.broker.heartbeats import beat_group

OK = ResponseCode.SUCCESS


def test_a_reply_is_pushed_to_who_asked_and_stored() -> None:
    world = Harness()
    beat_group(world, 5, client="asker")
    world.peer(5).received.clear()
    header = send_header("DefaultCluster_REPLY_TOPIC", 0, {"REPLY_TO_CLIENT": "asker", "CORRELATION_ID": "1"})
    fields = encode_send_header(header, RequestCode.SEND_REPLY_MESSAGE_V2)
    answer = world.ask(RequestCode.SEND_REPLY_MESSAGE_V2, fields=fields, body=b"answer")
    assert answer.code == OK
    (pushed,) = world.peer(5).received
    assert (pushed.code, pushed.body) == (RequestCode.PUSH_REPLY_MESSAGE_TO_CLIENT, b"answer")
    assert len(world.records("DefaultCluster_REPLY_TOPIC")) == 1
    nobody = send_header("DefaultCluster_REPLY_TOPIC", 0, {"REPLY_TO_CLIENT": "nobody"})
    lost = world.ask(
        RequestCode.SEND_REPLY_MESSAGE_V2, fields=encode_send_header(nobody, RequestCode.SEND_REPLY_MESSAGE_V2)
    )
    assert lost.remark == "push reply message fail, channel of <nobody> not found."


def test_a_reply_that_nobody_gets_is_stored_and_says_where() -> None:
    world = Harness()
    header = send_header("DefaultCluster_REPLY_TOPIC", 0, {"REPLY_TO_CLIENT": "nobody"})
    fields = {**{k: str(v) for k, v in (("a", "p"), ("b", header.topic), ("e", 0), ("f", 0), ("g", 0), ("h", 0))}}
    fields["i"] = header.properties or ""
    stored = world.ask(RequestCode.SEND_REPLY_MESSAGE_V2, fields=fields, body=b"r")
    assert (stored.code, stored.fields["queueOffset"]) == (ResponseCode.SYSTEM_ERROR, "0")
    silent = Harness(BrokerConfig(store_reply_message_enable=False))
    lost = silent.ask(RequestCode.SEND_REPLY_MESSAGE_V2, fields=fields, body=b"r")
    assert (lost.code, "msgId" in lost.fields) == (ResponseCode.SYSTEM_ERROR, False)
