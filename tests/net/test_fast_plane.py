"""The C plane against the reference: the same requests, the same answers, events and files, whoever served them."""

from __future__ import annotations

from collections.abc import Awaitable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from itertools import groupby
from operator import itemgetter
from typing import Any, cast

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from rpds import HashTrieMap

import refmq_fast
from refmq.model.broker_config import PERM_READ, PERM_WRITE, BrokerConfig
from refmq.model.ids import QueueOffset, TimestampMs
from refmq.model.step import EventFields
from refmq.net.fast_plane import HOT, FastPlane
from refmq.net.fast_store import FastStore
from refmq.plane import PlaneState, PlaneStep, Snapshot
from refmq.plane.effects import Reply
from refmq.plane.engine import Answer
from refmq.plane.inputs import Arrived, Closed, Commit, Durable, FlushFailed, Frame, Input, Install, Tick
from refmq.plane.offsets import commit_offset
from refmq.plane.pull import run_again
from refmq.protocol.bodies.config import TopicConfig, TopicFilterType
from refmq.protocol.bodies.heartbeat import MessageModel, SubscriptionData
from refmq.protocol.codes import RequestCode
from refmq.protocol.command import ONEWAY_FLAG, RemotingCommand, SerializeType, request
from refmq.protocol.frame import decode, encode
from refmq.protocol.headers.codec import encode_header
from refmq.protocol.headers.offsets import QueryConsumerOffsetRequest, UpdateConsumerOffsetRequest
from refmq.protocol.headers.pull import PullSysFlag
from refmq.protocol.record import BatchedMessage, encode_batch, string_hash
from refmq.store import ReferenceStore
from refmq.store.config import StoreConfig
from tests.plane.runner import SMALL, START_MS, SYNC, Runner, pull_command, send_command, snapshot
from tests.store.helpers import new_disk
from tests.store.helpers import run as run_at_once

pytestmark = [
    pytest.mark.extension,
    pytest.mark.skipif(not refmq_fast.AVAILABLE, reason=f"extension is off: {refmq_fast.REASON}"),
]


LARGE = replace(SMALL, log_file_bytes=8 << 20, queue_file_bytes=20 << 16, message_bytes_max=4 << 20)


@dataclass
class FrontRunner(Runner):
    """A runner that asks the C plane first, as `LoopEngine` does."""

    front: FastPlane = field(init=False)
    parked: dict[int, Frame] = field(default_factory=dict)
    answers: dict[int, list[bytes]] = field(default_factory=dict)
    served: int = 0
    recorded: list[EventFields] = field(default_factory=list)

    def feed(self, given: Input) -> Answer | Awaitable[Answer]:
        if isinstance(given, Frame) and given.command.code in HOT and self.front.serve(given, self.now):
            self.served += 1
            if given.command.code == RequestCode.PULL_MESSAGE:
                self.parked[given.number] = given
            self.take()
            return None
        self.take_offsets()
        match given:
            case Install():
                self.front.install(given.snapshot)
            case Durable():
                self.front.durable(given.flushed_to, self.now)
            case FlushFailed():
                self.front.flush_failed(self.now)
            case Tick():
                self.front.tick(self.now)
            case Closed():
                self.front.closed(given.connection)
        self.take()
        return super().feed(given)

    def take(self) -> None:
        for _, number, frame in self.front.take_output():
            parked = self.parked.pop(number, None)
            if frame is not None:
                self.answers.setdefault(number, []).append(frame)
            else:
                assert parked is not None
                self.again(parked)
        flush, dispatch = self.front.take_wants()
        self.wants_flush |= flush
        self.wants_dispatch |= dispatch

    def again(self, frame: Frame) -> None:
        outcome = PlaneStep(self.state, run_again(self.state.snapshot, self.store, frame, self.now))
        for effect in outcome.effects:
            self.done.append(effect)
            if isinstance(effect, Reply):
                self.replies.setdefault(frame.number, []).append(effect.command)
            else:
                self.perform(effect)

    def take_offsets(self) -> None:
        offsets = self.state.offsets
        for each in self.front.take_offsets():
            offsets = commit_offset(offsets, each.topic, each.group, each.queue_id, each.offset).state
        self.state = replace(self.state, offsets=offsets)

    def record(self, events: tuple[EventFields, ...]) -> None:
        self.recorded += events
        for event in events:
            if event[0] == "CommitOffset":
                self.front.set_offset(Commit(event[1], event[2], event[3], QueueOffset(event[5])))

    def dispatch(self) -> None:
        self.wants_dispatch = False
        messages = self.front.dispatch(1_000, self.now)
        self.take()
        if messages:
            super().feed(Arrived(messages))


