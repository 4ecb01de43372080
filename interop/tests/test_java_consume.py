"""Push, pull and lite pull consumers of the Java client."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable
from functools import partial

import pytest

from interop.jvm import JavaError, Json, Remote
from interop.processes import wait_until
from interop.scene import Scene, message, numbered, poll_all, queue

QUIET_S = 2.0  # longer than a delay level and a pull: what has not come by then does not come
SETTLE_S = 60.0


def send(on: Scene, messages: list[dict[str, Json]]) -> list[Json]:
    producer = on.producer()
    sent = [producer.call("send", each) for each in messages]
    assert {each["status"] for each in sent} == {"SEND_OK"}
    on.close(producer)
    return sent


def has(message_id: str, messages: list[Json]) -> bool:
    return any(each["id"] == message_id for each in messages)


def numbers(consumer: Remote) -> Counter[int]:
    return Counter(int(body) for body in consumer.bodies())


def nothing_more(count: Callable[[], int]) -> None:
    """Nothing comes for a while: the count stays."""
    before = count()
    time.sleep(QUIET_S)
    assert count() == before


# Groups ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["concurrent", "orderly"])
def test_clustering_shares(on: Scene, kind: str) -> None:
    topic = on.topic()
    consumers = [on.push(topic, kind=kind) for _ in range(2)]
    wait_until(lambda: all(len(each.owned()) == 4 for each in consumers), "an even share", SETTLE_S)
    send(on, numbered(topic, 40))
    wait_until(lambda: sum(numbers(each).total() for each in consumers) >= 40, "all messages", SETTLE_S)
    both = numbers(consumers[0]) + numbers(consumers[1])
    assert set(both) == set(range(40))
    assert min(numbers(each).total() for each in consumers) > 0
    assert consumers[0].owned().isdisjoint(consumers[1].owned())


def test_broadcasting_gives_everything_to_everybody(on: Scene) -> None:
    topic = on.topic()
    consumers = [on.push(topic, messageModel="BROADCASTING") for _ in range(2)]
    send(on, numbered(topic, 20))
    for each in consumers:
        each.wait(20)
        assert numbers(each) == Counter(range(20))


@pytest.mark.parametrize("strategy", ["AllocateMessageQueueAveragelyByCircle", "AllocateMessageQueueConsistentHash"])
def test_other_strategies_share_too(on: Scene, strategy: str) -> None:
    topic = on.topic()
    name = f"org.apache.rocketmq.client.consumer.rebalance.{strategy}"
    consumers = [on.push(topic, allocateMessageQueueStrategy=name) for _ in range(3)]

    def settled() -> bool:
        owned = [each.owned() for each in consumers]
        return len(set().union(*owned)) == 8 == sum(map(len, owned))

    wait_until(settled, "each queue with one owner", SETTLE_S)
    send(on, numbered(topic, 24))
    wait_until(lambda: len(set().union(*map(numbers, consumers))) == 24, "all messages", SETTLE_S)


def test_offsets_survive_a_restart_of_the_consumer(on: Scene) -> None:
    topic = on.topic()
    send(on, numbered(topic, 10))
    first = on.push(topic)
    first.wait(10)
    on.close(first)
    assert on.cluster.committed(topic, on.group) == 10
    send(on, [message(topic, str(n)) for n in range(10, 15)])
    second = on.push(topic)
    second.wait(5)
    nothing_more(lambda: numbers(second).total())
    assert numbers(second) == Counter(range(10, 15))


@pytest.mark.parametrize("where", ["FIRST_OFFSET", "LAST_OFFSET", "TIMESTAMP"])
def test_a_new_group_begins_at_the_start_of_a_young_queue(on: Scene, where: str) -> None:
    # Whatever the client asks for: while nothing of a queue was deleted, a broker calls 0 the offset of a new group.
    topic = on.topic()
    send(on, numbered(topic, 8))
    consumer = on.push(topic, consumeFromWhere=f"CONSUME_FROM_{where}")
    consumer.wait(8)
    assert numbers(consumer) == Counter(range(8))


def test_a_consumer_pauses(on: Scene) -> None:
    topic = on.topic()
    consumer = on.push(topic)
    wait_until(lambda: len(consumer.owned()) == 8, "all queues", SETTLE_S)
    consumer.call("suspend")
    send(on, numbered(topic, 16))
    nothing_more(lambda: numbers(consumer).total())
    consumer.call("resume")
    consumer.wait(16)
    assert numbers(consumer) == Counter(range(16))


# Filters ----------------------------------------------------------------------------------------------------


def test_tags(on: Scene) -> None:
    topic = on.topic()
    consumers = {tags: on.push(topic, tags, group=f"{on.group}-{n}") for n, tags in enumerate(("a", "a || b", "*"))}
    send(on, [message(topic, str(n), tags=("a", "b", "c")[n % 3]) for n in range(12)] + [message(topic, "12")])
    wanted = {"a": range(0, 12, 3), "a || b": [n for n in range(12) if n % 3 < 2], "*": range(13)}
    for tags, consumer in consumers.items():
        consumer.wait(len(wanted[tags]))
        assert numbers(consumer) == Counter(wanted[tags])


def test_tags_of_one_hash_are_told_apart(on: Scene) -> None:
    topic = on.topic()
    send(on, [message(topic, "0", tags="Aa"), message(topic, "1", tags="BB"), message(topic, "2", tags="Aa")])
    consumer = on.push(topic, "Aa")
    consumer.wait(2)
    nothing_more(lambda: numbers(consumer).total())
    assert numbers(consumer) == Counter([0, 2])


SQL = {
    "n > 5 AND color = 'red'": [n for n in range(6, 20) if n % 2],
    "n BETWEEN 3 AND 6 OR n IN ('10', '11')": [3, 4, 5, 6, 10, 11],
    "color IS NULL": [20],
    "TAGS IS NOT NULL AND NOT (n < 18)": [18, 19],
}


@pytest.mark.parametrize("expression", SQL, ids=range(len(SQL)))
def test_sql92(on: Scene, expression: str) -> None:
    topic = on.topic()
    color = ("blue", "red")
    messages = [message(topic, str(n), tags="t", properties={"n": n, "color": color[n % 2]}) for n in range(20)]
    send(on, [*messages, message(topic, "20")])
    consumer = on.push(topic, {"sql": expression})
    consumer.wait(len(SQL[expression]))
    nothing_more(lambda: numbers(consumer).total())
    assert numbers(consumer) == Counter(SQL[expression])


def test_sql92_that_does_not_compile_is_refused_at_the_start(on: Scene) -> None:
    topic = on.topic()
    with pytest.raises(JavaError) as refused:
        on.push(topic, {"sql": "n > > 5"})
    assert refused.value.code == 23


def test_a_waiting_pull_wakes_for_its_tag(on: Scene) -> None:
    topic = on.topic(queues=1, only=("broker-a",))
    consumer = on.push(topic, "yes")
    wait_until(lambda: bool(consumer.owned()), "a queue", SETTLE_S)
    producer = on.producer()
    for n in range(5):
        producer.call("send", message(topic, "no", tags="no"))
        sent = producer.call("send", message(topic, str(n), tags="yes"))
        consumer.wait(partial(has, sent["id"]))


# Failing ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("how", ["later", "throw", "null"])
def test_a_message_that_fails_comes_again(on: Scene, how: str) -> None:
    topic = on.topic()
    (sent,) = send(on, [message(topic, "0", tags="t", keys="k", properties={"mine": "kept"})])
    consumer = on.push(topic, "t", policy={"fail": 2, "how": how})
    got = consumer.wait(3)
    assert [each["times"] for each in got] == [0, 1, 2]
    assert {each["id"] for each in got} == {sent["id"]}
    # The client shows a retry under its first topic.
    assert {(each["topic"], each["tags"], each["keys"], each["properties"]["mine"]) for each in got} == {
        (topic, "t", "k", "kept")
    }
    nothing_more(lambda: len(consumer.events()))


def test_a_retry_waits_for_its_delay_level(on: Scene) -> None:
    topic = on.topic()
    send(on, numbered(topic, 1))
    consumer = on.push(topic, policy={"fail": 1, "delay": 2})
    consumer.wait(2)
    first, second = (each.at for each in on.jvm.events if each.name == consumer.name)
    assert second - first >= 3000


def test_dead_letters(on: Scene) -> None:
    topic = on.topic()
    sent = send(on, numbered(topic, 3))
    consumer = on.push(topic, policy={"fail": 99}, maxReconsumeTimes=2)
    consumer.wait(9)
    dead = f"%DLQ%{on.group}"
    wait_until(lambda: on.cluster.stored(dead) == 3, "three dead letters", SETTLE_S)
    assert Counter(each["times"] for each in consumer.events()) == {0: 3, 1: 3, 2: 3}
    reader = on.push(dead, group=f"{on.group}-undertaker")
    got = reader.wait(3)
    # A client that gets a message back under another topic knows it by the property, not by its id.
    assert {each["properties"]["UNIQ_KEY"] for each in got} == {each["id"] for each in sent}
    nothing_more(lambda: len(consumer.events()))


def test_a_delay_of_minus_one_is_a_dead_letter_at_once(on: Scene) -> None:
    topic = on.topic()
    send(on, numbered(topic, 2))
    consumer = on.push(topic, policy={"fail": 99, "delay": -1})
    wait_until(lambda: on.cluster.stored(f"%DLQ%{on.group}") == 2, "two dead letters", SETTLE_S)
    nothing_more(lambda: len(consumer.events()))
    assert {each["times"] for each in consumer.events()} == {0}


def test_an_orderly_queue_waits_for_its_first_message(on: Scene) -> None:
    topic = on.topic(queues=1, only=("broker-a",))
    send(on, numbered(topic, 5))
    consumer = on.push(topic, kind="orderly", policy={"fail": 2, "delay": 100})
    got = consumer.wait(15)
    assert [int(each["body"]) for each in got] == [n for n in range(5) for _ in range(3)]
    assert [each["times"] for each in got] == [0, 1, 2] * 5


def test_an_orderly_message_that_always_fails_is_a_dead_letter_in_the_end(on: Scene) -> None:
    topic = on.topic(queues=1, only=("broker-a",))
    send(on, numbered(topic, 1))
    on.push(topic, kind="orderly", policy={"fail": 99, "delay": 50}, maxReconsumeTimes=2)
    wait_until(lambda: on.cluster.stored(f"%DLQ%{on.group}") == 1, "a dead letter", SETTLE_S)


def test_broadcasting_drops_what_fails(on: Scene) -> None:
    topic = on.topic()
    send(on, numbered(topic, 2))
    consumer = on.push(topic, messageModel="BROADCASTING", policy={"fail": 99})
    consumer.wait(2)
    nothing_more(lambda: len(consumer.events()))


# Pull ----------------------------------------------------------------------------------------------------


def test_pull(on: Scene) -> None:
    topic = on.topic(queues=2, only=("broker-a",))
    producer = on.producer(sendMsgTimeout=60_000)  # a retry of a late send would be one message more
    for n in range(20):
        where = {"topic": topic, "broker": "broker-a", "queue": n % 2}
        producer.call("send", message(topic, str(n), tags=f"t{n % 4 // 2}", properties={"n": n}), where)
    consumer = on.pull()
    queues = consumer.call("fetchSubscribeMessageQueues", topic)
    assert {(each["broker"], each["queue"]) for each in queues} == {("broker-a", 0), ("broker-a", 1)}
    where = {"topic": topic, "broker": "broker-a", "queue": 0}
    found = consumer.call("pull", where, "*", 0, 32)
    assert (found["status"], found["min"], found["max"], found["next"]) == ("FOUND", 0, 10, 10)
    assert [each["offset"] for each in found["messages"]] == list(range(10))
    assert len(consumer.call("pull", where, "*", 0, 3)["messages"]) == 3
    tagged = consumer.call("pull", where, "t1", 0, 32)
    assert {each["tags"] for each in tagged["messages"]} == {"t1"}
    assert consumer.call("pull", where, "nothing", 0, 32)["status"] == "NO_MATCHED_MSG"
    assert consumer.call("pull", where, "*", 10, 32)["status"] == "NO_NEW_MSG"
    illegal = consumer.call("pull", where, "*", 11, 32)
    assert (illegal["status"], illegal["next"]) == ("OFFSET_ILLEGAL", 10)
    consumer.call("pull", where, "*", 4, 1, {"callback": consumer.name})
    (called,) = consumer.wait(1, "pulled")
    assert [each["offset"] for each in called["messages"]] == [4]
    with pytest.raises(JavaError) as refused:
        consumer.call("pull", {**where, "queue": 7}, "*", 0, 32)
    assert refused.value.code == 1


def test_pull_by_sql92(on: Scene) -> None:
    topic = on.topic(queues=1, only=("broker-a",))
    send(on, [message(topic, str(n), properties={"n": n}) for n in range(20)])
    consumer = on.pull()
    consumer.call("fetchSubscribeMessageQueues", topic)
    where = {"topic": topic, "broker": "broker-a", "queue": 0}

    def pulled() -> list[int] | None:
        try:
            found = consumer.call("pull", where, {"sql": "n >= 10"}, 0, 32)
        except JavaError as error:
            if "does not upgrade" in str(error):  # the client learns from its first heartbeat that the broker can do it
                return None
            raise
        return [int(each["body"]) for each in found["messages"]]

    wait_until(lambda: pulled() is not None, "a heartbeat", SETTLE_S)
    assert pulled() == list(range(10, 20))


def test_pull_waits_until_something_comes(on: Scene) -> None:
    topic = on.topic(queues=1, only=("broker-a",))
    consumer = on.pull()
    where = {"topic": topic, "broker": "broker-a", "queue": 0}
    waiting = on.jvm.submit("call", name=consumer.name, method="pullBlockIfNotFound", arguments=[where, "*", 0, 32])
    time.sleep(0.5)
    assert not waiting.done()
    send(on, numbered(topic, 1))
    assert [each["body"] for each in waiting.result(SETTLE_S)["messages"]] == ["0"]


def test_pull_commits_and_sends_back(on: Scene) -> None:
    topic = on.topic(queues=1, only=("broker-a",))
    send(on, numbered(topic, 3))
    consumer = on.pull()
    where = {"topic": topic, "broker": "broker-a", "queue": 0}
    found = consumer.call("pull", where, "*", 0, 32)["messages"]
    consumer.call("updateConsumeOffset", where, 3)
    consumer.call("persist", where)
    wait_until(lambda: on.cluster.committed(topic, on.group) == 3, "the commit", SETTLE_S)
    consumer.call("sendMessageBack", {"received": found[1]["id"]}, 1)
    wait_until(lambda: on.cluster.stored(f"%RETRY%{on.group}") == 1, "the retry", SETTLE_S)


# Lite pull ----------------------------------------------------------------------------------------------------


def test_lite_pull_by_subscription(on: Scene) -> None:
    topic = on.topic()
    send(on, [message(topic, str(n), tags=("a", "b")[n % 2]) for n in range(20)])
    lite = on.lite(autoCommit=False)
    lite.call("subscribe", topic, "a")
    lite.start()
    got = poll_all(lite, 10)
    assert Counter(int(each["body"]) for each in got) == Counter(range(0, 20, 2))
    lite.call("commitSync")
    on.close(lite)
    again = on.lite()
    again.call("subscribe", topic, "a")
    again.start()
    send(on, [message(topic, "99", tags="a")])
    assert [each["body"] for each in poll_all(again, 1)] == ["99"]


def test_lite_pull_shares_and_filters_by_sql(on: Scene) -> None:
    topic = on.topic()
    both = [on.lite(), on.lite()]
    for each in both:
        each.call("subscribe", topic, {"sql": "n < 10"})
        each.start()
    wait_until(lambda: all(len(each.call("assignment")) == 4 for each in both), "an even share", SETTLE_S)
    send(on, [message(topic, str(n), properties={"n": n}) for n in range(20)])
    got: Counter[int] = Counter()

    def poll() -> int:
        for each in both:
            got.update(int(found["body"]) for found in each.call("poll", 300))
        return got.total()

    wait_until(lambda: poll() >= 10, "all messages", SETTLE_S)
    nothing_more(poll)
    assert got == Counter(range(10))


def test_lite_pull_by_assignment(on: Scene) -> None:
    topic = on.topic(queues=2, only=("broker-a",))
    sent = send(on, numbered(topic, 20))
    lite = on.lite(autoCommit=False).start()
    queues = sorted(lite.call("fetchMessageQueues", topic), key=lambda each: int(each["queue"]))
    assert len(queues) == 2
    lite.call("assign", queues[:1])
    mine = [n for n, each in enumerate(sent) if queue(each) == ("broker-a", 0)]
    assert [int(each["body"]) for each in poll_all(lite, len(mine))] == mine
    lite.call("seek", queues[0], 3)
    assert [int(each["body"]) for each in poll_all(lite, len(mine) - 3)] == mine[3:]
    lite.call("commitSync", {"pairs": [[queues[0], 5]]}, True)
    wait_until(lambda: lite.call("committed", queues[0]) == 5, "the commit", SETTLE_S)
    lite.call("seekToBegin", queues[0])
    assert [int(each["body"]) for each in poll_all(lite, len(mine))] == mine
    lite.call("seekToEnd", queues[0])
    assert lite.call("poll", 500) == []
    lite.call("pause", queues[:1])
    producer = on.producer()
    producer.call("send", message(topic, "20"), queues[0])
    lite.call("poll", 1000)  # a pull that was waiting when the queue was paused still brings its message
    producer.call("send", message(topic, "21"), queues[0])
    assert lite.call("poll", 1000) == []
    lite.call("resume", queues[:1])
    assert [each["body"] for each in poll_all(lite, 1)] == ["21"]
    with pytest.raises(JavaError):
        lite.call("seek", queues[0], 1000)
    assert lite.call("offsetForTimestamp", queues[0], 0) == 0
