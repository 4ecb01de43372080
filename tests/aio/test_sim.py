"""The real clients in the simulated world: members join, leave, die, pause; brokers crash; and what must hold.

| promise                     | how it is judged                                                                       |
|-----------------------------|----------------------------------------------------------------------------------------|
| at least once               | every message that a producer was told is stored was consumed when all is calm         |
| nothing committed ahead     | whenever a broker stores an offset, every message below it has been consumed           |
| order in orderly mode       | no message is consumed before an older one of its queue has been                       |
| one listener for each queue | in orderly mode no two listeners have messages of one queue at the same time           |
"""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from random import Random
from typing import Any

import pytest

from refmq.aio.consumer import Consumer, Mode
from refmq.aio.producer import Producer
from refmq.client import process_queue, rebalance
from refmq.client.message import ReceivedMessage
from refmq.errors import RefmqError
from refmq.sim.cluster import Cluster
from refmq.sim.world import Node, World

TOPIC = "t"
GROUP = "g"
QUEUES = 3


class Broken(AssertionError):
    """A promise does not hold."""


@dataclass
class Group:
    """A group of consumers in a world, and everything that was seen of it."""

    world: World
    cluster: Cluster
    mode: Mode
    consumed: dict[tuple[str, int], dict[int, float]] = field(default_factory=dict)
    """(broker, queue) -> offset -> when it was first consumed."""
    listening: dict[tuple[str, int], str] = field(default_factory=dict)
    acknowledged: dict[bytes, bool] = field(default_factory=dict)
    bodies: set[bytes] = field(default_factory=set)
    nodes: list[Node] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)

    def add(self, count: int) -> None:
        for number in range(count):
            self.nodes.append(self.world.node(f"consumer-{number}", self._consume))
        self.producer = self.world.node("producer", self._produce)

    async def _consume(self, node: Node) -> None:
        who = f"{node.name}/{node.life}"

        async def listen(message: ReceivedMessage) -> None:
            place = (message.queue.broker, message.queue.queue_id)
            is_retry = message.queue.topic != TOPIC
            if self.mode == "orderly" and not is_retry:
                other = self.listening.get(place)
                if other is not None and other != who:
                    self.problems.append(f"{who} and {other} have messages of {place} at once")
                self.listening[place] = who
                seen = self.consumed.setdefault(place, {})
                older = [offset for offset in range(message.queue_offset) if offset not in seen]
                if older:
                    self.problems.append(f"{message.queue_offset} of {place} came before {older}")
            try:
                await asyncio.sleep(node.process.entropy.choice((0.001, 0.05, 0.5)))
            finally:
                if self.listening.get(place) == who:
                    del self.listening[place]
            if node.process.entropy.random() < 0.05 and message.reconsume_times < 2:
                raise ValueError("not now")
            self.bodies.add(message.body)
            if not is_retry:
                self.consumed.setdefault(place, {}).setdefault(message.queue_offset, self.world.loop.time())

        def given_back(message: ReceivedMessage, verdict: Any) -> None:
            """A failure that is handed to the retry topic counts as done for its queue."""
            if not verdict.success and self.mode != "orderly" and message.queue.topic == TOPIC:
                place = (message.queue.broker, message.queue.queue_id)
                self.consumed.setdefault(place, {}).setdefault(message.queue_offset, self.world.loop.time())

        consumer = Consumer(
            self.cluster.nameserver_addresses,
            group=GROUP,
            topics=TOPIC,
            start="first",
            mode=self.mode,
            listener=listen,
            concurrency=4,
            after_consume=[given_back],
            client_ip=node.address,
            instance_name=who,
            seed=node.process.entropy.getrandbits(63),
        )
        node.process.on_death.append(lambda: self._died(who))
        async with consumer:
            await asyncio.Event().wait()

    def _died(self, who: str) -> None:
        self.listening = {place: holder for place, holder in self.listening.items() if holder != who}

    async def _produce(self, node: Node) -> None:
        async with Producer(
            self.cluster.nameserver_addresses,
            group="p",
            client_ip=node.address,
            instance_name="producer",
            seed=node.process.entropy.getrandbits(63),
            default_topic_queues=QUEUES,
        ) as producer:
            for number in range(120):
                body = b"%d" % number
                try:
                    await producer.send(TOPIC, body)
                except RefmqError:
                    self.acknowledged[body] = False
                else:
                    self.acknowledged[body] = True
                if number % 12 == 11:
                    await asyncio.sleep(5)
            await asyncio.Event().wait()

    def judge_commits(self) -> None:
        """Every offset that a broker stored, against what had been consumed when it did."""
        for broker in self.cluster.brokers:
            for recorder in broker.recorders:
                for recorded in recorder.events:
                    event = recorded.event
                    if event.action != "CommitOffset" or event.subject != TOPIC:
                        continue
                    when = recorded.at_ns / 1e9 - self.world.loop.wall_ms() / 1000 + self.world.loop.time()
                    seen = self.consumed.get((broker.name, event.queue_id), {})
                    missing = [offset for offset in range(event.b) if seen.get(offset, when + 1) > when + 0.01]
                    if missing:
                        raise Broken(f"{event.b} of {broker.name}/{event.queue_id} was committed before {missing}")

    def judge(self) -> None:
        if self.problems:
            raise Broken(self.problems[0])
        self.judge_commits()
        lost = sorted(body for body, stored in self.acknowledged.items() if stored and body not in self.bodies)
        if lost:
            raise Broken(f"acknowledged and never consumed: {lost}")