@dataclass
class RecordingRunner(Runner):
    """The reference, whose store and plane record into one list."""

    recorded: list[EventFields] = field(default_factory=list)

    def record(self, events: tuple[EventFields, ...]) -> None:
        self.recorded += events


@dataclass
class Pair:
    """Both, fed with the same."""

    reference: RecordingRunner
    fast: FrontRunner

    def feed(self, command: RemotingCommand, *, connection: int = 1, draw: int = 7, vip: bool = False) -> int:
        """Feeds a request as it would come over a connection, and returns the number of its frame."""
        return self.feed_frame(encode(command), connection=connection, draw=draw, vip=vip)

    def feed_frame(self, data: bytes, *, connection: int = 1, draw: int = 7, vip: bool = False) -> int:
        arrived = decode(data)
        for runner in (self.reference, self.fast):
            frame = runner.frame(arrived, connection=connection, draw=draw, vip=vip)
            runner.feed(frame)
        return self.reference.frames

    def both(self, given: Input) -> None:
        self.reference.feed(given)
        self.fast.feed(given)

    def settle(self) -> None:
        self.reference.settle()
        self.fast.settle()

    def pass_time(self, ms: int) -> None:
        for runner in (self.reference, self.fast):
            runner.now_ms += ms
            runner.feed(Tick())

    def check(self) -> None:
        """Every request was answered alike, and the same has happened."""
        self.fast.take_offsets()
        expected = {number: [encode(one) for one in given] for number, given in self.reference.replies.items()}
        found = {number: [encode(one) for one in given] for number, given in self.fast.replies.items()}
        for number, frames in self.fast.answers.items():
            found.setdefault(number, []).extend(frames)
        assert found == expected
        assert acks_in_log_order(self.fast.recorded) == acks_in_log_order(self.reference.recorded)
        assert self.fast.state.offsets.body() == self.reference.state.offsets.body()
        stores = (self.reference.store, self.fast.store)
        assert [store.read_log(store.log_min, 1 << 20) for store in stores[:1]] == [
            store.read_log(store.log_min, 1 << 20) for store in stores[1:]
        ]
        assert stores[0].queues() == stores[1].queues()
        assert self.waiting(self.reference) == self.waiting(self.fast)

    @staticmethod
    def waiting(runner: Runner) -> tuple[int, int]:
        puts, pulls = len(runner.state.puts), len(runner.state.hold)
        if isinstance(runner, FrontRunner):
            more_puts, more_pulls = runner.front.waiting()
            return puts + more_puts, pulls + more_pulls
        return puts, pulls


def acks_in_log_order(events: list[EventFields]) -> list[EventFields]:
    """When a flush ends, C acknowledges its puts first and the reference then those that were handed over to it. A half
    message is recorded with its acknowledgement."""
    found: list[EventFields] = []
    for is_ack, group in groupby(events, lambda event: event[0] in ("AckPut", "SendHalf")):
        run = list(group)
        found += sorted(run, key=itemgetter(4)) if is_ack else run
    return found


@contextmanager
def a_pair(config: BrokerConfig | None = None, store_config: StoreConfig = SMALL) -> Iterator[Pair]:
    tables = tables_of(config, store_config)
    recorded: list[EventFields] = []
    reference_store = ReferenceStore(new_disk(), store_config, emit=recorded.append)
    run_at_once(reference_store.start(TimestampMs(START_MS)))
    reference = RecordingRunner(reference_store, PlaneState(tables))
    reference.recorded = recorded
    fast_recorded: list[EventFields] = []
    fast_store = FastStore(new_disk(), store_config, emit=fast_recorded.append)
    run_at_once(fast_store.start(TimestampMs(START_MS)))
    fast = FrontRunner(cast("ReferenceStore", fast_store), PlaneState(tables))
    fast.recorded = fast_recorded
    fast.front = FastPlane(fast_store, fast_recorded.append)
    fast.front.install(tables)
    yield Pair(reference, fast)
    for store in (reference_store, fast_store):
        run_at_once(store.stop(TimestampMs(START_MS)))


