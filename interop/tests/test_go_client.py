"""What of the other clients only the Go client has: transactions, request-reply, polling, administration."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from interop.drivers import Driver
from interop.processes import wait_until
from interop.tests.other_clients import Cluster, driver, running_cluster
from refmq.errors import RefmqError

SETTLE_S = 30.0


@pytest.fixture(scope="module")
def cluster(folder: Path, pytestconfig: pytest.Config) -> Iterator[Cluster]:
    real = pytestconfig.getoption("--broker") == "real"
    with running_cluster(folder / "go-client", real=real) as started:
        yield started


@pytest.fixture(scope="module")
def go(folder: Path, cluster: Cluster) -> Iterator[Driver]:
    with driver("go", folder / "go-drivers", cluster) as started:
        yield started


def bodies(count: int) -> list[str]:
    return [f"m{number:02}" for number in range(count)]


def test_a_transaction_is_seen_when_it_is_committed_and_never_when_it_is_not(cluster: Cluster, go: Driver) -> None:
    topic, group = cluster.topic("go-tx"), cluster.group("go-tx")
    go.call("producer", name="tx", group="go-tx-producers", how="transaction")
    half = {"name": "tx", "topic": topic, "tag": "TX", "key": "k"}
    go.call("transaction", body="committed", decision="commit", **half)
    go.call("transaction", body="rolled back", decision="rollback", **half)
    go.call("transaction", body="asked, committed", decision="unknown", check="commit", **half)
    go.call("transaction", body="asked, rolled back", decision="unknown", check="rollback", **half)
    go.call("transaction", body="asked, unknown", decision="unknown", check="unknown", **half)
    go.call("consumer", name="tx-consumer", group=group, topic=topic)
    go.bodies("tx-consumer", 2)
    go.wait(lambda: len([e for e in go.events("check") if e["body"] == "asked, unknown"]) >= 2, "two questions")
    checked = {event["body"] for event in go.events("check")}
    assert checked == {"asked, committed", "asked, rolled back", "asked, unknown"}
    got = go.messages("tx-consumer")
    assert sorted(message["body"] for message in got) == ["asked, committed", "committed"]
    assert {(message["topic"], message["tag"]) for message in got} == {(topic, "TX")}
    go.call("stop", name="tx-consumer")
    go.call("stop", name="tx")


def test_another_producer_of_the_group_answers_for_a_dead_one(cluster: Cluster, go: Driver, folder: Path) -> None:
    topic, group = cluster.topic("go-heir"), cluster.group("go-heir")
    producers = f"{topic}-producers"
    with driver("go", folder / "go-doomed", cluster) as doomed:
        doomed.call("producer", name="doomed", group=producers, how="transaction")
        doomed.call("transaction", name="doomed", topic=topic, body="inherited", decision="unknown", check="unknown")
        doomed.kill()
    go.call("producer", name="heir", group=producers, how="transaction")
    go.call("transaction", name="heir", topic=topic, body="own", decision="commit")
    go.wait(lambda: "inherited" in {event["body"] for event in go.events("check")}, "a question")
    go.call("consumer", name="heir-consumer", group=group, topic=topic)
    assert go.bodies("heir-consumer", 1) == ["own"]
    go.call("stop", name="heir-consumer")
    go.call("stop", name="heir")


def test_a_request_gets_its_reply(cluster: Cluster, go: Driver) -> None:
    topic, group = cluster.topic("go-request", 1), cluster.group("go-request")
    go.call("producer", name="asker", group="go-askers")
    # The asker tells the broker of itself with its next heartbeat; a message before makes it known now.
    go.call("send", name="asker", topic=topic, body="hello")
    go.call("consumer", name="answerer", group=group, topic=topic, reply=True)

    def answered() -> bool:
        """The Go client registers an asker only when a route changes, so its first replies may find nobody."""
        try:
            return bool(go.call("request", name="asker", topic=topic, body="six?", timeout_s=5)["body"] == "re: six?")
        except RefmqError:
            return False

    wait_until(answered, "a reply", 90.0)
    go.call("stop", name="answerer")
    go.call("stop", name="asker")


def test_a_polling_consumer_gets_everything_and_commits(cluster: Cluster, go: Driver) -> None:
    topic, group = cluster.topic("go-poll"), cluster.group("go-poll")
    go.call("producer", name="poll-producer", group="go-poll-producers")
    for body in bodies(12):
        go.call("send", name="poll-producer", topic=topic, body=body)
    go.call("poller", name="poller", group=group, topic=topic)
    got: list[str] = []
    while len(got) < 12:
        found = go.call("poll", name="poller", timeout_s=20)["messages"]
        assert found, f"only {got} came"
        got += [message["body"] for message in found]
    assert sorted(got) == bodies(12)
    go.call("stop", name="poller")
    wait_until(lambda: cluster.committed(group, topic) == 12, "all offsets", SETTLE_S)


def test_topics_are_made_listed_and_deleted(cluster: Cluster, go: Driver) -> None:
    broker = cluster.broker.address
    go.call("create", topic="go-made", broker=broker, queues=6)
    assert "go-made" in go.call("topics")["topics"]
    assert sorted(go.call("queues", topic="go-made")["queues"]) == list(range(6))
    assert "TOOLS_CONSUMER" in go.call("groups", broker=broker)["groups"]
    go.call("delete", topic="go-made")
    assert "go-made" not in go.call("topics")["topics"]
