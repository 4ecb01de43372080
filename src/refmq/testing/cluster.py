"""A nameserver and brokers in a thread of their own, with everything a test wants to know of them and do to them."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Coroutine, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from types import TracebackType
from typing import Any, Final, Self, TypeVar, overload

from refmq.aio.admin import Admin
from refmq.aio.producer import Producer
from refmq.client.message import ReceivedMessage, SendResult
from refmq.client.start_offset import StartAt
from refmq.errors import RefmqError, UsageError
from refmq.model.broker_config import BrokerConfig
from refmq.model.ids import MessageQueue
from refmq.net.nameserver import Nameserver
from refmq.protocol import names
from refmq.protocol.command import RemotingCommand
from refmq.sim.disk import SimulatedDisk
from refmq.store.config import FlushMode
from refmq.testing.broker import OWN_FIELD, PATIENT, Diary, Seen, TestBroker, crash, new_disk, test_config
from refmq.testing.clock import Clock, OwnedLoop, Stirred, advance
from refmq.testing.faults import Faults

CALL_TIMEOUT_S: Final = 60.0
STOP_TIMEOUT_S: Final = 2.0
WAIT_S: Final = 10.0

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Stored(Sequence[ReceivedMessage]):
    """Messages as they lie in a topic, queue by queue; compares with a list of bodies."""

    topic: str
    messages: tuple[ReceivedMessage, ...] = ()

    def bodies(self) -> list[bytes]:
        return [message.body for message in self.messages]

    def tags(self) -> list[str]:
        return [message.tag for message in self.messages]

    def with_key(self, key: str) -> Stored:
        return Stored(self.topic, tuple(message for message in self.messages if key in message.keys))

    def __len__(self) -> int:
        return len(self.messages)

    def __iter__(self) -> Iterator[ReceivedMessage]:
        return iter(self.messages)

    @overload
    def __getitem__(self, index: int) -> ReceivedMessage: ...

    @overload
    def __getitem__(self, index: slice) -> Sequence[ReceivedMessage]: ...

    def __getitem__(self, index: int | slice) -> ReceivedMessage | Sequence[ReceivedMessage]:
        return self.messages[index]

    def __repr__(self) -> str:
        return f"<{len(self.messages)} messages in {self.topic}: {self.bodies()[:5]!r}>"


class BrokerControl:
    """One broker of a test cluster: crash it, restart it."""

    def __init__(self, cluster: TestCluster, name: str) -> None:
        self._cluster = cluster
        self.name = name

    @property
    def address(self) -> str:
        return self._cluster._parts[self.name].address

    @property
    def is_up(self) -> bool:
        return self._cluster._parts[self.name].node is not None

    def crash(self, *, lose_unflushed: bool = False) -> None:
        """The process dies. With ``lose_unflushed`` the power fails as well: what was not flushed is gone."""
        self._cluster._call(self._cluster._crash(self.name, lose_unflushed))

    def stop(self) -> None:
        """Stops in good order."""
        self._cluster._call(self._cluster._stop_broker(self.name))

    def restart(self) -> None:
        """Starts again, on the same address and with what is left of its data. Stops first when it is up."""
        self._cluster._call(self._cluster._restart(self.name))


@dataclass
class _Part:
    """A broker and what outlives it."""

    config: BrokerConfig
    disk: SimulatedDisk
    node: TestBroker | None = None
    address: str = ""


class TestCluster:
    """What the fixture `refmq` is. Addresses are on 127.0.0.1; everything else is in memory."""

    __test__ = False  # pytest: its name begins with Test, and it is none

    def __init__(self, *, config: BrokerConfig | None = None, sync_flush: bool = False) -> None:
        self._config = config
        self._flush = FlushMode.SYNC if sync_flush else FlushMode.ASYNC
        self._parts: dict[str, _Part] = {}
        self._ready = threading.Event()
        self._problem: BaseException | None = None
        self._loop: OwnedLoop | None = None
        self._thread: threading.Thread | None = None
        self._stirred = Stirred()
        self._diary = Diary()
        self.faults = Faults()
        self.clock = Clock(self._advance)
        self.broker = BrokerControl(self, "broker-a")

    # Life -----------------------------------------------------------------------------------------------------------

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.stop()

    def start(self) -> None:
        """Starts the nameserver and one broker."""
        assert self._thread is None, "a cluster is started once"
        self._thread = threading.Thread(target=self._main, name="refmq-test-cluster", daemon=True)
        self._thread.start()
        if not self._ready.wait(CALL_TIMEOUT_S):
            raise RefmqError("The test cluster did not start.")
        if self._problem is not None:
            raise self._problem

    def stop(self) -> None:
        """Stops everything. May be called twice."""
        if self._loop is not None and self._thread is not None and self._thread.is_alive():
            self._loop.call_soon_threadsafe(self._end.set)
            self._thread.join(CALL_TIMEOUT_S)

    def _main(self) -> None:
        with asyncio.Runner(loop_factory=self._make_loop) as runner:
            try:
                runner.run(self._run())
            except BaseException as error:
                self._problem = error
                self._ready.set()

    def _make_loop(self) -> OwnedLoop:
        self._loop = OwnedLoop()
        return self._loop

    async def _run(self) -> None:
        self._end = asyncio.Event()
        nameserver = Nameserver(limits=PATIENT)
        host, port = await nameserver.start("127.0.0.1", 0)
        self.namesrv = f"{host}:{port}"
        self._admin = Admin(self.namesrv, rpc_hook=_own, client_ip="127.0.0.1", limits=PATIENT)
        self._producer = Producer(self.namesrv, group="refmq-fixture", client_ip="127.0.0.1", limits=PATIENT)
        try:
            await self._add_broker("broker-a")
            await self._admin.open()
            await self._producer.open()
            self._ready.set()
            await self._end.wait()
        finally:
            self.faults.thaw_flush()
            await self._producer.close(STOP_TIMEOUT_S)
            await self._admin.close(STOP_TIMEOUT_S)
            for name in self._parts:
                await self._stop_broker(name)
            await nameserver.close(STOP_TIMEOUT_S)

    def _call(self, work: Coroutine[Any, Any, T]) -> T:
        if self._loop is None or self._thread is None or not self._thread.is_alive():
            work.close()
            raise UsageError("The test cluster is not running.")
        assert threading.current_thread() is not self._thread
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(CALL_TIMEOUT_S)

    def _advance(self, seconds: float, settle_s: float) -> None:
        assert self._loop is not None
        self._call(advance(self._loop, seconds, self._stirred, settle_s))

    # Brokers --------------------------------------------------------------------------------------------------------

    def add_broker(self, name: str) -> BrokerControl:
        """One more master."""
        self._call(self._add_broker(name))
        return BrokerControl(self, name)

    async def _add_broker(self, name: str) -> None:
        if name in self._parts:
            raise UsageError(f"There is already a broker {name}.")
        self._parts[name] = _Part(test_config(name, self.namesrv, 0, self._config), new_disk(self.faults))
        await self._start_broker(name)

    async def _start_broker(self, name: str) -> None:
        part = self._parts[name]
        node = TestBroker(
            part.config,
            part.disk,
            faults=self.faults,
            stirred=self._stirred,
            diary=self._diary,
            flush=self._flush,
        )
        host, port = await node.start("127.0.0.1")
        part.node, part.address = node, f"{host}:{port}"
        part.config = replace(part.config, listen_port=port)

    async def _stop_broker(self, name: str) -> None:
        part = self._parts[name]
        node, part.node = part.node, None
        if node is not None:
            await node.stop(STOP_TIMEOUT_S)
            part.disk = part.disk.after_process_crash()

    async def _crash(self, name: str, lose_unflushed: bool) -> None:
        part = self._parts[name]
        node, part.node = part.node, None
        if node is None:
            raise UsageError(f"{name} is already down.")
        self.faults.thaw_flush()  # the old process must come to its end
        part.disk = await crash(node, lose_unflushed=lose_unflushed)
        self._diary.write(node.now_ms(), f"  {name} crashed{', unflushed data is lost' if lose_unflushed else ''}")

    async def _restart(self, name: str) -> None:
        await self._stop_broker(name)
        await self._start_broker(name)

    def expire_clients(self) -> None:
        """Lets the brokers forget clients that they have not heard of for two minutes of their clock."""
        for part in self._parts.values():
            if part.node is not None:
                self._call(part.node.expire_clients())

    # What a test does -----------------------------------------------------------------------------------------------

    def topic(self, name: str, *, queues: int = 4) -> str:
        """Makes a topic, and returns its name."""
        self._call(self._admin.create_topic(name, queues=queues))
        return name

    def group(self, name: str, *, max_retries: int = 16) -> str:
        """Makes a consumer group; not needed, as brokers make groups by themselves."""
        self._call(self._admin.create_group(name, max_retries=max_retries))
        return name

    def send(
        self,
        topic: str,
        body: bytes,
        *,
        tag: str = "",
        keys: Iterable[str] = (),
        properties: Mapping[str, str] | None = None,
        delay_level: int = 0,
        sharding_key: str | int | None = None,
    ) -> SendResult:
        """Sends a message, as ``Producer.send`` does."""
        return self._call(
            self._producer.send(
                topic,
                body,
                tag=tag,
                keys=keys,
                properties=properties,
                delay_level=delay_level,
                sharding_key=sharding_key,
            )
        )

    def reset_offset(self, group: str, topic: str, to: StartAt) -> None:
        """Sends a group elsewhere."""
        self._call(self._admin.reset_offset(group=group, topic=topic, to=to))

    def wait_for(self, condition: Callable[[], object], *, timeout: float = WAIT_S, what: str = "") -> None:
        """Waits (in real time) until a condition holds; ``AssertionError`` when it does not."""
        deadline = time.monotonic() + timeout
        while not condition():
            if time.monotonic() > deadline:
                raise AssertionError(f"{what or 'the condition'} did not come true within {timeout:g} s")
            time.sleep(0.005)

    async def wait_for_async(self, condition: Callable[[], object], *, timeout: float = WAIT_S, what: str = "") -> None:
        """The same for a test that is a coroutine."""
        deadline = time.monotonic() + timeout
        while not await asyncio.get_running_loop().run_in_executor(None, condition):
            if time.monotonic() > deadline:
                raise AssertionError(f"{what or 'the condition'} did not come true within {timeout:g} s")
            await asyncio.sleep(0.005)

    # What a test asks -----------------------------------------------------------------------------------------------

    def messages(self, topic: str) -> Stored:
        """Everything that is in a topic now, in the order in which it was stored."""
        return self._call(self._messages(topic))

    def dlq(self, group: str) -> Stored:
        """The dead letters of a group."""
        return self.messages(names.dlq_topic(group))

    def retries(self, group: str) -> Stored:
        """What was given back and is (or was) there to be tried again. What still waits for its time is ``delayed``."""
        return self.messages(names.retry_topic(group))

    def delayed(self) -> Stored:
        """What waits, or waited, for its time: delayed messages and retries."""
        return self.messages(names.SCHEDULE_TOPIC)

    def lag(self, group: str, topic: str | None = None) -> int:
        """How many messages a group has not committed."""
        return self._call(self._admin.lag(group, topic)).total

    def offsets(self, group: str, topic: str) -> dict[MessageQueue, int]:
        """The committed offsets of a group."""
        return self._call(self._admin.offsets(group, topic))

    def members(self, group: str) -> list[str]:
        """The client ids of the members of a group."""
        return [connection.client_id for connection in self._call(self._admin.members(group))]

    def wait_consumed(self, group: str, topic: str, *, timeout: float = WAIT_S) -> None:
        """Waits until a group has committed everything of a topic. Clients commit every 5 s and when closed."""
        self.wait_for(
            lambda: self._consumed(group, topic), timeout=timeout, what=f"that {group} has consumed all of {topic}"
        )

    def _consumed(self, group: str, topic: str) -> bool:
        committed = self.offsets(group, topic)
        ends = self._call(self._admin.topic_offsets(topic))
        return all(committed.get(queue, 0) >= offsets.max_offset for queue, offsets in ends.items())

    def requests(self, name: str = "*") -> list[Seen]:
        """The requests that brokers have seen, those of the fixture itself left out."""
        return [seen for seen in list(self._diary.requests) if name in ("*", seen.name)]

    def events(self) -> list[str]:
        """The last few hundred lines of what happened, with the brokers' time."""
        return list(self._diary.lines)

    async def _messages(self, topic: str) -> Stored:
        found: list[ReceivedMessage] = []
        for name, part in sorted(self._parts.items()):
            if part.node is None:
                continue
            for queue_id in range(part.node.broker_queues(topic)):
                found += await self._admin.read_queue(part.address, MessageQueue(topic, name, queue_id))
        # Brokers have one clock here; of one millisecond only each broker knows the order of its own.
        found.sort(key=lambda message: (message.store_timestamp_ms, message.queue.broker, message.physical_offset))
        return Stored(topic, tuple(found))


def _own(address: str, command: RemotingCommand) -> RemotingCommand:
    return replace(command, ext_fields={**command.fields, OWN_FIELD: "1"})