@dataclass(frozen=True)
class Group:
    """What heartbeats say of a group."""

    message_model: MessageModel
    subscriptions: HashTrieMap[str, SubscriptionData]


def tables_of(config: BrokerConfig | None, store_config: StoreConfig) -> Snapshot:
    tags = SubscriptionData(
        topic="T",
        sub_string="a || b",
        tags_set=("a", "b"),
        code_set=(string_hash("a"), string_hash("b")),
        sub_version=5,
    )
    sql = SubscriptionData(topic="Several", sub_string="n > 3", expression_type="SQL92", sub_version=5)
    topics = (
        TopicConfig(topic_name="ReadOnly", read_queue_nums=1, write_queue_nums=0, perm=PERM_READ),
        TopicConfig(topic_name="WriteOnly", read_queue_nums=2, write_queue_nums=2, perm=PERM_WRITE),
        TopicConfig(topic_name="Several", topic_filter_type=TopicFilterType.MULTI_TAG),
        TopicConfig(topic_name="%RETRY%consumers", read_queue_nums=1, write_queue_nums=1),
        TopicConfig(topic_name="SCHEDULE_TOPIC_XXXX", read_queue_nums=18, write_queue_nums=18),
    )
    made = snapshot(config, store_config, topics)
    subscriptions = HashTrieMap({"T": tags, "Several": sql})
    return replace(made, consumers=HashTrieMap({"consumers": Group(MessageModel.CLUSTERING, subscriptions)}))


# --- what C serves ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "command",
    [
        send_command(),
        send_command(queue_id=-1),
        send_command(properties={"KEYS": "k", "TAGS": "a", "UNIQ_KEY": "7F"}),
        send_command(properties={"WAIT": "false"}),
        send_command(properties={"DELAY": "3"}),
        send_command(properties={"CLUSTER": "another"}),
        send_command(properties={"name": "Wert mit Ümlaut"}),
        pull_command(),
        pull_command(subscription="a || b"),
        pull_command(sys_flag=0, sub_version=5),
        request(
            15, encode_header(UpdateConsumerOffsetRequest(consumer_group="g", topic="T", queue_id=0, commit_offset=3))
        ),
    ],
    ids=lambda command: f"{command.code}-{command.fields.get('i') or command.fields.get('subscription')}",
)
@pytest.mark.parametrize("store_config", [SMALL, SYNC], ids=["async", "sync"])
@pytest.mark.parametrize("serialize", list(SerializeType), ids=lambda one: one.name)
def test_the_ordinary_is_served_in_c_and_alike(
    command: RemotingCommand, store_config: StoreConfig, serialize: SerializeType
) -> None:
    with a_pair(store_config=store_config) as pair:
        pair.feed(send_command(properties={"TAGS": "a"}))
        pair.settle()
        if command.code == RequestCode.UPDATE_CONSUMER_OFFSET:  # the first of a queue is looked at more closely
            pair.feed(command)
        before = pair.fast.served
        pair.feed(replace(command, serialize_type=serialize))
        assert pair.fast.served == before + 1
        pair.settle()
        pair.check()


@pytest.mark.parametrize("at", range(4))
def test_of_a_key_that_comes_twice_the_last_value_counts(at: int) -> None:
    """In a binary header; in JSON C hands over what has a key twice."""
    command = replace(send_command(queue_id=1), serialize_type=SerializeType.ROCKETMQ)
    data = encode(command)
    entries = [b"\0\1%c\0\0\0\1%c" % pair for pair in zip(b"defh", b"9382", strict=True)]
    before = b"".join(entries[at:] + entries[:at])
    size = int.from_bytes(data[25:29], "big") + len(before)
    data = data[:25] + size.to_bytes(4, "big") + before + data[29:]
    lengths = (len(data) - 4).to_bytes(4, "big") + (int.from_bytes(data[4:8], "big") + len(before)).to_bytes(4, "big")
    with a_pair() as pair:
        pair.feed_frame(lengths + data[8:])
        assert pair.fast.served == 1
        pair.settle()
        pair.check()
        assert pair.fast.store.max_offset("T", 1) == 1


