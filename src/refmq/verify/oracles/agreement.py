"""What clients saw, brokers did: each answer has a step of a broker that explains it, and each step was asked for.

Judged for brokers whose trace is there from their start on.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Final

from refmq.trace.record import Outcome
from refmq.verify.oracles.base import FOUND, Finding, Line, Promises, Queue, Remembered
from refmq.verify.oracles.partition import Partition, oracle

OWN_TOPICS: Final = ("RMQ_SYS_TRANS_OP_HALF_TOPIC", "OFFSET_MOVED_EVENT")
"""Topics into which brokers write messages of their own."""
OWN_GROUPS: Final = "CID_RMQ_SYS_"
COMMIT: Final = 8
NOT_FOUND: Final = 19
"""Response code of a pull that found nothing."""

Place = tuple[Queue, int, int, int]
"""Queue, physical offset, queue offset, message."""


class _Sides:
    """What brokers have done so far, and what clients have begun."""

    def __init__(self) -> None:
        self.traced: set[str] = set()
        self.acked: Remembered[Place, int] = Remembered()
        """Place -> status."""
        self.statuses: Remembered[tuple[str, int], int] = Remembered()
        """Broker and message -> status of its last acknowledgement."""
        self.locking: dict[tuple[str, Queue], set[int]] = {}
        self.ambiguous: set[int] = set()
        """Operations on one lock that overlap."""
        self.half_queue: Remembered[int, Queue] = Remembered()
        self.brought: Counter[tuple[str, int]] = Counter()
        self.halves: Remembered[Place, None] = Remembered()
        self.half_offset: Remembered[int, int] = Remembered()
        self.served: Counter[tuple[Place, int]] = Counter()
        self.damaged: Remembered[int, None] = Remembered()
        """Messages of which a bit has flipped: brokers serve them as other ones, and clients know them all the same."""
        self.sent: Remembered[tuple[str, int], None] = Remembered()
        """Broker and message."""
        self.appended: Remembered[tuple[str, int], int] = Remembered()
        """Broker and message -> the line of the last copy."""
        self.decided: Remembered[tuple[int, int], None] = Remembered()
        self.asked_offsets: Remembered[tuple[str, Queue, int], int] = Remembered()
        """Group, queue and offset -> how many commits of it were asked for and are not done."""
        self.ends: dict[Queue, tuple[int, int]] = {}
        """Where a queue ends: at least and at most. A crash may take units back, for a while or for good."""
        self.crashed: dict[str, int] = {}
        """Broker -> the line at which it crashed last."""
        self.begun: Remembered[tuple[str, str, int], tuple[int, int]] = Remembered()
        """Actor, action and operation -> line, and the end of the queue at that time."""
        self.waiting: dict[tuple[str, str, Queue], int] = {}
        """Action, actor and queue -> how many of them may still be done."""
        self.steps: Remembered[tuple[str, str, Queue, int], int] = Remembered()
        """Action, actor, queue and number -> the line of the last step of a broker."""


@oracle(Partition.NODE)
def sides_agree(lines: Iterable[Line], promises: Promises) -> Iterator[Finding]:
    """SidesAgree: a broker has done what it tells a client, and a client has asked for what a broker does for it."""
    if not promises.complete:
        return
    sides = _Sides()
    for number, line in enumerate(lines):
        broker = line.queue[1]
        if line.outcome == Outcome.STEP:
            if line.action == "StartStore":
                sides.traced.add(line.node)
            wrong = list(_step(number, line, sides)) if line.node in sides.traced else []
        else:
            wrong = list(_client(number, line, sides)) if broker in sides.traced else []
        for sentence in wrong:
            where = f"{line.subject}/{line.queue_id}"
            yield Finding("SidesAgree", f"{line.action} of {line.actor or line.node} on {where}: {sentence}", number)


def _place(line: Line, offset: int) -> Place:
    return line.queue, line.physical_offset, offset, line.message


def _step(number: int, line: Line, sides: _Sides) -> Iterator[str]:
    match line.action:
        case "AppendMessage":
            sides.appended[line.node, line.message] = number
            if line.topic not in OWN_TOPICS and (line.node, line.message) not in sides.sent:
                yield f"nobody sent {line.message:#x}"
        case "AckPut":
            sides.acked[_place(line, line.queue_offset)] = sides.statuses[line.node, line.message] = line.status
        case "SendHalf":
            sides.halves[_place(line, line.half_offset)] = None
        case "ServeMessage":
            sides.served[_place(line, line.queue_offset), line.size_bytes] += 1
        case "DispatchMessage":
            end = line.queue_offset + 1
            sides.ends[line.queue] = (end, max(end, sides.ends.get(line.queue, (0, 0))[1]))
        case "FlipBit":
            sides.damaged[line.message] = None
        case "ProcessCrash" | "PowerLoss" | "FailFlush" | "FullDisk":
            sides.crashed[line.node] = number
            for queue, (_, most) in sides.ends.items():
                if queue[1] == line.node:
                    sides.ends[queue] = (0, most)
        case "EndTransaction":
            is_said = (line.message, line.decision) in sides.decided
            if not is_said or sides.half_queue.get(line.message, line.queue) != line.queue:
                yield f"no producer said {line.decision} about {line.message:#x}"
            if line.decision == COMMIT and line.status != sides.statuses.get((line.node, line.message), line.status):
                yield f"{line.status} is not how the message was stored"
            elif line.decision != COMMIT and line.status:
                yield f"{line.status} is not a status of a rollback"
        case "CommitOffset" if not line.actor.startswith(OWN_GROUPS):
            sides.steps["CommitOffset", line.actor, line.queue, line.after] = number
            commit = (line.actor, line.queue, line.after)
            left = sides.asked_offsets.get(commit, 0)
            sides.asked_offsets[commit] = left - 1
            if left < 1:
                yield f"{line.after} was not asked for, or not so often"
        case "LockQueue" | "UnlockQueue":
            sides.steps[line.action, line.actor, line.queue, 1] = number
            asked_for = (line.action, line.actor, line.queue)
            sides.waiting[asked_for] = sides.waiting.get(asked_for, 0) - 1
            if sides.waiting[asked_for] < 0:
                yield "nobody asked for it"
        case "Heartbeat" | "Leave":
            where = ("", line.node, -1)
            sides.steps[line.action, f"{line.subject}@{line.actor}", where, 0] = number
            asked = [key for key in sides.waiting if key[0] == line.action and key[1].partition("@")[2] == line.actor]
            if not any(sides.waiting[key] for key in asked if key[2] == where):
                yield "nobody asked for it"


def _client(number: int, line: Line, sides: _Sides) -> Iterator[str]:
    key = (line.actor, line.action, line.operation)
    wait = (line.action, line.actor, line.queue)
    is_lock = line.action in ("LockQueue", "UnlockQueue")
    if line.outcome == Outcome.INVOKE:
        sides.begun[key] = (number, sides.ends.get(line.queue, (0, 0))[0])
        sides.waiting[wait] = sides.waiting.get(wait, 0) + 1
        if is_lock:
            together = sides.locking.setdefault((line.actor, line.queue), set())
            together.add(line.operation)
            sides.ambiguous |= together if len(together) > 1 else set()
        match line.action:
            case "Send" | "SendBatch" | "SendHalf" | "SendDelayed":
                sides.sent[line.queue[1], line.message] = None
                sides.half_queue[line.message] = line.queue
            case "EndTransaction" | "CheckReply":
                sides.decided[line.message, line.decision] = None
                known = sides.half_offset.get(line.message, line.half_offset)
                if line.action == "EndTransaction" and known != line.half_offset:
                    yield f"the half message is at {known}, not at {line.half_offset}"
                if sides.half_queue.get(line.message, line.queue) != line.queue:
                    yield f"the half message is for {sides.half_queue[line.message]}"
            case "CommitOffset":
                commit = (line.group, line.queue, line.after)
                sides.asked_offsets[commit] = sides.asked_offsets.get(commit, 0) + 1
        return
    begun, end_then = sides.begun.get(key, (number, 0))
    if is_lock and line.outcome != Outcome.UNKNOWN:
        sides.locking.get((line.actor, line.queue), set()).discard(line.operation)
    was_done = is_lock and sides.steps.get((line.action, line.actor, line.queue, 1), -1) > begun
    if line.outcome in (Outcome.OK, Outcome.FAIL) and sides.waiting.get(wait, 0) > 0 and not was_done:
        sides.waiting[wait] -= 1  # one without an outcome may still be under way
    if line.outcome == Outcome.CONSUMED:
        sides.brought[line.actor, line.operation] += 1
        brought = (_place(line, line.queue_offset), line.size_bytes)
        sides.served[brought] -= 1
        if sides.served[brought] < 0 and line.message not in sides.damaged:
            yield f"{line.message:#x} was not served at {line.queue_offset}"
    elif line.outcome == Outcome.OK:
        yield from _answered(line, begun, end_then, sides)


def _answered(line: Line, begun: int, end_then: int, sides: _Sides) -> Iterator[str]:
    least, most = sides.ends.get(line.queue, (0, 0))

    def was_done(actor: str, queue: Queue, value: int) -> bool:
        return sides.steps.get((line.action, actor, queue, value), -1) > begun

    match line.action:
        case "Send" | "SendBatch":
            told = sides.acked.get(_place(line, line.queue_offset), not line.status)
            if bool(told) != bool(line.status):
                yield f"nobody acknowledged {line.message:#x} at {line.physical_offset} like this"
        case "SendHalf":
            sides.half_offset[line.message] = line.half_offset
            told = sides.statuses.get((line.queue[1], line.message), 0)
            if _place(line, line.half_offset) not in sides.halves or bool(told) != bool(line.status):
                yield f"nobody stored the half message {line.message:#x} at {line.physical_offset} like this"
        case "SendDelayed":
            told = sides.statuses.get((line.queue[1], line.message), not line.status)
            if bool(told) != bool(line.status):
                yield f"nobody acknowledged {line.message:#x} like this"
        case "SendBack" if sides.appended.get((line.queue[1], line.message), -1) < begun:
            yield f"nobody stored {line.message:#x}"
        case "CommitOffset" if not was_done(line.group, line.queue, line.after):
            yield f"{line.after} was not stored"
        case "LockQueue" if line.operation in sides.ambiguous:
            pass  # which of two at a time did it?
        case "LockQueue" if was_done(line.actor, line.queue, 1) != bool(line.granted):
            yield "the answer is not what was done"
        case "Heartbeat" | "Leave" if not was_done(line.actor, line.queue, 0) and line.action == "Heartbeat":
            yield "no broker recorded it"
        case "PullFiltered" if (line.status == FOUND) != bool(sides.brought[line.actor, line.operation]):
            yield f"{line.status} is not what it brought"
        case "Pull" | "QueryBounds":
            if sides.crashed.get(line.queue[1], -1) > begun:
                least = 0  # it may have been asked before all was dispatched again
            if not min(end_then, least) <= line.max_offset <= most:
                yield f"the queue is said to end at {line.max_offset}; it ended between {end_then} and {most}"
            elif line.action == "Pull" and line.status == NOT_FOUND and line.next_offset != line.from_offset:
                yield f"nothing was found, and it goes on at {line.next_offset}"
            elif line.action == "Pull" and (line.status == FOUND) != bool(sides.brought[line.actor, line.operation]):
                yield f"{line.status} is not what it brought"
            elif line.action == "Pull" and line.status not in (FOUND, NOT_FOUND, 20, 21):
                yield f"{line.status} is not an answer to it"
