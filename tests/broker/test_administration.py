"""Administration: topics, groups, progress, connections, queries, replies."""

from __future__ import annotations

from dataclasses import replace

import pytest

from refmq.broker import groups, topics
from refmq.broker.stats import Period
from refmq.model.ids import MessageQueue, QueueOffset
from refmq.protocol.bodies.codec import decode_body, encode_body
from refmq.protocol.bodies.config import (
    KVTable,
    SubscriptionGroupConfig,
    SubscriptionGroupList,
    SubscriptionGroupWrapper,
    TopicConfig,
    TopicConfigList,
    TopicConfigSerializeWrapper,
)
from refmq.protocol.bodies.connections import ConsumerConnection, ConsumerIdList, GroupList, ProducerConnection
from refmq.protocol.bodies.heartbeat import (
    ConsumeFromWhere,
    ConsumerData,
    ConsumeType,
    HeartbeatData,
    MessageModel,
    ProducerData,
    SubscriptionData,
)
from refmq.protocol.bodies.offsets import LockBatchRequestBody, LockBatchResponseBody, ResetOffsetBody
from refmq.protocol.bodies.route import TopicList
from refmq.protocol.bodies.stats import (
    BrokerStatsData,
    ConsumeQueueDump,
    ConsumeStats,
    QueryConsumeTimeSpan,
    TopicStatsTable,
)
from refmq.protocol.codes import RequestCode, ResponseCode
from refmq.protocol.command import LanguageCode
from refmq.protocol.headers.admin import CreateTopicRequest
from refmq.protocol.headers.clients import ResetOffsetRequest
from refmq.protocol.headers.messages import ConsumerSendMsgBackRequest
from refmq.protocol.headers.send import encode_send_header
from refmq.protocol.record import decode_properties, decode_records, parse_message_id
from tests.broker.harness import SMALL, START_MS, Harness, run, send_header

OK = ResponseCode.SUCCESS


def beat(
    world: Harness, peer: int = 1, group: str = "g", *topics: str, client: str | None = None, version: int = 409
) -> None:
    consumer = ConsumerData(
        group_name=group,
        consume_type=ConsumeType.CONSUME_PASSIVELY,
        message_model=MessageModel.CLUSTERING,
        consume_from_where=ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET,
        subscription_data_set=(SubscriptionData(topic="T", sub_string="*"),),
    )
    data = HeartbeatData(
        client_id=client or f"c{peer}",
        consumer_data_set=(consumer,),
        producer_data_set=(ProducerData(group_name="producers"),),
    )
    assert world.ask(RequestCode.HEART_BEAT, body=encode_body(data), peer=peer, version=version).code == OK


def create(world: Harness, topic: str, queues: int = 2, **changes: object) -> int:
    header = CreateTopicRequest(
        topic=topic, default_topic="TBW102", read_queue_nums=queues, write_queue_nums=queues, perm=6,
        topic_filter_type="SINGLE_TAG", **changes,  # type: ignore[arg-type]  # a table of mixed arguments
    )  # fmt: skip
    return world.ask(RequestCode.UPDATE_AND_CREATE_TOPIC, header).code


# --- topics and groups --------------------------------------------------------------------------------------


def test_a_topic_is_created_changed_listed_and_deleted() -> None:
    world = Harness()
    assert create(world, "Orders", 3) == OK
    assert world.registered == ["Orders"]
    assert b"Orders" in world.saved["topics.json"]
    listed = decode_body(TopicConfigSerializeWrapper, world.ask(RequestCode.GET_ALL_TOPIC_CONFIG).body)
    assert listed.topic_config_table["Orders"].read_queue_nums == 3
    one = world.ask(RequestCode.GET_TOPIC_CONFIG, fields={"topic": "Orders"})
    assert decode_body(TopicConfig, one.body).topic_name == "Orders"
    world.send("Orders")
    assert world.ask(RequestCode.DELETE_TOPIC_IN_BROKER, fields={"topic": "Orders"}).code == OK
    assert b"Orders" not in world.saved["topics.json"]
    assert not [queue for queue in world.store.queues() if queue.topic == "Orders"]
    gone = world.ask(RequestCode.GET_TOPIC_CONFIG, fields={"topic": "Orders"})
    assert gone.code == ResponseCode.TOPIC_NOT_EXIST