@pytest.mark.parametrize(
    "command",
    [
        send_command("Unknown"),
        send_command("ReadOnly", queue_id=-1),
        send_command("SCHEDULE_TOPIC_XXXX"),
        send_command("%RETRY%consumers"),
        send_command(queue_id=99),
        send_command(properties={"TRAN_MSG": "true"}),
        send_command(body=b"x" * (5 << 20)),
        pull_command(topic="Unknown"),
        pull_command(topic="WriteOnly"),
        pull_command(consumer_group="unknown"),
        pull_command(queue_id=4),
        pull_command(7),
        pull_command(expression_type="SQL92", subscription="n > 3"),
        pull_command(sys_flag=0, sub_version=6),
        pull_command(sys_flag=0, topic="Several", sub_version=5),
        request(14, encode_header(QueryConsumerOffsetRequest(consumer_group="g", topic="T", queue_id=0))),
    ],
    ids=lambda command: f"{command.code}-{command.fields.get('b') or command.fields.get('topic')}",
)
def test_what_may_be_refused_is_handed_over_and_answered_alike(command: RemotingCommand) -> None:
    with a_pair() as pair:
        pair.feed(command)
        assert pair.fast.served == 0
        pair.settle()
        pair.check()


def test_a_pull_waits_in_c_and_is_woken_by_what_it_wants() -> None:
    with a_pair() as pair:
        waits = PullSysFlag.SUSPEND | PullSysFlag.SUBSCRIPTION
        wanting_all = pair.feed(pull_command(sys_flag=waits))
        wanting_b = pair.feed(pull_command(sys_flag=waits, subscription="b"))
        pair.feed(pull_command(sys_flag=waits), connection=2)
        assert pair.fast.front.waiting() == (0, 3)
        pair.both(Closed(2))
        pair.feed(send_command(properties={"TAGS": "a"}))
        pair.settle()
        assert wanting_all in pair.fast.answers
        assert wanting_b not in pair.fast.answers
        pair.pass_time(20_000)
        assert wanting_b in pair.fast.answers
        pair.check()


def test_a_woken_pull_whose_topic_is_gone_is_refused_by_the_reference() -> None:
    with a_pair() as pair:
        number = pair.feed(pull_command(sys_flag=PullSysFlag.SUSPEND | PullSysFlag.SUBSCRIPTION))
        tables = pair.reference.state.snapshot
        topics = tables.topics
        assert isinstance(topics, HashTrieMap)
        pair.both(Install(replace(tables, topics=topics.remove("T"))))
        pair.pass_time(20_000)
        assert [answer.code for answer in pair.fast.replies[number]] == [17]
        pair.check()


def test_a_subscription_whose_tags_have_no_codes_wants_nothing() -> None:
    with a_pair() as pair:
        wants = SubscriptionData(topic="T", sub_string="a || b", sub_version=5)
        group = Group(MessageModel.CLUSTERING, HashTrieMap({"T": wants}))
        tables = pair.reference.state.snapshot
        pair.both(Install(replace(tables, consumers=HashTrieMap({"consumers": group}))))
        pair.feed(send_command(properties={"TAGS": "a"}))
        pair.settle()
        number = pair.feed(pull_command(sys_flag=0, sub_version=5))
        assert pair.fast.served == 2
        assert [answer.code for answer in pair.reference.replies[number]] == [20]
        pair.check()


def test_a_permission_that_was_taken_away_holds_at_once() -> None:
    with a_pair() as pair:
        tables = pair.reference.state.snapshot
        topics = tables.topics
        assert isinstance(topics, HashTrieMap)
        pair.feed(send_command())
        pair.both(Install(replace(tables, topics=topics.insert("T", replace(topics["T"], write_queue_nums=0)))))
        pair.feed(send_command(queue_id=-1))
        assert pair.fast.served == 1
        pair.both(Install(replace(tables, config=replace(tables.config, broker_permission=PERM_READ))))
        pair.feed(send_command())
        assert pair.fast.served == 1
        pair.settle()
        pair.check()


