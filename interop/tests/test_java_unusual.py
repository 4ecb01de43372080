"""Java clients in situations that are allowed but not usual. With --broker real the same cases ask the real 4.9.7."""

from __future__ import annotations

import time
from collections import Counter

import pytest

from interop.jvm import JavaError, Json, Jvm, Remote
from interop.processes import wait_until
from interop.rocketmq import Clients
from interop.scene import Scene, message, numbered, poll_all, queue

QUIET_S = 2.0
SETTLE_S = 60.0
LEVELS = 18
LARGEST = 4 * 1024 * 1024


def send(on: Scene, messages: list[dict[str, Json]], **options: Json) -> list[Json]:
    producer = on.producer(**options)
    sent = [producer.call("send", each) for each in messages]
    assert {each["status"] for each in sent} == {"SEND_OK"}
    on.close(producer)
    return sent


def bodies(*consumers: Remote) -> Counter[str]:
    return sum((Counter(each.bodies()) for each in consumers), Counter())


def one_owner_each(queues: int, *consumers: Remote) -> None:
    def settled() -> bool:
        owned = [each.owned() for each in consumers]
        return sum(map(len, owned)) == queues == len(set().union(*owned))

    wait_until(settled, "one owner of each queue", SETTLE_S)


# What is sent ---------------------------------------------------------------------------------------------------------


def test_the_vip_channel(on: Scene) -> None:
    """Clients that use it connect to the port two below the broker's own, except for pulls."""
    topic = on.topic()
    send(on, numbered(topic, 8), vipChannelEnabled=True)
    consumer = on.push(topic, vipChannelEnabled=True, policy={"fail": 1})
    consumer.wait(16)
    orderly = on.push(topic, kind="orderly", group=f"{on.group}-orderly", vipChannelEnabled=True)
    orderly.wait(8)
    on.close(consumer)
    wait_until(lambda: on.cluster.committed(topic, on.group) == 8, "the commit", SETTLE_S)


def test_other_letters_in_keys_tags_and_properties(on: Scene) -> None:
    topic = on.topic()
    keys, tag = "ключ-1 鍵 🔑 a%20b", "étiquette-标签"
    properties = {"名前": "値 = \"'; {}", "emoji": "🐇"}
    (sent,) = send(on, [message(topic, "тело 体 🐘", tags=tag, keys=keys, properties=properties)])
    got = on.push(topic, tag).wait(1)[0]
    assert (got["id"], got["body"], got["tags"], got["keys"]) == (sent["id"], "тело 体 🐘", tag, keys)
    assert {name: got["properties"][name] for name in properties} == properties
    by_sql = on.push(topic, {"sql": f"TAGS = '{tag}'"}, group=f"{on.group}-sql").wait(1)
    assert {each["id"] for each in by_sql} == {sent["id"]}
    asker = on.producer()

    def found(key: str) -> list[str]:
        try:
            return [each["id"] for each in asker.call("queryMessage", topic, key, 8, 0, 2**61)]
        except JavaError:  # nothing is indexed yet, or a busy broker was too late
            return []

    for key in keys.split():
        wait_until(lambda key=key: found(key) == [sent["id"]], f"the message by {key}", SETTLE_S)  # type: ignore[misc]


@pytest.mark.parametrize("size", [0, 1, 4096, LARGEST - 1, LARGEST, LARGEST + 1])
def test_bodies_of_every_size_up_to_the_limit(on: Scene, size: int) -> None:
    topic = on.topic()
    # What is random does not become smaller by compression, but larger; and the client has a limit of its own.
    producer = on.producer(retryTimesWhenSendFailed=0, compressMsgBodyOverHowmuch=1 << 30, maxMessageSize=1 << 30)
    what = {"topic": topic, "size": size, "random": True}
    if size in (0, LARGEST + 1):
        with pytest.raises(JavaError) as refused:
            producer.call("send", what)
        assert refused.value.code == 13
        return
    producer.call("send", what)
    (got,) = on.push(topic).wait(1)
    assert got["size"] == size


