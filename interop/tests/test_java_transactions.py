"""Transactional messages of the Java client: committed ones come once, rolled back ones never, and doubts are asked."""

from __future__ import annotations

import time
from collections import Counter

from interop.jvm import Jvm, Remote
from interop.processes import wait_until
from interop.rocketmq import Clients
from interop.scene import Scene, message

QUIET_S = 3.0  # several check rounds
SETTLE_S = 60.0

COMMIT, ROLLBACK, UNKNOWN = "COMMIT_MESSAGE", "ROLLBACK_MESSAGE", "UNKNOW"


def send(producer: Remote, topic: str, body: str, decide: str, check: str = UNKNOWN) -> None:
    properties = {"decide": decide, "check": check}
    sent = producer.call("sendMessageInTransaction", message(topic, body, keys=body, properties=properties), None)
    assert (sent["status"], sent["decision"]) == ("SEND_OK", decide)


def test_commit_and_rollback(on: Scene) -> None:
    topic = on.topic()
    producer = on.producer(kind="TransactionMQProducer")
    consumer = on.push(topic)
    for n in range(10):
        send(producer, topic, str(n), ROLLBACK if n % 2 else COMMIT)
    consumer.wait(5)
    time.sleep(QUIET_S)
    assert Counter(consumer.bodies()) == Counter(["0", "2", "4", "6", "8"])
    assert producer.events("check") == []
    assert {each["topic"] for each in consumer.events()} == {topic}


def test_doubts_are_asked(on: Scene) -> None:
    topic = on.topic()
    producer = on.producer(kind="TransactionMQProducer")
    consumer = on.push(topic)
    send(producer, topic, "yes", UNKNOWN, COMMIT)
    send(producer, topic, "no", UNKNOWN, ROLLBACK)
    send(producer, topic, "perhaps", UNKNOWN, UNKNOWN)
    consumer.wait(1)
    producer.wait(lambda checks: [each["keys"] for each in checks].count("perhaps") >= 3, "check")
    time.sleep(QUIET_S)
    assert consumer.bodies() == ["yes"]
    asked = Counter(each["keys"] for each in producer.events("check"))
    assert asked["yes"] == asked["no"] == 1
    # The body and the properties that are asked about are those that were sent.
    assert {each["properties"]["check"] for each in producer.events("check") if each["keys"] == "no"} == {ROLLBACK}


def test_another_producer_of_the_group_answers_for_a_dead_one(on: Scene, clients: dict[str, Clients]) -> None:
    topic = on.topic()
    group = f"heirs-{on.tag}"
    with Jvm(clients[on.jvm.version]) as mortal:
        doomed = on.producer(group, kind="TransactionMQProducer", jvm=mortal)
        send(doomed, topic, "inherited", UNKNOWN, UNKNOWN)
        send(doomed, topic, "dropped", UNKNOWN, UNKNOWN)
        mortal.kill()
    heir = on.producer(group, kind="TransactionMQProducer")
    # A producer is known to a broker by its heartbeats, and those go to brokers that it knows a topic of.
    send(heir, topic, "own", COMMIT)
    consumer = on.push(topic)
    wait_until(lambda: {each["keys"] for each in heir.events("check")} >= {"inherited", "dropped"}, "checks", SETTLE_S)
    assert consumer.wait(1)[0]["body"] == "own"
