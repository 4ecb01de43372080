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
from refmq.protocol.bodies.config import TopicConfig
from refmq.protocol.codes import ResponseCode
from refmq.protocol.headers.send import decode_send_header
from refmq.protocol.record import decode_properties, decode_record
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
