"""Unmodified clients of other languages against our broker: Go, Node and C++, the same cases for each as far as it
has them. `--broker real` runs the same cases against the real 4.9.7, to see that they ask for nothing that it does not
give.

None of the three speaks TLS. Only Go has real batches, transactions, request-reply and administration
(test_go_client.py); Node has neither orderly consumption nor pulls, C++ no SQL92.
"""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from interop.drivers import Driver
from interop.ours import ask
from interop.processes import wait_until
from interop.tests.other_clients import Cluster, Fixtures, driver, languages
from refmq.errors import RefmqError
from refmq.protocol.codes import RequestCode
from refmq.protocol.command import request

ALL = ("go", "node", "cpp")
GO_CPP = ("go", "cpp")
GO_NODE = ("go", "node")
SEND_OK = {"go": 0, "node": "SEND_OK", "cpp": 0}
SETTLE_S = 30.0


fixtures = Fixtures("other-clients")
cluster, drivers, client = fixtures.cluster, fixtures.drivers, fixtures.client


class Names:
    """A topic, a group and a producer of one case."""

    def __init__(self, cluster: Cluster, client: Driver, language: str, case: str, **producer: object) -> None:
        self.topic = cluster.topic(f"{language}-{case}")
        self.group = cluster.group(f"{language}-{case}")
        self.producer = f"p-{self.topic}"
        client.call("producer", name=self.producer, group=f"pg-{self.topic}", **producer)


def numbered(count: int, prefix: str = "m") -> list[str]:
    return [f"{prefix}{number:03}" for number in range(count)]


@languages(*ALL)
def test_what_is_sent_is_consumed_with_tag_keys_and_properties(cluster: Cluster, client: Driver, language: str) -> None:
    names = Names(cluster, client, language, "plain")
    bodies = numbered(20)
    for body in bodies:
        sent = client.call(
            "send",
            name=names.producer,
            topic=names.topic,
            body=body,
            tag="T",
            key=f"k-{body}",
            properties={"colour": "é"},
        )
        assert sent["status"] == SEND_OK[language]
    assert cluster.stored(names.topic) == 20
    client.call("consumer", name=f"c-{names.group}", group=names.group, topic=names.topic)
    assert sorted(client.bodies(f"c-{names.group}", 20)) == bodies
    for got in client.messages(f"c-{names.group}"):
        assert (got["topic"], got["tag"], got["keys"].strip()) == (names.topic, "T", f"k-{got['body']}")
        assert got["properties"]["colour"] == "é"
        assert got["times"] == 0
    wait_until(lambda: cluster.committed(names.group, names.topic) == 20, "all offsets", SETTLE_S)
    client.call("stop", name=f"c-{names.group}")


@languages(*GO_CPP)
@pytest.mark.parametrize("how", ["async", "oneway"])
def test_asynchronous_and_one_way_sends_are_stored(cluster: Cluster, client: Driver, language: str, how: str) -> None:
    names = Names(cluster, client, language, how)
    for body in numbered(10):
        sent = client.call("send", name=names.producer, topic=names.topic, body=body, how=how)
        assert how == "oneway" or sent["status"] == SEND_OK[language]
    wait_until(lambda: cluster.stored(names.topic) == 10, "ten messages", SETTLE_S)


@languages("cpp")
def test_a_batch_that_does_not_say_so_is_one_message_as_upstream(
    cluster: Cluster, client: Driver, language: str
) -> None:
    """The C++ client sends request 320 without the field that makes it a batch; 4.9 stores its body as one message."""
    names = Names(cluster, client, language, "batch")
    sent = client.call("batch", name=names.producer, topic=names.topic, bodies=numbered(12), tag="B")
    assert sent["status"] == SEND_OK[language]
    assert sorted(cluster.ends(names.topic)) == [0, 0, 0, 1]


