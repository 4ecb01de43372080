"""Messages by id and by key, and the dump of a queue."""

from __future__ import annotations

from refmq.protocol.bodies.codec import decode_body
from refmq.protocol.bodies.stats import (
    ConsumeQueueDump,
)
from refmq.protocol.codes import RequestCode, ResponseCode
from refmq.protocol.record import decode_records, parse_message_id
from tests.broker.harness import START_MS, Harness
from tests.broker.heartbeats import beat_group

OK = ResponseCode.SUCCESS


def test_messages_are_found_by_id_and_by_key() -> None:
    world = Harness()
    answer = world.send("T", b"x", properties={"KEYS": "k1 k2", "UNIQ_KEY": "u"})
    _, offset = parse_message_id(answer.fields["msgId"])
    found = world.ask(RequestCode.VIEW_MESSAGE_BY_ID, fields={"offset": str(offset)})
    assert [r.body for r in decode_records(found.body)] == [b"x"]
    missing = world.ask(RequestCode.VIEW_MESSAGE_BY_ID, fields={"offset": "99999"})
    assert missing.remark == "can not find message by the offset, 99999"
    span = {"topic": "T", "maxNum": "10", "beginTimestamp": "0", "endTimestamp": str(START_MS + 1)}
    for key in ("k1", "k2", "u"):
        assert world.ask(RequestCode.QUERY_MESSAGE, fields={**span, "key": key}).code == OK
    assert world.ask(RequestCode.QUERY_MESSAGE, fields={**span, "key": "k3"}).code == ResponseCode.QUERY_NOT_FOUND


def test_a_queue_is_dumped() -> None:
    world = Harness()
    world.send()
    fields = {"topic": "T", "queueId": "0", "index": "0", "count": "10"}
    dump = decode_body(ConsumeQueueDump, world.ask(RequestCode.QUERY_CONSUME_QUEUE, fields=fields).body)
    assert [(entry.physic_offset, entry.eval) for entry in dump.queue_data] == [(0, False)]
    assert dump.filter_data is None
    offline = {**fields, "consumerGroup": "g"}
    dump = decode_body(ConsumeQueueDump, world.ask(RequestCode.QUERY_CONSUME_QUEUE, fields=offline).body)
    assert dump.filter_data == "g@T is not online!"
    beat_group(world)
    dump = decode_body(ConsumeQueueDump, world.ask(RequestCode.QUERY_CONSUME_QUEUE, fields=offline).body)
    assert (dump.filter_data, dump.subscription_data is None) == ("null", False)
    assert world.ask(RequestCode.QUERY_CONSUME_QUEUE, fields={**fields, "queueId": "3"}).remark == "3@T is not exist!"


def test_a_query_brings_as_many_messages_as_it_asks_for() -> None:
    world = Harness()
    for _ in range(3):
        world.send(properties={"KEYS": "k"})
    span = {"topic": "T", "key": "k", "beginTimestamp": "0", "endTimestamp": str(START_MS + 1)}
    found = world.ask(RequestCode.QUERY_MESSAGE, fields={**span, "maxNum": "2"})
    assert len(list(decode_records(found.body))) == 2
    unique = world.ask(RequestCode.QUERY_MESSAGE, fields={**span, "maxNum": "2", "_UNIQUE_KEY_QUERY": "true"})
    assert len(list(decode_records(unique.body))) == 3


def test_a_query_that_finds_nothing_says_nothing_of_the_index() -> None:
    world = Harness()
    world.send(properties={"KEYS": "k"})
    span = {"topic": "T", "key": "other", "maxNum": "2", "beginTimestamp": "0", "endTimestamp": str(START_MS + 1)}
    missing = world.ask(RequestCode.QUERY_MESSAGE, fields=span)
    assert set(missing.fields.values()) == {"0"}
