"""Lives through a history of a group in the simulated world and judges what was recorded."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final

from conformance.cluster.consuming import DELAYS_S
from conformance.cluster.faults import disturb, strike
from conformance.coverage import Cells, cells_of
from conformance.engines import cluster_engine
from conformance.group import history as h
from conformance.group.attempts import attempts_spread
from conformance.group.clients import CODES, Common, Member, Sending
from refmq.model.broker_config import BrokerConfig
from refmq.sim.cluster import Cluster, OpenEngine
from refmq.sim.loop import Stuck
from refmq.sim.world import Node, NodeDown, RunFailed, World
from refmq.store.config import FlushMode, StoreConfig
from refmq.verify.oracles import Line, Promises, judge_group, line_of
from refmq.verify.oracles.base import Finding

STEP_S: Final = 0.001
"""What passes between two steps anyway."""
JOIN_S: Final = 25.0
"""After so long everybody who has joined knows the others: they look every 20 s."""
SETTLE_S: Final = 75.0
"""Longer than the loan of a queue (60 s), the lag of a route (30 s) and a rebalance (20 s)."""
QUIET_S: Final = 16.0
"""Longer than the wait of a message for its next attempt: 10 s with a broker, 5 s with a consumer."""
SETTLE_MAX_S: Final = 900.0
PROBE_S: Final = 4.0
CHANGE_S: Final = 6.0
"""A change of members that nothing disturbs is over: told in milliseconds, locks asked for again every 0.5 s."""
STORY_LIMIT_S: Final = 4 * 3600.0
CHECK_INTERVAL_MS: Final = 3_600_000
"""There are no transactions, so nobody needs to look for them."""


@dataclass
class Run:
    """What came of a history."""

    violations: list[Finding]
    history: h.History
    lines: list[Line]
    world: World
    requests: Counter[int]
    """What clients asked, by code."""

    @property
    def events(self) -> int:
        return len(self.lines)

    def cells(self) -> Cells:
        """What happened, for the coverage."""
        taken = Counter(f"take {type(step).__name__}" for step in self.history.steps)
        return cells_of(self.lines, self.requests) + taken


@dataclass
class Story:
    """The hand that moves the group through a history."""

    world: World
    history: h.History
    engine: OpenEngine
    cluster: Cluster = field(init=False)
    members: list[Node] = field(init=False)
    common: Common = field(init=False)
    running: dict[str, Member] = field(default_factory=dict)
    operations: list[asyncio.Task[None]] = field(default_factory=list)

    def __post_init__(self) -> None:
        setting = self.history.setting
        self.cluster = Cluster(
            self.world,
            brokers=setting.brokers,
            config=BrokerConfig(transaction_check_interval=CHECK_INTERVAL_MS),
            store_config=StoreConfig(
                log_file_bytes=1 << 20,
                queue_file_bytes=20 * 256,
                index_slots=16,
                index_entries=64,
                flush_mode=FlushMode.SYNC,
                maintain_period_ms=setting.maintain_ms,
                # Of a queue whose first message is in memory a broker says that the group is at 0 when it is nowhere,
                # which would hide all that can go wrong at the end of a queue.
                memory_bytes=1_000,
                delay_levels=" ".join(f"{seconds}s" for seconds in DELAYS_S),
            ),
            engine=self.engine,
        )
        self.common = Common(setting, self.cluster.nameserver_addresses)
        self.members = [self.world.node(f"member-{number}", self._run_member) for number in range(setting.members)]
        self.producer = self.world.node("producer", self._run_producer)

    async def _run_member(self, node: Node) -> None:
        self.running[node.name] = Member(node, self.common)
        await self.running[node.name].run()

    async def _run_producer(self, node: Node) -> None:
        self.sending = Sending(node, self.common)
        await self.sending.run()

    async def run(self) -> None:
        await self.cluster.start()
        self.producer.start()
        await asyncio.sleep(STEP_S)
        steps = self.history.steps
        if all(isinstance(step, (*h.CALM, h.Join)) for step in steps):
            steps = await self._begin_calmly(steps)
        for step in steps:
            self.world.note("history", str(step))
            await self._take(step)
            await asyncio.sleep(STEP_S)
        if await self._settle():
            self._begin_producing(
                h.Produce(anywhere=True, count=2 * self.history.setting.queues * len(self.cluster.brokers))
            )
            await self._probe()
            await self._change()
            await self._part()

    async def _begin_calmly(self, steps: tuple[h.Step, ...]) -> tuple[h.Step, ...]:
        """Nothing will disturb this group: from when it has formed it has to be prompt, and consume everything once."""
        for number in range(len(self.cluster.brokers)):  # the topic is there, and everybody has heard of it
            await self._take(h.Produce(number))
            await asyncio.sleep(0.1)
        for step in steps:
            if isinstance(step, h.Join):
                await self._take(step)
        await asyncio.sleep(2 * JOIN_S)
        self.world.record_fault("world", "Settled")
        return tuple(step for step in steps if not isinstance(step, h.Join))

    # --- steps ------------------------------------------------------------------------------------------------

    def _member(self, number: int) -> Node:
        return self.members[number % len(self.members)]

    def _client(self, number: int) -> Node:
        clients = (*self.members, self.producer)
        return clients[number % len(clients)]

    def _broker(self, number: int) -> Node:
        return self.cluster.brokers[number % len(self.cluster.brokers)]

    async def _take(self, step: h.Step) -> None:
        match step:
            case h.Produce():
                self._begin_producing(step)
            case h.Join():
                if not self._member(step.member).is_up:
                    self._member(step.member).start()
            case h.Leave():
                self.operations.append(asyncio.ensure_future(self._leave(self._member(step.member))))
            case h.ConsumerDeath():
                self._kill(self._member(step.member), step)
            case h.Refuse():
                self._refuse(step)
            case h.AdvanceClock():
                await asyncio.sleep(step.by_ms / 1000)
            case h.Heal():
                self.world.network.heal()
            case h.ConsumerPause():
                self._pause(self._member(step.client), step.for_ms)
            case h.RestartNameserver():
                self.world.record_fault("namesrv-1", "RestartNameserver")
                for nameserver in self.cluster.nameservers:
                    nameserver.crash()
                    nameserver.start()
            case h.Disconnect() | h.LoseAnswer() | h.LoseRequest() | h.Cut() | h.HalfOpen() | h.SlowNetwork():
                broker = self._broker(step.broker).name
                self.world.record_fault(broker, type(step).__name__)
                disturb(self.world.network, step, self._client(step.client).name, broker)
            case h.ProcessCrash() | h.PowerLoss() | h.RestartBroker() | h.StopBroker():
                broker_node = self._broker(step.broker)
                if not isinstance(step, h.ProcessCrash | h.PowerLoss):
                    self.world.record_fault(broker_node.name, type(step).__name__)
                elif step.effects or step.at:  # of one that comes at once the world says so
                    self.world.record_fault(broker_node.name, "CrashPlanned")
                await strike(self.cluster, step, broker_node)

    async def _leave(self, node: Node) -> None:
        """What it says last is `Leave`, if a broker listens. That its process has ended only the world can say."""
        if node.is_up:
            await node.stop()
            self.world.record_fault(node.name, "StopConsumer")

    def _kill(self, node: Node, step: h.ConsumerDeath) -> None:
        if not step.at:
            node.crash(power=step.power)
        elif node.is_up:
            self.world.record_fault(node.name, "CrashPlanned")
            node.crash_at_step(step.at, power=step.power)

    def _begin_producing(self, step: h.Produce) -> None:
        work = self.sending.produce(step, self._broker(step.broker).name)

        async def operation() -> None:
            with contextlib.suppress(NodeDown):
                await self.producer.call(lambda: work)

        self.operations.append(asyncio.ensure_future(operation()))

    def _refuse(self, step: h.Refuse) -> None:
        node = self._member(step.member)
        if node.is_up and node.name in self.running:
            self.world.record_fault(node.name, "Refuse")
            self.running[node.name].refusals[CODES[step.asked]] = step.count

    def _pause(self, node: Node, for_ms: int) -> None:
        if not node.is_up or node.process.paused:
            return
        self.world.record_fault(node.name, "ConsumerPause")
        node.pause()
        process = node.process

        def resume() -> None:
            if node.is_up and node.process is process and process.paused:
                self.world.record_fault(node.name, "ConsumerResume")
                node.resume()

        self.world.loop.call_later(for_ms / 1000, resume)

    # --- the end ----------------------------------------------------------------------------------------------

    async def _settle(self) -> bool:
        """Everything is repaired, and whatever was begun comes to its end. False if it does not end."""
        self.world.note("history", "settle")
        self.world.network.end_faults()
        for broker in self.cluster.brokers:
            broker.cancel_crash()
        for node in self.members:
            node.cancel_crash()
            if node.is_up and node.process.paused:
                self.world.record_fault(node.name, "ConsumerResume")
                node.resume()
        for member in self.running.values():
            member.refusals.clear()
        for broker in self.cluster.brokers:
            if not broker.is_up:
                broker.start()
            await self.cluster.serves(broker)
        self._end_half_open()
        await asyncio.gather(*self.operations)
        self._touch_topic()
        if not any(node.is_up for node in self.members):
            self.members[0].start()
        loop = self.world.loop
        begin = loop.time()
        await asyncio.sleep(SETTLE_S / 2)
        self._touch_topic()  # again: a nameserver that was just started knew no broker, and nothing could be sent
        await asyncio.sleep(SETTLE_S / 2)
        while self.common.listening or loop.time() - self.common.last_heard_s < QUIET_S:
            if loop.time() - begin > SETTLE_MAX_S:
                return False  # messages come and come: the oracles will say why
            await asyncio.sleep(QUIET_S / 2)
        self.world.record_fault("world", "Settled")
        return True

    def _touch_topic(self) -> None:
        """A topic that comes into being is found after seconds only, so it is made before anybody has to be prompt."""
        for number in range(len(self.cluster.brokers)):
            self._begin_producing(h.Produce(number))

    def _end_half_open(self) -> None:
        """Breaks connections that one side only believes in: it was cut off, or the other side lost its power."""
        if any(_half_opens(step) for step in self.history.steps):
            for broker in self.cluster.brokers:
                self.world.record_fault(broker.name, "Disconnect")
                for client in (*self.members, self.producer):
                    self.world.network.reset_between(client.name, broker.name)

    async def _probe(self) -> None:
        """A few messages when all is calm: they have to be consumed at once, and once."""
        self.world.note("history", "probe")
        for broker in range(len(self.cluster.brokers)):
            for queue in range(self.history.setting.queues):
                self._begin_producing(h.Produce(broker, queue, 2))
        await asyncio.sleep(PROBE_S)
        await asyncio.gather(*self.operations)

    async def _change(self) -> None:
        """Undisturbed, somebody joins and somebody leaves: brokers tell the others, so it is a matter of seconds."""
        self.world.note("history", "change")
        for node in self.members:
            if not node.is_up:
                node.start()
                await self._changed()
                break
        if len(self.members) > 1:
            await next(node for node in self.members if node.is_up).stop()
            await self._changed()

    async def _changed(self) -> None:
        await asyncio.sleep(CHANGE_S)
        self.world.record_fault("world", "Settled")
        await self._probe()

    async def _part(self) -> None:
        """Everybody leaves, one after the other."""
        self.world.note("history", "part")
        self.world.record_fault("world", "Parting")
        for node in self.members:
            await node.stop()
            await asyncio.sleep(0.5)


def _half_opens(step: h.Step) -> bool:
    return isinstance(step, h.HalfOpen | h.PowerLoss | h.Cut) or (isinstance(step, h.ConsumerDeath) and step.power)


@contextlib.contextmanager
def _silent() -> Iterator[None]:
    """What clients log about the faults of a history would drown what a campaign says."""
    logger = logging.getLogger("refmq.client")
    level = logger.level
    logger.setLevel(logging.CRITICAL + 1)
    try:
        yield
    finally:
        logger.setLevel(level)


def run_history(history: h.History, engine: str = "reference", *, strict: bool = False) -> Run:
    """Runs a history and judges it. `strict` also looks for escapes behind every reference."""
    world = World(history.setting.seed, strict=strict)
    violations: list[Finding] = []
    with _silent():
        story = Story(world, history, cluster_engine(engine))
        try:
            world.run(story.run(), limit_s=STORY_LIMIT_S)
        except (RunFailed, Stuck, TimeoutError) as error:
            violations.append(Finding("RunFails", f"{type(error).__name__}: {error}"))
    lines = [line_of(node, recorded) for node, recorded in world.events]
    found = [*judge_group(lines, Promises(settled=not violations)), *attempts_spread(story.common.choices)]
    return Run(violations + found, history, lines, world, story.common.requests)
