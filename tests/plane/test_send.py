"""Sends: every check on a snapshot, in upstream's order, and the message that goes to the store."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from refmq.model.broker_config import PERM_READ, BrokerConfig
from refmq.model.ids import TimestampMs
from refmq.plane.effects import HandOver
from refmq.plane.needs import NeedsGroup, NeedsOwnTopic, NeedsTopic, Refusal, SendCreation
from refmq.plane.send import SendAllowed, SendCheck, check_send
from refmq.plane.snapshot import Snapshot
from refmq.protocol.bodies.codec import encode_body
from refmq.protocol.bodies.config import SubscriptionGroupConfig, TopicConfig
from refmq.protocol.codes import RequestCode, ResponseCode
from refmq.protocol.headers.admin import CreateTopicRequest
from refmq.protocol.headers.send import decode_send_header, encode_send_header
from refmq.protocol.record import (
    TRANSACTION_PREPARED,
    BatchedMessage,
    decode_properties,
    decode_record,
    encode_batch,
)
from refmq.store.values import PutStatus
from tests.broker.harness import Harness, send_header
from tests.plane.runner import START_MS, running, send_command, snapshot

ORDERED = TopicConfig(topic_name="O", read_queue_nums=1, write_queue_nums=1, order=True)


NO_QUEUES = TopicConfig(topic_name="N", read_queue_nums=1, write_queue_nums=0)


RETRY = TopicConfig(topic_name="%RETRY%consumers", read_queue_nums=1, write_queue_nums=1)


STRANGE_RETRY = TopicConfig(topic_name="%RETRY%strangers", read_queue_nums=1, write_queue_nums=1)


DEAD = TopicConfig(topic_name="%DLQ%consumers", read_queue_nums=1, write_queue_nums=1)


def tables(config: BrokerConfig | None = None, *more: TopicConfig) -> Snapshot:
    return snapshot(config, topics=(ORDERED, NO_QUEUES, RETRY, STRANGE_RETRY, *more))


def checked(tables: Snapshot, now_ms: int = START_MS, **changes: Any) -> SendCheck:
    command = send_command(**changes)
    frame = running().frame(command, draw=6)
    return check_send(tables, frame, decode_send_header(command), TimestampMs(now_ms))


def test_a_send_to_a_known_topic_goes_ahead() -> None:
    assert checked(tables(), queue_id=2) == SendAllowed(tables().topics["T"], "T", 2)


def test_a_send_that_names_no_queue_gets_the_drawn_one() -> None:
    allowed = checked(tables(), queue_id=-1)
    assert isinstance(allowed, SendAllowed) and allowed.queue_id == 6 % 4


REFUSED: dict[str, tuple[BrokerConfig | None, dict[str, Any], ResponseCode]] = {
    "not open yet": (BrokerConfig(start_accept_send_request_time_stamp=START_MS + 1), {}, ResponseCode.SYSTEM_ERROR),
    "read only": (BrokerConfig(broker_permission=PERM_READ), {"topic": "O"}, ResponseCode.NO_PERMISSION),
    "no name": (None, {"topic": "a b"}, ResponseCode.SYSTEM_ERROR),
    "not for clients": (None, {"topic": "SCHEDULE_TOPIC_XXXX"}, ResponseCode.NO_PERMISSION),
    "no such queue": (None, {"queue_id": 4}, ResponseCode.SYSTEM_ERROR),
    "no queue at all": (None, {"topic": "N", "queue_id": -1}, ResponseCode.SYSTEM_ERROR),
    "no transactions": (
        BrokerConfig(reject_transaction_message=True),
        {"properties": {"TRAN_MSG": "true"}},
        ResponseCode.NO_PERMISSION,
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_a_check_that_fails_answers(case: str) -> None:
    config, changes, code = REFUSED[case]
    refusal = checked(tables(config), **changes)
    assert isinstance(refusal, Refusal) and refusal.code == code


def test_the_first_failure_answers() -> None:
    closed = BrokerConfig(start_accept_send_request_time_stamp=START_MS + 1)
    refusal = checked(replace(tables(closed), opens_at="noon"), topic="a b")
    assert refusal == Refusal(ResponseCode.SYSTEM_ERROR, "broker unable to service, until noon")


def test_an_unknown_topic_is_needed_and_says_how_it_may_come_to_be() -> None:
    need = checked(tables(), topic="U", unit_mode=True)
    assert isinstance(need, NeedsTopic)
    assert need.creation == SendCreation("U", "TBW102", 4, unit_mode=True)
    assert need.refusal.code == ResponseCode.TOPIC_NOT_EXIST


def test_a_retry_of_an_unknown_group_needs_the_group() -> None:
    need = checked(tables(), topic="%RETRY%strangers")
    assert isinstance(need, NeedsGroup) and need.group == "strangers"


def test_a_message_that_was_retried_often_enough_goes_to_the_dead_letters() -> None:
    often: dict[str, Any] = {"topic": "%RETRY%consumers", "reconsume_times": 16}
    need = checked(tables(), **often)
    assert isinstance(need, NeedsOwnTopic) and need.topic == "%DLQ%consumers"
    allowed = checked(tables(None, DEAD), **often)
    assert isinstance(allowed, SendAllowed) and (allowed.target, allowed.queue_id) == ("%DLQ%consumers", 0)
    once_more = checked(tables(None, DEAD), **{**often, "reconsume_times": 15})
    assert isinstance(once_more, SendAllowed) and once_more.target == "%RETRY%consumers"
    by_client = checked(tables(None, DEAD), **{**often, "reconsume_times": 2, "max_reconsume_times": 2})
    assert isinstance(by_client, SendAllowed) and by_client.target == "%DLQ%consumers"


def test_a_need_is_handed_over_with_its_frame_and_nothing_is_written() -> None:
    runner = running()
    before = runner.store.log_max
    frame = runner.send("U")
    (given,) = runner.done
    assert isinstance(given, HandOver) and given.frame is frame and isinstance(given.need, NeedsTopic)
    assert runner.store.log_max == before


def test_a_dead_letter_is_not_delayed_once_more() -> None:
    runner = running(topics=(RETRY, DEAD))
    runner.send("%RETRY%consumers", properties={"DELAY": "3"}, reconsume_times=16)
    runner.settle()
    assert runner.store.max_offset("%DLQ%consumers", 0) == 1


def test_a_half_message_hides_its_real_place_and_tells_of_it() -> None:
    runner = running()
    frame = runner.send(queue_id=2, properties={"TRAN_MSG": "true", "PGROUP": "g", "DELAY": "3"})
    assert runner.codes(frame) == [ResponseCode.SUCCESS]
    runner.settle()
    (data,) = runner.store.get_message(
        "RMQ_SYS_TRANS_HALF_TOPIC", 0, type(runner.store.max_offset("T", 0))(0), 8
    ).records
    properties = decode_properties(decode_record(data).properties)
    assert (properties["REAL_TOPIC"], properties["REAL_QID"]) == ("T", "2")
    assert "DELAY" not in properties
    assert [(event.action, event.actor, event.subject, event.queue_id) for event in runner.events][1:] == [
        ("SendHalf", "g", "T", 2)
    ]
    assert runner.store.max_offset("T", 2) == 0


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
    assert world.registered == 1


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


OK = ResponseCode.SUCCESS


def test_a_queue_may_be_written_while_it_can_be_read() -> None:
    world = Harness()
    header = CreateTopicRequest(
        topic="T", read_queue_nums=4, write_queue_nums=2, perm=6, topic_filter_type="SINGLE_TAG"
    )
    assert world.ask(RequestCode.UPDATE_AND_CREATE_TOPIC, header).code == OK
    assert world.send(queue=3).code == OK
    assert world.send(queue=4).code == ResponseCode.SYSTEM_ERROR


def test_a_prepared_message_is_never_delayed() -> None:
    world = Harness()
    half = {"TRAN_MSG": "true", "DELAY": "3"}
    assert world.send(properties=half, sys_flag=TRANSACTION_PREPARED).code == OK
    assert world.send(properties=half).code == OK
    assert world.send(properties={"DELAY": "3"}, sys_flag=TRANSACTION_PREPARED).code == OK
    assert world.records("SCHEDULE_TOPIC_XXXX", 2) == []
    assert len(world.records("RMQ_SYS_TRANS_HALF_TOPIC")) == 2
