"""The same histories told to a real 4.9.7 broker and to ours: every answer must be the same.

`interop.broker_histories` says what a history is and what is compared. What refmq does otherwise on purpose stands in
docs/reference/broker-differences.md and is not generated here, or is named below where it is passed over.
`--histories N` says how many histories are tried.
"""

from __future__ import annotations

import asyncio
import itertools
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from interop.broker_histories import BREAKABLE, SETTINGS, SHORT_LEVEL, Answer, Side, Step, same
from interop.ours import OurBroker, OurNameserver
from interop.rocketmq import Broker

NUMBERS = itertools.count(1)
HALF_TOPIC = "RMQ_SYS_TRANS_HALF_TOPIC"
TIMEOUT_S = 60.0

topics = st.integers(0, 3)
any_topics = st.sampled_from([0, 0, 0, 1, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10])
groups = st.integers(0, 2)
queues = st.sampled_from([0, 0, 0, 1, 2, 3, 7])
tags = st.sampled_from([(), (("TAGS", "TagA"),), (("TAGS", "TagB"), ("KEYS", "k1 k2")), (("KEYS", "k1"), ("a", "3"))])
special_properties = st.sampled_from(
    [
        (("DELAY", "3"),),
        (("DELAY", "0"),),
        (("DELAY", "99"),),
        (("WAIT", "false"), ("TAGS", "TagA")),
        (("TRAN_MSG", "true"), ("PGROUP", "p")),
        (("CLUSTER", "elsewhere"),),
        (("TAGS", ""),),
        (("x", 33_000),),
    ]
)
expressions = st.sampled_from(
    [
        ("*", "TAG"),
        ("TagA", "TAG"),
        ("TagA || TagB", "TAG"),
        ("", "TAG"),
        ("*", None),
        ("||", "TAG"),
        ("a > 2", "SQL92"),
        ("TAGS = 'TagA' OR a IS NULL", "SQL92"),
        ("", "SQL92"),
    ]
)
offsets = st.sampled_from([0, 0, 0, 1, 2, 3, 5, 99, -1, 1 << 40])

STEPS = st.one_of(
    st.tuples(
        st.just("send"), st.sampled_from([10, 310, 310]), any_topics, queues, st.one_of(tags, tags, special_properties),
        st.sampled_from([0, 10, 10, 70_000]),
        st.sampled_from([(), (), (), (("j", 3),), (("j", 16), ("l", 3)), (("f", 1),), (("f", 4),), (("c", "None"),)]),
    ),
    st.tuples(st.just("send"), st.just(310), st.integers(0, 1), st.integers(0, 1), tags, st.just(10), st.just(())),
    st.tuples(
        st.just("batch"), st.integers(0, 3), queues, st.integers(1, 4),
        st.sampled_from([(), (("DELAY", "2"),), (("outer", "1"),)]), st.sampled_from(["", "", "cut", "noise"]),
    ),
    st.builds(
        lambda code, group, topic, queue, offset, count, flag, expression, version: (
            "pull", code, group, topic, queue, offset, count, flag, *expression, version
        ),
        st.just(11), groups, any_topics, queues, offsets, st.sampled_from([1, 2, 32, 32]),
        st.sampled_from([4, 4, 4, 5, 0, 1]), expressions, st.integers(0, 2),
    ),
    st.builds(
        lambda group, topic, queue, wanted: ("wait", group, topic, queue, *wanted),
        groups, st.integers(0, 1), st.integers(0, 1),
        st.sampled_from([("*", "TAG", ()), ("TagA", "TAG", (("TAGS", "TagA"),)), ("a = 3", "SQL92", (("a", "3"),))]),
    ),
    st.tuples(st.just("commit"), groups, topics, queues, st.sampled_from([0, 1, 3, 99, -1])),
    st.tuples(st.just("committed"), groups, topics, queues),
    st.tuples(st.just("edge"), st.sampled_from([30, 31, 32]), any_topics, queues),
    st.tuples(st.just("search"), topics, queues, st.sampled_from([0, 4_000_000_000_000])),
    st.tuples(
        st.just("heartbeat"), st.integers(0, 2), st.lists(groups, unique=True, max_size=2).map(tuple),
        st.lists(
            st.tuples(
                groups, st.sampled_from(["CLUSTERING", "CLUSTERING", "BROADCASTING"]),
                st.lists(
                    st.builds(lambda topic, expression, version: (topic, *expression, version),
                              topics, expressions, st.integers(0, 2)),
                    max_size=2, unique_by=lambda each: each[0],
                ).map(tuple),
            ),
            max_size=2, unique_by=lambda each: each[0],
        ).map(tuple),
    ),
    st.tuples(st.just("unregister"), st.integers(0, 2), st.none() | groups, st.none() | groups),
    st.tuples(st.just("of group"), st.sampled_from([38, 203, 204]), groups),
    st.tuples(
        st.just("locks"), st.sampled_from([41, 41, 42]), st.integers(0, 1), groups, st.integers(0, 1),
        st.lists(st.integers(0, 2), unique=True, max_size=3).map(tuple),
    ),
    st.tuples(
        st.just("send back"), st.integers(0, 5), st.sampled_from([0, 0, 0, 1, 2]), st.sampled_from([0, 2, -1, -1]),
        st.sampled_from([None, 0, 16]),
    ),
    st.tuples(st.just("end"), st.integers(0, 5), groups, st.sampled_from([0, 8, 12])),
    st.tuples(st.just("view"), st.integers(0, 5)),
    st.tuples(st.just("query"), topics, st.sampled_from(["k1", "k2", "k3", "#0", "#1"]), st.sampled_from([1, 32])),
    st.tuples(st.just("of topic"), st.sampled_from([202, 300]), topics),
    st.tuples(st.just("of both"), st.sampled_from([208, 303, 308, 314]), groups, topics),
    st.tuples(st.just("reset"), groups, topics, st.sampled_from([0, -1]), st.booleans()),
    st.tuples(st.just("dump"), topics, queues, st.sampled_from([0, 0, 1, 99]), st.sampled_from([1, 10]),
              st.none() | groups),
    st.tuples(st.just("check client"), st.sampled_from(["a > 1", "a >", "*"]), st.sampled_from(["TAG", "SQL92"])),
    st.tuples(st.just("all"), st.sampled_from([21, 201, 43, 9_999])),
    st.tuples(
        st.just("broken"),
        st.sampled_from(sorted(BREAKABLE)),
        st.integers(0, 2), st.integers(0, 1), st.just(b""),
    ),
    st.tuples(
        st.just("topic"), any_topics, st.integers(1, 4), st.integers(1, 4), st.sampled_from([6, 6, 4, 2, 0]),
        st.sampled_from(["SINGLE_TAG", "SINGLE_TAG", "MULTI_TAG", "NO_TAG"]),
    ),
    st.tuples(st.just("delete topic"), topics),
    st.tuples(
        st.just("group"), groups,
        st.sampled_from([(), (("consumeEnable", False),), (("retryQueueNums", 0),), (("retryMaxTimes", 0),),
                         (("consumeBroadcastEnable", False),)]),
    ),
    st.tuples(st.just("delete group"), groups, st.booleans()),
)  # fmt: skip
HISTORIES = st.lists(STEPS, min_size=1, max_size=20)