@pytest.mark.parametrize("topic", ["TBW102", "SCHEDULE_TOPIC_XXXX", "rmq_sys_x", "a b", ""])
def test_system_topics_and_bad_names_are_left_alone(topic: str) -> None:
    world = Harness()
    before = world.broker.state.topics
    assert create(world, topic) == ResponseCode.SYSTEM_ERROR
    assert world.ask(RequestCode.DELETE_TOPIC_IN_BROKER, fields={"topic": topic}).code == ResponseCode.SYSTEM_ERROR
    assert world.broker.state.topics is before
    system = decode_body(TopicList, world.ask(RequestCode.GET_SYSTEM_TOPIC_LIST_FROM_BROKER).body)
    assert {"TBW102", "DefaultCluster", "broker-a"} <= set(system.topic_list)


def test_numbers_of_queues_that_cannot_be_meant_are_refused() -> None:
    world = Harness()
    assert create(world, "Orders", 70_000) == ResponseCode.SYSTEM_ERROR
    assert create(world, "Orders", -1) == ResponseCode.SYSTEM_ERROR


def test_queues_of_topics_without_configuration_are_cleaned_up_on_request() -> None:
    world = Harness()
    world.send("Orders")
    world.send("T", properties={"DELAY": "1"})
    topics = world.broker.state.topics
    world.broker.state = replace(world.broker.state, topics=replace(topics, topics=topics.topics.discard("Orders")))
    assert world.ask(RequestCode.CLEAN_UNUSED_TOPIC).code == OK
    assert {queue.topic for queue in world.store.queues()} == {"SCHEDULE_TOPIC_XXXX"}


def test_a_group_is_created_listed_and_deleted_with_its_offsets() -> None:
    world = Harness()
    group = SubscriptionGroupConfig(group_name="g", retry_max_times=3)
    assert world.ask(RequestCode.UPDATE_AND_CREATE_SUBSCRIPTIONGROUP, body=encode_body(group)).code == OK
    listed = decode_body(SubscriptionGroupWrapper, world.ask(RequestCode.GET_ALL_SUBSCRIPTIONGROUP_CONFIG).body)
    assert listed.subscription_group_table["g"].retry_max_times == 3
    world.broker.commit_offset("g", "T", 0, QueueOffset(5))
    fields = {"groupName": "g", "removeOffset": "true"}
    assert world.ask(RequestCode.DELETE_SUBSCRIPTIONGROUP, fields=fields).code == OK
    assert world.offsets.get("T", "g", 0) is None
    assert world.broker.state.groups.get("g") is None


# --- clients ------------------------------------------------------------------------------------------------


def test_members_hear_of_each_other_and_find_each_other() -> None:
    world = Harness()
    beat(world, 1)
    beat(world, 2)
    told = [c.code for c in world.peer(1).received]
    assert told == [RequestCode.NOTIFY_CONSUMER_IDS_CHANGED] * 2
    answer = world.ask(RequestCode.GET_CONSUMER_LIST_BY_GROUP, fields={"consumerGroup": "g"})
    assert decode_body(ConsumerIdList, answer.body).consumer_id_list == ("c1", "c2")
    assert "%RETRY%g" in world.broker.state.topics.topics
    world.peer(1).received.clear()
    world.broker.connection_closed(2)
    assert len(world.peer(1).received) == 1
    fields = {"clientID": "c1", "consumerGroup": "g", "producerGroup": "producers"}
    assert world.ask(RequestCode.UNREGISTER_CLIENT, fields=fields).code == OK
    gone = world.ask(RequestCode.GET_CONSUMER_LIST_BY_GROUP, fields={"consumerGroup": "g"})
    assert (gone.code, gone.remark) == (ResponseCode.SYSTEM_ERROR, "no consumer for this group, g")


def test_connections_are_listed() -> None:
    world = Harness()
    beat(world, 1)
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
    beat(world, 1)
    beat(world, 2)
    world.peer(2).received.clear()
    fields = {"consumerGroup": "g", "clientId": "c2", "jstackEnable": "false"}
    assert world.ask(RequestCode.GET_CONSUMER_RUNNING_INFO, fields=fields).code == OK
    assert [c.code for c in world.peer(2).received] == [RequestCode.GET_CONSUMER_RUNNING_INFO]
    nobody = world.ask(RequestCode.GET_CONSUMER_RUNNING_INFO, fields={**fields, "clientId": "c9"})
    assert nobody.remark == "The Consumer <g> <c9> not online"
    beat(world, 3, client="old", version=61)
    old = world.ask(RequestCode.GET_CONSUMER_RUNNING_INFO, fields={**fields, "clientId": "old"})
    assert "too low to finish" in (old.remark or "")


