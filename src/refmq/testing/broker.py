"""A broker inside a test: it strikes requests with faults, writes down what it sees, and can crash.

This is the one module of the fixture that knows how brokers are started.
"""

from __future__ import annotations

import asyncio
import inspect
import logging
from collections import deque
from collections.abc import Awaitable
from dataclasses import dataclass, replace
from typing import Final

from refmq.model.broker_config import BrokerConfig
from refmq.model.ids import TimestampMs
from refmq.model.step import Event, EventFields
from refmq.net.broker_node import BrokerNode
from refmq.net.clock import wall_ms
from refmq.net.connection import Answer, Connection, Handler
from refmq.net.engine import reference_engine
from refmq.net.limits import Limits
from refmq.protocol.codes import RequestCode, ResponseCode
from refmq.protocol.command import RemotingCommand, response
from refmq.protocol.names import SCHEDULE_TOPIC
from refmq.sim.choice import harshest
from refmq.sim.disk import SimulatedDisk
from refmq.store import StoreConfig
from refmq.store.config import FlushMode
from refmq.testing.clock import Stirred
from refmq.testing.faults import Faults, Kind
from refmq.trace.record import Outcome

PATIENT: Final = Limits(idle_timeout_s=1e9, frame_timeout_s=1e9, connect_timeout_s=20.0)
"""A jump of the clock must not look like a silence of the peers."""

SMALL_STORE: Final = StoreConfig(
    log_file_bytes=32 << 20, queue_file_bytes=20 * 4_096, index_slots=4_096, index_entries=16_384
)
OWN_FIELD: Final = "refmqFixture"
"""Requests of the fixture itself carry this field: faults spare them, and they are not written down."""

FROZEN_S: Final = 0.005
"""How soon a frozen flush looks whether it may go on."""
LINES_KEPT: Final = 400
SCHEDULE_QUEUES: Final = 18
STIRRING: Final = frozenset({RequestCode.CHECK_TRANSACTION_STATE})
PULLS: Final = frozenset({RequestCode.PULL_MESSAGE, RequestCode.LITE_PULL_MESSAGE})

log = logging.getLogger("refmq.testing")


@dataclass(frozen=True, slots=True)
class Seen:
    """One request as a broker saw it."""

    at_ms: int
    broker: str
    peer: str
    name: str
    fields: dict[str, str]
    answer: str

    def __str__(self) -> str:
        topic = self.fields.get("b") or self.fields.get("topic") or self.fields.get("originTopic") or ""
        group = self.fields.get("a") or self.fields.get("consumerGroup") or self.fields.get("group") or ""
        what = " ".join(part for part in (self.name, topic, f"({group})" if group else "") if part)
        return f"{self.peer:>21}  {what} -> {self.answer}"


class Diary:
    """What happened in a test, for its report: the last few hundred lines."""

    def __init__(self) -> None:
        self.lines: deque[str] = deque(maxlen=LINES_KEPT)
        self.requests: deque[Seen] = deque(maxlen=10_000)
        self.begin_ms: int | None = None

    def write(self, at_ms: int, text: str) -> None:
        if self.begin_ms is None:
            self.begin_ms = at_ms
        self.lines.append(f"{(at_ms - self.begin_ms) / 1000:10.3f} s  {text}")

    def record(self, event: EventFields, outcome: Outcome = Outcome.STEP, operation: int = 0) -> None:
        """The recorder of the brokers: each event is a line."""
        known = Event._make(event)
        place = f" {known.subject}" + (f"/{known.queue_id}" if known.queue_id >= 0 else "") if known.subject else ""
        self.write(wall_ms(), f"  {known.action}{place} {known.actor} a={known.a} b={known.b}".rstrip())


class Watcher:
    """The recorder of a broker's engine: counts what can be read, and passes on what tells a story."""

    TOLD: Final = frozenset({"CommitOffset", "SendHalf"})

    def __init__(self, diary: Diary, stirred: Stirred) -> None:
        self._diary = diary
        self._stirred = stirred

    def record(self, event: EventFields, outcome: Outcome = Outcome.STEP, operation: int = 0) -> None:
        action = event[0]
        if action == "DispatchMessage":
            self._stirred.stirs += 1
        elif action in self.TOLD:
            self._diary.record(event, outcome, operation)


