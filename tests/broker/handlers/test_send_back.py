"""Messages sent back: retried later, or moved to the dead letters."""

from __future__ import annotations

import pytest

from refmq.protocol.codes import RequestCode, ResponseCode
from refmq.protocol.headers.admin import CreateTopicRequest
from refmq.protocol.headers.messages import ConsumerSendMsgBackRequest
from refmq.protocol.record import decode_properties
from refmq.protocol.versions import V3_4_9
from tests.broker.harness import Harness

OK = ResponseCode.SUCCESS


def send_back(world: Harness, offset: int, level: int = 0, **changes: object) -> int:
    header = ConsumerSendMsgBackRequest(offset=offset, group="g", delay_level=level, **changes)  # type: ignore[arg-type]  # mixed
    return world.ask(RequestCode.CONSUMER_SEND_MSG_BACK, header).code


def test_a_message_that_was_sent_back_waits_and_carries_where_it_came_from() -> None:
    world = Harness()
    world.send("T", b"x", properties={"TAGS": "a"})
    (original,) = world.records("T")
    assert send_back(world, original.physical_offset) == OK
    (waiting,) = world.records("SCHEDULE_TOPIC_XXXX", 2)
    properties = decode_properties(waiting.properties)
    assert properties["RETRY_TOPIC"] == "T"
    assert properties["ORIGIN_MESSAGE_ID"] == original.message_id
    assert (properties["REAL_TOPIC"], properties["WAIT"], waiting.reconsume_times) == ("%RETRY%g", "false", 1)


def test_a_message_that_failed_too_often_is_a_dead_letter() -> None:
    world = Harness()
    world.send("T", b"x", reconsume_times=16)
    (original,) = world.records("T")
    assert send_back(world, original.physical_offset) == OK
    assert send_back(world, original.physical_offset, level=-1) == OK
    assert len(world.records("%DLQ%g")) == 2
    assert send_back(world, 99_999) == ResponseCode.SYSTEM_ERROR


def send_back_as(world: Harness, offset: int, level: int = 0, retries: int | None = None, version: int = 409) -> int:
    header = ConsumerSendMsgBackRequest(
        offset=offset, group="consumers", delay_level=level, max_reconsume_times=retries
    )
    return world.ask(RequestCode.CONSUMER_SEND_MSG_BACK, header, version=version).code


def test_each_retry_waits_one_level_longer_and_remembers_the_first_message() -> None:
    world = Harness()
    world.send(properties={"RETRY_TOPIC": "First", "ORIGIN_MESSAGE_ID": "first"}, reconsume_times=4)
    (original,) = world.records()
    assert send_back_as(world, original.physical_offset) == OK
    (waiting,) = world.records("SCHEDULE_TOPIC_XXXX", 3 + 4 - 1)
    properties = decode_properties(waiting.properties)
    assert (properties["RETRY_TOPIC"], properties["ORIGIN_MESSAGE_ID"]) == ("First", "first")


def test_a_retry_topic_that_may_not_be_written_refuses() -> None:
    world = Harness()
    world.send()
    header = CreateTopicRequest(
        topic="%RETRY%consumers", read_queue_nums=1, write_queue_nums=1, perm=4, topic_filter_type="SINGLE_TAG"
    )
    assert world.ask(RequestCode.UPDATE_AND_CREATE_TOPIC, header).code == OK
    (original,) = world.records()
    assert send_back_as(world, original.physical_offset) == ResponseCode.NO_PERMISSION


@pytest.mark.parametrize(("version", "dead"), [(V3_4_9, 1), (V3_4_9 - 1, 0)])
def test_only_clients_that_know_the_field_say_how_often_to_retry(version: int, dead: int) -> None:
    world = Harness()
    world.send(reconsume_times=3)
    (original,) = world.records()
    assert send_back_as(world, original.physical_offset, retries=3, version=version) == OK
    assert len(world.records("%DLQ%consumers")) == dead
    fields = {"b": "%RETRY%consumers", "e": "0", "f": "0", "g": "0", "h": "0", "j": "3", "l": "3"}
    assert world.ask(RequestCode.SEND_MESSAGE_V2, fields=fields, body=b"y", version=version).code == OK
    assert len(world.records("%DLQ%consumers")) == 2 * dead
