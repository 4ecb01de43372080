"""mqadmin says the same about our broker as about a real one in the same situation, for all of its daily commands."""

from __future__ import annotations

import re
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import pytest

from interop.jvm import Jvm
from interop.processes import wait_until
from interop.rocketmq import Clients
from interop.scene import Cluster, Scene, message, scene
from interop.tests.conftest import VERSIONS

SETTLE_S = 60.0
COUNT = 8  # two in each of four queues

# {broker}, {id}, {unique} and {folder} are put in: the broker's address, two ids of the first message, a new folder.
MAKE = (
    "updateTopic -c DefaultCluster -t {t} -r 4 -w 4",
    "updateTopic -b {broker} -t {t}-other -r 2 -w 2 -p 6",
    "updateSubGroup -c DefaultCluster -g {t}-group -r 3 -q 1",
    "updateSubGroup -b {broker} -g {t}-spare -s false",
)
LOOK = (
    "topicList",
    "topicList -c",
    "topicRoute -t {t}",
    "topicRoute -t {t}-unknown",
    "topicStatus -t {t}",
    "topicStatus -t {t}-other",
    "topicStatus -t {t}-unknown",
    "topicClusterList -t {t}",
    "clusterList",
    "clusterList -m",
    "brokerStatus -b {broker}",
    "consumerProgress -g {t}-group",
    "consumerProgress -g {t}-unknown",
    "consumerConnection -g {t}-live",
    "consumerConnection -g {t}-unknown",
    "producerConnection -g sender-{t} -t {t}",
    "producerConnection -g {t}-unknown -t {t}",
    "queryMsgById -i {id}{topic_of_5}",
    "queryMsgByKey -t {t} -k k3",
    "queryMsgByKey -t {t} -k nothing",
    "queryMsgByUniqueKey -t {t} -i {unique}",
    "queryMsgByOffset -t {t} -b broker-a -i 1 -o 1",
    "queryMsgByOffset -t {t} -b broker-a -i 1 -o 77",
    "printMsg -t {t} -d true",
    "printMsg -t {t} -s even",
    "printMsgByQueue -t {t} -a broker-a -i 1 -p true -d true",
    "consumeMessage -t {t} -b broker-a -i 1 -o 0 -c 1",
    "queryCq -t {t} -q 1 -i 0 -c 3 -b {broker}",
    "queryCq -t {t} -q 1 -i 0 -c 3 -b {broker} -g {t}-live",
    "queryCq -t {t} -q 1 -i 0 -c 3 -b {broker} -g {t}-unknown",
    "queryCq -t {t} -q 1 -i 9 -c 3 -b {broker}",
    "getConsumerConfig -g {t}-group",
    "getConsumerConfig -g {t}-spare",
    "allocateMQ -t {t} -i a,b",
    "brokerConsumeStats -b {broker} -o true",
    "producer -b {broker}",
    "consumerStatus -g {t}-unknown",
    "statsAll -t {t}",
    "exportMetadata -b {broker} -f {folder} -t",
    "exportMetadata -b {broker} -f {folder} -g",
    "exportMetadata -c DefaultCluster -f {folder}",
    "exportConfigs -c DefaultCluster -f {folder}",
    "exportMetrics -c DefaultCluster -f {folder}",
    "cleanUnusedTopic -b {broker}",
    "cleanExpiredCQ -b {broker}",
    "deleteExpiredCommitLog -b {broker}",
)
CHANGE = (
    "sendMessage -t {t} -p hello -k sent -c even -b broker-a -i 2",
    "queryMsgByKey -t {t} -k sent",
    "consumeMessage -t {t} -b broker-a -i 2 -o 2 -c 1",
    "cloneGroupOffset -s {t}-group -d {t}-copy -t {t}",
    "resetOffsetByTime -g {t}-group -t {t} -s 0",
    "consumerProgress -g {t}-group",
    "resetOffsetByTime -g {t}-group -t {t} -s now",
    "resetOffsetByTime -g {t}-unknown -t {t} -s now",
    "skipAccumulatedMessage -g {t}-group -t {t}",
    "updateTopicPerm -t {t} -p 4 -c DefaultCluster",
    "topicRoute -t {t}",
    "updateTopicPerm -t {t} -p 6 -b {broker}",
    "updateBrokerConfig -b {broker} -k brokerPermission -v 6",
    "checkMsgSendRT -t {t} -a 3 -s 10",
    "sendMsgStatus -b broker-a -s 10 -c 3",
    "deleteSubGroup -b {broker} -g {t}-spare",
    "getConsumerConfig -g {t}-spare",
    "deleteTopic -c DefaultCluster -t {t}-other",
    "topicRoute -t {t}-other",
    "topicList",
)