class TestBroker(BrokerNode):
    """A broker whose requests pass through the faults of a test."""

    __test__ = False  # pytest: its name begins with Test, and it is none

    def __init__(
        self,
        config: BrokerConfig,
        disk: SimulatedDisk,
        *,
        faults: Faults,
        stirred: Stirred,
        diary: Diary,
        flush: FlushMode = FlushMode.ASYNC,
    ) -> None:
        settings = replace(SMALL_STORE, flush_mode=flush)
        self.test_engine = reference_engine(
            disk, settings, limits=PATIENT, recorder=Watcher(diary, stirred), around=self._around
        )
        super().__init__(config, settings, disk, self.test_engine, recorder=diary)
        self.simulated_disk = disk
        self.faults = faults
        self._stirred = stirred
        self._diary = diary
        self._watched: set[int] = set()

    def _around(self, honest: Handler) -> Handler:
        """What serves requests, with the faults of the test before it."""

        def serve(connection: Connection, command: RemotingCommand) -> Answer | Awaitable[Answer]:
            return self._serve(honest, connection, command)

        return serve

    def _serve(self, honest: Handler, connection: Connection, command: RemotingCommand) -> Answer | Awaitable[Answer]:
        if OWN_FIELD in command.fields:
            return honest(connection, command)
        self._stirred.touch()
        self._watch_connection(connection)
        rule = self.faults.strike(command.code) if command.code in RequestCode._value2member_map_ else None
        if rule is not None:
            match rule.kind:
                case Kind.RESPOND:
                    return self._seen(connection, command, response(command, rule.code, remark=rule.remark))
                case Kind.CLOSE:
                    connection.give_up("as the test wants it")
                    return self._seen(connection, command, None)
                case Kind.DELAY:
                    return self._later(honest, connection, command, rule.seconds)
                case Kind.DROP:
                    return self._unheard(honest, connection, command)
        answer = honest(connection, command)
        if inspect.isawaitable(answer):
            return self._awaited(connection, command, answer)
        return self._seen(connection, command, answer)

    async def _awaited(self, connection: Connection, command: RemotingCommand, answer: Awaitable[Answer]) -> Answer:
        return self._seen(connection, command, await answer)

    async def _later(self, honest: Handler, connection: Connection, command: RemotingCommand, seconds: float) -> Answer:
        await asyncio.sleep(seconds)
        answer = honest(connection, command)
        return self._seen(connection, command, await answer if inspect.isawaitable(answer) else answer)

    async def _unheard(self, honest: Handler, connection: Connection, command: RemotingCommand) -> Answer:
        answer = honest(connection, command)
        self._seen(connection, command, await answer if inspect.isawaitable(answer) else answer)
        return None

    def _watch_connection(self, connection: Connection) -> None:
        """Answers to pulls that were held, and questions, do not come back through `_serve`."""
        if connection.number in self._watched:
            return
        self._watched.add(connection.number)
        send = connection.send

        def watched(command: RemotingCommand) -> bool:
            self._stirred.touch()
            if not command.is_response and command.code in STIRRING:
                self._stirred.stirs += 1
            if command.is_response and command.code == ResponseCode.SUCCESS and "nextBeginOffset" in command.fields:
                self._stirred.handed_out += 1
            return send(command)

        connection.send = watched  # type: ignore[method-assign]  # this one connection only

    def _seen(self, connection: Connection, command: RemotingCommand, answer: Answer) -> Answer:
        self._stirred.touch()
        name = RequestCode(command.code).name if command.code in RequestCode._value2member_map_ else str(command.code)
        if answer is None:
            told = "(no answer yet)" if not command.is_oneway else "(one-way)"
        elif answer.code in ResponseCode._value2member_map_:
            told = ResponseCode(answer.code).name
        else:
            told = str(answer.code)
        if answer is not None and command.code in PULLS and answer.code == ResponseCode.SUCCESS:
            self._stirred.handed_out += 1
        if command.code == RequestCode.CONSUMER_SEND_MSG_BACK and answer is not None:
            self._stirred.given_back += 1
        at_ms = self.now_ms()
        seen = Seen(at_ms, self._config.broker_name, connection.peer, name, dict(command.fields), told)
        self._diary.requests.append(seen)
        self._diary.write(at_ms, str(seen))
        return answer

    async def _scan_clients(self) -> None:
        """Clients live in real time: a jump must not make them look dead. `expire_clients` does that on purpose."""

    def broker_queues(self, topic: str) -> int:
        """How many queues a topic has here; 0 when it does not exist."""
        config = self.broker.state.topics.get(topic)
        return SCHEDULE_QUEUES if topic == SCHEDULE_TOPIC else 0 if config is None else config.read_queue_nums

    async def expire_clients(self) -> None:
        """What a broker does two minutes after it last heard of its clients."""
        await super()._scan_clients()


def test_config(name: str, namesrv: str, port: int, given: BrokerConfig | None) -> BrokerConfig:
    """The settings of a broker in a test. Fast failure is off: a jump of the clock would look like a long wait."""
    base = given or BrokerConfig()
    return replace(
        base,
        broker_name=name,
        listen_port=port,
        namesrv_addr=namesrv,
        broker_fast_failure_enable=False,
        enable_property_filter=True,
        trace_topic_enable=True,
    )


def new_disk(faults: Faults) -> SimulatedDisk:
    """A disk in memory, whose flushes wait while they are frozen."""

    def clock() -> TimestampMs:
        return wall_ms()

    async def flush() -> None:
        while faults.flush_is_frozen:
            await asyncio.sleep(FROZEN_S)

    return SimulatedDisk(clock=clock, on_flush=flush)


async def crash(node: TestBroker, *, lose_unflushed: bool) -> SimulatedDisk:
    """Ends a broker as a crash would, and returns the disk as the next process finds it."""
    survived = node.simulated_disk.copy()
    for server in node.test_engine.servers:
        for connection in server.connections:
            connection.give_up("the broker crashed")
    # What the old process still does happens on a disk that nobody looks at any more.
    await node.stop(1.0)
    return survived.after_power_loss(harshest) if lose_unflushed else survived.after_process_crash()
