"""Lives through a history in the simulated world and judges what was recorded."""

from __future__ import annotations

import asyncio
import contextlib
from collections import Counter
from collections.abc import Coroutine, Iterator
from dataclasses import dataclass, field
from typing import Any, Final

from conformance.cluster import administration, arranging, consuming, deciding, questions, sending, stranger
from conformance.cluster import history as h
from conformance.cluster.client import ScriptedClient
from conformance.cluster.consuming import DELAYS_S
from conformance.cluster.faults import damage_newest, disturb, strike
from conformance.cluster.known import TOPIC, BrokerAddress, Common
from conformance.cluster.nodes import CHECKS_MAX, broker_config, limits, store_config
from conformance.cluster.tables import seen_tables
from conformance.cluster.ways import forms_of
from conformance.cluster.wire import Wire
from conformance.coverage import Cells, cells_of
from conformance.engines import cluster_engine
from refmq.model.fingerprint import message_fingerprint
from refmq.model.ids import MessageQueue
from refmq.protocol.host_address import host_of
from refmq.protocol.names import SCHEDULE_TOPIC, TRANS_HALF_TOPIC
from refmq.sim.cluster import Cluster, OpenEngine
from refmq.sim.loop import Stuck
from refmq.sim.network import HICCUP_FACTOR
from refmq.sim.transport import SimulatedTransport
from refmq.sim.world import Node, NodeDown, RunFailed, World
from refmq.verify.oracles import Line, Promises, judge, line_of
from refmq.verify.oracles.arranged import arranged_is_so
from refmq.verify.oracles.base import Finding
from refmq.verify.oracles.tables import SeenTable, tables_saved
from refmq.verify.oracles.transactions import asked_enough
from refmq.verify.oracles.wire import one_answer_per_request

STEP_S: Final = 0.001
"""What passes between two steps anyway."""
WINDOW_BYTES: Final = 1_000
"""What is under way at most where write buffers are tiny: a usual window would take all that a history answers."""
SETTLE_S: Final = 12.0
"""The quiet time at the end: longer than every timeout of a client and every lag of a queue."""
SAVED_S: Final = 1.0
"""What a broker may take to save a table that has changed."""
READS_LOG: Final = (h.ProcessCrash, h.PowerLoss, h.FailFlush, h.FullDisk, h.RestartBroker, h.StopBroker)
"""Steps after which a broker reads its log again, and finds damage."""
KEPT_IN: Final[dict[h.Stored, str]] = {"delayed": SCHEDULE_TOPIC, "half": TRANS_HALF_TOPIC, "plain": TOPIC}
GROUPS: Final = ("g", "h")
TRANSACTIONS_SETTLE_S: Final = 30.0
"""Enough rounds of checks for every half message to be decided or set aside."""
STORY_LIMIT_S: Final = 4 * 3600.0


@dataclass
class Run:
    """What came of a history."""

    violations: list[Finding]
    history: h.History
    lines: list[Line]
    world: World
    requests: Counter[int]
    """What clients asked, by code."""
    flipped: Counter[h.Stored]
    """The bits that were flipped, by the kind of message."""

    @property
    def events(self) -> int:
        return len(self.lines)

    def cells(self) -> Cells:
        """What happened, for the coverage."""
        taken = Counter(f"take {type(step).__name__}" for step in self.history.steps)
        forms = Counter({f"form {form}": n for form, n in forms_of(self.history, self.lines, self.flipped).items()})
        return cells_of(self.lines, self.requests) + taken + forms