def test_properties_up_to_their_limit(on: Scene) -> None:
    topic = on.topic()
    producer = on.producer(retryTimesWhenSendFailed=0)
    producer.call("send", message(topic, "much", properties={"much": "x" * 32_000}))
    with pytest.raises(JavaError) as refused:
        producer.call("send", message(topic, "too much", properties={"much": "x" * 33_000}))
    assert refused.value.code == 13
    (got,) = on.push(topic).wait(1)
    assert len(got["properties"]["much"]) == 32_000


def test_every_delay_level(on: Scene) -> None:
    topic = on.topic()
    consumer = on.push(topic)
    send(on, [message(topic, str(level), delay=level) for level in range(1, LEVELS + 1)])
    got = consumer.wait(LEVELS)
    assert {each["body"]: each["properties"]["DELAY"] for each in got} == {str(n): str(n) for n in range(1, LEVELS + 1)}


def test_a_batch_may_not_be_delayed_or_mixed(on: Scene) -> None:
    topic, other = on.topic(), on.topic("-other")
    producer = on.producer()
    for wrong in (
        [message(topic, "a", delay=1), message(topic, "b")],
        [message(topic, "a"), message(other, "b")],
        [message(f"%RETRY%{on.group}", "a")],
        [message(topic, "a"), message(topic, "b", set={"waitStoreMsgOK": False})],
    ):
        with pytest.raises(JavaError):
            producer.call("send", wrong)
    assert on.cluster.stored(topic) == 0


def test_a_batch_of_a_thousand(on: Scene) -> None:
    topic = on.topic()
    sent = on.producer().call("send", [message(topic, str(n), tags="ab"[n % 2]) for n in range(1000)])
    assert len(sent["offsetId"].split(",")) == 1000
    assert bodies_of(on.push(topic, "b", consumeMessageBatchMaxSize=32).wait(500)) == {
        str(n) for n in range(1, 1000, 2)
    }


def bodies_of(messages: list[Json]) -> set[str]:
    return {each["body"] for each in messages}


def test_wrong_names_are_refused(on: Scene) -> None:
    producer = on.producer(retryTimesWhenSendFailed=0)
    for topic in ("with space", "with/slash", "x" * 128, "SCHEDULE_TOPIC_XXXX", ""):
        with pytest.raises(JavaError):
            producer.call("send", message(topic, "no"))
    with pytest.raises(JavaError):
        on.push("any", group="with space")


def test_a_name_as_long_as_may_be(on: Scene) -> None:
    topic = (f"{on.tag}-" + "t" * 127)[:127]
    on.cluster.make_topic(topic)
    send(on, numbered(topic, 3))
    group = (f"{on.tag}-" + "g" * 120)[:120]
    consumer = on.push(topic, group=group, policy={"fail": 1})
    consumer.wait(6)
    assert set(consumer.bodies()) == {"0", "1", "2"}


def test_timers_come_at_once_for_clients_of_5(on: Scene) -> None:
    if on.jvm.version == "4.9.8":
        pytest.skip("4.9 has delay levels only")
    topic = on.topic()
    later = {"delayTimeMs": 3_600_000}
    send(on, [message(topic, "later", set=later)])
    on.push(topic).wait(1)


def test_a_message_that_need_not_be_stored_durably(on: Scene) -> None:
    topic = on.topic()
    send(on, [message(topic, "fast", set={"waitStoreMsgOK": False, "flag": 7})])
    (got,) = on.push(topic).wait(1)
    assert "WAIT" not in got["properties"], "the broker keeps the wish to itself"


def test_unit_mode(on: Scene) -> None:
    """A topic that such a producer makes is a unit topic, and its groups' retry topics carry the mark too."""
    topic = f"{on.tag}-unit"
    send(on, numbered(topic, 4), unitMode=True, unitName="u1")
    wait_until(lambda: bool(on.cluster.masters(topic)), "route", SETTLE_S)
    consumer = on.push(topic, unitMode=True, unitName="u1", policy={"fail": 1})
    consumer.wait(8)
    said = on.jvm.mqadmin("topicRoute", "-t", topic, "-n", on.cluster.address)
    assert '"topicSysFlag":1' in said or '"topicSynFlag":1' in said