BEGINNING: list[Step] = [("topic", 0, 2, 2, 6, "SINGLE_TAG"), ("topic", 1, 2, 2, 6, "SINGLE_TAG")]
END: list[Step] = [
    *(("pull", 11, 2, topic, queue, 0, 32, 4, "*", "TAG", 0) for topic in (0, 1, 2, 6, 7) for queue in (0, 1)),
    *(("committed", group, topic, 0) for group in (0, 1) for topic in (0, 1)),
    ("all", 21),
    ("all", 201),
    # Or every table of the brokers would be longer with each history, and a thousand of them take hours.
    *(("delete topic", topic) for topic in (0, 1, 2, 6, 7)),
    *(("delete group", group, True) for group in (0, 1, 2)),
    ("all", 21),
    ("all", 201),
]


class Different(AssertionError):
    """Two brokers answered a step differently."""


async def replay(real: str, ours: str, history: list[Step]) -> None:
    number = next(NUMBERS)
    sides = [Side(real, number), Side(ours, number)]
    try:
        for step in [*BEGINNING, *history, *END]:
            theirs, mine = [await side.take(step) for side in sides]
            if not same(theirs, mine):
                raise Different(f"history {number}, {step}:\nreal {theirs}\nours {mine}")
        await compare_told(sides)
    finally:
        for side in sides:
            await side.close()


async def compare_told(sides: list[Side]) -> None:
    """What the brokers told their clients unasked is the same."""
    for side in sides:
        await side.hear()
    if sides[0].pushed != sides[1].pushed:
        raise Different(f"told unasked: real {sides[0].pushed}, ours {sides[1].pushed}")


def try_histories(real: str, ours: str, count: int, *phases: Phase) -> None:
    """Makes histories until two brokers answer one differently, and with `Phase.shrink` makes that one small."""

    @settings(
        deadline=None,
        max_examples=count,
        suppress_health_check=list(HealthCheck),
        database=None,
        phases=(Phase.generate, *phases),
    )
    @given(history=HISTORIES)
    def every(history: list[Any]) -> None:
        asyncio.run(replay(real, ours, history))

    every()


@pytest.fixture(scope="module")
def nameservers(folder: Path) -> Iterator[tuple[str, str]]:
    """One for each: the brokers have the same name."""
    with OurNameserver(folder / "names-of-real") as theirs, OurNameserver(folder / "names-of-ours") as ours:
        yield theirs.address, ours.address