@dataclass
class Story:
    """The hand that moves the cluster through a history."""

    world: World
    history: h.History
    engine: OpenEngine
    cluster: Cluster = field(init=False)
    clients: list[Node] = field(init=False)
    scripted: dict[str, ScriptedClient] = field(default_factory=dict)
    common: Common = field(default_factory=Common)
    operations: list[asyncio.Task[None]] = field(default_factory=list)
    wire: Wire = field(default_factory=Wire)
    flipped: Counter[h.Stored] = field(default_factory=Counter)
    unsaved: list[Finding] = field(default_factory=list)
    """Tables that were not in their files."""

    def __post_init__(self) -> None:
        setting = self.history.setting
        self.cluster = Cluster(
            self.world,
            nameservers=2 if setting.silent_nameserver else 1,
            brokers=setting.brokers,
            limits=limits(setting),
            config=broker_config(self.history),
            store_config=store_config(setting),
            engine=self.engine,
        )
        self.common.stores = frozenset(host_of(self.cluster.broker_address(broker)) for broker in self.cluster.brokers)
        self.clients = [self.world.node(f"client-{number}", self._run_client) for number in range(setting.clients)]
        self.auditor = self.world.node("auditor", self._run_client)
        self.stranger = self.world.node("stranger", self._wait)
        self.world.network.heard = self._hear
        if setting.write_buffer_bytes:
            self.world.network.window_bytes = WINDOW_BYTES

    async def _run_client(self, node: Node) -> None:
        """A client's process: it waits for its script."""
        group = "audit" if node is self.auditor else GROUPS[self.clients.index(node) % self.history.setting.groups]
        self.scripted[node.name] = ScriptedClient(node, f"{node.name}.{node.life}", group, self.common, deciding.heard)
        await asyncio.Event().wait()

    async def _wait(self, node: Node) -> None:
        await asyncio.Event().wait()

    def _hear(self, sender: SimulatedTransport, target: SimulatedTransport, data: bytes) -> None:
        if self.stranger.address not in (sender.process.address, target.process.address):
            self.wire.hear(sender.number, target.number, data)

    async def run(self) -> None:
        for nameserver in self.cluster.nameservers[1:]:
            for broker in self.cluster.brokers:
                self.world.network.cut(broker.name, nameserver.name)
        await self.cluster.start()
        for node in (*self.clients, self.auditor, self.stranger):
            node.start()
        await asyncio.sleep(STEP_S)
        for step in self.history.steps:
            await self._take(step)
            await asyncio.sleep(STEP_S)
        await self._settle()
        await self._audit()

    # --- steps ------------------------------------------------------------------------------------------------

    def _client(self, number: int) -> Node:
        return self.clients[number % len(self.clients)]

    def _broker(self, number: int) -> Node:
        return self.cluster.brokers[number % len(self.cluster.brokers)]

    def _queue(self, broker: Node, queue: int) -> MessageQueue:
        return MessageQueue(TOPIC, broker.name, queue % self.history.setting.queues)

    def _address(self, broker: Node) -> BrokerAddress:
        return BrokerAddress(broker.name, self.cluster.broker_address(broker))

    def _begin(self, node: Node, work: Coroutine[Any, Any, Any]) -> None:
        """Starts an operation inside a client; it ends with its outcome, or with the client."""

        async def operation() -> None:
            with contextlib.suppress(NodeDown):
                await node.call(lambda: work)

        if not node.is_up:
            work.close()
            return
        self.operations.append(asyncio.ensure_future(operation()))

    async def _take(self, step: h.Step) -> None:
        self.world.note("history", str(step))
        self._record_fault(step)
        match step:
            case (
                h.Send()
                | h.SendBatch()
                | h.SendHalf()
                | h.Pull()
                | h.SendBack()
                | h.CommitOffset()
                | h.QueryOffset()
                | h.LockQueue()
                | h.UnlockQueue()
            ):
                node, broker = self._client(step.client), self._broker(step.broker)
                self._begin(node, self._operation(step, node, broker))
            case h.AskNameserver():
                node, first = self._client(step.client), self.cluster.nameservers[0]
                asked = BrokerAddress(first.name, self.cluster.nameserver_addresses[0])
                client = self.scripted[node.name]
                self._begin(node, administration.ask_nameserver(client, asked, step.number, step.damage))
            case h.Ask() | h.Configure() | h.Arrange() | h.Forge():
                node, broker = self._client(step.client), self._broker(step.broker)
                self._begin(node, self._administer(step, self.scripted[node.name], self._address(broker)))
            case h.SlowDisk():
                self.world.slow_flushes_s[self._broker(step.broker).name] = step.by_ms / 1000
            case h.FlipBit():
                self._flip_bit(step)
            case h.Intrude():
                target = self.cluster.nameserver_addresses[0]
                if not step.nameserver:
                    target = self.cluster.broker_address(self._broker(step.broker))
                self._begin(self.stranger, stranger.intrude(target, step.way, self.history.setting.seed))
            case h.Heartbeat() | h.Leave() | h.ViewRefresh() | h.QueryKey() | h.QueryBounds() | h.QueryRoute():
                node = self._client(step.client)
                self._begin(node, self._question(step, self.scripted[node.name]))
            case h.AdvanceClock():
                await asyncio.sleep(step.by_ms / 1000)
            case h.Heal():
                self.world.network.heal()
            case h.ProducerDeath():
                self._client(step.client).crash()
                self._client(step.client).start()
                await asyncio.sleep(STEP_S)
            case h.ConsumerPause():
                node = self._client(step.client)
                node.pause()
                self.world.loop.call_later(step.for_ms / 1000, node.resume)
            case h.Disconnect() | h.LoseAnswer() | h.LoseRequest() | h.Cut() | h.HalfOpen() | h.SlowNetwork():
                disturb(self.world.network, step, self._client(step.client).name, self._broker(step.broker).name)
            case h.SlowReader():
                self.world.network.slow_reader(self._client(step.client).name, step.bytes_per_s)
            case h.RestartNameserver():
                for nameserver in self.cluster.nameservers:
                    nameserver.crash()
                    nameserver.start()
            case h.JumpClock() if step.by_ms < -SETTLE_S * 1000 and self._has_halves:
                pass  # half messages from before would be too young for anybody to ask about, until the end and longer
            case _:
                await strike(self.cluster, step, self._broker(step.broker))

    def _record_fault(self, step: h.Step) -> None:
        """Faults stand among the events, so that oracles know what was disturbed and what was not."""
        name = type(step).__name__
        match step:
            case h.ProcessCrash() | h.PowerLoss():
                if step.effects or step.at:  # when it happens the world says so
                    self.world.record_fault(self._broker(step.broker).name, "CrashPlanned")
            case h.JumpClock() if step.by_ms < -SETTLE_S * 1000 and self._has_halves:
                pass  # it is not done
            case h.JumpClock() | h.RestartBroker() | h.StopBroker() | h.FailFlush() | h.FullDisk() | h.SlowDisk():
                self.world.record_fault(self._broker(step.broker).name, name)
            case h.ConsumerPause() | h.SlowReader():
                self.world.record_fault(self._client(step.client).name, name)
            case h.Disconnect() | h.LoseAnswer() | h.LoseRequest() | h.Cut() | h.HalfOpen() | h.SlowNetwork():
                # It is the client that is disturbed: what a broker does for others is judged all the same.
                self.world.record_fault(self._client(step.client).name, name)

    async def _operation(
        self,
        step: h.Send
        | h.SendBatch
        | h.SendHalf
        | h.Pull
        | h.SendBack
        | h.CommitOffset
        | h.QueryOffset
        | h.LockQueue
        | h.UnlockQueue,
        node: Node,
        broker: Node,
    ) -> None:
        client, address, queue = self.scripted[node.name], self._address(broker), self._queue(broker, step.queue)
        if isinstance(step, h.Pull | h.SendBack) and step.retry:
            queue = MessageQueue(f"%RETRY%{client.group}", broker.name, 0)
        match step:
            case h.Send(delay_level=0):
                sends = [sending.send(client, address, queue, step.body_bytes) for _ in range(step.count)]
                if step.at_once:
                    await asyncio.gather(*sends)
                else:
                    for send in sends:
                        await send
            case h.Send():
                delay_ms = DELAYS_S[step.delay_level - 1] * 1000
                for _ in range(step.count):
                    await sending.send_delayed(client, address, queue, step.body_bytes, step.delay_level, delay_ms)
            case h.SendBatch():
                await sending.send_batch(client, address, queue, step.count)
            case h.SendBack():
                await consuming.send_back(client, address, queue, step.delay_level)
            case h.Pull() if step.wanted != "all":
                await consuming.pull_filtered(client, address, queue, step.count, step.suspend_ms, step.wanted)
            case h.SendHalf():
                after_s = step.after_ms / 1000
                kinds = (step.decision, step.reply, step.ends)
                await deciding.send_half(
                    client,
                    address,
                    queue,
                    *kinds,
                    after_s=after_s,
                    immunity_s=step.immunity_s,
                    delay_level=step.delay_level,
                )
            case h.Pull():
                await consuming.pull(client, address, queue, step.count, step.suspend_ms, commit=step.commit)
            case h.CommitOffset():
                await consuming.commit_offset(client, address, queue, step.back)
            case h.QueryOffset():
                await consuming.query_offset(client, address, queue)
            case h.LockQueue() | h.UnlockQueue():
                numbers = range(self.history.setting.queues) if step.every else (step.queue,)
                queues = tuple(self._queue(broker, number) for number in numbers)
                await consuming.lock_queues(client, address, queues, unlock=isinstance(step, h.UnlockQueue))

    async def _administer(
        self, step: h.Ask | h.Configure | h.Arrange | h.Forge, client: ScriptedClient, broker: BrokerAddress
    ) -> None:
        match step:
            case h.Ask():
                await administration.ask(client, broker, step.number, step.damage)
            case h.Configure():
                await administration.configure(client, broker, step.value)
            case h.Arrange():
                nameserver = self.cluster.nameserver_addresses[0]
                await arranging.arrange(client, broker, nameserver, step.what, step.number)
            case h.Forge():
                await deciding.forge(client, broker, step.wrong)

    def _flip_bit(self, step: h.FlipBit) -> None:
        """Damages what a broker keeps for later, if nothing will ever make it read its log from there."""
        if any(isinstance(each, READS_LOG) for each in self.history.steps):
            return
        broker = self._broker(step.broker)
        damaged = damage_newest(broker.simulated_disk, KEPT_IN[step.what]) if broker.is_up else None
        if damaged is not None:
            key, body = damaged
            self.common.whole_bodies[key] = body
            self.flipped[step.what] += 1
            self.world.record_fault(broker.name, "FlipBit", message_fingerprint(key.encode(), body))

    async def _question(
        self,
        step: h.Heartbeat | h.Leave | h.ViewRefresh | h.QueryKey | h.QueryBounds | h.QueryRoute,
        client: ScriptedClient,
    ) -> None:
        if isinstance(step, h.QueryRoute):
            await self._ask_for_route(client)
            return
        broker = self._broker(step.broker)
        address = self._address(broker)
        match step:
            case h.Heartbeat():
                await questions.heartbeat(client, address, alone=step.alone)
            case h.Leave():
                await questions.leave(client, address)
            case h.ViewRefresh():
                await questions.view_refresh(client, address)
            case h.QueryKey():
                await questions.query_key(client, address)
            case h.QueryBounds():
                await questions.query_bounds(client, address, self._queue(broker, step.queue))

    async def _ask_for_route(self, client: ScriptedClient) -> None:
        addresses = [self._address(broker) for broker in self.cluster.brokers]
        for nameserver in self.cluster.nameserver_addresses[:1]:  # nothing is ever heard of a second one
            await questions.query_route(client, nameserver, TOPIC, addresses)

    # --- the end ----------------------------------------------------------------------------------------------

    async def _settle(self) -> None:
        """Everything is repaired, and whatever was begun comes to its end."""
        self.world.note("history", "settle")
        self.world.network.end_faults()
        self.world.slow_flushes_s.clear()
        for broker in self.cluster.brokers:
            broker.cancel_crash()
            if broker.is_up:
                broker.simulated_disk.cancel_faults()
        for node in self.clients:
            node.resume()
            self._end_half_open(node)
        await asyncio.sleep(SETTLE_S + self._still_under_way_s())
        await self._revive()
        self.world.record_fault("world", "Settled")
        await asyncio.gather(*self.operations)
        if self._has_halves:
            for round_ in range(6):
                for node in self.clients:
                    for broker in self.cluster.brokers:
                        self._begin(node, questions.heartbeat(self.scripted[node.name], self._address(broker)))
                await asyncio.sleep(TRANSACTIONS_SETTLE_S / 6)
                assert round_ < 6
            await asyncio.gather(*self.operations)

    @property
    def _has_halves(self) -> bool:
        return any(isinstance(step, h.SendHalf) for step in self.history.steps)

    def _still_under_way_s(self) -> float:
        """How long a piece may still be on a wire that was slow; what is sent behind it arrives behind it."""
        slowest_ms = max((step.by_ms for step in self.history.steps if isinstance(step, h.SlowNetwork)), default=0)
        return slowest_ms / 1000 * HICCUP_FACTOR

    def _end_half_open(self, client: Node) -> None:
        """Breaks connections that one side only believes in: it was cut off, or the other side lost its power."""
        if any(isinstance(step, h.HalfOpen | h.PowerLoss | h.Cut) for step in self.history.steps):
            for broker in self.cluster.brokers:
                self.world.record_fault(client.name, "Disconnect")
                self.world.network.reset_between(client.name, broker.name)

    async def _revive(self) -> None:
        for broker in self.cluster.brokers:
            if not broker.is_up:
                broker.start()
            await self.cluster.serves(broker)
        await asyncio.sleep(SETTLE_S)

    async def _audit(self) -> None:
        """Somebody who has seen nothing yet reads every queue from its beginning to its end. Brokers make a group for
        them, and save all groups, so their tables are looked at before and after."""
        await self._look_at_tables()
        self.world.note("history", "audit")
        client = self.scripted["auditor"]
        for broker in self.cluster.brokers:
            for number in range(self.history.setting.queues):
                await self._read(client, broker, self._queue(broker, number))
            if any(isinstance(step, h.SendBack) for step in self.history.steps):
                for group in GROUPS[: self.history.setting.groups]:
                    for prefix in ("%RETRY%", "%DLQ%"):
                        await self._read(client, broker, MessageQueue(prefix + group, broker.name, 0))
        await self._ask_for_offsets()
        await self.auditor.call(lambda: self._ask_for_route(client))
        await self._look_at_tables()

    async def _look_at_tables(self) -> None:
        """What brokers know has to be in their files. A check round may have made its topic just now: twice is
        enough."""
        for _ in range(2):
            await asyncio.sleep(SAVED_S)
            unsaved = [*tables_saved(self._tables())]
            if not unsaved:
                return
        self.unsaved += unsaved

    def _tables(self) -> Iterator[SeenTable]:
        """One whose disk has failed may have had no chance to save."""
        for node in self.cluster.brokers:
            serving = self.cluster.serving.get(node.name)
            if serving is not None and node.name not in self.cluster.failing_disks:
                yield from seen_tables(serving, node.simulated_disk)

    async def _ask_for_offsets(self) -> None:
        """A member of the group hears what is committed, and all are answered over the connections that they have."""
        for each in self.clients[1:]:
            for broker in self.cluster.brokers:
                asked, where, first = self.scripted[each.name], self._address(broker), self._queue(broker, 0)
                await each.call(lambda c=asked, a=where, q=first: questions.query_bounds(c, a, q))  # type: ignore[misc]  # defaults
        node = self.clients[0]
        member = self.scripted[node.name]
        for broker in self.cluster.brokers:
            for number in range(self.history.setting.queues):
                queue, address = self._queue(broker, number), self._address(broker)
                await node.call(lambda q=queue, a=address: consuming.query_offset(member, a, q))  # type: ignore[misc]  # defaults

    async def _read(self, client: ScriptedClient, broker: Node, queue: MessageQueue) -> None:
        address = self._address(broker)
        await self.auditor.call(lambda: consuming.read_to_end(client, address, queue))


def run_history(history: h.History, engine: str = "reference", *, strict: bool = False) -> Run:
    """Runs a history and judges it. `strict` also looks for escapes behind every reference."""
    world = World(history.setting.seed, strict=strict, ipv6=history.setting.ipv6)
    story = Story(world, history, cluster_engine(engine))
    violations: list[Finding] = []
    try:
        world.run(story.run(), limit_s=STORY_LIMIT_S)
    except (RunFailed, Stuck, TimeoutError) as error:
        violations.append(Finding("RunFails", f"{type(error).__name__}: {error}"))
    lines = [line_of(node, recorded) for node, recorded in world.events]
    promises = Promises(flush_sync=history.setting.sync_flush, settled=not violations)
    others = [*one_answer_per_request(story.wire.frames), *story.wire.faults, *story.unsaved]
    others += story.common.wrong
    others += asked_enough(lines, CHECKS_MAX)
    others += arranged_is_so(story.common.arranged, lines)
    found = [*judge(lines, promises), *others]
    return Run(violations + found, history, lines, world, story.common.requests, story.flipped)