@languages("go")
def test_a_batch_goes_to_one_queue_in_order(cluster: Cluster, client: Driver, language: str) -> None:
    names = Names(cluster, client, language, "batch")
    bodies = numbered(12)
    sent = client.call("batch", name=names.producer, topic=names.topic, bodies=bodies, tag="B")
    assert sent["status"] == SEND_OK[language]
    assert sorted(cluster.ends(names.topic)) == [0, 0, 0, 12]
    client.call("consumer", name=f"c-{names.group}", group=names.group, topic=names.topic)
    client.bodies(f"c-{names.group}", 12)
    got = sorted(client.messages(f"c-{names.group}"), key=lambda message: message["offset"])
    assert [message["body"] for message in got] == bodies
    client.call("stop", name=f"c-{names.group}")


@languages(*ALL)
def test_messages_of_one_key_share_a_queue(cluster: Cluster, client: Driver, language: str) -> None:
    names = Names(cluster, client, language, "sharding", sharding="yes")
    for body in numbered(8):
        how = {"how": "orderly", "queue": 3} if language == "cpp" else {"sharding": "order-2"}
        client.call("send", name=names.producer, topic=names.topic, body=body, **how)
    assert sorted(cluster.ends(names.topic)) == [0, 0, 0, 8]


@languages(*GO_CPP)
def test_an_orderly_consumer_keeps_the_order_although_messages_fail(
    cluster: Cluster, client: Driver, language: str
) -> None:
    names = Names(cluster, client, language, "orderly", sharding="yes")
    for body in numbered(6):
        how = {"how": "orderly", "queue": 1} if language == "cpp" else {"sharding": "one"}
        client.call("send", name=names.producer, topic=names.topic, body=body, **how)
    consumer = f"c-{names.group}"
    client.call("consumer", name=consumer, group=names.group, topic=names.topic, orderly=True, fail=1)
    client.wait(lambda: len(client.messages(consumer)) >= 12, "every message twice")
    seen = [message["body"] for message in client.messages(consumer)]
    assert seen == [body for body in numbered(6) for _ in range(2)]
    client.call("stop", name=consumer)


@languages(*ALL)
def test_a_delayed_message_comes_after_its_delay(cluster: Cluster, client: Driver, language: str) -> None:
    names = Names(cluster, client, language, "delay")
    consumer = f"c-{names.group}"
    client.call("consumer", name=consumer, group=names.group, topic=names.topic)
    began = time.monotonic()
    client.call("send", name=names.producer, topic=names.topic, body="late", delay=2)
    assert cluster.stored(names.topic) == 0
    client.bodies(consumer, 1)
    assert time.monotonic() - began >= 0.9
    assert client.messages(consumer)[0]["properties"]["REAL_TOPIC"] == names.topic
    client.call("stop", name=consumer)


@languages(*ALL)
def test_only_the_wanted_tags_come(cluster: Cluster, client: Driver, language: str) -> None:
    names = Names(cluster, client, language, "tags")
    for number, body in enumerate(numbered(12)):
        client.call("send", name=names.producer, topic=names.topic, body=body, tag="ABC"[number % 3])
    consumer = f"c-{names.group}"
    client.call("consumer", name=consumer, group=names.group, topic=names.topic, expression="A || C")
    client.bodies(consumer, 8)
    assert {message["tag"] for message in client.messages(consumer)} == {"A", "C"}
    client.call("stop", name=consumer)


@languages(*GO_NODE)
def test_only_what_the_expression_selects_comes(cluster: Cluster, client: Driver, language: str) -> None:
    names = Names(cluster, client, language, "sql")
    for number, body in enumerate(numbered(10)):
        properties = {"size": str(number), "kind": "odd" if number % 2 else "even"}
        client.call("send", name=names.producer, topic=names.topic, body=body, properties=properties)
    consumer = f"c-{names.group}"
    expression = "size BETWEEN 3 AND 8 AND kind IN ('odd')"
    client.call("consumer", name=consumer, group=names.group, topic=names.topic, sql=True, expression=expression)
    assert sorted(client.bodies(consumer, 3)) == ["m003", "m005", "m007"]
    client.call("stop", name=consumer)


