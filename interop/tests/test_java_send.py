"""Producers of the Java client: everything that can be sent arrives as it was."""

from __future__ import annotations

import pytest

from interop.jvm import JavaError
from interop.processes import wait_until
from interop.scene import Scene, counts, message, numbered, queue

COUNT = 24


def test_sync(on: Scene) -> None:
    topic = on.topic()
    producer = on.producer()
    sent = [
        producer.call("send", message(topic, f"body {n}", tags="t", keys=f"k{n} other", properties={"n": n, "ü": "ß"}))
        for n in range(COUNT)
    ]
    assert {each["status"] for each in sent} == {"SEND_OK"}
    assert len({each["id"] for each in sent}) == len({each["offsetId"] for each in sent}) == COUNT
    assert {queue(each) for each in sent} == {(broker, n) for broker in on.cluster.brokers for n in range(4)}
    got = {each["id"]: each for each in on.push(topic).wait(COUNT)}
    for n, each in enumerate(sent):
        seen = got[each["id"]]
        assert (seen["body"], seen["tags"], seen["keys"]) == (f"body {n}", "t", f"k{n} other")
        assert (queue(seen), seen["offset"]) == (queue(each), each["offset"])
        assert (seen["properties"]["n"], seen["properties"]["ü"]) == (str(n), "ß")
        assert seen["properties"]["CLUSTER"] == "DefaultCluster"


def test_async(on: Scene) -> None:
    topic = on.topic()
    producer = on.producer()
    for each in numbered(topic, COUNT):
        producer.call("send", each, {"callback": producer.name})
    results = producer.wait(COUNT, "sent")
    assert {each["status"] for each in results} == {"SEND_OK"}
    got = on.push(topic).wait(COUNT)
    assert {each["id"] for each in got} == {each["id"] for each in results}


def test_one_way(on: Scene) -> None:
    topic = on.topic()
    producer = on.producer()
    for each in numbered(topic, COUNT):
        producer.call("sendOneway", each)
    got = on.push(topic).wait(COUNT)
    assert sorted(int(each["body"]) for each in got) == list(range(COUNT))


def test_batch(on: Scene) -> None:
    topic = on.topic()
    producer = on.producer()
    sent = producer.call("send", [message(topic, f"b{n}", tags=f"t{n % 2}", keys=f"k{n}") for n in range(10)])
    assert sent["status"] == "SEND_OK"
    assert len(sent["id"].split(",")) == len(sent["offsetId"].split(",")) == 10
    got = on.push(topic, "t1").wait(5)
    assert sorted((each["body"], each["offset"]) for each in got) == [
        (f"b{n}", sent["offset"] + n) for n in range(1, 10, 2)
    ]
    assert {queue(each) for each in got} == {queue(sent)}
    for n, offset_id in enumerate(sent["offsetId"].split(",")):
        assert producer.call("viewMessage", topic, offset_id)["body"] == f"b{n}"


def test_batch_to_a_queue_and_async_batch(on: Scene) -> None:
    topic = on.topic()
    producer = on.producer()
    where = {"topic": topic, "broker": "broker-b", "queue": 2}
    assert queue(producer.call("send", numbered(topic, 5), where)) == ("broker-b", 2)
    producer.call("send", numbered(topic, 5), {"callback": producer.name})
    producer.wait(1, "sent")
    assert counts([each["body"] for each in on.push(topic).wait(10)]) == counts([str(n) for n in range(5)] * 2)


def test_ordered_by_a_selector(on: Scene) -> None:
    topic = on.topic()
    producer = on.producer()
    chosen: dict[str, set[tuple[str, int]]] = {}
    for step in range(6):
        for order in ("red", "green", "blue"):
            sent = producer.call("send", message(topic, f"{order} {step}"), {"hash": True}, order)
            chosen.setdefault(order, set()).add(queue(sent))
    assert all(len(queues) == 1 for queues in chosen.values())
    got = on.push(topic, kind="orderly").wait(18)
    for order in ("red", "green", "blue"):
        assert [e["body"] for e in got if e["body"].startswith(order)] == [f"{order} {step}" for step in range(6)]


def test_delayed(on: Scene) -> None:
    topic = on.topic()
    consumer = on.push(topic)
    wait_until(lambda: len(consumer.owned()) == 8, "all queues", 60)
    producer = on.producer()
    for level in (2, 1, 0):
        assert producer.call("send", message(topic, f"level {level}", delay=level))["status"] == "SEND_OK"
    consumer.wait(3)
    arrived = {each.value["body"]: each for each in on.jvm.events if each.name == consumer.name}
    waits = {body: each.at - each.value["born"] for body, each in arrived.items()}
    assert waits["level 1"] >= 1000 and waits["level 2"] >= 3000
    assert consumer.bodies() == ["level 0", "level 1", "level 2"]


def test_a_delay_level_beyond_the_last_is_the_last(on: Scene) -> None:
    topic = on.topic()
    consumer = on.push(topic)
    on.producer().call("send", message(topic, "far", delay=99))
    (got,) = consumer.wait(1)
    assert got["properties"]["DELAY"] == "18"


