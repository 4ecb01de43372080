"""What the plane hands over: unknown codes, and requests that first need a topic or a group."""

from __future__ import annotations

from refmq.broker.handed_over import meet_topic
from refmq.model.broker_config import BrokerConfig
from refmq.plane.needs import NeedsOwnTopic, NeedsTopic, Refusal, SendCreation
from refmq.protocol.codes import RequestCode, ResponseCode
from tests.broker.harness import Harness, run

REFUSAL = Refusal(ResponseCode.TOPIC_NOT_EXIST, "no")


def test_a_topic_that_a_send_needs_is_durable_when_the_need_is_met() -> None:
    world = Harness()
    assert run(meet_topic(world.broker, NeedsTopic(SendCreation("New", "TBW102", 4), REFUSAL)))
    assert b'"New"' in world.saved["topics.json"]
    assert world.registered == 1


def test_a_need_that_cannot_be_met_creates_nothing() -> None:
    world = Harness()
    assert not run(meet_topic(world.broker, NeedsTopic(SendCreation("New", "Unknown", 4), REFUSAL)))
    assert world.broker.state.topics.get("New") is None
    assert world.saved == {}


def test_a_topic_of_the_brokers_own_needs_no_template() -> None:
    world = Harness(BrokerConfig(auto_create_topic_enable=False))
    assert run(meet_topic(world.broker, NeedsOwnTopic("%DLQ%g", 1, REFUSAL)))
    made = world.broker.state.topics.get("%DLQ%g")
    assert made is not None
    assert made.write_queue_nums == 1


def test_a_send_to_a_new_topic_goes_back_to_the_plane_and_is_stored() -> None:
    world = Harness()
    assert world.send("New").code == ResponseCode.SUCCESS
    assert len(world.records("New")) == 1


def test_a_send_whose_topic_may_not_be_created_gets_the_refusal_of_its_need() -> None:
    world = Harness(BrokerConfig(auto_create_topic_enable=False))
    assert world.send("New").code == ResponseCode.TOPIC_NOT_EXIST
    assert world.records("New") == []


def test_a_pull_of_a_group_that_may_not_be_created_is_refused() -> None:
    world = Harness(BrokerConfig(auto_create_subscription_group=False))
    world.send("T")
    answer = world.pull("T")
    assert answer is not None
    assert answer.code == ResponseCode.SUBSCRIPTION_GROUP_NOT_EXIST
    assert world.broker.state.groups.get("consumers") is None


def test_a_request_of_the_control_plane_needs_nothing_first() -> None:
    world = Harness()
    assert world.ask(RequestCode.GET_ALL_TOPIC_CONFIG).code == ResponseCode.SUCCESS