def test_namespaces_reach_retries_dead_letters_and_transactions(on: Scene) -> None:
    topic = f"{on.tag}-n"
    on.cluster.make_topic(f"space%{topic}")
    producer = on.producer(namespace="space", kind="TransactionMQProducer")
    properties = {"decide": "COMMIT_MESSAGE", "check": "UNKNOW"}
    producer.call("sendMessageInTransaction", message(topic, "t", properties=properties), None)
    producer.call("send", message(topic, "d", delay=1))
    consumer = on.push(topic, namespace="space", policy={"fail": 99}, maxReconsumeTimes=1)
    consumer.wait(4)
    dead = f"%DLQ%space%{on.group}"
    wait_until(lambda: on.cluster.stored(dead) == 2, "the dead letters", SETTLE_S)
    assert {each["topic"] for each in consumer.events()} == {topic}


def test_an_answer_that_comes_too_late(on: Scene) -> None:
    topic = on.topic()
    replier = on.producer(group=f"{on.tag}-replier")
    consumer = on.push(topic, policy={"reply": replier.name, "sleep": 3000})
    asker = on.producer()
    with pytest.raises(JavaError):
        asker.call("request", message(topic, "hurry"), 1000)
    consumer.wait(1)
    send(on, [message(topic, "after")])
    consumer.wait(2)


def test_a_question_to_one_queue(on: Scene) -> None:
    topic = on.topic()
    replier = on.producer(group=f"{on.tag}-replier")
    consumer = on.push(topic, policy={"reply": replier.name})
    asker = on.producer()
    where = {"topic": topic, "broker": "broker-b", "queue": 3}
    asker.call("request", message(topic, "here?"), where, {"callback": asker.name}, 20_000)
    asker.wait(lambda replies: any(each and each["body"] == "answer to here?" for each in replies), "reply")
    assert queue(consumer.events()[0]) == ("broker-b", 3)


# Who consumes ---------------------------------------------------------------------------------------------------------


def test_more_consumers_than_queues(on: Scene) -> None:
    topic = on.topic(queues=2)
    many = [on.push(topic) for _ in range(7)]
    one_owner_each(4, *many)
    send(on, numbered(topic, 20))
    wait_until(lambda: set(bodies(*many)) == {str(n) for n in range(20)}, "all messages", SETTLE_S)
    assert sum(1 for each in many if each.owned()) == 4
    for each in many[:5]:
        on.close(each)
    one_owner_each(4, *many[5:])
    send(on, [message(topic, f"later {n}") for n in range(8)])
    wait_until(lambda: bodies(*many)["later 7"] >= 1, "the later ones", SETTLE_S)


@pytest.mark.parametrize("kind", ["concurrent", "orderly"])
def test_a_consumer_changes_its_mind_about_tags(on: Scene, kind: str) -> None:
    topic = on.topic()
    consumer = on.push(topic, "a", kind=kind)
    producer = on.producer()
    for n in range(4):
        producer.call("send", message(topic, f"a{n}", tags="a"))
    consumer.wait(4)
    consumer.call("subscribe", topic, "a || b")

    def b_comes() -> bool:
        producer.call("send", message(topic, "b", tags="b"))
        time.sleep(0.2)
        return "b" in consumer.bodies()

    wait_until(b_comes, "the other tag", SETTLE_S)
    assert Counter(body for body in consumer.bodies() if body != "b") == Counter(f"a{n}" for n in range(4))


def test_a_second_topic_and_one_less(on: Scene) -> None:
    first, second = on.topic("-1"), on.topic("-2")
    consumer = on.push(first)
    consumer.call("subscribe", second, "*")
    send(on, numbered(first, 4) + numbered(second, 4))
    consumer.wait(8)
    consumer.call("unsubscribe", first)
    wait_until(lambda: {topic for topic, _, _ in consumer.owned()} == {second}, "one topic", SETTLE_S)
    send(on, [message(first, "unheard"), message(second, "heard")])
    consumer.wait(9)
    time.sleep(QUIET_S)
    assert bodies(consumer)["unheard"] == 0


