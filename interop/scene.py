"""What a test of clients needs: a cluster, ours or a real one, and clients that are gone when the test is over."""

from __future__ import annotations

import contextlib
import json
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from interop.jvm import Json, Jvm, Remote
from interop.ours import OurBroker, OurNameserver, ask
from interop.processes import wait_until
from interop.rocketmq import Broker, Nameserver
from refmq.errors import NetworkError
from refmq.protocol import fastjson
from refmq.protocol.codes import RequestCode, ResponseCode
from refmq.protocol.command import request

SETTLE_S = 60.0

QUICK = {
    # Eighteen levels as always, but a retry, which starts at the third one, takes a second.
    "messageDelayLevel": "1s 3s 1s 1s 1s 1s 1s 1s 1s 1s 1s 1s 1s 1s 1s 1s 1s 1s",
    "transactionTimeOut": "1000",
    "transactionCheckInterval": "1000",
    "enablePropertyFilter": "true",
    "traceTopicEnable": "true",
}
"""Settings with which nothing takes longer than it must."""


class Cluster:
    """A nameserver and masters: refmq's, or with ``real`` those of RocketMQ 4.9.7."""

    def __init__(
        self,
        folder: Path,
        names: tuple[str, ...] = ("broker-a", "broker-b"),
        settings: Mapping[str, str] | None = None,
        real: bool = False,
        address: str | None = None,
        known: str = "TBW102",
    ) -> None:
        """``known`` is a topic that every broker has from the start: one that is registered tells that it is up."""
        self._known = known
        self.nameserver: OurNameserver | Nameserver
        self.nameserver = Nameserver(folder / "names") if real else OurNameserver(folder / "names")
        self.address = address or self.nameserver.address  # one that is given belongs to servers that others run
        kind = Broker if real else OurBroker
        merged = {**QUICK, **(settings or {})}
        self.brokers: dict[str, Broker | OurBroker] = {
            name: kind(folder / name, self.nameserver.address, name, merged) for name in names
        }

    def __enter__(self) -> Cluster:
        self.nameserver.start()
        for broker in self.brokers.values():
            broker.start()
        wait_until(lambda: len(self.masters(self._known)) == len(self.brokers), "registration of all", SETTLE_S)
        return self

    def __exit__(self, *_: object) -> None:
        for broker in self.brokers.values():
            broker.stop()
        self.nameserver.stop()

    def masters(self, topic: str) -> set[str]:
        """The brokers that the nameserver names for a topic."""
        answer = ask(self.address, request(RequestCode.GET_ROUTEINFO_BY_TOPIC, {"topic": topic}))
        if answer.code != ResponseCode.SUCCESS:
            return set()
        return {each["brokerName"] for each in plain(fastjson.parse(answer.body or b""))["brokerDatas"]}

    def make_topic(self, topic: str, queues: int = 4, perm: int = 6, only: tuple[str, ...] | None = None) -> str:
        """Create a topic on the brokers and wait until it is known."""
        names = only or tuple(self.brokers)
        fields = {
            "topic": topic,
            "defaultTopic": "TBW102",
            "readQueueNums": str(queues),
            "writeQueueNums": str(queues),
            "perm": str(perm),
            "topicFilterType": "SINGLE_TAG",
            "topicSysFlag": "0",
            "order": "false",
        }
        for name in names:
            answer = ask(self.brokers[name].address, request(RequestCode.UPDATE_AND_CREATE_TOPIC, fields))
            assert answer.code == ResponseCode.SUCCESS, answer
        wait_until(lambda: self.masters(topic) >= set(names), f"route of {topic}", SETTLE_S)
        return topic

    def make_group(self, group: str, **settings: object) -> str:
        """Create or change a consumer group on every broker."""
        body = json.dumps({"groupName": group, **settings}).encode()
        for broker in self.brokers.values():
            command = request(RequestCode.UPDATE_AND_CREATE_SUBSCRIPTIONGROUP, {}, body=body)
            assert ask(broker.address, command).code == ResponseCode.SUCCESS
        return group

    def committed(self, topic: str, group: str) -> int:
        """The sum of a group's offsets over all queues of a topic, as far as brokers are there."""
        total = 0
        for broker in self.brokers.values():
            for queue in range(self._queues(broker.address, topic)):
                fields = {"consumerGroup": group, "topic": topic, "queueId": str(queue)}
                answer = ask(broker.address, request(RequestCode.QUERY_CONSUMER_OFFSET, fields))
                if answer.code == ResponseCode.SUCCESS:
                    total += int((answer.ext_fields or {})["offset"])
        return total

    def stored(self, topic: str) -> int:
        """How many messages of a topic the brokers have."""
        return sum(
            int((ask(each.address, request(RequestCode.GET_MAX_OFFSET, field)).ext_fields or {})["offset"])
            for each in self.brokers.values()
            for field in ({"topic": topic, "queueId": str(q)} for q in range(self._queues(each.address, topic)))
        )

    def _queues(self, address: str, topic: str) -> int:
        answer = ask(self.address, request(RequestCode.GET_ROUTEINFO_BY_TOPIC, {"topic": topic}))
        if answer.code != ResponseCode.SUCCESS:
            return 0
        route = plain(fastjson.parse(answer.body or b""))
        names = {each["brokerName"] for each in route["brokerDatas"] if address in each["brokerAddrs"].values()}
        return max((each["readQueueNums"] for each in route["queueDatas"] if each["brokerName"] in names), default=0)

    def alive(self, name: str) -> bool:
        try:
            ask(self.brokers[name].address, request(RequestCode.GET_BROKER_RUNTIME_INFO, {}), 2.0)
        except NetworkError:
            return False
        return True