def story_of(mode: Mode, seed: int) -> Group:
    """Sixty seconds of trouble and four minutes of calm."""
    chance = Random(seed)
    world = World(seed)
    cluster = Cluster(world, brokers=2)
    group = Group(world, cluster, mode)
    group.add(3)

    async def story() -> None:
        await cluster.start()
        group.producer.start()
        await asyncio.sleep(1)
        for node in group.nodes[:2]:
            node.start()
        for _ in range(12):
            await asyncio.sleep(chance.uniform(1, 8))
            await trouble(chance, group)
        world.network.end_faults()
        for broker in cluster.brokers:
            if not broker.is_up:
                broker.start()
                await cluster.serves(broker)
        for node in group.nodes:
            if not node.is_up:
                node.start()
        await asyncio.sleep(240)

    world.run(story())
    return group


async def trouble(chance: Random, group: Group) -> None:
    node = chance.choice(group.nodes)
    broker = chance.choice(group.cluster.brokers)
    acts: list[Callable[[], Awaitable[None]]] = []

    async def start() -> None:
        node.start()

    async def die() -> None:
        node.crash()

    async def leave() -> None:
        await node.stop()

    async def pause() -> None:
        node.pause()
        await asyncio.sleep(chance.choice((5, 40, 90)))
        node.resume()

    async def crash_broker() -> None:
        broker.crash()
        await asyncio.sleep(chance.uniform(0.5, 5))
        broker.start()
        await group.cluster.serves(broker)

    async def cut() -> None:
        """Nothing passes between a consumer and a broker for a while; nobody is told."""
        network = group.world.network
        network.cut(node.name, broker.name)
        await asyncio.sleep(chance.choice((3, 25, 100)))
        network.heal(node.name, broker.name)

    async def reset() -> None:
        """The connections between a consumer and a broker break."""
        group.world.network.reset_between(node.name, broker.name)

    async def crash_nameserver() -> None:
        nameserver = group.cluster.nameservers[0]
        nameserver.crash()
        await asyncio.sleep(chance.uniform(1, 40))
        nameserver.start()

    anywhere = [crash_broker, crash_nameserver]
    acts = [die, leave, pause, cut, reset, *anywhere] if node.is_up else [start, start, start, *anywhere]
    await chance.choice(acts)()


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("mode", ["concurrent", "orderly"])
def test_the_promises_hold_through_deaths_and_crashes(mode: Mode, seed: int) -> None:
    group = story_of(mode, seed)
    assert sum(group.acknowledged.values()) > 60
    group.judge()


def found(mode: Mode) -> Iterator[str]:
    """What the stories of a few seeds break."""
    for seed in range(5):
        try:
            story_of(mode, seed).judge()
        except Broken as problem:
            yield str(problem)


def commits_all(queue: process_queue.ProcessQueue, offset: int, *, success: bool) -> process_queue.ProcessQueue:
    after = process_queue.finish(queue, offset, success=success)
    return replace(after, memory=after.next_offset) if success and not after.dropped else after


def test_a_client_that_commits_ahead_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rebalance, "finish", commits_all)
    assert any("committed before" in problem or "never consumed" in problem for problem in found("concurrent"))


def test_a_client_that_does_not_look_at_its_locks_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """Then two members have one queue."""
    monkeypatch.setattr(rebalance, "trusts", lambda *_: True)
    assert any("at once" in problem or "came before" in problem for problem in found("orderly"))


SAME = """
import hashlib, logging
from tests.aio.test_sim import story_of

logging.disable(logging.CRITICAL)
group = story_of("orderly", 4)
consumed = sorted((place, sorted(seen.items())) for place, seen in group.consumed.items())
told = repr((sorted(group.acknowledged.items()), consumed))
print(hashlib.sha256(told.encode()).hexdigest())
"""


def test_a_seed_is_the_same_story_in_every_process() -> None:
    """Clients take no order from the hashes of texts, which differ from process to process."""
    told = set()
    for hash_seed in ("1", "2"):
        environment = {**os.environ, "PYTHONHASHSEED": hash_seed, "PYTHONPATH": str(Path(__file__).parents[2])}
        command = [sys.executable, "-c", SAME]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=120, check=True)
        told.add(done.stdout)
    assert len(told) == 1