def test_large_and_compressed(on: Scene) -> None:
    topic = on.topic()
    producer = on.producer()
    random = {"topic": topic, "size": 4_000_000, "random": True}
    zeros = {"topic": topic, "size": 2_000_000}
    batch = [{"topic": topic, "size": 1000 * n, "random": True} for n in range(1, 6)]
    for each in (random, zeros, batch):
        assert producer.call("send", each)["status"] == "SEND_OK"
    with pytest.raises(JavaError) as refused:
        producer.call("send", {"topic": topic, "size": 5 << 20, "random": True})
    assert refused.value.code == 13
    got = on.push(topic).wait(7)
    assert sorted(each["size"] for each in got) == [1000, 2000, 3000, 4000, 5000, 2_000_000, 4_000_000]
    stored = {each["size"]: each["storeSize"] for each in got}
    assert stored[2_000_000] < 100_000 < stored[4_000_000]


@pytest.mark.parametrize("algorithm", ["LZ4", "ZSTD", "ZLIB"])
def test_compressions_of_5(on: Scene, algorithm: str) -> None:
    if on.jvm.version == "4.9.8":
        pytest.skip("4.9 knows zlib only")
    topic = on.topic()
    producer = on.producer(compressType=algorithm)
    producer.call("send", {"topic": topic, "size": 100_000, "tags": "x"})
    (got,) = on.push(topic, "x").wait(1)
    assert got["storeSize"] < 10_000 < got["size"] == 100_000


def test_a_topic_that_nobody_made(on: Scene) -> None:
    topic = f"{on.tag}-auto"
    producer = on.producer(defaultTopicQueueNums=3)
    sent = [producer.call("send", each) for each in numbered(topic, 12)]
    assert {queue(each)[1] for each in sent} <= {0, 1, 2}
    wait_until(lambda: bool(on.cluster.masters(topic)), "route", 60)
    assert len(on.push(topic).wait(12)) == 12


def test_a_topic_that_may_not_be_written(on: Scene) -> None:
    topic = on.topic(perm=4)
    with pytest.raises(JavaError) as refused:
        on.producer(retryTimesWhenSendFailed=0).call("send", message(topic, "no"))
    assert refused.value.code == 10005, "the client finds no queue to write to"


def test_namespaces(on: Scene) -> None:
    plain_topic = f"{on.tag}-t"
    on.cluster.make_topic(f"space%{plain_topic}")
    on.cluster.make_topic(plain_topic)
    inside = on.producer(namespace="space")
    outside = on.producer()
    inside.call("send", message(plain_topic, "inside"))
    outside.call("send", message(plain_topic, "outside"))
    (got,) = on.push(plain_topic, namespace="space").wait(1)
    assert (got["body"], got["topic"]) == ("inside", plain_topic)
    (got,) = on.push(plain_topic, group=f"{on.group}-2").wait(1)
    assert got["body"] == "outside"


def test_request_and_reply(on: Scene) -> None:
    topic = on.topic()
    producer = on.producer()
    replier = on.producer(group=f"{on.tag}-replier")
    on.push(topic, policy={"reply": replier.name})
    for n in range(5):
        producer.call("request", message(topic, f"q{n}"), {"callback": producer.name}, 20_000)
    # Callbacks are called with nothing when the question was sent, and again with the answer.
    producer.wait(lambda replies: len(list(filter(None, replies))) == 5, "reply")
    answers = sorted(reply["body"] for reply in producer.events("reply") if reply)
    assert answers == [f"answer to q{n}" for n in range(5)]
    if on.jvm.version == "4.9.8":  # 5.3.3 gives up as soon as the question was sent, unless the answer was faster
        assert producer.call("request", message(topic, "now"), 20_000)["body"] == "answer to now"


def test_a_request_that_nobody_answers(on: Scene) -> None:
    topic = on.topic()
    with pytest.raises(JavaError) as silence:
        on.producer().call("request", message(topic, "hello?"), 1500)
    assert silence.value.kind == "RequestTimeoutException"


def test_many_at_once(on: Scene) -> None:
    topic = on.topic()
    consumer = on.push(topic, consumeMessageBatchMaxSize=8, pullBatchSize=64)
    producer = on.producer()
    for each in numbered(topic, 400):
        on.jvm.submit("call", name=producer.name, method="send", arguments=[each, {"callback": producer.name}])
    producer.wait(lambda results: len(results) == 400, "sent")
    assert producer.events("failed") == []
    consumer.wait(lambda got: len({each["body"] for each in got}) == 400)


def test_signed_requests_are_served_by_a_broker_that_asks_for_no_signature(on: Scene) -> None:
    topic = on.topic()
    keys = {"accessKey": "someone", "secretKey": "of no importance"}
    producer = on.producer(more=(keys,))
    for each in numbered(topic, 5):
        assert producer.call("send", each)["status"] == "SEND_OK"
    strategy = "org.apache.rocketmq.client.consumer.rebalance.AllocateMessageQueueAveragely"
    assert len(on.push(topic, more=(keys, strategy)).wait(5)) == 5


def test_a_client_makes_a_topic(on: Scene) -> None:
    topic = f"{on.tag}-made"
    producer = on.producer()
    producer.call("createTopic", "TBW102", topic, 3, *(() if on.jvm.version == "4.9.8" else ({},)))
    wait_until(lambda: on.cluster.masters(topic) == set(on.cluster.brokers), "route", 60)
    assert len(producer.call("fetchPublishMessageQueues", topic)) == 6
