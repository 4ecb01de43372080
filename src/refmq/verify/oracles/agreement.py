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
        self.sent: Remembered[tuple[str, int], None] = Remembered()
        """Broker and message."""
        self.appended: Remembered[tuple[str, int], int] = Remembered()
        """Broker and message -> the line of the last copy."""
        self.decided: Remembered[tuple[int, int], None] = Remembered()
        self.asked_offsets: Remembered[tuple[str, Queue, int], None] = Remembered()
        self.ends: dict[Queue, tuple[int, int]] = {}
        """Where a queue ends: at least and at most. A crash may take units back, for a while or for good."""
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


def _step(number: int, line: Line, sides: _Sides) -> Iterator[str]:
    place = (line.queue, line.a, line.b, line.c)
    match line.action:
        case "AppendMessage":
            sides.appended[line.node, line.c] = number
            if line.topic not in OWN_TOPICS and (line.node, line.c) not in sides.sent:
                yield f"nobody sent {line.c:#x}"
        case "AckPut":
            sides.acked[place] = sides.statuses[line.node, line.c] = line.d
        case "SendHalf":
            sides.halves[place] = None
        case "ServeMessage":
            sides.served[place, line.d] += 1
        case "DispatchMessage":
            sides.ends[line.queue] = (line.b + 1, max(line.b + 1, sides.ends.get(line.queue, (0, 0))[1]))
        case "ProcessCrash" | "PowerLoss" | "FailFlush" | "FullDisk":
            for queue, (_, most) in sides.ends.items():
                if queue[1] == line.node:
                    sides.ends[queue] = (0, most)
        case "EndTransaction":
            if (line.c, line.a) not in sides.decided or sides.half_queue.get(line.c, line.queue) != line.queue:
                yield f"no producer said {line.a} about {line.c:#x}"
            if line.a == COMMIT and line.d != sides.statuses.get((line.node, line.c), line.d):
                yield f"{line.d} is not how the message was stored"
            elif line.a != COMMIT and line.d:
                yield f"{line.d} is not a status of a rollback"
        case "CommitOffset" if not line.actor.startswith(OWN_GROUPS):
            sides.steps["CommitOffset", line.actor, line.queue, line.b] = number
            if (line.actor, line.queue, line.b) not in sides.asked_offsets:
                yield f"nobody asked for {line.b}"
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
    key, place = (line.actor, line.action, line.operation), (line.queue, line.a, line.b, line.c)
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
                sides.sent[line.queue[1], line.c] = None
                sides.half_queue[line.c] = line.queue
            case "EndTransaction" | "CheckReply":
                sides.decided[line.c, line.a] = None
                if line.action == "EndTransaction" and sides.half_offset.get(line.c, line.b) != line.b:
                    yield f"the half message is at {sides.half_offset[line.c]}, not at {line.b}"
                if sides.half_queue.get(line.c, line.queue) != line.queue:
                    yield f"the half message is for {sides.half_queue[line.c]}"
            case "CommitOffset":
                sides.asked_offsets[line.group, line.queue, line.b] = None
        return
    begun, end_then = sides.begun.get(key, (number, 0))
    if is_lock and line.outcome != Outcome.UNKNOWN:
        sides.locking.get((line.actor, line.queue), set()).discard(line.operation)
    was_done = is_lock and sides.steps.get((line.action, line.actor, line.queue, 1), -1) > begun
    if line.outcome in (Outcome.OK, Outcome.FAIL) and sides.waiting.get(wait, 0) > 0 and not was_done:
        sides.waiting[wait] -= 1  # one without an outcome may still be under way
    if line.outcome == Outcome.CONSUMED:
        sides.brought[line.actor, line.operation] += 1
        sides.served[place, line.d] -= 1
        if sides.served[place, line.d] < 0:
            yield f"{line.c:#x} was not served at {line.b}"
    elif line.outcome == Outcome.OK:
        yield from _answered(line, place, begun, end_then, sides)


def _answered(line: Line, place: Place, begun: int, end_then: int, sides: _Sides) -> Iterator[str]:
    least, most = sides.ends.get(line.queue, (0, 0))

    def was_done(actor: str, queue: Queue, value: int) -> bool:
        return sides.steps.get((line.action, actor, queue, value), -1) > begun

    match line.action:
        case "Send" | "SendBatch" if bool(sides.acked.get(place, not line.d)) != bool(line.d):
            yield f"nobody acknowledged {line.c:#x} at {line.a} like this"
        case "SendHalf":
            sides.half_offset[line.c] = line.b
            if place not in sides.halves or bool(sides.statuses.get((line.queue[1], line.c))) != bool(line.d):
                yield f"nobody stored the half message {line.c:#x} at {line.a} like this"
        case "SendDelayed" if bool(sides.statuses.get((line.queue[1], line.c), not line.d)) != bool(line.d):
            yield f"nobody acknowledged {line.c:#x} like this"
        case "SendBack" if sides.appended.get((line.queue[1], line.c), -1) < begun:
            yield f"nobody stored {line.c:#x}"
        case "CommitOffset" if not was_done(line.group, line.queue, line.b):
            yield f"{line.b} was not stored"
        case "LockQueue" if line.operation in sides.ambiguous:
            pass  # which of two at a time did it?
        case "LockQueue" if was_done(line.actor, line.queue, 1) != bool(line.a):
            yield "the answer is not what was done"
        case "Heartbeat" | "Leave" if not was_done(line.actor, line.queue, 0) and line.action == "Heartbeat":
            yield "no broker recorded it"
        case "PullFiltered" if (line.d == FOUND) != bool(sides.brought[line.actor, line.operation]):
            yield f"{line.d} is not what it brought"
        case "Pull" | "QueryBounds":
            told = line.c if line.action == "Pull" else line.b
            if not min(end_then, least) <= told <= most:
                yield f"the queue is said to end at {told}; it ended between {end_then} and {most}"
            elif line.action == "Pull" and line.d == NOT_FOUND and line.b != line.a:
                yield f"nothing was found, and it goes on at {line.b}"
            elif line.action == "Pull" and (line.d == FOUND) != bool(sides.brought[line.actor, line.operation]):
                yield f"{line.d} is not what it brought"
            elif line.action == "Pull" and line.d not in (FOUND, NOT_FOUND, 20, 21):
                yield f"{line.d} is not an answer to it"
