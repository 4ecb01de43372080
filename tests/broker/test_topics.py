"""Topics: what is built in, and what a send may create."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from refmq.broker import topics
from refmq.broker.topics import TopicTable
from refmq.model.broker_config import BrokerConfig
from refmq.model.ids import TimestampMs
from refmq.plane.needs import SendCreation
from refmq.protocol.bodies.config import DataVersion, TopicConfig, TopicConfigSerializeWrapper

CONFIG = BrokerConfig()


NOW = TimestampMs(1_000)


def table(config: BrokerConfig = CONFIG) -> TopicTable:
    return topics.start_topics(config, None, NOW)


def test_every_broker_has_upstreams_topics() -> None:
    shapes = {t.topic_name: (t.read_queue_nums, t.write_queue_nums, t.perm) for t in topics.built_in_topics(CONFIG)}
    assert shapes == {
        "SELF_TEST_TOPIC": (1, 1, 6),
        "TBW102": (8, 8, 7),
        "BenchmarkTest": (1024, 1024, 6),
        "DefaultCluster": (16, 16, 7),
        "broker-a": (1, 1, 7),
        "OFFSET_MOVED_EVENT": (1, 1, 6),
        "SCHEDULE_TOPIC_XXXX": (18, 18, 6),
        "DefaultCluster_REPLY_TOPIC": (1, 1, 6),
    }
    traced = topics.built_in_topics(replace(CONFIG, trace_topic_enable=True, auto_create_topic_enable=False))
    names = {t.topic_name for t in traced}
    assert "RMQ_SYS_TRACE_TOPIC" in names
    assert "TBW102" not in names


def test_the_file_wins_over_what_is_built_in_and_brings_its_version() -> None:
    stored = TopicConfigSerializeWrapper(
        data_version=DataVersion(timestamp=7, counter=3),
        topic_config_table={"TBW102": TopicConfig(topic_name="TBW102", perm=4)},
    )
    loaded = topics.start_topics(CONFIG, stored, NOW)
    assert loaded.topics["TBW102"].perm == 4
    assert loaded.version == DataVersion(timestamp=7, counter=3)
    assert loaded.is_system("TBW102")
    assert loaded.is_system("rmq_sys_anything")
    assert not loaded.is_system("Orders")


def test_a_send_creates_a_topic_by_inheritance() -> None:
    after = topics.create_on_send(table(), CONFIG, SendCreation("Orders", "TBW102", 4), NOW)
    assert after is not None
    orders = after.topics["Orders"]
    assert (orders.read_queue_nums, orders.write_queue_nums, orders.perm, orders.order) == (4, 4, 6, False)
    assert after.version.counter == table().version.counter + 1
    assert topics.create_on_send(after, CONFIG, SendCreation("Orders", "TBW102", 4), NOW) is after


@given(st.integers(-5, 40))
def test_a_created_topic_has_at_most_the_queues_of_its_template(wanted: int) -> None:
    after = topics.create_on_send(table(), CONFIG, SendCreation("Orders", "TBW102", wanted), NOW)
    assert after is not None
    assert after.topics["Orders"].write_queue_nums == max(0, min(8, wanted))


@pytest.mark.parametrize("template", ["Unknown", "BenchmarkTest"])
def test_a_template_that_is_missing_or_not_inheritable_creates_nothing_but_retry_topics(template: str) -> None:
    assert topics.create_on_send(table(), CONFIG, SendCreation("Orders", template, 4), NOW) is None
    retry = topics.create_on_send(table(), CONFIG, SendCreation("%RETRY%g", template, 4, unit_mode=True), NOW)
    assert retry is not None
    made = retry.topics["%RETRY%g"]
    assert (made.read_queue_nums, made.perm, made.topic_sys_flag) == (1, 6, topics.SYS_FLAG_UNIT_SUB)


def test_without_auto_creation_no_template_is_inherited() -> None:
    config = replace(CONFIG, auto_create_topic_enable=False)
    stored = topics.put_topic(table(config), table().topics["TBW102"], NOW)
    assert topics.create_on_send(stored, config, SendCreation("Orders", "TBW102", 4), NOW) is None
    assert topics.create_on_send(stored, config, SendCreation("Orders", "DefaultCluster", 4), NOW) is None


def test_the_number_of_topics_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    start = table()
    monkeypatch.setattr(topics, "TOPICS_MAX", len(start.topics))
    assert topics.create_on_send(start, CONFIG, SendCreation("Orders", "TBW102", 4), NOW) is None
    assert topics.ensure_topic(start, "%RETRY%g", 1, 0, NOW) is None
    assert topics.ensure_topic(start, "TBW102", 1, 0, NOW) is start


def test_order_flags_follow_the_nameserver_exactly() -> None:
    start = topics.put_topic(table(), TopicConfig(topic_name="Orders"), NOW)
    ordered = topics.apply_order_config(start, ["Orders", "Unknown"], NOW)
    assert ordered.topics["Orders"].order
    assert topics.apply_order_config(ordered, ["Orders"], NOW) is ordered
    assert not topics.apply_order_config(ordered, [], NOW).topics["Orders"].order


def test_a_topic_that_is_deleted_makes_a_new_version() -> None:
    table = topics.start_topics(BrokerConfig(), None, TimestampMs(1))
    after = topics.delete_topic(table, "unknown", TimestampMs(2))
    assert after.version.counter == table.version.counter + 1
