"""Clients of other languages with two masters in one cluster: queues of both are used, and one of them may die."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from interop.drivers import Driver
from interop.processes import wait_until
from interop.tests.other_clients import Cluster, driver, running_cluster
from refmq.errors import RefmqError


@pytest.fixture(params=["go", "node", "cpp"])
def language(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def cluster(folder: Path, language: str, pytestconfig: pytest.Config) -> Iterator[Cluster]:
    real = pytestconfig.getoption("--broker") == "real"
    with running_cluster(folder / f"two-masters-{language}", real=real, masters=2) as started:
        yield started


@pytest.fixture
def client(folder: Path, language: str, cluster: Cluster) -> Iterator[Driver]:
    with driver(language, folder / "two-masters-drivers", cluster) as started:
        yield started


def test_both_masters_are_used_and_the_death_of_one_loses_nothing(cluster: Cluster, client: Driver) -> None:
    topic, group = cluster.topic("two", 2), cluster.group("two")
    client.call("producer", name="p", group="two-producers")
    client.call("consumer", name="c", group=group, topic=topic)
    acknowledged: list[str] = []

    def sent(body: str) -> bool:
        try:
            client.call("send", name="p", topic=topic, body=body)
        except RefmqError:
            return False
        acknowledged.append(body)
        return True

    for number in range(16):
        assert sent(f"before{number:02}")
    first, second = (sum(ends) for ends in (cluster.ends(topic, 2)[:2], cluster.ends(topic, 2)[2:]))
    assert first > 0 and second > 0, (first, second)
    client.bodies("c", 16)
    cluster.brokers[0].kill()
    for number in range(8):
        wait_until(lambda body=f"during{number:02}": sent(body), "a send to the other master", 90.0)  # type: ignore[misc]
    assert set(acknowledged) <= set(client.bodies("c", len(acknowledged)))
    cluster.brokers[0].start()
    for number in range(8):
        wait_until(lambda body=f"after{number:02}": sent(body), "a send after the restart", 90.0)  # type: ignore[misc]
    assert set(acknowledged) <= set(client.bodies("c", len(acknowledged)))
    assert cluster.stored(topic, 2) >= len(acknowledged)
