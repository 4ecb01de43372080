"""What a process did and could not write down any more when it died: its last appends and its last checkpoint.

A node hands its events to the operating system every 0.2 s, so SIGKILL takes the last ones; and it may die between an
effect and its event. What the process did in that time shows afterwards: the next start finds a log that is longer
than the trace says, and dispatches its records again. Each of those was appended by a step that nobody recorded, and
that step is put back here, behind the last event of that life. Its message is the one that is served, or consumed, at
its place later on; any other will do if none is.

A start that builds queues and index again from a later record than the last checkpoint says has read a checkpoint that
nobody recorded. What that one says was done before it: the log was flushed so far, the records were dispatched, queues
and index were flushed. These steps are put back as well, with the checkpoint, as far as their fields are known.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from refmq.model.step import Event
from refmq.verify.spec.group_hints import Told

CRASHES = frozenset({"ProcessCrash", "PowerLoss"})
U32 = 1 << 32
Queue = tuple[str, int]


@dataclass(slots=True)
class _Life:
    """How far the log of a broker has come, by its events."""

    wrote: int = 0
    alive: bool = False
    """It was not stopped in good order."""
    crashed: bool = False
    """Until the next start; what the world says of its node in between is no step of it."""
    last: int = -1
    """Where the last event of this broker is in the recording."""
    records: list[Event] = field(default_factory=list)
    """Appends that no checkpoint covers."""
    dispatched: int = 0
    flushed: int = 0
    log_ms: int = 0
    """Up to which time the log is durable."""
    stamps: tuple[int, int] = (0, 0)
    """What the last checkpoint said of queues and index."""
    ends: dict[Queue, int] = field(default_factory=dict)
    kept: dict[Queue, int] = field(default_factory=dict)
    """How many units of a queue there are, and how many are durable."""

    def feed(self, event: Event) -> None:
        """A step of the store."""
        queue = (event.subject, event.queue_id)
        match event.action:
            case "AppendMessage":
                self.wrote = _end(event)
                self.records.append(event)
            case "RollFile":
                self.wrote = _end(event)
            case "DispatchMessage":
                self.dispatched = event.a + event.d
                self.ends[queue] = event.b + 1
            case "FlushLog":
                self.flushed, self.log_ms = event.a, event.b
            case "FlushQueue":
                self.kept[queue] = event.a
            case "TruncateQueue":
                self.ends[queue] = self.kept[queue] = event.a
            case "TruncateLog":
                self.wrote = self.flushed = event.a
                self.log_ms, self.dispatched = event.b, min(self.dispatched, event.a)
                self.records = [record for record in self.records if record.a < event.a]
            case "WriteCheckpoint":  # its last field is modulo 2^32
                covered = self.wrote - (self.wrote - event.d) % U32
                self.records = [record for record in self.records if _end(record) > covered]
                self.stamps = event.b, event.c


def _messages(recording: Sequence[Told]) -> dict[tuple[str, int, int], int]:
    """(topic, queue, queue offset) -> the message that was served or consumed there."""
    found: dict[tuple[str, int, int], int] = {}
    for _, event in recording:
        if event.action == "ServeMessage":
            found[event.subject, event.queue_id, event.b] = event.c
        elif event.action == "ConsumeStart":
            found.setdefault((event.subject.partition("@")[0], event.queue_id, event.a), event.b)
    return found


def with_unrecorded(recording: Sequence[Told]) -> list[Told]:
    """The recording with the appends that killed brokers did not record."""
    lives: dict[str, _Life] = {}
    added: dict[int, list[Told]] = {}
    for at, (node, event) in enumerate(recording):
        life = lives.get(node)
        if event.action == "StartStore":
            life = lives.setdefault(node, _Life())
            if life.alive:
                found = list(_unrecorded(recording, node, at, life))
                for one in found:
                    life.feed(one.event)
                found += _unrecorded_checkpoint(recording, node, at, life)
                if found:
                    added.setdefault(life.last, []).extend(found)
            life.crashed = False
        if life is None:
            continue
        if event.action in CRASHES or life.crashed:
            life.crashed = True
            continue  # what the process did not record came before
        life.alive = event.action != "StopStore"
        life.last = at
        life.feed(event)
    if not added:
        return list(recording)
    return [told for at, one in enumerate(recording) for told in (one, *added.get(at, ()))]


def _unrecorded(recording: Sequence[Told], node: str, start: int, life: _Life) -> Iterator[Told]:
    """The appends behind the end of the log that the recovery from `start` on finds."""
    records: list[Event] = []
    for other, event in recording[start:]:
        if other == node and event.action == "ScanLog" and event.b <= life.wrote:
            return
        if other == node and event.action == "FinishRecovery":
            break
        if other == node and event.action == "DispatchMessage" and event.a >= life.wrote:
            records.append(event)
    if not records:
        return
    messages = _messages(recording)
    end = life.wrote
    for event in records:
        if event.a > end:
            yield Told(node, Event("RollFile", a=end, b=event.a))
        place = (event.subject, event.queue_id, event.b)
        message = messages.get(place, -1 - event.a)
        yield Told(node, Event("AppendMessage", "", *place[:2], a=event.a, b=event.b, c=message, d=event.d))
        end = event.a + event.d


def _unrecorded_checkpoint(recording: Sequence[Told], node: str, start: int, life: _Life) -> list[Told]:
    """The checkpoint that the recovery from `start` on went by, if it is later than those that were recorded, with the
    steps that it speaks of."""
    valid, begin, log_ms, finished = -1, -1, life.log_ms, False
    for other, event in recording[start:]:
        if other != node:
            continue
        if event.action == "ScanLog":
            valid = event.b
        elif event.action == "TruncateLog":
            log_ms = event.b
        elif event.action == "DispatchMessage" and begin < 0:
            begin = event.a
        if event.action == "FinishRecovery" or event.action in CRASHES:
            finished = event.action == "FinishRecovery"
            break
    begin = valid if begin < 0 else begin
    covered = [record for record in life.records if _end(record) <= begin]
    if not finished or not covered:
        return []
    end = _end(covered[-1])
    steps = []
    if life.flushed < end:
        steps.append(Event("FlushLog", a=end, b=log_ms if end == valid else life.log_ms))
        life.feed(steps[-1])
    for record in covered:
        if record.a >= life.dispatched:
            steps.append(
                Event("DispatchMessage", "", record.subject, record.queue_id, a=record.a, b=record.b, d=record.d)
            )
            life.feed(steps[-1])
    for (topic, queue_id), count in life.ends.items():
        if life.kept.get((topic, queue_id), 0) < count:
            steps.append(Event("FlushQueue", "", topic, queue_id, a=count))
    steps.append(Event("FlushIndex", a=covered[-1].a, b=end))
    # Of queues and index it says at least what the one before said; how much more, nobody knows.
    steps.append(Event("WriteCheckpoint", "", "", -1, life.log_ms, *life.stamps, end % U32))
    for step in steps:
        life.feed(step)
    return [Told(node, step) for step in steps]


def _end(event: Event) -> int:
    return event.b if event.action == "RollFile" else event.a + event.d
