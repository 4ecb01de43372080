"""Pulls: checks, filters, offsets, and pulls that wait."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from refmq.broker import pull_hold
from refmq.broker.config import BrokerConfig
from refmq.broker.handlers.pull import answer_held
from refmq.broker.pull_hold import PullHold
from refmq.model.ids import PhysicalOffset, QueueOffset, TimestampMs
from refmq.protocol.bodies.codec import encode_body
from refmq.protocol.bodies.heartbeat import (
    ConsumeFromWhere,
    ConsumerData,
    ConsumeType,
    HeartbeatData,
    MessageModel,
    SubscriptionData,
)
from refmq.protocol.codes import RequestCode, ResponseCode
from refmq.protocol.command import request
from refmq.protocol.headers.pull import PullSysFlag
from refmq.protocol.record import decode_records, string_hash
from refmq.store.values import Dispatched, MessageFilter, QueueId
from tests.broker.harness import Harness

SUSPEND = PullSysFlag.SUBSCRIPTION | PullSysFlag.SUSPEND


def beat(world: Harness, *subscriptions: SubscriptionData, peer: int = 1, group: str = "consumers") -> None:
    consumer = ConsumerData(
        group_name=group,
        consume_type=ConsumeType.CONSUME_PASSIVELY,
        message_model=MessageModel.CLUSTERING,
        consume_from_where=ConsumeFromWhere.CONSUME_FROM_LAST_OFFSET,
        subscription_data_set=subscriptions,
    )
    body = encode_body(HeartbeatData(client_id=f"c{peer}", consumer_data_set=(consumer,)))
    assert world.ask(RequestCode.HEART_BEAT, body=body, peer=peer).code == ResponseCode.SUCCESS


def bodies(answer: Any) -> list[bytes]:
    return [record.body for record in decode_records(answer.body)]


def test_messages_come_with_where_to_go_on() -> None:
    world = Harness()
    for n in range(3):
        world.send("T", str(n).encode())
    answer = world.pull(offset=1)
    assert answer is not None
    assert (answer.code, answer.remark) == (ResponseCode.SUCCESS, "FOUND")
    assert bodies(answer) == [b"1", b"2"]
    fields = answer.fields
    assert (fields["nextBeginOffset"], fields["minOffset"], fields["maxOffset"]) == ("3", "0", "3")
    assert fields["suggestWhichBrokerId"] == "0"


@pytest.mark.parametrize(
    ("changes", "code", "remark"),
    [
        ({"topic": "Unknown"}, 17, "topic[Unknown] not exist, apply first please! "),
        ({"queue": 4}, 1, "queueId[4] is illegal, topic:[T] topicConfig.readQueueNums:[4] consumer:[/127.0.0.1:40001]"),
        ({"queue": -1}, 1, "queueId[-1] is illegal"),
        ({"sys_flag": 0}, 24, "the consumer's group info not exist"),
        ({"subscription": "||"}, 23, "parse the consumer's subscription failed"),
        ({"expression_type": "SQL92", "subscription": ""}, 23, "parse the consumer's subscription failed"),
        (
            {"expression_type": "SQL92", "subscription": "a = 1"},
            1,
            "does not support consumer to filter message by SQL92",
        ),
        ({"offset": 5}, 21, "OFFSET_OVERFLOW_BADLY"),
        ({"offset": 1}, 19, "OFFSET_OVERFLOW_ONE"),
        ({"queue": 1, "offset": 3}, 21, "NO_M"),
        ({"queue": 1}, 19, "NO_M"),
        ({"subscription": "other"}, 20, "NO_MATCHED_MESSAGE"),
    ],
)
def test_what_cannot_be_served_is_answered_with_its_reason(changes: dict[str, Any], code: int, remark: str) -> None:
    world = Harness()
    world.send("T", properties={"TAGS": "a"})
    answer = world.pull(**changes)
    assert answer is not None
    assert answer.code == code
    assert (answer.remark or "").find(remark) >= 0


def test_a_group_or_a_topic_that_may_not_read_is_refused() -> None:
    world = Harness(BrokerConfig(broker_permission=2))
    assert (answer := world.pull()) is not None
    assert answer.remark == "the broker[127.0.0.1] pulling message is forbidden"
    strict = Harness(BrokerConfig(auto_create_subscription_group=False))
    assert (answer := strict.pull()) is not None
    assert answer.code == ResponseCode.SUBSCRIPTION_GROUP_NOT_EXIST


def test_tags_are_filtered_by_the_codes_of_the_heartbeat_as_they_were_sent() -> None:
    world = Harness()
    for tag in ("a", "b"):
        world.send("T", tag.encode(), properties={"TAGS": tag})
    codes = (string_hash("b"),)
    beat(world, SubscriptionData(topic="T", sub_string="a", tags_set=("a",), code_set=codes, sub_version=3))
    answer = world.pull(sys_flag=0, sub_version=3)
    assert answer is not None
    assert bodies(answer) == [b"b"]
    later = world.pull(sys_flag=0, sub_version=4)
    assert later is not None
    assert later.code == ResponseCode.SUBSCRIPTION_NOT_LATEST
    other = world.pull(topic="TBW102", sys_flag=0)
    assert other is not None
    assert other.code == ResponseCode.SUBSCRIPTION_NOT_EXIST


def test_sql_filters_by_properties_registered_or_inline() -> None:
    world = Harness(BrokerConfig(enable_property_filter=True))
    for amount in ("3", "7", "many"):
        world.send("T", amount.encode(), properties={"amount": amount})
    sql = SubscriptionData(topic="T", sub_string="amount > 5", sub_version=1, expression_type="SQL92")
    beat(world, sql)
    registered = world.pull(sys_flag=0, sub_version=1)
    assert registered is not None
    assert bodies(registered) == [b"7"]
    inline = world.pull(expression_type="SQL92", subscription="amount < 5")
    assert inline is not None
    assert bodies(inline) == [b"3"]
    broken = world.pull(expression_type="SQL92", subscription="amount >")
    assert broken is not None
    assert broken.code == ResponseCode.SUBSCRIPTION_PARSE_FAILED
    newer = world.pull(sys_flag=0, sub_version=2)
    assert newer is not None
    assert newer.code == ResponseCode.SUBSCRIPTION_NOT_LATEST


def test_a_pull_commits_the_offset_it_carries_whatever_it_finds() -> None:
    world = Harness()
    world.send()
    world.pull(sys_flag=PullSysFlag.SUBSCRIPTION | PullSysFlag.COMMIT_OFFSET, commit_offset=9, offset=1)
    assert world.broker.state.offsets.get("T", "consumers", 0) == 9


def test_a_pull_waits_five_minutes_at_most() -> None:
    world = Harness()
    world.send("T")
    assert world.pull(offset=1, sys_flag=SUSPEND, suspend_timeout_millis=1 << 40) is None
    now_ms = world.broker.world.now_ms()
    ends = {QueueId("T", 0): QueueOffset(1)}
    assert world.broker.hold.look(TimestampMs(now_ms + 299_999), ends.__getitem__) == ()
    assert len(world.broker.hold.look(TimestampMs(now_ms + 300_000), ends.__getitem__)) == 1


@pytest.mark.parametrize("flag", [PullSysFlag.SUBSCRIPTION, SUSPEND])
def test_a_pull_that_does_not_say_so_commits_nothing(flag: PullSysFlag) -> None:
    world = Harness()
    world.send("T")
    world.pull(sys_flag=flag, commit_offset=9, offset=1)
    assert world.broker.state.offsets.get("T", "consumers", 0) is None


def test_an_offset_outside_of_its_queue_leaves_a_note() -> None:
    world = Harness()
    world.send()
    world.pull(offset=5)
    (record,) = world.records("OFFSET_MOVED_EVENT")
    assert b'"offsetNew":1' in record.body
    assert b'"offsetRequest":5' in record.body


def test_a_pull_waits_for_a_message_that_its_filter_wants() -> None:
    world = Harness()
    world.send("T", b"0")
    assert world.pull(offset=1, sys_flag=SUSPEND, subscription="b") is None
    peer = world.peer()
    world.send("T", b"1", properties={"TAGS": "a"})
    assert peer.received == []
    world.send("T", b"2", properties={"TAGS": "b"})
    (answer,) = peer.received
    assert (answer.code, bodies(answer)) == (ResponseCode.SUCCESS, [b"2"])
    assert answer.opaque == 5
    assert len(world.broker.hold) == 0


def wake_by_looking(world: Harness) -> None:
    held = world.broker.hold.look(world.now_ms(), lambda q: world.store.max_offset(q.topic, q.queue_id))
    for pull in held:
        answer_held(world.broker, pull)


def test_a_pull_that_waited_long_enough_is_answered_with_nothing() -> None:
    world = Harness()
    world.send()
    assert world.pull(offset=1, sys_flag=SUSPEND, suspend_timeout_millis=15_000) is None
    world.now += 14_999
    wake_by_looking(world)
    assert world.peer().received == []
    world.now += 1
    wake_by_looking(world)
    assert [answer.code for answer in world.peer().received] == [ResponseCode.PULL_NOT_FOUND]


def test_a_queue_that_moved_on_without_a_match_tells_how_far_to_skip() -> None:
    world = Harness()
    world.send()
    world.pull(offset=1, sys_flag=SUSPEND, subscription="b")
    world.send("T", properties={"TAGS": "a"})
    wake_by_looking(world)
    (answer,) = world.peer().received
    assert (answer.code, answer.fields["nextBeginOffset"]) == (ResponseCode.PULL_RETRY_IMMEDIATELY, "2")


def test_a_woken_pull_is_checked_again_and_commits_nothing() -> None:
    world = Harness()
    world.send()
    world.pull(offset=1, sys_flag=SUSPEND | PullSysFlag.COMMIT_OFFSET, commit_offset=1)
    world.broker.commit_offset("consumers", "T", 0, QueueOffset(7))
    world.ask(RequestCode.DELETE_TOPIC_IN_BROKER, fields={"topic": "T"})
    world.now += 15_000
    wake_by_looking(world)
    assert [answer.code for answer in world.peer().received] == [ResponseCode.TOPIC_NOT_EXIST]
    assert world.broker.state.offsets.get("T", "consumers", 0) == 7


def test_a_connection_that_is_gone_leaves_no_waiting_pull() -> None:
    world = Harness()
    world.send()
    world.pull(offset=1, sys_flag=SUSPEND)
    world.broker.connection_closed(1)
    assert len(world.broker.hold) == 0


def test_when_too_many_wait_a_pull_is_answered_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pull_hold, "HELD_MAX", 0)
    world = Harness()
    world.send()
    answer = world.pull(offset=1, sys_flag=SUSPEND)
    assert answer is not None
    assert answer.code == ResponseCode.PULL_NOT_FOUND


# --- no wake-up is lost -----------------------------------------------------------------------------------------------

STEPS = st.lists(
    st.tuples(st.sampled_from(["park", "arrive", "look", "close", "wait"]), st.integers(0, 1), st.integers(0, 3)),
    max_size=30,
)


def lost_wake_up(steps: list[tuple[str, int, int]]) -> bool:
    """Plays a history over two queues: True when a pull still waits although its message is there."""
    hold, ends, now = PullHold(), [0, 0], 0
    for what, queue_id, number in steps:
        queue = QueueId("t", queue_id)
        match what:
            case "park":
                offset = QueueOffset(ends[queue_id])
                deadline = TimestampMs(now + 10)
                hold.park(number, request(11), queue, offset, deadline, MessageFilter(tag_codes=frozenset({number})))
            case "arrive":
                message = Dispatched(
                    "t", queue_id, QueueOffset(ends[queue_id]), PhysicalOffset(0), 1, number, TimestampMs(0), b""
                )
                ends[queue_id] += 1
                hold.arrived(message)
                if any(pull.message_filter.tag_codes == frozenset({number}) for pull in waiting(hold, queue)):
                    return True
            case "look":
                hold.look(TimestampMs(now), lambda q: QueueOffset(ends[q.queue_id]))
                if any(now >= p.deadline_ms or ends[p.queue.queue_id] > p.queue_offset for p in waiting(hold)):
                    return True
            case "close":
                hold.drop_connection(number)
            case _:
                now += 5
    return len(hold) != len(waiting(hold)) or bool(hold.take_all() and len(hold))


def waiting(hold: PullHold, queue: QueueId | None = None) -> list[pull_hold.HeldPull]:
    return [p for q, held in hold._by_queue.items() for p in held.values() if queue in (None, q)]


@given(STEPS)
def test_no_pull_waits_for_a_message_that_is_there(steps: list[tuple[str, int, int]]) -> None:
    assert not lost_wake_up(steps)


@pytest.mark.parametrize("mutant", ["an arrival wakes nobody at the offset itself", "a look forgets the time"])
def test_the_property_catches_lost_wake_ups(mutant: str, monkeypatch: pytest.MonkeyPatch) -> None:
    if mutant.startswith("an arrival"):
        honest = PullHold.arrived

        def late(self: PullHold, message: Dispatched) -> tuple[pull_hold.HeldPull, ...]:
            kept = {p.number for p in waiting(self) if p.queue_offset == message.queue_offset}
            return honest(self, message) if not kept else ()

        monkeypatch.setattr(PullHold, "arrived", late)
    else:
        honest_look = PullHold.look
        monkeypatch.setattr(PullHold, "look", lambda self, now, end: honest_look(self, TimestampMs(-1), end))

    @settings(database=None, max_examples=2_000, phases=[Phase.generate])
    @given(STEPS)
    def property_(steps: list[tuple[str, int, int]]) -> None:
        assert not lost_wake_up(steps)

    with pytest.raises(AssertionError):
        property_()


@pytest.mark.parametrize("support", [True, False])
def test_with_filter_support_retry_a_retried_message_must_satisfy_the_expression_of_its_topic(support: bool) -> None:
    world = Harness(BrokerConfig(enable_property_filter=True, filter_support_retry=support))
    retry = SubscriptionData(topic="%RETRY%consumers", sub_string="*")
    beat(world, SubscriptionData(topic="T", sub_string="a > 1", sub_version=1, expression_type="SQL92"), retry)
    for topic, a in (("T", "1"), ("T", "2"), ("Other", "1")):
        world.send("%RETRY%consumers", f"{topic}{a}".encode(), properties={"RETRY_TOPIC": topic, "a": a})
    answer = world.pull("%RETRY%consumers", sys_flag=0)
    assert bodies(answer) == ([b"T2", b"Other1"] if support else [b"T1", b"T2", b"Other1"])