@languages(*ALL)
def test_a_refused_message_comes_again_from_the_retry_topic(cluster: Cluster, client: Driver, language: str) -> None:
    names = Names(cluster, client, language, "retry")
    client.call("send", name=names.producer, topic=names.topic, body="again", tag="R", key="k")
    consumer = f"c-{names.group}"
    client.call("consumer", name=consumer, group=names.group, topic=names.topic, fail=2)
    client.wait(lambda: len(client.messages(consumer)) >= 3, "three attempts")
    got = client.messages(consumer)
    assert [message["times"] for message in got] == [0, 1, 2]
    assert {(message["topic"], message["body"], message["tag"]) for message in got} == {(names.topic, "again", "R")}
    assert cluster.stored(f"%RETRY%{names.group}", 1) == 2
    client.call("stop", name=consumer)


@languages(*ALL)
def test_a_message_that_is_always_refused_ends_with_the_dead_letters(
    cluster: Cluster, client: Driver, language: str
) -> None:
    names = Names(cluster, client, language, "dead")
    client.call("send", name=names.producer, topic=names.topic, body="poison")
    consumer = f"c-{names.group}"
    # The C++ client has no such setting: its messages are tried 16 times again.
    limit = {} if language == "cpp" else {"retries_max": 2}
    client.call("consumer", name=consumer, group=names.group, topic=names.topic, fail=-1, **limit)
    wait_until(lambda: cluster.stored(f"%DLQ%{names.group}", 1) == 1, "a dead letter", 120.0)
    assert len(client.messages(consumer)) == (17 if language == "cpp" else 3)
    client.call("stop", name=consumer)


@languages(*ALL)
def test_two_members_share_the_queues_and_one_takes_over(
    cluster: Cluster, client: Driver, language: str, folder: Path
) -> None:
    names = Names(cluster, client, language, "share")
    client.call("consumer", name=f"one-{names.group}", group=names.group, topic=names.topic)
    with driver(language, folder / "second", cluster) as second:
        second.call("consumer", name=f"two-{names.group}", group=names.group, topic=names.topic)
        sent: list[str] = []

        def both_have_some() -> bool:
            """Members find each other at their next rebalance; messages are sent until both are served."""
            sent.append(f"s{len(sent):03}")
            client.call("send", name=names.producer, topic=names.topic, body=sent[-1])
            time.sleep(0.2)
            return bool(second.messages(f"two-{names.group}")) and bool(client.messages(f"one-{names.group}"))

        wait_until(both_have_some, "a share for each", 90.0)
        second.kill()  # no word of farewell
    for body in numbered(8, "after"):
        client.call("send", name=names.producer, topic=names.topic, body=body)
    sent += numbered(8, "after")

    def everything() -> bool:
        got = {
            message["body"] for message in client.messages(f"one-{names.group}") + second.messages(f"two-{names.group}")
        }
        return set(sent) <= got

    client.wait(everything, "the messages of the dead member's queues", 120.0)
    client.call("stop", name=f"one-{names.group}")


@languages(*ALL)
def test_broadcast_gives_everything_to_everybody(cluster: Cluster, client: Driver, language: str, folder: Path) -> None:
    names = Names(cluster, client, language, "broadcast")
    consumer = f"c-{names.group}"
    arguments = {"group": names.group, "topic": names.topic, "broadcast": True}
    with driver(language, folder / "listener", cluster) as second:
        client.call("consumer", name=consumer, **arguments)
        second.call("consumer", name=consumer, **arguments)
        for body in numbered(8):
            client.call("send", name=names.producer, topic=names.topic, body=body)
        assert sorted(client.bodies(consumer, 8)) == numbered(8)
        assert sorted(second.bodies(consumer, 8)) == numbered(8)
    client.call("stop", name=consumer)


