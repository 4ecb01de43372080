"""Sends: every check answers as upstream does, and what is stored is what was sent."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from refmq.model.broker_config import BrokerConfig
from refmq.protocol.bodies.codec import encode_body
from refmq.protocol.bodies.config import SubscriptionGroupConfig
from refmq.protocol.codes import RequestCode, ResponseCode
from refmq.protocol.headers.send import encode_send_header
from refmq.protocol.record import BatchedMessage, decode_properties, encode_batch
from refmq.store.values import PutStatus
from tests.broker.harness import START_MS, Harness, send_header


def test_a_message_is_stored_with_everything_that_was_sent() -> None:
    world = Harness()
    answer = world.send("T", b"body", queue=2, properties={"TAGS": "a", "WAIT": "true"}, flag=7, reconsume_times=1)
    assert answer.code == ResponseCode.SUCCESS
    assert answer.fields["queueId"] == "2"
    assert answer.fields["queueOffset"] == "0"
    assert (answer.fields["MSG_REGION"], answer.fields["TRACE_ON"]) == ("DefaultRegion", "true")
    (record,) = world.records("T", 2)
    assert (record.body, record.flag, record.reconsume_times) == (b"body", 7, 1)
    assert decode_properties(record.properties) == {"TAGS": "a", "CLUSTER": "DefaultCluster"}
    assert record.born_host.port == 40_001
    assert answer.fields["msgId"] == record.message_id


def test_a_send_creates_its_topic_durably_before_it_is_answered() -> None:
    world = Harness()
    world.send("Orders")
    assert b"Orders" in world.saved["topics.json"]
    assert world.registered == [None]


@pytest.mark.parametrize(
    ("topic", "changes", "code", "remark"),
    [
        ("", {}, 1, "blank"),
        ("a.b", {}, 1, "illegal characters"),
        ("a" * 128, {}, 1, "longer than topic max length"),
        ("SCHEDULE_TOPIC_XXXX", {}, 16, "Sending message to topic[SCHEDULE_TOPIC_XXXX] is forbidden."),
        ("RMQ_SYS_TRANS_HALF_TOPIC", {}, 16, "is forbidden."),
        ("T", {"default_topic": "Unknown"}, 17, "topic[T] not exist, apply first please!\nSee http"),
        ("T", {"queue_id": 4}, 1, "request queueId[4] is illegal, TopicConfig [topicName=T, readQueueNums=4"),
    ],
)
def test_the_first_failed_check_answers(topic: str, changes: dict[str, Any], code: int, remark: str) -> None:
    world = Harness()
    answer = world.send(topic, **changes)
    assert answer.code == code
    assert answer.remark is not None
    assert remark in answer.remark
    assert answer.fields["MSG_REGION"] == "DefaultRegion"  # in every answer: a Java client relies on it
    assert not [queue for queue in world.store.queues() if queue.topic == topic]


def test_a_negative_queue_is_chosen_by_the_broker() -> None:
    world = Harness()
    assert world.send("T", queue=-1).fields["queueId"] == "3"  # 7 modulo 4


def test_before_its_time_a_broker_takes_nothing() -> None:
    world = Harness(BrokerConfig(start_accept_send_request_time_stamp=START_MS + 1))
    answer = world.send()
    assert answer.code == ResponseCode.SYSTEM_ERROR
    assert answer.remark == "broker unable to service, until 2020-01-01 00:00:00,001"
    world.now += 1
    assert world.send().code == ResponseCode.SUCCESS


@pytest.mark.parametrize(
    ("status", "code", "words"),
    [
        (PutStatus.CREATE_MAPEDFILE_FAILED, 1, "create mapped file failed"),
        (PutStatus.MESSAGE_ILLEGAL, 13, "msg body length limit 4194304B"),
        (PutStatus.PROPERTIES_SIZE_EXCEEDED, 13, "msg properties length limit 32KB"),
        (PutStatus.SERVICE_NOT_AVAILABLE, 14, "[CL:  0.00 CQ:  0.00 INDEX:  0.00]"),
        (PutStatus.OS_PAGECACHE_BUSY, 1, "[PC_SYNCHRONIZED]broker busy"),
        (PutStatus.UNKNOWN_ERROR, 1, "UNKNOWN_ERROR"),
    ],
)
def test_what_the_store_says_becomes_the_answer(status: PutStatus, code: int, words: str) -> None:
    world = Harness()
    world.send()
    world.refuse_puts = status
    answer = world.send()
    assert answer.code == code
    assert words in (answer.remark or "")


def test_a_body_that_is_too_long_is_refused_and_nothing_is_stored() -> None:
    world = Harness()
    answer = world.send("T", bytes(4 * 1024 * 1024 + 1))
    assert answer.code == ResponseCode.MESSAGE_ILLEGAL
    assert world.records("T") == []


def test_a_delayed_message_waits_in_the_delay_topic() -> None:
    world = Harness()
    answer = world.send("T", queue=1, properties={"DELAY": "3"})
    assert answer.fields["queueId"] == "1"  # what was asked for, although it lies elsewhere
    (record,) = world.records("SCHEDULE_TOPIC_XXXX", 2)
    properties = decode_properties(record.properties)
    assert (properties["REAL_TOPIC"], properties["REAL_QID"], properties["DELAY"]) == ("T", "1", "3")
    assert world.records("T", 1) == []


def test_a_batch_is_one_by_its_header_and_stored_message_by_message() -> None:
    world = Harness()
    body = encode_batch((BatchedMessage(flag=0, body=b"a", properties=b""), BatchedMessage(1, b"b", b"TAGS\x01x")))
    header = replace(send_header("T", 0, {}), batch=True)
    answer = world.ask(RequestCode.SEND_MESSAGE_V2, fields=encode_send_header(header), body=body)
    assert answer.code == ResponseCode.SUCCESS
    assert len(answer.fields["msgId"].split(",")) == 2
    first, second = world.records("T")
    assert (first.body, second.body, second.flag) == (b"a", b"b", 1)
    assert decode_properties(second.properties) == {"TAGS": "x", "CLUSTER": "DefaultCluster"}


def test_the_long_header_says_the_same_as_the_short_one() -> None:
    world = Harness()
    header = send_header("T", 1, {"TAGS": "a"})
    answer = world.ask(RequestCode.SEND_MESSAGE, fields=encode_send_header(header, RequestCode.SEND_MESSAGE), body=b"x")
    assert answer.code == ResponseCode.SUCCESS
    assert len(world.records("T", 1)) == 1


@pytest.mark.parametrize(
    ("reconsumed", "limit", "dead"), [(15, None, False), (16, None, True), (2, 2, True), (1, 2, False)]
)
def test_a_retry_beyond_its_limit_is_a_dead_letter_at_once(reconsumed: int, limit: int | None, dead: bool) -> None:
    world = Harness()
    properties = {"DELAY": "3"}
    answer = world.send("%RETRY%g", properties=properties, reconsume_times=reconsumed, max_reconsume_times=limit)
    assert answer.code == ResponseCode.SUCCESS
    assert len(world.records("%DLQ%g")) == int(dead)
    assert len(world.records("SCHEDULE_TOPIC_XXXX", 2)) == int(not dead)


def test_a_retry_topic_of_a_group_that_may_not_be_created_is_refused() -> None:
    world = Harness(BrokerConfig(auto_create_subscription_group=False))
    answer = world.send("%RETRY%g")
    assert answer.code == ResponseCode.SUBSCRIPTION_GROUP_NOT_EXIST
    group = encode_body(SubscriptionGroupConfig(group_name="g"))
    assert world.ask(RequestCode.UPDATE_AND_CREATE_SUBSCRIPTIONGROUP, body=group).code == ResponseCode.SUCCESS
    assert world.send("%RETRY%g").code == ResponseCode.SUCCESS


def test_half_messages_can_be_forbidden() -> None:
    world = Harness(BrokerConfig(reject_transaction_message=True))
    answer = world.send(properties={"TRAN_MSG": "true"})
    assert answer.code == ResponseCode.NO_PERMISSION
    assert answer.remark == "the broker[127.0.0.1] sending transaction message is forbidden"


def test_an_unknown_request_is_answered_and_harms_nothing() -> None:
    world = Harness()
    answer = world.ask(RequestCode.POP_MESSAGE)
    assert answer.code == ResponseCode.REQUEST_CODE_NOT_SUPPORTED
    assert answer.remark == f" request type {int(RequestCode.POP_MESSAGE)} not supported"


@pytest.mark.parametrize("level", ["--5", "-1", "", "1.5", "٣", "9" * 30, "x"])
def test_a_delay_level_that_is_none_delays_nothing(level: str) -> None:
    world = Harness()
    assert world.send(properties={"DELAY": level}).code == ResponseCode.SUCCESS
    assert len(world.records("T")) == 1