def test_members_with_different_subscriptions(on: Scene) -> None:
    """A mistake of the application: the broker believes the latest heartbeat. Nothing is given that nobody wants."""
    topic = on.topic()
    a, b = on.push(topic, "a"), on.push(topic, "b")
    one_owner_each(8, a, b)
    send(on, [message(topic, tag, tags=tag) for tag in "abc" for _ in range(8)])
    time.sleep(QUIET_S)
    assert set(a.bodies()) <= {"a"} and set(b.bodies()) <= {"b"}


def test_members_with_different_topics(on: Scene) -> None:
    """The same mistake with topics: each member takes its share of every queue of the other's topic, and drops it."""
    first, second = on.topic("-1"), on.topic("-2")
    a, b = on.push(first), on.push(second)
    wait_until(lambda: len(a.owned()) == 4 == len(b.owned()), "half of the queues", SETTLE_S)
    send(on, numbered(first, 16) + numbered(second, 16))
    # Each heartbeat of one takes the topic of the other away, and a pull that is refused is tried again seconds later.
    wait_until(lambda: a.bodies() != [] != b.bodies(), "what they own", 3 * SETTLE_S)
    assert {each["topic"] for each in a.events()} == {first}
    assert {each["topic"] for each in b.events()} == {second}


def test_two_processes_under_one_name(on: Scene, clients: dict[str, Clients]) -> None:
    """The same client id twice, a mistake: both take the share of the first of two, and nobody that of the second."""
    topic = on.topic()
    with Jvm(clients[on.jvm.version]) as other:
        names: dict[str, Json] = {"instanceName": f"same-{on.tag}", "clientIP": "127.0.0.1"}
        one, two = on.push(topic, **names), on.push(topic, jvm=other, **names)
        wait_until(lambda: one.owned() == two.owned() and len(one.owned()) == 4, "the same half at both", SETTLE_S)
        send(on, numbered(topic, 16))
        wait_until(lambda: bool(set(one.bodies()) & set(two.bodies())), "a message at both", SETTLE_S)
        other.kill()
    one.wait(lambda got: len({m["body"] for m in got}) == 16)  # the half of the second as well


def test_the_same_group_twice_in_one_client(on: Scene) -> None:
    topic = on.topic()
    on.push(topic, instanceName=f"one-{on.tag}")
    with pytest.raises(JavaError) as refused:
        on.push(topic, instanceName=f"one-{on.tag}")
    assert refused.value.kind == "MQClientException"


def test_an_orderly_broadcast(on: Scene) -> None:
    topic = on.topic(queues=2, only=("broker-a",))
    both = [on.push(topic, kind="orderly", messageModel="BROADCASTING") for _ in range(2)]
    send(on, numbered(topic, 12))
    for each in both:
        each.wait(12)
        for number in (0, 1):
            mine = [m["offset"] for m in each.events() if m["queue"] == number]
            assert mine == sorted(mine)


def test_a_part_of_what_came_at_once_fails(on: Scene) -> None:
    topic = on.topic(queues=1, only=("broker-a",))
    on.producer().call("send", numbered(topic, 8))
    policy = {"ack": 2}
    consumer = on.push(topic, policy=policy, consumeMessageBatchMaxSize=8)
    wait_until(lambda: set(consumer.bodies()) == {str(n) for n in range(8)}, "all", SETTLE_S)
    got = consumer.wait(lambda events: any(each["times"] for each in events) or len(events) > 8)
    again = {each["body"] for each in got if each["times"] == 1}
    assert again <= {str(n) for n in range(3, 8)}


def test_slow_consumers_are_not_hurried(on: Scene) -> None:
    topic = on.topic(queues=1, only=("broker-a",))
    send(on, numbered(topic, 30))
    limits: dict[str, Json] = {
        "pullThresholdForQueue": 4,
        "pullBatchSize": 2,
        "consumeThreadMin": 1,
        "consumeThreadMax": 1,
    }
    consumer = on.push(topic, policy={"sleep": 20}, **limits)
    consumer.wait(30)
    assert [int(body) for body in consumer.bodies()] == list(range(30))