def test_a_flush_that_fails_or_takes_too_long_is_told_alike() -> None:
    with a_pair(store_config=SYNC) as pair:
        late, failed = pair.feed(send_command()), pair.feed(send_command())
        assert pair.fast.front.waiting() == (2, 0)
        pair.pass_time(6_000)
        assert late in pair.fast.answers
        assert failed in pair.fast.answers
        pair.feed(send_command())
        pair.both(FlushFailed())
        pair.check()


@pytest.mark.parametrize("count", [1, 30, 100, 300])
@pytest.mark.parametrize("properties", [{}, {"WAIT": "false"}], ids=["waits", "does not wait"])
@pytest.mark.parametrize("store_config", [SMALL, SYNC], ids=["async", "sync"])
def test_the_ids_of_a_large_batch_are_all_in_its_answer(
    count: int, properties: dict[str, str], store_config: StoreConfig
) -> None:
    with a_pair(store_config=store_config) as pair:
        body = encode_batch((BatchedMessage(0, b"", b""),) * count)
        number = pair.feed(send_command(body=body, batch=True, properties=properties))
        assert pair.fast.served == 1
        pair.settle()
        (answer,) = pair.fast.answers[number]
        assert decode(answer).fields["msgId"].count(",") == count - 1
        pair.check()


def test_a_batch_whose_ids_fit_no_answer_is_handed_over_before_it_is_stored() -> None:
    with a_pair(store_config=LARGE) as pair:
        body = encode_batch((BatchedMessage(0, b"", b""),) * 20_000)
        pair.feed(send_command(body=body, batch=True))
        assert pair.fast.served == 0
        assert pair.fast.store.max_offset("T", 0) == pair.reference.store.max_offset("T", 0)
        pair.settle()
        pair.check()


def test_a_one_way_send_is_stored_and_not_answered() -> None:
    with a_pair() as pair:
        pair.reference.replies.clear()
        command = replace(send_command(), flag=ONEWAY_FLAG)
        number = pair.feed(command)
        assert pair.fast.served == 1
        assert number not in pair.fast.answers
        pair.reference.replies.pop(number)  # the shell leaves this one away
        pair.settle()
        pair.check()


def test_with_access_control_on_nothing_is_served_in_front_of_the_check() -> None:
    """All that C would serve is handed over, so that the one check sees every frame. Off again, C serves again."""
    guarded = BrokerConfig(acl_enable=True)
    offset = UpdateConsumerOffsetRequest(consumer_group="g", topic="T", queue_id=0, commit_offset=3)
    asked = encode_header(QueryConsumerOffsetRequest(consumer_group="g", topic="T", queue_id=0))
    commands = (send_command(), pull_command(), request(15, encode_header(offset)), request(14, asked))
    with a_pair(guarded) as pair:
        for command in commands:
            assert "its files have not been read" in (pair.fast.replies[pair.feed(command)][0].remark or "")
        assert pair.fast.served == 0
        assert pair.fast.store.max_offset("T", 0) == 0
        pair.check()
        pair.both(Install(tables_of(BrokerConfig(), SMALL)))
        pair.feed(commands[2])  # the first offset of a queue is looked at more closely
        for command in commands:
            pair.feed(command)
        assert pair.fast.served == len(commands)


# --- random requests --------------------------------------------------------------------------------------------------

TEXTS = st.text(st.characters(codec="utf-8", exclude_characters="\x01\x02"), max_size=8)
PROPERTIES = st.dictionaries(
    st.sampled_from(["TAGS", "KEYS", "UNIQ_KEY", "WAIT", "DELAY", "CLUSTER", "TRAN_MSG", "own"]) | TEXTS,
    st.sampled_from(["a", "b", "true", "TRUE", "false", "3", "0", "99", "+1", ""]) | TEXTS,
    max_size=5,
)
RAW_PROPERTIES = st.text(st.sampled_from("ab\x01\x02TAGSKEYWAIT"), max_size=24)