@dataclass(frozen=True)
class Sides:
    ours: Cluster
    real: Cluster


@pytest.fixture(scope="module")
def sides(folder: Path) -> Iterator[Sides]:
    names = ("broker-a",)
    with (
        Cluster(folder / "mqadmin-ours", names) as ours,
        Cluster(folder / "mqadmin-real", names, real=True) as real,
    ):
        yield Sides(ours, real)


def told(cluster: Cluster, jvm: Jvm, tag: str) -> dict[str, str]:
    """What the commands say of one cluster, with what was made and sent in it before."""
    answers: dict[str, str] = {}

    def ask(templates: tuple[str, ...], **values: str) -> None:
        for template in templates:
            broker = cluster.brokers["broker-a"]
            command = template.format(t=tag, broker=broker.address, folder=broker.folder / "exported", **values)
            key = template if template not in answers else f"{template} (again)"
            answers[key] = jvm.mqadmin(*command.split(), "-n", cluster.address)

    with scene(cluster, jvm, tag) as on:
        ask(MAKE)
        first = situation(on, tag)
        topic_of_5 = "" if jvm.version == "4.9.8" else f" -t {tag}"
        ask(LOOK, id=first["offsetId"], unique=first["id"], topic_of_5=topic_of_5)
        ask(CHANGE)
    return answers


def situation(on: Scene, tag: str) -> dict[str, str]:
    """Eight messages that one group has consumed and another one consumes."""
    producer = on.producer(f"sender-{tag}")
    sent = [
        producer.call(
            "send",
            message(tag, f"body {n}", tags=("even", "odd")[n % 2], keys=f"k{n}"),
            {"topic": tag, "broker": "broker-a", "queue": n % 4},
        )
        for n in range(COUNT)
    ]
    done = on.push(tag, group=f"{tag}-group")
    done.wait(COUNT)
    on.close(done)
    wait_until(lambda: on.cluster.committed(tag, f"{tag}-group") == COUNT, "the commit", SETTLE_S)
    live = on.push(tag, "even || odd", group=f"{tag}-live", kind="orderly")
    live.wait(COUNT)
    wait_until(lambda: on.cluster.committed(tag, f"{tag}-live") == COUNT, "the commit", SETTLE_S)
    first: dict[str, str] = sent[0]
    return first


def comparable(command: str, text: str) -> list[str]:
    """The output without what differs from one moment or broker to the next; lines stand in any order."""
    text = re.sub(r"^\s+(at |\.\.\. \d+ more).*\n", "", text, flags=re.MULTILINE)
    for pattern, word in (
        (r"127\.0\.0\.1:\d+", "ADDRESS"),
        (r"/\S+/exported/", "FOLDER/"),
        (r"\d{4}-\d\d-\d\d[ T]\d\d:\d\d:\d\d([,.]\d+)?", "TIME"),
        (r"\b[0-9A-F]{32,56}\b", "ID"),
        (r"\b1[78]\d{11}\b", "MILLISECONDS"),
        (r"\bV4_9_7\b", "V4_9_8"),  # the newest servers that are published, and the version that ours tells
        (r"\b(rt=\d+ms|RT: [\d.]+|TPS: [\d.]+)", "MEASURED"),
    ):
        text = re.sub(pattern, word, text)
    lines = [re.sub(r"\s+", " ", line).strip() for line in text.splitlines()]
    if command.startswith("brokerStatus"):  # numbers of machines and moments: which there are is compared
        lines = [line.split(":")[0].strip() for line in lines if not line.startswith("commitLogDiskRatio_")]
    if command.startswith("clusterList"):
        lines = [" ".join(line.split()[:5]) for line in lines]  # then rates and times
    if command.startswith("clusterList -m"):
        lines = [" ".join(line.split()[:2]) for line in lines]
    if command.startswith(("checkMsgSendRT", "statsAll")):  # then what depends on the moment
        lines = [" ".join(line.split()[:3]) for line in lines]
    # Whether a consumer of a few seconds has told its offset of the retry topic is a matter of luck.
    return sorted(line for line in lines if line and not line.startswith("%RETRY%"))


