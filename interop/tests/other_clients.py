"""What the tests of clients in other languages share: a cluster, the drivers, and a few questions to the broker."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from interop.drivers import Driver, cpp_driver, go_driver, node_driver
from interop.ours import OurBroker, OurNameserver, ask, has_route
from interop.processes import wait_until
from interop.rocketmq import Broker, Nameserver
from refmq.errors import MissingTool
from refmq.protocol.codes import RequestCode, ResponseCode
from refmq.protocol.command import request

PROGRAMS = {"go": go_driver, "node": node_driver, "cpp": cpp_driver}

ROUTE_TIMEOUT_S = 30.0

# Retries and delays after a second each, and check-backs soon: the clients' part in them is what is tested here.
EAGER = {
    "messageDelayLevel": " ".join(["1s"] * 18),
    "enablePropertyFilter": "true",
    "traceTopicEnable": "true",
    "transactionCheckInterval": "1000",
    "transactionTimeOut": "1000",
}

_numbers = itertools.count(1)


@dataclass(frozen=True)
class Cluster:
    """A nameserver and its brokers, ours or the real ones."""

    nameserver: OurNameserver | Nameserver
    brokers: tuple[OurBroker | Broker, ...]

    @property
    def broker(self) -> OurBroker | Broker:
        return self.brokers[0]

    def topic(self, name: str, queues: int = 4) -> str:
        """A new topic on every broker, known to the nameserver."""
        topic = f"{name}{next(_numbers)}"
        self.create(topic, queues)
        return topic

    def group(self, name: str) -> str:
        """A new group. Its retry topic is made at once: a client would not look for it again for half a minute."""
        group = f"{name}{next(_numbers)}"
        self.create(f"%RETRY%{group}", 1)
        return group

    def create(self, topic: str, queues: int) -> None:
        create_topic(self.nameserver.address, [broker.address for broker in self.brokers], topic, queues)

    def stored(self, topic: str, queues: int = 4) -> int:
        """How many messages the topic has, in all its queues on all brokers that are there."""
        return sum(self.ends(topic, queues))

    def ends(self, topic: str, queues: int = 4) -> list[int]:
        return [
            int(
                ask(
                    broker.address, request(RequestCode.GET_MAX_OFFSET, {"topic": topic, "queueId": str(queue)})
                ).fields["offset"]
            )
            for broker in self.brokers
            for queue in range(queues)
        ]

    def committed(self, group: str, topic: str, queues: int = 4) -> int:
        return committed([broker.address for broker in self.brokers], group, topic, queues)


def create_topic(nameserver: str, brokers: Sequence[str], topic: str, queues: int = 4) -> None:
    """Make a topic on brokers, and wait until the nameserver knows of it."""
    fields = {
        "topic": topic,
        "defaultTopic": "TBW102",
        "readQueueNums": str(queues),
        "writeQueueNums": str(queues),
        "perm": "6",
        "topicFilterType": "SINGLE_TAG",
        "topicSysFlag": "0",
        "order": "false",
    }
    for broker in brokers:
        answer = ask(broker, request(RequestCode.UPDATE_AND_CREATE_TOPIC, fields))
        assert answer.code == ResponseCode.SUCCESS, answer.remark
    wait_until(lambda: has_route(nameserver, topic), f"a route of {topic}", ROUTE_TIMEOUT_S)


def committed(brokers: Sequence[str], group: str, topic: str, queues: int = 4) -> int:
    """The sum of a group's offsets; a queue without one counts nothing."""
    found = 0
    for broker in brokers:
        for queue in range(queues):
            fields = {"consumerGroup": group, "topic": topic, "queueId": str(queue)}
            answer = ask(broker, request(RequestCode.QUERY_CONSUMER_OFFSET, fields))
            found += int(answer.fields["offset"]) if answer.code == ResponseCode.SUCCESS else 0
    return found


@contextmanager
def running_cluster(folder: Path, *, real: bool, masters: int = 1) -> Iterator[Cluster]:
    nameserver = Nameserver(folder / "namesrv") if real else OurNameserver(folder / "namesrv")
    make = Broker if real else OurBroker
    with nameserver:
        brokers = tuple(
            make(folder / name, nameserver.address, name=name, settings=EAGER)
            for name in (f"broker-{chr(ord('a') + number)}" for number in range(masters))
        )
        try:
            for broker in brokers:
                broker.start()
            yield Cluster(nameserver, brokers)
        finally:
            for broker in brokers:
                broker.stop()


def languages(*names: str) -> pytest.MarkDecorator:
    """Runs a case with the client of each language."""
    both = [pytest.param(name, name, id=name) for name in names]
    return pytest.mark.parametrize(("language", "client"), both, indirect=["client"])


class Fixtures:
    """The fixtures `cluster` and `client` of a file: one cluster, and one process for each language, which is started
    when it is first wanted and kept for the next case. A file takes them as its own:

        fixtures = Fixtures("unusual", masters=2)
        cluster, drivers, client = fixtures.cluster, fixtures.drivers, fixtures.client
    """

    def __init__(self, name: str, *, masters: int = 1) -> None:
        @pytest.fixture(scope="module")
        def cluster(folder: Path, pytestconfig: pytest.Config) -> Iterator[Cluster]:
            real = pytestconfig.getoption("--broker") == "real"
            with running_cluster(folder / name, real=real, masters=masters) as started:
                yield started

        @pytest.fixture(scope="module")
        def drivers(cluster: Cluster) -> Iterator[dict[str, Driver]]:
            started: dict[str, Driver] = {}
            yield started
            for one in started.values():
                one.stop()

        @pytest.fixture
        def client(
            request: pytest.FixtureRequest, folder: Path, cluster: Cluster, drivers: dict[str, Driver]
        ) -> Driver:
            language = request.param
            if language not in drivers:
                drivers[language] = driver(language, folder / f"{name}-drivers", cluster)
            return drivers[language]

        self.cluster, self.drivers, self.client = cluster, drivers, client


def driver(language: str, folder: Path, cluster: Cluster) -> Driver:
    """A driver of a language; the test is skipped with one line where its client cannot be had."""
    try:
        command = PROGRAMS[language]()
    except MissingTool as missing:
        pytest.skip(f"the {language} client was not tried: {missing}")
    return Driver(command, folder / f"{language}-{next(_numbers)}", cluster.nameserver.address)
