"""A small world around the pure steps of consumers: a broker's registers, a network for commits, and what must hold.

Each member is driven by chance (an index chooses among everything that can happen now), so a run is a list of numbers
that Hypothesis can shrink. After each step the promises of spec/rebalance are looked at.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from types import ModuleType

from refmq.client.rebalance import GiveBack, Member, SendCommit, StartPulling, StopPulling
from refmq.model.ids import MessageQueue
from refmq.model.step import Step

LOAN_MS = 60_000


class Broken(AssertionError):
    """A promise does not hold."""


@dataclass
class GroupWorld:
    """Members of one group, one broker, a few queues."""

    steps: ModuleType
    orderly: bool
    queues: int = 2
    length: int = 6
    start_at_last: bool = False
    members: dict[str, Member] = field(default_factory=dict)
    registered: set[str] = field(default_factory=set)
    committed: dict[MessageQueue, int] = field(default_factory=dict)
    net: list[tuple[str, SendCommit]] = field(default_factory=list)
    loans: dict[MessageQueue, tuple[str, int]] = field(default_factory=dict)
    answers: list[tuple[str, MessageQueue, int, int]] = field(default_factory=list)
    """Answers to pulls on their way: member, queue, from, next."""
    ends: dict[MessageQueue, int] = field(default_factory=dict)
    done: dict[MessageQueue, set[int]] = field(default_factory=dict)
    begin: dict[MessageQueue, int] = field(default_factory=dict)
    listening: set[tuple[str, MessageQueue, int]] = field(default_factory=set)
    given_up: dict[tuple[str, MessageQueue], bool] = field(default_factory=dict)
    now_ms: int = 0
    joins: int = 2
    """Members that may still come; one is there from the beginning."""
    came: int = 0
    ends_left: int = 2
    """How many members may leave or die."""
    log: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.all = [MessageQueue("t", "b", number) for number in range(self.queues)]
        for queue in self.all:
            self.ends[queue] = 2
            self.done[queue] = set()
        self.join()
        self.joins += 1
        (name,) = self.members
        self.members[name] = self.steps.view_refresh(self.members[name], "t", [name]).state

    # What can happen ------------------------------------------------------------------------------------------------

    def choices(self) -> list[tuple[str, Callable[[], None]]]:
        found: list[tuple[str, Callable[[], None]]] = []
        if self.joins:
            found += 8 * [("join", self.join)]
        for index in range(len(self.net)):
            found.append((f"commit {index} arrives", lambda index=index: self.arrive(index)))  # type: ignore[misc]
        for index in range(len(self.answers)):
            found.append((f"pull {index} answered", lambda index=index: self.pulled(index)))  # type: ignore[misc]
        for queue in self.all:
            if self.ends[queue] < self.length:
                found.append((f"produce {queue.queue_id}", lambda queue=queue: self.produce(queue)))  # type: ignore[misc]
        if not (self.orderly and self.listening):
            found.append(("10 s pass", self.wait))
        for name in sorted(self.members):
            found += 3 * self.of_member(name)
            found += self.ends_of(name)
        return found

    def ends_of(self, name: str) -> list[tuple[str, Callable[[], None]]]:
        """How a member ends: seldom, so that it has something to lose."""
        member = self.members[name]
        if not self.ends_left or member.left or not member.held:
            return []
        leaves = [(f"{name}: leave", lambda: self.leave(name))] if self.steps.leave_enabled(member) else []
        return [*leaves, (f"{name}: die", lambda: self.die(name))]

    def of_member(self, name: str) -> list[tuple[str, Callable[[], None]]]:
        member = self.members[name]
        steps = self.steps
        found: list[tuple[str, Callable[[], None]]] = []
        if member.left:
            return found

        def add(what: str, act: Callable[[], None]) -> None:
            found.append((f"{name}: {what}", act))

        if self.registered and member.views.get("t") != tuple(sorted(self.registered)):
            add("view", lambda: self.take(name, steps.view_refresh(member, "t", sorted(self.registered))))
        for queue in steps.to_release(member):
            add(f"release {queue.queue_id}", lambda queue=queue: self.take(name, steps.release_queue(member, queue)))  # type: ignore[misc]
        for queue in steps.to_acquire(member, ["t"]):
            if self.orderly and not steps.trusts(member, queue, self.now_ms):
                add(f"lock {queue.queue_id}", lambda queue=queue: self.lock(name, queue))  # type: ignore[misc]
            else:
                add(f"acquire {queue.queue_id}", lambda queue=queue: self.acquire(name, queue))  # type: ignore[misc]
        for queue, held in member.held.items():
            if self.orderly and not steps.trusts(member, queue, self.now_ms + 20_000):
                add(f"renew {queue.queue_id}", lambda queue=queue: self.lock(name, queue))  # type: ignore[misc]
            asked = any(answer[:3] == (name, queue, held.next_offset) for answer in self.answers)
            if not held.dropped and held.next_offset < self.ends[queue] and not asked:
                add(f"pull {queue.queue_id}", lambda queue=queue, held=held: self.pull(name, queue, held.next_offset))  # type: ignore[misc]
            for offset in held.cached:
                if steps.consume_start_enabled(member, queue, offset, self.now_ms):
                    add(f"start {offset}", lambda queue=queue, offset=offset: self.start(name, queue, offset))  # type: ignore[misc]
            for offset in held.running:
                for success in (True, False):
                    add(
                        f"finish {offset} {success}",
                        lambda queue=queue, offset=offset, success=success: self.finish(name, queue, offset, success),  # type: ignore[misc]
                    )
            known = {self.committed.get(queue), *(c.offset for _, c in self.net if c.queue == queue)}
            if steps.commit_send_enabled(member, queue) and held.memory not in known:
                add(f"commit {queue.queue_id}", lambda queue=queue: self.take(name, steps.commit_send(member, queue)))  # type: ignore[misc]
        return found

    def run(self, choices: list[int]) -> None:
        for number in choices:
            possible = self.choices()
            what, act = possible[number % len(possible)]
            self.log.append(what)
            act()
            self.judge()

    # Steps ----------------------------------------------------------------------------------------------------------

    def join(self) -> None:
        self.joins -= 1
        self.came += 1
        name = f"c{self.came}"
        self.members[name] = self.steps.route_refresh(Member("g", name, orderly=self.orderly), "t", self.all).state
        self.registered.add(name)

    def take(self, name: str, step: Step[Member, object]) -> None:
        self.members[name] = step.state
        for effect in step.effects:
            match effect:
                case SendCommit(first=True):
                    self.committed.setdefault(effect.queue, effect.offset)  # known to be stored before what follows
                case SendCommit():
                    self.net.append((name, effect))
                case GiveBack(queue):
                    if self.loans.get(queue, ("", 0))[0] == name:
                        del self.loans[queue]
                case StopPulling(queue):
                    if queue in step.state.held and step.state.held[queue].dropped:
                        self.given_up[name, queue] = True
                case StartPulling(queue):
                    self.given_up.pop((name, queue), None)

    def lock(self, name: str, queue: MessageQueue) -> None:
        holder, until = self.loans.get(queue, ("", 0))
        granted = holder == name or not holder or until <= self.now_ms
        if granted:
            self.loans[queue] = (name, self.now_ms + LOAN_MS)
        self.members[name] = self.steps.lock_queue(self.members[name], queue, granted=granted, asked_at_ms=self.now_ms)

    def acquire(self, name: str, queue: MessageQueue) -> None:
        known = self.committed.get(queue)
        begin = known if known is not None else (self.ends[queue] if self.start_at_last else 0)
        before = self.members[name]
        step = self.steps.acquire_queue(before, queue, begin, committed=known is not None, now_ms=self.now_ms)
        if queue in step.state.held and queue not in before.held:
            self.begin.setdefault(queue, begin)
        self.take(name, step)

    def pull(self, name: str, queue: MessageQueue, offset: int) -> None:
        self.answers.append((name, queue, offset, min(offset + 2, self.ends[queue])))

    def pulled(self, index: int) -> None:
        name, queue, from_offset, next_offset = self.answers.pop(index)
        messages = [(offset, 10) for offset in range(from_offset, next_offset)]
        self.take(name, self.steps.pull_messages(self.members[name], queue, from_offset, next_offset, messages))

    def start(self, name: str, queue: MessageQueue, offset: int) -> None:
        self.take(name, self.steps.consume_start(self.members[name], queue, offset, self.now_ms))
        if self.orderly:
            older = set(range(self.begin.get(queue, 0), offset)) - self.done[queue]
            if older:
                raise Broken(f"{offset} of {queue.queue_id} is consumed before {sorted(older)}: order")
        self.listening.add((name, queue, offset))

    def finish(self, name: str, queue: MessageQueue, offset: int, success: bool) -> None:
        self.take(name, self.steps.consume_finish(self.members[name], queue, offset, success=success))
        self.listening.discard((name, queue, offset))
        if success:
            self.done[queue].add(offset)

    def arrive(self, index: int) -> None:
        _, commit = self.net.pop(index)
        self.committed[commit.queue] = commit.offset

    def produce(self, queue: MessageQueue) -> None:
        self.ends[queue] += 1

    def wait(self) -> None:
        """Ten seconds. A listener is faster than that: W-16 is the application's to keep."""
        self.now_ms += 10_000

    def leave(self, name: str) -> None:
        self.ends_left -= 1
        self.take(name, self.steps.leave(self.members[name]))
        self.registered.discard(name)

    def die(self, name: str) -> None:
        self.ends_left -= 1
        del self.members[name]
        self.registered.discard(name)
        self.answers = [answer for answer in self.answers if answer[0] != name]
        self.listening = {entry for entry in self.listening if entry[0] != name}

    # Promises -------------------------------------------------------------------------------------------------------

    def judge(self) -> None:
        for queue in self.all:
            settled = self.committed.get(queue, 0)
            for owner, offset in [("broker", settled), *((name, c.offset) for name, c in self.net if c.queue == queue)]:
                ahead = set(range(self.begin.get(queue, 0), offset)) - self.done[queue]
                if ahead:
                    raise Broken(f"{owner} has {queue.queue_id} committed to {offset}, open: {sorted(ahead)}: ahead")
            for name, member in self.members.items():
                held = member.held.get(queue)
                if held is None:
                    continue
                behind = set(range(self.begin.get(queue, 0), held.next_offset)) - self.done[queue] - set(held.cached)
                if behind and not held.dropped:
                    raise Broken(f"{name} is past {sorted(behind)} of {queue.queue_id}: skipped")
                if held.dropped and held.memory is not None:
                    raise Broken(f"{name} would commit {held.memory} of {queue.queue_id}, which it gave up: dropped")
            listeners = {name for name, of, _ in self.listening if of == queue}
            if self.orderly and len(listeners) > 1:
                raise Broken(f"{sorted(listeners)} consume {queue.queue_id} at once: two listeners")