# mqadmin of 5.3.3 asks for more than a broker of 4.9 answers, and means another offset by a time: ours answers it as
# a broker of 5.x does.
BETTER_FOR_5 = ("resetOffsetByTime -g {t}-group -t {t} -s now", "skipAccumulatedMessage -g {t}-group -t {t}")


def same(version: str, command: str, ours: str, real: str) -> bool:
    if version == "5.3.3" and ("request type 351 not supported" in real or command in BETTER_FOR_5):
        return "Exception" not in ours
    if version == "5.3.3":
        real = real.replace("trackType=UNKNOWN", "trackType=CONSUMED")  # it comes from one of those requests
    return comparable(command, ours) == comparable(command, real)


@pytest.mark.parametrize("version", VERSIONS)
def test_mqadmin_hears_the_same_of_both_brokers(
    sides: Sides, jvms: dict[str, Jvm], clients: dict[str, Clients], version: str
) -> None:
    tag = f"Admin-{version.replace('.', '-')}"
    # Each side has a JVM of its own: mqadmin waits for its end most of the time, and so both wait at once.
    with Jvm(clients[version]) as other, ThreadPoolExecutor() as both:
        asked = both.submit(told, sides.ours, jvms[version], tag), both.submit(told, sides.real, other, tag)
        ours, real = (each.result() for each in asked)
    differences = [
        f"{command}\n--- ours\n{ours[command]}\n--- real\n{real[command]}"
        for command in ours
        if not same(version, command, ours[command], real[command])
    ]
    assert not differences, "\n".join(differences)
    assert "SEND_OK" in ours["sendMessage -t {t} -p hello -k sent -c even -b broker-a -i 2"]
    assert "body 5" in ours["printMsg -t {t} -d true"]


@pytest.mark.parametrize("version", VERSIONS)
def test_a_running_consumer_is_reset_asked_and_told(sides: Sides, jvms: dict[str, Jvm], version: str) -> None:
    cluster, jvm = sides.ours, jvms[version]
    with scene(cluster, jvm, f"Running-{version.replace('.', '-')}") as on:
        topic = on.topic(queues=2)
        producer = on.producer()
        sent = [producer.call("send", message(topic, str(n))) for n in range(6)]
        consumer = on.push(topic)
        consumer.wait(6)
        # An offset that was never committed cannot be reset.
        wait_until(lambda: cluster.committed(topic, on.group) == 6, "the commit", SETTLE_S)
        said = jvm.mqadmin("resetOffsetByTime", "-g", on.group, "-t", topic, "-s", "0", "-n", cluster.address)
        assert "Exception" not in said
        consumer.wait(12)
        assert sorted(consumer.bodies()) == sorted([str(n) for n in range(6)] * 2)
        client = re.search(r"\S+@\S+", jvm.mqadmin("consumerConnection", "-g", on.group, "-n", cluster.address))
        assert client is not None
        status = jvm.mqadmin("consumerStatus", "-g", on.group, "-i", client[0], "-n", cluster.address)
        assert topic in status
        again = ("queryMsgById", "-i", sent[0]["offsetId"], "-g", on.group, "-d", client[0], "-n", cluster.address)
        assert "CR_SUCCESS" in jvm.mqadmin(*again, *(() if version == "4.9.8" else ("-t", topic)))
        consumer.wait(13)