@pytest.fixture(scope="module")
def real_broker(folder: Path, nameservers: tuple[str, str]) -> Iterator[str]:
    real = Broker(folder / "histories-real", nameservers[0], settings=SETTINGS)
    # The first round of checks makes this topic, and there is none in an hour. Until it is known, 4.9.7 deletes its
    # queue with any other topic.
    known = {"topicConfigTable": {HALF_TOPIC: {"topicName": HALF_TOPIC, "readQueueNums": 1, "writeQueueNums": 1}}}
    (real.store / "config").mkdir(parents=True)
    (real.store / "config" / "topics.json").write_text(json.dumps(known))
    with real:
        yield real.address


@pytest.fixture(scope="module")
def our_broker(folder: Path, nameservers: tuple[str, str]) -> Iterator[str]:
    with OurBroker(folder / "histories-ours", nameservers[1], settings=SETTINGS) as ours:
        yield ours.address


def test_both_brokers_answer_every_history_alike(
    real_broker: str, our_broker: str, pytestconfig: pytest.Config
) -> None:
    try_histories(real_broker, our_broker, pytestconfig.getoption("--histories"), Phase.shrink)


def test_delayed_and_retried_messages_arrive_alike(real_broker: str, our_broker: str) -> None:
    """What comes out of the delay queues: histories only see what goes in."""

    async def deliver(address: str, number: int) -> list[Answer]:
        side = Side(address, number)
        delayed = (("DELAY", str(SHORT_LEVEL)), ("TAGS", "TagA"), ("WAIT", "false"))
        steps: list[Step] = [
            *BEGINNING,
            ("send", 310, 0, 0, delayed, 10, ()),
            ("send", 10, 0, 0, (("KEYS", "k1"),), 10, ()),
            ("send back", 1, 0, SHORT_LEVEL, 16),
            ("send back", 1, 0, -1, 16),
            ("send", 310, 6, 0, delayed, 10, (("j", 2),)),
        ]
        pulls: list[Step] = [("pull", 11, 1, topic, 0, 0, 32, 4, "*", "TAG", 0) for topic in (0, 6, 7)]
        try:
            for step in steps:
                await side.take(step)
            until = asyncio.get_running_loop().time() + TIMEOUT_S
            while True:
                answers = [await side.take(step) for step in pulls]
                if [len(answer.get("records", ())) for answer in answers] == [2, 2, 1]:
                    return answers
                assert asyncio.get_running_loop().time() < until, answers
                await asyncio.sleep(0.1)
        finally:
            await side.close()

    number = next(NUMBERS)
    theirs, mine = [unordered(asyncio.run(deliver(address, number))) for address in (real_broker, our_broker)]
    assert mine == theirs


def unordered(answers: list[Answer]) -> list[list[Any]]:
    """The records of each answer without their places: two messages of one level may change theirs."""
    found = [[{**record, "place": record["place"][:2]} for record in answer["records"]] for answer in answers]
    return [sorted(records, key=lambda record: (record["body"], record["retries"])) for records in found]


# --- histories see what they are for ----------------------------------------------------------------------------------

MISTAKES = {
    "the min offset is wrong": (
        "refmq.broker.handlers.offsets",
        "offset = broker.engine.store.min_offset(header.topic, header.queue_id)",
        "offset = broker.engine.store.max_offset(header.topic, header.queue_id) - 1",
    ),
    "a tag is dropped": (
        "refmq.plane.send",
        "    waits = waits_for_flush(properties)\n",
        "    properties.pop(names.TAGS, None)\n    waits = waits_for_flush(properties)\n",
    ),
    "a lock is lent twice": (
        "refmq.broker.handlers.locks",
        "lock_ok_mq_set=answer.held",
        "lock_ok_mq_set=body.mq_set",
    ),
    "an overflow is no error": (
        "refmq.plane.pull",
        "GetStatus.OFFSET_OVERFLOW_BADLY: ResponseCode.PULL_OFFSET_MOVED",
        "GetStatus.OFFSET_OVERFLOW_BADLY: ResponseCode.PULL_NOT_FOUND",
    ),
    "nobody is told of a new member": (
        "refmq.broker.clients",
        "changed = topics_changed or member.connection not in members",
        "changed = topics_changed",
    ),
    "a retry loses its count": (
        "refmq.broker.handlers.send_back",
        "reconsume_times=record.reconsume_times + 1",
        "reconsume_times=record.reconsume_times",
    ),
}
"""Each is a module, a text in it and what stands there instead."""


@pytest.mark.parametrize("name", MISTAKES)
def test_histories_find_a_mistake(name: str, real_broker: str, folder: Path, nameservers: tuple[str, str]) -> None:
    module, old, new = MISTAKES[name]
    where = folder / f"mistaken-{module.rpartition('.')[2]}"
    with (
        OurBroker(where, nameservers[1], settings=SETTINGS, change=(module, old, new)) as ours,
        pytest.raises(Different),
    ):
        try_histories(real_broker, ours.address, 1000)
