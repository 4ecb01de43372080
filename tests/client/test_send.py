"""One attempt to send: requests and answers."""

from __future__ import annotations

import pytest

from refmq.client.message import Message, SendStatus
from refmq.client.send import SendSettings, plan_batch, plan_send, send_request, sent
from refmq.errors import InvalidMessage, WireError
from refmq.model.ids import MessageQueue
from refmq.protocol.codes import RequestCode
from refmq.protocol.command import request, response
from refmq.protocol.headers.send import decode_send_header, encode_send_header
from refmq.protocol.record import decode_batch, decode_properties, parse_properties

SETTINGS = SendSettings(group="g")
QUEUE = MessageQueue("T", "b", 3)
ID = "0A000001" + "0" * 24


def test_a_plain_message_is_sent_with_one_letter_names() -> None:
    plan = plan_send(SETTINGS, Message("T", b"x", tag="A", flag=9), ID)
    command = send_request(SETTINGS, plan, QUEUE, 1234)
    assert command.code == RequestCode.SEND_MESSAGE_V2
    header = decode_send_header(command)
    assert (header.topic, header.queue_id, header.producer_group, header.flag) == ("T", 3, "g", 9)
    assert (header.born_timestamp, header.broker_name, header.sys_flag) == (1234, "b", 0)
    assert parse_properties(header.properties or "") == {"TAGS": "A", "WAIT": "true", "UNIQ_KEY": ID}
    assert send_request(SETTINGS, plan, QUEUE, 0, is_oneway=True).is_oneway


def test_the_fields_are_those_of_the_header_in_its_order() -> None:
    settings = SendSettings(group="g", unit_mode=True)
    for message, extra in ((Message("T", b"x"), None), (Message("%RETRY%g", b"x"), {"MAX_RECONSUME_TIMES": "3"})):
        command = send_request(settings, plan_send(settings, message, ID, extra), QUEUE, 5)
        assert list(encode_send_header(decode_send_header(command)).items()) == list(command.fields.items())


def test_a_long_body_is_compressed_and_says_so() -> None:
    plan = plan_send(SETTINGS, Message("T", b"a" * 4096), ID)
    assert plan.sys_flag == 0x301
    assert len(plan.body) < 100
    assert plan_send(SETTINGS, Message("T", b"a" * 4095), ID).sys_flag == 0


def test_a_half_message_is_prepared_and_not_delayed() -> None:
    plan = plan_send(SETTINGS, Message("T", b"x", delay_level=3), ID, {"TRAN_MSG": "true", "PGROUP": "g"})
    assert plan.sys_flag == 4
    assert "DELAY" not in parse_properties(plan.properties)
    assert plan.message_type == 1


def test_a_retry_has_its_count_in_the_header_in_every_attempt() -> None:
    extra = {"RECONSUME_TIME": "4", "MAX_RECONSUME_TIMES": "16"}
    plan = plan_send(SETTINGS, Message("%RETRY%g", b"x"), ID, extra)
    for _ in range(2):  # upstream forgets it in the second one
        header = decode_send_header(send_request(SETTINGS, plan, QUEUE, 0))
        assert (header.reconsume_times, header.max_reconsume_times) == (4, 16)


def test_a_reply_has_a_code_of_its_own() -> None:
    plan = plan_send(SETTINGS, Message("c_REPLY_TOPIC", b"x"), ID, {"MSG_TYPE": "reply"})
    assert plan.code == RequestCode.SEND_REPLY_MESSAGE_V2


def test_a_namespace_is_put_in_front_and_noted() -> None:
    settings = SendSettings(group="ns%g", namespace="ns")
    plan = plan_send(settings, Message("T", b"x"), ID)
    assert plan.topic == "ns%T"
    assert parse_properties(plan.properties)["INSTANCE_ID"] == "ns"


def test_a_batch_is_one_body_with_an_id_for_each_message() -> None:
    plan = plan_batch(SETTINGS, [Message("T", b"1", tag="A"), Message("T", b"2")], ["I1", "I2"])
    parts = decode_batch(plan.body)
    assert [part.body for part in parts] == [b"1", b"2"]
    assert [decode_properties(part.properties)["UNIQ_KEY"] for part in parts] == ["I1", "I2"]
    assert (plan.code, plan.batch, plan.msg_id) == (RequestCode.SEND_BATCH_MESSAGE, True, "I1,I2")


@pytest.mark.parametrize(
    ("messages", "said"),
    [
        ([], "at least one"),
        ([Message("T", b"1"), Message("U", b"2")], "one topic"),
        ([Message("T", b"1", delay_level=1)], "Delayed"),
        ([Message("%RETRY%g", b"1")], "retries"),
        ([Message("T", b"1" * 4_194_304)], "at most 4194304"),
    ],
)
def test_what_does_not_go_together_is_no_batch(messages: list[Message], said: str) -> None:
    with pytest.raises(InvalidMessage, match=said):
        plan_batch(SETTINGS, messages, [ID for _ in messages])


def test_an_answer_says_where_the_message_is() -> None:
    plan = plan_send(SETTINGS, Message("T", b"x"), ID)
    fields = {"msgId": "M", "queueId": "2", "queueOffset": "7", "MSG_REGION": "R", "TRACE_ON": "false"}
    result = sent(response(request(310), 0, fields), plan, QUEUE, None)
    assert result is not None
    assert (result.status, result.msg_id, result.offset_msg_id) == (SendStatus.SEND_OK, ID, "M")
    assert (result.queue, result.queue_offset) == (MessageQueue("T", "b", 2), 7)
    assert (result.region, result.trace_on) == ("R", False)
    for code, status in ((10, "FLUSH_DISK_TIMEOUT"), (11, "SLAVE_NOT_AVAILABLE"), (12, "FLUSH_SLAVE_TIMEOUT")):
        told = sent(response(request(310), code, fields), plan, QUEUE, None)
        assert told is not None
        assert told.status == status
    assert sent(response(request(310), 1), plan, QUEUE, None) is None
    with pytest.raises(WireError):
        sent(response(request(310), 0, {}), plan, QUEUE, None)