def test_a_filter_is_tried_when_a_consumer_starts() -> None:
    world = Harness()
    body = b'{"clientId":"c","group":"g","subscriptionData":{"topic":"T","subString":"a >","expressionType":"SQL92"}}'
    assert world.ask(RequestCode.CHECK_CLIENT_CONFIG, body=body).code == ResponseCode.SYSTEM_ERROR
    world.ask(RequestCode.UPDATE_BROKER_CONFIG, body=b"enablePropertyFilter=true")
    assert world.ask(RequestCode.CHECK_CLIENT_CONFIG, body=body).code == ResponseCode.SUBSCRIPTION_PARSE_FAILED
    assert world.ask(RequestCode.CHECK_CLIENT_CONFIG, body=body.replace(b"a >", b"a > 5")).code == OK


def test_queues_are_locked_and_unlocked() -> None:
    world = Harness()
    queue = MessageQueue("T", "broker-a", 0)

    def lock(client: str, code: RequestCode = RequestCode.LOCK_BATCH_MQ) -> bytes:
        body = encode_body(LockBatchRequestBody(consumer_group="g", client_id=client, mq_set=(queue,)))
        return world.ask(code, body=body).body

    assert decode_body(LockBatchResponseBody, lock("a")).lock_ok_mq_set == (queue,)
    assert decode_body(LockBatchResponseBody, lock("b")).lock_ok_mq_set == ()
    lock("a", RequestCode.UNLOCK_BATCH_MQ)
    assert decode_body(LockBatchResponseBody, lock("b")).lock_ok_mq_set == (queue,)
    assert [event.action for event in world.events] == ["LockQueue", "UnlockQueue", "LockQueue"]


# --- offsets and progress -----------------------------------------------------------------------------------


def test_offsets_are_stored_and_a_new_group_begins_at_the_begin_of_a_young_queue() -> None:
    world = Harness()
    world.send()
    place = {"consumerGroup": "g", "topic": "T", "queueId": "0"}
    assert world.ask(RequestCode.QUERY_CONSUMER_OFFSET, fields=place).fields["offset"] == "0"
    world.ask(RequestCode.UPDATE_CONSUMER_OFFSET, fields={**place, "commitOffset": "7"})
    assert world.ask(RequestCode.QUERY_CONSUMER_OFFSET, fields=place).fields["offset"] == "7"
    strict = {**place, "consumerGroup": "h", "setZeroIfNotFound": "false"}
    assert world.ask(RequestCode.QUERY_CONSUMER_OFFSET, fields=strict).code == ResponseCode.QUERY_NOT_FOUND


def test_the_bounds_of_a_queue_and_the_search_by_time() -> None:
    world = Harness()
    for _ in range(3):
        world.send()
        world.now += 1_000
    place = {"topic": "T", "queueId": "0"}
    assert world.ask(RequestCode.GET_MAX_OFFSET, fields=place).fields["offset"] == "3"
    assert world.ask(RequestCode.GET_MIN_OFFSET, fields=place).fields["offset"] == "0"
    assert world.ask(RequestCode.GET_EARLIEST_MSG_STORETIME, fields=place).fields["timestamp"] == str(START_MS)
    at = {**place, "timestamp": str(START_MS + 1_400)}
    assert world.ask(RequestCode.SEARCH_OFFSET_BY_TIMESTAMP, fields=at).fields["offset"] == "1"
    lower = {**at, "boundaryType": "LOWER"}
    assert world.ask(RequestCode.SEARCH_OFFSET_BY_TIMESTAMP, fields=lower).fields["offset"] == "2"


def test_progress_of_topics_and_groups() -> None:
    world = Harness()
    for _ in range(3):
        world.send()
    world.broker.commit_offset("g", "T", 0, QueueOffset(2))
    stats = decode_body(TopicStatsTable, world.ask(RequestCode.GET_TOPIC_STATS_INFO, fields={"topic": "T"}).body)
    queue = MessageQueue("T", "broker-a", 0)
    assert (stats.offset_table[queue].min_offset, stats.offset_table[queue].max_offset) == (0, 3)
    progress = decode_body(ConsumeStats, world.ask(RequestCode.GET_CONSUME_STATS, fields={"consumerGroup": "g"}).body)
    row = progress.offset_table[queue]
    assert (row.broker_offset, row.consumer_offset, row.last_timestamp, row.pull_offset) == (3, 2, START_MS, None)
    asked_by_5 = world.ask(RequestCode.GET_CONSUME_STATS, fields={"consumerGroup": "g"}, version=479)
    row = decode_body(ConsumeStats, asked_by_5.body).offset_table[queue]
    assert (row.consumer_offset, row.pull_offset) == (2, 2), "mqadmin of 5.x shows the difference as messages in flight"
    unknown = world.ask(RequestCode.GET_TOPIC_STATS_INFO, fields={"topic": "Unknown"})
    assert unknown.code == ResponseCode.TOPIC_NOT_EXIST