def plain(value: Any) -> Any:
    """Fastjson's dialect as ordinary dictionaries and lists."""
    if isinstance(value, fastjson.JsonObject):
        return {str(key): plain(item) for key, item in value.members}
    if isinstance(value, fastjson.JsonArray):
        return [plain(item) for item in value.items]
    return value


def message(topic: str, body: str, **fields: Json) -> dict[str, Json]:
    """A message to send: ``tags``, ``keys``, ``delay``, ``properties``."""
    return {"topic": topic, "body": body, **fields}


def numbered(topic: str, count: int, **fields: Json) -> list[dict[str, Json]]:
    """Messages with the bodies 0, 1, 2 ... and the keys key-0, key-1 ..."""
    return [message(topic, str(number), keys=f"key-{number}", **fields) for number in range(count)]


def queue(sent: Json) -> tuple[str, int]:
    """Broker and queue of the result of a send, or of a message that came."""
    inner = sent["queue"]
    return (inner["broker"], inner["queue"]) if isinstance(inner, dict) else (sent["broker"], inner)


def counts(bodies: list[str]) -> Counter[str]:
    return Counter(bodies)


@dataclass
class Scene:
    """One test: names that no other test uses, and clients that are shut down at its end."""

    cluster: Cluster
    jvm: Jvm
    tag: str
    _open: list[Remote] = field(default_factory=list)
    _made: int = 0

    def topic(self, suffix: str = "", queues: int = 4, only: tuple[str, ...] | None = None, perm: int = 6) -> str:
        return self.cluster.make_topic(f"{self.tag}{suffix}", queues, perm, only)

    @property
    def group(self) -> str:
        return f"group-{self.tag}"

    def _client(self, kind: str, arguments: list[Json], options: Mapping[str, Json], jvm: Jvm | None) -> Remote:
        self._made += 1
        options = {"namesrvAddr": self.cluster.address, "instanceName": f"{self.tag}-{self._made}", **options}
        remote = (jvm or self.jvm).new(kind, arguments, options)
        if jvm is None:
            self._open.append(remote)  # the others end with their JVM
        return remote

    def producer(
        self,
        group: str | None = None,
        kind: str = "DefaultMQProducer",
        more: tuple[Json, ...] = (),
        jvm: Jvm | None = None,
        **options: Json,
    ) -> Remote:
        """A producer that is started. ``more`` are further arguments of the constructor."""
        settings = {"sendMsgTimeout": 10_000, **options}
        return self._client(kind, [group or f"sender-{self.tag}", *more], settings, jvm).start()

    def push(
        self,
        topic: str,
        expression: Json = "*",
        kind: str = "concurrent",
        group: str | None = None,
        more: tuple[Json, ...] = (),
        policy: Mapping[str, Json] | None = None,
        jvm: Jvm | None = None,
        **options: Json,
    ) -> Remote:
        """A push consumer that is started."""
        settings = {
            "consumeFromWhere": "CONSUME_FROM_FIRST_OFFSET",
            "consumeThreadMin": 4,
            "consumeThreadMax": 4,
            "suspendCurrentQueueTimeMillis": 200,
            "awaitTerminationMillisWhenShutdown": 5000,  # so that what was consumed last is committed too
            **options,
        }
        remote = self._client("DefaultMQPushConsumer", [group or self.group, *more], settings, jvm)
        remote.call("subscribe", topic, expression)
        remote.jvm.run("listen", name=remote.name, kind=kind, policy=dict(policy or {}))
        return remote.start()

    def pull(self, **options: Json) -> Remote:
        return self._client("DefaultMQPullConsumer", [self.group], options, None).start()

    def lite(self, group: str | None = None, **options: Json) -> Remote:
        """A lite pull consumer, not started: what it subscribes to or is assigned comes first."""
        settings = {"consumeFromWhere": "CONSUME_FROM_FIRST_OFFSET", **options}
        return self._client("DefaultLitePullConsumer", [group or self.group], settings, None)

    def close(self, remote: Remote) -> None:
        """Shut a client down before the end of the test."""
        self._open.remove(remote)
        remote.close()

    def close_all(self) -> None:
        for remote in reversed(self._open):
            remote.close()
        self._open.clear()


@contextlib.contextmanager
def scene(cluster: Cluster, jvm: Jvm, tag: str) -> Iterator[Scene]:
    current = Scene(cluster, jvm, tag)
    try:
        yield current
    finally:
        current.close_all()


def poll_all(lite: Remote, count: int, timeout_s: float = SETTLE_S) -> list[Json]:
    """Poll a lite pull consumer until it has brought so many messages."""
    found: list[Json] = []

    def enough() -> bool:
        found.extend(lite.call("poll", 500))
        return len(found) >= count

    wait_until(enough, f"{count} messages", timeout_s)
    return found