def test_a_topic_grows_and_shrinks_under_its_consumers(on: Scene) -> None:
    topic = on.topic(queues=2)
    both = on.push(topic), on.push(topic)
    one_owner_each(4, *both)
    on.cluster.make_topic(topic, queues=6)
    one_owner_each(12, *both)
    producer = on.producer()
    wait_until(lambda: len(producer.call("fetchPublishMessageQueues", topic)) == 12, "twelve queues", SETTLE_S)
    for n in range(24):
        producer.call("send", message(topic, str(n)))
    wait_until(lambda: set(bodies(*both)) == {str(n) for n in range(24)}, "all messages", SETTLE_S)
    on.cluster.make_topic(topic, queues=1)
    one_owner_each(2, *both)
    send(on, [message(topic, f"small {n}") for n in range(6)])
    wait_until(lambda: {f"small {n}" for n in range(6)} <= set(bodies(*both)), "the last ones", SETTLE_S)


def test_an_offset_is_reset_while_messages_come(on: Scene) -> None:
    topic = on.topic(queues=2)
    # A reset keeps a thread of the client for as long as it takes, and answers need one too. With the default of one
    # for each processor, resets by two brokers stop a client of 5.3.3 on two processors for a minute.
    both = on.push(topic, clientCallbackExecutorThreads=8), on.push(topic, clientCallbackExecutorThreads=8)
    one_owner_each(4, *both)
    send(on, numbered(topic, 20))
    wait_until(lambda: bodies(*both).total() >= 20, "all messages", SETTLE_S)
    wait_until(lambda: on.cluster.committed(topic, on.group) == 20, "the commit", SETTLE_S)
    said = on.jvm.mqadmin("resetOffsetByTime", "-g", on.group, "-t", topic, "-s", "0", "-n", on.cluster.address)
    assert "Exception" not in said
    send(on, [message(topic, f"new {n}") for n in range(10)])

    def everything_again() -> bool:
        seen = bodies(*both)
        return all(seen[str(n)] >= 2 for n in range(20)) and all(seen[f"new {n}"] >= 1 for n in range(10))

    wait_until(everything_again, "everything a second time", SETTLE_S)
    wait_until(lambda: on.cluster.committed(topic, on.group) == 30, "the commit", SETTLE_S)


def test_an_offset_is_reset_while_nobody_consumes(on: Scene) -> None:
    topic = on.topic(queues=1, only=("broker-a",))
    send(on, numbered(topic, 10))
    consumer = on.push(topic)
    consumer.wait(10)
    on.close(consumer)
    wait_until(lambda: on.cluster.committed(topic, on.group) == 10, "the commit", SETTLE_S)
    said = on.jvm.mqadmin("resetOffsetByTime", "-g", on.group, "-t", topic, "-s", "0", "-n", on.cluster.address)
    assert "broker-a" in said
    again = on.push(topic)
    again.wait(10)


def test_a_topic_is_deleted_and_made_again_under_its_clients(on: Scene) -> None:
    topic = on.topic(queues=2)
    consumer = on.push(topic)
    producer = on.producer(retryTimesWhenSendFailed=0)
    producer.call("send", message(topic, "before"))
    consumer.wait(1)
    on.jvm.mqadmin("deleteTopic", "-c", "DefaultCluster", "-t", topic, "-n", on.cluster.address)
    wait_until(lambda: not on.cluster.masters(topic), "no route", SETTLE_S)
    on.cluster.make_topic(topic, queues=2)

    def sent() -> bool:
        try:
            return bool(producer.call("send", message(topic, "after"))["status"] == "SEND_OK")
        except JavaError:
            return False

    wait_until(sent, "a send", SETTLE_S)
    consumer.wait(lambda got: "after" in {each["body"] for each in got})


