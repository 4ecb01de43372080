"""Topics and groups are created, changed, listed and deleted, within bounds."""

from __future__ import annotations

from dataclasses import replace

import pytest

from refmq.broker import groups, topics
from refmq.model.ids import QueueOffset
from refmq.protocol.bodies.codec import decode_body, encode_body
from refmq.protocol.bodies.config import (
    SubscriptionGroupConfig,
    SubscriptionGroupList,
    SubscriptionGroupWrapper,
    TopicConfig,
    TopicConfigList,
    TopicConfigSerializeWrapper,
)
from refmq.protocol.bodies.route import TopicList
from refmq.protocol.codes import RequestCode, ResponseCode
from refmq.protocol.headers.admin import CreateTopicRequest
from tests.broker.halves import send_half
from tests.broker.harness import SMALL, Harness, run

OK = ResponseCode.SUCCESS


def create(world: Harness, topic: str, queues: int = 2, **changes: object) -> int:
    header = CreateTopicRequest(
        topic=topic, default_topic="TBW102", read_queue_nums=queues, write_queue_nums=queues, perm=6,
        topic_filter_type="SINGLE_TAG", **changes,  # type: ignore[arg-type]  # a table of mixed arguments
    )  # fmt: skip
    return world.ask(RequestCode.UPDATE_AND_CREATE_TOPIC, header).code


def test_a_topic_is_created_changed_listed_and_deleted() -> None:
    world = Harness()
    assert create(world, "Orders", 3) == OK
    assert world.registered == 1
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


def test_half_messages_are_kept_when_unused_topics_are_cleaned_up_before_the_first_check_round() -> None:
    world = Harness()
    send_half(world)
    assert "RMQ_SYS_TRANS_HALF_TOPIC" not in world.broker.state.topics.topics
    assert world.ask(RequestCode.CLEAN_UNUSED_TOPIC).code == OK
    assert "RMQ_SYS_TRANS_HALF_TOPIC" in {queue.topic for queue in world.store.queues()}


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
    assert world.registered == 1
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