@st.composite
def sends(draw: st.DrawFn) -> RemotingCommand:
    changes: dict[str, Any] = {
        "queue_id": draw(st.integers(-1, 4)),
        "sys_flag": draw(st.sampled_from([0, 0, 0, 1, 4, 8, 12])),
        "flag": draw(st.integers(-3, 3)),
        "reconsume_times": draw(st.none() | st.integers(0, 3)),
    }
    body = draw(st.binary(max_size=40))
    if draw(st.integers(0, 5)) == 0:
        changes["batch"] = True
        body = encode_batch((BatchedMessage(0, body, b"TAGS\x01a"),) * draw(st.integers(0, 3)))
    command = send_command(
        draw(st.sampled_from(["T", "T", "T", "Several", "WriteOnly", "ReadOnly", "Unknown", "%RETRY%consumers"])),
        body,
        properties=draw(PROPERTIES),
        **changes,
    )
    fields = dict(command.fields)
    if draw(st.integers(0, 4)) == 0:
        fields["i"] = draw(RAW_PROPERTIES)
    if draw(st.integers(0, 9)) == 0:
        fields[draw(st.sampled_from("abefghjm"))] = draw(st.sampled_from(["", "x", "-1", "+2", "9" * 21, "true"]))
    return replace(command, ext_fields=fields)


@st.composite
def pulls(draw: st.DrawFn) -> RemotingCommand:
    flags = st.sampled_from([4, 4, 6, 6, 0, 2, 5, 7, 14])
    return pull_command(
        draw(st.integers(-1, 6)),
        topic=draw(st.sampled_from(["T", "T", "T", "Several", "ReadOnly", "WriteOnly", "Unknown"])),
        consumer_group=draw(st.sampled_from(["consumers", "consumers", "unknown"])),
        queue_id=draw(st.integers(-1, 4)),
        max_msg_nums=draw(st.sampled_from([-1, 0, 1, 2, 32])),
        sys_flag=draw(flags),
        commit_offset=draw(st.integers(-1, 9)),
        suspend_timeout_millis=draw(st.sampled_from([-1, 0, 1_000, 15_000, 1 << 40])),
        subscription=draw(st.sampled_from(["*", "", "a", "a||b", " a || b ", "||", "a|b", "ä", "a\t||b"])),
        sub_version=draw(st.integers(4, 6)),
        expression_type=draw(st.sampled_from([None, "", "TAG", "SQL92"])),
    )


@st.composite
def offset_requests(draw: st.DrawFn) -> RemotingCommand:
    group, topic = draw(st.sampled_from(["g", "consumers", "", "x" * 600])), draw(st.sampled_from(["T", "U"]))
    queue_id = draw(st.integers(0, 2))
    if draw(st.booleans()):
        header = UpdateConsumerOffsetRequest(
            consumer_group=group, topic=topic, queue_id=queue_id, commit_offset=draw(st.integers(-2, 50))
        )
        return request(RequestCode.UPDATE_CONSUMER_OFFSET, encode_header(header))
    query = QueryConsumerOffsetRequest(consumer_group=group, topic=topic, queue_id=queue_id)
    return request(RequestCode.QUERY_CONSUMER_OFFSET, encode_header(query))


STEPS = st.lists(
    st.tuples(sends() | pulls() | offset_requests(), st.integers(1, 3), st.integers(0, 2**31 - 1))
    | st.sampled_from(["settle", "settle", "second", "long", "close", "fail"]),
    max_size=25,
)


@settings(deadline=None)
@given(STEPS, st.booleans(), st.booleans())
@example([(send_command("%RETRY%consumers"), 2, 7), (send_command(), 3, 7)], True, False)  # one flush for both planes
def test_random_requests_are_answered_alike(steps: list[Any], is_sync: bool, long_polling: bool) -> None:
    config = BrokerConfig(long_polling_enable=long_polling)
    with a_pair(config, SYNC if is_sync else SMALL) as pair:
        for step in steps:
            match step:
                case "settle":
                    pair.settle()
                case "second":
                    pair.pass_time(1_000)
                case "long":
                    pair.pass_time(20_000)
                case "close":
                    pair.both(Closed(2))
                case "fail":
                    pair.both(FlushFailed())
                case (command, connection, draw):
                    pair.feed(command, connection=connection, draw=draw)
            pair.check()
        pair.settle()
        pair.check()
