"""A plane without an event loop: performs effects at once, and flushes and dispatches only when told."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

from rpds import HashTrieMap

from refmq.filter import BloomFilter
from refmq.filter.registry import FilterRegistry
from refmq.model.broker_config import BrokerConfig
from refmq.model.ids import HostAddress, TimestampMs
from refmq.model.step import Event, EventFields
from refmq.plane import PlaneState, PlaneStep, Snapshot, step
from refmq.plane.counts import Counts
from refmq.plane.effects import (
    Append,
    CountPull,
    CountPut,
    CountRefusedSend,
    CountSend,
    Dispatch,
    Effect,
    Flush,
    HandOver,
    Park,
    PutNote,
    Reply,
    SetFilters,
    Tell,
    Wait,
    WakeMore,
)
from refmq.plane.engine import Answer
from refmq.plane.inputs import Arrived, Durable, Frame, Input, Moment, NextWoken, OwnPut, Ticket
from refmq.plane.puts import append_failed
from refmq.protocol.bodies.config import SubscriptionGroupConfig, TopicConfig
from refmq.protocol.codes import RequestCode
from refmq.protocol.command import RemotingCommand, request
from refmq.protocol.headers.codec import encode_header
from refmq.protocol.headers.pull import PullMessageRequest, PullSysFlag
from refmq.protocol.headers.send import SendMessageRequest, encode_send_header
from refmq.protocol.record import join_properties
from refmq.store import ReferenceStore, StoreConfig
from refmq.store.config import FlushMode
from refmq.store.values import PutResult, PutStatus
from tests.store.helpers import new_disk
from tests.store.helpers import run as run_at_once

START_MS = 1_700_000_000_000
STORE_HOST = HostAddress(bytes([127, 0, 0, 1]), 10911)
SMALL = StoreConfig(log_file_bytes=64 << 10, queue_file_bytes=20 * 64, index_slots=64, index_entries=256)
SYNC = StoreConfig(
    log_file_bytes=64 << 10,
    queue_file_bytes=20 * 64,
    index_slots=64,
    index_entries=256,
    flush_mode=FlushMode.SYNC,
)


def snapshot(
    config: BrokerConfig | None = None, store_config: StoreConfig = SMALL, topics: Iterable[TopicConfig] = ()
) -> Snapshot:
    """The tables of a broker with topic T, four queues, and group `consumers`."""
    own = TopicConfig(topic_name="T", read_queue_nums=4, write_queue_nums=4)
    known = {topic.topic_name: topic for topic in (own, *topics)}
    return Snapshot(
        config=config or BrokerConfig(),
        store_config=store_config,
        store_host=STORE_HOST,
        topics=HashTrieMap(known),
        groups=HashTrieMap({"consumers": SubscriptionGroupConfig(group_name="consumers")}),
        consumers=HashTrieMap(),
        filters=FilterRegistry(BloomFilter.for_groups()),
    )


@dataclass
class Runner:
    """Holds the state, performs effects and remembers what was done."""

    store: ReferenceStore
    state: PlaneState
    now_ms: int = START_MS
    refuse_appends: PutStatus | None = None
    hand_over: Callable[[HandOver], Answer | Awaitable[Answer]] | None = None
    done: list[Effect] = field(default_factory=list)
    events: list[Event] = field(default_factory=list)
    replies: dict[int, list[RemotingCommand]] = field(default_factory=dict)
    """By the number of the frame."""
    told: dict[Ticket, PutResult] = field(default_factory=dict)
    counts: Counts = field(default_factory=Counts)
    wants_flush: bool = False
    wants_dispatch: bool = False
    frames: int = 0

    @property
    def now(self) -> Moment:
        return Moment(TimestampMs(self.now_ms), self.now_ms - START_MS)

    def frame(self, command: RemotingCommand, *, connection: int = 1, draw: int = 7, vip: bool = False) -> Frame:
        self.frames += 1
        return Frame(self.frames, connection, f"127.0.0.1:{40_000 + connection}", command, 0, draw, vip)

    def outcome(self, given: Input) -> PlaneStep:
        """The step of an input. Nothing has happened yet."""
        return step(self.state, self.store, given, self.now)

    def feed(self, given: Input) -> Answer | Awaitable[Answer]:
        """Takes the step of an input; for a frame its answer, if it has one now."""
        outcome = self.outcome(given)
        first = outcome.effects[0] if outcome.effects else None
        if isinstance(first, Append):
            status = self.refuse_appends or self.store.append(first.put.plan)
            if status is not PutStatus.PUT_OK:
                outcome = append_failed(self.state, self.store, first.put, status)
        assert not any(isinstance(effect, Append) for effect in outcome.effects[1:]), "an append comes first"
        self.state = outcome.state
        self.record(outcome.events)
        result: Answer | Awaitable[Answer] = None
        for effect in outcome.effects:
            self.done.append(effect)
            if isinstance(effect, Reply):
                self.replies.setdefault(effect.frame.number, []).append(effect.command)
                result = effect.command if effect.frame is given else result
            elif isinstance(effect, HandOver) and self.hand_over is not None:
                result = self.hand_over(effect)
            else:
                self.perform(effect)
        return result

    def record(self, events: tuple[EventFields, ...]) -> None:
        self.events += map(Event._make, events)

    def perform(self, effect: Effect) -> None:
        match effect:
            case Flush():
                self.wants_flush = True
            case Dispatch():
                self.wants_dispatch = True
            case Tell():
                self.told[effect.ticket] = effect.result
            case WakeMore():
                self.feed(NextWoken())
            case PutNote():
                self.feed(OwnPut(Ticket(0), effect.message, waits=False))
            case SetFilters():
                self.store.set_filters(effect.filters)
            case CountSend() | CountRefusedSend() | CountPut():
                self.counts.add(effect)
            case CountPull():
                self.counts.add_pull(effect, 0)
            case Append() | Reply() | Wait() | Park() | HandOver():
                pass

    def flush(self) -> None:
        """The flusher does what it was asked for."""
        self.wants_flush = False
        self.feed(Durable(run_at_once(self.store.flush())))

    def dispatch(self) -> None:
        self.wants_dispatch = False
        messages = self.store.dispatch(1_000)
        if messages:
            self.feed(Arrived(messages))

    def settle(self) -> None:
        """Flushes and dispatches until nobody wants either."""
        while self.wants_flush or self.wants_dispatch:
            if self.wants_flush:
                self.flush()
            else:
                self.dispatch()

    # --- what tests ask ----------------------------------------------------------------------------------------------

    def send(self, topic: str = "T", body: bytes = b"x", *, connection: int = 1, **changes: Any) -> Frame:
        """Feeds a send, and returns its frame."""
        frame = self.frame(send_command(topic, body, **changes), connection=connection)
        self.feed(frame)
        return frame

    def pull(self, offset: int = 0, *, connection: int = 1, **changes: Any) -> Frame:
        frame = self.frame(pull_command(offset, **changes), connection=connection)
        self.feed(frame)
        return frame

    def codes(self, frame: Frame) -> list[int]:
        return [command.code for command in self.replies.get(frame.number, [])]


def running(
    config: BrokerConfig | None = None, store_config: StoreConfig = SMALL, topics: Iterable[TopicConfig] = ()
) -> Runner:
    store = ReferenceStore(new_disk(), store_config)
    run_at_once(store.start(TimestampMs(START_MS)))
    return Runner(store, PlaneState(snapshot(config, store_config, topics)))


def send_command(topic: str = "T", body: bytes = b"x", **changes: Any) -> RemotingCommand:
    """A send. `properties` is a mapping; other changes are fields of the header, and `version` of the command."""
    version = changes.pop("version", 409)
    properties = changes.pop("properties", {})
    assert isinstance(properties, dict) and isinstance(version, int)
    fields: dict[str, Any] = {
        "producer_group": "producers",
        "topic": topic,
        "default_topic": "TBW102",
        "default_topic_queue_nums": 4,
        "queue_id": 0,
        "sys_flag": 0,
        "born_timestamp": START_MS,
        "flag": 0,
        "properties": join_properties(properties),
    }
    header = SendMessageRequest(**{**fields, **changes})
    return request(RequestCode.SEND_MESSAGE_V2, encode_send_header(header), body, opaque=5, version=version)


def pull_command(offset: int = 0, **changes: Any) -> RemotingCommand:
    fields: dict[str, Any] = {
        "consumer_group": "consumers",
        "topic": "T",
        "queue_id": 0,
        "queue_offset": offset,
        "max_msg_nums": 32,
        "sys_flag": PullSysFlag.SUBSCRIPTION,
        "commit_offset": 0,
        "suspend_timeout_millis": 15_000,
        "subscription": "*",
        "sub_version": 0,
        "expression_type": "TAG",
    }
    header = PullMessageRequest(**{**fields, **changes})
    return request(RequestCode.PULL_MESSAGE, encode_header(header), opaque=6)