def test_a_group_that_may_not_consume(on: Scene) -> None:
    topic = on.topic()
    on.cluster.make_group(on.group, consumeEnable=False)
    send(on, numbered(topic, 4))
    consumer = on.push(topic)
    time.sleep(QUIET_S)
    assert consumer.bodies() == []
    on.cluster.make_group(on.group, consumeEnable=True)
    consumer.wait(4)


def test_a_group_with_its_own_number_of_retries(on: Scene) -> None:
    """The client says how often it wants to retry, and it is believed; the group's setting is for those that do not."""
    topic = on.topic()
    on.cluster.make_group(on.group, retryMaxTimes=1, retryQueueNums=3)
    send(on, numbered(topic, 2))
    consumer = on.push(topic, policy={"fail": 99}, maxReconsumeTimes=2)
    wait_until(lambda: on.cluster.stored(f"%DLQ%{on.group}") == 2, "the dead letters", SETTLE_S)
    assert Counter(each["times"] for each in consumer.events()) == {0: 2, 1: 2, 2: 2}


# Ends -----------------------------------------------------------------------------------------------------------------


def test_consumers_leave_while_their_pulls_wait(on: Scene) -> None:
    topic = on.topic()
    for kind in ("concurrent", "orderly"):
        consumer = on.push(topic, kind=kind, group=f"{on.group}-{kind}")
        wait_until(lambda consumer=consumer: len(consumer.owned()) == 8, "all queues", SETTLE_S)  # type: ignore[misc]
        began = time.monotonic()
        on.close(consumer)
        assert time.monotonic() - began < 30
    heir = on.push(topic, kind="orderly", group=f"{on.group}-orderly")  # the locks were given back
    send(on, numbered(topic, 8))
    heir.wait(8, timeout_s=30)


def test_an_orderly_member_takes_over_from_a_dead_one(on: Scene, clients: dict[str, Clients]) -> None:
    """The locks of a process that was killed end with its connection's group membership or after a minute."""
    topic = on.topic(queues=1, only=("broker-a",))
    with Jvm(clients[on.jvm.version]) as mortal:
        doomed = on.push(topic, kind="orderly", jvm=mortal)
        wait_until(lambda: len(doomed.owned()) == 1, "the queue", SETTLE_S)
        send(on, numbered(topic, 4))
        doomed.wait(4)
        mortal.kill()
    heir = on.push(topic, kind="orderly")
    send(on, [message(topic, "after")])
    heir.wait(lambda got: "after" in {each["body"] for each in got}, timeout_s=120)


def test_a_broadcast_goes_on_where_it_was(on: Scene) -> None:
    topic = on.topic()
    same: dict[str, Json] = {"messageModel": "BROADCASTING", "instanceName": f"kept-{on.tag}"}
    first = on.push(topic, **same)
    send(on, numbered(topic, 8))
    first.wait(8)
    on.close(first)
    send(on, [message(topic, "after")])
    second = on.push(topic, **same)
    second.wait(1)
    time.sleep(QUIET_S)
    assert second.bodies() == ["after"]


def test_lite_pulls_by_time_and_with_small_batches(on: Scene, pytestconfig: pytest.Config) -> None:
    if on.jvm.version == "5.3.3" and pytestconfig.getoption("--broker") == "real":
        pytest.skip("it sends a request that 4.9 does not serve")
    topic = on.topic(queues=1, only=("broker-a",))
    send(on, numbered(topic, 5))
    time.sleep(0.1)
    middle = int(time.time() * 1000)
    time.sleep(0.1)
    send(on, [message(topic, str(n)) for n in range(5, 10)])
    lite = on.lite(pullBatchSize=2, autoCommit=False).start()
    (only,) = lite.call("fetchMessageQueues", topic)
    lite.call("assign", [only])
    assert lite.call("offsetForTimestamp", only, middle) in (4, 5)  # the nearest message
    poll_all(lite, 10)
    lite.call("seek", only, 5)
    # A pull that was on its way when the place changed may bring its messages first.
    assert {each["body"] for each in poll_all(lite, 5)} >= {str(n) for n in range(5, 10)}
