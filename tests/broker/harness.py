"""A broker without sockets, threads or waiting: a store in memory, a clock that stands still until a test moves it."""

from __future__ import annotations

import inspect
import itertools
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from dataclasses import replace
from typing import Any, TypeVar

from refmq.broker.check_rounds import CheckLimits, CheckRounds, Progress
from refmq.broker.config_files import StoredTables, start_state
from refmq.broker.control_plane import Broker
from refmq.broker.handed_over import HandedOver
from refmq.broker.handlers.transaction import ask_producer
from refmq.broker.queue_locks import restart_broker
from refmq.model.broker_config import BrokerConfig
from refmq.model.ids import HostAddress, PhysicalOffset, QueueOffset, TimestampMs
from refmq.model.step import Event
from refmq.plane import PlaneState, Snapshot
from refmq.plane.counts import Counts
from refmq.plane.effects import (
    HandOver,
    Reply,
)
from refmq.plane.engine import Answer, ControlPlane
from refmq.plane.flow import Flow
from refmq.plane.hold import Hold
from refmq.plane.inputs import (
    Commit,
    Frame,
    Input,
    Install,
    OwnPut,
    SetOffsets,
    Tick,
    Ticket,
)
from refmq.plane.offsets import OffsetTable
from refmq.protocol.codes import RequestCode
from refmq.protocol.command import LanguageCode, RemotingCommand, request, response
from refmq.protocol.headers.codec import encode_header
from refmq.protocol.headers.pull import PullMessageRequest, PullSysFlag
from refmq.protocol.headers.send import SendMessageRequest, encode_send_header
from refmq.protocol.record import Record, decode_records, join_properties
from refmq.sim.disk import SimulatedDisk
from refmq.store import ReferenceStore, StoreConfig
from refmq.store.values import MessageToStore, PutResult, PutStatus, RecoveryReport
from tests.plane.runner import Runner

T = TypeVar("T")

SMALL = StoreConfig(log_file_bytes=64 << 10, queue_file_bytes=20 * 64, index_slots=64, index_entries=256)
STORE_HOST = HostAddress(bytes([127, 0, 0, 1]), 10911)
START_MS = 1_700_000_000_000


class FakePeer:
    """A client: remembers what it was sent, and answers requests with `answers`."""

    def __init__(self, number: int) -> None:
        self.number = number
        self.peer = f"127.0.0.1:{40_000 + number}"
        self.closed = False
        self.received: list[RemotingCommand] = []
        self.answers: list[RemotingCommand] = []

    async def request(self, command: RemotingCommand, timeout_s: float) -> RemotingCommand:
        self.received.append(command)
        return self.answers.pop(0) if self.answers else response(command, 0)

    def send_oneway(self, command: RemotingCommand) -> bool:
        self.received.append(command)
        return not self.closed

    def send(self, command: RemotingCommand) -> bool:
        return self.send_oneway(command)

    def close(self, reason: str = "") -> None:
        self.closed = True