def test_a_reset_tells_the_members_and_leaves_the_table_to_them() -> None:
    world = Harness()
    world.send()
    header = ResetOffsetRequest(topic="T", group="g", timestamp=START_MS, is_force=True)
    missing = world.ask(RequestCode.INVOKE_BROKER_TO_RESET_OFFSET, header)
    assert missing.remark == "THe consumer group <g> not exist"
    for queue_id in range(4):
        world.broker.commit_offset("g", "T", queue_id, QueueOffset(1))
    offline = world.ask(RequestCode.INVOKE_BROKER_TO_RESET_OFFSET, header)
    assert offline.code == ResponseCode.CONSUMER_NOT_ONLINE
    beat(world, 2)
    world.peer(2).received.clear()
    answer = world.ask(RequestCode.INVOKE_BROKER_TO_RESET_OFFSET, header)
    assert decode_body(ResetOffsetBody, answer.body).offset_table[MessageQueue("T", "broker-a", 0)] == 0
    assert [c.code for c in world.peer(2).received] == [RequestCode.RESET_CONSUMER_CLIENT_OFFSET]
    assert world.offsets.get("T", "g", 0) == 1
    world.ask(RequestCode.INVOKE_BROKER_TO_RESET_OFFSET, header, language=LanguageCode.CPP)
    assert world.peer(2).received[-1].body.startswith(b'{"offsetTable":[{')


# --- queries and info ---------------------------------------------------------------------------------------


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
    beat(world)
    dump = decode_body(ConsumeQueueDump, world.ask(RequestCode.QUERY_CONSUME_QUEUE, fields=offline).body)
    assert (dump.filter_data, dump.subscription_data is None) == ("null", False)
    assert world.ask(RequestCode.QUERY_CONSUME_QUEUE, fields={**fields, "queueId": "3"}).remark == "3@T is not exist!"


def test_runtime_info_and_statistics() -> None:
    world = Harness()
    world.send()
    world.pull()
    world.pull(offset=1)
    for _ in range(12):
        world.now += 1_000
        world.broker.meter.sample(world.now_ms(), world.broker.stats.totals())
    table = decode_body(KVTable, world.ask(RequestCode.GET_BROKER_RUNTIME_INFO).body).table
    assert (table["brokerVersionDesc"], table["putMessageTimesTotal"]) == ("V4_9_8", "1")
    assert table["putTps"].split(" ")[0] == "0.0"
    assert (world.broker.stats.found_total, world.broker.stats.missed_total) == (1, 1)
    assert table["commitLogDirCapacity"] == "Total : 4.0 GiB, Free : 3.0 GiB."
    world.broker.stats.sample(Period.MINUTE, world.now_ms())
    fields = {"statsName": "TOPIC_PUT_NUMS", "statsKey": "T"}
    stats = decode_body(BrokerStatsData, world.ask(RequestCode.VIEW_BROKER_STATS_DATA, fields=fields).body)
    assert stats.stats_minute.sum == 1
    unknown = world.ask(RequestCode.VIEW_BROKER_STATS_DATA, fields={**fields, "statsKey": "U"})
    assert unknown.remark == "The stats <TOPIC_PUT_NUMS> <U> not exist"


# --- sending back and replies -------------------------------------------------------------------------------


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


def test_a_reply_is_pushed_to_who_asked_and_stored() -> None:
    world = Harness()
    beat(world, 5, client="asker")
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


# --- expired files ------------------------------------------------------------------------------------------


def test_expired_files_go_when_an_operator_asks_and_not_before() -> None:
    world = Harness(store_config=replace(SMALL, log_file_bytes=4096, queue_file_bytes=20 * 8))
    for _ in range(60):
        world.send("T", bytes(200))
    world.now += SMALL.file_reserved_ms + 1
    run(world.store.maintain(world.now_ms()))
    run(world.store.clean(world.now_ms(), 5))
    assert world.store.log_min == 0
    assert world.ask(RequestCode.DELETE_EXPIRED_COMMITLOG).code == OK
    assert world.store.log_min > 0
    left = world.store.units("T", 0, world.store.min_offset("T", 0), 60)
    assert world.store.max_offset("T", 0) == 60
    assert left


