"""Pulls: checks, filters, offsets, and pulls that wait."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from refmq.model.broker_config import BrokerConfig
from refmq.model.ids import QueueOffset
from refmq.plane import hold
from refmq.plane.inputs import Closed
from refmq.protocol.bodies.codec import encode_body
from refmq.protocol.bodies.config import SubscriptionGroupConfig
from refmq.protocol.bodies.heartbeat import (
    ConsumeFromWhere,
    ConsumerData,
    ConsumeType,
    HeartbeatData,
    MessageModel,
    SubscriptionData,
)
from refmq.protocol.codes import RequestCode, ResponseCode
from refmq.protocol.headers.pull import PullSysFlag
from refmq.protocol.record import decode_properties, decode_records, string_hash
from tests.broker.harness import Harness

SUSPEND = PullSysFlag.SUBSCRIPTION | PullSysFlag.SUSPEND


def beat(world: Harness, *subscriptions: SubscriptionData, peer: int = 1, group: str = "consumers") -> None:
    consumer = ConsumerData(
        group_name=group,
        consume_type=ConsumeType.CONSUME_PASSIVELY,
        message_model=MessageModel.CLUSTERING,
        consume_from_where=ConsumeFromWhere.CONSUME_FROM_LAST_OFFSET,
        subscription_data_set=subscriptions,
    )
    body = encode_body(HeartbeatData(client_id=f"c{peer}", consumer_data_set=(consumer,)))
    assert world.ask(RequestCode.HEART_BEAT, body=body, peer=peer).code == ResponseCode.SUCCESS


def bodies(answer: Any) -> list[bytes]:
    return [record.body for record in decode_records(answer.body)]


def test_messages_come_with_where_to_go_on() -> None:
    world = Harness()
    for n in range(3):
        world.send("T", str(n).encode())
    answer = world.pull(offset=1)
    assert answer is not None
    assert (answer.code, answer.remark) == (ResponseCode.SUCCESS, "FOUND")
    assert bodies(answer) == [b"1", b"2"]
    fields = answer.fields
    assert (fields["nextBeginOffset"], fields["minOffset"], fields["maxOffset"]) == ("3", "0", "3")
    assert fields["suggestWhichBrokerId"] == "0"


@pytest.mark.parametrize(
    ("changes", "code", "remark"),
    [
        ({"topic": "Unknown"}, 17, "topic[Unknown] not exist, apply first please! "),
        ({"queue": 4}, 1, "queueId[4] is illegal, topic:[T] topicConfig.readQueueNums:[4] consumer:[/127.0.0.1:40001]"),
        ({"queue": -1}, 1, "queueId[-1] is illegal"),
        ({"sys_flag": 0}, 24, "the consumer's group info not exist"),
        ({"subscription": "||"}, 23, "parse the consumer's subscription failed"),
        ({"expression_type": "SQL92", "subscription": ""}, 23, "parse the consumer's subscription failed"),
        (
            {"expression_type": "SQL92", "subscription": "a = 1"},
            1,
            "does not support consumer to filter message by SQL92",
        ),
        ({"offset": 5}, 21, "OFFSET_OVERFLOW_BADLY"),
        ({"offset": 1}, 19, "OFFSET_OVERFLOW_ONE"),
        ({"queue": 1, "offset": 3}, 21, "NO_M"),
        ({"queue": 1}, 19, "NO_M"),
        ({"subscription": "other"}, 20, "NO_MATCHED_MESSAGE"),
    ],
)
def test_what_cannot_be_served_is_answered_with_its_reason(changes: dict[str, Any], code: int, remark: str) -> None:
    world = Harness()
    world.send("T", properties={"TAGS": "a"})
    answer = world.pull(**changes)
    assert answer is not None
    assert answer.code == code
    assert (answer.remark or "").find(remark) >= 0


def test_a_group_or_a_topic_that_may_not_read_is_refused() -> None:
    world = Harness(BrokerConfig(broker_permission=2))
    assert (answer := world.pull()) is not None
    assert answer.remark == "the broker[127.0.0.1] pulling message is forbidden"
    strict = Harness(BrokerConfig(auto_create_subscription_group=False))
    assert (answer := strict.pull()) is not None
    assert answer.code == ResponseCode.SUBSCRIPTION_GROUP_NOT_EXIST


def test_tags_are_filtered_by_the_codes_of_the_heartbeat_as_they_were_sent() -> None:
    world = Harness()
    for tag in ("a", "b"):
        world.send("T", tag.encode(), properties={"TAGS": tag})
    codes = (string_hash("b"),)
    beat(world, SubscriptionData(topic="T", sub_string="a", tags_set=("a",), code_set=codes, sub_version=3))
    answer = world.pull(sys_flag=0, sub_version=3)
    assert answer is not None
    assert bodies(answer) == [b"b"]
    later = world.pull(sys_flag=0, sub_version=4)
    assert later is not None
    assert later.code == ResponseCode.SUBSCRIPTION_NOT_LATEST
    other = world.pull(topic="TBW102", sys_flag=0)
    assert other is not None
    assert other.code == ResponseCode.SUBSCRIPTION_NOT_EXIST


def test_sql_filters_by_properties_registered_or_inline() -> None:
    world = Harness(BrokerConfig(enable_property_filter=True))
    for amount in ("3", "7", "many"):
        world.send("T", amount.encode(), properties={"amount": amount})
    sql = SubscriptionData(topic="T", sub_string="amount > 5", sub_version=1, expression_type="SQL92")
    beat(world, sql)
    registered = world.pull(sys_flag=0, sub_version=1)
    assert registered is not None
    assert bodies(registered) == [b"7"]
    inline = world.pull(expression_type="SQL92", subscription="amount < 5")
    assert inline is not None
    assert bodies(inline) == [b"3"]
    broken = world.pull(expression_type="SQL92", subscription="amount >")
    assert broken is not None
    assert broken.code == ResponseCode.SUBSCRIPTION_PARSE_FAILED
    newer = world.pull(sys_flag=0, sub_version=2)
    assert newer is not None
    assert newer.code == ResponseCode.SUBSCRIPTION_NOT_LATEST


def test_a_pull_commits_the_offset_it_carries_whatever_it_finds() -> None:
    world = Harness()
    world.send()
    world.pull(sys_flag=PullSysFlag.SUBSCRIPTION | PullSysFlag.COMMIT_OFFSET, commit_offset=9, offset=1)
    assert world.offsets.get("T", "consumers", 0) == 9


def test_a_pull_waits_five_minutes_at_most() -> None:
    world = Harness()
    world.send("T")
    assert world.pull(offset=1, sys_flag=SUSPEND, suspend_timeout_millis=1 << 40) is None
    world.now += 299_999
    world.tick()
    assert world.peer().received == []
    world.now += 5_000
    world.tick()
    assert [answer.code for answer in world.peer().received] == [ResponseCode.PULL_NOT_FOUND]


@pytest.mark.parametrize("flag", [PullSysFlag.SUBSCRIPTION, SUSPEND])
def test_a_pull_that_does_not_say_so_commits_nothing(flag: PullSysFlag) -> None:
    world = Harness()
    world.send("T")
    world.pull(sys_flag=flag, commit_offset=9, offset=1)
    assert world.offsets.get("T", "consumers", 0) is None


def test_an_offset_outside_of_its_queue_leaves_a_note() -> None:
    world = Harness()
    world.send()
    world.pull(offset=5)
    (record,) = world.records("OFFSET_MOVED_EVENT")
    assert b'"offsetNew":1' in record.body
    assert b'"offsetRequest":5' in record.body


def test_a_pull_waits_for_a_message_that_its_filter_wants() -> None:
    world = Harness()
    world.send("T", b"0")
    assert world.pull(offset=1, sys_flag=SUSPEND, subscription="b") is None
    peer = world.peer()
    world.send("T", b"1", properties={"TAGS": "a"})
    assert peer.received == []
    world.send("T", b"2", properties={"TAGS": "b"})
    (answer,) = peer.received
    assert (answer.code, bodies(answer)) == (ResponseCode.SUCCESS, [b"2"])
    assert answer.opaque == 5
    assert len(world.hold) == 0


def test_a_pull_that_waited_long_enough_is_answered_with_nothing() -> None:
    world = Harness()
    world.send()
    assert world.pull(offset=1, sys_flag=SUSPEND, suspend_timeout_millis=15_000) is None
    world.now += 14_999
    world.tick()
    assert world.peer().received == []
    world.now += 5_000
    world.tick()
    assert [answer.code for answer in world.peer().received] == [ResponseCode.PULL_NOT_FOUND]


def test_a_queue_that_moved_on_without_a_match_tells_how_far_to_skip() -> None:
    world = Harness()
    world.send()
    world.pull(offset=1, sys_flag=SUSPEND, subscription="b")
    world.send("T", properties={"TAGS": "a"})
    world.now += 5_000
    world.tick()
    (answer,) = world.peer().received
    assert (answer.code, answer.fields["nextBeginOffset"]) == (ResponseCode.PULL_RETRY_IMMEDIATELY, "2")


def test_a_woken_pull_is_checked_again_and_commits_nothing() -> None:
    world = Harness()
    world.send()
    world.pull(offset=1, sys_flag=SUSPEND | PullSysFlag.COMMIT_OFFSET, commit_offset=1)
    world.broker.commit_offset("consumers", "T", 0, QueueOffset(7))
    world.ask(RequestCode.DELETE_TOPIC_IN_BROKER, fields={"topic": "T"})
    world.now += 15_000
    world.tick()
    assert [answer.code for answer in world.peer().received] == [ResponseCode.TOPIC_NOT_EXIST]
    assert world.offsets.get("T", "consumers", 0) == 7


def test_a_connection_that_is_gone_leaves_no_waiting_pull() -> None:
    world = Harness()
    world.send()
    world.pull(offset=1, sys_flag=SUSPEND)
    world.engine.feed(Closed(1))
    assert len(world.hold) == 0


def test_when_too_many_wait_a_pull_is_answered_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hold, "HELD_MAX", 0)
    world = Harness()
    world.send()
    answer = world.pull(offset=1, sys_flag=SUSPEND)
    assert answer is not None
    assert answer.code == ResponseCode.PULL_NOT_FOUND


@pytest.mark.parametrize("support", [True, False])
def test_with_filter_support_retry_a_retried_message_must_satisfy_the_expression_of_its_topic(support: bool) -> None:
    world = Harness(BrokerConfig(enable_property_filter=True, filter_support_retry=support))
    retry = SubscriptionData(topic="%RETRY%consumers", sub_string="*")
    beat(world, SubscriptionData(topic="T", sub_string="a > 1", sub_version=1, expression_type="SQL92"), retry)
    for topic, a in (("T", "1"), ("T", "2"), ("Other", "1")):
        world.send("%RETRY%consumers", f"{topic}{a}".encode(), properties={"RETRY_TOPIC": topic, "a": a})
    answer = world.pull("%RETRY%consumers", sys_flag=0)
    assert bodies(answer) == ([b"T2", b"Other1"] if support else [b"T1", b"T2", b"Other1"])


OK = ResponseCode.SUCCESS


def set_group(world: Harness, **settings: object) -> None:
    config = replace(SubscriptionGroupConfig(group_name="consumers"), **settings)  # type: ignore[arg-type]
    assert world.ask(RequestCode.UPDATE_AND_CREATE_SUBSCRIPTIONGROUP, body=encode_body(config)).code == OK


def test_a_group_that_may_not_consume_is_refused() -> None:
    world = Harness()
    world.send()
    set_group(world, consume_enable=False)
    answer = world.pull()
    assert answer is not None
    assert (answer.code, answer.remark) == (ResponseCode.NO_PERMISSION, "subscription group no permission, consumers")


def test_a_waiting_pull_with_an_expression_is_woken_only_by_what_satisfies_it() -> None:
    world = Harness(BrokerConfig(enable_property_filter=True))
    world.send()
    assert world.pull(offset=1, sys_flag=SUSPEND, subscription="a = 3", expression_type="SQL92") is None
    world.send(properties={"a": "4"})
    assert world.peer(1).received == []
    world.send(properties={"a": "3"})
    (answer,) = world.peer(1).received
    assert [decode_properties(record.properties)["a"] for record in decode_records(answer.body)] == ["3"]


def test_any_offset_but_0_is_wrong_in_an_empty_queue() -> None:
    world = Harness()
    world.send(queue=1)
    codes = [answer.code for offset in (0, 1, -1) if (answer := world.pull(offset=offset)) is not None]
    assert codes == [ResponseCode.PULL_NOT_FOUND, ResponseCode.PULL_OFFSET_MOVED, ResponseCode.PULL_OFFSET_MOVED]


def test_who_reads_what_is_long_out_of_memory_is_sent_to_the_slave_of_its_group() -> None:
    world = Harness(BrokerConfig(slave_read_enable=True))
    set_group(world, broker_id=0, which_broker_when_consume_slowly=5)
    for _ in range(3):
        world.send(body=b"x" * 1000)
    near = world.pull(offset=2)
    assert near is not None
    assert near.fields["suggestWhichBrokerId"] == "0"
    world.store.config = replace(world.store.config, memory_bytes=0)
    parts = world.store.parts
    parts.config = replace(parts.config, memory_bytes=0)
    far = world.pull(max_msg_nums=1)
    assert far is not None
    assert far.fields["suggestWhichBrokerId"] == "5"


def test_without_long_polling_a_pull_waits_for_a_short_time_whatever_it_asks_for() -> None:
    world = Harness(BrokerConfig(long_polling_enable=False, short_polling_time_mills=1_000))
    world.send()
    assert world.pull(offset=1, sys_flag=SUSPEND, suspend_timeout_millis=15_000) is None
    assert world.hold.due(world.store, 999) == ()
    assert len(world.hold.due(world.store, 1_000)) == 1


@pytest.mark.parametrize("asked", [-1, 0, 1])
def test_who_asks_for_no_message_gets_the_first_one_like_who_asks_for_one(asked: int) -> None:
    world = Harness()
    world.send()
    world.send()
    answer = world.pull(max_msg_nums=asked)
    assert answer is not None
    assert (answer.code, answer.fields["nextBeginOffset"]) == (ResponseCode.SUCCESS, "1")