class FakeEngine:
    """An engine without ports and without waiting: flushes and dispatches at once."""

    name = "fake"

    def __init__(self, harness: Harness, store: ReferenceStore) -> None:
        self._harness = harness
        self.store = store
        self._runner: Runner | None = None
        self._tickets = itertools.count(1)

    @property
    def runner(self) -> Runner:
        assert self._runner is not None, "the engine runs"
        return self._runner

    @property
    def offsets(self) -> OffsetTable:
        return self.runner.state.offsets

    @property
    def flow(self) -> Flow:
        return self.runner.state.flow

    @property
    def uptime_ms(self) -> int:
        return self._harness.now - START_MS

    @property
    def recorder(self) -> None:
        return None

    def run(self, control: ControlPlane, snapshot: Snapshot, offsets: OffsetTable) -> None:
        def hand_over(given: HandOver) -> Answer | Awaitable[Answer]:
            return control.serve(self._harness.peer(given.frame.connection), given.frame, given.need)

        self._runner = Runner(
            self.store, PlaneState(snapshot, offsets), hand_over=hand_over, events=self._harness.events
        )
        if snapshot.config.enable_calc_filter_bit_map:
            self.store.set_filters(snapshot.filters.by_topic)

    def feed(self, given: Input) -> Answer | Awaitable[Answer]:
        runner = self.runner
        runner.now_ms, runner.refuse_appends = self._harness.now, self._harness.refuse_puts
        answer = runner.feed(given)
        runner.settle()
        for effect in runner.done:
            if isinstance(effect, Reply) and effect.frame is not given:
                self._harness.peer(effect.frame.connection).received.append(effect.command)
        runner.done.clear()
        return answer

    def install(self, snapshot: Snapshot, *, new_group: str | None = None) -> None:
        self.feed(Install(snapshot))

    def commit_offset(self, group: str, topic: str, queue_id: int, offset: QueueOffset) -> None:
        self.feed(Commit(group, topic, queue_id, offset))

    def set_offsets(self, offsets: OffsetTable) -> None:
        self.feed(SetOffsets(offsets))

    async def put(self, message: MessageToStore, *, wait_durable: bool = True) -> PutResult:
        ticket = Ticket(next(self._tickets))
        self.feed(OwnPut(ticket, message, wait_durable))
        return self.runner.told.pop(ticket)

    def again(self, frame: Frame) -> Answer | Awaitable[Answer]:
        return self.feed(frame)

    def take_counts(self) -> Counts:
        taken, self.runner.counts = self.runner.counts, Counts()
        return taken

    def watch(self, topic: str, told: Callable[[], None]) -> None:
        raise NotImplementedError("tests deliver what is due themselves")

    def connection(self, number: int) -> FakePeer | None:
        return self._harness.peers.get(number)

    def frame(self, peer: FakePeer, command: RemotingCommand) -> Frame:
        return self.runner.frame(command, connection=peer.number)

    # What only a process uses.

    @property
    def failure(self) -> Awaitable[BaseException]:
        raise NotImplementedError

    async def recover(self, now_ms: TimestampMs) -> RecoveryReport:
        raise NotImplementedError

    async def listen(self, host: str, port: int) -> tuple[str, int]:
        raise NotImplementedError

    async def listen_vip(self, host: str, port: int) -> None:
        raise NotImplementedError

    async def close(self, timeout_s: float) -> None:
        raise NotImplementedError

    async def stop(self, now_ms: TimestampMs) -> None:
        raise NotImplementedError


