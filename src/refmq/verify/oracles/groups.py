"""Promises about what the members of a group consume: nothing skipped, nothing committed ahead, everything in the end.

They read what brokers store and commit (`DispatchMessage`, `CommitOffset`), what clients say of their queues
(`AcquireQueue`, `PullMessages`) and what applications saw (`Subscribe`, `Listen`), and compare them.

A place in a queue is *done* when a listener has returned from its message, or failed and the message was stored again,
for another attempt or as a dead letter. What is before a group and not done is *open*.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Final

from refmq.trace.record import Outcome
from refmq.verify.oracles.base import REMEMBERED_MAX, Finding, Line, Promises, Queue, Remembered
from refmq.verify.oracles.partition import Partition, oracle

RETRY_PREFIX: Final = "%RETRY%"
HANDED_TO: Final = ("SCHEDULE_TOPIC", RETRY_PREFIX, "%DLQ%")
"""What the topics begin with in which a message waits for its next attempt, or for ever."""
COMMIT_NS: Final = 10_000_000_000
"""Consumers commit every five seconds."""
NO_OFFSET: Final = -1
"""Before the first commit of a group."""
CRASHES: Final = frozenset({"ProcessCrash", "PowerLoss"})
STORED: Final = ("AppendMessage", "DispatchMessage", "Produce")
"""What `Stored` learns for all groups alike."""


@dataclass(frozen=True, slots=True)
class Wish:
    """How a group consumes."""

    classes: int
    """The classes of messages that it wants, as bits."""
    orderly: bool
    retries_max: int
    from_first: bool


NOT_TOLD: Final = 0
"""Stands for a message that a broker wrote, and the power went before it could say so. Who gets it first knows it."""


@dataclass(slots=True)
class Stored:
    """What brokers have stored, and how groups want it: the ground of all the promises here."""

    wishes: dict[str, Wish] = field(default_factory=dict)
    placed: Remembered[tuple[Queue, int], int] = field(default_factory=Remembered)
    """Place -> message."""
    ends: dict[Queue, int] = field(default_factory=dict)
    _classes: Remembered[int, int] = field(default_factory=Remembered)
    _logged: Remembered[tuple[str, int], int] = field(default_factory=Remembered)
    """Broker and physical offset -> message."""

    def feed(self, line: Line) -> bool:
        """Whether the line tells of a new place."""
        if line.outcome == Outcome.INVOKE:
            if line.action == "Subscribe":
                self.wishes[line.group] = Wish(
                    line.wanted_classes, bool(line.orderly), line.retries_max, bool(line.from_first)
                )
            elif line.action == "Produce":
                self._classes[line.message] = line.message_class
        elif line.outcome == Outcome.STEP:
            if line.action == "AppendMessage":
                self._logged[line.node, line.physical_offset] = line.message
            elif line.action == "DispatchMessage" and line.queue_offset >= self.ends.get(line.queue, 0):
                # A recovery dispatches again what was dispatched before; in a queue nothing ever changes.
                self.ends[line.queue] = line.queue_offset + 1
                message = self._logged.get((line.node, line.physical_offset), NOT_TOLD)
                self.placed[line.queue, line.queue_offset] = message
                return True
        return False

    def wants(self, group: str, message: int) -> bool:
        """A message of which nobody has said its class is wanted by everybody."""
        kind = self._classes.get(message)
        return kind is None or bool(self.wishes[group].classes >> kind & 1)


class Openness:
    """What is open for each group in each of its queues, by the offsets."""

    def __init__(self) -> None:
        self.stored = Stored()
        self._open: dict[tuple[str, Queue], dict[int, int]] = {}
        """Group and queue -> offset -> message, in the order of the offsets."""
        self._failing: Remembered[tuple[str, int], set[tuple[Queue, int]]] = Remembered()

    def feed(self, line: Line) -> None:
        if self.stored.feed(line):
            for (group, queue), before in self._open.items():
                if queue == line.queue:
                    self._add(before, group, queue, line.queue_offset)
        elif line.action == "AcquireQueue" and (line.group, line.queue) not in self._open:
            self._begin(line)
        elif line.action == "Listen" and line.outcome == Outcome.OK:
            self._open.get((line.group, line.queue), {}).pop(line.queue_offset, None)
        elif line.action == "Listen" and line.outcome == Outcome.FAIL:
            known = self._failing.get((line.group, line.message), set())
            self._failing[line.group, line.message] = known | {(line.queue, line.queue_offset)}
        elif line.action == "AppendMessage" and line.topic.startswith(HANDED_TO):
            for group in self.stored.wishes:
                for queue, offset in self._failing.pop((group, line.message), ()):
                    self._open.get((group, queue), {}).pop(offset, None)
        elif line.action == "CommitOffset" and line.outcome == Outcome.STEP and line.before == NO_OFFSET:
            # Where a group begins that wants what comes from now on is what was stored first: two members may have
            # found two ends.
            before = self._open.get((line.group, line.queue), {})
            if before and not self._from_first(line.group, line.topic):
                for offset in [offset for offset in before if offset < line.after]:
                    del before[offset]
        elif line.action in CRASHES:
            # The offset at which a group began at the end of a queue may be forgotten: it begins anew.
            for group, queue in list(self._open):
                if queue[1] == line.node and not self._from_first(group, queue[0]):
                    del self._open[group, queue]

    def _from_first(self, group: str, topic: str) -> bool:
        return self.stored.wishes[group].from_first or topic.startswith(RETRY_PREFIX)

    def _begin(self, line: Line) -> None:
        if line.group not in self.stored.wishes:
            return  # a group of which no application has said how it consumes
        begin = 0 if self._from_first(line.group, line.topic) else line.start_offset
        before: dict[int, int] = {}
        for offset in range(begin, self.stored.ends.get(line.queue, 0)):
            self._add(before, line.group, line.queue, offset)
        self._open[line.group, line.queue] = before

    def _add(self, before: dict[int, int], group: str, queue: Queue, offset: int) -> None:
        message = self.stored.placed.get((queue, offset))
        if message is not None and self.stored.wants(group, message) and len(before) < REMEMBERED_MAX:
            before[offset] = message

    def first(self, group: str, queue: Queue) -> int | None:
        """The first offset of a queue that is open."""
        return next(iter(self._open.get((group, queue), ())), None)

    def end(self, group: str, queue: Queue) -> int:
        """Where the last message that the group wants ends. A consumer need not hear of those after it."""
        end = self.stored.ends.get(queue, 0)
        while end and not self.stored.wants(group, self.stored.placed.get((queue, end - 1), 0)):
            end -= 1
        return end

    def all_first(self) -> Iterator[tuple[str, Queue, int]]:
        for (group, queue), before in self._open.items():
            if before:
                yield group, queue, next(iter(before))


@oracle(Partition.GROUP, shared=STORED)
def no_skipped_offset(lines: Iterable[Line], promises: Promises) -> Iterator[Finding]:
    """NoSkippedOffset: a member begins no later than at the first message that its group has not consumed, and its next
    pull begins no later than the last one ended."""
    openness = Openness()
    reached: dict[tuple[str, Queue], int] = {}
    for number, line in enumerate(lines):
        openness.feed(line)
        if line.outcome != Outcome.STEP:
            continue
        if line.action == "AcquireQueue":
            reached[line.actor, line.queue] = line.start_offset
            first = openness.first(line.group, line.queue)
            if first is not None and first < line.start_offset:
                sentence = f"{line.actor} begins at {line.start_offset} of {_name(line.queue)}, {first} is not consumed"
                yield Finding("NoSkippedOffset", sentence, number)
        elif line.action == "PullMessages":
            before = reached.get((line.actor, line.queue), line.from_offset)
            if line.from_offset > before:
                sentence = (
                    f"{line.actor} pulls {_name(line.queue)} from {line.from_offset}, the last pull ended at {before}"
                )
                yield Finding("NoSkippedOffset", sentence, number)
            reached[line.actor, line.queue] = line.next_offset


@oracle(Partition.GROUP, shared=STORED)
def every_message_consumed(lines: Iterable[Line], promises: Promises) -> Iterator[Finding]:
    """EveryMessageConsumed: when all is settled, what a group wants was consumed or is a dead letter, and what a
    producer takes for stored is stored."""
    openness, last = Openness(), 0
    is_stored: Remembered[int, bool] = Remembered()
    for last, line in enumerate(lines):
        openness.feed(line)
        if line.action == "Produce" and line.outcome == Outcome.INVOKE:
            is_stored[line.message] = False
        elif line.action == "AppendMessage" and line.message in is_stored:
            is_stored[line.message] = True
        elif line.action == "Produce" and line.outcome == Outcome.OK and not is_stored.pop(line.message, True):
            yield Finding("EveryMessageConsumed", f"{line.actor} takes a message for stored that is not", last)
        elif line.action == "Settled":
            for group, queue, offset in openness.all_first():
                sentence = f"{group} has not consumed {offset} of {_name(queue)}, and nothing moves any more"
                yield Finding("EveryMessageConsumed", sentence, last)
    for group, queue, offset in openness.all_first() if promises.settled else ():
        yield Finding("EveryMessageConsumed", f"{group} has never consumed {offset} of {_name(queue)}", last)


@oracle(Partition.GROUP, shared=STORED)
def orderly_in_order(lines: Iterable[Line], promises: Promises) -> Iterator[Finding]:
    """OrderlyInOrder: an orderly listener gets a message when all older ones of its queue are done."""
    openness = Openness()
    for number, line in enumerate(lines):
        if line.action == "Listen" and line.outcome == Outcome.INVOKE:
            wish, first = openness.stored.wishes.get(line.group), openness.first(line.group, line.queue)
            if wish is not None and wish.orderly and first is not None and first < line.queue_offset:
                sentence = f"{line.actor} gets {line.queue_offset} of {_name(line.queue)} before {first} is done"
                yield Finding("OrderlyInOrder", sentence, number)
        openness.feed(line)


@oracle(Partition.GROUP, shared=STORED)
def leave_commits(lines: Iterable[Line], promises: Promises) -> Iterator[Finding]:
    """LeaveCommits: when all members have left in good order, undisturbed, what they consumed is committed."""
    openness = Openness()
    committed: dict[tuple[str, Queue], int] = {}
    acquired: dict[tuple[str, Queue], None] = {}
    calm, parting, last = False, False, 0
    for last, line in enumerate(lines):  # noqa: B007 - the number of the last line is used below
        openness.feed(line)
        if line.outcome != Outcome.STEP:
            continue
        if line.actor == line.node:  # a fault, or a note of the world
            parting = calm and line.action == "Parting"
            calm = line.action == "Settled"
        elif line.action == "CommitOffset":
            committed[line.group, line.queue] = line.after
        elif line.action == "AcquireQueue":
            acquired[line.group, line.queue] = None
    for group, queue in acquired if parting and promises.settled else ():
        if group not in openness.stored.wishes or openness.first(group, queue) is not None:
            continue
        end, told = openness.end(group, queue), committed.get((group, queue), 0)
        if told < end:
            yield Finding("LeaveCommits", f"{group} left {_name(queue)} at {told}, it had consumed it to {end}", last)


@oracle(Partition.GROUP, shared=STORED)
def committed_in_time(lines: Iterable[Line], promises: Promises) -> Iterator[Finding]:
    """CommittedInTime: when all is settled, what was consumed more than ten seconds ago is committed."""
    openness = Openness()
    committed: dict[tuple[str, Queue], int] = {}
    done_ns: dict[tuple[str, Queue], int] = {}
    for number, line in enumerate(lines):
        openness.feed(line)
        key = (line.group, line.queue)
        if line.action == "Listen" and line.outcome == Outcome.OK:
            done_ns[key] = line.at_ns
        elif line.action == "CommitOffset" and line.outcome == Outcome.STEP:
            committed[key] = line.after
        elif line.action == "Settled":
            for (group, queue), at_ns in done_ns.items():
                end, told = openness.end(group, queue), committed.get((group, queue), 0)
                is_done = group in openness.stored.wishes and openness.first(group, queue) is None
                if is_done and told < end and line.at_ns - at_ns > COMMIT_NS:
                    sentence = f"{group} consumed {_name(queue)} to {end}, and {told} is committed"
                    yield Finding("CommittedInTime", sentence, number)


def _name(queue: Queue) -> str:
    return f"{queue[0]}/{queue[2]} at {queue[1]}"
