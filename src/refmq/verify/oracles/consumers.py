"""Promises about consumer groups: offsets never run ahead of consumption, queues have one owner."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Final

from refmq.trace.record import Outcome
from refmq.verify.oracles.base import REMEMBERED_MAX, Finding, Line, Promises, Queue, Remembered
from refmq.verify.oracles.calm import Quiet
from refmq.verify.oracles.groups import STORED, Openness
from refmq.verify.oracles.partition import Partition, oracle

TRUST_MS: Final = 30_000
"""How long a client relies on an answer to LockQueue: ProcessQueue.REBALANCE_LOCK_MAX_LIVE_TIME, 4.9.8."""


@dataclass(slots=True)
class _Progress:
    """What one group has consumed of one queue."""

    consumed_to: int
    """Everything below was consumed, or lies before the group's beginning."""
    beyond: set[int] = field(default_factory=set)

    def add(self, offset: int) -> None:
        if offset >= self.consumed_to and len(self.beyond) < REMEMBERED_MAX:
            self.beyond.add(offset)
            while self.consumed_to in self.beyond:
                self.beyond.discard(self.consumed_to)
                self.consumed_to += 1


@oracle(Partition.GROUP, shared=STORED)
def committed_offset_never_ahead(lines: Iterable[Line], promises: Promises) -> Iterator[Finding]:
    """CommittedOffsetNeverAhead: every message below a committed offset was consumed by the group.

    A group starts where its first pull of a queue starts, or at the offset that a broker gave it first. Of a group with
    listeners, consumed is what they are done with.
    """
    progress: dict[tuple[str, Queue], _Progress] = {}
    openness = Openness()
    for number, line in enumerate(lines):
        openness.feed(line)
        key = (line.group, line.queue)
        is_client = line.outcome != Outcome.STEP
        if line.action == "Pull" and line.outcome == Outcome.INVOKE:
            if key not in progress:
                progress[key] = _Progress(line.from_offset)
        elif line.outcome == Outcome.CONSUMED and key in progress:
            progress[key].add(line.queue_offset)
        elif line.action == "ResetOffset":
            progress.pop(key, None)
        elif line.action == "CommitOffset" and (line.outcome == Outcome.INVOKE or not is_client):
            known = progress.get(key)
            if known is not None and line.after > known.consumed_to:
                who = line.actor if is_client else f"{line.node} for {line.actor}"
                sentence = f"{who} commits offset {line.after} of {_name(line.queue)}, consumed to {known.consumed_to}"
                yield Finding("CommittedOffsetNeverAhead", sentence, number)
            first = openness.first(line.group, line.queue)
            if first is not None and first < line.after:
                sentence = (
                    f"{line.after} of {_name(line.queue)} is committed for {line.group}, which has not done {first}"
                )
                yield Finding("CommittedOffsetNeverAhead", sentence, number)


@oracle(Partition.QUEUE)
def committed_offset_monotone(lines: Iterable[Line], promises: Promises) -> Iterator[Finding]:
    """CommittedOffsetMonotone: a broker stores a smaller offset over a larger one only if a client asked for it.

    Brokers take what a client commits, as upstream's do: that is how an operator's reset arrives. That a client asks
    for it without a reset is a matter of its own and of the specification Rebalance.
    """
    stored: dict[tuple[str, Queue], int] = {}
    asked: Remembered[tuple[str, Queue, int], None] = Remembered()
    for number, line in enumerate(lines):
        key = (line.group, line.queue)
        if line.action == "CommitOffset" and line.outcome == Outcome.INVOKE:
            asked[(*key, line.after)] = None
        if line.outcome != Outcome.STEP:
            continue
        if line.action in ("ProcessCrash", "PowerLoss"):
            # Offsets are written to their file now and then: a restarted broker remembers older ones.
            stored = {known: offset for known, offset in stored.items() if known[1][1] != line.node}
        elif line.action == "ResetOffset":
            stored[key] = line.after
        elif line.action == "CommitOffset":
            if line.after < max(line.before, stored.get(key, -1)) and (*key, line.after) not in asked:
                sentence = (
                    f"{line.node} stored {line.after} for {line.actor} on {_name(line.queue)} after {line.before}"
                )
                yield Finding("CommittedOffsetMonotone", sentence, number)
            stored[key] = line.after


