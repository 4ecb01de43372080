"""Routes: where to send, what to read, whom to ask."""

from __future__ import annotations

import pytest

from refmq.client.route import (
    Reader,
    all_addresses,
    default_route,
    master_of,
    masters,
    parse_name_servers,
    publish_queues,
    reader_of,
    subscribe_queues,
)
from refmq.errors import UsageError
from refmq.model.ids import MessageQueue
from refmq.protocol.bodies.route import BrokerData, QueueData, TopicRouteData

ROUTE = TopicRouteData(
    broker_datas=(
        BrokerData(cluster="c", broker_name="b", broker_addrs={0: "b:0", 1: "b:1", 2: "b:2"}),
        BrokerData(cluster="c", broker_name="a", broker_addrs={1: "a:1"}),
        BrokerData(cluster="c", broker_name="r", broker_addrs={0: "r:0"}),
    ),
    queue_datas=(
        QueueData(broker_name="b", read_queue_nums=3, write_queue_nums=2, perm=6),
        QueueData(broker_name="a", read_queue_nums=1, write_queue_nums=1, perm=6),
        QueueData(broker_name="r", read_queue_nums=1, write_queue_nums=1, perm=4),
    ),
)


def queues(*places: tuple[str, int]) -> tuple[MessageQueue, ...]:
    return tuple(MessageQueue("T", broker, number) for broker, number in places)


def test_sends_go_to_queues_that_may_be_written_and_have_a_master() -> None:
    assert publish_queues("T", ROUTE) == queues(("b", 0), ("b", 1))
    ordered = TopicRouteData(order_topic_conf="z:2;a:1;broken;x:y")
    assert publish_queues("T", ordered) == queues(("z", 0), ("z", 1), ("a", 0))


def test_groups_share_every_queue_that_may_be_read() -> None:
    assert subscribe_queues("T", ROUTE) == queues(("a", 0), ("b", 0), ("b", 1), ("b", 2), ("r", 0))


def test_a_pull_goes_where_the_broker_suggests_or_to_who_is_left() -> None:
    assert reader_of(ROUTE, "b", 0) == Reader("b:0", False)
    assert reader_of(ROUTE, "b", 1) == Reader("b:1", True)
    assert reader_of(ROUTE, "b", 7) == Reader("b:0", False)
    assert reader_of(ROUTE, "a", 0) == Reader("a:1", True)
    assert reader_of(ROUTE, "nobody", 0) is None


def test_addresses_are_found_by_role() -> None:
    assert master_of(ROUTE, "b") == "b:0"
    assert master_of(ROUTE, "a") is None
    assert masters(ROUTE) == ("b:0", "r:0")
    assert all_addresses(ROUTE) == ("b:0", "r:0", "a:1", "b:1", "b:2")


def test_a_topic_to_be_created_has_as_many_queues_as_are_wanted_and_offered() -> None:
    cut = default_route(ROUTE, 2)
    assert [(data.read_queue_nums, data.write_queue_nums) for data in cut.queue_datas] == [(2, 2), (1, 1), (1, 1)]


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ("a:1;b:2", ("a:1", "b:2")),
        (" a:1 ,b:2; a:1;", ("a:1", "b:2")),
        (["a:1"], ("a:1",)),
        ("http://MQ_INST_1_2.example:80", ("MQ_INST_1_2.example:80",)),
    ],
)
def test_nameservers_are_read_from_text_or_list(given: str | list[str], expected: tuple[str, ...]) -> None:
    assert parse_name_servers(given) == expected


def test_no_nameserver_is_an_error_that_says_what_to_give() -> None:
    with pytest.raises(UsageError, match="NAMESRV_ADDR"):
        parse_name_servers(" ; ")