def test_queue_files_without_messages_go_and_the_queue_goes_on_where_it_was() -> None:
    world = Harness(store_config=replace(SMALL, log_file_bytes=4096, queue_file_bytes=20 * 8))
    for _ in range(20):
        world.send("Old", bytes(200))
    for _ in range(60):
        world.send("T", bytes(200))
    world.now += SMALL.file_reserved_ms + 1
    run(world.store.maintain(world.now_ms()))
    world.ask(RequestCode.DELETE_EXPIRED_COMMITLOG)
    assert world.ask(RequestCode.CLEAN_EXPIRED_CONSUMEQUEUE).code == OK
    assert len(world.disk.list("consumequeue/Old/0")) == 1
    assert world.send("Old", b"x").fields["queueOffset"] == "20"


def test_a_trace_says_that_offsets_are_durable_only_when_all_of_them_are() -> None:
    world = Harness()
    world.broker.commit_offset("g", "T", 0, QueueOffset(1))
    run(world.broker.save_offsets())
    run(world.broker.save_offsets())
    assert [event.action for event in world.events] == ["CommitOffset", "PersistOffsets"]
    honest = world.save

    async def slow(file: str, body: bytes) -> None:
        await honest(file, body)
        world.broker.commit_offset("g", "T", 0, QueueOffset(3))

    world.save = slow  # type: ignore[method-assign]
    world.broker.commit_offset("g", "T", 0, QueueOffset(2))
    run(world.broker.save_offsets())
    assert [event.action for event in world.events][2:] == ["CommitOffset", "CommitOffset"]


def test_the_time_span_of_a_queue_is_told_as_the_admin_tool_reads_it() -> None:
    world = Harness()
    world.send()
    body = world.ask(RequestCode.QUERY_CONSUME_TIME_SPAN, fields={"topic": "T", "group": "g"}).body
    spans = decode_body(QueryConsumeTimeSpan, body).consume_time_span_set
    assert (spans[0].min_time_stamp, spans[0].delay_time) == (START_MS, 0)
    assert spans[0].min_time_stamp_str == "2020-01-01#00:00:00:000"


# --- several at once, and bounds ----------------------------------------------------------------------------


def test_several_topics_or_groups_are_made_all_or_none() -> None:
    world = Harness()
    good = TopicConfig(topic_name="New", read_queue_nums=2, write_queue_nums=3, order=True)
    for wrong in (
        replace(good, topic_name="TBW102"),
        replace(good, topic_name="a b"),
        replace(good, read_queue_nums=-1),
    ):
        body = encode_body(TopicConfigList(topic_config_list=(good, wrong)))
        assert world.ask(RequestCode.UPDATE_AND_CREATE_TOPIC_LIST, body=body).code == ResponseCode.SYSTEM_ERROR
        assert world.broker.state.topics.get("New") is None
    body = encode_body(TopicConfigList(topic_config_list=(good, replace(good, topic_name="New2"))))
    assert world.ask(RequestCode.UPDATE_AND_CREATE_TOPIC_LIST, body=body).code == OK
    assert world.broker.state.topics.topics["New2"] == replace(good, topic_name="New2", order=False)
    assert world.registered == [None]
    made = (SubscriptionGroupConfig(group_name="g1"), SubscriptionGroupConfig(group_name="g2", retry_queue_nums=2))
    body = encode_body(SubscriptionGroupList(group_config_list=made))
    assert world.ask(RequestCode.UPDATE_AND_CREATE_SUBSCRIPTIONGROUP_LIST, body=body).code == OK
    assert [world.broker.state.groups.groups[name] for name in ("g1", "g2")] == list(made)


def test_a_group_cannot_ask_for_a_retry_topic_of_any_size() -> None:
    world = Harness()
    body = encode_body(SubscriptionGroupConfig(group_name="g", retry_queue_nums=2**31 - 1))
    assert world.ask(RequestCode.UPDATE_AND_CREATE_SUBSCRIPTIONGROUP, body=body).code == ResponseCode.SYSTEM_ERROR
    assert world.broker.state.groups.get("g") is None


def test_an_administrator_makes_no_more_topics_and_groups_than_there_is_room_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    world = Harness()
    monkeypatch.setattr(topics, "TOPICS_MAX", len(world.broker.state.topics.topics))
    monkeypatch.setattr(groups, "GROUPS_MAX", len(world.broker.state.groups.groups))
    body = encode_body(TopicConfigList(topic_config_list=(TopicConfig(topic_name="New"),)))
    assert world.ask(RequestCode.UPDATE_AND_CREATE_TOPIC_LIST, body=body).code == ResponseCode.SYSTEM_ERROR
    body = encode_body(SubscriptionGroupConfig(group_name="g"))
    assert world.ask(RequestCode.UPDATE_AND_CREATE_SUBSCRIPTIONGROUP, body=body).code == ResponseCode.SYSTEM_ERROR