@dataclass(slots=True)
class _Register:
    """What a committed offset may be, as far as clients can know."""

    possible: set[int] = field(default_factory=set)
    """Empty if nothing has been committed."""
    ever: set[int] = field(default_factory=set)
    past: list[tuple[int, frozenset[int]]] = field(default_factory=list)
    """What it may have been until when, for as long as a crash may bring it back."""
    pending: dict[tuple[str, int], set[int]] = field(default_factory=dict)
    """Commits that are under way, or of which nobody will ever know: what they commit, and what others have committed
    meanwhile, before or after them."""

    def succeed(self, operation: tuple[str, int], offset: int, at_ns: int) -> None:
        """A commit is known to have happened: it is the last one, unless it overlapped with others."""
        self.past = [then for then in self.past if then[0] >= at_ns - SAVED_NS]
        self.past.append((at_ns, frozenset(self.possible)))
        overlapping = self.pending.pop(operation, set())
        for others in self.pending.values():
            others.add(offset)
        self.possible = {offset, *overlapping, *(each for others in self.pending.values() for each in others)}

    def crash(self, since_ns: int | None) -> None:
        """Memory is gone: it may be anything that it may have been since then, or ever."""
        if since_ns is None:
            self.possible |= self.ever | {_NOTHING}
        for until_ns, possible in self.past:
            if since_ns is None or until_ns >= since_ns:
                self.possible |= possible
        for others in self.pending.values():
            others |= self.possible  # the answer to a commit from before may still arrive, and is no later commit


SAVED_NS: Final = 20_000_000_000
"""A broker writes its offsets down 10 s after its start and then every 5 s."""


@oracle(Partition.QUEUE, shared=("FinishRecovery", "StopStore"))
def committed_offset_kept(lines: Iterable[Line], promises: Promises) -> Iterator[Finding]:
    """CommittedOffsetKept: a broker tells a group the offset that it committed last.

    After a crash it may be an older one, because offsets are written to their file every few seconds; never another. A
    clean stop is no better when the disk is full or fails.
    """
    registers: dict[tuple[str, Queue], _Register] = {}
    started_ns: dict[str, int] = {}
    unreliable: set[str] = set()
    asking: dict[tuple[str, int], set[int]] = {}
    for number, line in enumerate(lines):
        if line.outcome == Outcome.STEP:
            if line.action in ("JumpClock", "FailFlush", "FullDisk"):
                unreliable.add(line.node)
            elif line.action == "FinishRecovery":
                started_ns[line.node] = line.at_ns
            # One whose flush failed ends by itself, and only its next start tells of it.
            if line.action in ("ProcessCrash", "PowerLoss") or (
                line.action in ("StopStore", "FinishRecovery") and line.node in unreliable
            ):
                for (_, queue), register in registers.items():
                    if queue[1] == line.node:
                        since_ns = max(line.at_ns - SAVED_NS, started_ns.get(line.node, 0))
                        register.crash(None if line.node in unreliable else since_ns)
            continue
        key, operation = (line.group, line.queue), (line.actor, line.operation)
        register = registers.setdefault(key, _Register({_NOTHING})) if line.action in _OFFSETS else _Register()
        if line.action == "CommitOffset" and line.outcome == Outcome.INVOKE:
            register.pending[operation] = {line.after}
            register.possible.add(line.after)
            register.ever.add(line.after)
            for allowed in asking.values():
                allowed.add(line.after)
        elif line.action == "CommitOffset" and line.outcome == Outcome.OK:
            register.succeed(operation, line.after, line.at_ns)
        elif line.action == "CommitOffset" and line.outcome == Outcome.FAIL:
            register.pending.pop(operation, None)
        elif line.action == "QueryOffset" and line.outcome == Outcome.INVOKE:
            asking[operation] = set(register.possible)
        elif line.action == "QueryOffset":
            allowed = asking.pop(operation, set()) | register.possible
            is_answer = line.outcome == Outcome.OK or line.status == _NOT_FOUND
            told = line.offset if line.outcome == Outcome.OK else _NOTHING
            if not is_answer or told in allowed or (told == 0 and _NOTHING in allowed):
                continue
            kept = " or ".join("nothing" if offset == _NOTHING else str(offset) for offset in sorted(allowed))
            sentence = f"{line.actor} is told {told} of {_name(line.queue)}, where {kept} was committed"
            yield Finding("CommittedOffsetKept", sentence, number)


