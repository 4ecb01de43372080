"""Promises about messages with special handling: delays, batches, retries, filters, routes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from refmq.trace.record import Outcome
from refmq.verify.oracles.base import FOUND, Finding, Line, Power, Promises, Queue, Remembered, placed
from refmq.verify.oracles.calm import Quiet
from refmq.verify.oracles.partition import Partition, oracle

CRASHES: Final = frozenset({"ProcessCrash", "PowerLoss", "FailFlush", "FullDisk", "CrashPlanned"})
RETRY_PREFIX: Final = "%RETRY%"
DEAD_PREFIX: Final = "%DLQ%"
SYSTEM: Final = ("%", "SCHEDULE_TOPIC", "RMQ_SYS_")
LATE_MS_MAX: Final = 500
NO_MATCH: Final = 20
"""Response code of a pull that passed messages and wanted none of them."""

Place = tuple[Queue, int]


class _Losses:
    """Which operations were under way when their broker lost its power."""

    def __init__(self) -> None:
        self._begun: Remembered[tuple[str, int], int] = Remembered()
        self._lost_at: dict[str, int] = {}

    def feed(self, number: int, line: Line) -> None:
        if line.outcome == Outcome.INVOKE:
            self._begun[line.actor, line.operation] = number
        elif line.outcome == Outcome.STEP and line.action == "PowerLoss":
            self._lost_at[line.node] = number

    def struck(self, line: Line) -> bool:
        lost_at = self._lost_at.get(line.queue[1], -1)
        return self._begun.get((line.actor, line.operation), lost_at + 1) < lost_at


@oracle(Partition.MESSAGE)
def never_early(lines: Iterable[Line], promises: Promises) -> Iterator[Finding]:
    """NeverEarly: a delayed message reaches no consumer before its delay, counted from when it was sent, is over, and
    one that was sent back not before the delay of its retry.

    Not judged for a broker whose clock was set.
    """
    due_ms: Remembered[tuple[int, bool], int] = Remembered()  # message and whether it is a retry
    set_clocks: set[str] = set()
    for number, line in enumerate(lines):
        if line.action == "SendDelayed" and line.outcome == Outcome.INVOKE:
            due_ms[line.message, False] = line.due_ms
        elif line.action == "SendBack" and line.outcome == Outcome.INVOKE and line.reconsume_times < line.retries_max:
            due_ms[line.message, True] = min(line.due_ms, due_ms.get((line.message, True), line.due_ms))
        elif line.action == "JumpClock" and line.outcome == Outcome.STEP:
            set_clocks.add(line.node)
        elif line.outcome == Outcome.CONSUMED and line.queue[1] not in set_clocks:
            is_retry = line.topic.startswith(RETRY_PREFIX)
            early_ms = due_ms.get((line.message, is_retry), 0) - line.at_ns // 1_000_000
            if early_ms > 0 and not line.topic.startswith(DEAD_PREFIX):
                yield Finding("NeverEarly", f"{line.actor} got a delayed message {early_ms} ms early", number)


@oracle(Partition.MESSAGE, shared=("FinishRecovery", "StopStore"))
def delayed_delivered(lines: Iterable[Line], promises: Promises) -> Iterator[Finding]:
    """DelayedDelivered: an acknowledged delayed message reaches a consumer in the end, and once if nothing crashed
    since it was sent.

    When nothing disturbs its broker it is in its queue soon after its time.
    """
    quiet = Quiet()
    due: Remembered[int, Line] = Remembered()
    waiting: Remembered[int, tuple[str, int]] = Remembered()
    places: Remembered[int, set[Place]] = Remembered()
    crashed: dict[str, int] = {}
    sent_at: Remembered[int, int] = Remembered()
    damaged: Remembered[int, None] = Remembered()
    losses = _Losses()
    for number, line in enumerate(lines):
        losses.feed(number, line)
        quiet.feed(number, line)
        if line.action == "SendDelayed" and line.outcome == Outcome.INVOKE and quiet.expects(line):
            due[line.message] = line._replace(operation=number)
        if line.outcome == Outcome.STEP:
            if line.action == "AppendMessage" and line.message in due and not line.topic.startswith(SYSTEM):
                sent = due.pop(line.message)
                late_ms = line.at_ns // 1_000_000 - sent.due_ms
                if late_ms > LATE_MS_MAX and quiet.last_fault_of(line) < sent.operation:
                    yield Finding("DelayedDelivered", f"a delayed message is delivered {late_ms} ms late", number)
            if line.action in ("ProcessCrash", "PowerLoss", "StartStore"):
                crashed[line.node] = number
            if line.action == "FlipBit":
                waiting.pop(line.message, None)
                damaged[line.message] = None
            if line.action == "PowerLoss" and not promises.flush_sync:
                for key in [key for key, (broker, _) in waiting.items() if broker == line.node]:
                    del waiting[key]
        elif line.action == "SendDelayed":
            if line.outcome == Outcome.INVOKE:
                places[line.message] = set()
                sent_at[line.message] = number
            elif line.outcome == Outcome.OK and line.status == 0 and not places.get(line.message):
                is_gone = (losses.struck(line) and not promises.flush_sync) or line.message in damaged
                waiting.update({} if is_gone else {line.message: (line.queue[1], number)})
        elif line.outcome == Outcome.CONSUMED and line.message in places and not line.topic.startswith("%"):
            waiting.pop(line.message, None)
            places[line.message].add((line.queue, line.queue_offset))
            if len(places[line.message]) > 1 and crashed.get(line.queue[1], -1) < sent_at.get(line.message, -1):
                sentence = f"a delayed message is at {placed(*sorted(places[line.message]))} although nothing crashed"
                yield Finding("DelayedDelivered", sentence, number)
    if promises.settled:
        for _, number in waiting.values():
            yield Finding("DelayedDelivered", "a delayed message was acknowledged and nobody ever got it", number)


@oracle(Partition.QUEUE)
def batch_whole(lines: Iterable[Line], promises: Promises) -> Iterator[Finding]:
    """BatchWhole: the messages of a batch lie in their order next to each other, and all of them or none.

    A crash while a batch is written may leave its beginning, and then its sender knows nothing of it.
    """
    member: Remembered[int, Queue] = Remembered()
    batches: Remembered[tuple[str, int], list[int]] = Remembered()
    found: Remembered[int, Place] = Remembered()
    disturbed: Remembered[tuple[str, int], None] = Remembered()
    for line in lines:
        key = (line.actor, line.operation)
        if line.action == "SendBatch" and line.outcome == Outcome.INVOKE:
            member[line.message] = line.queue
            if key not in batches:
                batches[key] = []
            batches[key].append(line.message)
        elif line.outcome == Outcome.STEP and line.action in CRASHES:
            for batch in batches:
                disturbed[batch] = None
            if line.action == "PowerLoss" and not promises.flush_sync:
                batches.clear()  # what was read of them before says nothing about what is left
        elif line.outcome == Outcome.CONSUMED and line.action == "Pull" and member.get(line.message) == line.queue:
            found[line.message] = (line.queue, line.queue_offset)
    if not promises.settled:
        return
    for key, messages in batches.items():
        places = [found.get(message) for message in messages]
        kept = [place for place in places if place is not None]
        if places[: len(kept)] != kept or (len(kept) < len(places) and kept and key not in disturbed):
            yield Finding("BatchWhole", f"of a batch of {key[0]} {len(kept)} of {len(places)} messages are there", 0)
        elif any(place != (kept[0][0], kept[0][1] + number) for number, place in enumerate(kept)):
            yield Finding("BatchWhole", f"a batch of {key[0]} lies at {placed(*kept)}", 0)


@oracle(Partition.MESSAGE)
def retried_or_dead(lines: Iterable[Line], promises: Promises) -> Iterator[Finding]:
    """RetriedOrDead: a message that was sent back comes again, and one that was sent back too often is a dead letter.

    Nothing is promised over a power loss: sending back does not wait for the disk.
    """
    owed: dict[tuple[str, int, bool], list[int]] = {}  # broker, message, dead -> lines of acknowledged send-backs
    allowed: dict[tuple[str, int, bool], list[int]] = {}  # ... -> lines of all send-backs
    crashed: dict[str, int] = {}
    copies: dict[tuple[str, int, bool], set[Place]] = {}
    losses = _Losses()
    for number, line in enumerate(lines):
        losses.feed(number, line)
        broker = line.queue[1]
        if line.action == "SendBack" and line.outcome in (Outcome.INVOKE, Outcome.OK):
            key = (broker, line.message, line.reconsume_times >= line.retries_max)
            if line.outcome == Outcome.INVOKE or key not in allowed:
                allowed.setdefault(key, []).append(number)
            if line.outcome == Outcome.OK and not losses.struck(line):
                owed.setdefault(key, []).append(number)
        elif line.outcome == Outcome.CONSUMED and line.topic.startswith((RETRY_PREFIX, DEAD_PREFIX)):
            key = (broker, line.message, line.topic.startswith(DEAD_PREFIX))
            copies.setdefault(key, set()).add((line.queue, line.queue_offset))
            sent = allowed.get(key, [number])
            if len(copies[key]) > len(sent) and crashed.get(broker, -1) < sent[0]:
                sentence = f"a message was sent back {len(sent)} times and is at {placed(*sorted(copies[key]))}"
                yield Finding("RetriedOrDead", sentence, number)
            if key not in allowed:
                what = "a dead letter" if key[2] else "up for retry"
                yield Finding("RetriedOrDead", f"a message is {what} that nobody sent back for that", number)
        elif line.outcome == Outcome.STEP and line.action in CRASHES:
            crashed[line.node] = number
        if line.outcome == Outcome.STEP and line.action == "FlipBit":
            owed = {key: numbers for key, numbers in owed.items() if key[1] != line.message}
        if line.outcome == Outcome.STEP and line.action == "PowerLoss":
            owed = {key: numbers for key, numbers in owed.items() if key[0] != line.node}
    if promises.settled:
        for key, numbers in owed.items():
            if len(copies.get(key, ())) < len(numbers):
                what = "dead letters" if key[2] else "retries"
                sentence = f"a message was sent back {len(numbers)} times and has {len(copies.get(key, ()))} {what}"
                yield Finding("RetriedOrDead", sentence, numbers[-1])


@oracle(Partition.NODE)
def filtered_pull(lines: Iterable[Line], promises: Promises) -> Iterator[Finding]:
    """FilteredPull: a pull with a filter brings what it wants, all of it, and nothing else.

    The class of a message is in the `invoke` event of its sending, the wanted classes are in the pull, as bits.
    """
    classes: Remembered[int, int] = Remembered()
    places: Remembered[Place, int] = Remembered()  # what is known to be where, from any source
    passed: Remembered[Place, list[tuple[str, int, int]]] = Remembered()  # who passed it, wanted classes, line
    consumed: Remembered[tuple[str, int], list[Line]] = Remembered()
    power, losses = Power(promises), _Losses()
    for number, line in enumerate(lines):
        losses.feed(number, line)
        if (forgiven := power.feed(number, line)) is not None:
            for table in (places, passed):
                for key in [key for key in table if key[0][1] == forgiven[0]]:
                    del table[key]
        key_of = (line.actor, line.operation)
        is_send = line.action in ("Send", "SendBatch", "SendHalf", "SendDelayed")
        if is_send and line.outcome == Outcome.INVOKE:
            classes[line.message] = line.message_class
        elif line.outcome == Outcome.CONSUMED or (line.action in ("Send", "SendBatch") and line.outcome == Outcome.OK):
            if power.is_gone(line):
                continue
            place = (line.queue, line.queue_offset)
            places[place] = line.message
            if line.action == "PullFiltered":
                if key_of not in consumed:
                    consumed[key_of] = []
                consumed[key_of].append(line)
            for who, mask, _ in passed.get(place, ()):
                if mask >> classes.get(line.message, 0) & 1 and line.message in classes:
                    yield Finding("FilteredPull", f"{who} passed a message that it wanted at {placed(place)}", number)
            passed.pop(place, None)
        elif line.action == "PullFiltered" and line.outcome == Outcome.OK:
            if losses.struck(line) and not promises.flush_sync:
                continue  # it speaks of a queue that may be gone
            yield from _judge_filtered(number, line, consumed.pop(key_of, []), classes, places, passed)


def _judge_filtered(
    number: int,
    line: Line,
    messages: list[Line],
    classes: Remembered[int, int],
    places: Remembered[Place, int],
    passed: Remembered[Place, list[tuple[str, int, int]]],
) -> Iterator[Finding]:
    mask = line.wanted_classes
    brought = {message.queue_offset for message in messages}
    for message in messages:
        if message.message in classes and not mask >> classes[message.message] & 1:
            yield Finding(
                "FilteredPull", f"{line.actor} got a message at {message.queue_offset} that it did not want", number
            )
        if message.queue != line.queue or not line.from_offset <= message.queue_offset < line.next_offset:
            yield Finding("FilteredPull", f"{line.actor} got a message outside what it asked for", number)
    if line.status not in (FOUND, NO_MATCH):
        return
    for offset in range(line.from_offset, line.next_offset):
        if offset in brought:
            continue
        place = (line.queue, offset)
        if place not in places:
            passed[place] = [*passed.get(place, []), (line.actor, mask, number)]
        elif places[place] in classes and mask >> classes[places[place]] & 1:
            yield Finding("FilteredPull", f"{line.actor} passed a message that it wanted at {placed(place)}", number)
