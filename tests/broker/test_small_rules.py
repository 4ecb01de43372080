"""Rules that hang on one number, one flag or one word: where upstream draws the line, so do we."""

from __future__ import annotations

from dataclasses import replace

import pytest

from refmq.broker import clients, topics
from refmq.broker.clients import ClientTable, ConnectionId, Member
from refmq.model.broker_config import BrokerConfig
from refmq.model.ids import ClientId, QueueOffset, TimestampMs
from refmq.plane.property_rules import stored_properties
from refmq.protocol.bodies.codec import decode_body, encode_body
from refmq.protocol.bodies.config import SubscriptionGroupConfig
from refmq.protocol.bodies.heartbeat import (
    ConsumeFromWhere,
    ConsumerData,
    ConsumeType,
    HeartbeatData,
    MessageModel,
    ProducerData,
    SubscriptionData,
)
from refmq.protocol.bodies.offsets import CorrectionOffsets, ResetOffsetBody
from refmq.protocol.codes import RequestCode, ResponseCode
from refmq.protocol.command import LanguageCode
from refmq.protocol.headers.admin import CreateTopicRequest
from refmq.protocol.headers.clients import ResetOffsetRequest
from refmq.protocol.headers.messages import ConsumerSendMsgBackRequest
from refmq.protocol.headers.pull import PullSysFlag
from refmq.protocol.record import TRANSACTION_PREPARED, decode_properties, decode_records
from refmq.protocol.versions import V3_4_9
from tests.broker.harness import START_MS, Harness, send_header

SUSPEND = PullSysFlag.SUBSCRIPTION | PullSysFlag.SUSPEND
OK = ResponseCode.SUCCESS


def set_group(world: Harness, **settings: object) -> None:
    config = replace(SubscriptionGroupConfig(group_name="consumers"), **settings)  # type: ignore[arg-type]
    assert world.ask(RequestCode.UPDATE_AND_CREATE_SUBSCRIPTIONGROUP, body=encode_body(config)).code == OK


def consumer(*subscriptions: SubscriptionData, group: str = "consumers") -> ConsumerData:
    return ConsumerData(
        group_name=group,
        consume_type=ConsumeType.CONSUME_PASSIVELY,
        message_model=MessageModel.CLUSTERING,
        consume_from_where=ConsumeFromWhere.CONSUME_FROM_LAST_OFFSET,
        subscription_data_set=subscriptions,
    )


def beat(world: Harness, peer: int, *consumers: ConsumerData, producers: tuple[str, ...] = ()) -> None:
    producer_data = tuple(ProducerData(group_name=name) for name in producers)
    data = HeartbeatData(client_id=f"c{peer}", consumer_data_set=consumers, producer_data_set=producer_data)
    assert world.ask(RequestCode.HEART_BEAT, body=encode_body(data), peer=peer).code == OK


# --- pulls ------------------------------------------------------------------------------------------------------------


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


# --- retries ----------------------------------------------------------------------------------------------------------


def send_back(world: Harness, offset: int, level: int = 0, retries: int | None = None, version: int = 409) -> int:
    header = ConsumerSendMsgBackRequest(
        offset=offset, group="consumers", delay_level=level, max_reconsume_times=retries
    )
    return world.ask(RequestCode.CONSUMER_SEND_MSG_BACK, header, version=version).code


def test_each_retry_waits_one_level_longer_and_remembers_the_first_message() -> None:
    world = Harness()
    world.send(properties={"RETRY_TOPIC": "First", "ORIGIN_MESSAGE_ID": "first"}, reconsume_times=4)
    (original,) = world.records()
    assert send_back(world, original.physical_offset) == OK
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
    assert send_back(world, original.physical_offset) == ResponseCode.NO_PERMISSION


@pytest.mark.parametrize(("version", "dead"), [(V3_4_9, 1), (V3_4_9 - 1, 0)])
def test_only_clients_that_know_the_field_say_how_often_to_retry(version: int, dead: int) -> None:
    world = Harness()
    world.send(reconsume_times=3)
    (original,) = world.records()
    assert send_back(world, original.physical_offset, retries=3, version=version) == OK
    assert len(world.records("%DLQ%consumers")) == dead
    fields = {"b": "%RETRY%consumers", "e": "0", "f": "0", "g": "0", "h": "0", "j": "3", "l": "3"}
    assert world.ask(RequestCode.SEND_MESSAGE_V2, fields=fields, body=b"y", version=version).code == OK
    assert len(world.records("%DLQ%consumers")) == 2 * dead


# --- sends ------------------------------------------------------------------------------------------------------------


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


def test_only_a_delayed_message_keeps_its_wish_to_wait() -> None:
    properties = {"WAIT": "true", "TAGS": "a"}
    assert decode_properties(stored_properties(properties, 0)) == {"TAGS": "a"}
    assert decode_properties(stored_properties(properties, 3)) == properties


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


# --- tables -----------------------------------------------------------------------------------------------------------


def test_a_topic_that_is_deleted_makes_a_new_version() -> None:
    table = topics.start_topics(BrokerConfig(), None, TimestampMs(1))
    after = topics.delete_topic(table, "unknown", TimestampMs(2))
    assert after.version.counter == table.version.counter + 1


def test_a_subscription_of_the_same_version_is_the_same() -> None:
    member = Member(ConnectionId(1), "a:1", ClientId("c"), LanguageCode.JAVA, 409, TimestampMs(0))
    first = SubscriptionData(topic="T", sub_string="a", sub_version=7)
    table = clients.heartbeat(ClientTable(), consumer(first), member, TimestampMs(0)).table
    again = consumer(replace(first, sub_string="b"))
    table = clients.heartbeat(table, again, member, TimestampMs(1)).table
    assert table.consumers["consumers"].subscriptions["T"].sub_string == "a"