@languages(*ALL)
def test_a_large_compressible_body_arrives_whole(cluster: Cluster, client: Driver, language: str) -> None:
    names = Names(cluster, client, language, "large", compression=4096)
    body = "refmq " * 15_000
    client.call("send", name=names.producer, topic=names.topic, body=body)
    consumer = f"c-{names.group}"
    client.call("consumer", name=consumer, group=names.group, topic=names.topic)
    assert client.bodies(consumer, 1) == [body]
    client.call("stop", name=consumer)


@languages(*ALL)
def test_a_group_goes_on_where_it_was_after_the_broker_restarted(
    cluster: Cluster, client: Driver, language: str
) -> None:
    names = Names(cluster, client, language, "restart")
    for body in numbered(8, "before"):
        client.call("send", name=names.producer, topic=names.topic, body=body)
    client.call("consumer", name=f"first-{names.group}", group=names.group, topic=names.topic)
    client.bodies(f"first-{names.group}", 8)
    wait_until(lambda: cluster.committed(names.group, names.topic) == 8, "all offsets", SETTLE_S)
    client.call("stop", name=f"first-{names.group}")
    cluster.broker.stop()
    cluster.broker.start()
    assert cluster.committed(names.group, names.topic) == 8
    assert cluster.stored(names.topic) == 8
    for body in numbered(4, "after"):
        send_patiently(client, names, body)
    second = f"second-{names.group}"
    client.call("consumer", name=second, group=names.group, topic=names.topic)
    assert sorted(set(client.bodies(second, 4))) == numbered(4, "after")
    client.call("stop", name=second)


def send_patiently(client: Driver, names: Names, body: str) -> None:
    """Send until it is stored: a client may notice only now that its connection is gone."""

    def sent() -> bool:
        try:
            client.call("send", name=names.producer, topic=names.topic, body=body)
        except RefmqError:
            return False
        return True

    wait_until(sent, f"{body} sent", 60.0)


@languages(*GO_CPP)
def test_pulls_find_wait_and_are_corrected(cluster: Cluster, client: Driver, language: str) -> None:
    names = Names(cluster, client, language, "pull", sharding="yes")
    for body in numbered(10):
        how = {"how": "orderly", "queue": 2} if language == "cpp" else {"sharding": "x"}
        client.call("send", name=names.producer, topic=names.topic, body=body, tag="AB"[int(body[-1]) % 2], **how)
    queue = cluster.ends(names.topic).index(10)
    poller = f"p-{names.group}"
    client.call("poller", name=poller, group=names.group, topic=names.topic)
    where = {"name": poller, "topic": names.topic, "broker": "broker-a", "queue": queue}
    found = client.call("pull", offset=2, count=4, **where)
    assert found["status"] in (0, "FOUND")
    assert [message["body"] for message in found["messages"]] == ["m002", "m003", "m004", "m005"]
    assert (found["next"], found["min"], found["max"]) == (6, 0, 10)
    beyond = client.call("pull", offset=500, count=4, **where)
    assert beyond["status"] in (3, "OFFSET_ILLEGAL")
    assert beyond["next"] == 10


@languages(*ALL)
def test_a_client_lists_itself_with_its_language(cluster: Cluster, client: Driver, language: str) -> None:
    names = Names(cluster, client, language, "list")
    consumer = f"c-{names.group}"
    client.call("consumer", name=consumer, group=names.group, topic=names.topic)
    command = request(RequestCode.GET_CONSUMER_CONNECTION_LIST, {"consumerGroup": names.group})
    wait_until(lambda: ask(cluster.broker.address, command).code == 0, "a connection", SETTLE_S)
    body = ask(cluster.broker.address, command).body.decode()
    assert f'"{names.topic}"' in body
    assert consumer in body or language != "go"
    client.call("stop", name=consumer)
    wait_until(lambda: ask(cluster.broker.address, command).code != 0, "no connection", SETTLE_S)
