"""Promises about the members of a group: who has which queue, who may listen, and how often a message comes.

They read what clients say of their queues (`AcquireQueue`, `ReleaseQueue`, `Leave`), what brokers lend, and what
applications saw (`Subscribe`, `Listen`, `Produce`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Final

from refmq.trace.record import Outcome
from refmq.verify.oracles.base import Finding, Line, Promises, Queue, Remembered, named
from refmq.verify.oracles.consumers import TRUST_MS
from refmq.verify.oracles.groups import CRASHES, NOT_TOLD, RETRY_PREFIX, STORED, Stored
from refmq.verify.oracles.partition import Partition, oracle

DEAD_PREFIX: Final = "%DLQ%"
ENDS: Final = CRASHES | {"StopConsumer"}
"""The process of a member is gone, whether or not it could say so."""
TRUST_SLACK_NS: Final = 1_000_000_000
"""What an answer to LockQueue may take."""
PROMPT_NS: Final = 2_000_000_000
"""A message that nothing holds up reaches a listener within this time; it takes milliseconds."""
LONG_NS: Final = 200_000_000
"""A listener that takes so long holds others up."""
BUSY_NS: Final = 15_000_000_000
"""So long after a failure a group may still be busy with it."""


@dataclass(slots=True)
class Membership:
    """Who is a member, and who holds what."""

    nodes: dict[str, str] = field(default_factory=dict)
    """Member (`group@client`) -> the machine that it runs on."""
    held: dict[str, set[Queue]] = field(default_factory=dict)
    routes: dict[str, dict[str, int]] = field(default_factory=dict)
    """Member -> topic -> how many queues it has."""

    def feed(self, line: Line) -> None:
        if line.action == "Subscribe" and line.outcome == Outcome.OK:
            self.nodes[line.actor] = line.node
        elif line.outcome != Outcome.STEP:
            return
        elif line.action == "AcquireQueue":
            self.held.setdefault(line.actor, set()).add(line.queue)
        elif line.action == "ReleaseQueue":
            self.held.get(line.actor, set()).discard(line.queue)
        elif line.action == "RouteRefresh":
            self.routes.setdefault(line.actor, {})[line.topic] = line.queues
        elif line.action == "Leave":
            self._forget(f"{line.subject}@{line.actor}")
        elif line.action in ENDS:
            for member in [member for member, node in self.nodes.items() if node == line.node]:
                self._forget(member)

    def _forget(self, member: str) -> None:
        self.nodes.pop(member, None)
        self.held.pop(member, None)
        self.routes.pop(member, None)


@oracle(Partition.GROUP)
def all_queues_owned(lines: Iterable[Line], promises: Promises) -> Iterator[Finding]:
    """AllQueuesOwned: when all is settled, every queue of a topic has exactly one owner in a group."""
    membership = Membership()
    for number, line in enumerate(lines):
        membership.feed(line)
        if line.action != "Settled":
            continue
        by_group: dict[str, list[str]] = {}
        for member in membership.nodes:
            by_group.setdefault(member.partition("@")[0], []).append(member)
        for group, members in by_group.items():
            for topic, queues in _known_queues(membership, members).items():
                owners = [
                    (queue, member)
                    for member in members
                    for queue in sorted(membership.held.get(member, ()))
                    if queue[0] == topic
                ]
                if len(owners) != len({queue for queue, _ in owners}):
                    told = ", ".join(f"{named(queue)} of {member}" for queue, member in owners)
                    yield Finding("AllQueuesOwned", f"a queue of {topic} has two owners in {group}: {told}", number)
                elif len(owners) < queues:
                    sentence = f"of {queues} queues of {topic} {group} has {len(owners)} in its hands"
                    yield Finding("AllQueuesOwned", sentence, number)


def _known_queues(membership: Membership, members: list[str]) -> dict[str, int]:
    known: dict[str, int] = {}
    for member in members:
        for topic, queues in membership.routes.get(member, {}).items():
            known[topic] = max(queues, known.get(topic, 0))
    return known


@oracle(Partition.GROUP)
def only_holders_act(lines: Iterable[Line], promises: Promises) -> Iterator[Finding]:
    """OnlyHoldersAct: a member pulls, hands out and commits only queues that it has; in order only while its loan is
    young enough to be trusted."""
    membership, orderly = Membership(), dict[str, bool]()
    lent_ns: dict[tuple[str, Queue], int] = {}
    for number, line in enumerate(lines):
        if line.action == "Subscribe":
            orderly[line.group] = bool(line.orderly)
        if line.outcome == Outcome.STEP and line.action == "LockQueue" and line.granted:
            lent_ns[line.actor, line.queue] = line.at_ns
        is_start = line.action == "Listen" and line.outcome == Outcome.INVOKE
        is_step = line.outcome == Outcome.STEP and line.action in ("PullMessages", "ConsumeStart", "CommitSend")
        if is_start or is_step:
            if line.queue not in membership.held.get(line.actor, ()):
                yield Finding(
                    "OnlyHoldersAct", f"{line.action} of {line.actor}, which has not {named(line.queue)}", number
                )
            elif is_start and orderly.get(line.group):
                since_ns = lent_ns.get((line.actor, line.queue))
                age_ns = line.at_ns - (since_ns or 0)
                if age_ns > TRUST_MS * 1_000_000 + TRUST_SLACK_NS:
                    lent = "which nobody lent to it" if since_ns is None else f"lent {age_ns // 10**9} s ago"
                    sentence = f"{line.actor} hands out a message of {named(line.queue)}, {lent}"
                    yield Finding("OnlyHoldersAct", sentence, number)
        membership.feed(line)


@dataclass(slots=True)
class _Open:
    """A listener at work."""

    actor: str
    node: str
    queue: Queue
    excused: bool = False
    """Its process stood still meanwhile: it could not hear that its trust is over."""


@oracle(Partition.GROUP)
def one_listener_per_queue(lines: Iterable[Line], promises: Promises) -> Iterator[Finding]:
    """OneListenerPerQueue: no two orderly listeners of a group have messages of one queue at once.

    A listener whose process stood still is not blamed, and nobody for it.
    """
    orderly: dict[str, bool] = {}
    paused: set[str] = set()
    working: Remembered[tuple[str, int], _Open] = Remembered()
    for number, line in enumerate(lines):
        if line.action == "Subscribe":
            orderly[line.group] = bool(line.orderly)
        elif line.outcome == Outcome.STEP and line.actor == line.node:
            if line.action == "ConsumerPause":
                paused.add(line.node)
                for each in working.values():
                    each.excused |= each.node == line.node
            elif line.action == "ConsumerResume":
                paused.discard(line.node)
            elif line.action in CRASHES:
                paused.discard(line.node)
                for key in [key for key, each in working.items() if each.node == line.node]:
                    del working[key]
        elif line.action == "Listen" and line.outcome != Outcome.INVOKE:
            working.pop((line.actor, line.operation), None)
        elif line.action == "Listen" and orderly.get(line.group):
            for each in working.values():
                same = each.queue == line.queue and each.actor.partition("@")[0] == line.group
                if same and not each.excused and line.node not in paused:
                    sentence = f"{line.actor} gets a message of {named(line.queue)} while {each.actor} has one"
                    yield Finding("OneListenerPerQueue", sentence, number)
            working[line.actor, line.operation] = _Open(line.actor, line.node, line.queue)


@oracle(Partition.GROUP, shared=STORED)
def listened_is_wanted(lines: Iterable[Line], promises: Promises) -> Iterator[Finding]:
    """ListenedIsWanted: a listener gets messages that its group wants, each from the place where it is stored."""
    stored = Stored()
    for number, line in enumerate(lines):
        stored.feed(line)
        is_start = line.action == "Listen" and line.outcome == Outcome.INVOKE
        is_step = line.outcome == Outcome.STEP and line.action in ("ConsumeStart", "ConsumeFinish")
        if not is_start and not is_step:
            continue
        offset, message = line.queue_offset, line.message
        placed = stored.placed.get((line.queue, offset))
        if placed == NOT_TOLD:
            placed = stored.placed[line.queue, offset] = message
        if placed is not None and placed != message:
            sentence = (
                f"{line.actor} takes {message:#x} for the message at {offset} of {named(line.queue)}, {placed:#x}"
            )
            yield Finding("ListenedIsWanted", sentence, number)
        elif offset >= stored.ends.get(line.queue, 0) and line.queue in stored.ends:
            sentence = f"{line.actor} has a message {offset} of {named(line.queue)}, where there is none"
            yield Finding("ListenedIsWanted", sentence, number)
        elif is_start and line.group in stored.wishes and not stored.wants(line.group, message):
            yield Finding("ListenedIsWanted", f"{line.actor} gets a message that it does not want", number)


@oracle(Partition.GROUP, shared=("AppendMessage",))
def dead_after_retries(lines: Iterable[Line], promises: Promises) -> Iterator[Finding]:
    """DeadAfterRetries: a dead letter has failed once more than there are retries, and an attempt has the number of the
    failures before it, or a smaller one. Brokers hand out no attempt beyond the last retry; a consumer whose message
    nobody takes back tries on."""
    retries_max: dict[str, int] = {}
    failed: Remembered[tuple[str, int], int] = Remembered()
    seen: Remembered[tuple[str, Queue, int], None] = Remembered()
    for number, line in enumerate(lines):
        if line.action == "Subscribe":
            retries_max[line.group] = line.retries_max
        elif line.action == "Listen":
            times = failed.get((line.group, line.message), 0)
            if line.outcome in (Outcome.FAIL, Outcome.UNKNOWN):
                failed[line.group, line.message] = times + 1
                continue
            if line.outcome != Outcome.INVOKE:
                continue
            place = (line.group, line.queue, line.queue_offset)
            if place not in seen and line.reconsume_times > retries_max.get(line.group, line.reconsume_times):
                yield Finding("DeadAfterRetries", f"{line.actor} gets a message that should be dead", number)
            seen[place] = None
            if line.reconsume_times > times:
                sentence = f"{line.actor} is told of {line.reconsume_times} attempts before this one, {times} failed"
                yield Finding("DeadAfterRetries", sentence, number)
        elif line.action == "AppendMessage" and line.topic.startswith(DEAD_PREFIX):
            group = line.topic.removeprefix(DEAD_PREFIX)
            times = failed.get((group, line.message), 0)
            if group in retries_max and times <= retries_max[group]:
                sentence = f"a message is a dead letter of {group} after {times} failures"
                yield Finding("DeadAfterRetries", sentence, number)


@dataclass(slots=True)
class _Sent:
    """A message that was produced in calm."""

    number: int
    at_ns: int
    busy: bool
    """Others were before it."""
    heard: int = 0
    failed: bool = False
    heard_ns: int = 0


@oracle(Partition.WHOLE)
def consumed_when_calm(lines: Iterable[Line], promises: Promises) -> Iterator[Finding]:
    """ConsumedWhenCalm: in a group that nothing disturbs a message is consumed at once, and once."""
    stored, calm = Stored(), False
    sent: Remembered[int, _Sent] = Remembered()
    working: dict[tuple[str, int], int] = {}
    failed_ns, last_ns = -BUSY_NS, 0
    for number, line in enumerate(lines):
        stored.feed(line)
        last_ns = max(last_ns, line.at_ns)
        is_fault = line.outcome == Outcome.STEP and line.actor == line.node
        if is_fault or line.action in ("Subscribe", "Leave"):
            yield from _not_consumed(sent, last_ns, working)
            sent.clear()
            calm = line.action == "Settled"
        elif line.action == "Produce" and line.outcome == Outcome.INVOKE and calm:
            wanted = all(stored.wants(group, line.message) for group in stored.wishes)
            if stored.wishes and wanted:
                busy = bool(working) or line.at_ns - failed_ns < BUSY_NS
                sent[line.message] = _Sent(number, line.at_ns, busy)
        elif line.action == "Listen":
            known = sent.get(line.message)
            if line.outcome == Outcome.INVOKE:
                working[line.actor, line.operation] = line.at_ns
            else:
                took_ns = line.at_ns - working.pop((line.actor, line.operation), line.at_ns)
                failed_ns = line.at_ns if line.outcome != Outcome.OK else failed_ns
                if took_ns > LONG_NS or line.outcome != Outcome.OK:
                    for each in sent.values():  # what has not been heard by now may have waited for this one
                        each.busy |= not each.heard
            if known is None:
                continue
            known.failed |= line.outcome not in (Outcome.OK, Outcome.INVOKE)
            if line.outcome == Outcome.INVOKE:
                known.heard += 1
                known.heard_ns = known.heard_ns or line.at_ns
                if known.heard > 1 and not known.failed and not line.topic.startswith(RETRY_PREFIX):
                    yield Finding("ConsumedWhenCalm", f"{line.actor} gets a message again, which is consumed", number)
    yield from _not_consumed(sent, last_ns, working)


def _not_consumed(sent: Remembered[int, _Sent], now_ns: int, working: dict[tuple[str, int], int]) -> Iterator[Finding]:
    if any(now_ns - since_ns > LONG_NS for since_ns in working.values()):
        return
    for each in sent.values():
        late_ns = (each.heard_ns or now_ns) - each.at_ns
        if late_ns > PROMPT_NS and not each.busy:
            what = "was consumed" if each.heard else "had not been consumed"
            yield Finding("ConsumedWhenCalm", f"a message {what} {late_ns / 1e9:.1f} s after it was sent", each.number)
