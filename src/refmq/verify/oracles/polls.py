"""Promises about reading: no reader skips a message that exists, and none is led backwards."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from refmq.trace.record import Outcome
from refmq.verify.oracles.base import FOUND, Finding, Line, Polls, Power, Promises, Queue, Remembered
from refmq.verify.oracles.calm import Quiet
from refmq.verify.oracles.partition import Partition, oracle


@oracle(Partition.QUEUE)
def skipped_poll(lines: Iterable[Line], promises: Promises) -> Iterator[Finding]:
    """SkippedPoll: a pull brings every message in the stretch that it passes, as far as anybody knows of it.

    A message is known when another pull has brought it. (What only its producer knows is AckedSurvives.)
    """
    known: Remembered[tuple[Queue, int], str] = Remembered()
    holes: Remembered[tuple[Queue, int], str] = Remembered()
    polls, power = Polls(), Power(promises)
    for number, line in enumerate(lines):
        if (forgiven := power.feed(number, line)) is not None:
            for table in (known, holes):
                for key in [key for key in table if key[0][1] == forgiven[0]]:
                    del table[key]
        poll = polls.feed(line)
        if poll is None or poll.status != FOUND:
            continue
        brought = {message.queue_offset for message in poll.messages if message.queue == poll.queue}
        for offset in range(poll.from_offset, poll.next_offset):
            key = (poll.queue, offset)
            if offset in brought:
                known[key] = poll.actor
                if (skipper := holes.pop(key, None)) is not None:
                    yield _skipped(skipper, poll.actor, poll.queue, offset, number)
            elif key in known:
                yield _skipped(poll.actor, known[key], poll.queue, offset, number)
            else:
                holes[key] = poll.actor


def _skipped(skipper: str, finder: str, queue: Queue, offset: int, number: int) -> Finding:
    sentence = f"{skipper} passed offset {offset} of {queue[0]}/{queue[2]} at {queue[1]}, which {finder} got"
    return Finding("SkippedPoll", sentence, number)


@oracle(Partition.GROUP)
def nonmonotonic_poll(lines: Iterable[Line], promises: Promises) -> Iterator[Finding]:
    """NonmonotonicPoll: the messages of a pull rise from its beginning to its end, and it never leads back."""
    polls = Polls()
    for number, line in enumerate(lines):
        poll = polls.feed(line)
        if poll is None or poll.status != FOUND:
            continue
        where = f"a pull of {poll.actor} from offset {poll.from_offset} of {poll.queue[0]}/{poll.queue[2]}"
        if poll.next_offset < poll.from_offset:
            yield Finding("NonmonotonicPoll", f"{where} goes on at {poll.next_offset}", number)
        last = poll.from_offset - 1
        for message in poll.messages:
            if not last < message.queue_offset < poll.next_offset:
                yield Finding("NonmonotonicPoll", f"{where} brought offset {message.queue_offset} after {last}", number)
            last = message.queue_offset
            if message.queue != poll.queue:
                yield Finding("NonmonotonicPoll", f"{where} brought a message of {message.queue}", number)


MESSAGES_MAX: Final = 32
BYTES_MAX: Final = 256 << 10
"""What a broker gives to one pull at most, however much it wants: maxTransferCountOnMessageInMemory and
maxTransferBytesOnMessageInMemory, 4.9.8. The first message is always given."""


@oracle(Partition.GROUP)
def pull_within_limits(lines: Iterable[Line], promises: Promises) -> Iterator[Finding]:
    """PullWithinLimits: a pull brings no more messages than it asked for, and no more than a broker gives at once."""
    wanted: Remembered[tuple[str, int], int] = Remembered()
    brought: Remembered[tuple[str, int], list[int]] = Remembered()
    for number, line in enumerate(lines):
        if line.action not in ("Pull", "PullFiltered"):
            continue
        key = (line.actor, line.operation)
        if line.outcome == Outcome.INVOKE:
            wanted[key] = line.count_max if line.count_max > 0 else MESSAGES_MAX
        elif line.outcome == Outcome.CONSUMED:
            if key not in brought:
                brought[key] = []
            brought[key].append(line.size_bytes)
        else:
            sizes, count_max = brought.pop(key, []), min(MESSAGES_MAX, wanted.pop(key, MESSAGES_MAX))
            if len(sizes) > count_max or sum(sizes[1:]) > BYTES_MAX:
                sentence = f"{line.actor} gets {len(sizes)} messages, {sum(sizes)} bytes; {count_max} are the limit"
                yield Finding("PullWithinLimits", sentence, number)


def durable_to(line: Line) -> int:
    """What a flush of the log, or the end of a recovery, says to be durable."""
    return line.flushed_to if line.action == "FlushLog" else line.valid_to


@oracle(Partition.NODE)
def never_serve_unflushed(lines: Iterable[Line], promises: Promises) -> Iterator[Finding]:
    """NeverServeUnflushed: with synchronous flush a consumed message is covered by a flush of its broker.

    Judged only for brokers that record `FlushLog`; the end of the message is its offset and size.
    """
    flushed_to: dict[str, int] = {}
    for number, line in enumerate(lines):
        if line.outcome == Outcome.STEP:
            if line.action in ("FlushLog", "FinishRecovery"):
                flushed_to[line.node] = max(durable_to(line), flushed_to.get(line.node, 0))
        elif line.outcome == Outcome.CONSUMED and promises.flush_sync:
            broker = line.queue[1]
            if broker in flushed_to and line.physical_offset + line.size_bytes > flushed_to[broker]:
                flushed = f"{broker} is flushed to {flushed_to[broker]} only"
                sentence = f"{line.actor} got the record at {line.physical_offset}; {flushed}"
                yield Finding("NeverServeUnflushed", sentence, number)


@oracle(Partition.NODE)
def durable_ack(lines: Iterable[Line], promises: Promises) -> Iterator[Finding]:
    """DurableAck: with synchronous flush a message that is acknowledged without reserve is covered by a flush.

    Judged for brokers that record `FinishRecovery` and `FlushLog`, from their own events and from what clients hear.
    """
    flushed_to: dict[str, int] = {}
    for number, line in enumerate(lines):
        if not promises.flush_sync:
            return
        if line.outcome == Outcome.STEP and line.action in ("FlushLog", "FinishRecovery"):
            flushed_to[line.node] = max(durable_to(line), flushed_to.get(line.node, 0))
        elif (line.action == "AckPut" and line.outcome == Outcome.STEP) or (
            line.action in ("Send", "SendBatch", "SendHalf") and line.outcome == Outcome.OK
        ):
            broker = line.queue[1]
            if line.status == 0 and line.physical_offset >= flushed_to.get(broker, line.physical_offset + 1):
                sentence = (
                    f"{broker} acknowledges the record at {line.physical_offset} and is "
                    f"flushed to {flushed_to[broker]} only"
                )
                yield Finding("DurableAck", sentence, number)


FLUSH_NS_MAX: Final = 12_000_000_000
"""An asynchronous flush comes after half a second if there is much to write, and after 10 s in any case."""


@oracle(Partition.NODE)
def flushed_in_time(lines: Iterable[Line], promises: Promises) -> Iterator[Finding]:
    """FlushedInTime: without synchronous flush a record is durable after a while, if nothing disturbs its broker."""
    quiet = Quiet()
    oldest: dict[str, tuple[int, int, int]] = {}  # node -> line, time and end of the oldest record that is not flushed
    for number, line in enumerate(lines):
        quiet.feed(number, line)
        if line.outcome != Outcome.STEP:
            continue
        if line.action in ("StartStore", "FinishRecovery"):
            oldest.pop(line.node, None)
        elif line.action == "AppendMessage":
            oldest.setdefault(line.node, (number, line.at_ns, line.physical_offset + line.size_bytes))
        if line.node in oldest:
            since, at_ns, end = oldest[line.node]
            is_calm = quiet.last_fault_of(line) < since and not quiet.is_broken(line.node)
            if line.at_ns - at_ns > FLUSH_NS_MAX and is_calm:
                yield Finding("FlushedInTime", f"{line.node} has not flushed the record that ends at {end}", number)
                del oldest[line.node]
            elif line.action == "FlushLog" and line.flushed_to >= end:
                del oldest[line.node]
