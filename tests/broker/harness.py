"""A broker without sockets, threads or waiting: a store in memory, a clock that stands still until a test moves it."""

from __future__ import annotations

import inspect
from collections.abc import Coroutine, Mapping
from dataclasses import replace
from typing import Any, TypeVar

from refmq.broker.broker import Broker
from refmq.broker.check_rounds import CheckRounds, Limits, Progress
from refmq.broker.config import BrokerConfig
from refmq.broker.handlers import handle
from refmq.broker.handlers.pull import answer_held
from refmq.broker.handlers.transaction import ask_producer
from refmq.broker.queue_locks import restart_broker
from refmq.broker.stored import StoredTables, start_state
from refmq.model.ids import HostAddress, PhysicalOffset, QueueOffset, TimestampMs
from refmq.model.step import Event
from refmq.protocol.codes import RequestCode
from refmq.protocol.command import LanguageCode, RemotingCommand, request, response
from refmq.protocol.headers.codec import encode_header
from refmq.protocol.headers.pull import PullMessageRequest, PullSysFlag
from refmq.protocol.headers.send import SendMessageRequest, encode_send_header
from refmq.protocol.record import Record, decode_records, join_properties
from refmq.sim.disk import SimulatedDisk
from refmq.store import ReferenceStore, StoreConfig, direct
from refmq.store.values import BatchToStore, MessageToStore, PutResult, PutStatus

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


class Harness:
    """The broker, and the world and engine around it."""

    def __init__(self, config: BrokerConfig | None = None, store_config: StoreConfig = SMALL) -> None:
        self.now = START_MS
        self.disk = SimulatedDisk(clock=self.now_ms)
        self.store = ReferenceStore(self.disk, store_config)
        run(self.store.start(self.now_ms()))
        self.saved: dict[str, bytes] = {}
        self.settings: dict[str, str] = {}
        self.registered: list[str | None] = []
        self.events: list[Event] = []
        self.refuse_puts: PutStatus | None = None
        self.peers: dict[int, FakePeer] = {}
        state = start_state(
            config or BrokerConfig(), StoredTables(), restart_broker(None), self.now_ms(), self.store.log_max
        )
        self.broker = Broker(state, store_config, self, self, STORE_HOST)
        start = Progress(QueueOffset(0), QueueOffset(0), PhysicalOffset(0))
        self.rounds = CheckRounds(
            self,
            self,
            self.broker.transactions,
            start,
            lambda half: ask_producer(self.broker, half),
            self.broker.ensure_topic,
        )

    # --- engine ----------------------------------------------------------------------------------------------------

    async def put(self, message: MessageToStore, *, wait_durable: bool = True) -> PutResult:
        return self._stored(self.refuse_puts or direct.put(self.store, message, self.now_ms()))

    async def put_batch(self, batch: BatchToStore, *, wait_durable: bool = True) -> PutResult:
        return self._stored(self.refuse_puts or direct.put_batch(self.store, batch, self.now_ms()))

    def _stored(self, result: PutResult | PutStatus) -> PutResult:
        if isinstance(result, PutStatus):
            return PutResult(result)
        for message in self.store.dispatch(1_000):
            for pull in self.broker.hold.arrived(message):
                answer_held(self.broker, pull)
        return result

    # --- world -----------------------------------------------------------------------------------------------------

    def now_ms(self) -> TimestampMs:
        return TimestampMs(self.now)

    def local_time(self, at_ms: TimestampMs) -> str:
        return f"2020-01-01 00:00:00,{at_ms % 1000:03d}"

    def disk_used_ratio(self) -> float:
        return 0.25

    def disk_capacity(self) -> tuple[int, int]:
        return 4 << 30, 3 << 30

    def random_below(self, bound: int) -> int:
        return 7 % bound

    def emit(self, event: Event) -> None:
        self.events.append(event)

    async def save(self, file: str, body: bytes) -> None:
        self.saved[file] = body

    async def save_settings(self, given: Mapping[str, str]) -> None:
        self.settings |= given

    async def register(self, topic: str | None = None) -> None:
        self.registered.append(topic)

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
        return run(_answer(self.broker, self.peer(peer), command))

    def send(
        self, topic: str = "T", body: bytes = b"x", *, queue: int = 0, properties: Mapping[str, str] | None = None,
        **changes: Any,
    ) -> RemotingCommand:  # fmt: skip
        header = send_header(topic, queue, properties or {}, **changes)
        return self.ask(RequestCode.SEND_MESSAGE_V2, fields=encode_send_header(header), body=body)

    def pull(self, topic: str = "T", queue: int = 0, offset: int = 0, **changes: Any) -> RemotingCommand | None:
        return self.tell(RequestCode.PULL_MESSAGE, pull_header(topic, queue, offset, **changes))

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
        run(self.rounds.run(Limits(check_max, timeout_ms)))


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


async def _answer(broker: Broker, peer: FakePeer, command: RemotingCommand) -> RemotingCommand | None:
    result = handle(broker, peer, command)
    return await result if inspect.isawaitable(result) else result


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