def test_a_client_is_silent_only_when_all_its_groups_are() -> None:
    old = Member(ConnectionId(1), "a:1", ClientId("c"), LanguageCode.JAVA, 409, TimestampMs(0))
    new = replace(old, last_update_ms=TimestampMs(200_000))
    table = clients.heartbeat(ClientTable(), consumer(group="g1"), new, TimestampMs(0)).table
    table = clients.heartbeat(table, consumer(group="g2"), old, TimestampMs(0)).table
    table = clients.heartbeat_producer(table, "p", old)
    assert clients.scan_members(table, TimestampMs(200_001)).expired == ()


def test_a_reset_without_force_only_goes_back_and_is_for_every_queue() -> None:
    world = Harness()
    for queue in range(4):
        world.send(queue=queue)
        world.send(queue=queue)
        world.broker.commit_offset("consumers", "T", queue, QueueOffset(1 if queue else 0))
    beat(world, 2, consumer(SubscriptionData(topic="T", sub_string="*")))
    tables = {}
    for force in (False, True):
        header = ResetOffsetRequest(topic="T", group="consumers", timestamp=-1, is_force=force)
        answer = world.ask(RequestCode.INVOKE_BROKER_TO_RESET_OFFSET, header)
        offsets = decode_body(ResetOffsetBody, answer.body).offset_table
        tables[force] = [offsets[key] for key in sorted(offsets, key=lambda key: key.queue_id)]
    assert tables == {False: [0, 1, 1, 1], True: [2, 2, 2, 2]}


def test_an_offset_below_its_queue_corrects_nobody() -> None:
    world = Harness()
    world.send()
    world.broker.commit_offset("g1", "T", 0, QueueOffset(-5))
    world.broker.commit_offset("g2", "T", 0, QueueOffset(1))
    fields = {"filterGroups": "", "compareGroup": "g2", "topic": "T"}
    answer = world.ask(RequestCode.QUERY_CORRECTION_OFFSET, fields=fields)
    assert decode_body(CorrectionOffsets, answer.body).correction_offsets == {0: 1}


def test_producers_of_a_group_are_asked_in_turns() -> None:
    world = Harness()
    for peer in (1, 2):
        beat(world, peer, producers=("producers",))
    half = {"TRAN_MSG": "true", "PGROUP": "producers", "UNIQ_KEY": "u"}
    assert world.send(properties=half).code == OK
    for _ in range(2):
        world.now += 61_000
        world.round()
    asked = [sum(c.code == RequestCode.CHECK_TRANSACTION_STATE for c in world.peer(n).received) for n in (1, 2)]
    assert asked == [1, 1]


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


@pytest.mark.parametrize("told", [True, False])
def test_members_are_told_of_each_other_unless_the_broker_says_otherwise(told: bool) -> None:
    world = Harness(BrokerConfig(notify_consumer_ids_changed_enable=told))
    for peer in (1, 2):
        beat(world, peer, consumer(SubscriptionData(topic="T", sub_string="*")))
    codes = {command.code for command in world.peer(1).received}
    assert codes == ({RequestCode.NOTIFY_CONSUMER_IDS_CHANGED} if told else set())


def test_the_filters_of_a_group_die_with_its_last_member() -> None:
    world = Harness(BrokerConfig(enable_property_filter=True))
    beat(world, 1, consumer(SubscriptionData(topic="T", sub_string="a = 1", expression_type="SQL92", sub_version=1)))
    world.broker.connection_closed(1)
    buried = world.broker.state.filters.get("T", "consumers")
    assert buried is not None
    assert buried.is_dead


class Leaving(Harness):
    """A client goes away while the broker writes down the retry topic of its group."""

    async def save(self, file: str, body: bytes) -> None:
        await super().save(file, body)
        self.peer(1).closed = True
        self.broker.connection_closed(1)


def test_who_left_in_the_middle_of_a_heartbeat_is_no_member() -> None:
    world = Leaving()
    beat(world, 1, consumer(SubscriptionData(topic="T", sub_string="*")), producers=("producers",))
    table = world.broker.state.clients
    assert len(table.consumers) == len(table.producers) == len(table.producer_connections) == 0


def test_a_new_group_is_not_sent_to_messages_that_are_gone(monkeypatch: pytest.MonkeyPatch) -> None:
    world = Harness()
    world.send()
    fields = {"consumerGroup": "new", "topic": "T", "queueId": "0"}
    assert world.ask(RequestCode.QUERY_CONSUMER_OFFSET, fields=fields).fields == {"offset": "0"}
    monkeypatch.setattr(world.store, "min_offset", lambda topic, queue: QueueOffset(5))
    assert world.ask(RequestCode.QUERY_CONSUMER_OFFSET, fields=fields).code == ResponseCode.QUERY_NOT_FOUND


def test_a_negative_offset_is_no_offset() -> None:
    world = Harness()
    world.send("T")
    place = {"consumerGroup": "consumers", "topic": "T", "queueId": "0"}
    assert world.ask(RequestCode.UPDATE_CONSUMER_OFFSET, fields={**place, "commitOffset": "-1"}).code == OK
    assert world.ask(RequestCode.QUERY_CONSUMER_OFFSET, fields=place).fields == {"offset": "0"}