class Harness:
    """The broker, and the environment and engine around it."""

    def __init__(self, config: BrokerConfig | None = None, store_config: StoreConfig = SMALL) -> None:
        self.now = START_MS
        self.disk = SimulatedDisk(clock=self.now_ms)
        self.store = ReferenceStore(self.disk, store_config)
        run(self.store.start(self.now_ms()))
        self.saved: dict[str, bytes] = {}
        self.settings: dict[str, str] = {}
        self.registered = 0
        self.events: list[Event] = []
        self.warnings: list[str] = []
        self.turns = 0
        """How often long work let others have theirs."""
        self.refuse_puts: PutStatus | None = None
        self.peers: dict[int, FakePeer] = {}
        self.engine = FakeEngine(self, self.store)
        state = start_state(
            config or BrokerConfig(), StoredTables(), restart_broker(None), self.now_ms(), self.store.log_max
        )
        self.broker = Broker(state, store_config, self.engine, self, STORE_HOST)
        self.broker.run(HandedOver(self.broker), OffsetTable())
        start = Progress(QueueOffset(0), QueueOffset(0), PhysicalOffset(0))
        self.rounds = CheckRounds(
            self.engine,
            self,
            self.broker.transactions,
            start,
            lambda half: ask_producer(self.broker, half),
            self.broker.ensure_topic,
        )

    @property
    def hold(self) -> Hold:
        return self.engine.runner.state.hold

    @property
    def offsets(self) -> OffsetTable:
        return self.engine.offsets

    def tick(self) -> None:
        """Some time has passed, enough for a look at the waiting pulls."""
        self.engine.feed(Tick())

    # --- world -----------------------------------------------------------------------------------------------------

    def now_ms(self) -> TimestampMs:
        return TimestampMs(self.now)

    def local_time(self, at_ms: TimestampMs) -> str:
        return f"2020-01-01 00:00:00,{at_ms % 1000:03d}"

    def disk_capacity(self) -> tuple[int, int]:
        return 4 << 30, 3 << 30

    def random_below(self, bound: int) -> int:
        return 7 % bound

    def emit(self, event: Event) -> None:
        self.events.append(event)

    def warn(self, sentence: str) -> None:
        self.warnings.append(sentence)

    async def give_way(self) -> None:
        self.turns += 1

    async def save(self, file: str, encode: Callable[[], bytes]) -> None:
        self.saved[file] = encode()

    async def save_settings(self, given: Mapping[str, str]) -> None:
        self.settings |= given

    async def register(self) -> None:
        self.registered += 1

    def spawn(self, work: Coroutine[Any, Any, None], name: str) -> None:
        run(work)

    def connection(self, number: int) -> FakePeer | None:
        return self.peers.get(number)

    # --- what tests do -----------------------------------------------------------------------------------------------

    def peer(self, number: int = 1) -> FakePeer:
        return self.peers.setdefault(number, FakePeer(number))

    def ask(
        self,
        code: RequestCode,
        header: Any = None,
        body: bytes = b"",
        *,
        peer: int = 1,
        fields: Mapping[str, str] | None = None,
        version: int = 409,
        language: LanguageCode = LanguageCode.JAVA,
    ) -> RemotingCommand:
        """The answer to a request; fails when there is none."""
        answer = self.tell(code, header, body, peer=peer, fields=fields, version=version, language=language)
        assert answer is not None, f"{code.name} was not answered"
        return answer

    def tell(
        self,
        code: RequestCode,
        header: Any = None,
        body: bytes = b"",
        *,
        peer: int = 1,
        fields: Mapping[str, str] | None = None,
        version: int = 409,
        language: LanguageCode = LanguageCode.JAVA,
    ) -> RemotingCommand | None:
        """The answer to a request, or None."""
        given = encode_header(header) if header is not None else dict(fields or {})
        command = replace(request(code, given, body, opaque=5, version=version), language=language)
        return run(_awaited(self.engine.feed(self.engine.frame(self.peer(peer), command))))

    def send(
        self, topic: str = "T", body: bytes = b"x", *, queue: int = 0, properties: Mapping[str, str] | None = None,
        **changes: Any,
    ) -> RemotingCommand:  # fmt: skip
        header = send_header(topic, queue, properties or {}, **changes)
        return self.ask(RequestCode.SEND_MESSAGE_V2, fields=encode_send_header(header), body=body)

    def pull(self, topic: str = "T", queue: int = 0, offset: int = 0, **changes: Any) -> RemotingCommand | None:
        return self.tell(RequestCode.PULL_MESSAGE, pull_header(topic, queue, offset, **changes))

    def damage(self, physical_offset: int, text: bytes) -> None:
        """Flips a bit of a stored record where it holds `text`."""
        (file,) = self.disk.list("commitlog")
        path = f"commitlog/{file}"
        data = self.disk.contents()[path]
        at = data.index(text, physical_offset)
        self.disk.flip_bit(path, at)

    def records(self, topic: str = "T", queue: int = 0) -> list[Record]:
        """Everything in a queue, read past every filter."""
        found: list[Record] = []
        while True:
            result = self.store.get_message(topic, queue, QueueOffset(len(found)), 32)
            if not result.records:
                return found
            found.extend(decode_records(b"".join(result.records)))

    def round(self, check_max: int = 15, timeout_ms: int = 6_000) -> None:
        """One check round for transactions."""
        run(self.rounds.run(CheckLimits(check_max, timeout_ms)))


def send_header(topic: str, queue: int, properties: Mapping[str, str], **changes: Any) -> SendMessageRequest:
    header = SendMessageRequest(
        producer_group="producers",
        topic=topic,
        default_topic="TBW102",
        default_topic_queue_nums=4,
        queue_id=queue,
        sys_flag=0,
        born_timestamp=START_MS,
        flag=0,
        properties=join_properties(properties),
    )
    return replace(header, **changes)


def pull_header(topic: str, queue: int, offset: int, **changes: Any) -> PullMessageRequest:
    header = PullMessageRequest(
        consumer_group="consumers",
        topic=topic,
        queue_id=queue,
        queue_offset=offset,
        max_msg_nums=32,
        sys_flag=PullSysFlag.SUBSCRIPTION,
        commit_offset=0,
        suspend_timeout_millis=15_000,
        subscription="*",
        sub_version=0,
        expression_type="TAG",
    )
    return replace(header, **changes)


async def _awaited(answer: Answer | Awaitable[Answer]) -> Answer:
    return await answer if inspect.isawaitable(answer) else answer


def run(work: Coroutine[Any, Any, T]) -> T:
    """Drives a coroutine that never really waits. Works inside a running loop as well."""
    try:
        work.send(None)
    except StopIteration as done:
        result: T = done.value
        return result
    work.close()
    raise AssertionError("something waited that should not have")


__all__ = ["START_MS", "FakePeer", "Harness", "pull_header", "run", "send_header"]