_NOTHING: Final = -1
"""No offset was committed: the answer is that there is none, or 0."""
_NOT_FOUND: Final = 22
"""Response code: the group has no offset for the queue."""
_OFFSETS: Final = ("CommitOffset", "QueryOffset")


@oracle(Partition.QUEUE)
def one_owner_per_queue(lines: Iterable[Line], promises: Promises) -> Iterator[Finding]:
    """OneOwnerPerQueue: a broker does not lend a queue while another client of the group may still trust its loan.

    The events are the broker's: a grant (`granted` 1) with the client as actor, `group@client`.
    """
    trusted: dict[tuple[str, Queue], tuple[str, int]] = {}
    for number, line in enumerate(lines):
        if line.outcome != Outcome.STEP:
            continue
        key = (line.group, line.queue)
        if line.action == "LockQueue" and line.granted:
            holder, since_ms = trusted.get(key, (line.actor, line.at_ms))
            if holder != line.actor and line.at_ms - since_ms <= TRUST_MS:
                sentence = f"{_name(line.queue)} is lent to {line.actor} while {holder} trusts it"
                yield Finding("OneOwnerPerQueue", sentence, number)
            trusted[key] = (line.actor, line.at_ms)
        elif line.action == "UnlockQueue" and trusted.get(key, ("", 0))[0] == line.actor:
            del trusted[key]


LOAN_MS: Final = 60_000
"""How long a broker lends without hearing from the holder: RebalanceLockManager, 4.9.8."""
GRACE_NS: Final = 32_000_000_000
"""After a restart a broker lends nothing until no client can still trust its predecessor."""


@oracle(Partition.QUEUE, shared=("FinishRecovery", "StopStore"))
def free_queue_lent(lines: Iterable[Line], promises: Promises) -> Iterator[Finding]:
    """FreeQueueLent: a client that asks for a queue gets it, unless another one holds it or the broker is new.

    Who holds a queue is what the broker says that it lent and took back.
    """
    held: dict[tuple[str, Queue], tuple[str, int]] = {}
    given_back: dict[tuple[str, Queue], int] = {}
    started_ns: dict[str, int] = {}
    asked: Remembered[tuple[str, int], int] = Remembered()
    quiet = Quiet()
    for number, line in enumerate(lines):
        quiet.feed(number, line)
        key = (line.group, line.queue)
        if line.outcome == Outcome.STEP:
            if line.action == "LockQueue" and line.granted:
                held[key] = (line.actor, line.at_ms)
            elif line.action == "UnlockQueue" and held.get(key, ("", 0))[0] == line.actor:
                del held[key]
                given_back[key] = number
            elif line.action == "FinishRecovery":
                started_ns[line.node] = line.at_ns
                held = {known: loan for known, loan in held.items() if known[1][1] != line.node}
        elif line.action == "LockQueue" and line.outcome == Outcome.INVOKE:
            asked[line.actor, line.operation] = number
        elif line.action == "LockQueue" and line.outcome == Outcome.OK and not line.granted:
            holder, since_ms = held.get(key, (line.actor, 0))
            is_free = holder == line.actor or line.at_ns // 1_000_000 - since_ms > LOAN_MS + 1_000
            is_new = line.at_ns - started_ns.get(line.queue[1], 0) < GRACE_NS
            last = max(quiet.last_fault_of(line), given_back.get(key, -1))
            undisturbed = last < asked.get((line.actor, line.operation), -1)
            if is_free and not is_new and undisturbed and quiet.expects(line):
                yield Finding("FreeQueueLent", f"{line.actor} does not get {_name(line.queue)}, which is free", number)


def _name(queue: Queue) -> str:
    return f"{queue[0]}/{queue[2]} at {queue[1]}"
