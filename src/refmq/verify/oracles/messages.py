"""Promises about messages: none is lost, none is invented, each keeps its place."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from refmq.trace.record import Outcome
from refmq.verify.oracles.base import FOUND, REMEMBERED_MAX, Finding, Line, Polls, Power, Promises, Queue, Remembered
from refmq.verify.oracles.partition import Partition, oracle

LAG_NS = 5_000_000_000
"""A queue may lag behind the log for a moment after an acknowledgement; later it must show the message."""

TOPIC_NOT_EXIST = 17
"""Response code: a broker that answers so has no message of the topic."""

SYSTEM_PREFIXES = ("%RETRY%", "%DLQ%", "SCHEDULE_TOPIC_", "RMQ_SYS_", "TRANS_CHECK_MAX_TIME_TOPIC")
"""Topics into which a broker copies messages that were sent to another topic."""


SENDS = ("Send", "SendBatch")
"""Operations whose answer names the place of the message in its queue."""
ATTEMPTS_MAX = 16
"""Queues that are remembered of one message."""


@oracle(Partition.QUEUE, shared=("FlushLog",))
def acked_survives(lines: Iterable[Line], promises: Promises) -> Iterator[Finding]:
    """AckedSurvives: an acknowledged message is found by every read that passes its place.

    Jepsen's "lost write". Two ways to see a loss: a pull passes the offset without bringing the message, before or
    after the acknowledgement; or a queue ends before the offset, long after it. Only status 0 is an acknowledgement:
    the others say that the message is stored, but not as safely as it should be.
    """
    acked: Remembered[tuple[Queue, int], tuple[int, int, int]] = Remembered()  # message, physical offset, time
    holes: Remembered[tuple[Queue, int], str] = Remembered()  # offsets that a pull passed and did not bring
    ends: dict[Queue, tuple[int, int, int]] = {}  # line, time and end of the queue at the last pull
    polls, power = Polls(), Power(promises)
    for number, line in enumerate(lines):
        if (forgiven := power.feed(number, line)) is not None:
            broker, from_physical = forgiven
            for key in [k for k, v in acked.items() if k[0][1] == broker and v[1] >= from_physical]:
                del acked[key]
            for key in [k for k in holes if k[0][1] == broker]:
                del holes[key]
            ends = {queue: end for queue, end in ends.items() if queue[1] != broker}
        elif line.action in SENDS and line.outcome == Outcome.OK and line.status == 0 and not power.is_gone(line):
            acked[line.queue, line.queue_offset] = (line.message, line.physical_offset, line.at_ns)
            if (reader := holes.get((line.queue, line.queue_offset))) is not None:
                yield Finding(
                    "AckedSurvives", f"{_at(line.queue, line.queue_offset)} was passed by {reader} without it", number
                )
        elif line.action == "Pull" and line.outcome == Outcome.FAIL and line.status == TOPIC_NOT_EXIST:
            ends[line.queue] = (number, line.at_ns, 0)
        elif (poll := polls.feed(line)) is not None:
            ends[poll.queue] = (number, line.at_ns, poll.max_offset)
            brought = {message.queue_offset for message in poll.messages if message.queue == poll.queue}
            passed = range(poll.from_offset, poll.next_offset) if poll.status == FOUND else range(0)
            for offset in passed:
                if offset in brought:
                    continue
                holes[poll.queue, offset] = poll.actor
                if (poll.queue, offset) in acked:
                    yield Finding("AckedSurvives", f"{poll.actor} passed {_at(poll.queue, offset)} without it", number)
    for (queue, offset), (_, _, acked_ns) in acked.items():
        last_line, at_ns, end = ends.get(queue, (0, 0, offset + 1))
        if promises.settled and offset >= end and at_ns - acked_ns > LAG_NS:
            yield Finding("AckedSurvives", f"{_at(queue, offset)} is gone, the queue ends at {end}", last_line)


@oracle(Partition.MESSAGE)
def no_invention(lines: Iterable[Line], promises: Promises) -> Iterator[Finding]:
    """NoInvention: what reaches a consumer was sent before, to the same queue of the same topic."""
    sent: Remembered[int, tuple[Queue, ...]] = Remembered()
    """Message -> where it was sent to; a producer that gets no answer tries another queue."""
    for number, line in enumerate(lines):
        if line.action in (*SENDS, "SendHalf", "SendDelayed") and line.outcome == Outcome.INVOKE:
            before = sent.get(line.message, ())
            sent[line.message] = before if line.queue in before else (*before, line.queue)[-ATTEMPTS_MAX:]
        elif line.outcome == Outcome.CONSUMED:
            queues = sent.get(line.message)
            if queues is None:
                yield Finding(
                    "NoInvention",
                    f"{_at(line.queue, line.queue_offset)} holds a message that nobody sent like this",
                    number,
                )
            elif line.queue not in queues and not line.topic.startswith(SYSTEM_PREFIXES):
                told = " and ".join(f"{topic}/{queue_id} at {broker}" for topic, broker, queue_id in queues)
                yield Finding("NoInvention", f"{_at(line.queue, line.queue_offset)} was sent to {told}", number)


@oracle(Partition.MESSAGE)
def aborted_read(lines: Iterable[Line], promises: Promises) -> Iterator[Finding]:
    """AbortedRead: a message whose send certainly failed is never consumed."""
    failed: Remembered[int, str] = Remembered()
    consumed: Remembered[int, str] = Remembered()
    for number, line in enumerate(lines):
        if line.action in (*SENDS, "SendHalf", "SendDelayed", "Produce") and line.outcome == Outcome.FAIL:
            failed[line.message] = line.actor
            if line.message in consumed:
                yield Finding("AbortedRead", f"{consumed[line.message]} was refused after it was consumed", number)
        elif line.outcome == Outcome.CONSUMED or (line.action == "Listen" and line.outcome == Outcome.INVOKE):
            consumed[line.message] = _at(line.queue, line.queue_offset)
            if line.message in failed:
                yield Finding("AbortedRead", f"{consumed[line.message]} was refused to {failed[line.message]}", number)


@oracle(Partition.QUEUE, shared=("FlushLog",))
def inconsistent_offset(lines: Iterable[Line], promises: Promises) -> Iterator[Finding]:
    """InconsistentOffset: a place in a queue holds one message forever, whoever names it.

    With synchronous flush a message that is stored with reserve (its flush failed, or took too long) is promised to
    nobody, and a power loss may give its place to another.
    """
    places: Remembered[tuple[Queue, int], tuple[int, int]] = Remembered()  # message, physical offset
    power = Power(promises)
    for number, line in enumerate(lines):
        if (forgiven := power.feed(number, line)) is not None:
            broker, from_physical = forgiven
            for key in [k for k, v in places.items() if k[0][1] == broker and v[1] >= from_physical]:
                del places[key]
        is_told = line.action in SENDS and line.outcome == Outcome.OK and not (promises.flush_sync and line.status)
        is_place = line.outcome == Outcome.CONSUMED or is_told
        if not is_place or power.is_gone(line):
            continue
        known = places.get((line.queue, line.queue_offset))
        if known is None:
            places[line.queue, line.queue_offset] = (line.message, line.physical_offset)
        elif known[0] != line.message:
            place = _at(line.queue, line.queue_offset)
            sentence = f"{place} is message {line.message:#x} for {line.actor} and was {known[0]:#x} before"
            yield Finding("InconsistentOffset", sentence, number)
        elif known[1] != line.physical_offset and -1 not in (known[1], line.physical_offset):
            place, at = _at(line.queue, line.queue_offset), line.physical_offset
            sentence = f"{place} is at {at} in the log for {line.actor} and was at {known[1]}"
            yield Finding("InconsistentOffset", sentence, number)


@oracle(Partition.NODE)
def queue_matches_log(lines: Iterable[Line], promises: Promises) -> Iterator[Finding]:
    """QueueMatchesLog: dispatch follows the log, record by record, and a queue grows without holes."""
    appended: Remembered[tuple[str, int], Line] = Remembered()
    next_offset: dict[Queue, int] = {}
    log_end: dict[str, int] = {}  # per node: where the last append of this life ends
    first: dict[str, int] = {}  # per node: where the first append of this life begins
    for number, line in enumerate(lines):
        if line.outcome != Outcome.STEP:
            continue
        if line.action in ("StartStore", "PowerLoss", "ProcessCrash"):
            # Recovery dispatches again from wherever the queues end; what it reads was appended in another life.
            next_offset = {queue: offset for queue, offset in next_offset.items() if queue[1] != line.node}
            for key in [key for key in appended if key[0] == line.node]:
                del appended[key]
            log_end.pop(line.node, None)
            first.pop(line.node, None)
        elif line.action == "AppendMessage":
            if line.physical_offset < log_end.get(line.node, 0):
                ends = f"the log of {line.node} ends at {log_end[line.node]}"
                sentence = f"a record is appended at {line.physical_offset}, {ends}"
                yield Finding("QueueMatchesLog", sentence, number)
            first.setdefault(line.node, line.physical_offset)
            log_end[line.node] = line.physical_offset + line.size_bytes
            appended[line.node, line.physical_offset] = line
        elif line.action == "DispatchMessage":
            record = appended.pop((line.node, line.physical_offset), None)
            if record is not None and (record.queue, record.queue_offset, record.size_bytes) != (
                line.queue,
                line.queue_offset,
                line.size_bytes,
            ):
                sentence = (
                    f"{_at(line.queue, line.queue_offset)} names the record of {_at(record.queue, record.queue_offset)}"
                )
                yield Finding("QueueMatchesLog", sentence, number)
            elif (
                record is None
                and line.physical_offset >= first.get(line.node, line.physical_offset + 1)
                and len(appended) < REMEMBERED_MAX
            ):
                place = _at(line.queue, line.queue_offset)
                sentence = f"{place} names {line.physical_offset}, where no record waits to be dispatched"
                yield Finding("QueueMatchesLog", sentence, number)
            expected = next_offset.get(line.queue, line.queue_offset)
            if line.queue_offset != expected:
                sentence = f"{_at(line.queue, line.queue_offset)} was dispatched where offset {expected} was next"
                yield Finding("QueueMatchesLog", sentence, number)
            next_offset[line.queue] = line.queue_offset + 1


def _at(queue: Queue, offset: int) -> str:
    topic, broker, queue_id = queue
    return f"offset {offset} of {topic}/{queue_id} at {broker}"
